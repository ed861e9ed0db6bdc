//! What is told of a session when it begins and when it ends.

use collector_common::event::{Event, EventFlags, EventId};
use collector_common::ids::{Nanos, Pid};
use collector_common::loss::{Ledger, LossCause};
use collector_common::record::{ClockAnchor, Column, Exit, Histogram, SystemInfo, Table, Unit};

use crate::event_clock::ClockReading;
use crate::packed::{Packed, Unpacker, packed};
use crate::scenario::SCENARIOS;
use crate::session::SessionSettings;
use crate::source::{Account, Hook, Settings, Shortest, Targets, ToldLife, ToldProgram, Trigger};
use crate::stats::Faults;
use crate::tracefs::{Tracefs, parse_format};

/// How a session began.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) system: SystemInfo,
    pub(crate) sampling: Settings,
    /// Whether names of threads are found out by what the sideband tells.
    pub(crate) names_threads: bool,
    /// A symbol of the kernel's, with its address.
    pub(crate) kernel: Option<(Box<[u8]>, u64)>,
    pub(crate) events: Vec<EventOf>,
}

packed! {
    Start { system, sampling, names_threads, kernel, events }
    EventOf { name, has_stack, made_by }
    Shortest { off_cpu, wall_clock, locks }
    ClockAnchor { monotonic, realtime, boottime }
    ClockReading { anchor, off_by }
    Column { name, unit }
    Table { name, columns, rows }
    Histogram { name, label, unit, first_end, buckets, sum }
    ToldLife { pid, name, parent, parent_name, executed, start, end }
    ToldProgram { time, arguments, are_cut }
    Faults { absent_pages, busy_mappings, no_registers }
    Ending {
        backend, began, stopping, end, clock_at_start, clock_at_end, losses, account, warnings, not_captured, family,
        kernel, first_sample
    }
}

/// An event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventOf {
    pub(crate) name: String,
    has_stack: bool,
    made_by: MadeBy,
}

/// What made its records.
#[derive(Clone, Debug, PartialEq, Eq)]
enum MadeBy {
    /// A program of ours, which its name tells.
    Program,
    /// A tracepoint, or a probe, with its format as tracefs has it.
    Tracepoint(String),
    Software(u32),
    Hardware(u32),
    Raw(u64),
}

impl EventOf {
    /// `None` for one whose format nobody tells but the program that asked for it.
    pub(crate) fn of(hook: &Hook) -> Option<Self> {
        let made_by = match hook.trigger {
            Trigger::Program(_) if hook.functions.is_none() => MadeBy::Program,
            Trigger::Tracepoint(_) => {
                MadeBy::Tracepoint(Tracefs::open().ok()?.format(&hook.tracefs_name()?).ok()?)
            }
            Trigger::Software(id) => MadeBy::Software(id),
            Trigger::Hardware(id) => MadeBy::Hardware(id),
            Trigger::Raw(number) => MadeBy::Raw(number),
            Trigger::Program(_) | Trigger::OwnSource | Trigger::BpfMap => return None,
        };
        Some(Self { made_by, ..Self::named(hook) })
    }

    fn named(hook: &Hook) -> Self {
        let has_stack = hook.event.flags().contains(EventFlags::CALLSTACK);
        Self { name: hook.event.name().to_owned(), has_stack, made_by: MadeBy::Program }
    }

    /// Whether a hook takes its records.
    pub(crate) fn is_of(&self, hook: &Hook) -> bool {
        let made_by = match hook.trigger {
            Trigger::Program(_) => matches!(self.made_by, MadeBy::Program),
            Trigger::Tracepoint(_) => matches!(self.made_by, MadeBy::Tracepoint(_)),
            Trigger::Software(id) => self.made_by == MadeBy::Software(id),
            Trigger::Hardware(id) => self.made_by == MadeBy::Hardware(id),
            Trigger::Raw(number) => self.made_by == MadeBy::Raw(number),
            Trigger::OwnSource | Trigger::BpfMap => false,
        };
        let Self { name, has_stack, .. } = Self::named(hook);
        made_by && (self.name == name) && (self.has_stack == has_stack)
    }

    /// The event, without filter and closures; `None` for one that there is none of.
    fn hook(&self) -> Option<Hook> {
        let plain = |id: u64, trigger| Some(Hook::of(Event::new(EventId(id), self.name.as_str()), trigger));
        let mut hook = match &self.made_by {
            MadeBy::Program => {
                let mut all = SessionSettings::default();
                for scenario in &SCENARIOS {
                    scenario.register(&mut all);
                }
                let is_it = |hook: &Hook| matches!(hook.trigger, Trigger::Program(program) if program.name() == self.name);
                all.events.into_iter().find(is_it)?
            }
            MadeBy::Tracepoint(text) => {
                let (id, format) = parse_format(text).ok()?;
                let mut event = Event::new(id, self.name.as_str());
                *event.format_mut() = format;
                Hook::tracepoint(event)
            }
            MadeBy::Software(id) => plain((*id).into(), Trigger::Software(*id))?,
            MadeBy::Hardware(id) => plain((*id).into(), Trigger::Hardware(*id))?,
            MadeBy::Raw(number) => plain(*number, Trigger::Raw(*number))?,
        };
        hook.event.flags_mut().set(EventFlags::CALLSTACK, self.has_stack);
        Some(hook)
    }
}

impl Start {
    /// The events, without filters and closures; `None` where there is one that there is none of.
    pub(crate) fn hooks(&self) -> Option<Vec<Hook>> {
        self.events.iter().map(EventOf::hook).collect()
    }
}

impl Packed for MadeBy {
    fn pack(&self, out: &mut Vec<u8>) {
        match self {
            Self::Program => 0_u8.pack(out),
            Self::Tracepoint(format) => {
                1_u8.pack(out);
                format.pack(out);
            }
            Self::Software(id) => (2_u8, *id).pack(out),
            Self::Hardware(id) => (3_u8, *id).pack(out),
            Self::Raw(number) => (4_u8, *number).pack(out),
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        Some(match u8::unpack(from)? {
            0 => Self::Program,
            1 => Self::Tracepoint(Packed::unpack(from)?),
            2 => Self::Software(Packed::unpack(from)?),
            3 => Self::Hardware(Packed::unpack(from)?),
            4 => Self::Raw(Packed::unpack(from)?),
            _ => return None,
        })
    }
}

/// What is known of the machine when a session begins.
impl Packed for SystemInfo {
    fn pack(&self, out: &mut Vec<u8>) {
        for text in [&self.host, &self.kernel, &self.architecture, &self.distribution, &self.processor] {
            text.pack(out);
        }
        (self.memory, (self.cpus, self.command.clone())).pack(out);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        let mut text = || String::unpack(from);
        let (host, kernel, architecture) = (text()?, text()?, text()?);
        let (distribution, processor) = (text()?, text()?);
        let (memory, (cpus, command)) = Packed::unpack(from)?;
        let system = Self { host, kernel, architecture, distribution, processor, ..Self::default() };
        Some(Self { memory, cpus, command, ..system })
    }
}

/// What matters when records are there: whose they are to be was decided before, but for names of threads.
impl Packed for Settings {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.clock, (self.frequency, self.off_cpu_period)).pack(out);
        (self.allocation_period, (self.mapped_period, self.shortest)).pack(out);
        (self.targets.command, self.targets.comm.clone()).pack(out);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        let (clock, (frequency, off_cpu_period)) = Packed::unpack(from)?;
        let (allocation_period, (mapped_period, shortest)) = Packed::unpack(from)?;
        let (command, comm) = Packed::unpack(from)?;
        let targets = Targets { command, comm, ..Targets::default() };
        let settings = Self { clock, frequency, targets, off_cpu_period, shortest, ..Self::default() };
        Some(Self { allocation_period, mapped_period, ..settings })
    }
}

impl Packed for Unit {
    fn pack(&self, out: &mut Vec<u8>) {
        let number: u8 = match self {
            Self::Count => 0,
            Self::Nanoseconds => 1,
            Self::Bytes => 2,
        };
        number.pack(out);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        [Self::Count, Self::Nanoseconds, Self::Bytes].get(usize::from(u8::unpack(from)?)).copied()
    }
}

impl Packed for Exit {
    fn pack(&self, out: &mut Vec<u8>) {
        match self {
            Self::Code(code) => (0_u8, *code).pack(out),
            Self::Signal(number) => (1_u8, *number).pack(out),
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        match u8::unpack(from)? {
            0 => Packed::unpack(from).map(Self::Code),
            1 => Packed::unpack(from).map(Self::Signal),
            _ => None,
        }
    }
}

/// Without warnings, which [`Ending`] has.
impl Packed for Account {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.bytes_copied, (self.bpf_run_ns, self.bpf_run_count)).pack(out);
        self.faults.pack(out);
        self.histograms.pack(out);
        self.tables.pack(out);
        self.lives.pack(out);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        let (bytes_copied, (bpf_run_ns, bpf_run_count)) = Packed::unpack(from)?;
        let faults = Packed::unpack(from)?;
        let (histograms, tables) = Packed::unpack(from)?;
        let lives = Packed::unpack(from)?;
        let figures = Self { bytes_copied, bpf_run_ns, bpf_run_count, faults, ..Self::default() };
        Some(Self { histograms, tables, lives, ..figures })
    }
}

/// Of a ledger what was lost. What was delivered whoever takes the records counts.
impl Packed for Ledger {
    fn pack(&self, out: &mut Vec<u8>) {
        let lost: Vec<_> = self.causes().map(|(cause, count)| (cause.name().to_owned(), count)).collect();
        lost.pack(out);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        let mut ledger = Self::default();
        for (name, count) in Vec::<(String, u64)>::unpack(from)? {
            ledger.lose(LossCause::named(&name)?, count);
        }
        Some(ledger)
    }
}

/// What is known of a session in the end, beside its records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending {
    /// What recorded.
    pub(crate) backend: String,
    /// The kernel's release.
    pub(crate) kernel: String,
    pub(crate) began: Nanos,
    /// When it began to end.
    pub(crate) stopping: Nanos,
    pub(crate) end: Nanos,
    pub(crate) clock_at_start: Option<ClockAnchor>,
    pub(crate) clock_at_end: Option<ClockAnchor>,
    /// What the sources lost.
    pub(crate) losses: Ledger,
    /// Their figures.
    pub(crate) account: Account,
    /// Things a user should know, a line each, as far as the records do not tell.
    pub(crate) warnings: Vec<String>,
    /// Records that there was no place for in a `perf.data` beside.
    pub(crate) not_captured: u64,
    /// Where what is recorded was chosen: the processes that were named, with all that they made, and when each was made.
    pub(crate) family: Option<Vec<(Pid, Nanos)>>,
    /// Nanoseconds from the start to the first sample.
    pub(crate) first_sample: Option<u64>,
}
