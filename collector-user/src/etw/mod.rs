//! Records of ETW in, a recording as formats take it out; the same on every system, from a file ([`Etl`]) or a live session.
//!
//! ```text
//! EtwRecord ─► taker ─┬─ what there was, from when to when: processes and images (`windows_etw::decode::state`), `threads`, `methods`
//!                     └─ what happened: `kinds` of samples, `switches`, `events` ─► joined with its `stacks` ─► `measured` ─► `pending`
//!
//! all records taken ─► machine: `processes`, `modules`, then each of `pending` by what lay where then (`places`) ─► ExportMachine
//! ─► which kind is looked at first (`wanted`), tables and histograms of the samples (`counted`, `by_process`, `woken`)
//! ```
//!
//! What was recorded on this machine ([`Recorded`]) is read from files, too: Windows writes them while it is recorded, by the plan of a [`Request`].
//!
//! A trace is taken once, from its beginning to its end. What names its parts may stand at the end, as .NET's runtime tells of its methods when
//! it is asked to stop, and as keys stand for stacks until then; so what happened is kept with its addresses, packed, until all is known.

mod by_process;
mod command_line;
mod counted;
mod drives;
mod events;
mod families;
mod file;
mod files;
mod folder;
mod images;
mod kinds;
mod machine;
mod measured;
mod methods;
mod modules;
mod others;
mod parts;
mod patience;
mod pending;
mod places;
mod processes;
mod recording;
mod request;
mod shortest;
mod stacks;
mod switches;
mod system;
mod taker;
mod threads;
mod times;
mod trace;
mod wanted;
mod whose;
mod woken;
#[cfg(windows)]
mod written;

pub use families::Asked;
pub use file::Etl;
pub use folder::{TraceFolder, UnplacedError};
pub use images::name_from_images;
pub use parts::{Difference, PartsError};
pub use patience::Patience;
pub use recording::{Asking, Lost, Recorded, RecordedPart};
pub use request::{Request, RequestError};
pub use shortest::Shortest;
pub use taker::Taker;
pub use trace::Trace;
#[cfg(windows)]
pub use written::{
    Written, WrittenError, ask_at_end, family, is_gone, open_written, stop_abandoned_kernel_logger,
    unanswered, volumes,
};

use crate::longest_name::name;
