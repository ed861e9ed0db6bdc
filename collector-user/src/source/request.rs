//! What a source is asked for beside the sampling clock.

use std::ffi::CString;
use std::sync::Arc;

use collector_common::event::{Event, EventFlags, EventId};
use collector_common::record::Unit;
use collector_common::wire::Tracepoint;
use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_BRANCH_INSTRUCTIONS, PERF_COUNT_HW_BRANCH_MISSES, PERF_COUNT_HW_BUS_CYCLES,
    PERF_COUNT_HW_CACHE_MISSES, PERF_COUNT_HW_CACHE_REFERENCES, PERF_COUNT_HW_CPU_CYCLES,
    PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_REF_CPU_CYCLES, PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
    PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, PERF_COUNT_SW_ALIGNMENT_FAULTS, PERF_COUNT_SW_BPF_OUTPUT,
    PERF_COUNT_SW_CGROUP_SWITCHES, PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_MIGRATIONS,
    PERF_COUNT_SW_DUMMY, PERF_COUNT_SW_EMULATION_FAULTS, PERF_COUNT_SW_PAGE_FAULTS,
    PERF_COUNT_SW_PAGE_FAULTS_MAJ, PERF_COUNT_SW_PAGE_FAULTS_MIN, PERF_TYPE_HARDWARE, PERF_TYPE_RAW,
    PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT,
};

use super::EventIndex;
use super::bpf_map::BpfMap;
use super::scope::open_for_own_thread;
use crate::probe::{KernelFunctions, Registered};

/// What makes an event happen: `type` and `config` of its `perf_event_attr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A tracepoint, by the number in its format.
    Tracepoint(u64),
    /// Something that the kernel counts, each time (`PERF_COUNT_SW_*`).
    Software(u32),
    /// Something that the processor counts, so often a second as the sampling clock ticks (`PERF_COUNT_HW_*`).
    Hardware(u32),
    /// The same, by the number that the processor's manual gives it.
    Raw(u64),
    /// What our own programs in the kernel keep account of.
    Program(Program),
    /// A source of the embedder's own, which hands over its records with the event's [`EventIndex`].
    OwnSource,
    /// A program of somebody's, which writes it into a map (`PERF_COUNT_SW_BPF_OUTPUT`).
    BpfMap,
}

/// What our own programs in the kernel keep account of. Minimum kernel: 5.8, with eBPF programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Time for which threads are blocked, in nanoseconds.
    OffCpu,
    /// Time of threads whether they run, are blocked or wait for a CPU, in nanoseconds.
    WallClock,
    /// How long threads wait for a CPU, counted by name and length: no records.
    RunQueues,
    /// Time for which threads wait for locks of user code, in nanoseconds.
    Locks,
    /// Processes: what makes, executes and ends them, in a table: no records.
    Processes,
    /// System calls, counted by number and length; records of the slowest, in nanoseconds.
    SystemCalls,
    /// Native memory: blocks that allocators give, in bytes, and whether they are freed.
    Allocations,
    /// Memory without a file that the kernel gives to processes, in bytes.
    Mapped,
    /// How long devices take for requests, in nanoseconds. Minimum kernel: 5.17.
    BlockRequests,
    /// Calls that transfer data to and from files that are no sockets, counted by what they do and what to; records of some, in
    /// nanoseconds, with the path. Minimum kernel: 5.17.
    FileIo,
    /// The same of sockets, with the address, and TCP connections, counted by address. Minimum kernel: 5.17.
    NetworkIo,
    /// Who releases locks of user code that are waited for: the time that was waited, in nanoseconds.
    LockOwners,
    /// Time for which threads wait for locks of the kernel, in nanoseconds. Minimum kernel: 5.19; before, nothing is recorded.
    KernelLocks,
    /// Calls of functions of the kernel, or their returns, with what registers hold. Minimum kernel: 5.18.
    Functions,
    /// Pages that were met absent and that memory alone answered: counted by process name; records of all or, where there are many,
    /// some that stand for the others. Plain perf events tell of each.
    MinorFaults,
    /// The same of those that waited for a disk, all of which are recorded.
    MajorFaults,
}

impl Program {
    /// Its event's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OffCpu => "off_cpu",
            Self::WallClock => "wall_clock",
            Self::RunQueues => "run_queues",
            Self::Locks => "lock",
            Self::Processes => "processes",
            Self::SystemCalls => "syscalls",
            Self::Allocations => "alloc_space",
            Self::Mapped => "mapped_space",
            Self::BlockRequests => "block_io",
            Self::FileIo => "file_io",
            Self::NetworkIo => "network_io",
            Self::LockOwners => "lock_owner",
            Self::KernelLocks => "kernel_lock",
            Self::Functions => "functions",
            Self::MinorFaults => "minor-faults",
            Self::MajorFaults => "major-faults",
        }
    }

    /// Kinds of samples of allocated blocks beside that of the event: how many they are, and what of them is not freed, with what is likely never
    /// to be.
    pub(crate) const OF_ALLOCATIONS: [(&str, Unit); 4] = [
        ("alloc_objects", Unit::Count),
        ("inuse_space", Unit::Bytes),
        ("inuse_objects", Unit::Count),
        ("likely_leaks", Unit::Bytes),
    ];

    /// The kinds of samples that it makes beside that of its event.
    pub const fn further_kinds(self) -> &'static [(&'static str, Unit)] {
        match self {
            Self::Allocations => &Self::OF_ALLOCATIONS,
            _ => &[],
        }
    }

    /// Of its samples' values.
    pub(crate) const fn unit(self) -> Unit {
        match self {
            Self::Allocations | Self::Mapped => Unit::Bytes,
            Self::Functions | Self::MinorFaults | Self::MajorFaults => Unit::Count,
            _ => Unit::Nanoseconds,
        }
    }

    /// The kernel's counter that tells of the same without a program (`PERF_COUNT_SW_*`).
    pub(crate) const fn counter(self) -> Option<u32> {
        match self {
            Self::MinorFaults => Some(PERF_COUNT_SW_PAGE_FAULTS_MIN),
            Self::MajorFaults => Some(PERF_COUNT_SW_PAGE_FAULTS_MAJ),
            _ => None,
        }
    }

    /// Whether its records are times that threads are off their CPUs.
    pub(crate) const fn is_of_times_off(self) -> bool {
        matches!(self, Self::OffCpu | Self::WallClock | Self::Locks)
    }
}

/// An event of a session.
#[derive(Debug)]
pub struct Hook {
    /// Its format, filter and closures. With [`EventFlags::CALLSTACK`] its occurrences become samples of a kind of their own.
    pub event: Event,
    /// What makes it happen.
    pub trigger: Trigger,
    /// What the kernel forgets with this event, once the sources are closed.
    pub(crate) probe: Option<Registered>,
    /// The kernel's functions that a program of ours is to be attached to.
    pub(crate) functions: Option<Arc<KernelFunctions>>,
    /// Where its records are, until a session takes them from there.
    pub(crate) map: Option<BpfMap>,
}

impl Hook {
    /// Of a source of the embedder's own.
    pub fn own(event: Event) -> Self {
        Self::of(event, Trigger::OwnSource)
    }

    /// Of a tracepoint, as [`crate::tracefs::Tracefs::event`] gives it.
    ///
    /// Its fields `common_flags` and `common_preempt_count` are 0 where a program of ours copies its records, which sees neither: that is so
    /// with eBPF, where the event has no filter and its records are of one size that is small enough.
    pub fn tracepoint(event: Event) -> Self {
        let trigger = Trigger::Tracepoint(event.id().0);
        Self::of(event, trigger)
    }

    /// Of what somebody's programs write into a map: see [`bpf_map`](super::bpf_map).
    pub fn bpf_map(event: Event, map: BpfMap) -> Self {
        Self { map: Some(map), ..Self::of(event, Trigger::BpfMap) }
    }

    pub(crate) fn of(event: Event, trigger: Trigger) -> Self {
        Self { event, trigger, probe: None, functions: None, map: None }
    }

    /// Of a probe, which lives as long as this.
    pub(crate) fn probe(event: Event, registered: Registered) -> Self {
        Self { probe: Some(registered), ..Self::tracepoint(event) }
    }

    /// Of calls of the kernel's functions.
    #[cfg(feature = "ebpf")]
    pub(crate) fn functions(event: Event, functions: Arc<KernelFunctions>) -> Self {
        Self { functions: Some(functions), ..Self::program(event, Program::Functions) }
    }

    /// Of its samples' values: occurrences of what no program of ours keeps account of are counted.
    pub const fn unit(&self) -> Unit {
        match self.trigger {
            Trigger::Program(program) => program.unit(),
            _ => Unit::Count,
        }
    }

    /// What was asked for with a probe and is not recorded, or what recording it does to the program, or recording a map to its
    /// other readers, for people.
    pub fn note(&self) -> Option<&str> {
        let of_probe = self.probe.as_ref().and_then(Registered::note);
        let of_functions = self.functions.as_ref().and_then(|functions| functions.note.as_deref());
        of_probe.or(of_functions).or_else(|| self.map.as_ref().map(BpfMap::note))
    }

    /// An event that `perf_event_open` knows without a format, by a name that `perf list` has for it, or `rNNN` with the
    /// hexadecimal number of the processor's manual.
    pub fn counter(name: &str) -> Option<Self> {
        let event = |id, name, trigger| Some(Self::of(Event::new(id, name), trigger));
        // A number may have a sign, which the name has none of.
        let digits =
            name.strip_prefix('r').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if let Some(number) = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
            return event(EventId(number), name, Trigger::Raw(number));
        }
        let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
        let counter = COUNTERS.iter().find(|counter| counter.name == name)?;
        let (Trigger::Software(id) | Trigger::Hardware(id)) = counter.trigger else { return None };
        event(EventId(id.into()), counter.name, counter.trigger)
    }

    /// Whether its records have a place in a `perf.data`, as `SessionSettings::capture` of `session` writes it.
    pub fn is_captured(&self) -> bool {
        !matches!(self.trigger.plain(), Trigger::Program(_))
    }

    /// What tracefs calls it, if it is there.
    pub(crate) fn tracefs_name(&self) -> Option<String> {
        let of_probe = self.probe.as_ref().map(Registered::name);
        let is_tracepoint = matches!(self.trigger, Trigger::Tracepoint(_));
        of_probe.or_else(|| is_tracepoint.then(|| self.event.name().to_owned()))
    }

    /// Of what our own programs keep account of. `event` has the fields of `scenario::TimeOff`, where there are records.
    pub(crate) fn program(event: Event, program: Program) -> Self {
        Self::of(event, Trigger::Program(program))
    }

    /// What a source of the system needs to know of it; nothing where it comes from one of its own.
    pub(crate) fn request(&self, index: EventIndex) -> Option<EventRequest> {
        let stack = self.event.flags().contains(EventFlags::CALLSTACK);
        let has_own = matches!(self.trigger, Trigger::OwnSource | Trigger::BpfMap);
        let filter = match self.trigger {
            Trigger::Tracepoint(_) => self.event.kernel_filter().and_then(|text| CString::new(text).ok()),
            _ => None,
        };
        (!has_own).then_some(EventRequest {
            index,
            trigger: self.trigger,
            stack,
            filter,
            functions: self.functions.clone(),
            copied: self.copied(),
            is_in_programs: self.probe.as_ref().is_some_and(Registered::is_of_programs),
        })
    }

    /// Whether perf events of a thread tell of what others do to it.
    pub(crate) fn is_of_others(&self) -> bool {
        matches!(self.trigger, Trigger::Tracepoint(_)) && self.event.name().starts_with(OF_OTHER_THREADS)
    }

    /// Where it is a tracepoint of which a program sees all that there is: how its records are copied.
    fn copied(&self) -> Option<Copied> {
        let event = &self.event;
        let is_whole = matches!(self.trigger, Trigger::Tracepoint(_)) && self.probe.is_none();
        if !is_whole
            || event.is_filtered()
            || event.name().starts_with(WEIGHTED)
            || event.name().starts_with(OF_PROGRAMS)
            || event.format().has_dynamic_data()
        {
            return None;
        }
        let bytes = event.format().size().and_then(|bytes| u8::try_from(bytes).ok())?;
        let is_of_others = self.is_of_others();
        (Tracepoint::COMMON..=Tracepoint::MOST)
            .contains(&bytes.into())
            .then_some(Copied { bytes, is_of_others })
    }
}

/// Tracepoints whose occurrences count by a weight, which perf events alone are told (`__perf_count` in
/// `include/trace/events/sched.h`).
const WEIGHTED: &str = "sched:sched_stat_";

/// Tracepoints that programs register: the kernel takes programs of BPF for them, and runs none (`user_event_perf` in
/// `kernel/trace/trace_events_user.c`).
const OF_PROGRAMS: &str = "user_events";

/// Tracepoints that perf events of a thread have where it happens to that thread, whoever makes it happen (`__perf_task`, ibid.):
/// `sched_wakeup`, `sched_wakeup_new` and `sched_waking`.
const OF_OTHER_THREADS: &str = "sched:sched_wak";

/// An event that a source is asked for.
#[derive(Clone, Debug)]
pub struct EventRequest {
    /// The number that its records are to have.
    pub index: EventIndex,
    /// What makes it happen.
    pub trigger: Trigger,
    /// Whether stacks are wanted.
    pub stack: bool,
    /// Which occurrences of a tracepoint are recorded, as [`Event::kernel_filter`] writes it. Where the kernel does not take
    /// it, all are. Minimum kernel: 4.17; before, all are.
    pub filter: Option<CString>,
    /// Of [`Program::Functions`], which.
    pub functions: Option<Arc<KernelFunctions>>,
    /// Of a tracepoint whose records a program can copy.
    pub copied: Option<Copied>,
    /// Whether it is a probe of functions of programs. Where processes are chosen, a program says whose hits are recorded.
    pub is_in_programs: bool,
}

/// What a program that copies a tracepoint's records needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Bytes of each record.
    pub bytes: u8,
    /// Whether perf events of a thread tell of what others do to it: a program tells of what each does itself.
    pub is_of_others: bool,
}

impl EventRequest {
    /// Of each occurrence, without stacks, by plain perf events.
    pub fn new(index: EventIndex, trigger: Trigger) -> Self {
        let (filter, functions, copied) = (None, None, None);
        Self { index, trigger, stack: false, filter, functions, copied, is_in_programs: false }
    }

    /// The same, told by a plain perf event where that can.
    pub(crate) fn plain(self) -> Self {
        Self { trigger: self.trigger.plain(), copied: None, is_in_programs: false, ..self }
    }

    /// The program of ours that it is for, and that nothing else can do.
    pub(crate) fn needed_program(&self) -> Option<Program> {
        self.program().filter(|program| program.counter().is_none())
    }

    /// The program of ours that it is for.
    pub(crate) fn program(&self) -> Option<Program> {
        match self.trigger {
            Trigger::Program(program) => Some(program),
            _ => None,
        }
    }
}

impl Trigger {
    /// `type` and `config` of `perf_event_attr`; a dummy of what has none.
    pub(crate) fn attributes(self) -> (u32, u64) {
        match self {
            Self::OwnSource | Self::Program(_) => (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY.into()),
            Self::BpfMap => (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT.into()),
            Self::Tracepoint(id) => (PERF_TYPE_TRACEPOINT, id),
            Self::Software(id) => (PERF_TYPE_SOFTWARE, id.into()),
            Self::Hardware(id) => (PERF_TYPE_HARDWARE, id.into()),
            Self::Raw(number) => (PERF_TYPE_RAW, number),
        }
    }

    /// The counter of the kernel that tells of what a program would, each time; itself where there is none.
    pub(crate) fn plain(self) -> Self {
        match self {
            Self::Program(program) => program.counter().map_or(self, Self::Software),
            other => other,
        }
    }

    /// What it is called, as far as it has a name of its own.
    pub(crate) fn name(self) -> &'static str {
        let counter = COUNTERS.iter().find(|counter| counter.trigger == self);
        match self {
            Self::Tracepoint(_) => "the tracepoint",
            Self::OwnSource => "the source's own",
            Self::BpfMap => "the BPF map",
            Self::Program(program) => program.name(),
            Self::Software(_) | Self::Hardware(_) => counter.map_or("the counter", |counter| counter.name),
            Self::Raw(_) => "the raw event",
        }
    }

    /// Whether it happens in the kernel alone.
    pub(crate) fn is_of_kernel(self) -> bool {
        const IN_KERNEL: [u32; 3] =
            [PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_MIGRATIONS, PERF_COUNT_SW_CGROUP_SWITCHES];
        matches!(self, Self::Software(id) if IN_KERNEL.contains(&id))
    }

    /// Whether the processor counts it.
    pub(crate) fn is_of_processor(self) -> bool {
        matches!(self, Self::Hardware(_) | Self::Raw(_))
    }
}

/// Names that `perf list` has for the sampling clock. It is no event of its own.
pub const CLOCK_NAMES: [&str; 2] = ["cpu-clock", "task-clock"];

/// A counter by its name.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// As `perf list` calls it.
    pub name: &'static str,
    /// What makes it happen.
    pub trigger: Trigger,
    /// What it counts, for people.
    pub description: &'static str,
}

impl Counter {
    /// Whether something counts it here: what the kernel counts itself is, and what the processor counts where there is a
    /// unit for it that this process may use.
    pub fn is_here(&self) -> bool {
        const ABSENT: [i32; 4] = [libc::ENOENT, libc::EOPNOTSUPP, libc::ENODEV, libc::EINVAL];
        let opened = open_for_own_thread(self.trigger.attributes());
        !opened.is_err_and(|error| error.raw_os_error().is_some_and(|error| ABSENT.contains(&error)))
    }
}

const fn software(name: &'static str, id: u32, description: &'static str) -> Counter {
    Counter { name, trigger: Trigger::Software(id), description }
}

const fn hardware(name: &'static str, id: u32, description: &'static str) -> Counter {
    Counter { name, trigger: Trigger::Hardware(id), description }
}

/// Further names that `perf list` has for counters, and ours.
const ALIASES: [(&str, &str); 7] = [
    ("faults", "page-faults"),
    ("cs", "context-switches"),
    ("migrations", "cpu-migrations"),
    ("cpu-cycles", "cycles"),
    ("branch-instructions", "branches"),
    ("idle-cycles-frontend", "stalled-cycles-frontend"),
    ("idle-cycles-backend", "stalled-cycles-backend"),
];

/// Counters that [`Hook::counter`] knows. Those of hardware are there where the processor's unit for it is.
pub const COUNTERS: [Counter; 18] = [
    software("page-faults", PERF_COUNT_SW_PAGE_FAULTS, "pages that were met absent"),
    software("minor-faults", PERF_COUNT_SW_PAGE_FAULTS_MIN, "those that needed no reading from a disk"),
    software("major-faults", PERF_COUNT_SW_PAGE_FAULTS_MAJ, "those that did"),
    software("context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES, "a thread gave up its CPU, or lost it"),
    software("cpu-migrations", PERF_COUNT_SW_CPU_MIGRATIONS, "a thread went to another CPU"),
    software(
        "cgroup-switches",
        PERF_COUNT_SW_CGROUP_SWITCHES,
        "a CPU went from a thread of one cgroup to one of another",
    ),
    software("alignment-faults", PERF_COUNT_SW_ALIGNMENT_FAULTS, "accesses that the kernel had to align"),
    software(
        "emulation-faults",
        PERF_COUNT_SW_EMULATION_FAULTS,
        "instructions that the kernel had to emulate",
    ),
    hardware("cycles", PERF_COUNT_HW_CPU_CYCLES, "processor cycles"),
    hardware("instructions", PERF_COUNT_HW_INSTRUCTIONS, "instructions that were completed"),
    hardware("cache-references", PERF_COUNT_HW_CACHE_REFERENCES, "accesses to the last cache"),
    hardware("cache-misses", PERF_COUNT_HW_CACHE_MISSES, "accesses that went to memory"),
    hardware("branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "branches"),
    hardware("branch-misses", PERF_COUNT_HW_BRANCH_MISSES, "branches that were predicted wrongly"),
    hardware("bus-cycles", PERF_COUNT_HW_BUS_CYCLES, "bus cycles"),
    hardware("ref-cycles", PERF_COUNT_HW_REF_CPU_CYCLES, "cycles of a clock that does not change"),
    hardware(
        "stalled-cycles-frontend",
        PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
        "cycles that waited for instructions",
    ),
    hardware(
        "stalled-cycles-backend",
        PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
        "cycles that waited for results",
    ),
];

#[cfg(test)]
mod tests {
    use collector_common::event::filter;

    use super::*;
    use crate::tracefs::parse_format;

    #[test]
    fn counters_have_further_names() {
        for (alias, name) in ALIASES {
            let [hook, same] = [alias, name].map(|name| Hook::counter(name).unwrap());
            assert_eq!((hook.event.name(), hook.trigger), (name, same.trigger), "{alias}");
        }
    }

    /// `type` and `config` of `perf_event_attr` are `PERF_TYPE_RAW`, which is 4, and the number (`include/uapi/linux/perf_event.h`).
    #[test]
    fn an_event_of_the_processor_by_its_number() {
        for (name, number) in [("r1a8", 0x1a8), ("r01A8", 0x1a8), ("r0", 0), ("rffffffffffffffff", u64::MAX)]
        {
            let hook = Hook::counter(name).unwrap();
            assert_eq!((hook.trigger, hook.event.name()), (Trigger::Raw(number), name));
            let request = hook.request(EventIndex(1)).unwrap();
            assert_eq!(request.trigger.attributes(), (4, number), "{name}");
        }
        for name in ["r", "r+1a8", "r-1", "r0x1a8", "r1g", "r10000000000000000", "R1a8", "raw:1a8", "r 1"] {
            assert!(Hook::counter(name).is_none(), "{name}");
        }
    }

    #[test]
    fn the_filter_of_a_tracepoint_is_asked_of_the_kernel() {
        let text = "ID: 7\n\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\nprint fmt: \"\"\n";
        let (id, format) = parse_format(text).unwrap();
        let mut event = Event::new(id, "made:up");
        *event.format_mut() = format;
        let filter = |event| Hook::tracepoint(event).request(EventIndex(1)).unwrap().filter;
        event.set_filter(Some(&filter::parse("pid > 1").unwrap())).unwrap();
        assert_eq!(filter(event).as_deref(), Some(c"pid > 1"));
        assert_eq!(filter(Event::new(id, "made:up")), None);
    }

    #[test]
    fn records_of_events_of_programs_are_not_copied() {
        let text = "ID: 7\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\tfield:u32 x;\toffset:8;\tsize:4;\tsigned:0;\nprint fmt: \"\"\n";
        let copied = |name| {
            let (id, format) = parse_format(text).unwrap();
            let mut event = Event::new(id, name);
            *event.format_mut() = format;
            Hook::tracepoint(event).request(EventIndex(1)).unwrap().copied
        };
        assert!(copied("sched:x").is_some());
        assert_eq!([copied("user_events:x"), copied("user_events_multi:x.0")], [None; 2]);
    }
}
