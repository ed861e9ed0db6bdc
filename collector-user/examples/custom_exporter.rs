//! A format of one's own: samples by thread, as CSV, a file for each name of processes, of a command and its children alone.
//! `sudo cargo run --example custom_exporter -- FOLDER COMMAND ARG...`

#[cfg(target_os = "linux")]
mod threads {
    use std::collections::BTreeMap;
    use std::io::{self, Write};

    use export::format::{ExportFormat, Holds, Part, Profile};

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

        /// What a recording has beside it is told to be left out.
        fn holds(&self) -> Holds {
            Holds::nothing().with(&[Part::Processes, Part::Renames])
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
    use collector_user::universal::{ExportSettings, UniversalExporter};
    use std::process::Command;

    let mut args = std::env::args_os().skip(1);
    let [Some(folder), Some(program)] = [args.next(), args.next()] else {
        anyhow::bail!("usage: custom_exporter FOLDER COMMAND ARG...")
    };
    let path = std::path::Path::new(&folder).join("threads.csv");
    let settings = ExportSettings::default().with_scenario("cpu_profiling").split_by_comm();
    let own = std::process::id();
    let mut exporter = UniversalExporter::new(settings)
        .with_format(path, Box::new(threads::Threads))
        // What was recorded of the whole machine is there, and only the command's samples are kept.
        .with_parsed_hook(move |machine| {
            machine.apply_custom_filter(|machine, sample| {
                let process = machine.thread(sample.thread).process;
                let parent = |id: &_| machine.process(*id).parent;
                let mut above = std::iter::successors(Some(process), parent).skip(1).take(64);
                above.any(|id| machine.process(id).pid.0 == own)
            });
            let programs = machine.programs().len();
            machine.add_custom_metric("programs", programs as f64, "");
        });
    exporter.start_collection()?;
    Command::new(program).args(args).status()?;
    let exported = exporter.stop_and_export()?;
    for left_out in &exported.left_out {
        println!("{left_out}");
    }
    for path in &exported.written {
        println!("{}:", path.display());
        print!("{}", std::fs::read_to_string(path)?);
    }
    for metric in exported.recording.machine.metrics() {
        println!("{metric}");
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("recording works on Linux");
}
