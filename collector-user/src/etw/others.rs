//! Processes that are asked for in, and events as they come; out whether one may be of them.
//!
//! Who is meant is decided when all lives are known ([`super::families`]). Until then events are kept within a limit, which those of processes that
//! can't be meant are not to use up: of these it is known that they are there, and that neither they nor those that made them are asked for, or that
//! they are called otherwise.

use std::collections::{HashMap, HashSet};

use collector_common::ids::{Pid, Tid};
use collector_common::intern::Seeded;
use windows_etw::decode::kernel::{KernelEvent, Process};

use super::families::{Asked, is_called};
use super::whose::Whose;

/// What is known of processes up to now.
#[derive(Debug)]
pub(super) struct Others {
    /// Whether any are asked for by number; without, all may be meant but for their names.
    is_by_number: bool,
    /// Those that may be meant, by number.
    meant: HashSet<Pid, Seeded>,
    /// Those that were told of.
    known: HashSet<Pid, Seeded>,
    /// Numbers of which the last process is meant: which one that is, nobody knows yet.
    started: HashSet<Pid, Seeded>,
    children: HashMap<Pid, Vec<Pid>, Seeded>,
    threads: HashMap<Tid, Pid, Seeded>,
    /// What those are called that are asked for.
    comm: Option<Box<str>>,
    /// Those that are called otherwise.
    otherwise: HashSet<Pid, Seeded>,
}

impl Others {
    /// None where all processes are asked for.
    pub(super) fn than(asked: &[Asked], comm: Option<&str>) -> Option<Self> {
        let number = |asked: &Asked| match *asked {
            Asked::Running(pid) | Asked::Started(pid) => pid,
        };
        let started = asked.iter().filter(|asked| matches!(asked, Asked::Started(_)));
        (!asked.is_empty() || comm.is_some()).then(|| Self {
            is_by_number: !asked.is_empty(),
            meant: asked.iter().map(number).collect(),
            known: HashSet::default(),
            started: started.map(number).collect(),
            children: HashMap::default(),
            threads: HashMap::default(),
            comm: comm.map(Box::from),
            otherwise: HashSet::default(),
        })
    }

    /// Takes an event; those that tell nothing of lives are passed over.
    pub(super) fn take(&mut self, event: &KernelEvent<'_>) {
        match event {
            KernelEvent::ProcessStart(process) => {
                let pid = process.pid.0;
                // Another had the number, and made what was made by it up to now, be it one that ended before the recording.
                self.children.remove(&pid);
                if self.known.contains(&pid) && !self.started.contains(&pid) {
                    self.meant.remove(&pid);
                }
                self.add(process);
            }
            KernelEvent::ProcessDcStart(process) => self.add(process),
            KernelEvent::ThreadStart(thread) | KernelEvent::ThreadDcStart(thread) => {
                self.threads.insert(thread.tid, thread.pid);
            }
            KernelEvent::ThreadStop(thread) => {
                self.threads.remove(&thread.tid);
            }
            _ => {}
        }
    }

    /// Whether it can't be of one that is meant.
    pub(super) fn has(&self, whose: Whose) -> bool {
        let of_thread = |tid: Tid| self.threads.get(&tid).copied().or((tid == Tid(0)).then_some(Pid(0)));
        let pid = whose.pid.or_else(|| whose.tid.and_then(of_thread));
        let is_unasked =
            |pid: Pid| self.is_by_number && self.known.contains(&pid) && !self.meant.contains(&pid);
        pid.is_some_and(|pid| is_unasked(pid) || self.otherwise.contains(&pid))
    }

    fn add(&mut self, process: &Process<'_>) {
        let (pid, parent) = (process.pid.0, process.parent.0);
        if let Some(comm) = &self.comm {
            let image = process.image.to_string();
            // One without a name may be told of with it later.
            if image.is_empty() || is_called(&image, comm) {
                self.otherwise.remove(&pid);
            } else {
                self.otherwise.insert(pid);
            }
        }
        self.known.insert(pid);
        self.children.entry(parent).or_default().push(pid);
        if !self.meant.contains(&parent) {
            return;
        }
        // Lists name parents before their children, or behind them.
        let mut new = vec![pid];
        while let Some(pid) = new.pop() {
            if self.meant.insert(pid) {
                new.extend(self.children.get(&pid).into_iter().flatten());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use collector_common::event::Guid;
    use windows_etw::decode::kernel::{PROCESS, THREAD};
    use windows_etw::record::{Descriptor, EtwRecord, Extended, PointerSize, Schema};

    use super::*;

    const START: u8 = 1;
    const STOP: u8 = 2;
    const THERE: u8 = 3;

    fn take(others: &mut Others, provider: Guid, opcode: u8, numbers: [u32; 2]) {
        take_called(others, provider, opcode, numbers, "");
    }

    /// Microsoft's `Process_V2_TypeGroup1` begins with a pointer, the process and its parent, and has the name behind session, status and an empty
    /// `Sid`; `Thread_V2_TypeGroup1` begins with the process and the thread.
    fn take_called(others: &mut Others, provider: Guid, opcode: u8, numbers: [u32; 2], image: &str) {
        let mut payload = if provider == PROCESS { vec![0; 8] } else { Vec::new() };
        payload.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        payload.resize(payload.len() + 12, 0);
        payload.extend_from_slice(image.as_bytes());
        payload.resize(payload.len() + 80, 0);
        let event = KernelEvent::decode(&EtwRecord {
            provider,
            descriptor: Descriptor { opcode, version: 2, ..Descriptor::default() },
            schema: Schema::Classic,
            pointer_size: PointerSize::Bits64,
            pid: None,
            tid: None,
            cpu: 0,
            ticks: 0,
            activity: Guid([0; 16]),
            extended: Extended::default(),
            payload: &payload,
        });
        others.take(&event.unwrap().unwrap());
    }

    fn are(others: &Others, pids: &[u32]) -> Vec<u32> {
        let is = |pid: &u32| others.has(Whose { pid: Some(Pid(*pid)), tid: None });
        pids.iter().copied().filter(is).collect()
    }

    #[test]
    fn they_are_those_that_neither_are_asked_for_nor_made_by_such() {
        assert!(Others::than(&[], None).is_none());
        let mut others = Others::than(&[Asked::Running(Pid(8))], None).unwrap();
        let all = [4, 8, 9, 10, 11, 12];
        assert!(are(&others, &all).is_empty());
        // A list with a child's child before its parent.
        for numbers in [[4, 0], [10, 9], [9, 8], [8, 4], [11, 4]] {
            take(&mut others, PROCESS, THERE, numbers);
        }
        assert_eq!(are(&others, &all), [4, 11]);
        take(&mut others, PROCESS, START, [12, 10]);
        assert_eq!(are(&others, &all), [4, 11]);
        // Its number is another's now, who makes one; what it made goes on.
        take(&mut others, PROCESS, START, [8, 4]);
        take(&mut others, PROCESS, START, [11, 8]);
        assert_eq!(are(&others, &all), [4, 8, 11]);
    }

    #[test]
    fn those_whose_makers_number_is_used_again_are_not_of_that_one() {
        let mut others = Others::than(&[Asked::Started(Pid(5000))], None).unwrap();
        for numbers in [[100, 5000], [120, 100], [90, 4], [91, 77]] {
            take(&mut others, PROCESS, THERE, numbers);
        }
        // The last one of that number may be meant, but not what was there before it.
        take(&mut others, PROCESS, START, [5000, 90]);
        take(&mut others, PROCESS, START, [77, 5000]);
        assert_eq!(are(&others, &[91, 77, 5000]), [91]);
        take(&mut others, PROCESS, THERE, [77, 5000]);
        assert_eq!(are(&others, &[91, 77]), [91]);
    }

    #[test]
    fn of_a_number_that_was_given_to_the_command_all_may_be_meant() {
        let mut others = Others::than(&[Asked::Started(Pid(8))], None).unwrap();
        take(&mut others, PROCESS, THERE, [8, 4]);
        take(&mut others, PROCESS, START, [8, 4]);
        take(&mut others, PROCESS, START, [9, 8]);
        take(&mut others, PROCESS, START, [10, 4]);
        assert_eq!(are(&others, &[8, 9, 10]), [10]);
    }

    #[test]
    fn those_that_are_called_otherwise_are_others() {
        let take = |others: &mut Others, opcode, numbers, image| {
            take_called(others, PROCESS, opcode, numbers, image);
        };
        let all = [4, 8, 9, 10, 77];
        let mut others = Others::than(&[], Some("Make.exe")).unwrap();
        take(&mut others, THERE, [4, 0], "shell.exe");
        take(&mut others, THERE, [8, 4], "make.exe");
        take(&mut others, THERE, [9, 8], "cc.exe");
        take(&mut others, THERE, [10, 4], "");
        // Of 77 nothing is known, and of 10 no name.
        assert_eq!(are(&others, &all), [4, 9]);
        take(&mut others, START, [9, 8], "MAKE.EXE");
        take(&mut others, START, [8, 4], "cc.exe");
        assert_eq!(are(&others, &all), [4, 8]);

        let mut others = Others::than(&[Asked::Running(Pid(8))], Some("make.exe")).unwrap();
        take(&mut others, THERE, [8, 4], "make.exe");
        take(&mut others, THERE, [9, 8], "cc.exe");
        take(&mut others, THERE, [10, 4], "make.exe");
        assert_eq!(are(&others, &all), [9, 10]);
    }

    #[test]
    fn a_thread_is_its_processs_until_it_ends() {
        let mut others = Others::than(&[Asked::Running(Pid(8))], None).unwrap();
        take(&mut others, PROCESS, THERE, [4, 0]);
        let has = |others: &Others, tid| others.has(Whose { pid: None, tid: Some(Tid(tid)) });
        take(&mut others, THREAD, START, [4, 77]);
        assert!(has(&others, 77) && !has(&others, 78) && !others.has(Whose::default()));
        take(&mut others, THREAD, STOP, [4, 77]);
        assert!(!has(&others, 77));
        take(&mut others, PROCESS, THERE, [0, 0]);
        assert!(has(&others, 0), "idle");
    }
}
