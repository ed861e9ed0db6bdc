//! Tracepoints of programs' own: as the library registers and writes them, and as a program does by the kernel's header alone
//! (`user_event.c`); recorded by closures and by the binary, beside `perf` and tracefs' own buffer.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use collector_common::event::{EventFlags, Extent, FieldKind, Width, filter};
use collector_common::sharing::Writable;
use collector_user::session::{self, Backend, Session, SessionSettings};
use collector_user::source::{Hook, Settings};
use collector_user::tracefs::{Tracefs, TracefsError};
use collector_user::user_events::{Declaration, UserEvent, UserEventError, UserEvents};
use serde_json::Value;

use crate::prerequisites::{live, live_with, not_on_this_kernel};
use crate::programs::{compile, folder};
use crate::recording::{assert_balanced, collector, figure, run};

/// The fields of `user_event.c`.
const FIELDS: &str = "u32 number; s16 negative; u8 odd; __rel_loc char[] rel; __data_loc char[] data; \
                      char[8] name; struct pair both 8";

/// How often events are written.
const TIMES: u32 = 200;

const BACKENDS: [Backend; 2] = [Backend::Ebpf, Backend::Perf];

const BYTE: FieldKind = FieldKind::Unsigned(Width::W8);

/// As [`live_with`], on a kernel that has such events.
fn live_where_they_are(test: &str, programs: &[&str]) -> Option<MutexGuard<'static, ()>> {
    let live = live_with(test, programs)?;
    if Tracefs::open().unwrap().has_user_events() {
        return Some(live);
    }
    not_on_this_kernel(test, "it was built without CONFIG_USER_EVENTS");
    None
}

/// Waits for what the kernel does a little later.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not after 30 s");
        std::thread::yield_now();
    }
}

fn is_there(name: &str) -> bool {
    Tracefs::open().unwrap().event(&format!("user_events:{name}")).is_ok()
}

fn settings(backend: Backend, events: Vec<Hook>) -> SessionSettings {
    let sampling = Settings { clock: false, ..Settings::default() };
    SessionSettings { sampling, events, backend, ..SessionSettings::default() }
}

/// `user_event.c`, which has registered an event.
struct Writer {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Writer {
    fn start(program: &Path, declaration: &str, how: &str) -> Self {
        let mut child = Command::new(program)
            .args([declaration, &TIMES.to_string(), how])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut writer = Self { child, answers };
        assert_eq!(writer.answer(), "registered");
        writer
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Has it write, and gives how many the kernel took, and whether it was told that somebody records them.
    fn write(&mut self) -> (u32, bool) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        told(&self.answer(), self.child.id())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// What `user_event.c` says that it wrote.
fn told(answer: &str, tid: u32) -> (u32, bool) {
    let (taken, rest) = answer.split_once(" of ").unwrap_or_else(|| panic!("{answer}"));
    let (thread, bit) = rest.split_once(", bit ").unwrap();
    assert_eq!(thread.parse::<u32>().unwrap(), tid);
    (taken.parse().unwrap(), bit == "1")
}

fn writer(folder: &Path) -> PathBuf {
    compile(folder, "user_event", "user_event.c", &["-pthread"])
}

/// What a closure is told of an occurrence: its thread, and the fields as text, by their names.
type Seen = Writable<Vec<(u32, BTreeMap<String, String>)>>;

/// A tracepoint with a closure that keeps the fields that it is registered with.
fn keep(name: &str, filter: Option<&str>) -> (Hook, Seen) {
    let mut event = Tracefs::open().unwrap().event(name).unwrap();
    event.set_filter(filter.map(|text| filter::parse(text).unwrap()).as_ref()).unwrap();
    event.flags_mut().set(EventFlags::CALLSTACK, true);
    let own = event.format().fields().iter().map(|field| field.name().to_owned());
    let names: Vec<String> = own.filter(|name| !name.starts_with("common_")).collect();
    let fields: Vec<_> =
        names.iter().map(|name| (name.clone(), event.format().field_ref(name).unwrap())).collect();
    let seen = Seen::new(Vec::new());
    let kept = seen.clone();
    event.add_closure(move |data| {
        let mut values = BTreeMap::new();
        for (name, field) in &fields {
            let declared = data.format().field(*field).unwrap();
            let text = match (declared.kind(), declared.is_array()) {
                (FieldKind::Char, _) => data.try_get_str(*field)?.to_owned(),
                (_, true) => format!("{:?}", data.try_get_slice(*field)?),
                (FieldKind::Signed(_), _) => data.try_get_i64(*field)?.to_string(),
                _ => data.try_get_u64(*field)?.to_string(),
            };
            values.insert(name.clone(), text);
        }
        let tid = data.context().map_or(0, |context| context.tid.0);
        Ok(kept.write(|kept| kept.push((tid, values)))?)
    });
    (Hook::tracepoint(event), seen)
}

/// What `user_event.c` writes with a number.
fn written(number: u32) -> BTreeMap<String, String> {
    let both = [number, !number].map(u32::to_ne_bytes).concat();
    let fields = [
        ("number", number.to_string()),
        ("negative", (-i64::from(number)).to_string()),
        ("odd", (number % 2).to_string()),
        ("rel", format!("rel {number}")),
        ("data", format!("data {number}")),
        ("name", format!("n{}", number % 10)),
        ("both", format!("{both:?}")),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Records the whole machine while a thread does something. Gives also what that gives.
fn record_while<T: Send>(
    settings: SessionSettings,
    work: impl FnOnce() -> T + Send,
) -> (session::Recording, T) {
    let mut session = Session::start(settings, None).unwrap();
    let (stop, ended) = UnixStream::pair().unwrap();
    let given = std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let given = work();
            drop(ended);
            given
        });
        session.run(stop.as_fd(), |_| {}).unwrap();
        thread.join().unwrap()
    });
    let recording = session.finish().unwrap();
    assert_balanced(&recording.stats_now().to_json());
    (recording, given)
}

/// What the library is given with a number, for an event with one field of each kind there is; `fixed` of those alone whose
/// records have one size.
struct Values {
    fixed: bool,
}

impl Values {
    fn declare(&self, name: &str) -> Declaration {
        let declared = Declaration::new(name)
            .field("byte", BYTE, Extent::One)
            .field("wide", FieldKind::Unsigned(Width::W64), Extent::One)
            .field("signed", FieldKind::Signed(Width::W32), Extent::One)
            .field("array", FieldKind::Char, Extent::Array(12))
            .field("raw", BYTE, Extent::Array(3));
        if self.fixed {
            return declared;
        }
        declared.field("text", FieldKind::Char, Extent::RelLoc).field("bytes", BYTE, Extent::RelLoc)
    }

    #[inline(never)]
    fn write_numbered(&self, event: &UserEvent, number: u32) -> bool {
        let (byte, wide, signed) = (number as u8, u64::MAX - u64::from(number), -(number as i32));
        let (array, text) = (format!("array {number}"), "ä".repeat(number as usize));
        let (raw, bytes) = ([1, byte, 3], vec![byte; number as usize]);
        let values = [
            byte.into(),
            wide.into(),
            signed.into(),
            array.as_str().into(),
            raw[..].into(),
            text.as_str().into(),
            bytes[..].into(),
        ];
        let values = if self.fixed { &values[..5] } else { &values };
        event.write(values).unwrap()
    }

    fn expected(&self, number: u32) -> BTreeMap<String, String> {
        let byte = number as u8;
        let fields = [
            ("byte", byte.to_string()),
            ("wide", (u64::MAX - u64::from(number)).to_string()),
            ("signed", (-i64::from(number)).to_string()),
            ("array", format!("array {number}")),
            ("raw", format!("{:?}", [1, byte, 3])),
            ("text", "ä".repeat(number as usize)),
            ("bytes", format!("{:?}", vec![byte; number as usize])),
        ];
        let count = if self.fixed { 5 } else { fields.len() };
        fields.into_iter().take(count).map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

#[test]
fn a_closure_gets_what_this_program_writes() {
    let Some(_live) = live_where_they_are("a_closure_gets_what_this_program_writes", &[]) else { return };
    let events = UserEvents::open().unwrap();
    for (name, fixed) in [("collector_fixed", true), ("collector_any", false)] {
        let values = Values { fixed };
        let event = events.register(&values.declare(name)).unwrap();
        for backend in BACKENDS {
            assert!(!event.is_enabled() && !values.write_numbered(&event, 0), "nobody records it");
            let (hook, seen) = keep(&format!("user_events:{name}"), None);
            let (recording, (tid, taken)) = record_while(settings(backend, vec![hook]), || {
                assert!(event.is_enabled());
                let taken = (0..TIMES).filter(|&number| values.write_numbered(&event, number)).count();
                (rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned(), taken)
            });
            wait_until("the bit is cleared", || !event.is_enabled());
            let what = format!("{name}, {backend:?}: {:?}", recording.ledger);
            assert_eq!(taken, TIMES as usize, "{what}");
            let expected: Vec<_> = (0..TIMES).map(|number| (tid, values.expected(number))).collect();
            assert_eq!(seen.into_inner().unwrap(), expected, "{what}");
            assert_eq!(recording.ledger.delivered(), u64::from(TIMES), "{what}");
            assert_eq!(recording.ledger.total_lost(), 0, "{what}");
            let (machine, symbols) = (&recording.machine, recording.symbolize());
            let is_of_writer = |&frame: &_| symbols.name(frame).function.contains("write_numbered");
            let with_stack = machine
                .samples()
                .iter()
                .filter(|sample| machine.stacks().get(sample.stack).iter().any(is_of_writer));
            assert_eq!(with_stack.count(), TIMES as usize, "{what}");
        }
        drop(event);
        wait_until("it is gone", || !is_there(name));
    }
}

/// What a line of `perf script` or of tracefs' buffer says of a field: up to the next one.
fn of_field<'a>(line: &'a str, name: &str, next: &str) -> &'a str {
    let (_, rest) = line.split_once(&format!(" {name}=")).unwrap_or_else(|| panic!("{name}: {line}"));
    rest.split_once(&format!(" {next}=")).map_or(rest, |(value, _)| value)
}

#[test]
fn what_another_program_writes_is_what_perf_and_tracefs_tell() {
    let test = "what_another_program_writes_is_what_perf_and_tracefs_tell";
    let Some(_live) = live_where_they_are(test, &["perf"]) else { return };
    let folder = folder();
    let program = writer(folder.path());
    let declaration = format!("collector_other {FIELDS}");
    let _holder = Writer::start(&program, &declaration, "");
    let tracing = Path::new("/sys/kernel/tracing");
    for backend in ["ebpf", "perf"] {
        let [lines, stats, data] = ["x.jsonl", "stats.json", "x.data"].map(|name| folder.path().join(name));
        let enable = tracing.join("events/user_events/collector_other/enable");
        fs::write(tracing.join("trace"), "").unwrap();
        fs::write(&enable, "1").unwrap();
        let mut perf = Command::new("perf");
        perf.args(["record", "--quiet", "-a", "-e", "user_events:collector_other", "-o"])
            .arg(&data)
            .arg("--");
        perf.arg(collector().get_program());
        perf.args(["run", "-e", "user_events:collector_other", "--backend", backend, "-o"]).arg(&lines);
        perf.arg("--stats").arg(&stats).arg("--").arg(&program);
        let output =
            perf.args([&declaration, &TIMES.to_string(), "now"]).stdin(Stdio::null()).output().unwrap();
        fs::write(&enable, "0").unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let answer = String::from_utf8(output.stdout).unwrap();
        let tid = answer.split_once(" of ").unwrap().1.split_once(',').unwrap().0.parse().unwrap();
        assert_eq!(told(answer.trim(), tid), (TIMES, true));

        let script =
            Command::new("perf").args(["script", "-F", "comm,tid,event,trace", "-i"]).arg(&data).output();
        let script = String::from_utf8(script.unwrap().stdout).unwrap();
        let trace = fs::read_to_string(tracing.join("trace")).unwrap();
        let of_perf: Vec<&str> = script.lines().filter(|line| line.contains("collector_other:")).collect();
        let of_tracefs: Vec<&str> = trace.lines().filter(|line| line.contains("collector_other:")).collect();
        let text = fs::read_to_string(&lines).unwrap();
        let events = text.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
        let events: Vec<Value> = events.collect();
        assert_eq!(
            [events.len(), of_perf.len(), of_tracefs.len()],
            [TIMES as usize; 3],
            "{backend}: {said}{script}{trace}"
        );
        for (number, ((event, perf), tracefs)) in (0_u32..).zip(events.iter().zip(&of_perf).zip(&of_tracefs))
        {
            let expected = written(number);
            assert_eq!(event["tid"], tid, "{event}");
            for (name, next) in [
                ("number", "negative"),
                ("negative", "odd"),
                ("odd", "rel"),
                ("rel", "data"),
                ("data", "name"),
                ("name", "both"),
            ] {
                let ours = &event["fields"][name];
                let ours = ours.as_str().map_or_else(|| ours.to_string(), str::to_owned);
                assert_eq!(ours, expected[name], "{backend}: {event}");
                let theirs = of_field(perf, name, next);
                // `perf` does not know that an `s16` has a sign.
                let is_same =
                    theirs == ours || theirs.parse::<u16>().is_ok_and(|bits| bits as i16 == -(number as i16));
                assert!(is_same, "{backend}: {name}: {event} {perf}");
            }
            assert_eq!(
                of_field(tracefs, "number", "negative"),
                format!("0x{number:x} ({number})"),
                "{tracefs}"
            );
            assert_eq!(of_field(tracefs, "rel", "data"), expected["rel"], "{tracefs}");
        }
        let stats: Value = serde_json::from_slice(&fs::read(stats).unwrap()).unwrap();
        assert_balanced(&stats);
        assert_eq!(figure(&stats, "/samples/delivered"), u64::from(TIMES), "{stats:#}");
        assert_eq!(figure(&stats, "/samples/produced"), u64::from(TIMES), "{stats:#}");
    }
}

/// A filter, and which of the numbers of `user_event.c` it lets through.
type Filter = (&'static str, fn(u32) -> bool);

#[test]
fn a_filter_lets_through_the_same_with_both_backends() {
    let test = "a_filter_lets_through_the_same_with_both_backends";
    let Some(_live) = live_where_they_are(test, &[]) else { return };
    let folder = folder();
    let mut writer = Writer::start(&writer(folder.path()), &format!("collector_filtered {FIELDS}"), "");
    let filters: [Filter; 9] = [
        ("number >= 150", |number| number >= 150),
        ("negative < -10 and odd == 1", |number| number > 10 && number % 2 == 1),
        ("not odd & 1", |number| number % 2 == 0),
        ("rel == 'rel 7'", |number| number == 7),
        ("rel ends_with '9' or data starts_with 'data 3'", |number| {
            number % 10 == 9 || number.to_string().starts_with('3')
        }),
        ("data == 'data 8'", |number| number == 8),
        ("data contains '12'", |number| number.to_string().contains("12")),
        ("name == 'n4'", |number| number % 10 == 4),
        ("name != 'n4' and number < 20", |number| number % 10 != 4 && number < 20),
    ];
    for backend in BACKENDS {
        let (hooks, seen): (Vec<_>, Vec<_>) =
            filters.iter().map(|(text, _)| keep("user_events:collector_filtered", Some(text))).unzip();
        let (recording, answer) = record_while(settings(backend, hooks), || writer.write());
        assert_eq!(answer, (TIMES, true));
        for ((text, passes), seen) in filters.iter().zip(seen) {
            let seen: Vec<_> = seen.into_inner().unwrap().into_iter().map(|(_, values)| values).collect();
            let expected: Vec<_> = (0..TIMES).filter(|&number| passes(number)).map(written).collect();
            assert_eq!(seen, expected, "{backend:?}: {text}");
        }
        assert_eq!(recording.ledger.total_lost(), 0, "{:?}", recording.ledger);
    }
}

#[test]
fn an_event_of_several_lists_of_fields_is_recorded_by_a_pattern() {
    let test = "an_event_of_several_lists_of_fields_is_recorded_by_a_pattern";
    let Some(_live) = live_where_they_are(test, &[]) else { return };
    let folder = folder();
    let program = writer(folder.path());
    let mut one = Writer::start(&program, &format!("collector_multi {FIELDS}"), "multi");
    let mut other = Writer::start(&program, &format!("collector_multi {FIELDS}; u8 more"), "multi");
    let tracefs = Tracefs::open().unwrap();
    let names = tracefs.matching("user_events_multi:collector_multi.*").unwrap().unwrap();
    assert_eq!(names.len(), 2, "{names:?}");
    for backend in BACKENDS {
        let (hooks, seen): (Vec<_>, Vec<_>) = names.iter().map(|name| keep(name, None)).unzip();
        // The clock is by programs with the one, so that records come from two sources.
        let sampling = Settings { frequency: 49, ..Settings::default() };
        let settings = SessionSettings { sampling, ..settings(backend, hooks) };
        let (recording, answers) = record_while(settings, || [one.write(), other.write()]);
        assert_eq!(answers, [(TIMES, true); 2]);
        let seen: Vec<_> = seen.into_iter().map(|seen| seen.into_inner().unwrap().len()).collect();
        assert_eq!(seen, [TIMES as usize; 2], "{backend:?}: {:?}", recording.ledger);
    }
}

#[test]
fn threads_register_and_end_as_they_like() {
    let test = "threads_register_and_end_as_they_like";
    let Some(_live) = live_where_they_are(test, &[]) else { return };
    // What the library's own thread is for: the kernel forgets the bit with the thread that registered it.
    let folder = folder();
    let mut lone = Writer::start(&writer(folder.path()), &format!("collector_lone {FIELDS}"), "thread");
    let events = UserEvents::open().unwrap();
    let declared = Declaration::new("collector_threads").field("x", BYTE, Extent::One);
    let event =
        std::thread::scope(|scope| scope.spawn(|| events.register(&declared)).join().unwrap().unwrap());
    drop(events);
    let (hook, seen) = keep("user_events:collector_threads", None);
    let (lone_hook, lone_seen) = keep("user_events:collector_lone", None);
    let (_, (ours, theirs)) = record_while(settings(Backend::Auto, vec![hook, lone_hook]), || {
        (event.write(&[1_u8.into()]).unwrap(), lone.write())
    });
    assert!(ours && seen.into_inner().unwrap().len() == 1);
    assert_eq!(theirs, (TIMES, false), "the kernel has changed: the library's thread may be of no use");
    assert_eq!(lone_seen.into_inner().unwrap().len(), TIMES as usize);
    // And in a thread that the kernel knows nothing of.
    std::thread::scope(|scope| _ = scope.spawn(move || drop(event)));
    wait_until("it is gone", || !is_there("collector_threads"));
}

#[test]
fn an_event_is_there_while_it_is_recorded_and_a_second_one_of_its_name_is_refused() {
    let test = "an_event_is_there_while_it_is_recorded_and_a_second_one_of_its_name_is_refused";
    let Some(_live) = live_where_they_are(test, &[]) else { return };
    let events = UserEvents::open().unwrap();
    let declare = |name: &str, kind| Declaration::new(name).field("x", kind, Extent::One);
    let first = events.register(&declare("collector_twice", BYTE)).unwrap();
    let same = events.register(&declare("collector_twice", BYTE)).unwrap();
    let other = declare("collector_twice", FieldKind::Unsigned(Width::W16));
    let error = events.register(&other).unwrap_err();
    assert!(matches!(error, UserEventError::OtherFields { .. }), "{error}");
    assert!(
        error.to_string().contains("collector_twice is registered already, with other fields"),
        "{error}"
    );
    drop(first);
    let (hook, seen) = keep("user_events:collector_twice", None);
    record_while(settings(Backend::Auto, vec![hook]), || {
        assert!(same.write(&[7_u8.into()]).unwrap());
        drop(same);
        assert!(is_there("collector_twice"), "it is recorded");
    });
    assert_eq!(seen.into_inner().unwrap().len(), 1);
    wait_until("it is gone", || !is_there("collector_twice"));
    drop(events.register(&other).unwrap());
}

#[test]
fn an_event_that_nobody_has_registered_is_told() {
    let Some(_live) = live_where_they_are("an_event_that_nobody_has_registered_is_told", &[]) else { return };
    let folder = folder();
    let events = UserEvents::open().unwrap();
    let _event = events.register(&Declaration::new("collector_nearly")).unwrap();
    for (name, expected) in [
        (
            "user_events:collector_nearlu",
            "did you mean user_events:collector_nearly?; it is there while its program runs",
        ),
        (
            "user_events_multi:collector_nearly",
            "no program has registered `user_events_multi:collector_nearly`",
        ),
    ] {
        let file = folder.path().join("x.folded");
        let output = run(["-e", name, "-o", file.to_str().unwrap(), "--", "true"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(expected), "{stderr}");
    }
}

#[test]
fn without_them_the_kernel_s_option_is_told() {
    let Some(_live) = live("without_them_the_kernel_s_option_is_told") else { return };
    let tracefs = Tracefs::open().unwrap();
    if tracefs.has_user_events() {
        return;
    }
    let error = UserEvents::open().unwrap_err();
    assert!(matches!(error, UserEventError::NotInKernel), "{error}");
    assert!(error.to_string().contains("CONFIG_USER_EVENTS"), "{error}");
    let error = tracefs.event("user_events:x").unwrap_err();
    assert!(matches!(error, TracefsError::NoUserEvents { .. }), "{error}");
}

/// The modes that files had, which they get again.
struct Modes(Vec<(PathBuf, fs::Permissions)>);

impl Modes {
    fn add(&mut self, path: &Path, bits: u32) {
        let before = fs::metadata(path).unwrap().permissions();
        fs::set_permissions(path, fs::Permissions::from_mode(before.mode() | bits)).unwrap();
        self.0.push((path.to_owned(), before));
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        for (path, before) in self.0.drain(..) {
            fs::set_permissions(path, before).unwrap();
        }
    }
}

/// The example, run by root or by nobody, and what it says of a line.
fn own_event(is_root: bool) -> (bool, String) {
    const NOBODY: u32 = 65534;
    let binaries = Path::new(env!("CARGO_BIN_EXE_collector")).parent().unwrap();
    let mut example = Command::new(binaries.join("examples/own_event"));
    if !is_root {
        example.uid(NOBODY).gid(NOBODY);
    }
    example.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut example =
        example.spawn().unwrap_or_else(|error| panic!("{error}; `cargo build --examples` makes it"));
    // It may have ended.
    let _ = example.stdin.take().unwrap().write_all(b"a line\n");
    let output = example.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

#[test]
fn who_may_register_is_told_and_is_as_the_message_says() {
    let test = "who_may_register_is_told_and_is_as_the_message_says";
    let Some(_live) = live_where_they_are(test, &[]) else { return };
    assert_eq!(own_event(true), (true, "user_events:line_read is there\n1 is not recorded\n".to_owned()));
    let (done, said) = own_event(false);
    let path = "/sys/kernel/tracing/user_events_data";
    assert!(
        !done && said.contains(&format!("{path} is root's to write to: run this program with sudo")),
        "{said}"
    );
    assert!(
        said.contains(&format!("`sudo chmod o+x /sys/kernel/tracing` and `sudo chmod o+w {path}`")),
        "{said}"
    );
    let mut modes = Modes(Vec::new());
    modes.add("/sys/kernel/tracing".as_ref(), 0o1);
    modes.add(path.as_ref(), 0o2);
    assert_eq!(own_event(false), (true, "user_events:line_read is there\n1 is not recorded\n".to_owned()));
}
