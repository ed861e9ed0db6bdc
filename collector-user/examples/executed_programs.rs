//! A closure on a tracepoint: prints each program that a command executes, as it does.
//! `sudo cargo run --example executed_programs -- make -j8`

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<()> {
    use anyhow::Context as _;
    use collector_user::session::{Command, Session, SessionSettings};
    use collector_user::source::{Hook, Settings};
    use collector_user::tracefs::Tracefs;

    let mut event = Tracefs::open()?.event("sched:sched_process_exec")?;
    // Names are looked up once; a getter is a load then.
    let file = event.format().field_ref("filename").context("the event has no filename")?;
    event.add_closure(move |data| {
        let context = data.context().context("this source tells when and where")?;
        println!("{} {}", context.pid, data.try_get_str(file)?);
        Ok(())
    });
    let sampling = Settings { clock: false, ..Settings::default() };
    let settings =
        SessionSettings { sampling, events: vec![Hook::tracepoint(event)], ..SessionSettings::default() };
    let line: Vec<_> = std::env::args_os().skip(1).collect();
    let mut session = Session::start(settings, Some(Command::start(&line)?))?;
    // Until the command ends.
    session.parse_until(|_progress| false)?;
    for warning in session.finish()?.warnings {
        eprintln!("{warning}");
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("recording works on Linux");
}
