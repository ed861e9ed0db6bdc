//! Turns what the sources give into universal records: sideband into tracked state, samples into interned
//! stacks. Reads `/proc` and files through [`crate::procfs`] and [`crate::modules`], and no kernel interface of
//! its own, so recorded bytes can be fed to it as well.

mod asking;
mod birth;
mod events;
mod found;
mod inherited;
mod kernel_code;
mod late;
mod looks;
mod outside;
mod registers;
mod reread;
mod sampling;
mod snapshots;
mod state;
mod stretch;
mod tally;
mod thread_names;
mod view;

pub use crate::hooks::{SampleHook, SampleView, Verdict};
pub(crate) use events::{Kept, Kinds, MOST_EVENTS, context_of};
pub(crate) use found::Found;
pub(crate) use outside::{Question, Subject};
pub(crate) use sampling::Taken;
pub use state::Recorder;
pub use tally::StackTally;
