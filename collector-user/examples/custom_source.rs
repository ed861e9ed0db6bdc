//! An event source of one's own: the load of the machine, read from `/proc/loadavg` ten times a second, goes through the same
//! filter and closures as the kernel's events do. `sudo cargo run --example custom_source`

#[cfg(target_os = "linux")]
mod load {
    use std::io;
    use std::time::{Duration, Instant};

    use bytemuck::Zeroable as _;
    use collector_common::ids::Nanos;
    use collector_common::loss::Ledger;
    use collector_common::wire::SampleHeader;
    use collector_user::clock;
    use collector_user::source::{Account, EventIndex, Source, SourceRecord};

    /// Reads the load when it is drained, at most ten times a second: the session's own timer is enough.
    pub(super) struct Load {
        last: Option<Instant>,
    }

    impl Load {
        pub(super) fn new() -> Self {
            Self { last: None }
        }
    }

    impl Source for Load {
        fn name(&self) -> &'static str {
            "load"
        }

        fn drain(&mut self, _: Nanos, visit: &mut dyn FnMut(&SourceRecord<'_>)) {
            if self.last.is_some_and(|last| last.elapsed() < Duration::from_millis(100)) {
                return;
            }
            self.last = Some(Instant::now());
            let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
            let load: f64 = text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0);
            let mut header = SampleHeader::zeroed();
            header.time = clock::now().0;
            let record = SourceRecord::bare(EventIndex::of_hook(0), &header);
            visit(&SourceRecord { data: &load.to_ne_bytes(), ..record });
        }

        fn dropped(&self) -> u64 {
            0
        }

        fn close(&mut self, _: &mut Ledger) -> io::Result<Account> {
            Ok(Account::default())
        }
    }
}

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<()> {
    use collector_common::event::{Event, EventField, EventId, Extent, FieldKind, FloatWidth, Place, filter};
    use collector_user::session::{Session, SessionSettings};
    use collector_user::source::{Hook, Settings};
    use std::{os::fd::AsFd as _, os::unix::net::UnixStream, time::Duration};

    let mut event = Event::new(EventId(1), "machine:load");
    let kind = FieldKind::Float(FloatWidth::W64);
    let load =
        event.format_mut().add_field(EventField::new("load", "double", kind, Extent::One, Place::At(0)))?;
    event.set_filter(Some(&filter::parse("load >= 0")?))?;
    event.add_closure(move |data| {
        println!("load {}", data.try_get_f64(load)?);
        Ok(())
    });
    let settings = SessionSettings {
        sampling: Settings { clock: false, ..Settings::default() },
        events: vec![Hook::own(event)],
        sources: vec![Box::new(load::Load::new())],
        duration: Some(Duration::from_secs(1)),
        ..SessionSettings::default()
    };
    let mut session = Session::start(settings, None)?;
    let (stop, _keep) = UnixStream::pair()?;
    session.run(stop.as_fd(), |_progress| {})?;
    println!("{} times", session.finish()?.ledger.delivered());
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("recording works on Linux");
}
