//! The programs at the functions of memory allocators: attached to each file with an allocator that is mapped while it is
//! recorded; and what was counted of each process.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::time::Instant;

use aya::Ebpf;
use aya::maps::PerCpuHashMap;
use aya::programs::UProbe;
use aya::programs::uprobe::{UProbeAttachLocation, UProbeLinkId, UProbeScope};
use collector_common::loss::{Ledger, LossCause};
use collector_common::record::{Column, Table, Unit};
use collector_common::wire::{
    Allocating, AllocationCounts, AllocatorCall, Counter, SampleFlags, SampleHeader,
};
use rustix::fs::fstat;

use super::attached::Attached;
use super::error::LoadError;
use super::links::Links;
use super::load::{self, Level};
use super::multi_probe::MultiProbe;
use super::object::object;
use super::part::{Ended, Part};
use crate::probe::allocators::{AllocatorFunction, Shape, functions_of};
use crate::source::{Account, EventIndex, NewFile};
use crate::sys::bpf_program::Functions;

/// Threads that can be in an allocator at a time; those that were there last are known.
const THREADS: u32 = 1 << 14;

/// Recorded blocks that are followed until they are freed.
const BLOCKS: u32 = 1 << 16;

/// Programs that are counted.
const PROCESSES: u32 = 1 << 12;

/// The one program for all functions.
const ONE: &str = "allocator_call";

/// A program as the map has it.
type Key = [u64; size_of::<Allocating>() / 8];

/// What is counted of it.
type Words = [u64; size_of::<AllocationCounts>() / 8];

/// Which program is at the begin of a function.
const fn program_at(function: &AllocatorFunction) -> &'static str {
    match function.shape {
        Shape::Allocates => "asks",
        Shape::AllocatesMany => "asks_for_many",
        Shape::AllocatesManyInHeap => "asks_for_many_in_heap",
        Shape::AllocatesAligned => "asks_for_aligned",
        Shape::AllocatesInto => "asks_for_pointer",
        Shape::Reallocates => "asks_for_other",
        Shape::ReallocatesMany => "asks_for_many_others",
        Shape::ReallocatesInHeap => "asks_for_other_in_heap",
        Shape::ReallocatesManyInHeap => "asks_for_many_others_in_heap",
        Shape::Frees if function.nests => "frees_by_another",
        Shape::Frees => "frees",
    }
}

/// What the one program for all functions is told of one.
const fn cookie(function: &AllocatorFunction) -> u64 {
    let shape = match function.shape {
        Shape::Allocates => AllocatorCall::ALLOCATES,
        Shape::AllocatesMany => AllocatorCall::ALLOCATES_MANY,
        Shape::AllocatesManyInHeap => AllocatorCall::ALLOCATES_MANY_IN_HEAP,
        Shape::AllocatesAligned => AllocatorCall::ALLOCATES_ALIGNED,
        Shape::AllocatesInto => AllocatorCall::ALLOCATES_INTO,
        Shape::Reallocates => AllocatorCall::REALLOCATES,
        Shape::ReallocatesMany => AllocatorCall::REALLOCATES_MANY,
        Shape::ReallocatesInHeap => AllocatorCall::REALLOCATES_IN_HEAP,
        Shape::ReallocatesManyInHeap => AllocatorCall::REALLOCATES_MANY_IN_HEAP,
        Shape::Frees => AllocatorCall::FREES,
    };
    if function.nests { shape | AllocatorCall::NESTS } else { shape }
}

/// The programs at the begin of functions.
const AT_BEGIN: [&str; 11] = [
    "asks",
    "asks_for_many",
    "asks_for_many_in_heap",
    "asks_for_aligned",
    "asks_for_pointer",
    "asks_for_other",
    "asks_for_many_others",
    "asks_for_other_in_heap",
    "asks_for_many_others_in_heap",
    "frees",
    "frees_by_another",
];

/// What is at the functions.
enum Programs {
    /// One program for all of them, and where it is attached.
    One(MultiProbe, Links),
    /// One for each shape, with where they are attached.
    ByShape(Vec<(&'static str, UProbeLinkId)>),
}

/// The programs.
pub(super) struct Allocations {
    event: EventIndex,
    /// There are none at tracepoints.
    at_tracepoints: Attached,
    level: Level,
    programs: Programs,
    /// Files that were looked at, by device and inode.
    known: BTreeSet<(u64, u64)>,
    /// Functions that could not be probed.
    failed: u64,
    /// Files with allocators that a program may have called before they were probed.
    late: u64,
    started: Option<Instant>,
    seconds: f64,
    /// Records of allocated blocks, taken out of the rings.
    taken: u64,
}

impl Allocations {
    /// `event` is the number of their records.
    pub(super) fn new(event: EventIndex, level: Level) -> Self {
        Self {
            event,
            at_tracepoints: Attached::new(&[]),
            level,
            programs: Programs::ByShape(Vec::new()),
            known: BTreeSet::new(),
            failed: 0,
            late: 0,
            started: None,
            seconds: 0.0,
            taken: 0,
        }
    }

    /// The programs by shape, and the one at returns.
    fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        AT_BEGIN.into_iter().chain([self.level.gets])
    }

    /// Probes functions of a file. Gives how many can't be.
    fn attach(&mut self, ebpf: &mut Ebpf, file: &File, functions: &[AllocatorFunction]) -> usize {
        match &mut self.programs {
            Programs::One(program, links) => {
                let asked: Vec<_> = functions.iter().map(|it| (it.offset, cookie(it))).collect();
                match program.attach_to_file(file, &asked) {
                    Ok(link) => links.0.push(link),
                    Err(error) => {
                        log::info!("functions of an allocator can't be probed: {error}");
                        return functions.len();
                    }
                }
                0
            }
            Programs::ByShape(links) => {
                let at_return = self.level.gets;
                let mut attach = |name, offset| {
                    let attached = attach_one(ebpf, name, file, offset);
                    if let Err(error) = &attached {
                        log::info!("the function at {offset:#x} can't be probed: {error}");
                    }
                    attached.map(|link| links.push((name, link))).is_ok()
                };
                // The return first: no begin is met whose end is not.
                let mut is_probed = |function: &&AllocatorFunction| {
                    let frees_itself = function.shape == Shape::Frees && !function.nests;
                    (frees_itself || attach(at_return, function.offset))
                        && attach(program_at(function), function.offset)
                };
                functions.iter().filter(|function| !is_probed(function)).count()
            }
        }
    }
}

fn attach_one(
    ebpf: &mut Ebpf,
    name: &'static str,
    file: &File,
    offset: u64,
) -> Result<UProbeLinkId, LoadError> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let location = UProbeAttachLocation::AbsoluteOffset(offset);
    let attached = load::program::<UProbe>(ebpf, name)?.attach(location, path, UProbeScope::AllProcesses);
    attached.map_err(|error| LoadError::step(format!("program {name} could not be attached"), error))
}

impl Part for Allocations {
    fn programs(&mut self) -> &mut Attached {
        &mut self.at_tracepoints
    }

    fn map_sizes(&self) -> Vec<(&'static str, u32)> {
        vec![("ASKED", THREADS), ("BLOCKS", BLOCKS), ("ALLOCATED", PROCESSES)]
    }

    fn loaded(&mut self, ebpf: &mut Ebpf) -> Result<(), LoadError> {
        if let Some(object) = object().filter(|_| self.level.has_uprobe_session()) {
            let program = MultiProbe::load(ebpf, object, Functions::File, ONE)?;
            self.programs = Programs::One(program, Links::default());
            return Ok(());
        }
        self.names().try_for_each(|name| {
            let program = load::program::<UProbe>(ebpf, name)?;
            program.load().map_err(|error| load::refused(name, error))
        })
    }

    fn files_mapped(&mut self, ebpf: &mut Ebpf, files: &[NewFile]) {
        let mut is_new =
            |file: &File| fstat(file).is_ok_and(|status| self.known.insert((status.st_dev, status.st_ino)));
        // All are read before the first is probed: this process allocates for that, too.
        let new = files.iter().filter(|new| is_new(&new.file));
        let found: Vec<_> = new.map(|new| (new, functions_of(&new.file))).collect();
        self.started.get_or_insert_with(Instant::now);
        for (new, functions) in found.iter().filter(|(_, functions)| !functions.is_empty()) {
            self.failed += self.attach(ebpf, &new.file, functions) as u64;
            self.late += u64::from(new.is_late);
        }
    }

    fn stopped(&mut self, ebpf: &mut Ebpf) -> io::Result<()> {
        self.seconds = self.started.map_or(0.0, |started| started.elapsed().as_secs_f64());
        match &mut self.programs {
            Programs::One(_, links) => drop(std::mem::take(links)),
            Programs::ByShape(links) => {
                for (name, link) in links.drain(..) {
                    let program = load::program::<UProbe>(ebpf, name).map_err(io::Error::other)?;
                    program.detach(link).map_err(io::Error::other)?;
                }
            }
        }
        Ok(())
    }

    fn event_of(&mut self, header: &SampleHeader) -> Option<EventIndex> {
        if !header.flags().has(SampleFlags::ALLOCATION) {
            return None;
        }
        self.taken += u64::from(!header.flags().has(SampleFlags::BACK));
        Some(self.event)
    }

    fn lost(&self) -> &'static [Counter] {
        &[Counter::AllocationsLost]
    }

    fn cost(&mut self, ebpf: &mut Ebpf) -> [u64; 2] {
        if let Programs::One(program, _) = &self.programs {
            return program.cost();
        }
        let mut cost = [0; 2];
        for name in self.names() {
            let program = load::program::<UProbe>(ebpf, name).ok();
            if let Some(info) = program.and_then(|program| program.info().ok()) {
                cost[0] += info.run_time().as_nanos() as u64;
                cost[1] += info.run_count();
            }
        }
        cost
    }

    fn close(&mut self, ended: &Ended<'_>, ledger: &mut Ledger, account: &mut Account) -> io::Result<()> {
        let counter = |counter| ended.counted.counter(counter);
        ledger.lose(LossCause::RingFull, counter(Counter::AllocationsLost));
        let recorded = counter(Counter::AllocationsRecorded);
        ledger.lose(LossCause::Unaccounted, recorded.saturating_sub(self.taken));
        account.tables.push(table(ended.ebpf, self.seconds)?);
        account.warnings.extend([
            (self.failed, "functions of allocators could not be probed: what they allocate is missing"),
            (
                self.late,
                "files with allocators were probed when a program had them mapped already: what it allocated by them in its first \
                 milliseconds may be missing",
            ),
            (counter(Counter::FreedLost), "freed blocks of memory were lost: they are taken for not freed"),
            (
                counter(Counter::BlocksFull),
                "recorded blocks of memory are not among those that are not freed: too many",
            ),
            (counter(Counter::AllocatedFull), "blocks of memory were not counted: too many programs"),
        ]);
        Ok(())
    }
}

/// What each program has allocated, those first that allocated most.
fn table(ebpf: &Ebpf, seconds: f64) -> io::Result<Table> {
    let map = ebpf.map("ALLOCATED").ok_or(io::ErrorKind::NotFound)?;
    let map: PerCpuHashMap<_, Key, Words> = PerCpuHashMap::try_from(map).map_err(io::Error::other)?;
    let mut rows = Vec::new();
    for entry in &map {
        let (key, cpus) = entry.map_err(io::Error::other)?;
        let Allocating { pid, .. } = bytemuck::cast(key);
        let mut all: AllocationCounts = bytemuck::Zeroable::zeroed();
        cpus.iter().for_each(|words| add(&mut all, &bytemuck::cast(*words)));
        rows.push(row(pid, &all, seconds));
    }
    rows.sort_by(|(one, a), (other, b)| b.get(1).cmp(&a.get(1)).then_with(|| one.cmp(other)));
    let column = |name: &str, unit| Column { name: name.to_owned(), unit };
    let columns = vec![
        column("blocks", Unit::Count),
        column("allocated", Unit::Bytes),
        column("per second", Unit::Bytes),
        column("blocks freed", Unit::Count),
    ];
    Ok(Table { name: "native memory".to_owned(), columns, rows })
}

fn add(all: &mut AllocationCounts, one: &AllocationCounts) {
    all.blocks += one.blocks;
    all.bytes += one.bytes;
    all.freed += one.freed;
    if one.comm[0] != 0 {
        all.comm = one.comm;
    }
}

fn row(pid: u32, counts: &AllocationCounts, seconds: f64) -> (String, Vec<u64>) {
    let name = counts.comm.split(|byte| *byte == 0).next().unwrap_or_default();
    let rate = if seconds > 0.0 { (counts.bytes as f64 / seconds).round() as u64 } else { 0 };
    let label = format!("{} ({pid})", String::from_utf8_lossy(name));
    (label, vec![counts.blocks, counts.bytes, rate, counts.freed])
}
