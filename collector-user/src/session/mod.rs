//! A recording from start to end: opens the sources, runs the rounds, gives a [`Recording`].
//!
//! One round: T = now; drain all sideband, which holds everything up to T; then take each ring's samples older
//! than T, in place, against the tracked state of their time; then drop the history before T.

mod allocations;
mod block_requests;
mod calls;
mod command;
pub(crate) mod dispatch;
mod ending;
mod error;
mod faults;
mod kernel_locks;
mod lives;
mod lock_names;
mod lock_owners;
mod mapped;
mod needed;
mod open;
mod own_process;
mod program_records;
mod replayed;
mod run;
mod settings;
mod short_times;
mod system;
mod times_off;
mod transfers;
mod waker;
mod wakers;

pub use crate::event_clock::EventClock;
pub use crate::recording::{CAPTURED, Recording};
pub use command::Command;
pub use error::SessionError;
pub use open::Backend;
pub use run::Session;
pub use settings::{Ended, Progress, SessionSettings};
