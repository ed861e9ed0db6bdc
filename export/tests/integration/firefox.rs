//! What is written for Firefox Profiler, as far as its own command line (see `tests/browser`) does not tell: ids of libraries,
//! addresses, colours, times of day, allocations, and threads that change their names.

use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Svma, Tid};
use collector_common::record::{
    AttributeListId, ClockAnchor, ESTIMATED, ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId,
    ModuleKind, ModuleMapping, ProcessId, Sample, SampleKindId, ThreadId, Unit,
};
use export::format::firefox::Firefox;
use export::format::{ExportFormat, Profile};
use export::symbolize::{Function, Symbols};
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::made::Made;

fn written(machine: &ExportMachine, symbols: &Symbols) -> Value {
    let mut out = Vec::new();
    Firefox.write(Profile { machine, symbols }, &mut out).unwrap();
    serde_json::from_reader(GzDecoder::new(&out[..])).unwrap()
}

fn thread<'a>(file: &'a Value, tid: &str) -> &'a Value {
    file["threads"].as_array().unwrap().iter().find(|thread| thread["tid"] == tid).unwrap()
}

fn at<'a>(column: &'a Value, index: &Value) -> &'a Value {
    &column[index.as_u64().unwrap() as usize]
}

/// Frames of a thread, sorted: name, address or -1, library, category with its subcategory where that is one.
fn frames(file: &Value, thread: &Value) -> Vec<(String, i64, String, String)> {
    let (table, strings) = (&thread["frameTable"], &thread["stringArray"]);
    let mut frames: Vec<_> = (0..table["length"].as_u64().unwrap() as usize)
        .map(|frame| {
            let function = &table["func"][frame];
            let name = at(strings, at(&thread["funcTable"]["name"], function)).as_str().unwrap();
            let library = match at(&thread["funcTable"]["resource"], function).as_u64() {
                Some(resource) => {
                    let library = at(&file["libs"], &thread["resourceTable"]["lib"][resource as usize]);
                    library["name"].as_str().unwrap().to_owned()
                }
                None => String::new(),
            };
            let category = at(&file["meta"]["categories"], &table["category"][frame]);
            let subcategory = at(&category["subcategories"], &table["subcategory"][frame]).as_str().unwrap();
            let mut category = category["name"].as_str().unwrap().to_owned();
            // The first one of each is called so, and is none.
            if subcategory != "Other" {
                category = format!("{category}: {subcategory}");
            }
            (name.to_owned(), table["address"][frame].as_i64().unwrap(), library, category)
        })
        .collect();
    frames.sort();
    frames
}

fn expected(list: &[(&str, i64, &str, &str)]) -> Vec<(String, i64, String, String)> {
    let owned = |&(name, address, library, category): &(&str, i64, &str, &str)| {
        (name.to_owned(), address, library.to_owned(), category.to_owned())
    };
    list.iter().map(owned).collect()
}

#[test]
fn code_of_files_can_be_looked_up_again() {
    let made = Made::new();
    let file = written(&made.machine, &made.symbols);
    let [library, kernel] = &file["libs"].as_array().unwrap()[..] else { panic!("{}", file["libs"]) };
    assert_eq!(library["path"], "/opt/prog");
    assert_eq!(library["codeId"], "abcd01");
    // The build id, filled up, as a GUID: its first number in the order of the machine's bytes; and the age, 0.
    assert_eq!(library["breakpadId"], format!("0001CDAB{}0", "0".repeat(24)));
    assert_eq!((&kernel["path"], &kernel["codeId"]), (&json!("[kernel]"), &Value::Null));
    // Of return addresses the call before them.
    assert_eq!(
        frames(&file, thread(&file, "100")),
        expected(&[
            ("main", 0x4100, "prog", "User"),
            ("recurse", 0x4300, "prog", "User"),
            ("recurse", 0x4310, "prog", "User: Guessed"),
            ("work(int; char)", 0x4200, "prog", "User"),
        ])
    );
    assert_eq!(
        frames(&file, thread(&file, "200")),
        expected(&[
            ("0x8123", 0x8123, "prog", "User"),
            ("[stack cut]", -1, "", "Other"),
            ("[unmapped]+0xdead0000", -1, "", "User"),
            ("main", 0x4100, "prog", "User"),
            ("vfs_read", 0x8123_4567, "[kernel]", "Kernel"),
            ("work(int; char)", 0x4200, "prog", "User"),
        ])
    );
    let symbols = &thread(&file, "100")["nativeSymbols"];
    let recurse =
        symbols["address"].as_array().unwrap().iter().position(|address| *address == 0x4300).unwrap();
    assert_eq!(symbols["functionSize"][recurse], 0x11);
}

#[test]
fn samples_have_times_of_day_and_periods() {
    let made = Made::new();
    let file = written(&made.machine, &made.symbols);
    let start = file["meta"]["startTime"].as_f64().unwrap();
    assert!((start - 1_750_000_000_123.456_8).abs() < 0.001, "{start}");
    let interval = file["meta"]["interval"].as_f64().unwrap();
    assert!((interval - 1.003_009).abs() < 1e-9, "{interval}");
    assert_eq!(file["meta"]["product"], "prog --fast on build-07");
    assert_eq!(file["meta"]["oscpu"], "Linux 6.18.0 x86_64");
    let samples = &thread(&file, "101")["samples"];
    // One of the 21 samples has no stack; it is of the same time as the first.
    assert_eq!(samples["length"], 21);
    let stacks = samples["stack"].as_array().unwrap();
    assert_eq!(stacks.iter().filter(|stack| stack.is_null()).count(), 1);
    assert_eq!(file["meta"]["sampleUnits"]["threadCPUDelta"], "µs");
    assert_eq!(samples["timeDeltas"].as_array().unwrap()[..3], [json!(0.001), json!(0.0), json!(1.003_009)]);
    assert!(samples["threadCPUDelta"].as_array().unwrap().iter().all(|delta| *delta == 1003));
    assert!(samples["weight"].as_array().unwrap().iter().all(|weight| *weight == 1));
}

/// Milliseconds after the start of [`Recording`].
fn after(ms: u64) -> Nanos {
    Nanos((100 + ms) * 1_000_000)
}

/// A recording that is added to sample by sample.
struct Recording {
    machine: ExportMachine,
    frame: FrameId,
}

impl Recording {
    fn new() -> Self {
        let mut machine = ExportMachine::default();
        (machine.system_mut().start, machine.system_mut().end) = (after(0), after(20));
        machine.system_mut().clocks.start =
            Some(ClockAnchor { monotonic: after(0), realtime: 5_000_000_000, boottime: None });
        let path = machine.intern_string("/opt/fixed");
        let program = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
        let frame =
            machine.intern_frame(Frame { module: program, address: Svma(0x40_1234), flags: FrameFlags(0) });
        Self { machine, frame }
    }

    fn thread(&mut self, pid: u32, tid: u32, name: &str) -> ThreadId {
        let known = self.machine.processes().iter().position(|process| process.pid == Pid(pid));
        let process = match known {
            Some(position) => ProcessId(position as u32),
            None => self.machine.add_process(Pid(pid), "program", None, Nanos(0)),
        };
        let name = self.machine.intern_string(name);
        self.machine.intern_thread(process, Tid(tid), name)
    }

    fn sample(&mut self, ms: u64, thread: ThreadId, kind: SampleKindId, value: i64, list: AttributeListId) {
        let stack = self.machine.intern_stack(&[self.frame]);
        self.machine.add_sample(&Sample {
            time: after(ms),
            thread,
            stack,
            cpu: 3,
            kind,
            value,
            attributes: list,
        });
    }

    fn written(&self) -> Value {
        written(&self.machine, &Symbols::unresolved(&self.machine))
    }
}

const NONE: AttributeListId = AttributeListId::NONE;

#[test]
fn a_thread_that_renames_itself_is_one() {
    let mut made = Recording::new();
    let cpu = made.machine.add_kind("cpu", Unit::Count, 1_000_000);
    let [first, second] = ["spawned", "worker"].map(|name| made.thread(7, 8, name));
    // Of a later CPU, an earlier time.
    made.sample(5, second, cpu, 1, NONE);
    made.sample(9, second, cpu, 2, NONE);
    made.sample(2, first, cpu, 1, NONE);
    let file = made.written();
    assert_eq!(file["threads"].as_array().unwrap().len(), 1);
    let thread = thread(&file, "8");
    assert_eq!(thread["name"], "worker");
    assert_eq!(rows(thread), [(2.0, 1, Some(1000)), (5.0, 1, Some(1000)), (9.0, 2, Some(2000))]);
    let markers = &thread["markers"];
    assert_eq!((&markers["length"], &markers["startTime"]), (&json!(1), &json!([5.0])));
    assert_eq!(at(&thread["stringArray"], &markers["data"][0]["name"]), "worker");
}

/// Of a thread's samples that have a stack: the time, the weight, and for how long it was on a CPU.
fn rows(thread: &Value) -> Vec<(f64, i64, Option<u64>)> {
    let samples = &thread["samples"];
    let (mut time, mut rows) = (0.0, Vec::new());
    for (at, stack) in samples["stack"].as_array().unwrap().iter().enumerate() {
        time += samples["timeDeltas"][at].as_f64().unwrap();
        if !stack.is_null() {
            let on_cpu = samples["threadCPUDelta"][at].as_u64();
            rows.push((time, samples["weight"][at].as_i64().unwrap(), on_cpu));
        }
    }
    rows
}

/// What the application shows of a thread in time: from when to when there is a stack, which is from its sample to the next, or for an
/// interval from the last one on.
fn shown(file: &Value, thread: &Value) -> Vec<(f64, f64)> {
    let samples = &thread["samples"];
    let (mut time, mut shown) = (0.0, Vec::<(f64, f64)>::new());
    let stacks = samples["stack"].as_array().unwrap();
    for (at, stack) in stacks.iter().enumerate() {
        let delta = |at: usize| samples["timeDeltas"][at].as_f64();
        time += delta(at).unwrap();
        if !stack.is_null() {
            let lasts = delta(at + 1).unwrap_or_else(|| file["meta"]["interval"].as_f64().unwrap());
            match shown.last_mut().filter(|(_, end)| (*end - time).abs() < 1e-9) {
                Some((_, end)) => *end = time + lasts,
                None => shown.push((time, time + lasts)),
            }
        }
    }
    shown
}

#[test]
fn a_thread_is_shown_while_it_ran() {
    let mut made = Recording::new();
    let cpu = made.machine.add_kind("cpu", Unit::Count, 1_000_000);
    let threads = [made.thread(7, 7, "program"), made.thread(7, 8, "worker")];
    for thread in threads {
        // It slept from 4 to 8 ms; and 12 and 14 are two periods apart.
        for ms in [2, 3, 9, 10, 11, 12, 14] {
            made.sample(ms, thread, cpu, 1, NONE);
        }
        // The sample stands for three periods, of which no other tells.
        made.sample(19, thread, cpu, 3, NONE);
    }
    let file = made.written();
    for (tid, end) in [("7", 20.0), ("8", 20.0)] {
        let thread = thread(&file, tid);
        assert_eq!(shown(&file, thread), [(2.0, 4.0), (9.0, 15.0), (19.0, end)], "{tid}");
        let on_cpu = thread["samples"]["threadCPUDelta"].as_array().unwrap().iter();
        assert_eq!(on_cpu.map(|delta| delta.as_u64().unwrap()).sum::<u64>(), 10_000);
        // No more than has gone by since the sample before.
        for (at, delta) in thread["samples"]["threadCPUDelta"].as_array().unwrap().iter().enumerate().skip(1)
        {
            let since = thread["samples"]["timeDeltas"][at].as_f64().unwrap();
            assert!(delta.as_f64().unwrap() <= since * 1000.0 + 0.5, "{at}: {thread}");
        }
    }
}

#[test]
fn a_wait_is_shown_for_as_long_as_it_took() {
    let mut made = Recording::new();
    let waited = made.machine.add_kind("off_cpu", Unit::Nanoseconds, 1);
    let thread_id = made.thread(7, 7, "program");
    for (ms, value) in [(1, 3_000_000), (6, 4_000_000), (10, 2_000_000)] {
        made.sample(ms, thread_id, waited, value, NONE);
    }
    let file = made.written();
    assert_eq!(shown(&file, thread(&file, "7")), [(1.0, 4.0), (6.0, 12.0)]);
    assert_eq!(thread(&file, "7")["showMarkersInTimeline"], true);
    let schemas = file["meta"]["markerSchema"].as_array().unwrap();
    let schema = schemas.iter().find(|schema| schema["name"] == "sample: off_cpu").unwrap();
    assert_eq!(schema["display"], json!(["marker-chart", "marker-table", "timeline-overview"]));
    // Above a thread's name a sample is shown until half the way to the next: one more at its end has it there for all of the time.
    assert_eq!(
        rows(thread(&file, "7")).iter().map(|row| row.0).collect::<Vec<_>>(),
        [1.0, 4.0, 6.0, 10.0, 10.0, 12.0]
    );
}

/// The application goes by CPU time, and by the order of threads where there is none.
#[test]
fn the_busiest_threads_are_shown_first() {
    let mut made = Recording::new();
    let faults = made.machine.add_kind("page-faults", Unit::Count, 1);
    for process in 0..40 {
        let thread_id = made.thread(100 + process, 100 + process, "program");
        // One has far the most, and ten have more than the others.
        let value = if process == 33 { 100 } else { i64::from(process % 4 == 1) + 1 };
        made.sample(1, thread_id, faults, value, NONE);
    }
    let file = made.written();
    let pids = |threads: &str| {
        let threads = file["meta"][threads].as_array().unwrap().iter();
        let pids = threads.map(|thread| at(&file["threads"], thread)["pid"].as_str().unwrap());
        pids.map(|pid| pid.parse::<u32>().unwrap() - 100).collect::<Vec<_>>()
    };
    assert_eq!(pids("initialSelectedThreads"), [33]);
    assert_eq!(pids("initialVisibleThreads"), [33, 1, 5, 9, 13, 17, 21, 25, 29, 37]);
}

/// A driver's function, one of a program, and one that a compiler of the program's made are called the same.
#[test]
fn functions_have_the_files_of_their_own() {
    let mut made = Recording::new();
    let cpu = made.machine.add_kind("cpu", Unit::Count, 1_000_000);
    let thread_id = made.thread(7, 7, "program");
    let path = made.machine.intern_string("[anon]");
    let jit =
        made.machine.add_module(Module { kind: ModuleKind::Anonymous(ProcessId(0)), path, build_id: None });
    let mut frame = |module, address, flags| {
        made.machine.intern_frame(Frame { module, address: Svma(address), flags: FrameFlags(flags) })
    };
    let kernel = frame(ModuleId::KERNEL, 0xffff_ffff_8100_0010, FrameFlags::KERNEL);
    let compiled = frame(jit, 0x7000, 0);
    let [program, inlined] = [made.frame, frame(ModuleId(1), 0x40_2000, 0)];
    let mut symbols = Symbols::unresolved(&made.machine);
    let [read, outer] = ["read", "outer"].map(|name| symbols.intern(name));
    let [source, other] = ["/src/read.c", "/src/outer.c"].map(|file| symbols.intern(file));
    let of = |name, file, line| Function { name, linkage: name, file, line, ..Function::default() };
    symbols.set(kernel, "read", "read");
    symbols.set(compiled, "read", "read");
    symbols.set_functions(program, &[of(read, source, 3)]);
    symbols.set_functions(inlined, &[of(read, source, 4), of(outer, other, 9)]);
    for (ms, frame) in (1..).zip([kernel, compiled, program, inlined]) {
        made.frame = frame;
        made.sample(ms, thread_id, cpu, 1, NONE);
    }
    let file = written(&made.machine, &symbols);
    let thread = thread(&file, "7");
    let (functions, strings) = (&thread["funcTable"], &thread["stringArray"]);
    let mut told = Vec::new();
    for stack in thread["samples"]["stack"].as_array().unwrap().iter().filter(|stack| !stack.is_null()) {
        let function = at(&thread["frameTable"]["func"], at(&thread["stackTable"]["frame"], stack));
        let name = at(strings, at(&functions["name"], function)).as_str().unwrap();
        let library = at(&functions["resource"], function).as_u64().map(|resource| {
            at(&file["libs"], &thread["resourceTable"]["lib"][resource as usize])["name"].as_str().unwrap()
        });
        let source = at(&functions["fileName"], function);
        told.push((name, library, source.as_u64().map(|source| strings[source as usize].as_str().unwrap())));
    }
    let expected = [
        ("read", Some("[kernel]"), None),
        ("read", None, None),
        ("read", Some("fixed"), Some("/src/read.c")),
        // It can't be told from what was compiled.
        ("read", None, None),
    ];
    assert_eq!(told, expected);
}

#[test]
fn times_begin_at_their_sample_and_keep_their_attributes() {
    let mut made = Recording::new();
    let cpu = made.machine.add_kind("cpu", Unit::Count, 1_000_000);
    let waited = made.machine.add_kind("off_cpu", Unit::Nanoseconds, 1);
    let faults = made.machine.add_kind("page-faults", Unit::Count, 1);
    let [name, value] = ["type", "futex"].map(|text| made.machine.intern_string(text));
    let list = made.machine.attributes_mut().intern(&[(name, value)]);
    let thread_id = made.thread(7, 7, "program");
    made.sample(1, thread_id, cpu, 1, NONE);
    // It lasted for 2 ms longer than the recording did.
    made.sample(17, thread_id, waited, 5_000_000, list);
    made.sample(4, thread_id, faults, 6, NONE);
    // What stands for others, too.
    let [name, value] = [ESTIMATED, "yes"].map(|text| made.machine.intern_string(text));
    let estimated = made.machine.attributes_mut().intern(&[(name, value)]);
    made.sample(9, thread_id, waited, 7_000_000, estimated);
    let file = made.written();
    // The recording's start was 5 s after 1970.
    assert_eq!(file["meta"]["startTime"], 5_000.0);
    let thread = thread(&file, "7");
    assert_eq!(rows(thread), [(1.0, 1, Some(1000))]);
    let markers = &thread["markers"];
    assert_eq!(markers["startTime"], json!([4.0, 9.0, 17.0]));
    assert_eq!(markers["endTime"][2], 22.0);
    // 1 is an interval, 0 an instant.
    assert_eq!(markers["phase"], json!([0, 0, 1]));
    assert_eq!(markers["data"][1]["value"], 7_000_000.0);
    let data = [&markers["data"][2], &markers["data"][0]];
    assert_eq!((&data[0]["value"], &data[0]["cpu"]), (&json!(5_000_000.0), &json!(3.0)));
    assert!(data[0]["cause"]["stack"].is_number());
    assert_eq!(
        (&data[0]["type"], &data[1]["type"]),
        (&json!("sample: off_cpu: type"), &json!("sample: page-faults"))
    );
    assert_eq!(at(&thread["stringArray"], &data[0]["attribute0"]), "futex");
    let schemas = file["meta"]["markerSchema"].as_array().unwrap();
    let schema = schemas.iter().find(|schema| schema["name"] == "sample: off_cpu: type").unwrap();
    assert_eq!(schema["fields"][2]["label"], "type");
    assert_eq!(data[1]["value"], 6.0);
}

#[test]
fn allocations_are_the_processes() {
    let mut made = Recording::new();
    let space = made.machine.add_kind("alloc_space", Unit::Bytes, 1);
    let objects = made.machine.add_kind("alloc_objects", Unit::Count, 1);
    let in_use = made.machine.add_kind("inuse_space", Unit::Bytes, 1);
    let main = made.thread(7, 7, "program");
    let other = made.thread(7, 9, "other");
    for (ms, thread, bytes) in [(4, other, 4096), (2, main, 100)] {
        made.sample(ms, thread, space, bytes, NONE);
        made.sample(ms, thread, objects, 1, NONE);
    }
    made.sample(4, other, in_use, 4096, NONE);
    let file = made.written();
    let allocations = &thread(&file, "7")["nativeAllocations"];
    assert_eq!(allocations["weight"], json!([100, 4096]));
    assert_eq!(allocations["time"], json!([2.0, 4.0]));
    // The application would look for what is not freed.
    assert!(allocations["memoryAddress"].is_null() && allocations["threadId"].is_null());
    assert_eq!((allocations["length"].as_u64(), &allocations["weightType"]), (Some(2), &json!("bytes")));
    assert!(thread(&file, "9")["nativeAllocations"].is_null());
    // What was not recorded by a clock has its occurrences as samples.
    assert_eq!(thread(&file, "9")["samples"]["weight"], json!([1]));
    assert!(thread(&file, "9")["samples"]["threadCPUDelta"].is_null(), "nothing tells of CPUs");
    assert!(file["meta"]["sampleUnits"].is_null());
    assert_eq!(thread(&file, "9")["markers"]["data"][0]["type"], "sample: inuse_space");
    let [counter] = &file["counters"].as_array().unwrap()[..] else { panic!("{}", file["counters"]) };
    assert_eq!((&counter["category"], &counter["pid"]), (&json!("Memory"), &json!("7")));
    // The application takes the first one for nothing.
    assert_eq!(counter["samples"]["count"], json!([0.0, 0.0, 100.0, 4096.0, 0.0]));
    assert_eq!(counter["samples"]["timeDeltas"], json!([0.0, 2.0, 0.0, 2.0, 16.0]));
    assert_eq!((&counter["name"], &counter["display"]["label"]), (&json!("alloc_space"), &json!("")));
    assert_eq!(counter["display"]["unit"], "bytes");
}

#[test]
fn pids_and_paths_that_were_used_twice_are_told_apart() {
    let mut made = Recording::new();
    let cpu = made.machine.add_kind("cpu", Unit::Count, 1_000_000);
    let first = made.thread(7, 7, "program");
    made.machine.end_process(ProcessId(0), after(2));
    let again = made.machine.add_process(Pid(7), "again", None, after(3));
    let name = made.machine.intern_string("again");
    let second = made.machine.intern_thread(again, Tid(7), name);
    made.sample(1, first, cpu, 1, NONE);
    made.sample(5, second, cpu, 1, NONE);
    // Linked for a fixed place, and another file at its path: the first's symbols must not name its code.
    made.machine.add_mapping(ModuleMapping {
        process: again,
        module: ModuleId(1),
        start: Avma(0x40_1000),
        end: Avma(0x40_3000),
        file_offset: FileOffset(0x1000),
        bias: 0,
        since: Nanos(0),
    });
    let path = made.machine.intern_string("/opt/fixed");
    let module = made.machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
    let replaced = Frame { module, address: Svma(0x1234), flags: FrameFlags(0) };
    made.frame = made.machine.intern_frame(replaced);
    made.sample(6, second, cpu, 1, NONE);
    let file = made.written();
    let threads = file["threads"].as_array().unwrap();
    let ids: Vec<_> =
        threads.iter().map(|thread| (thread["pid"].as_str(), thread["name"].as_str())).collect();
    assert_eq!(ids, [(Some("7"), Some("program")), (Some("7.1"), Some("again"))]);
    assert_eq!(
        (&threads[0]["processShutdownTime"], &threads[0]["unregisterTime"]),
        (&json!(2.0), &json!(2.0))
    );
    assert_eq!((&threads[1]["processStartupTime"], &threads[1]["registerTime"]), (&json!(3.0), &json!(3.0)));
    assert!(threads[1]["processShutdownTime"].is_null());
    assert_eq!(
        frames(&file, &threads[1]),
        expected(&[("0x1234", 0x1234, "fixed", "User"), ("fixed+0x1234", -1, "", "User")])
    );
}

#[test]
fn nothing_recorded_is_still_a_span_of_time() {
    let file = Recording::new().written();
    assert_eq!(thread(&file, "0")["samples"]["timeDeltas"], json!([0.0, 20.0]));
    assert_eq!(file["meta"]["symbolicated"], true);
}

/// Values from outside can be anything.
#[test]
fn extremes_stay_within_the_format() {
    let mut made = Recording::new();
    let cpu = made.machine.add_kind("cpu", Unit::Count, u64::MAX);
    let waited = made.machine.add_kind("off_cpu", Unit::Nanoseconds, 1);
    let thread_id = made.thread(7, 7, "program");
    for value in [i64::MIN, -1, 0, i64::MAX] {
        made.sample(1, thread_id, cpu, value, NONE);
        made.sample(2, thread_id, waited, value, NONE);
    }
    let file = made.written();
    let thread = thread(&file, "7");
    // In millions of millions, where the last has what the first has too much.
    assert_eq!(weights(thread), [-9_223_372, 0, 0, 9_223_371]);
    assert_eq!(thread["markers"]["startTime"], json!([2.0, 2.0, 2.0, 2.0, 0.0]));
    assert_eq!(thread["markers"]["endTime"][0], 2.0);
}

/// The weights of samples with a stack.
fn weights(thread: &Value) -> Vec<i64> {
    rows(thread).into_iter().map(|(_, weight, _)| weight).collect()
}

/// Texts of markers of one name.
fn texts<'a>(thread: &'a Value, name: &str) -> Vec<&'a str> {
    let (markers, strings) = (&thread["markers"], &thread["stringArray"]);
    let named = |at: &usize| strings[markers["name"][at].as_u64().unwrap() as usize] == name;
    let all = 0..markers["length"].as_u64().unwrap() as usize;
    all.filter(named).map(|at| self::at(strings, &markers["data"][at]["text"]).as_str().unwrap()).collect()
}

#[test]
fn times_alone_are_a_call_tree() {
    let mut made = Recording::new();
    let waited = made.machine.add_kind("off_cpu", Unit::Nanoseconds, 1);
    let longer = made.machine.add_kind("blocked", Unit::Nanoseconds, 1);
    let thread_id = made.thread(7, 7, "program");
    // 0.6 ms each, 3 ms in all.
    for ms in 1..6 {
        made.sample(ms, thread_id, waited, 600_000, NONE);
        made.sample(ms, thread_id, longer, 5_000_000, NONE);
    }
    let file = made.written();
    let thread = thread(&file, "7");
    assert_eq!(thread["samples"]["weightType"], "tracing-ms");
    // Behind each is where it ends.
    assert_eq!(weights(thread), [0, 0, 1, 0, 0, 0, 1, 0, 1, 0]);
    assert!(thread["samples"]["threadCPUDelta"].is_null());
    assert_eq!(thread["markers"]["length"], 10);
}

/// The format's crate has 32 bits.
#[test]
fn counts_that_are_too_large_are_scaled() {
    let mut made = Recording::new();
    let cycles = made.machine.add_kind("cycles", Unit::Count, 1);
    let thread_id = made.thread(7, 7, "program");
    for (ms, value) in [(1, 5_000_000_600), (2, 400), (3, 7)] {
        made.sample(ms, thread_id, cycles, value, NONE);
    }
    let file = made.written();
    assert_eq!(weights(thread(&file, "7")), [5_000_000, 1, 0]);
    assert_eq!(texts(thread(&file, "7"), "recording"), ["1 of the weight of cycles is 1000"]);
}

#[test]
fn what_is_known_of_a_process_is_told_on_its_first_thread() {
    let mut made = Recording::new();
    let cpu = made.machine.add_kind("cpu", Unit::Count, 1_000_000);
    for tid in [7, 8] {
        let thread = made.thread(7, tid, "program");
        made.sample(1, thread, cpu, 1, NONE);
    }
    let program = made.machine.add_program(ProcessId(0), Nanos(0), "program");
    made.machine.set_arguments(program, b"program\0--fast\0", false);
    made.machine.set_cgroup(ProcessId(0), "/system.slice/program.service");
    let file = made.written();
    let expected = ["command: program --fast", "cgroup: /system.slice/program.service"];
    assert_eq!(texts(thread(&file, "7"), "process"), expected);
    assert!(texts(thread(&file, "8"), "process").is_empty());
}

#[test]
fn the_account_is_told() {
    let mut made = Made::new();
    made.machine.add_custom_metric("queue", 7.5, "requests");
    let file = written(&made.machine, &made.symbols);
    assert_eq!(
        texts(thread(&file, "100"), "recording"),
        ["3 lost (ring_full 3)", "100.00 % are complete", "queue: 7.5 requests"]
    );
}

#[test]
fn kinds_and_what_is_no_kind_are_told_apart() {
    let mut made = Recording::new();
    made.machine.system_mut().lost = Some(1);
    let cpu = made.machine.add_kind("cpu", Unit::Count, 1_000_000);
    let kinds = ["renamed", "recording"].map(|name| made.machine.add_kind(name, Unit::Count, 1));
    let threads = ["spawned", "worker"].map(|name| made.thread(7, 8, name));
    for (ms, thread) in [(1, threads[0]), (2, threads[1])] {
        for kind in [cpu, kinds[0], kinds[1]] {
            made.sample(ms, thread, kind, 1, NONE);
        }
    }
    let file = made.written();
    let schemas = file["meta"]["markerSchema"].as_array().unwrap();
    let mut names: Vec<_> = schemas.iter().map(|schema| schema["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    let of_kinds = ["kind: 0", "kind: 1", "kind: 2"];
    assert_eq!(names[..3], of_kinds);
    assert_eq!(names[3..], ["recording", "renamed", "sample: recording", "sample: renamed"]);
}

#[test]
fn inlined_functions_are_called_by_what_they_are_inlined_into() {
    let mut made = Made::new();
    let work = FrameId(1);
    assert_eq!(made.symbols.name(work).function, "work(int; char)");
    let functions = ["tiny", "small", "work(int; char)"].map(|name| {
        let name = made.symbols.intern(name);
        Function { name, linkage: name, ..Function::default() }
    });
    made.symbols.set_functions(work, &functions);
    let file = written(&made.machine, &made.symbols);
    // All of its samples are of that stack.
    let thread = thread(&file, "101");
    let (stacks, strings) = (&thread["stackTable"], &thread["stringArray"]);
    let name_of = |stack: &Value| {
        let function = at(&thread["frameTable"]["func"], at(&stacks["frame"], stack));
        at(strings, at(&thread["funcTable"]["name"], function)).as_str().unwrap()
    };
    let leaves = thread["samples"]["stack"].as_array().unwrap();
    let leaf = leaves.iter().find(|stack| !stack.is_null()).unwrap();
    let mut names = vec![name_of(leaf)];
    let mut stack = leaf;
    while !at(&stacks["prefix"], stack).is_null() {
        stack = at(&stacks["prefix"], stack);
        names.push(name_of(stack));
    }
    assert_eq!(names, ["tiny", "small", "work(int; char)", "main"]);
}
