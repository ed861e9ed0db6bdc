//! A format of one's own: samples by thread, as CSV. `sudo cargo run --example custom_exporter -- COMMAND ARG...`

#[cfg(target_os = "linux")]
mod threads {
    use std::collections::BTreeMap;
    use std::io::{self, Write};

    use export::format::{ExportFormat, Profile};

    /// `process,thread,samples`, a line for each thread.
    pub(super) struct Threads;

    impl ExportFormat for Threads {
        fn name(&self) -> &'static str {
            "threads"
        }

        fn ending(&self) -> &'static str {
            ".csv"
        }

        fn description(&self) -> &'static str {
            "samples by thread"
        }

        fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
            let machine = profile.machine;
            let mut counts = BTreeMap::new();
            for sample in machine.samples().iter() {
                *counts.entry(sample.thread).or_insert(0_u64) += 1;
            }
            writeln!(out, "process,thread,samples")?;
            for (thread, samples) in counts {
                let thread = machine.thread(thread);
                let process = machine.process(thread.process);
                let [process, thread] = [process.name, thread.name].map(|name| machine.string(name));
                writeln!(out, "{process},{thread},{samples}")?;
            }
            Ok(())
        }
    }
}

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<()> {
    use collector_user::session::{Command, Session, SessionSettings};
    use export::format::{ExportFormat as _, Profile};
    use std::{os::fd::AsFd as _, os::unix::net::UnixStream};

    let line: Vec<_> = std::env::args_os().skip(1).collect();
    let mut session = Session::start(SessionSettings::default(), Some(Command::start(&line)?))?;
    let (stop, _keep) = UnixStream::pair()?;
    session.run(stop.as_fd(), |_progress| {})?;
    let recording = session.finish()?;
    let profile = Profile { machine: &recording.machine, symbols: &recording.symbolize() };
    threads::Threads.write(profile, &mut std::io::stdout())?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("recording works on Linux");
}
