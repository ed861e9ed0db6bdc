//! `.etl` files and records of ETW as recordings: real files against what `PerfView` lists of them and against readers that are not
//! ours, and made-up records of which all is known.
//!
//! - `data`: the real files, in `shared/data/etl` beside the checkout; a test that finds none says so.
//! - `listed`: counts, processes, images, times and names. `written`: pprof, nettrace and others, by the program.
//! - `made`: records by hand; `switches`, `transfers`, `memory`, `calls`, `code`, `split` (stacks in pieces): what becomes of them. `shown`: samples and tables as text.
//! - `recorded`: files as a recording on this machine leaves them: of whom, in parts, with losses. `chosen`: the same of records by hand. `parts`: files that lie beside the one that is named.
//! - `images`: images of a trace that are here, in a store or where they were.
//! - `lost`: files by bytes (`file`), of which ETW lost a part. `damaged`: files that are cut or spoilt.
//! - `hostile`: records that are made to cost much.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

mod calls;
mod chosen;
mod code;
mod damaged;
mod data;
#[path = "../../../windows-etw/tests/etl/written.rs"]
#[allow(dead_code, reason = "the tests of the reader use all of it")]
mod file;
mod hostile;
#[cfg(target_os = "linux")]
mod images;
mod listed;
mod lost;
mod made;
mod memory;
mod parts;
mod recorded;
mod shown;
mod split;
mod switches;
mod transfers;
mod written;
