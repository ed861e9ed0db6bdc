//! Processes: made, executing, ended. In: records of programs at the kernel's tracepoints of that. Out: one row for each
//! process.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use aya::Ebpf;
use aya::maps::{MapData, RingBuf};
use collector_common::ids::{Nanos, Pid};
use collector_common::loss::{Ledger, LossCause};
use collector_common::record::Exit;
use collector_common::wire::{COMM_LEN, Counter, Life, LifeOffsets, VERSION};
use rustc_hash::FxHashMap;

use super::attached::Attached;
use super::btf::{BtfError, KernelTypes};
use super::error::LoadError;
use super::part::{Ended, Part};
use crate::source::{Account, ToldLife, ToldProgram};

/// The programs with their tracepoints.
const PROGRAMS: [(&str, &str); 3] = [
    ("process_forked", "sched_process_fork"),
    ("process_executed", "sched_process_exec"),
    ("process_ended", "sched_process_exit"),
];

/// The ring.
const RING: &str = "LIVES";

/// Bytes of the ring: some hundred executed programs between two rounds.
const RING_BYTES: u32 = 1 << 20;

/// Processes that are kept at most. With arguments they take 2 KiB each at the worst.
const MOST: usize = 8192;

/// The programs.
pub(super) struct Lives {
    programs: Attached,
    /// Once they are loaded.
    ring: Option<RingBuf<MapData>>,
    rows: Rows,
}

impl Lives {
    pub(super) fn new() -> Self {
        Self { programs: Attached::new(&PROGRAMS), ring: None, rows: Rows::default() }
    }
}

impl Part for Lives {
    fn programs(&mut self) -> &mut Attached {
        &mut self.programs
    }

    fn globals(&self, types: &KernelTypes) -> Result<Vec<(&'static str, Vec<u8>)>, BtfError> {
        Ok(vec![("LIFE_OFFSETS", bytemuck::bytes_of(&offsets(types)?).to_vec())])
    }

    fn map_sizes(&self) -> Vec<(&'static str, u32)> {
        vec![(RING, RING_BYTES)]
    }

    fn loaded(&mut self, ebpf: &mut Ebpf) -> Result<(), LoadError> {
        let step = |error| LoadError::step("the ring of processes (LIVES) could not be opened", error);
        let map = ebpf.take_map(RING).ok_or_else(|| LoadError::missing("map LIVES"))?;
        self.ring = Some(RingBuf::try_from(map).map_err(step)?);
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.ring.as_ref().map(|ring| ring.as_fd())
    }

    fn drain_own(&mut self) {
        while let Some(record) = self.ring.as_mut().and_then(RingBuf::next) {
            self.rows.take(&record);
        }
    }

    /// All processes, in the order in which they were made.
    fn close(&mut self, ended: &Ended<'_>, ledger: &mut Ledger, account: &mut Account) -> io::Result<()> {
        let Rows { mut lives, left_out, malformed, .. } = std::mem::take(&mut self.rows);
        ledger.lose(LossCause::Malformed, malformed);
        lives.sort_by_key(|life| life.start);
        account.lives.extend(lives);
        account.warnings.extend([
            (
                ended.counted.counter(Counter::LivesLost),
                "starts, executions and ends of processes were lost: more than the ring has room for",
            ),
            (left_out, "starts, executions and ends are of processes that the table had no room for"),
        ]);
        Ok(())
    }
}

/// Offsets that the programs need.
fn offsets(types: &KernelTypes) -> Result<LifeOffsets, BtfError> {
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
    lives: Vec<ToldLife>,
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
                self.lives.push(ToldLife {
                    pid: Pid(life.pid),
                    name: String::new(),
                    parent: Pid(life.parent),
                    parent_name: name(&life.parent_comm),
                    executed: None,
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
                known.executed = Some(ToldProgram {
                    time: Nanos(life.time),
                    arguments: arguments.into(),
                    are_cut: life.is_cut != 0,
                });
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
        assert_eq!(&*first.executed.as_ref().unwrap().arguments, b"sh\0-c\0\0");
        assert_eq!(first.end, Some((Nanos(9), Exit::Code(3))));
        assert_eq!((&second.executed, second.end), (&None, Some((Nanos(9), Exit::Signal(9)))));
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
