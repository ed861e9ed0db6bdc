//! `collector run`: records, writes, and tells how it went.

use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{self, ExitCode, ExitStatus};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use collector_common::event::near;
use collector_common::record::ExportMachine;
use collector_user::output::Places;
use collector_user::scenario::{self, SCENARIOS, Scenario, ScenarioOption};
use collector_user::session::{self, Command, Ended, Recording, Session, SessionError, SessionSettings};
use collector_user::source::{Hook, Named, Settings, Targets};
use export::format::Profile;
use export::symbolize::Detail;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use crate::args::{Backend, RunArgs, detail};
use crate::counted::print_counted;
use crate::events;
use crate::finished::{self, refuse_no_command};
use crate::kind;
use crate::lives::print_lives;
use crate::options::{self, Options, Place};
use crate::output::{kept_events, tell_failures};
use crate::progress::{ProgressLine, summarize};
use crate::raw::{self, RawOutput, is_raw, refuse_no_inline};
use crate::{Usage, say};

/// A checked command line.
struct Plan {
    settings: SessionSettings,
    outputs: Outputs,
    command: Option<Command>,
}

/// Where everything goes.
struct Outputs {
    finished: finished::Outputs,
    raw: Vec<RawOutput>,
    detail: Detail,
    /// The kind of samples that is to be shown.
    kind: Option<String>,
}

pub(crate) fn run(args: RunArgs, started: Instant) -> anyhow::Result<ExitCode> {
    let (stop, signals) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // A recording under `nohup` outlives its terminal.
        if signal != SIGHUP || !is_ignored(SIGHUP) {
            signal_hook::low_level::pipe::register(signal, signals.try_clone()?)?;
        }
    }
    // A file that grows beyond `ulimit -f` fails to be written then, and nothing else does.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let plan = Plan::of(args, started)?;
    let sampling = plan.settings.sampling.clone();
    let command = plan.command.as_ref().map(Command::pid);
    let mut line = ProgressLine::new(plan.settings.duration);
    let mut session = Session::start(plan.settings, plan.command).map_err(of_request)?;
    let ended = session.run(stop.as_fd(), |progress| line.update(progress))?;
    line.clear();
    let recording = session.finish()?;
    abandon_when_told_twice(stop)?;
    say(&summarize(&recording));
    print_counted(&recording.machine);
    print_lives(&recording.machine);
    if recording.ledger.delivered() == 0 && !has_counted(&recording.machine) {
        say(&format!("warning: no samples: {}", why_nothing(&sampling, command.is_some())));
    }
    match (ended, command) {
        (Ended::Command(status), _) => say(&format!("the command {}", describe(status))),
        (Ended::Processes, _) => say("the recorded processes have ended"),
        (Ended::Duration | Ended::Stopped, Some(pid)) => say(&format!("the command (pid {pid}) goes on")),
        (Ended::Duration | Ended::Stopped, None) => {}
    }
    write(recording, plan.outputs)?;
    Ok(ExitCode::SUCCESS)
}

/// What is wrong with what was asked for is told as that.
fn of_request(error: SessionError) -> anyhow::Error {
    match error {
        SessionError::Events { .. } => Usage(format!("-e, -s: {error}")).into(),
        error => error.into(),
    }
}

/// Whether the program was started with a signal ignored: `SigIgn` in `proc_pid_status(5)`.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 != 0
}

impl Plan {
    fn of(args: RunArgs, started: Instant) -> anyhow::Result<Self> {
        let backend = backend(args.backend)?;
        let detail = detail(args.no_inline, args.no_symbols);
        if args.no_inline {
            refuse_no_inline(&args.outputs, args.format.as_deref())?;
        }
        kind::refuse_of_records(args.kind.as_deref(), &args.outputs, args.format.as_deref())?;
        refuse_no_command(args.command.is_empty())?;
        let mut taken = Places::default();
        let (raw, others): (Vec<_>, Vec<_>) =
            args.outputs.iter().partition(|path| is_raw(path, args.format.as_deref()));
        let others = others.into_iter().map(PathBuf::as_path);
        let mut finished =
            finished::Outputs::open(others, args.format.as_deref(), args.outputs.is_empty(), &mut taken)?;
        let raw: Vec<_> =
            raw.into_iter().map(|path| RawOutput::open(path, &mut taken)).collect::<anyhow::Result<_>>()?;
        let capture = raw.first().map(RawOutput::file).transpose()?;
        finished.open_stats(args.stats.as_deref(), &mut taken)?;
        if args.comm.as_deref() == Some("") {
            return Err(Usage("--comm is empty: name a program as `ps -o comm` does".to_owned()).into());
        }
        let pids = args.pids.into_iter().collect();
        let targets = Targets { pids, cgroup: args.cgroup, comm: args.comm, ..Targets::default() };
        // Records that are kept for later are those of perf events.
        let by_programs = backend != session::Backend::Perf && raw.is_empty();
        let Named { hooks: events, clock } = events::parse(&args.events, by_programs)?;
        let mut sampling = Settings { clock, frequency: args.frequency, targets, ..Settings::default() };
        let scenarios = scenarios(&args.scenarios, events.is_empty() && !clock, &mut sampling)?;
        let (event_bytes, events_passed_over) =
            kept_events(&finished.profiles, events.iter().map(|hook| hook.event.name()));
        let mut settings = SessionSettings {
            sampling,
            events,
            duration: args.duration,
            backend,
            event_bytes,
            events_passed_over,
            capture,
            started: Some(started),
            ..SessionSettings::default()
        };
        for (scenario, hook) in
            scenarios.iter().flat_map(|it| settings.events.iter().map(move |hook| (it, hook)))
        {
            if scenario.gives_way_to.contains(&hook.event.name()) {
                say(&given_way(scenario, hook));
            }
        }
        for scenario in &scenarios {
            scenario.register(&mut settings);
        }
        if !raw.is_empty() && finished.profiles.is_empty() {
            refuse_nothing(&settings, scenarios.iter().map(|scenario| scenario.name))?;
        }
        kind::refuse_unrecorded(args.kind.as_deref(), &settings)?;
        let command = if args.command.is_empty() { None } else { Some(Command::start(&args.command)?) };
        Ok(Self { settings, outputs: Outputs { finished, raw, detail, kind: args.kind }, command })
    }
}

/// The scenarios of these names; without any, and with nothing else to record, what runs on the CPUs. `off_cpu:min=10ms` leaves out
/// what is shorter, `memory_tracking:every=64KiB` has one stack for about so many bytes.
fn scenarios(
    named: &[String],
    nothing_else: bool,
    sampling: &mut Settings,
) -> Result<Vec<&'static Scenario>, Usage> {
    let default = "cpu".to_owned();
    let named = if named.is_empty() && nothing_else { std::slice::from_ref(&default) } else { named };
    let find = |name: &str| {
        scenario::by_name(name).ok_or_else(|| {
            let near = near(name, SCENARIOS.iter().flat_map(|scenario| [scenario.name, scenario.alias]));
            let hint = if name.contains(',') {
                ": each has a `-s` of its own".to_owned()
            } else if near.is_empty() {
                String::new()
            } else {
                format!(": did you mean {}?", near.join(" or "))
            };
            Usage(format!("no scenario is called `{name}`{hint}; `collector list scenarios` lists them"))
        })
    };
    let mut found: Vec<&Scenario> = Vec::new();
    let mut options = Options::default();
    for named in named {
        let scenario = find(options::split(named).0)?;
        let place = scenario.option.map(|option| match option {
            ScenarioOption::Shortest(of) => Place::Shortest(of(sampling)),
            ScenarioOption::Every(of) => Place::Every(of(sampling)),
        });
        let all = SCENARIOS.iter().filter_map(|it| Some(format!("{}:{}", it.name, example(it.option?))));
        options.take(named, scenario.name, place, all)?;
        found.push(scenario);
    }
    Ok(found)
}

/// Scenarios of which nothing has a place in a `perf.data`, where there are no other outputs.
fn refuse_nothing<'a>(
    settings: &SessionSettings,
    scenarios: impl Iterator<Item = &'a str>,
) -> Result<(), Usage> {
    if settings.sampling.clock || settings.events.iter().any(Hook::is_captured) {
        return Ok(());
    }
    let names: Vec<_> = scenarios.collect();
    Err(Usage(format!(
        "-s {}: {} has no place for what programs in the kernel measure, and nothing would be in it: name another output, or \
         sample the CPUs, too, by -s cpu",
        names.join(" -s "),
        raw::NAME
    )))
}

/// An event records a scenario's samples in its place.
fn given_way(scenario: &Scenario, hook: &Hook) -> String {
    let (event, scenario) = (hook.event.name(), scenario.name);
    format!(
        "warning: -e {event} records each of them by plain perf events; {scenario} has no samples and no table of those"
    )
}

/// How an option is written.
const fn example(option: ScenarioOption) -> &'static str {
    match option {
        ScenarioOption::Shortest(_) => options::SHORTEST,
        ScenarioOption::Every(_) => options::EVERY,
    }
}

/// The backend as the library names it.
fn backend(backend: Backend) -> Result<session::Backend, Usage> {
    match backend {
        Backend::Auto => Ok(session::Backend::Auto),
        Backend::Ebpf => Ok(session::Backend::Ebpf),
        Backend::Perf => Ok(session::Backend::Perf),
        Backend::Etw => Err(Usage(
            "--backend etw is of Windows alone: on Linux use --backend ebpf or --backend perf".to_owned(),
        )),
    }
}

/// Whether anything was counted beside samples.
fn has_counted(machine: &ExportMachine) -> bool {
    !machine.tables().is_empty() || !machine.histograms().is_empty() || !machine.lives().is_empty()
}

/// Why there may be no samples, and what helps.
fn why_nothing(sampling: &Settings, command: bool) -> &'static str {
    let targets = &sampling.targets;
    if !sampling.clock {
        "nothing of what was asked for happened, or -p, --cgroup, --comm and filters leave it out; `-s cpu_profiling` beside \
         it samples by the clock, too"
    } else if targets.cgroup.is_some() || targets.comm.is_some() || !targets.pids.is_empty() {
        "what was to be recorded was idle, or -p, --cgroup and --comm name other processes than meant"
    } else if command {
        "the command was idle, or ended within a period of the sampling clock, which a higher -F makes shorter"
    } else {
        "all CPUs were idle, or the recording was shorter than a period of the sampling clock"
    }
}

/// From here on a first signal is answered, and a second one ends the program: an output may be slow, or wait for a
/// reader for ever. Signals that came before have ended the recording.
fn abandon_when_told_twice(mut signals: UnixStream) -> io::Result<()> {
    signals.set_nonblocking(true)?;
    while signals.read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0) {}
    signals.set_nonblocking(false)?;
    thread::spawn(move || {
        for line in ["the recording is being written: a second signal abandons it", "abandoned"] {
            if signals.read_exact(&mut [0]).is_err() {
                return;
            }
            say(&format!("collector: {line}"));
        }
        process::exit(1);
    });
    Ok(())
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// Puts the files into place that hold the records themselves; the first was written while it was recorded.
fn write_raw(recording: &Recording, outputs: Vec<RawOutput>) -> Vec<anyhow::Result<()>> {
    if outputs.is_empty() {
        return Vec::new();
    }
    if let Some(failure) = &recording.capture_failure {
        return vec![Err(anyhow::anyhow!("the records could not be kept: {failure}"))];
    }
    let first = outputs[0].file();
    let filled = outputs.into_iter().enumerate().map(|(index, mut output)| {
        if index > 0 {
            output.copy_from(first.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?)?;
        }
        output.finish()
    });
    filled.collect()
}

/// Writes everything that can be written; the last failure is given, the others are told.
fn write(mut recording: Recording, outputs: Outputs) -> anyhow::Result<()> {
    let Outputs { mut finished, raw, detail, kind } = outputs;
    let chosen = kind::choose_for(&mut recording.machine, kind.as_deref(), &mut finished.profiles);
    let kept: Vec<_> = raw.iter().map(RawOutput::name).collect();
    let mut results = write_raw(&recording, raw);
    // What was recorded is written all the same.
    results.extend(chosen.err().map(|error| Err(error.into())));
    let symbols = recording.symbolize_to(detail);
    tell_failures(&recording.machine, &symbols);
    let profile = Profile { machine: &recording.machine, symbols: &symbols };
    raw::tell_left_out(&kept, recording.captured(), profile);
    finished.write(profile, results, || recording.stats_now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_that_would_leave_nothing_are_refused() {
        for (names, is_refused) in [
            (&["off_cpu"][..], true),
            (&["locks", "scheduling"], true),
            (&["off_cpu", "cpu_profiling"], false),
            (&["page_faults"], false),
            (&["memory_growth"], false),
        ] {
            let sampling = Settings { clock: false, ..Settings::default() };
            let mut settings = SessionSettings { sampling, ..SessionSettings::default() };
            for name in names {
                scenario::by_name(name).unwrap().register(&mut settings);
            }
            let refused = refuse_nothing(&settings, names.iter().copied());
            assert_eq!(refused.is_err(), is_refused, "{names:?}");
        }
        let mut settings = SessionSettings::default();
        settings.sampling.clock = false;
        settings.events.extend(Hook::counter("cs"));
        assert!(refuse_nothing(&settings, ["off_cpu"].into_iter()).is_ok());
    }
}
