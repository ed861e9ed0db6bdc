//! Raw events of the scheduler in, what Linux's own tracer tells of them out, of which readers make a row for each CPU, and the states
//! of threads with who woke them (`src/trace_processor/importers/ftrace` of google/perfetto).
//!
//! A reader takes a thread to run on a CPU from a switch to it until the next switch of that CPU, and a state to last until the next one
//! that is told. So switches say what is true only where all of them are there: on each CPU the thread that one leads to is the one that
//! the next comes from. Where it is not, one is missing in between. If there are more such places than events were lost, they were not
//! asked for, as with `-p` or a filter, and nothing of this is written. If there are not, the events behind say that some are missing.

use std::mem;

use collector_common::event::{EventData, EventFieldRef, EventFormat, Value};
use collector_common::record::{EventRecord, EventRecordId, ExportMachine, Happened, ThreadId};

use super::proto::{FtraceEvent, FtraceEventBundle, SchedSwitch, SchedWakeup, Scheduled};
use crate::table::Table;

/// Names of the events that are read here: of switches, and of threads that are woken.
pub(super) const EVENTS: [&str; 4] = [SWITCH, WAKING, WAKEUP, WAKEUP_NEW];
const SWITCH: &str = "sched:sched_switch";
const WAKING: &str = "sched:sched_waking";
const WAKEUP: &str = "sched:sched_wakeup";
const WAKEUP_NEW: &str = "sched:sched_wakeup_new";

/// A reader takes a trace with a CPU beyond these for broken.
const CPUS: u16 = 1024;

/// Events of a CPU that are written together.
const TOGETHER: usize = 256;

/// Where the fields of a kind of event are.
enum Fields {
    Switch(Switch),
    Wakeup(Wakeup, fn(SchedWakeup) -> Scheduled),
}

struct Switch {
    prev: Thread,
    prev_state: EventFieldRef,
    next: Thread,
}

struct Wakeup {
    thread: Thread,
    target_cpu: Option<EventFieldRef>,
}

struct Thread {
    comm: Option<EventFieldRef>,
    pid: EventFieldRef,
    prio: Option<EventFieldRef>,
}

impl Thread {
    fn of(format: &EventFormat, prefix: &str) -> Option<Self> {
        let field = |name: &str| format.field_ref(&format!("{prefix}{name}"));
        Some(Self { comm: field("comm"), pid: field("pid")?, prio: field("prio") })
    }
}

impl Fields {
    fn of(name: &str, format: &EventFormat) -> Option<Self> {
        let wakeup = |told| {
            let thread = Thread::of(format, "")?;
            Some(Self::Wakeup(Wakeup { thread, target_cpu: format.field_ref("target_cpu") }, told))
        };
        match name {
            SWITCH => {
                let [prev, next] = ["prev_", "next_"].map(|prefix| Thread::of(format, prefix));
                let prev_state = format.field_ref("prev_state")?;
                Some(Self::Switch(Switch { prev: prev?, prev_state, next: next? }))
            }
            WAKING => wakeup(Scheduled::Waking),
            WAKEUP => wakeup(Scheduled::Wakeup),
            WAKEUP_NEW => wakeup(Scheduled::WakeupNew),
            _ => None,
        }
    }

    /// What an event says; none where its bytes are too few.
    fn told(&self, data: &EventData<'_>) -> Option<Scheduled> {
        let number = |field| match data.value(field) {
            Ok(Value::Signed(number)) => Some(number),
            Ok(Value::Unsigned(number)) => i64::try_from(number).ok(),
            _ => None,
        };
        let small = |field: Option<EventFieldRef>| i32::try_from(number(field?)?).ok();
        let text = |field: Option<EventFieldRef>| match field.map(|field| data.value(field)) {
            Some(Ok(Value::Text(text))) => text.to_string(),
            _ => String::new(),
        };
        Some(match self {
            Self::Switch(Switch { prev, prev_state, next }) => Scheduled::Switch(SchedSwitch {
                prev_comm: text(prev.comm),
                prev_pid: Some(small(Some(prev.pid))?),
                prev_prio: small(prev.prio),
                prev_state: Some(number(*prev_state)?),
                next_comm: text(next.comm),
                next_pid: Some(small(Some(next.pid))?),
                next_prio: small(next.prio),
            }),
            Self::Wakeup(Wakeup { thread, target_cpu }, told) => told(SchedWakeup {
                comm: text(thread.comm),
                pid: Some(small(Some(thread.pid))?),
                prio: small(thread.prio),
                target_cpu: small(*target_cpu),
            }),
        })
    }
}

/// Which thread runs on each CPU, by what switches say.
#[derive(Default)]
struct Running(Table<u16, i32>);

impl Running {
    /// Takes the next switch of a CPU, and says whether one is missing before it.
    fn switch(&mut self, cpu: u16, switch: &SchedSwitch) -> bool {
        let before = self.0.insert(cpu, switch.next_pid.unwrap_or(0));
        before.is_some_and(|before| Some(before) != switch.prev_pid)
    }
}

/// What is written of the scheduler, and what waits for it.
pub(super) struct Scheduling<'a> {
    machine: &'a ExportMachine,
    /// By kind of event; empty where nothing is written.
    kinds: Vec<Option<Fields>>,
    running: Running,
    waiting: Table<u16, FtraceEventBundle>,
}

impl<'a> Scheduling<'a> {
    pub(super) fn of(machine: &'a ExportMachine) -> Self {
        let kinds = machine.event_kinds().iter();
        let kinds = kinds.map(|kind| Fields::of(machine.string(kind.name), &kind.format)).collect();
        let mut this = Self { machine, kinds, running: Running::default(), waiting: Table::default() };
        if !this.is_whole() {
            this.kinds.clear();
        }
        this
    }

    /// Whether there are switches, and all that there were, but for those that were lost.
    fn is_whole(&self) -> bool {
        if !self.kinds.iter().any(|kind| matches!(kind, Some(Fields::Switch(_)))) {
            return false;
        }
        let (mut running, mut missing, mut has_switches) = (Running::default(), 0, false);
        for (_, happened) in self.machine.in_time_order() {
            if let Happened::SampledEvent(_, id) | Happened::Event(id) = happened
                && let Some((record, Scheduled::Switch(switch))) = self.told(id)
            {
                has_switches = true;
                missing += u64::from(running.switch(record.cpu, &switch));
            }
        }
        has_switches && missing <= self.machine.system().lost.unwrap_or(0)
    }

    /// Whether anything is written.
    pub(super) fn is_there(&self) -> bool {
        !self.kinds.is_empty()
    }

    fn told(&self, id: EventRecordId) -> Option<(EventRecord, Scheduled)> {
        let (record, bytes) = self.machine.event_records().get(id)?;
        let position = usize::from(record.kind.0);
        let kind = self.machine.event_kinds().get(position)?;
        let told = self.kinds.get(position)?.as_ref()?.told(&EventData::new(bytes, bytes, &kind.format))?;
        (record.cpu < CPUS).then_some((record, told))
    }

    /// Takes an event, at a time of the clock that those of the tracer have. Out: if it is one of the scheduler the thread that ran; and
    /// events of its CPU, when there are enough of them.
    pub(super) fn take(
        &mut self,
        id: EventRecordId,
        timestamp: u64,
    ) -> (Option<ThreadId>, Option<FtraceEventBundle>) {
        let Some((record, event)) = self.told(id) else { return (None, None) };
        let cpu = record.cpu;
        let lost_events = match &event {
            Scheduled::Switch(switch) => self.running.switch(cpu, switch),
            _ => false,
        };
        let waiting = self.waiting.entry(cpu).or_default();
        let is_full = lost_events || waiting.event.len() >= TOGETHER;
        let full = (is_full && !waiting.event.is_empty()).then(|| mem::take(waiting));
        waiting.cpu = Some(cpu.into());
        waiting.lost_events |= lost_events;
        let pid = match &event {
            // One that the kernel has released has no id of its own any more.
            Scheduled::Switch(switch) => switch.prev_pid.and_then(|pid| pid.try_into().ok()),
            _ => Some(self.machine.thread(record.thread).tid.0),
        };
        waiting.event.push(FtraceEvent { timestamp: Some(timestamp), pid, event: Some(event) });
        (Some(record.thread), full)
    }

    /// What waits still, by CPU.
    pub(super) fn rest(&mut self) -> Vec<FtraceEventBundle> {
        let mut rest: Vec<_> = mem::take(&mut self.waiting).into_values().collect();
        rest.sort_by_key(|bundle| bundle.cpu);
        rest
    }
}
