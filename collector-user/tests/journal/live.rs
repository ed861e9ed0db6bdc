//! Live: what is made of a journal is what its session made of what it was told. Needs what the tests of `tests/live` do.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufReader, Read, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use collector_common::loss::LossCause;
use collector_common::sharing::Writable;
use collector_common::wire::SampleHeader;
use collector_user::journal::Journal;
use collector_user::scenario;
use collector_user::session::{Backend, Command, EventClock, Recording, Session, SessionSettings};
use collector_user::source::{Named, Settings};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::prerequisites::live;
use crate::programs::{compile, folder};

/// A program, and what is recorded of it.
struct Case {
    name: &'static str,
    scenarios: &'static [&'static str],
    backend: Backend,
    events: &'static [&'static str],
    /// Its source; none for a shell's words.
    source: Option<&'static str>,
    /// `TOLD` is a file that it writes what it knows of itself to.
    words: &'static [&'static str],
}

const NONE: Case =
    Case { name: "", scenarios: &[], backend: Backend::Auto, events: &[], source: None, words: &[] };

/// What the fixtures of `tests/journal` are made of.
const CASES: [Case; 13] = [
    // 100 ms of burning.
    Case {
        name: "cpu_profiling",
        scenarios: &["cpu_profiling"],
        source: Some("naps.c"),
        words: &["1", "1", "100000", "0", "TOLD"],
        ..NONE
    },
    // The same through plain perf events, whose records no program of ours writes.
    Case {
        name: "perf_events",
        scenarios: &["cpu_profiling"],
        backend: Backend::Perf,
        source: Some("naps.c"),
        words: &["1", "1", "100000", "0", "TOLD"],
        ..NONE
    },
    // Two threads that sleep for 20 ms, five times.
    Case {
        name: "off_cpu",
        scenarios: &["off_cpu"],
        source: Some("naps.c"),
        words: &["2", "5", "0", "20000", "TOLD"],
        ..NONE
    },
    // One that burns and sleeps for 20 ms, twice.
    Case {
        name: "wall_clock",
        scenarios: &["wall_clock"],
        source: Some("naps.c"),
        words: &["1", "2", "20000", "20000", "TOLD"],
        ..NONE
    },
    // One that sleeps, 40 times.
    Case {
        name: "scheduling",
        scenarios: &["scheduling"],
        source: Some("naps.c"),
        words: &["1", "40", "0", "500", "TOLD"],
        ..NONE
    },
    // A lock that is held for 20 ms, three times, while another thread waits for it.
    Case {
        name: "locks",
        scenarios: &["locks"],
        source: Some("locked.c"),
        words: &["plain", "3", "20", "TOLD"],
        ..NONE
    },
    // Ten reads of a byte that comes after 20 ms.
    Case {
        name: "io_monitoring",
        scenarios: &["io_monitoring"],
        source: Some("transfers.c"),
        words: &["pipe", "TOLD"],
        ..NONE
    },
    // 100 times 3 blocks, of which one is kept.
    Case {
        name: "memory_tracking",
        scenarios: &["memory_tracking"],
        source: Some("blocks.c"),
        words: &["TOLD", "20"],
        ..NONE
    },
    // 50 times 8, 16 and 4 pages, and 32 more.
    Case {
        name: "memory_growth",
        scenarios: &["memory_growth"],
        source: Some("mapped_memory.c"),
        words: &["TOLD"],
        ..NONE
    },
    // 5000 times `getppid`, 300 times `openat2` of what is not there, 20 times 10 ms of `nanosleep`.
    Case { name: "syscalls", scenarios: &["syscalls"], source: Some("calls.c"), words: &["TOLD"], ..NONE },
    // Three that end with 0, and one with 7.
    Case {
        name: "processes",
        scenarios: &["processes"],
        words: &["sh", "-c", "/bin/true 1; /bin/true 2; /bin/true 3; sh -c 'exit 7'; exit 0"],
        ..NONE
    },
    // 50 pages.
    Case {
        name: "page_faults",
        scenarios: &["page_faults"],
        source: Some("touches.c"),
        words: &["50"],
        ..NONE
    },
    // A program is executed three times.
    Case {
        name: "tracepoint",
        events: &["sched:sched_process_exec"],
        words: &["sh", "-c", "/bin/true; /bin/true; exec /bin/true"],
        ..NONE
    },
];

impl Case {
    fn settings(&self) -> SessionSettings {
        let sampling =
            Settings { clock: false, allocation_period: 1, mapped_period: 1, ..Settings::default() };
        let mut settings = SessionSettings { sampling, backend: self.backend, ..SessionSettings::default() };
        for name in self.scenarios {
            scenario::by_name(name).unwrap().register(&mut settings);
        }
        for event in self.events {
            let Named { hooks, .. } = Named::parse(&[(*event).to_owned()], false).unwrap();
            settings.events.extend(hooks);
        }
        settings
    }

    /// Records it in a folder, with a journal. Out: the program's pid beside.
    fn record(&self, folder: &Path) -> (Recording, u32, File) {
        let program = self.source.map(|source| {
            let name = source.split('.').next().unwrap();
            compile(folder, name, source, &["-pthread", "-fno-builtin"])
        });
        let told: OsString = folder.join("told").into();
        let words = self.words.iter().map(|&word| if word == "TOLD" { told.clone() } else { word.into() });
        let command: Vec<OsString> = program.into_iter().map(Into::into).chain(words).collect();
        let path = folder.join("journal");
        let journal = Some(File::create(&path).unwrap());
        let (recorded, pid) = record(SessionSettings { journal, ..self.settings() }, &command);
        assert!(recorded.journal_failure.is_none(), "{:?}", recorded.journal_failure);
        (recorded, pid, File::open(path).unwrap())
    }
}

fn record(settings: SessionSettings, command: &[OsString]) -> (Recording, u32) {
    let command = Command::start(command).unwrap();
    let pid = command.pid();
    let mut session = Session::start(settings, Some(command)).unwrap();
    let (stop, _never) = UnixStream::pair().unwrap();
    session.run(stop.as_fd(), |_| {}).unwrap();
    (session.finish().unwrap(), pid)
}

fn replay(journal: impl Read) -> Recording {
    let journal = Journal::open(BufReader::new(journal)).unwrap();
    let settings = journal.settings();
    Session::replay(journal, settings).unwrap()
}

/// All that a recording has, a line for each thing, in its order.
fn told(recording: &Recording) -> Vec<String> {
    let Recording { machine, ledger, stats, warnings, .. } = recording;
    let symbols = recording.symbolize();
    let mut lines = Vec::new();
    let mut kinds = Vec::new();
    for kind in machine.kinds() {
        let name = machine.string(kind.name);
        lines.push(format!("kind {name} {:?} {}", kind.unit, kind.period));
        kinds.push(name);
    }
    for process in machine.processes() {
        let parent = process.parent.map(|parent| machine.process(parent).pid);
        let [name, cgroup, container] =
            [process.name, process.cgroup, process.container].map(|text| machine.string(text));
        lines.push(format!(
            "process {} {name} of {parent:?}, {:?} to {:?}, {:?}, {:?} {:?} {cgroup} {container}",
            process.pid,
            process.start,
            process.end,
            process.exit,
            process.namespace_pid,
            machine.user_name(process)
        ));
    }
    lines.extend(machine.programs().iter().map(|program| machine.command_line(program)));
    for mapping in machine.mappings() {
        let path = machine.string(machine.module(mapping.module).path);
        lines.push(format!("mapping {mapping:?} {path} {:?}", machine.module(mapping.module).build_id));
    }
    for sample in machine.samples().iter() {
        let thread = machine.thread(sample.thread);
        let mut line = format!(
            "{} {} {}/{} {} on {}: {} ",
            kinds[usize::from(sample.kind.0)],
            sample.time.0,
            machine.process(thread.process).pid,
            thread.tid,
            machine.string(thread.name),
            sample.cpu,
            sample.value
        );
        for (name, value) in machine.attributes().get(sample.attributes) {
            write!(line, "{}={} ", machine.string(*name), machine.attribute_text(*value)).unwrap();
        }
        for &id in machine.stacks().get(sample.stack) {
            let frame = machine.frames().get(id);
            let path = machine.string(machine.module(frame.module).path);
            let function = symbols.name(id).function;
            write!(line, "; {function} {path}+{:x} {:?}", frame.address.0, frame.flags).unwrap();
        }
        lines.push(line);
    }
    lines.extend(machine.tables().iter().map(|table| format!("{table:?}")));
    lines.extend(machine.histograms().iter().map(|histogram| format!("{histogram:?}")));
    lines.extend(machine.lives().iter().map(|life| format!("{life:?}")));
    lines.push(format!("{:?}", machine.system()));
    lines.push(format!("{ledger:?}"));
    lines.push(format!("{:?} {} {}", stats.stacks, stats.frames, stats.backend));
    lines.push(format!("{} {} {:?}", stats.duration_ns, stats.bpf_run_count, stats.bpf_faults));
    lines.extend(warnings.iter().cloned());
    lines
}

/// The first lines that differ, with those before them.
fn assert_same(recorded: &Recording, replayed: &Recording, what: &str) {
    let (recorded, replayed) = (told(recorded), told(replayed));
    let differ = recorded.iter().zip(&replayed).position(|(one, other)| one != other);
    let at = differ.unwrap_or(recorded.len().min(replayed.len()));
    let shown = |lines: &[String]| lines[at.min(lines.len())..].iter().take(2).cloned().collect::<Vec<_>>();
    assert!(recorded == replayed, "{what}, line {at}:\n{:#?}\n{:#?}", shown(&recorded), shown(&replayed));
}

#[test]
fn a_journal_gives_the_same_recording() {
    let Some(_live) = live("a_journal_gives_the_same_recording") else { return };
    for case in &CASES {
        let folder = folder();
        let (recorded, _, journal) = case.record(folder.path());
        let lost = recorded.ledger.lost(LossCause::Unaccounted);
        assert_eq!(lost, 0, "{}", case.name);
        let machine = &recorded.machine;
        let is_empty =
            machine.samples().is_empty() && machine.histograms().is_empty() && machine.lives().is_empty();
        assert!(!is_empty, "{}", case.name);
        assert_same(&recorded, &replay(journal), case.name);
    }
}

/// Of large frames that have moved the outer ones are read behind their samples: a journal has what was read. Two chains take turns, so that
/// a page of another sample is seen by its frames; every second one has gone by then.
#[test]
fn outer_frames_of_large_stacks_are_in_a_journal() {
    const CASE: Case = Case {
        name: "turns",
        scenarios: &["cpu_profiling"],
        source: Some("turns.c"),
        words: &["move"],
        ..NONE
    };
    let Some(_live) = live("outer_frames_of_large_stacks_are_in_a_journal") else { return };
    let folder = folder();
    let (recorded, _, mut journal) = CASE.record(folder.path());
    let stacks = &recorded.stats.stacks;
    assert!(stacks.get("completed_later").is_some_and(|later| *later > 60), "{stacks:?}");
    let mut bytes = Vec::new();
    journal.read_to_end(&mut bytes).unwrap();
    assert_same(&recorded, &replay(&bytes[..]), "turns");

    // Nobody asks for what was read for samples that are not there any more; it is not what others ask for.
    let mut fewer = bytes[..HEAD].to_vec();
    let mut rounds = 0;
    for (kind, item) in items(&bytes) {
        rounds += u32::from(kind == ROUND);
        if kind != RING || rounds % 2 == 1 {
            push_item(&mut fewer, kind, item);
        }
    }
    let samples = |recording| -> BTreeSet<String> {
        told(recording).into_iter().filter(|line| line.starts_with("cpu ")).collect()
    };
    let (all, fewer) = (samples(&recorded), samples(&replay(&fewer[..])));
    assert!(fewer.len() > 200 && all.len() - fewer.len() > 200, "{} of {}", fewer.len(), all.len());
    let differ: Vec<_> = fewer.difference(&all).take(2).collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

/// Where fixtures are made: its path is in them.
const FOLDER: &str = "/tmp/collector-journals";

/// Those that are not kept are made, with what their programs say of themselves.
#[test]
fn all_journals_are_kept() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journal/recorded");
    let is_missing = |case: &&Case| !kept.join(case.name).with_extension("gz").exists();
    let missing: Vec<&Case> = CASES.iter().filter(is_missing).collect();
    if missing.is_empty() {
        return;
    }
    let Some(_live) = live("all_journals_are_kept") else { return };
    for case in missing {
        fs::create_dir_all(FOLDER).unwrap();
        let (recorded, pid, mut journal) = case.record(Path::new(FOLDER));
        let mut bytes = Vec::new();
        journal.read_to_end(&mut bytes).unwrap();
        let chosen = Chosen::of(&recorded, pid, &bytes).journal(&bytes);
        let file = File::create(kept.join(case.name).with_extension("gz")).unwrap();
        let mut packed = GzEncoder::new(file, Compression::best());
        packed.write_all(&chosen).unwrap();
        packed.finish().unwrap();
        if let Ok(text) = fs::read(Path::new(FOLDER).join("told")) {
            fs::write(kept.join(case.name).with_extension("told"), text).unwrap();
        }
        fs::remove_dir_all(FOLDER).unwrap();
    }
}

/// The items of a journal, behind `collector journal\n` and two versions.
fn items(whole: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = &whole[HEAD..];
    std::iter::from_fn(move || {
        let (&kind, behind) = rest.split_first()?;
        let (len, behind) = behind.split_first_chunk().unwrap();
        let (item, behind) = behind.split_at(u32::from_le_bytes(*len) as usize);
        rest = behind;
        Some((kind, item))
    })
}

const HEAD: usize = 18 + 4 + 2;

const SIDEBAND: u8 = 5;
const RING: u8 = 7;
const ROUND: u8 = 9;

/// Adds an item to a journal.
fn push_item(journal: &mut Vec<u8>, kind: u8, item: &[u8]) {
    journal.push(kind);
    journal.extend((item.len() as u32).to_le_bytes());
    journal.extend(item);
}

/// Of a journal what is of the recorded program, without the machine's name and its cgroups.
struct Chosen {
    /// Of processes and threads.
    ids: BTreeSet<u64>,
    files: BTreeSet<String>,
}

impl Chosen {
    fn of(recorded: &Recording, pid: u32, whole: &[u8]) -> Self {
        /// `PERF_RECORD_FORK`, in which pid, the parent's pid, and tid are the first words.
        const FORK: u64 = 7;
        let machine = &recorded.machine;
        let files = machine.mappings().iter().map(|mapping| machine.module(mapping.module).path);
        let files = files.map(|path| machine.string(path).to_owned()).collect();
        let mut ids = BTreeSet::from([u64::from(pid)]);
        for (_, item) in items(whole).filter(|(kind, _)| *kind == SIDEBAND) {
            let [pid, parent, tid] = [16, 20, 24].map(|at| number(item, at, 4));
            if number(item, 8, 4) == FORK && ids.contains(&parent) {
                ids.extend([pid, tid]);
            }
        }
        Self { ids, files }
    }

    fn journal(&self, whole: &[u8]) -> Vec<u8> {
        let mut chosen = whole[..HEAD].to_vec();
        for (kind, item) in items(whole) {
            let Some(item) = self.item(kind, item) else { continue };
            push_item(&mut chosen, kind, &item);
        }
        chosen
    }

    /// See the form in `collector_user::journal`.
    fn item(&self, kind: u8, item: &[u8]) -> Option<Vec<u8>> {
        const START: u8 = 1;
        const ANSWERS: u8 = 2;
        const FILE: u8 = 3;
        const RECORD: u8 = 8;
        let is_chosen = match kind {
            START => {
                let host = number(item, 0, 4) as usize;
                let name = b"machine";
                return Some([&(name.len() as u32).to_le_bytes(), &name[..], &item[4 + host..]].concat());
            }
            ANSWERS => return Some(self.answers(item)).filter(|answers| !answers.is_empty()),
            FILE => {
                let path = if item[0] == 0 { 1 } else { 1 + 4 + 4 + 8 + 8 };
                let len = number(item, path, 4) as usize;
                let path = std::str::from_utf8(&item[path + 4..][..len]).unwrap();
                self.files.contains(path)
            }
            // The time, a header, and in these the pid.
            SIDEBAND => [1, 3, 4, 7, 10].contains(&number(item, 8, 4)) && self.has(number(item, 16, 4)),
            RING => self.has_header(&item[2..]),
            RECORD => self.has_header(&item[2 + 1 + 8..]),
            _ => true,
        };
        is_chosen.then(|| item.to_vec())
    }

    fn has(&self, id: u64) -> bool {
        self.ids.contains(&id)
    }

    fn has_header(&self, record: &[u8]) -> bool {
        let header: SampleHeader = bytemuck::pod_read_unaligned(&record[..SampleHeader::SIZE]);
        self.has(header.pid.into()) || self.has(header.tid.into())
    }

    fn answers(&self, mut rest: &[u8]) -> Vec<u8> {
        /// A subject, and two numbers.
        const QUESTION: usize = 1 + 8 + 8;
        const PIDS: u8 = 0;
        const PAGE: u8 = 9;
        let mut chosen = Vec::new();
        while !rest.is_empty() {
            let (question, behind) = rest.split_at(QUESTION);
            let (len, behind) = behind.split_first_chunk().unwrap();
            let (answer, behind) = behind.split_at(u32::from_le_bytes(*len) as usize);
            rest = behind;
            let of = number(question, 1, 8);
            let answer = match question[0] {
                PIDS => {
                    // It is there, how many there are, and these.
                    let pids = answer[1 + 4..].chunks(4).filter(|pid| self.has(number(pid, 0, 4)));
                    let pids: Vec<&[u8]> = pids.collect();
                    [&[1][..], &(pids.len() as u32).to_le_bytes(), &pids.concat()].concat()
                }
                1..=4 | 8 | 10 if self.has(of) => answer.to_vec(),
                PAGE if self.has(of >> 32) => answer.to_vec(),
                6 | 7 | 11 | 12 => answer.to_vec(),
                _ => continue,
            };
            chosen.extend(question);
            chosen.extend((answer.len() as u32).to_le_bytes());
            chosen.extend(answer);
        }
        chosen
    }
}

/// A number of so many bytes.
fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    bytes[at..][..len].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[test]
fn closures_of_a_journal_are_told_the_times_that_its_session_told() {
    let test = "closures_of_a_journal_are_told_the_times_that_its_session_told";
    let Some(_live) = live(test) else { return };
    let tracepoint = CASES.iter().find(|case| case.name == "tracepoint").unwrap();
    let noting = |settings: &mut SessionSettings, event_clock| {
        settings.event_clock = event_clock;
        let times = Writable::new(Vec::new());
        let seen = times.clone();
        settings.events[0].event.add_closure(move |data| {
            let time = data.context().unwrap().time;
            Ok(seen.write(|seen| seen.push(time))?)
        });
        times
    };
    let command: Vec<OsString> = tracepoint.words.iter().map(OsString::from).collect();
    for clock in [EventClock::Realtime, EventClock::Boottime] {
        let folder = folder();
        let path = folder.path().join("journal");
        let journal = Some(File::create(&path).unwrap());
        let mut settings = SessionSettings { journal, ..tracepoint.settings() };
        let recorded = noting(&mut settings, clock);
        record(settings, &command);
        let journal = Journal::open(BufReader::new(File::open(&path).unwrap())).unwrap();
        let mut settings = journal.settings();
        let replayed = noting(&mut settings, clock);
        Session::replay(journal, settings).unwrap();
        let [recorded, replayed] = [recorded, replayed].map(|times| times.into_inner().unwrap());
        assert_eq!(recorded.len(), 4, "{recorded:?}");
        assert_eq!(recorded, replayed, "{clock}");
    }
}
