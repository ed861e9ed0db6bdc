//! Labels of a sample in; its thread, and the attributes that the rest becomes, out.
//!
//! What tells of processes and threads has different names by who wrote the file: ours are `pid`, `tid`, `comm` (the thread's name) and
//! `process`; `perf_to_profile` calls the process `comm` and the thread `thread_comm`; and others have names that say what they mean.

use std::collections::HashMap;

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::intern::{Seeded, StringId};
use collector_common::record::{AttributeListId, AttributeValue, ExportMachine, ProcessId, ThreadId};

use super::tables::Tables;
use crate::format::pprof::proto;
use crate::import::ImportError;

const PID: &[&str] = &["pid", "process_id", "process id", "process.pid"];
const TID: &[&str] = &["tid", "thread_id", "thread id", "thread.id"];
/// Of those that are there the first one counts.
const THREAD: &[&str] = &["thread_comm", "thread_name", "thread name", "thread.name", "thread", "comm"];
const PROCESS: &[&str] = &["process", "process_name", "process name", "process.executable.name", "comm"];

/// Threads and attributes so far.
#[derive(Debug)]
pub(super) struct Labels {
    processes: HashMap<(u32, StringId), ProcessId, Seeded>,
    list: Vec<(StringId, AttributeValue)>,
    /// The last of all distinct lists, and how many attributes these have.
    last: AttributeListId,
    attributes: usize,
}

/// The most attributes of all distinct lists of them, and the most threads.
const MOST_ATTRIBUTES: usize = 1 << 25;
const MOST_THREADS: usize = 1 << 22;

/// The longest name of what a number counts that is kept.
const LONGEST_UNIT: usize = 64;

/// The most digits of a number that is told as text.
const MOST_DIGITS: usize = 10;

/// What the labels of one sample tell.
#[derive(Debug, Default)]
struct Told {
    pid: Option<u32>,
    tid: Option<u32>,
    /// A string, with the position of its label's key among those that tell of it.
    thread: Option<(usize, i64)>,
    process: Option<(usize, i64)>,
}

impl Labels {
    /// The first process of a machine is that of samples without any such label.
    pub(super) fn new(machine: &ExportMachine, first: ProcessId) -> Self {
        let name = machine.process(first).name;
        let processes = [((0, name), first)].into_iter().collect();
        Self { processes, list: Vec::new(), last: AttributeListId::NONE, attributes: 0 }
    }

    /// The thread and the attributes of a sample.
    pub(super) fn take(
        &mut self,
        labels: &[proto::Label],
        tables: &mut Tables,
        machine: &mut ExportMachine,
    ) -> Result<(ThreadId, AttributeListId), ImportError> {
        let mut told = Told::default();
        for label in labels {
            told.take(tables.string(label.key)?, tables.string(label.str)?, label);
        }
        told.comm_is_one();
        self.list.clear();
        for label in labels {
            let is_nothing = (label.str, label.num, label.num_unit) == (0, 0, 0);
            if is_nothing || told.has(tables.string(label.key)?, label) {
                continue;
            }
            // Readers take the key for the unit where none is told.
            let has_unit = tables.string(label.num_unit)? != tables.string(label.key)?;
            let value = match (label.str, tables.string(label.num_unit)?) {
                (0, unit) if unit.is_empty() || !has_unit || unit.len() > LONGEST_UNIT => {
                    AttributeValue::Number(label.num)
                }
                (0, unit) => machine.intern_string(&format!("{} {unit}", label.num)).into(),
                (text, _) => tables.machine_string(machine, text)?.into(),
            };
            self.list.push((tables.machine_string(machine, label.key)?, value));
        }
        let attributes = machine.attributes_mut().intern(&self.list);
        if attributes > self.last {
            self.last = attributes;
            self.attributes += self.list.len();
        }
        let thread = self.thread(&told, tables, machine)?;
        let counted = [
            ("attributes", self.attributes, MOST_ATTRIBUTES),
            ("threads", machine.threads().len(), MOST_THREADS),
        ];
        if let Some((what, _, limit)) = counted.into_iter().find(|(_, count, limit)| count > limit) {
            return Err(ImportError::TooMuch { what, limit: limit as u64 });
        }
        Ok((thread, attributes))
    }

    fn thread(
        &mut self,
        told: &Told,
        tables: &mut Tables,
        machine: &mut ExportMachine,
    ) -> Result<ThreadId, ImportError> {
        let mut name = |known: Option<(usize, i64)>| match known {
            Some((_, string)) => tables.machine_string(machine, string),
            None => Ok(StringId::EMPTY),
        };
        let thread = name(told.thread)?;
        let process = name(told.process)?;
        let process = match (told.process, machine.processes().first()) {
            (None, Some(first)) if told.pid.is_none() => first.name,
            (None, _) if told.pid == told.tid => thread,
            _ => process,
        };
        let pid = told.pid.unwrap_or_default();
        let id = *self.processes.entry((pid, process)).or_insert_with(|| {
            let name = machine.string(process).to_owned();
            machine.add_process(Pid(pid), &name, None, Nanos(0))
        });
        Ok(machine.intern_thread(id, Tid(told.tid.unwrap_or_default()), thread))
    }
}

impl Told {
    fn take(&mut self, key: &str, text: &str, label: &proto::Label) {
        let number = || match text {
            "" => u32::try_from(label.num).ok(),
            text if text.len() <= MOST_DIGITS => text.parse().ok(),
            _ => None,
        };
        if PID.contains(&key) {
            self.pid = self.pid.or_else(number);
        } else if TID.contains(&key) {
            self.tid = self.tid.or_else(number);
        }
        for (names, known) in [(THREAD, &mut self.thread), (PROCESS, &mut self.process)] {
            let rank = names.iter().position(|name| *name == key).filter(|_| !text.is_empty());
            if let Some(rank) = rank
                && known.is_none_or(|(best, _)| rank < best)
            {
                *known = Some((rank, label.str));
            }
        }
    }

    /// `comm` names the thread unless another label does.
    fn comm_is_one(&mut self) {
        let is_comm = |known: Option<(usize, i64)>, names: &[&str]| {
            known.is_some_and(|(rank, _)| names.get(rank) == Some(&"comm"))
        };
        if is_comm(self.thread, THREAD) && is_comm(self.process, PROCESS) {
            self.process = None;
        }
    }

    /// Whether a label has been taken for what it tells.
    fn has(&self, key: &str, label: &proto::Label) -> bool {
        let is = |known: Option<(usize, i64)>, names: &[&str]| {
            known.is_some_and(|(rank, string)| names.get(rank) == Some(&key) && string == label.str)
        };
        let of_number = |names: &[&str], known: Option<u32>| names.contains(&key) && known.is_some();
        of_number(PID, self.pid)
            || of_number(TID, self.tid)
            || is(self.thread, THREAD)
            || is(self.process, PROCESS)
    }
}
