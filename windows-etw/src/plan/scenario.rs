//! Scenarios: what to record, by the names that they have on every system, and what ETW is asked for then.
//!
//! Keywords and numbers of .NET's events are from its manifest (`ClrEtwAll.man`), what they do from its `eventtrace.cpp`; what the
//! kernel's flags and events are is said in [`Flags`] and [`KernelEvent`].

use collector_common::ids::Pid;

use super::buffers::Buffers;
use super::compose::{Note, Plan, SystemPlan};
use super::heap::HeapPlan;
use super::interval::SampleInterval;
use super::kernel::{Flags, KernelEvent};
use super::providers::KnownProvider;
use super::user::{EventIds, Level, MOST_PIDS, ProviderPlan, Stacks, When};

/// What is to be recorded of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// CPU samples a second.
    pub frequency_hz: u32,
    /// The processes; empty is all of them.
    pub pids: Vec<Pid>,
}

/// What to record, by a name.
#[derive(Debug)]
pub struct Scenario {
    /// Its name, the same as on Linux.
    pub name: &'static str,
    /// A short one.
    pub alias: &'static str,
    /// What it records here.
    pub description: &'static str,
    build: fn(&Scope) -> Plan,
}

impl Scenario {
    /// The one of this name or short name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        SCENARIOS.iter().find(|scenario| scenario.name == name || scenario.alias == name)
    }

    /// What it asks ETW for.
    pub fn plan(&self, scope: &Scope) -> Plan {
        named((self.build)(scope), self.name.to_owned(), scope)
    }
}

/// `plan` by its name, and without filters that ETW does not take.
pub(super) fn named(mut plan: Plan, name: String, scope: &Scope) -> Plan {
    plan.names = vec![name];
    if scope.pids.len() > MOST_PIDS && !plan.providers.is_empty() {
        plan.providers.iter_mut().for_each(|provider| provider.pids.clear());
        plan.notes.push(Note::ManyProcesses(scope.pids.len()));
    }
    plan
}

macro_rules! scenarios {
    ($count:literal; $($name:literal $alias:literal $build:ident $description:literal;)*) => {
        /// All scenarios that ETW can record.
        pub const SCENARIOS: [Scenario; $count] = [
            $(Scenario { name: $name, alias: $alias, description: $description, build: $build }),*
        ];
    };
}

scenarios! { 14;
    "cpu_profiling" "cpu" cpu_profiling "samples of what runs on the CPUs";
    "off_cpu" "offcpu" off_cpu "nanoseconds that threads are blocked until they are made ready, by the stack that they wait with";
    "wall_clock" "wall" wall_clock "all time of threads in nanoseconds: running, runnable, blocked";
    "scheduling" "sched" scheduling "how long threads that are ready wait for a CPU: histograms by thread name";
    "page_faults" "faults" page_faults "page faults by stack, those that wait for a disk with how long; a table by process";
    "processes" "proc" processes "processes, when they started and ended, and what they used";
    "syscalls" "sys" syscalls "system calls: how often, results that are errors, how long, each with its stack";
    "memory_tracking" "memory" memory_tracking "blocks of heaps (of a command, and with -p): allocated, kept; memory of VirtualAlloc: committed, reserved, given back";
    "memory_growth" "growth" memory_growth "memory of VirtualAlloc in bytes, and pages that are touched first, by stack";
    "io_monitoring" "io" io_monitoring "reads, writes and flushes of files and disks with times, bytes and paths; bytes of TCP and UDP by address";
    "dotnet_gc_analysis" "gc" dotnet_gc_analysis ".NET: collections, their pauses, heap sizes, and who triggers them";
    "dotnet_allocations" "netalloc" dotnet_allocations ".NET: a sample of allocations, one for about 100 KB, by type and stack";
    "dotnet_exceptions" "netexc" dotnet_exceptions ".NET: exceptions that are thrown, by type and stack";
    "dotnet_contention" "netlock" dotnet_contention ".NET: waits for monitors, by stack";
}

/// Keywords of .NET's provider.
mod clr {
    pub(super) const GC: u64 = 0x1;
    pub(super) const LOADER: u64 = 0x8;
    pub(super) const JIT: u64 = 0x10;
    pub(super) const NGEN: u64 = 0x20;
    pub(super) const CONTENTION: u64 = 0x4000;
    pub(super) const EXCEPTION: u64 = 0x8000;
    /// A process that ends tells first of all methods that it has, those of [`JIT`] and [`NGEN`], as of ones that go.
    pub(super) const END_ENUMERATION: u64 = 0x80;
    /// Of the rundown's provider: when a session enables it, what there is is told once, under the numbers of an end.
    pub(super) const END: u64 = 0x100;
    /// Methods and modules that come and go, and which runtime it is.
    pub(super) const NAMES: [u16; 12] = [141, 142, 143, 144, 151, 152, 153, 154, 155, 156, 157, 187];
}

/// Processes, threads and images: without them no event has a name.
const LIVES: Flags = Flags(Flags::PROCESS.0 | Flags::THREAD.0 | Flags::IMAGE_LOAD.0);

fn empty() -> Plan {
    Plan {
        names: Vec::new(),
        system: SystemPlan::default(),
        providers: Vec::new(),
        heap: None,
        buffers: Buffers::USUAL,
        notes: Vec::new(),
    }
}

/// What the kernel tells, with `stacks` and what names their frames.
fn kernel(scope: &Scope, flags: Flags, stacks: &[KernelEvent]) -> Plan {
    let mut plan = if stacks.is_empty() { empty() } else { with_names(scope, stacks.to_vec(), Vec::new()) };
    plan.system.flags = plan.system.flags | LIVES | flags;
    plan
}

/// Stacks of the kernel's events and of providers', and what names their frames: images, and compiled methods of .NET.
///
/// Each method is told once or twice: when it is compiled, and with all others of its process when that ends or, if it goes on, the
/// recording does. So what was there before is known at the end, and nothing is asked for at the start, for each
/// process of .NET that tells all its methods spends its time and holds locks of its runtime meanwhile. What was compiled ahead (`ReadyToRun`) is told at an end
/// alone, for its names are in no file that is at hand elsewhere. Nobody tells of what a process had that was ended by another one
/// (`TerminateProcess`): of its methods those have names that were compiled meanwhile. `PerfView` asks for the same, and has the same gap.
///
/// The level is verbose, for below it methods that are not generic are told without their names.
pub(super) fn with_names(scope: &Scope, stacks: Vec<KernelEvent>, providers: Vec<ProviderPlan>) -> Plan {
    let mut plan = empty();
    plan.system.flags = LIVES;
    plan.system.stacks = stacks.into_iter().collect();
    let keywords = clr::LOADER | clr::JIT | clr::NGEN;
    plan.providers = vec![
        clr(scope, keywords | clr::END_ENUMERATION, Level::Verbose, &clr::NAMES, &[]),
        ProviderPlan {
            guid: KnownProvider::CLR_RUNDOWN.guid,
            name: KnownProvider::CLR_RUNDOWN.name.to_owned(),
            when: When::AtEnd,
            ids: EventIds::All,
            ..clr(scope, keywords | clr::END, Level::Verbose, &[], &[])
        },
    ];
    let mut others = empty();
    others.providers = providers;
    // Keywords that must be there together are nowhere in what is planned here.
    let _ = plan.add(others);
    plan
}

/// Events of .NET with these numbers, and with stacks of `stacks`.
fn clr(scope: &Scope, any: u64, level: Level, ids: &[u16], stacks: &[u16]) -> ProviderPlan {
    ProviderPlan {
        guid: KnownProvider::CLR.guid,
        name: KnownProvider::CLR.name.to_owned(),
        when: When::Always,
        level,
        any,
        all: 0,
        ids: EventIds::only(ids.iter().copied()),
        stacks: if stacks.is_empty() { Stacks::None } else { Stacks::only(stacks.iter().copied()) },
        pids: scope.pids.iter().copied().collect(),
        capture_state: false,
    }
}

fn cpu_profiling(scope: &Scope) -> Plan {
    let mut plan = kernel(scope, Flags::PROFILE, &[KernelEvent::SAMPLED_PROFILE]);
    plan.system.interval = Some(SampleInterval::of_frequency(scope.frequency_hz));
    if scope.frequency_hz > SampleInterval::MOST_HZ {
        plan.notes.push(Note::Frequency(scope.frequency_hz));
    }
    plan
}

/// The stack of a switch is that of the thread that begins to run: it is the one that it waited with. `ReadyThread` says who woke it,
/// which its header and the switches tell: where it was woken from is not asked for, as that would be as many stacks again.
fn off_cpu(scope: &Scope) -> Plan {
    let mut plan = kernel(scope, Flags::CSWITCH | Flags::DISPATCHER, &[KernelEvent::CSWITCH]);
    plan.buffers = Buffers::LARGE;
    plan
}

fn wall_clock(scope: &Scope) -> Plan {
    let mut plan = cpu_profiling(scope);
    // Both sample at one interval or not at all.
    let _ = plan.add(off_cpu(scope));
    plan
}

fn scheduling(scope: &Scope) -> Plan {
    let mut plan = kernel(scope, Flags::CSWITCH | Flags::DISPATCHER, &[]);
    plan.buffers = Buffers::LARGE;
    plan
}

/// Access violations are left out: they are exceptions, and no page comes of them.
fn page_faults(scope: &Scope) -> Plan {
    let stacks = [
        KernelEvent::TRANSITION_FAULT,
        KernelEvent::DEMAND_ZERO_FAULT,
        KernelEvent::COPY_ON_WRITE,
        KernelEvent::GUARD_PAGE_FAULT,
        KernelEvent::HARD_PAGE_FAULT,
        KernelEvent::HARD_FAULT,
    ];
    let mut plan = kernel(scope, Flags::MEMORY_PAGE_FAULTS | Flags::MEMORY_HARD_FAULTS, &stacks);
    plan.buffers = Buffers::LARGE;
    plan
}

fn processes(scope: &Scope) -> Plan {
    kernel(scope, Flags::PROCESS_COUNTERS, &[])
}

/// The events name no thread: switches tell which one runs on the CPU. The stack is taken at the exit, which has the result.
fn syscalls(scope: &Scope) -> Plan {
    let mut plan = kernel(scope, Flags::SYSTEMCALL | Flags::CSWITCH, &[KernelEvent::SYSTEM_CALL_EXIT]);
    plan.buffers = Buffers::LARGE;
    plan
}

fn memory_tracking(scope: &Scope) -> Plan {
    let mut plan =
        kernel(scope, Flags::VIRTUAL_ALLOC, &[KernelEvent::VIRTUAL_ALLOC, KernelEvent::VIRTUAL_FREE]);
    if scope.pids.is_empty() {
        plan.notes.push(Note::HeapNeedsProcesses);
    } else {
        plan.heap = Some(HeapPlan { pids: scope.pids.clone() });
        plan.buffers = Buffers::LARGE;
    }
    plan
}

fn memory_growth(scope: &Scope) -> Plan {
    let mut plan = page_faults(scope);
    let alloc = [KernelEvent::VIRTUAL_ALLOC, KernelEvent::VIRTUAL_FREE];
    // Neither samples.
    let _ = plan.add(kernel(scope, Flags::VIRTUAL_ALLOC, &alloc));
    plan
}

/// Disks complete requests in a thread that did not make them, so stacks are those of where requests begin. `TcpIp` and `UdpIp` have no stacks.
fn io_monitoring(scope: &Scope) -> Plan {
    let disk = Flags::DISK_IO | Flags::DISK_IO_INIT | Flags::DISK_FILE_IO;
    let flags = disk | Flags::FILE_IO | Flags::FILE_IO_INIT | Flags::NETWORK_TCPIP;
    let stacks = [
        KernelEvent::DISK_READ_INIT,
        KernelEvent::DISK_WRITE_INIT,
        KernelEvent::DISK_FLUSH_INIT,
        KernelEvent::FILE_CREATE,
        KernelEvent::FILE_READ,
        KernelEvent::FILE_WRITE,
        KernelEvent::FILE_FLUSH,
    ];
    kernel(scope, flags, &stacks)
}

/// Start, end and suspension of threads, heap sizes, finalizers, histories of heaps; 35 is told by the thread that triggers a collection.
fn dotnet_gc_analysis(scope: &Scope) -> Plan {
    let ids = [1, 2, 3, 4, 7, 8, 9, 13, 14, 35, 204, 205];
    with_names(scope, Vec::new(), vec![clr(scope, clr::GC, Level::Informational, &ids, &[35])])
}

/// `GCAllocationTick`, which is verbose.
fn dotnet_allocations(scope: &Scope) -> Plan {
    with_names(scope, Vec::new(), vec![clr(scope, clr::GC, Level::Verbose, &[10], &[10])])
}

/// `ExceptionThrown`.
fn dotnet_exceptions(scope: &Scope) -> Plan {
    with_names(scope, Vec::new(), vec![clr(scope, clr::EXCEPTION, Level::Informational, &[80], &[80])])
}

/// `ContentionStart` and `ContentionStop`.
fn dotnet_contention(scope: &Scope) -> Plan {
    with_names(scope, Vec::new(), vec![clr(scope, clr::CONTENTION, Level::Informational, &[81, 91], &[81])])
}
