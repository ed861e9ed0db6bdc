//! Sources that an embedding program brings.

use std::io;
use std::os::fd::BorrowedFd;
use std::process::Command;
use std::time::Duration;

use bytemuck::Zeroable as _;
use collector_common::event::{Event, EventFlags, EventId};
use collector_common::ids::Nanos;
use collector_common::loss::Ledger;
use collector_common::wire::SampleHeader;
use collector_user::clock;
use collector_user::session::{Backend, Session, SessionSettings};
use collector_user::source::{Account, EventIndex, Hook, Settings, Source, SourceRecord};

use crate::prerequisites::live;
use crate::programs::Running;

/// Tells once of a thread, without its name.
struct Nameless {
    pid: u32,
    told: bool,
}

impl Source for Nameless {
    fn name(&self) -> &'static str {
        "nameless"
    }

    fn start(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn stop(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn drain(&mut self, _: Nanos, visit: &mut dyn FnMut(&SourceRecord<'_>)) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        let header =
            SampleHeader { time: clock::now().0, pid: self.pid, tid: self.pid, ..SampleHeader::zeroed() };
        visit(&SourceRecord {
            event: EventIndex::of_hook(0),
            header: &header,
            is_named: false,
            kernel: &[],
            stack: &[],
            user: &[],
            value: 1,
            data: &[],
        });
    }

    fn dropped(&self) -> u64 {
        0
    }

    fn close(&mut self, _: &mut Ledger) -> io::Result<Account> {
        Ok(Account::default())
    }
}

#[test]
fn a_thread_without_a_name_has_the_one_that_is_known() {
    let Some(_live) = live("a_thread_without_a_name_has_the_one_that_is_known") else { return };
    for backend in [Backend::Ebpf, Backend::Perf] {
        let sleeping = Running::of(Command::new("sleep").arg("1000"));
        let mut told = Event::new(EventId(1), "own:told");
        told.flags_mut().set(EventFlags::CALLSTACK, true);
        let settings = SessionSettings {
            backend,
            sampling: Settings { clock: false, ..Settings::default() },
            events: vec![Hook::own(told)],
            sources: vec![Box::new(Nameless { pid: sleeping.0.id(), told: false })],
            duration: Some(Duration::from_millis(100)),
            ..SessionSettings::default()
        };
        let mut session = Session::start(settings, None).unwrap();
        session.parse_until(|_| false).unwrap();
        let recording = session.finish().unwrap();
        let machine = &recording.machine;
        let names: Vec<&str> = machine
            .samples()
            .iter()
            .map(|sample| machine.string(machine.thread(sample.thread).name))
            .collect();
        assert_eq!(names, ["sleep"], "{backend:?}");
    }
}
