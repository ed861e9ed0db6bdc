//! What `/proc` says of processes that run already. Source of the formats: `proc(5)`.

mod maps;
mod process;
mod surroundings;

pub use maps::{Identity, MapsEntry, parse_maps_line};
#[cfg(target_os = "linux")]
pub use process::started;
pub use process::{
    ProcessStatus, ProcessSummary, executable_mappings, folders, mappings, pids, process_of, status, summary,
    threads,
};
pub use surroundings::{MOST_ARGUMENTS, Surroundings, arguments, surroundings, users};
