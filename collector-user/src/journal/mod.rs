//! Journals: everything that a session is told, as it is told and in that order, so that the same is made of it again, where there are
//! neither the kernel that told it nor the processes that it was about, and without any rights.
//!
//! ```text
//! sources ──────┬─► session ─► dispatch ─► recorder ─► Recording
//! sideband ─────┤                             │ ▲
//!               │                    questions▼ │answers (`/proc`, memory, clocks)
//!               └────────► journal ◄────────────┘
//!
//! journal ──────► session ─► dispatch ─► recorder ─► Recording
//! ```
//!
//! [`SessionSettings::journal`](crate::session::SessionSettings::journal) has a session write one;
//! [`Session::replay`](crate::session::Session::replay) makes a recording of it:
//!
//! ```no_run
//! use std::fs::File;
//! use std::io::BufReader;
//!
//! use collector_user::journal::Journal;
//! use collector_user::session::Session;
//!
//! let journal = Journal::open(BufReader::new(File::open("off_cpu.journal")?))?;
//! let mut settings = journal.settings();
//! for hook in &mut settings.events {
//!     let name = hook.event.name().to_owned();
//!     hook.event.add_closure(move |_| Ok(println!("{name}")));
//! }
//! let recording = Session::replay(journal, settings)?;
//! println!("{} samples", recording.machine.samples().len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The recording is the same: samples, values, stacks, tables, and what was lost. Files with code are not in a journal. They are looked for
//! where they were, by their build ids, as for a replayed `perf.data`: stacks go no further than the first frame in one that is not there
//! any more. So it is with what a JIT compiler said of its code.
//!
//! What a journal has is meant for the version that wrote it, and refused by others. It has the records of all processes, and the command
//! lines of those that were looked at: more than a recording of chosen ones.
//!
//! # The form
//!
//! Numbers are little-endian. A journal begins with `collector journal\n`, [`VERSION`] and the version of
//! [`collector_common::wire`], 32 and 16 bits. Items follow: what it is (8 bits), bytes of what follows (32 bits), and these. A string or a list has its
//! length (32 bits) before it, what may be absent a byte 0 or 1.
//!
//! | item | what it has | what a session did |
//! |---|---|---|
//! | 1 `START` | the machine, settings, events; the first item | it was opened |
//! | 2 `ANSWERS` | questions (8, 64, 64 bits) with answers (a length, bytes), for the items up to the next of these; many are several of these in a row | |
//! | 3 `FILE` | a file that was mapped first: device, inode, path, whether it could be opened, build id | |
//! | 4 `SCAN` | nothing | it took in what runs already |
//! | 5 `SIDEBAND` | the time (64 bits), and a record of perf's with its header, laid out as `sideband` has it | it took that in |
//! | 6 `LOOK` | nothing | it looked at processes that executed programs |
//! | 7 `RING` | the event (16 bits), and a record as a program of ours wrote it | it handed that to the event |
//! | 8 `RECORD` | the event, and the parts of a record of another source | the same |
//! | 9 `ROUND` | the time up to which all was told | it ended a round |
//! | 10 `RESCAN` | the time | it took in all processes anew, as something was lost |
//! | 11 `END` | what was lost, tables, figures; the last item | it was finished |
//! | 12 `CLOCKS` | what the clocks showed, and how far that may be off; none in journals of before there was a choice for closures | it read them |
//!
//! Answers come before what asked for them, in the order in which the same was asked.

mod error;
mod read;
mod told;
mod write;

pub use error::JournalError;
pub use read::Journal;
pub(crate) use read::{Item, JournalSource, OF_PERF};
pub(crate) use told::{Ending, EventOf, Start};
pub(crate) use write::JournalWriter;

/// Of the form, and of all that is in it beside what [`collector_common::wire`] lays out.
pub const VERSION: u32 = 3;

/// What a journal begins with.
const MAGIC: &[u8] = b"collector journal\n";

/// Bytes of an item at most. Answers that are more are several items.
const MOST: u32 = 64 << 20;

/// What an item is.
mod kind {
    pub(super) const START: u8 = 1;
    pub(super) const ANSWERS: u8 = 2;
    pub(super) const FILE: u8 = 3;
    pub(super) const SCAN: u8 = 4;
    pub(super) const SIDEBAND: u8 = 5;
    pub(super) const LOOK: u8 = 6;
    pub(super) const RING: u8 = 7;
    pub(super) const RECORD: u8 = 8;
    pub(super) const ROUND: u8 = 9;
    pub(super) const RESCAN: u8 = 10;
    pub(super) const END: u8 = 11;
    pub(super) const CLOCKS: u8 = 12;
}
