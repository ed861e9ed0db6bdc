//! A scenario with a filter of its event and a hook on its samples: which threads of a command waited for ten milliseconds or more at
//! once, and for how long in all. `sudo cargo run --example long_waits -- make -j8`

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<()> {
    use collector_common::event::filter;
    use collector_user::recorder::Verdict;
    use collector_user::scenario::by_name;
    use collector_user::session::{Command, Session, SessionSettings};
    use collector_user::source::Settings;
    use std::collections::BTreeMap;

    let sampling = Settings { clock: false, ..Settings::default() };
    let mut settings = SessionSettings { sampling, ..SessionSettings::default() };
    by_name("off_cpu").expect("a scenario that every build has").register(&mut settings);
    // What one wait took is a field of the event. The value of a sample is that only where it stands for one.
    let is_long = filter::parse("blocked_ns >= 10000000")?;
    settings.events.iter_mut().try_for_each(|hook| hook.event.set_filter(Some(&is_long)))?;
    // Whom nobody woke goes on waiting when the command ends.
    settings.sample_hooks.push(Box::new(|view, sample| match view.attribute(sample, "waker") {
        Some(_) => Verdict::Keep,
        None => Verdict::Drop,
    }));
    let line: Vec<_> = std::env::args_os().skip(1).collect();
    let mut session = Session::start(settings, Some(Command::start(&line)?))?;
    session.parse_until(|_progress| false)?;
    let recording = session.finish()?;
    let mut waited: BTreeMap<&str, i64> = BTreeMap::new();
    for sample in recording.machine.samples().iter() {
        let name = recording.machine.string(recording.machine.thread(sample.thread).name);
        *waited.entry(name).or_default() += sample.value;
    }
    for (name, nanoseconds) in waited {
        println!("{name} {} ms", nanoseconds / 1_000_000);
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("recording works on Linux");
}
