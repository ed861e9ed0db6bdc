//! What `/proc` says of processes that run already. Source of the formats: `proc(5)`.

mod maps;
mod process;

pub use maps::{Identity, MapsEntry, parse_maps_line};
pub use process::{
    ProcessStatus, ProcessSummary, executable_mappings, folders, mappings, pids, process_of, started, status,
    summary, threads,
};
