//! System calls, from `SysClEnter` to `SysClExit`, and page faults.
//!
//! - The two events of a call name neither the call nor each other: they are of one thread, which switches tell and the exit's stack does. The call
//!   is known by the address of its routine in the kernel, and its result is an `NTSTATUS` for all but those of windows and graphics
//!   (`win32k`), which return what they like (Microsoft's pages on `SysCallEnter` and `SysCallExit`).
//! - A fault that memory answers has a type (`PageFault_TypeGroup1`); one that a disk answers is told of when it is over, with when it
//!   began, in ticks of the trace's clock (`InitialTime` of `PageFault_HardFault`).

use std::collections::HashMap;

use collector_common::ids::{Nanos, Tid};
use collector_common::record::Unit;
use windows_etw::decode::kernel::KernelEvent;

use super::{CALL, PATH, Said, Sink, error, value};
use crate::etw::files::{FileUse, Files};
use crate::etw::pending::Row;
use crate::etw::times::Times;

/// Threads that are in a call at once.
const MOST: usize = 1 << 20;

/// What an event tells.
#[derive(Clone, Copy, Debug)]
pub(in crate::etw) enum Call {
    Enter {
        address: u64,
    },
    Exit {
        status: u32,
    },
    /// A thread begins: its number is not that of another one's call any more.
    Begin(Tid),
    MinorFault(&'static str),
    MajorFault {
        /// None where what is told is from before the trace.
        since: Option<Nanos>,
        bytes: u32,
        file: Option<FileUse>,
    },
}

impl Call {
    pub(super) fn of(event: &KernelEvent<'_>, files: &mut Files, times: &Times) -> Option<Self> {
        use KernelEvent as E;
        Some(match event {
            E::SystemCallEnter(it) => Self::Enter { address: it.address.0 },
            E::SystemCallExit(it) => Self::Exit { status: it.status },
            E::TransitionFault(_) => Self::MinorFault("transition"),
            E::DemandZeroFault(_) => Self::MinorFault("demand zero"),
            E::CopyOnWrite(_) => Self::MinorFault("copy on write"),
            E::GuardPageFault(_) => Self::MinorFault("guard page"),
            E::HardFault(it) => Self::MajorFault {
                since: i64::try_from(it.initial_time)
                    .map(|ticks| times.at(ticks))
                    .ok()
                    .filter(|since| *since >= times.start()),
                bytes: it.size,
                file: files.of(it.file_object.0, None),
            },
            _ => return None,
        })
    }
}

/// Threads that are in a call.
#[derive(Debug, Default)]
pub(super) struct Calls {
    within: HashMap<Tid, (Nanos, u64)>,
    left_out: u64,
}

impl Calls {
    pub(super) fn take(&mut self, call: &Call, row: &Row, sink: &mut Sink<'_>) {
        match *call {
            Call::Enter { address } => {
                let Some(tid) = row.whose.tid else { return };
                if self.within.len() < MOST || self.within.contains_key(&tid) {
                    self.within.insert(tid, (row.at, address));
                } else {
                    self.left_out += 1;
                }
            }
            Call::Exit { status } => {
                let Some((since, address)) = row.whose.tid.and_then(|tid| self.within.remove(&tid)) else {
                    return;
                };
                let failed = error(status);
                let attributes = sink.attributes(&[
                    (CALL, Said::Number(address.cast_signed())),
                    ("error", Said::Text(&failed)),
                ]);
                let value = value(Nanos(row.at.0.saturating_sub(since.0)));
                sink.sample(("syscalls", Unit::Nanoseconds), &Row { value, attributes, ..*row });
            }
            Call::Begin(tid) => drop(self.within.remove(&tid)),
            Call::MinorFault(kind) => {
                let attributes = sink.attributes(&[("kind", Said::Text(kind))]);
                sink.sample(("minor-faults", Unit::Count), &Row { value: 1, attributes, ..*row });
            }
            Call::MajorFault { since, bytes, file } => {
                let file = file.map(|file| (PATH, Said::Number(file.0.into())));
                let list: Vec<_> = file.into_iter().chain([("bytes", Said::Number(bytes.into()))]).collect();
                let attributes = sink.attributes(&list);
                sink.sample(("major-faults", Unit::Count), &Row { value: 1, attributes, ..*row });
                let took = since.and_then(|since| row.at.0.checked_sub(since.0));
                if let Some(took) = took {
                    let value = value(Nanos(took));
                    sink.sample(("fault_wait", Unit::Nanoseconds), &Row { value, attributes, ..*row });
                }
            }
        }
    }

    /// Events were lost: a call that is left may be another one than was entered.
    pub(super) fn lose(&mut self) {
        // To empty one that was large takes long, each time.
        self.within = HashMap::new();
    }

    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
    }
}
