//! Parquet: the samples, their stacks and the processes as a table for databases and data frames.
//!
//! The crate `parquet` writes the file. `docs/parquet.md` says which columns there are.
//!
//! - `columns`: the columns, and the rows of a group on their way in; `leaf`: one column of them; `values`: its values.
//! - `rows`: what a sample, a frame and a process are in columns.
//! - `file`: how groups of rows and the footer are written; `write`: the format.

mod columns;
mod file;
mod leaf;
mod rows;
mod values;
mod write;

pub use write::Parquet;
