//! Places in the maps of the programs at allocators' functions, for what is counted of a program and for its blocks that are not freed.
//! They are given up when the process has ended, or has executed another program: so there is room for others however long it is
//! recorded.
//!
//! In: which programs are counted, ends of processes, and the blocks that these have left, or that nobody follows. Out: what was counted, by
//! program. A round gives up so many places at most, two or three calls of the kernel each, and never walks a map: further ones wait for the
//! next round.

use std::collections::VecDeque;
use std::io;

use aya::Ebpf;
use aya::maps::{HashMap, Map, MapData, MapError, PerCpuHashMap, PerCpuValues, Queue};
use collector_common::ids::{Nanos, Pid};
use collector_common::record::{Column, Table, Unit};
use collector_common::wire::{Allocating, AllocationCounts, Block, Counted};
use rustc_hash::FxHashMap;

use super::error::LoadError;
use crate::source::{Gone, LeftBlock};

/// Recorded blocks that are followed until they are freed.
const BLOCKS: u32 = 1 << 16;

/// Programs that are counted at a time.
const PROGRAMS: u32 = 1 << 12;

/// Blocks that are given up in a round: more than are recorded between two.
const BLOCKS_A_ROUND: usize = 1 << 13;

/// Programs that are given up in a round.
const PROGRAMS_A_ROUND: usize = 1 << 10;

/// Programs that a process executed one after the other, of which blocks may be left.
const MOST_OF_PROCESS: usize = 16;

/// Ended programs that have a row each in the table; of more, those that allocated most have.
const MOST_ROWS: usize = 1 << 14;

/// As the maps have them.
type BlockKey = [u64; size_of::<Block>() / 8];
type Key = [u64; size_of::<Allocating>() / 8];
type Words = [u64; size_of::<AllocationCounts>() / 8];
type CountedWords = [u64; size_of::<Counted>() / 8];

/// A program that is counted.
#[derive(Clone, Copy)]
struct Known {
    counted: Counted,
    /// Whether its process executes another one.
    is_over: bool,
}

/// What is known of programs and blocks without the maps.
#[derive(Default)]
struct Books {
    /// By pid, in the order in which they were executed.
    known: FxHashMap<u32, Vec<Known>>,
    /// What is to be given up, blocks with when they were allocated.
    blocks: VecDeque<(Block, Nanos)>,
    programs: VecDeque<Allocating>,
}

impl Books {
    /// A program is counted. Those that its process executed before are over.
    fn add(&mut self, counted: Counted) {
        let of_process = self.known.entry(counted.allocating.pid).or_default();
        for earlier in of_process.iter_mut() {
            if !std::mem::replace(&mut earlier.is_over, true) {
                self.programs.push_back(earlier.counted.allocating);
            }
        }
        if of_process.len() == MOST_OF_PROCESS {
            of_process.remove(0);
        }
        of_process.push(Known { counted, is_over: false });
    }

    /// A block is left. It is of the last program that was counted by then.
    fn leave(&mut self, left: &LeftBlock) {
        let of_process = self.known.get(&left.pid.0).map_or(&[][..], Vec::as_slice);
        if let Some(known) = of_process.iter().rev().find(|known| known.counted.since <= left.since.0) {
            let Allocating { memory, pid, .. } = known.counted.allocating;
            let block = Block { memory, address: left.address, pid, reserved: 0 };
            self.blocks.push_back((block, left.since));
        }
    }

    /// A process has ended.
    fn end(&mut self, pid: Pid, time: Nanos) {
        let Some(of_process) = self.known.get_mut(&pid.0) else { return };
        of_process.retain(|known| {
            let has_ended = known.counted.since <= time.0;
            if has_ended && !known.is_over {
                self.programs.push_back(known.counted.allocating);
            }
            !has_ended
        });
        if of_process.is_empty() {
            self.known.remove(&pid.0);
        }
    }
}

/// The maps.
struct Maps {
    blocks: HashMap<MapData, BlockKey, u64>,
    allocated: PerCpuHashMap<MapData, Key, Words>,
    counted: Queue<MapData, CountedWords>,
}

/// What was counted of programs that have ended.
#[derive(Default)]
struct Ended {
    rows: Vec<(u32, AllocationCounts)>,
    /// Those without a row.
    others: u64,
    of_others: Option<AllocationCounts>,
}

impl Ended {
    fn add(&mut self, pid: u32, counts: AllocationCounts) {
        self.rows.push((pid, counts));
        if self.rows.len() == 2 * MOST_ROWS {
            self.rows.sort_by_key(|(pid, counts)| (std::cmp::Reverse(counts.bytes), *pid));
            for (_, counts) in self.rows.drain(MOST_ROWS..) {
                self.others += 1;
                add(self.of_others.get_or_insert_with(bytemuck::Zeroable::zeroed), &counts);
            }
        }
    }
}

/// The places.
#[derive(Default)]
pub(super) struct Places {
    /// Once they are loaded.
    maps: Option<Maps>,
    books: Books,
    ended: Ended,
}

impl Places {
    /// Entries of the maps.
    pub(super) fn map_sizes() -> [(&'static str, u32); 3] {
        [("BLOCKS", BLOCKS), ("ALLOCATED", PROGRAMS), ("COUNTED", PROGRAMS)]
    }

    /// Takes the maps, when all programs that use them are loaded.
    pub(super) fn load(&mut self, ebpf: &mut Ebpf) -> Result<(), LoadError> {
        fn taken<M: TryFrom<Map, Error = MapError>>(ebpf: &mut Ebpf, name: &str) -> Result<M, LoadError> {
            let map = ebpf.take_map(name).ok_or_else(|| LoadError::missing(format!("map {name}")))?;
            M::try_from(map)
                .map_err(|error| LoadError::step(format!("the map {name} could not be opened"), error))
        }
        let (blocks, allocated) = (taken(ebpf, "BLOCKS")?, taken(ebpf, "ALLOCATED")?);
        self.maps = Some(Maps { blocks, allocated, counted: taken(ebpf, "COUNTED")? });
        Ok(())
    }

    /// A round is over, after which nothing of what is gone will be told.
    pub(super) fn end_round(&mut self, gone: &Gone) {
        let Self { maps: Some(maps), books, ended } = self else { return };
        while let Ok(words) = maps.counted.pop(0) {
            books.add(bytemuck::cast(words));
        }
        gone.blocks.iter().for_each(|left| books.leave(left));
        gone.processes.iter().for_each(|&(pid, time)| books.end(pid, time));
        for (block, since) in books.blocks.drain(..books.blocks.len().min(BLOCKS_A_ROUND)) {
            let key: BlockKey = bytemuck::cast(block);
            // It may have been freed, by a child that shares the memory or a program that still runs, which may have a later one there.
            if maps.blocks.get(&key, 0).is_ok_and(|known| known == since.0) {
                let _ = maps.blocks.remove(&key);
            }
        }
        for program in books.programs.drain(..books.programs.len().min(PROGRAMS_A_ROUND)) {
            let key: Key = bytemuck::cast(program);
            if let Ok(cpus) = maps.allocated.get(&key, 0) {
                ended.add(program.pid, sum(&cpus));
                // Before Linux 5.10 the one that is given the place next finds there what is not its CPU's.
                if let Ok(none) = PerCpuValues::try_from(vec![Words::default(); cpus.len()]) {
                    let _ = maps.allocated.insert(key, none, 0);
                }
                let _ = maps.allocated.remove(&key);
            }
        }
    }

    /// What each program has allocated, those first that allocated most.
    ///
    /// # Errors
    /// When the kernel does not give what is in the map.
    pub(super) fn table(&self, seconds: f64) -> io::Result<Table> {
        let maps = self.maps.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let Ended { rows: ended, others, of_others } = &self.ended;
        let mut rows: Vec<_> = ended.iter().map(|(pid, counts)| row(*pid, counts, seconds)).collect();
        for entry in &maps.allocated {
            let (key, cpus) = entry.map_err(io::Error::other)?;
            let Allocating { pid, .. } = bytemuck::cast(key);
            rows.push(row(pid, &sum(&cpus), seconds));
        }
        rows.sort_by(|(one, a), (other, b)| b.get(1).cmp(&a.get(1)).then_with(|| one.cmp(other)));
        rows.extend(of_others.iter().map(|counts| (format!("{others} others"), numbers(counts, seconds))));
        let column = |name: &str, unit| Column { name: name.to_owned(), unit };
        let columns = vec![
            column("blocks", Unit::Count),
            column("allocated", Unit::Bytes),
            column("per second", Unit::Bytes),
            column("blocks freed", Unit::Count),
        ];
        Ok(Table { name: "native memory".to_owned(), columns, rows })
    }
}

/// Over all CPUs.
fn sum(cpus: &[Words]) -> AllocationCounts {
    let mut all: AllocationCounts = bytemuck::Zeroable::zeroed();
    for words in cpus {
        add(&mut all, &bytemuck::cast(*words));
    }
    all
}

fn add(all: &mut AllocationCounts, one: &AllocationCounts) {
    all.blocks += one.blocks;
    all.bytes = all.bytes.saturating_add(one.bytes);
    all.freed += one.freed;
    if one.comm[0] != 0 {
        all.comm = one.comm;
    }
}

fn row(pid: u32, counts: &AllocationCounts, seconds: f64) -> (String, Vec<u64>) {
    let name = counts.comm.split(|byte| *byte == 0).next().unwrap_or_default();
    (format!("{} ({pid})", String::from_utf8_lossy(name)), numbers(counts, seconds))
}

fn numbers(counts: &AllocationCounts, seconds: f64) -> Vec<u64> {
    let rate = if seconds > 0.0 { (counts.bytes as f64 / seconds).round() as u64 } else { 0 };
    vec![counts.blocks, counts.bytes, rate, counts.freed]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(pid: u32, memory: u64, since: u64) -> Counted {
        Counted { allocating: Allocating { memory, pid, reserved: 0 }, since }
    }

    fn left(pid: u32, address: u64, since: u64) -> LeftBlock {
        LeftBlock { pid: Pid(pid), address, since: Nanos(since) }
    }

    #[test]
    fn a_block_is_of_the_program_that_ran_when_it_was_allocated() {
        let mut books = Books::default();
        // A process executes another program, and its pid is another one's after it has ended.
        for counted in [counted(7, 0x10, 100), counted(7, 0x20, 200), counted(8, 0x30, 100)] {
            books.add(counted);
        }
        for left in [left(7, 1, 150), left(7, 2, 200), left(8, 3, 900), left(9, 4, 900), left(7, 5, 99)] {
            books.leave(&left);
        }
        let blocks: Vec<_> =
            books.blocks.iter().map(|(it, since)| (it.pid, it.memory, it.address, since.0)).collect();
        assert_eq!(blocks, [(7, 0x10, 1, 150), (7, 0x20, 2, 200), (8, 0x30, 3, 900)]);
        books.add(counted(7, 0x40, 500));
        books.end(Pid(7), Nanos(400));
        let given_up: Vec<_> = books.programs.iter().map(|it| it.memory).collect();
        assert_eq!(given_up, [0x10, 0x20], "each once, and not what came after the end");
        books.end(Pid(7), Nanos(600));
        assert_eq!(books.programs.back().unwrap().memory, 0x40);
        assert_eq!(books.known.len(), 1, "of ended processes nothing is left");
    }

    #[test]
    fn of_many_ended_programs_those_that_allocated_most_have_rows() {
        let mut ended = Ended::default();
        let counts = |bytes| AllocationCounts {
            blocks: 1,
            bytes,
            freed: 0,
            comm: *b"p\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        };
        let all = 5 * MOST_ROWS as u64;
        (0..all).for_each(|bytes| ended.add(bytes as u32, counts(bytes)));
        let of_rows: u64 = ended.rows.iter().map(|(_, counts)| counts.bytes).sum();
        let of_others = ended.of_others.unwrap();
        assert_eq!(of_rows + of_others.bytes, all * (all - 1) / 2);
        assert_eq!(ended.rows.len() as u64 + ended.others, all);
        assert_eq!(of_others.blocks, ended.others);
        let least = ended.rows.iter().map(|(_, counts)| counts.bytes).min().unwrap();
        assert!(least >= all - 2 * MOST_ROWS as u64, "{least}");
    }
}
