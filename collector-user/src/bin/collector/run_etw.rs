//! `collector run` on Windows: Windows records into a file, which is read when it is over.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{self, Child, ExitCode, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use collector_common::event::Guid;
use collector_common::ids::Pid;
use collector_user::etw::{
    Asked, Asking, Patience, Recorded, Request, Shortest, ask_at_end, family, is_gone, name_from_images,
    stop_abandoned_kernel_logger, unanswered, volumes,
};
use collector_user::output::Places;
use collector_user::stats::{self, Stats};
use export::format::Profile;
use export::symbolize::Detail;
use windows_etw::plan::{AliveProcess, Plan, SCENARIOS, SampleInterval, Scenario};
use windows_etw::session::{
    OtherProcess, OwnUsage, SessionError, Sessions, Settings, Stopped, Suspended, Target, console, own_usage,
    providers,
};

use crate::args::{Backend, RunArgs, detail};
use crate::counted::print_counted;
use crate::finished::{Outputs, refuse_no_command, summary};
use crate::kind;
use crate::lives::print_lives;
use crate::options::{self, Options, Place};
use crate::output::{event_bytes, tell_failures};
use crate::trace::{TraceFiles, is_trace};
use crate::{Usage, say};

/// How often it is looked whether the recording is to end.
const LOOK: Duration = Duration::from_millis(20);
/// How often Windows is asked whether the sessions are still there.
const ASK: Duration = Duration::from_secs(1);

pub(crate) fn run(args: RunArgs, started: Instant) -> anyhow::Result<ExitCode> {
    let prepared = Prepared::of(args)?;
    let began_after = started.elapsed();
    let ran = record(&prepared.plan, &prepared.files, &prepared.args)?;
    prepared.finish(ran, began_after)?;
    Ok(ExitCode::SUCCESS)
}

/// A checked command line.
struct Prepared {
    args: RunArgs,
    plan: Plan,
    shortest: Shortest,
    pids: Vec<Pid>,
    outputs: Outputs,
    files: TraceFiles,
}

impl Prepared {
    fn of(args: RunArgs) -> anyhow::Result<Self> {
        refuse(&args)?;
        let pids: Vec<Pid> = args.pids.iter().copied().map(Pid).collect();
        let mut shortest = Shortest::default();
        let plan = plan(&args, &scenarios(&args.scenarios, &mut shortest)?, &pids)?;
        let format = args.format.as_deref();
        let (traces, others): (Vec<&Path>, Vec<&Path>) =
            args.outputs.iter().map(PathBuf::as_path).partition(|path| is_trace(path, format));
        let mut taken = Places::default();
        let mut outputs = Outputs::open(others.iter().copied(), format, args.outputs.is_empty(), &mut taken)?;
        outputs.open_stats(args.stats.as_deref(), &mut taken)?;
        let files = TraceFiles::new(&traces, &others, &mut taken)?;
        let is_of_some = !args.pids.is_empty() || !args.command.is_empty() || args.comm.is_some();
        if is_of_some && !traces.is_empty() {
            say("warning: what Windows writes, the .etl, has all processes in it");
        }
        Ok(Self { args, plan, shortest, pids, outputs, files })
    }

    /// What there is of the recording becomes its outputs, also where it did not end as it should: that is the error then.
    fn finish(self, ran: Ran, began_after: Duration) -> anyhow::Result<()> {
        let failed = ran.failed();
        match (self.write(ran, began_after), failed) {
            (written, None) => written,
            (Ok(()), Some(failed)) => {
                anyhow::bail!("{failed}. What was recorded until then is in the outputs")
            }
            (Err(error), Some(failed)) => Err(error.context(failed)),
        }
    }

    /// Reads what was recorded, tells of it, and writes the outputs.
    fn write(self, ran: Ran, began_after: Duration) -> anyhow::Result<()> {
        let Self { args, plan, shortest, pids, mut outputs, mut files } = self;
        let Ran { stopped, interval, ended, child, there } = ran;
        let mut whose: Vec<Asked> = pids.into_iter().map(Asked::Running).collect();
        whose.extend(child.as_ref().map(|child| Asked::Started(Pid(child.id()))));
        let asking = Asking {
            scenarios: plan.names.clone(),
            shortest,
            whose,
            comm: args.comm,
            there,
            volumes: volumes(),
            event_bytes: event_bytes(&outputs.profiles),
            interval_100ns: interval.map(SampleInterval::units),
            frequency_hz: args.frequency,
            tells_lives: plan.names.iter().any(|name| name == "processes"),
            began_after_ns: began_after.as_nanos() as u64,
        };
        let Recorded { mut machine, symbols, stats, mut warnings, has_dotnet } =
            Recorded::read(files.open(&stopped)?, &asking)?;
        warnings.extend(unanswered(&stopped, has_dotnet));
        say(&summary(&stats, &warnings));
        print_counted(&machine);
        print_lives(&machine);
        if machine.samples().is_empty() && machine.lives().is_empty() {
            say(
                "warning: no samples: nothing of what was asked for happened, or -p, --comm and the command leave it out",
            );
        }
        tell_end(&ended, child.as_ref());
        let chosen = kind::choose_for(&mut machine, args.kind.as_deref(), &mut outputs.profiles);
        // What was recorded is written all the same.
        let results = chosen.err().map(|error| Err(error.into())).into_iter().collect();
        let symbols = match detail(args.no_inline, args.no_symbols) {
            Detail::Addresses => symbols,
            detail => name_from_images(&machine, symbols, detail),
        };
        tell_failures(&machine, &symbols);
        outputs.write(Profile { machine: &machine, symbols: &symbols }, results, || with_usage(&stats))?;
        files.done();
        Ok(())
    }
}

/// Why the recording is over, and what goes on.
fn tell_end(ended: &Ended, child: Option<&Child>) {
    match (ended, child) {
        (Ended::Command(status), _) => say(&format!("the command {}", describe(*status))),
        (Ended::Processes, _) => say("the recorded processes have ended"),
        (_, Some(child)) => say(&format!("the command (pid {}) goes on", child.id())),
        (Ended::Asked | Ended::Elsewhere | Ended::Untold(_), None) => {}
    }
    if matches!(ended, Ended::Elsewhere) {
        say("warning: the recording was ended by another program, which stopped its session");
    }
}

/// The figures with what the process has used up to now.
fn with_usage(stats: &Stats) -> Stats {
    let OwnUsage { user, system, peak_rss } = own_usage();
    Stats { usage: stats::Usage { user, system, peak_rss }, ..stats.clone() }
}

/// What has no meaning here.
fn refuse(args: &RunArgs) -> Result<(), Usage> {
    let backend = match args.backend {
        Backend::Ebpf => Some("--backend ebpf"),
        Backend::Perf => Some("--backend perf"),
        Backend::Auto | Backend::Etw => None,
    };
    if let Some(backend) = backend {
        return Err(Usage(format!(
            "{backend} is of Linux alone: on Windows leave it out, or use --backend etw"
        )));
    }
    if args.cgroup.is_some() {
        return Err(Usage(
            "--cgroup is of Linux alone: name processes by -p, or a command behind `--`".to_owned(),
        ));
    }
    if args.comm.as_deref() == Some("") {
        return Err(Usage("--comm is empty: name a program as `tasklist` does".to_owned()));
    }
    refuse_no_command(args.command.is_empty())
}

/// Names of scenarios without what `off_cpu:min=10ms` says of them. Those that are not known are told of later.
fn scenarios(named: &[String], shortest: &mut Shortest) -> Result<Vec<String>, Usage> {
    let mut options = Options::default();
    let all = || {
        let mut any = Shortest::default();
        let all = SCENARIOS.iter().filter(move |it| any.of_scenario(it.name).is_some());
        all.map(|it| format!("{}:{}", it.name, options::SHORTEST))
    };
    let mut names = Vec::new();
    for named in named {
        let name = options::split(named).0;
        if let Some(scenario) = Scenario::by_name(name) {
            let place = shortest.of_scenario(scenario.name).map(Place::Shortest);
            options.take(named, scenario.name, place, all())?;
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// What Windows is asked for.
fn plan(args: &RunArgs, scenarios: &[String], pids: &[Pid]) -> anyhow::Result<Plan> {
    let request = Request {
        scenarios,
        events: &args.events,
        frequency_hz: args.frequency,
        pids,
        has_command: !args.command.is_empty(),
    };
    let plan = request.plan(known_providers).map_err(|error| Usage(error.to_string()))?;
    for note in &plan.notes {
        say(&format!("warning: {}", note.text()));
    }
    Ok(plan)
}

/// Those that Windows knows by name.
fn known_providers() -> Vec<(String, Guid)> {
    providers().unwrap_or_else(|error| {
        say(&format!("warning: providers are not found by their names: {error}"));
        Vec::new()
    })
}

/// A recording that is over.
struct Ran {
    stopped: Stopped,
    /// Between CPU samples, as Windows tells.
    interval: Option<SampleInterval>,
    ended: Ended,
    /// Held, so that no other process has its number before all was read.
    child: Option<Child>,
    /// Who was there when it began.
    there: Vec<AliveProcess>,
}

impl Ran {
    /// What did not go as it should, if anything: of a session the name, the cause, and what to do.
    fn failed(&self) -> Option<String> {
        let untold = match &self.ended {
            Ended::Untold(error) => {
                Some(format!("the recording ended early, as nothing tells how it goes on: {error:#}"))
            }
            Ended::Asked | Ended::Command(_) | Ended::Processes | Ended::Elsewhere => None,
        };
        let failed = self.stopped.failed.iter().map(|(_, error)| error.to_string());
        let all: Vec<String> = untold.into_iter().chain(failed).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Why it is.
enum Ended {
    /// It was asked to end, or its time was over.
    Asked,
    /// What it recorded ended.
    Command(ExitStatus),
    /// All of the processes that it recorded ended.
    Processes,
    /// Its session is not there any more.
    Elsewhere,
    /// Windows does not tell whether it is, or whether the command is.
    Untold(anyhow::Error),
}

/// The processes that are named, which have to be there.
fn find(pids: &[u32]) -> anyhow::Result<Vec<OtherProcess>> {
    let found = |pid: &u32| {
        let found = OtherProcess::find(Pid(*pid));
        found.ok_or_else(|| anyhow::anyhow!("process {pid} does not exist: `tasklist` lists those that do"))
    };
    pids.iter().map(found).collect()
}

/// Records. What fails before all is recorded stops the sessions, too; what fails then is told with what there is.
fn record(plan: &Plan, files: &TraceFiles, args: &RunArgs) -> anyhow::Result<Ran> {
    let processes = find(&args.pids)?;
    console::watch(|| say("the recording is being written: a second Ctrl-C abandons it"))?;
    let settings = Settings { target: Target::File(files.path()), ..Settings::default() };
    stop_abandoned_kernel_logger();
    let mut plan = plan.clone();
    // A command's heap has a session that is started when its process is there.
    let heap = plan.heap.take_if(|_| !args.command.is_empty());
    let mut family = family(&args.pids.iter().copied().map(Pid).collect::<Vec<_>>());
    let mut sessions = Sessions::start(&plan, &settings, |_| Box::new(|| Box::new(|_| {})))?;
    if let Some(restored) = sessions.restored() {
        say(&restored.to_string());
    }
    files.remove_abandoned();
    let began = Instant::now();
    // Its first events are to be recorded, too.
    let mut child = start(&args.command, |command| {
        if let Some(mut heap) = heap {
            heap.pids.push(command);
            sessions.start_heap(&heap, plan.buffers, |_| Box::new(|| Box::new(|_| {})))?;
        }
        Ok(())
    })?;
    let mut patience = Patience::default();
    let is_gone = || patience.with(is_gone(&sessions), false);
    let ended = wait(began, args.duration, child.as_mut(), &processes, is_gone);
    let interval = sessions.interval();
    if let Some(child) = &child {
        family.add(Pid(child.id()));
    }
    ask_at_end(&mut sessions, &family);
    Ok(Ran { stopped: sessions.stop(), interval, ended, child, there: family.there().to_vec() })
}

/// Starts a command, which runs when `prepare` has returned.
fn start(
    command: &[OsString],
    prepare: impl FnOnce(Pid) -> Result<(), SessionError>,
) -> anyhow::Result<Option<Child>> {
    let Some((program, arguments)) = command.split_first() else { return Ok(None) };
    let failed = |error| {
        anyhow::anyhow!(
            "{} can't be started: {error}; name a program that is in PATH, or its file",
            program.display()
        )
    };
    let suspended = Suspended::spawn(process::Command::new(program).args(arguments)).map_err(failed)?;
    prepare(suspended.pid())?;
    Ok(Some(suspended.run().map_err(failed)?))
}

/// Waits for the end, or until the sessions are gone.
fn wait(
    began: Instant,
    duration: Option<Duration>,
    mut child: Option<&mut Child>,
    processes: &[OtherProcess],
    mut is_gone: impl FnMut() -> Result<bool, SessionError>,
) -> Ended {
    let mut asked = began;
    loop {
        match child.as_mut().map(|child| child.try_wait()) {
            Some(Ok(Some(status))) => return Ended::Command(status),
            Some(Err(error)) => return Ended::Untold(error.into()),
            Some(Ok(None)) | None => {}
        }
        // A command goes on without them.
        if child.is_none() && !processes.is_empty() && processes.iter().all(OtherProcess::has_ended) {
            return Ended::Processes;
        }
        if console::is_asked_to_end() || duration.is_some_and(|duration| began.elapsed() >= duration) {
            return Ended::Asked;
        }
        if asked.elapsed() >= ASK {
            asked = Instant::now();
            match is_gone() {
                Ok(true) => return Ended::Elsewhere,
                Ok(false) => {}
                Err(error) => return Ended::Untold(error.into()),
            }
        }
        let left = duration.map_or(LOOK, |duration| duration.saturating_sub(began.elapsed()).min(LOOK));
        thread::sleep(left);
    }
}

fn describe(status: ExitStatus) -> String {
    status.code().map_or_else(|| "ended".to_owned(), |code| format!("exited with status {code}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser as _;
    use collector_common::ids::Nanos;
    use windows_etw::part::Part;
    use windows_etw::session::Losses;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn options_are_taken_off_the_names_of_scenarios() {
        let told = |named: &[&str]| {
            let mut shortest = Shortest::default();
            let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
            scenarios(&named, &mut shortest).map(|names| (names, shortest)).map_err(|Usage(why)| why)
        };
        let (names, shortest) = told(&["offcpu:min=10ms", "cpu", "wall_clock:min=2s"]).unwrap();
        assert_eq!(names, ["offcpu", "cpu", "wall_clock"]);
        assert_eq!(shortest, Shortest { off_cpu: Nanos(10_000_000), wall_clock: Nanos(2_000_000_000) });
        // Which are like it is told with the names of others.
        assert_eq!(told(&["of_cpu:min=1"]).unwrap().0, ["of_cpu"]);
        let none = "memory_tracking has no options; there are off_cpu:min=10ms, wall_clock:min=10ms";
        assert_eq!(told(&["memory:every=1KiB"]), Err(format!("memory:every=1KiB: {none}")));
    }

    fn command(line: &[&str]) -> Option<Child> {
        start(&line.iter().map(OsString::from).collect::<Vec<_>>(), |_| Ok(())).unwrap()
    }

    #[test]
    fn it_ends_with_the_command_with_its_time_and_with_its_session() {
        let now = Instant::now;
        let mut child = command(&["cmd.exe", "/c", "exit", "3"]);
        let ended = wait(now(), Some(Duration::from_mins(1)), child.as_mut(), &[], || Ok(false));
        assert!(matches!(ended, Ended::Command(status) if describe(status) == "exited with status 3"));

        let begun = now();
        let ended = wait(begun, Some(Duration::from_millis(50)), None, &[], || Ok(false));
        assert!(matches!(ended, Ended::Asked) && begun.elapsed() >= Duration::from_millis(50));

        let mut asked = 0;
        let ended = wait(now(), Some(Duration::from_mins(1)), None, &[], || {
            asked += 1;
            Ok(true)
        });
        assert!(matches!(ended, Ended::Elsewhere));
        let ended = wait(now(), Some(Duration::from_mins(1)), None, &[], || Err(SessionError::Interrupted));
        assert!(matches!(ended, Ended::Untold(error) if error.is::<SessionError>()));

        let mut named = process::Command::new("cmd.exe");
        let mut named = named.args(["/c", "set /p x="]).stdin(process::Stdio::piped()).spawn().unwrap();
        let processes = find(&[named.id()]).unwrap();
        drop(named.stdin.take());
        named.wait().unwrap();
        let ended = wait(now(), Some(Duration::from_mins(1)), None, &processes, || Ok(false));
        assert!(matches!(ended, Ended::Processes));
        let refused = find(&[named.id()]).unwrap_err().to_string();
        assert!(refused.contains("does not exist"), "{refused}");
        assert_eq!(asked, 1);
    }

    /// A trace that is there; none, which is said, where it is not.
    fn trace() -> Option<Vec<u8>> {
        let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/etl/Process.etl");
        let bytes = fs::read(&trace).ok();
        if bytes.is_none() {
            eprintln!("NOT BESIDE THE CHECKOUT: {}", trace.display());
        }
        bytes
    }

    fn prepared(line: impl IntoIterator<Item = OsString>) -> Prepared {
        let begin = ["collector", "run", "-s", "processes"].map(OsString::from);
        let Command::Run(args) = Cli::parse_from(begin.into_iter().chain(line)).command else {
            panic!("another command")
        };
        Prepared::of(*args).unwrap()
    }

    /// Sessions that go on, and one that does not tell whether it does: what they wrote is kept.
    #[test]
    fn what_there_is_is_kept_where_sessions_can_not_be_stopped() {
        let Some(trace) = trace() else { return };
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let line = ["x.html", "x.etl"].into_iter().flat_map(|name| ["-o".into(), at(name).into()]);
        let prepared = prepared(line);
        fs::write(prepared.files.path(), &trace).unwrap();
        let name = "Collector".to_owned();
        let unstopped = SessionError::Unstopped { name, cause: windows_etw::session::Win32Error(87) };
        let losses = Losses { events: 5, ..Losses::default() };
        let stopped = Stopped {
            losses: vec![(Part::Main, losses)],
            failed: vec![(Part::Main, unstopped)],
            ..Stopped::default()
        };
        let ended = Ended::Untold(SessionError::Interrupted.into());
        let ran = Ran { stopped, interval: None, ended, child: None, there: Vec::new() };
        let error = prepared.finish(ran, Duration::from_millis(1)).unwrap_err().to_string();
        assert!(error.starts_with("the recording ended early"), "{error}");
        for told in ["`Collector` can't be stopped", "`logman stop \"Collector\" -ets`"] {
            assert!(error.contains(told), "{error}");
        }
        assert_eq!(fs::read(at("x.etl")).unwrap(), trace);
        assert!(at("x.html").exists());
    }

    /// As it is but for the sessions: what they would have written is a trace that is there.
    #[test]
    fn what_windows_wrote_becomes_the_outputs() {
        const EVENTS: usize = 10_344;
        let Some(trace) = trace() else { return };
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let outputs = ["x.jsonl", "x.html", "x.etl"].map(at);
        let outputs = outputs.iter().flat_map(|output| ["-o".into(), output.into()]);
        let prepared = prepared(["--stats".into(), at("x.json").into()].into_iter().chain(outputs));
        fs::write(prepared.files.path(), &trace).unwrap();
        let losses = Losses { events: 5, ..Losses::default() };
        let stopped = Stopped { losses: vec![(Part::Main, losses)], ..Stopped::default() };
        let ran = Ran { stopped, interval: None, ended: Ended::Asked, child: None, there: Vec::new() };
        prepared.finish(ran, Duration::from_millis(1)).unwrap();

        assert_eq!(fs::read(at("x.etl")).unwrap(), trace);
        assert!(fs::read_to_string(at("x.html")).unwrap().contains("<html"));
        let lines = fs::read_to_string(at("x.jsonl")).unwrap();
        assert_eq!(lines.lines().filter(|line| line.starts_with(r#"{"type":"event","#)).count(), EVENTS);
        let stats: serde_json::Value = serde_json::from_slice(&fs::read(at("x.json")).unwrap()).unwrap();
        assert_eq!((&stats["backend"], &stats["lost"]["ring_full"]), (&"etw".into(), &5.into()));
        let [produced, delivered] =
            ["produced", "delivered"].map(|key| stats["samples"][key].as_u64().unwrap());
        assert_eq!(produced, delivered + 5);
        assert!(stats["peak_rss_bytes"].as_u64().unwrap() > 1 << 20, "{stats}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    }

    #[test]
    fn a_command_runs_when_all_is_ready_for_it_and_not_where_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ran.txt");
        let line = ["cmd.exe", "/c", "mkdir"].map(OsString::from);
        let line = [&line[..], &[file.clone().into()]].concat();
        let mut known = None;
        let mut child = start(&line, |pid| {
            known = Some(pid);
            assert!(!file.exists());
            Ok(())
        });
        let child = child.as_mut().unwrap().as_mut().unwrap();
        assert!(child.wait().unwrap().success() && file.exists());
        assert_eq!(known, Some(Pid(child.id())));

        fs::remove_dir(&file).unwrap();
        let refused = start(&line, |_| Err(SessionError::Interrupted)).unwrap_err();
        assert!(refused.is::<SessionError>() && !file.exists(), "{refused}");
    }

    #[test]
    fn a_command_that_is_not_there_is_told() {
        assert!(command(&[]).is_none());
        let error = start(&["no-such-program.exe".into()], |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains("no-such-program.exe can't be started"), "{error}");
    }
}
