//! Sources that an embedding program brings.

use std::io;
use std::process::Command;
use std::time::Duration;

use bytemuck::Zeroable as _;
use collector_common::event::{Event, EventFlags, EventId};
use collector_common::ids::Nanos;
use collector_common::loss::Ledger;
use collector_common::record::ExportMachine;
use collector_common::sharing::Writable;
use collector_common::wire::SampleHeader;
use collector_user::clock;
use collector_user::recorder::{SampleHook, Verdict};
use collector_user::session::{Backend, Recording, Session, SessionSettings};
use collector_user::source::{Account, EventIndex, Hook, Settings, Source, SourceRecord};

use crate::prerequisites::live;
use crate::programs::Running;
use crate::scenarios::attribute;

/// Tells of a thread without its name, once for each value.
struct Nameless {
    pid: u32,
    values: Vec<u64>,
}

impl Source for Nameless {
    fn name(&self) -> &'static str {
        "nameless"
    }

    fn drain(&mut self, _: Nanos, visit: &mut dyn FnMut(&SourceRecord<'_>)) {
        for value in std::mem::take(&mut self.values) {
            let header =
                SampleHeader { time: clock::now().0, pid: self.pid, tid: self.pid, ..SampleHeader::zeroed() };
            let record = SourceRecord::bare(EventIndex::of_hook(0), &header);
            visit(&SourceRecord { is_named: false, value, ..record });
        }
    }

    fn dropped(&self) -> u64 {
        0
    }

    fn close(&mut self, _: &mut Ledger) -> io::Result<Account> {
        Ok(Account::default())
    }
}

/// Records what the source tells of a thread.
fn record(backend: Backend, source: Nameless, sample_hooks: Vec<SampleHook>) -> Recording {
    let mut told = Event::new(EventId(1), "own:told");
    told.flags_mut().set(EventFlags::CALLSTACK, true);
    let settings = SessionSettings {
        backend,
        sampling: Settings { clock: false, ..Settings::default() },
        events: vec![Hook::own(told)],
        sources: vec![Box::new(source)],
        sample_hooks,
        duration: Some(Duration::from_millis(100)),
        ..SessionSettings::default()
    };
    let mut session = Session::start(settings, None).unwrap();
    session.parse_until(|_| false).unwrap();
    session.finish().unwrap()
}

#[test]
fn a_thread_without_a_name_has_the_one_that_is_known() {
    let Some(_live) = live("a_thread_without_a_name_has_the_one_that_is_known") else { return };
    for backend in [Backend::Ebpf, Backend::Perf] {
        let sleeping = Running::of(Command::new("sleep").arg("1000"));
        let source = Nameless { pid: sleeping.0.id(), values: vec![1] };
        let recording = record(backend, source, Vec::new());
        let machine = &recording.machine;
        let names = machine.samples().iter().map(|sample| machine.string(machine.thread(sample.thread).name));
        assert_eq!(names.collect::<Vec<_>>(), ["sleep"], "{backend:?}");
    }
}

#[test]
fn hooks_change_and_drop_samples() {
    let Some(_live) = live("hooks_change_and_drop_samples") else { return };
    let source = Nameless { pid: std::process::id(), values: vec![1, 2, 3, 4, 5] };
    let seen = Writable::new(Vec::new());
    let seeing = seen.clone();
    let drop_even: SampleHook = Box::new(|view, sample| {
        let label = [(view.intern_string("by"), view.intern_string("a hook"))];
        sample.attributes = view.intern_attributes(&label);
        if sample.value % 2 == 0 { Verdict::Drop } else { Verdict::Keep }
    });
    let multiply: SampleHook = Box::new(move |view, sample| {
        assert_eq!(view.attribute(sample, "by").as_deref(), Some("a hook"));
        seeing.write(|seen| seen.push(sample.value)).unwrap();
        sample.value *= 10;
        Verdict::Keep
    });
    let mut recording = record(Backend::Perf, source, vec![drop_even, multiply]);
    assert_eq!(seen.into_inner().unwrap(), [1, 3, 5], "what the first one dropped the second never sees");
    let machine = &mut recording.machine;
    let values = |machine: &ExportMachine| machine.samples().iter().map(|it| it.value).collect::<Vec<_>>();
    assert_eq!(values(machine), [10, 30, 50]);
    assert!(machine.samples().iter().all(|sample| attribute(machine, &sample, "by") == "a hook"));
    assert_eq!(recording.ledger.delivered(), 5);
    machine.apply_custom_filter(|machine, sample| {
        machine.thread(sample.thread).tid.0 == std::process::id() && sample.value > 10
    });
    assert_eq!(values(machine), [30, 50]);
}
