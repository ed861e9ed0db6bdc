//! Processes: made, executing, ended. In: records of programs at the kernel's tracepoints of that. Out: one row for each
//! process.

use std::os::fd::{AsFd as _, BorrowedFd};

use aya::Ebpf;
use aya::maps::{Map, MapData, RingBuf};
use collector_common::ids::{Nanos, Pid};
use collector_common::record::{Exit, ProcessLife};
use collector_common::wire::{COMM_LEN, Life, LifeOffsets, VERSION};
use rustc_hash::FxHashMap;

use super::attached::Attached;
use super::btf::{BtfError, KernelTypes};
use super::load::LoadError;

/// The programs with their tracepoints.
pub(super) const PROGRAMS: [(&str, &str); 3] = [
    ("process_forked", "sched_process_fork"),
    ("process_executed", "sched_process_exec"),
    ("process_ended", "sched_process_exit"),
];

/// Bytes of the ring: some hundred executed programs between two rounds.
pub(super) const RING_BYTES: u32 = 1 << 20;

/// Processes that are kept at most. With arguments they take 2 KiB each at the worst.
const MOST: usize = 8192;

/// Loaded programs.
pub(super) struct Lives {
    /// The programs, once they are loaded.
    pub(super) programs: Attached,
    ring: RingBuf<MapData>,
    rows: Rows,
}

impl Lives {
    /// Takes the ring out of the loaded object.
    pub(super) fn new(ebpf: &mut Ebpf) -> Result<Self, LoadError> {
        let map = ebpf.take_map("LIVES").ok_or_else(|| LoadError::step("map LIVES", "not in the object"))?;
        let Map::RingBuf(_) = map else { return Err(LoadError::step("map LIVES", "is no ring")) };
        let ring = RingBuf::try_from(map).map_err(|error| LoadError::step("map LIVES", error))?;
        Ok(Self { programs: Attached::new(&PROGRAMS), ring, rows: Rows::default() })
    }

    /// It becomes readable when the ring fills.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    /// Takes in what is in the ring.
    pub(super) fn drain(&mut self) {
        while let Some(record) = self.ring.next() {
            self.rows.take(&record);
        }
    }

    /// All processes, in the order in which they were made; how many there was no room for; and records that could not be
    /// read.
    pub(super) fn take(&mut self) -> (Vec<ProcessLife>, u64, u64) {
        let Rows { mut lives, left_out, malformed, .. } = std::mem::take(&mut self.rows);
        lives.sort_by_key(|life| life.start);
        (lives, left_out, malformed)
    }
}

/// Offsets that the programs need.
pub(super) fn offsets(types: &KernelTypes) -> Result<LifeOffsets, BtfError> {
    Ok(LifeOffsets {
        task_start_time: types.offset(&["task_struct", "start_time"])?,
        task_real_parent: types.offset(&["task_struct", "real_parent"])?,
        task_exit_code: types.offset(&["task_struct", "exit_code"])?,
        signal_live: types.offset(&["signal_struct", "live"])?,
        signal_flags: types.offset(&["signal_struct", "flags"])?,
        signal_group_exit_code: types.offset(&["signal_struct", "group_exit_code"])?,
        mm_arg_start: types.offset(&["mm_struct", "arg_start"])?,
        mm_arg_end: types.offset(&["mm_struct", "arg_end"])?,
    })
}

/// The processes that records told of.
#[derive(Default)]
struct Rows {
    lives: Vec<ProcessLife>,
    /// Positions by pid and the kernel's time of the start.
    positions: FxHashMap<(u32, u64), usize>,
    /// Starts, executions and ends of processes that there was no room for.
    left_out: u64,
    malformed: u64,
}

impl Rows {
    fn take(&mut self, record: &[u8]) {
        let parsed = record.split_at_checked(size_of::<Life>()).and_then(|(life, rest)| {
            let life: Life = bytemuck::try_pod_read_unaligned(life).ok()?;
            let arguments = rest.get(..life.argument_bytes as usize)?;
            (life.version == VERSION).then_some((life, arguments))
        });
        let Some((life, arguments)) = parsed else {
            self.malformed += 1;
            return;
        };
        let key = (life.pid, life.started);
        let position = match self.positions.get(&key) {
            Some(&position) => position,
            None if self.lives.len() >= MOST => {
                self.left_out += 1;
                return;
            }
            None => {
                self.lives.push(ProcessLife {
                    pid: Pid(life.pid),
                    name: String::new(),
                    parent: Pid(life.parent),
                    parent_name: name(&life.parent_comm),
                    arguments: Vec::new(),
                    are_cut: false,
                    start: Nanos(life.started),
                    end: None,
                });
                self.positions.insert(key, self.lives.len() - 1);
                self.lives.len() - 1
            }
        };
        let Some(known) = self.lives.get_mut(position) else { return };
        known.name = name(&life.comm);
        match life.kind {
            Life::EXECUTED => {
                let arguments = arguments.strip_suffix(&[0]).unwrap_or(arguments);
                let parts = arguments.split(|byte| *byte == 0);
                known.arguments = parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect();
                if arguments.is_empty() {
                    known.arguments.clear();
                }
                known.are_cut = life.is_cut != 0;
            }
            // The last two threads may both find themselves the last: the earlier one tells as much.
            Life::ENDED if known.end.is_none() => {
                known.end = Some((Nanos(life.time), Exit::of_status(life.status)));
            }
            _ => {}
        }
    }
}

fn name(comm: &[u8; COMM_LEN]) -> String {
    let name = comm.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u16, pid: u32, started: u64, status: u32, arguments: &[u8]) -> Vec<u8> {
        let life = Life {
            version: VERSION,
            kind,
            status,
            time: 9,
            started,
            pid,
            parent: 1,
            argument_bytes: arguments.len() as u32,
            is_cut: 0,
            comm: *b"sh\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            parent_comm: *b"init\0\0\0\0\0\0\0\0\0\0\0\0",
        };
        [bytemuck::bytes_of(&life), arguments].concat()
    }

    #[test]
    fn a_pid_that_is_used_again_is_another_process() {
        let mut rows = Rows::default();
        rows.take(&record(Life::FORKED, 7, 1, 0, b""));
        rows.take(&record(Life::EXECUTED, 7, 1, 0, b"sh\0-c\0\0"));
        rows.take(&record(Life::ENDED, 7, 1, 0x300, b""));
        rows.take(&record(Life::FORKED, 7, 5, 0, b""));
        rows.take(&record(Life::ENDED, 7, 5, 9, b""));
        rows.take(&record(Life::ENDED, 7, 5, 0, b""));
        let [first, second] = &rows.lives[..] else { panic!("{:?}", rows.lives) };
        assert_eq!(first.arguments, ["sh", "-c", ""]);
        assert_eq!(first.end, Some((Nanos(9), Exit::Code(3))));
        assert_eq!((second.arguments.len(), second.end), (0, Some((Nanos(9), Exit::Signal(9)))));
    }

    #[test]
    fn noise_is_counted_and_what_is_too_much_left_out() {
        let mut rows = Rows::default();
        rows.take(b"noise");
        let mut cut = record(Life::EXECUTED, 1, 1, 0, b"sh\0");
        cut.pop();
        rows.take(&cut);
        assert_eq!((rows.malformed, rows.lives.len()), (2, 0));
        for pid in 0..=MOST as u32 {
            rows.take(&record(Life::FORKED, pid, 1, 0, b""));
        }
        assert_eq!((rows.left_out, rows.lives.len()), (1, MOST));
    }
}
