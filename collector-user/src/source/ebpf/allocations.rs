//! The programs at the functions of memory allocators: attached to each file with an allocator that is mapped while it is
//! recorded; and what was counted of each process.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::time::Instant;

use aya::Ebpf;
use aya::programs::UProbe;
use aya::programs::uprobe::{UProbeAttachLocation, UProbeLinkId, UProbeScope};
use collector_common::loss::{Ledger, LossCause};
use collector_common::wire::{AllocatorCall, Counter, SampleFlags, SampleHeader};
use rustix::fs::fstat;

use super::attached::Attached;
use super::error::LoadError;
use super::links::Links;
use super::load::{self, Level};
use super::multi_probe::MultiProbe;
use super::object::object;
use super::part::{Ended, Part};
use super::places::Places;
use crate::probe::allocators::{AllocatorFunction, Shape, functions_of};
use crate::source::remedy::remedy;
use crate::source::{Account, EventIndex, Gone, NewFile};
use crate::sys::bpf_program::Functions;

/// Threads that can be in an allocator at a time; those that were there last are known.
const THREADS: u32 = 1 << 14;

/// The one program for all functions.
const ONE: &str = "allocator_call";

/// Which program is at the begin of a function.
const fn program_at(function: &AllocatorFunction) -> &'static str {
    match function.shape {
        Shape::Allocates => "asks",
        Shape::AllocatesMany => "asks_for_many",
        Shape::AllocatesManyInHeap => "asks_for_many_in_heap",
        Shape::AllocatesAligned | Shape::AllocatesInHeap => "asks_for_aligned",
        Shape::AllocatesInto => "asks_for_pointer",
        Shape::Reallocates => "asks_for_other",
        Shape::ReallocatesMany => "asks_for_many_others",
        Shape::ReallocatesInHeap => "asks_for_other_in_heap",
        Shape::ReallocatesManyInHeap => "asks_for_many_others_in_heap",
        Shape::Frees if function.nests => "frees_by_another",
        Shape::Frees => "frees",
    }
}

/// What the one program for all functions is told of one, on a machine that has so many MiB to give.
const fn cookie(function: &AllocatorFunction, most: u64) -> u64 {
    let shape = match function.shape {
        Shape::Allocates => AllocatorCall::ALLOCATES,
        Shape::AllocatesMany => AllocatorCall::ALLOCATES_MANY,
        Shape::AllocatesManyInHeap => AllocatorCall::ALLOCATES_MANY_IN_HEAP,
        Shape::AllocatesAligned => AllocatorCall::ALLOCATES_ALIGNED,
        Shape::AllocatesInHeap => AllocatorCall::ALLOCATES_IN_HEAP,
        Shape::AllocatesInto => AllocatorCall::ALLOCATES_INTO,
        Shape::Reallocates => AllocatorCall::REALLOCATES,
        Shape::ReallocatesMany => AllocatorCall::REALLOCATES_MANY,
        Shape::ReallocatesInHeap => AllocatorCall::REALLOCATES_IN_HEAP,
        Shape::ReallocatesManyInHeap => AllocatorCall::REALLOCATES_MANY_IN_HEAP,
        Shape::Frees => AllocatorCall::FREES,
    };
    let nests = if function.nests { AllocatorCall::NESTS } else { 0 };
    let refuses = if function.refuses { AllocatorCall::REFUSES } else { 0 };
    let throws = if function.throws { AllocatorCall::THROWS } else { 0 };
    shape | nests | refuses | throws | most << AllocatorCall::MOST_SHIFT
}

/// The MiB that the kernel gives a process at once, at most.
fn most_given() -> u64 {
    let [policy, memory] = ["/proc/sys/vm/overcommit_memory", "/proc/meminfo"]
        .map(|path| fs::read_to_string(path).unwrap_or_default());
    most_by(policy.trim(), &memory)
}

/// The same by `vm.overcommit_memory` and `/proc/meminfo`: what the machine has, unless the kernel is to promise more, or so much and no
/// more for all processes together (`Documentation/mm/overcommit-accounting.rst`).
fn most_by(policy: &str, memory: &str) -> u64 {
    /// What a process has addresses for.
    const ADDRESSES: u64 = 1 << 27;
    let kib_of = |name: &str| -> Option<u64> {
        let line = memory.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    let most = match policy {
        "1" => None,
        "2" => kib_of("CommitLimit"),
        _ => kib_of("MemTotal").zip(kib_of("SwapTotal")).map(|(memory, swap)| memory.saturating_add(swap)),
    };
    most.map_or(ADDRESSES, |kib| (kib >> 10) + 1)
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
    places: Places,
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
            places: Places::default(),
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
                let most = most_given();
                let asked: Vec<_> = functions.iter().map(|it| (it.offset, cookie(it, most))).collect();
                match program.attach_to_file(file, &asked) {
                    Ok(link) => links.0.push(link),
                    Err(error) => {
                        not_probed(file, &format!("{error}; {}", remedy(&error)));
                        return functions.len();
                    }
                }
                0
            }
            Programs::ByShape(links) => {
                let at_return = self.level.gets;
                let mut first_problem = None;
                let mut attach = |name, offset| match attach_one(ebpf, name, file, offset) {
                    Ok(link) => {
                        links.push((name, link));
                        true
                    }
                    Err(error) => {
                        first_problem.get_or_insert_with(|| format!("the function at {offset:#x}: {error}"));
                        false
                    }
                };
                // The return first: no begin is met whose end is not.
                let mut is_probed = |function: &&AllocatorFunction| {
                    let frees_itself = function.shape == Shape::Frees && !function.nests;
                    (frees_itself || attach(at_return, function.offset))
                        && attach(program_at(function), function.offset)
                };
                let failed = functions.iter().filter(|function| !is_probed(function)).count();
                if let Some(problem) = first_problem {
                    not_probed(file, &problem);
                }
                failed
            }
        }
    }
}

/// Tells of a file whose allocator is not seen. The recording goes on: there are others.
fn not_probed(file: &File, problem: &str) {
    let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default();
    log::warn!(
        "what the allocator of {} gives is not seen, as it can't be probed: {problem}",
        path.display()
    );
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
        [("ASKED", THREADS)].into_iter().chain(Places::map_sizes()).collect()
    }

    fn loaded(&mut self, ebpf: &mut Ebpf) -> Result<(), LoadError> {
        if let Some(object) = object().filter(|_| self.level.has_uprobe_session()) {
            let program = MultiProbe::load(ebpf, object, Functions::File, ONE)?;
            self.programs = Programs::One(program, Links::default());
        } else {
            self.names().try_for_each(|name| {
                let program = load::program::<UProbe>(ebpf, name)?;
                program.load().map_err(|error| load::refused(name, error))
            })?;
        }
        self.places.load(ebpf)
    }

    fn end_round(&mut self, gone: &Gone) {
        self.places.end_round(gone);
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
        account.tables.push(self.places.table(self.seconds)?);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// With 8 GiB of memory, 2 GiB of swap, and 6 GiB that may be promised.
    #[test]
    fn what_is_given_at_most_is_by_the_kernels_policy() {
        let memory = "MemTotal:        8388608 kB\nSwapTotal:       2097152 kB\nCommitLimit:     6291456 kB\nCommitted_AS:     524288 kB\n";
        let gib = |policy| most_by(policy, memory) >> 10;
        assert_eq!(["0", "2"].map(gib), [10, 6]);
        assert_eq!(gib("1"), 1 << 17, "the 47 bits of a program's addresses");
        assert_eq!(["0", "2"].map(|policy| most_by(policy, "") >> 10), [1 << 17; 2]);
    }
}
