//! Parquet: the samples, their stacks and the processes as a table for databases and data frames.
//!
//! Source of the format: `src/main/thrift/parquet.thrift` and `Encodings.md` of apache/parquet-format. `docs/parquet.md` says which
//! columns there are.
//!
//! - `columns`: the columns, and the rows of a group on their way in; `leaf`: one column of them.
//! - `values`: what the values of a column become, by `delta` (integers) and `hybrid` (positions in a dictionary, levels), which pack
//!   numbers by `bits`.
//! - `file`: pages, row groups and the footer; `thrift` is how these are spelled.
//! - `rows`: what a sample, a frame and a process are in columns; `write`: the format.

mod bits;
mod columns;
mod delta;
mod file;
mod hybrid;
mod leaf;
mod rows;
mod thrift;
mod values;
mod write;

pub use write::Parquet;
