//! Names of code that was made at run time: what runtimes tell of it, beside what is known of the programs and what `perf` reads.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use collector_common::ids::Nanos;
use collector_common::record::{Frame, FrameId, ModuleKind};
use collector_user::replay::Replay;
use collector_user::session::{Backend, Command as Recorded, Recording, Session, SessionSettings};
use collector_user::source::{Settings, Targets};
use export::symbolize::{Function, Language, Symbols};

use crate::prerequisites::{find, live_with};
use crate::programs::{Running, compile, folder, source};

/// The perf map of a process, which is removed with this.
struct Map(PathBuf);

impl Map {
    fn of(pid: u32) -> Self {
        Self(format!("/tmp/perf-{pid}.map").into())
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // A process need not have written one.
        let _ = fs::remove_file(&self.0);
    }
}

/// A recording with its names.
struct Named {
    recording: Recording,
    symbols: Symbols,
}

/// A sample's innermost function of user code, where that was made at run time.
struct Leaf {
    time: Nanos,
    frame: FrameId,
}

impl Named {
    fn of(recording: Recording) -> Self {
        let symbols = recording.symbolize();
        assert!(
            symbols.unreadable().is_empty() || recording.stats.backend == "replay",
            "{:?}",
            symbols.unreadable()
        );
        Self { recording, symbols }
    }

    fn leafs(&self) -> Vec<Leaf> {
        let machine = &self.recording.machine;
        let is_user = |frame: &&Frame| !frame.is_kernel();
        let leaf = |sample: collector_common::record::Sample| {
            let frames = machine.stacks().get(sample.stack).iter();
            let (frame, found) =
                frames.map(|&id| (id, machine.frames().get(id))).find(|(_, frame)| is_user(frame))?;
            let is_made = matches!(machine.module(found.module).kind, ModuleKind::Anonymous(_));
            is_made.then_some(Leaf { time: sample.time, frame })
        };
        machine.samples().iter().filter_map(leaf).collect()
    }

    fn name(&self, leaf: &Leaf) -> &str {
        self.symbols.name(leaf.frame).function
    }

    /// How many of the samples in code that was made at run time are in each function.
    fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for leaf in &self.leafs() {
            *counts.entry(self.name(leaf)).or_default() += 1;
        }
        counts
    }

    /// Nearly all that ran there has a name, and most of it is in `hottest`.
    fn check(&self, hottest: &str, language: Option<Language>) {
        let leafs = self.leafs();
        let named = leafs.iter().filter(|leaf| self.symbols.is_resolved(leaf.frame)).count();
        let counts = self.counts();
        assert!(
            leafs.len() > 300 && named * 100 >= leafs.len() * 95,
            "{named} of {}: {counts:?}",
            leafs.len()
        );
        let most = counts.iter().max_by_key(|(_, count)| **count).unwrap();
        assert_eq!(*most.0, hottest, "{counts:?}");
        assert!(most.1 * 2 > leafs.len(), "{counts:?}");
        let mut of_hottest = leafs.iter().filter(|leaf| self.name(leaf) == hottest);
        assert!(of_hottest.all(|leaf| self.symbols.language(leaf.frame) == language));
    }

    /// The functions that a leaf is in, with file and line.
    fn places(&self, leaf: &Leaf) -> Vec<(&str, &str, u32)> {
        let place = |function: Function| {
            (self.symbols.function(function.name), self.symbols.function(function.file), function.line)
        };
        self.symbols.functions(leaf.frame).map(place).collect()
    }
}

fn sampling() -> Settings {
    Settings { frequency: 1999, ..Settings::default() }
}

/// Records a command to its end.
fn record<S: AsRef<OsStr>>(backend: Backend, capture: Option<&Path>, words: &[S]) -> (Named, Map) {
    let words: Vec<OsString> = words.iter().map(|word| word.as_ref().to_owned()).collect();
    let command = Recorded::start(&words).unwrap();
    let map = Map::of(command.pid());
    let capture = capture.map(|path| fs::File::create_new(path).unwrap());
    let settings = SessionSettings { sampling: sampling(), backend, capture, ..SessionSettings::default() };
    let mut session = Session::start(settings, Some(command)).unwrap();
    let (stop, _never) = UnixStream::pair().unwrap();
    session.run(stop.as_fd(), |_| {}).unwrap();
    (Named::of(session.finish().unwrap()), map)
}

fn converted(path: &Path) -> Named {
    Named::of(Replay::open_path(path).unwrap().run())
}

/// Node, whose functions are compiled but not into one another.
fn node(options: &[&str]) -> Vec<OsString> {
    let apart = ["--max-inlined-bytecode-size=0", "--max-inlined-bytecode-size-small=0"];
    // It would write a log where it is.
    let quiet = ["--no-logfile-per-isolate", "--logfile=/dev/null"];
    let words =
        ["node", "--interpreted-frames-native-stack"].iter().chain(&quiet).chain(&apart).chain(options);
    words.map(OsString::from).chain([source("hot.js").into_os_string()]).collect()
}

#[test]
fn node_with_a_perf_map() {
    let Some(_live) = live_with("node_with_a_perf_map", &["node"]) else { return };
    for backend in [Backend::Ebpf, Backend::Perf] {
        let (named, _map) = record(backend, None, &node(&["--perf-basic-prof"]));
        named.check("burnHot", Some(Language::JavaScript));
        let leafs = named.leafs();
        let hot = leafs.iter().find(|leaf| named.name(leaf) == "burnHot").unwrap();
        // The line where it begins.
        assert_eq!(named.places(hot), [("burnHot", source("hot.js").to_str().unwrap(), 3)]);
        assert!(named.symbols.name(hot.frame).linkage.starts_with("JS:"));
    }
}

#[test]
fn a_recording_of_node_is_converted_as_perf_reads_it() {
    let Some(_live) = live_with("a_recording_of_node_is_converted_as_perf_reads_it", &["node", "perf"])
    else {
        return;
    };
    let folder = folder();
    let data = folder.path().join("node.perf.data");
    let (live, map) = record(Backend::Auto, Some(&data), &node(&["--perf-basic-prof"]));
    let later = converted(&data);
    assert_eq!(live.counts(), later.counts());
    let output =
        Command::new("perf").args(["script", "-G", "-F", "ip,sym", "-i"]).arg(&data).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut of_perf: BTreeMap<String, usize> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        if let Some((_, name)) = line.trim().split_once(' ').filter(|(_, name)| name.starts_with("JS:")) {
            *of_perf.entry(name.to_owned()).or_default() += 1;
        }
    }
    let mut of_ours: BTreeMap<String, usize> = BTreeMap::new();
    let machine = &later.recording.machine;
    for sample in machine.samples().iter() {
        let leaf = machine.stacks().get(sample.stack).first();
        let name = leaf.map_or("", |&leaf| later.symbols.name(leaf).linkage);
        if name.starts_with("JS:") {
            *of_ours.entry(name.to_owned()).or_default() += 1;
        }
    }
    let total = |counts: &BTreeMap<String, usize>| counts.values().sum::<usize>();
    assert!(total(&of_ours) > 300, "{of_ours:?}");
    // Where code was replaced in the map, perf takes one of the two.
    let differ: usize =
        of_ours.iter().map(|(name, count)| count.abs_diff(of_perf.get(name).copied().unwrap_or(0))).sum();
    assert!(differ * 50 <= total(&of_ours), "{of_ours:?}\n{of_perf:?}");
    assert!(total(&of_ours).abs_diff(total(&of_perf)) * 50 <= total(&of_ours), "{of_ours:?}\n{of_perf:?}");
    // Without the map there is nothing that could name them.
    drop(map);
    assert!(converted(&data).counts().keys().all(|name| name.starts_with("[anon]+0x")));
}

#[test]
fn node_with_a_jitdump() {
    let Some(_live) = live_with("node_with_a_jitdump", &["node"]) else { return };
    let folder = folder();
    let data = folder.path().join("node.perf.data");
    // It writes the dump where it is.
    let shell = ["sh", "-euc", r#"cd "$1"; shift; exec "$@""#, "sh"].map(OsString::from);
    let words = shell.into_iter().chain([folder.path().into()]).chain(node(&["--perf-prof"]));
    let (named, _map) = record(Backend::Auto, Some(&data), &words.collect::<Vec<_>>());
    named.check("burnHot", Some(Language::JavaScript));
    // V8 writes some of the lines; else it is the one where the function begins.
    for leaf in named.leafs().iter().filter(|leaf| named.name(leaf) == "burnHot") {
        let &[(_, file, line)] = &named.places(leaf)[..] else { panic!("{:?}", named.places(leaf)) };
        assert!(file == source("hot.js").to_str().unwrap() && (3..=11).contains(&line), "{file}:{line}");
    }
    let later = converted(&data);
    later.check("burnHot", Some(Language::JavaScript));
    assert_eq!(named.counts(), later.counts());
}

#[test]
fn java_with_a_map_that_it_leaves() {
    let Some(_live) = live_with("java_with_a_map_that_it_leaves", &["java", "javac"]) else { return };
    let folder = folder();
    compile_java(folder.path());
    let options = ["java", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit", "-cp"].map(OsStr::new);
    let words = options.into_iter().chain([folder.path().as_os_str(), "Hot".as_ref(), "1".as_ref()]);
    let (named, _map) = record(Backend::Auto, None, &words.collect::<Vec<_>>());
    named.check("Hot.burnHot", Some(Language::Java));
}

#[test]
fn java_that_is_asked_for_its_map() {
    let Some(_live) = live_with("java_that_is_asked_for_its_map", &["java", "javac", "jcmd"]) else { return };
    let folder = folder();
    compile_java(folder.path());
    let mut java = Command::new("java");
    java.arg("-cp").arg(folder.path()).args(["Hot", "60"]).stdout(Stdio::null());
    let java = Running::of(&mut java);
    let pid = java.0.id();
    let _map = Map::of(pid);
    let targets = Targets { pids: [pid].into(), ..Targets::default() };
    let settings =
        SessionSettings { sampling: Settings { targets, ..sampling() }, ..SessionSettings::default() };
    let mut session = Session::start(settings, None).unwrap();
    assert_eq!(session.parse_until(|progress| progress.samples > 1500).unwrap(), None);
    let jcmd = Command::new("jcmd").arg(pid.to_string()).arg("Compiler.perfmap").output().unwrap();
    assert!(jcmd.status.success(), "{jcmd:?}");
    Named::of(session.finish().unwrap()).check("Hot.burnHot", Some(Language::Java));
}

fn compile_java(folder: &Path) {
    let status = Command::new(find("javac").unwrap()).arg("-d").arg(folder).arg(source("Hot.java")).status();
    assert!(status.unwrap().success());
}

#[test]
fn a_perf_map_is_its_process_owners() {
    let Some(_live) = live_with("a_perf_map_is_its_process_owners", &[]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "made-code", "made_code.c", &[]);
    let (named, _map) = record(Backend::Auto, None, &[program.as_os_str(), "map".as_ref()]);
    named.check("made code (a b)", None);
    assert!(!named.recording.warnings.iter().any(|line| line.contains("made at run time")));
    let (named, _map) = record(Backend::Auto, None, &[program.as_os_str(), "map".as_ref(), "given".as_ref()]);
    let warning = named.recording.warnings.iter().find(|line| line.contains("made at run time"));
    assert!(warning.is_some_and(|line| line.contains("(made-code)")), "{:?}", named.recording.warnings);
    assert!(named.counts().keys().all(|name| name.starts_with("[anon]+0x")), "{:?}", named.counts());
}

#[test]
fn code_that_is_mapped_twice() {
    let Some(_live) = live_with("code_that_is_mapped_twice", &[]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "made-code", "made_code.c", &[]);
    let data = folder.path().join("made.perf.data");
    let (named, _map) =
        record(Backend::Auto, Some(&data), &[program.as_os_str(), "map".as_ref(), "twice".as_ref()]);
    named.check("made code (a b)", None);
    converted(&data).check("made code (a b)", None);
}

#[test]
fn a_perf_map_in_a_container_that_is_gone() {
    let Some(_live) = live_with("a_perf_map_in_a_container_that_is_gone", &["unshare"]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "made-code", "made_code.c", &[]);
    // A `/tmp` of its own, where it is process 1.
    let script = r#"exec 3<"$1"; mount -t tmpfs none /tmp; exec /proc/self/fd/3 map"#;
    let unshare =
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-euc", script, "sh"].map(OsStr::new);
    let words: Vec<&OsStr> = unshare.into_iter().chain([program.as_os_str()]).collect();
    let (named, _map) = record(Backend::Auto, None, &words);
    named.check("made code (a b)", None);
}

/// One place has two codes, one after the other: each has its samples, and the lines that were told of it.
#[test]
fn code_that_replaces_other_code_is_told_apart() {
    let Some(_live) = live_with("code_that_replaces_other_code_is_told_apart", &["perf"]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "made-code", "made_code.c", &[]);
    let data = folder.path().join("made.perf.data");
    let words = [program.as_os_str(), "dump".as_ref(), folder.path().as_os_str()];
    for backend in [Backend::Ebpf, Backend::Perf] {
        let _ = fs::remove_file(&data);
        let (live, _map) = record(backend, Some(&data), &words);
        check_replaced(&live, folder.path());
        check_replaced(&converted(&data), folder.path());
    }
    // As `perf` records it, by the clock that dumps have.
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-N", "-k", "mono", "-F", "1999", "-o"]).arg(&data).arg("--").args(words);
    assert!(perf.stdin(Stdio::null()).status().unwrap().success());
    check_replaced(&converted(&data), folder.path());
}

fn check_replaced(named: &Named, folder: &Path) {
    let times = fs::read_to_string(folder.join("times")).unwrap();
    let times: Vec<u64> = times.lines().map(|line| line.parse().unwrap()).collect();
    let leafs = named.leafs();
    let named_so = |name: &str| leafs.iter().filter(|leaf| named.name(leaf) == name).collect::<Vec<_>>();
    let [first, second] = ["first code", "second code"].map(named_so);
    assert!(first.len() > 250 && second.len() > 500, "{:?}", named.counts());
    assert_eq!(first.len() + second.len(), leafs.len(), "{:?}", named.counts());
    assert!(first.iter().all(|leaf| leaf.time.0 <= times[0]));
    assert!(second.iter().all(|leaf| leaf.time.0 >= times[0] - 1_000_000));
    assert!(second.iter().any(|leaf| leaf.time.0 > times[1]), "it was moved, and is itself");
    for (code, name, line) in [(&first, "first code", 11), (&second, "second code", 21)] {
        let in_loop = code.iter().filter(|leaf| named.places(leaf) == [(name, "/src/made by.hand", line)]);
        assert!(in_loop.count() * 10 > code.len() * 9, "{:?}", named.places(code[0]));
    }
}

/// What `perf inject` makes of a dump are files like others.
#[test]
fn a_recording_that_perf_has_put_code_into() {
    let Some(_live) = live_with("a_recording_that_perf_has_put_code_into", &["perf"]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "made-code", "made_code.c", &[]);
    let [data, injected] = ["made", "injected"].map(|name| folder.path().join(format!("{name}.perf.data")));
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-N", "-k", "mono", "-F", "1999", "-o"]).arg(&data).arg("--");
    perf.arg(program).arg("dump").arg(folder.path()).stdin(Stdio::null());
    assert!(perf.status().unwrap().success());
    let mut inject = Command::new("perf");
    // Where it would keep copies.
    inject.env("HOME", folder.path());
    inject.args(["inject", "--jit", "-i"]).arg(&data).arg("-o").arg(&injected).stdin(Stdio::null());
    assert!(inject.status().unwrap().success());
    let named = converted(&injected);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let machine = &named.recording.machine;
    for sample in machine.samples().iter() {
        let leaf = machine.stacks().get(sample.stack).first();
        *counts.entry(leaf.map_or("", |&leaf| named.symbols.name(leaf).function)).or_default() += 1;
    }
    assert!(counts["first code"] > 250 && counts["second code"] > 500, "{counts:?}");
}
