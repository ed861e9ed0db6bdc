//! Profiles of Firefox Profiler become machines again: those that we write as far as the format has them, hand-made ones of its
//! versions, and what is none an error.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};

use collector_common::ids::{Nanos, Pid, Svma, Tid};
use collector_common::record::{
    AttributeValue, ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleKind, Sample, SampleKindId, Unit,
};
use export::format::firefox::Firefox;
use export::import::{ImportFormat as _, Imported, firefox};
use export::symbolize::Symbols;
use flate2::read::GzDecoder;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::made::Made;
use crate::random::{imported, of_thread, recording, rows, told, written};

fn plain(compressed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(compressed).read_to_end(&mut plain).unwrap();
    plain
}

/// Each sample with its time. Attributes are those of markers alone; a process has no name but its main thread's.
fn facts(machine: &ExportMachine, symbols: &Symbols, allocations: &str) -> BTreeMap<String, i64> {
    let tell = |sample: &Sample| {
        let kind = machine.kinds()[usize::from(sample.kind.0)];
        let name = machine.string(kind.name);
        let is_marker = name != "cpu" && name != allocations;
        let thread = of_thread(machine, sample);
        let place = if name == allocations {
            thread.split(' ').next().unwrap().to_owned()
        } else if is_marker {
            format!("{thread} on {}", sample.cpu)
        } else {
            thread.split(" [").next().unwrap().to_owned()
        };
        Some((format!("{name} {:?} {} at {} {place}", kind.unit, kind.period, sample.time.0), sample.value))
    };
    told(machine, tell, |id| {
        let frame = machine.frames().get(id);
        let functions: Vec<_> = symbols.functions(id).collect();
        let is_unnamed = !symbols.is_resolved(id);
        let name = |id| symbols.function(id).to_owned();
        let kernel = if frame.flags.has(FrameFlags::KERNEL) { "_[k]" } else { "" };
        let mark = |is_inlined| if is_inlined { "_[i]" } else { "" };
        let named = functions.iter().rev().map(|of| name(of.name) + kernel + mark(of.is_inlined));
        // Where it is in its file, which what was inlined there does not have.
        let module = machine.module(frame.module);
        let place = if frame.has_address() && !frame.is_kernel() {
            format!("{} {:?} {:#x}", machine.string(module.path), module.build_id, frame.lookup_address().0)
        } else {
            String::new()
        };
        if is_unnamed {
            vec![place]
        } else {
            [place].into_iter().chain(named).filter(|part| !part.is_empty()).collect()
        }
    })
}

proptest! {
    #[test]
    fn what_we_write_is_read_as_it_was(rows in rows()) {
        let kinds = [("cpu", Unit::Count, 1_003_009), ("off-cpu", Unit::Nanoseconds, 1), ("alloc", Unit::Bytes, 1)];
        let (machine, symbols) = recording(&rows, &kinds);
        let bytes = written(&Firefox, &machine, &symbols);
        let again = imported(&bytes).unwrap();
        prop_assert_eq!(facts(&machine, &symbols, "alloc"), facts(&again.machine, &again.symbols, "alloc"));
        prop_assert!(again.left_out.is_empty(), "{:?}", again.left_out);
    }

    #[test]
    fn damaged_profiles_are_survived(
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let made = Made::new();
        let mut plain = plain(&written(&Firefox, &made.machine, &made.symbols));
        for (at, byte) in damage {
            let at = at.index(plain.len());
            plain[at] = byte;
        }
        let _ = imported(&plain);
    }
}

/// Windows' kernel and its drivers are files; Linux's kernel is none, wherever it is a library.
#[test]
fn images_of_the_kernel_stay_apart() {
    let mut machine = ExportMachine::default();
    let kind = machine.add_kind("cpu", Unit::Count, 1_000_000);
    let process = machine.add_process(Pid(4), "System", None, Nanos(0));
    let name = machine.intern_string("System");
    let thread = machine.intern_thread(process, Tid(8), name);
    let paths = [r"C:\Windows\system32\drivers\one.sys", r"C:\Windows\system32\drivers\other.sys"];
    let flags = FrameFlags(FrameFlags::KERNEL);
    let frames = paths.map(|path| {
        let path = machine.intern_string(path);
        let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
        machine.intern_frame(Frame { module, address: Svma(0x1230), flags })
    });
    let stack = machine.intern_stack(&frames);
    machine.add_sample(&Sample { kind, thread, stack, value: 1, ..Sample::default() });
    let symbols = Symbols::unresolved(&machine);
    let file = plain(&written(&Firefox, &machine, &symbols));
    let places = |file: &[u8]| {
        let machine = imported(file).unwrap().machine;
        let stack = machine.stacks().get(machine.samples().at(0).stack);
        let place = |id: &FrameId| {
            let frame = machine.frames().get(*id);
            (machine.string(machine.module(frame.module).path).to_owned(), frame.is_kernel(), frame.address.0)
        };
        stack.iter().map(place).collect::<Vec<_>>()
    };
    let told = places(&file);
    let modules: Vec<_> = told.iter().map(|(path, is_kernel, _)| (path.as_str(), *is_kernel)).collect();
    assert_eq!(modules, paths.map(|path| (path, true)));
    assert_eq!([told[0].2, told[1].2], [0x1230; 2]);

    // As samply calls the kernel.
    let file = String::from_utf8(file).unwrap();
    let file = file.replace(r"C:\\Windows\\system32\\drivers\\one.sys", "[kernel.kallsyms]");
    let told = places(file.as_bytes());
    assert_eq!((told[0].0.as_str(), told[0].1, told[1].0.as_str()), ("[kernel]", true, paths[1]));
}

/// Types of markers are told apart by their names.
#[test]
fn kinds_of_one_name_keep_their_units_and_attributes() {
    let mut machine = ExportMachine::default();
    let kinds =
        [("cpu", Unit::Count), ("io", Unit::Nanoseconds), ("io", Unit::Count), ("io: size", Unit::Count)];
    let kinds = kinds.map(|(name, unit)| machine.add_kind(name, unit, 1));
    let process = machine.add_process(Pid(7), "app", None, Nanos(0));
    let name = machine.intern_string("app");
    let thread = machine.intern_thread(process, Tid(7), name);
    let [size, other] = ["size", "size (number)"].map(|name| machine.intern_string(name));
    let number = AttributeValue::Number(4);
    for (kind, list) in [
        (0, &[][..]),
        (1, &[(size, number)]),
        (2, &[(size, number)]),
        (2, &[(size, other.into())]),
        (2, &[(other, size.into())]),
        (3, &[]),
    ] {
        let attributes = machine.attributes_mut().intern(list);
        machine.add_sample(&Sample { kind: kinds[kind], thread, value: 7, attributes, ..Sample::default() });
    }
    let symbols = Symbols::unresolved(&machine);
    let again = imported(&written(&Firefox, &machine, &symbols)).unwrap();
    let facts = |machine: &ExportMachine| {
        told(
            machine,
            |sample| {
                let kind = machine.kinds()[usize::from(sample.kind.0)];
                let of =
                    format!("{} {:?} {}", machine.string(kind.name), kind.unit, of_thread(machine, sample));
                machine.string(kind.name).starts_with("io").then_some((of, sample.value))
            },
            |_| Vec::new(),
        )
    };
    assert_eq!(facts(&again.machine).len(), 5);
    assert_eq!(facts(&again.machine), facts(&machine));
}

#[test]
fn markers_are_of_the_first_of_two_kinds_that_differ_in_their_period_alone() {
    let mut machine = ExportMachine::default();
    let [_, first, second] =
        [("cpu", Unit::Count, 1), ("io", Unit::Nanoseconds, 8), ("io", Unit::Nanoseconds, 16)]
            .map(|(name, unit, period)| machine.add_kind(name, unit, period));
    let process = machine.add_process(Pid(7), "app", None, Nanos(0));
    let name = machine.intern_string("app");
    let thread = machine.intern_thread(process, Tid(7), name);
    for (kind, value) in [(first, 3), (second, 4)] {
        machine.add_sample(&Sample { kind, thread, value, ..Sample::default() });
    }
    let again = imported(&written(&Firefox, &machine, &Symbols::unresolved(&machine))).unwrap().machine;
    let kinds: Vec<_> =
        again.kinds().iter().map(|kind| (again.string(kind.name), kind.unit, kind.period)).collect();
    assert_eq!(kinds[1..], [("io", Unit::Nanoseconds, 8), ("io", Unit::Nanoseconds, 16)]);
    let samples: Vec<_> = again.samples().iter().map(|sample| (sample.kind, sample.value)).collect();
    assert_eq!(samples, [(SampleKindId(1), 3), (SampleKindId(1), 4)]);
}

/// A thread's tables as versions before 56 have them: `inner` is inlined in `outer`, which `main` calls; the kernel, and a script.
fn tables() -> Value {
    json!({
        "stringArray": ["main", "outer", "inner", "vfs_read", "script", "main.c", "libc", "Paint", "0x77"],
        "stackTable": {"length": 7, "frame": [0, 1, 2, 3, 6, 4, 5], "prefix": [null, 0, 1, 2, 0, 4, 0]},
        "frameTable": {
            "length": 7,
            "address": [16, 32, 32, 64, -1, 119, 48],
            "inlineDepth": [0, 0, 1, 0, 0, 0, 0],
            "category": [0, 0, 0, 1, 2, 0, 0],
            "func": [0, 1, 2, 3, 4, 5, 1],
            "line": [null, 7, 8, null, 99, null, 9],
            "column": [null, null, 3, null, null, null, null]
        },
        "funcTable": {
            "length": 6,
            "name": [0, 1, 2, 3, 4, 8],
            "isJS": [false, false, false, false, true, false],
            "resource": [0, 0, 0, -1, -1, 0],
            "fileName": [null, 5, 5, null, null, null]
        },
        "resourceTable": {"length": 1, "lib": [0], "name": [6]},
        "nativeSymbols": {"length": 0}
    })
}

fn profile(version: u32) -> Value {
    let mut file = json!({
        "meta": {
            "preprocessedProfileVersion": version,
            "version": 30,
            "interval": 2,
            "startTime": 1_700_000_000_000.25,
            "product": "Firefox",
            "oscpu": "Linux",
            "categories": [{"name": "Other"}, {"name": "Kernel"}, {"name": "JavaScript"}],
            "markerSchema": []
        },
        "libs": [{"name": "libc.so.6", "path": "/lib/libc.so.6", "codeId": "abcd12", "breakpadId": "X"}],
        "threads": [{
            "name": "GeckoMain", "processName": "Web Content", "pid": "77.1", "tid": 78, "isMainThread": true,
            "processStartupTime": 1.5, "processShutdownTime": null,
            "samples": {
                "length": 4, "weightType": "samples", "weight": null,
                "stack": [3, 5, null, 6], "time": [2.5, 4.25, 6, 8.000_001],
                "threadCPUDelta": [1, null, 1, 1]
            },
            "markers": {
                "length": 2, "name": [7, 7], "startTime": [3, 5], "endTime": [3.5, null], "phase": [1, 0],
                "data": [{"type": "x", "cause": {"time": 3, "stack": 4}}, {"type": "y", "deep": [[{"a": 1}]]}]
            }
        }],
        "counters": [{"name": "malloc", "category": "Memory", "description": "all", "samples": {}}]
    });
    for (key, table) in tables().as_object().unwrap() {
        file["threads"][0][key] = table.clone();
    }
    if version >= 58 {
        file["threads"][0]["funcTable"]["source"] = json!([null, 0, 0, null, null, null]);
        file["threads"][0]["funcTable"].as_object_mut().unwrap().remove("fileName");
        file["shared"]["sources"] = json!({"length": 1, "filename": [5]});
    }
    if version >= 60 {
        for key in ["stringArray", "stackTable", "frameTable", "funcTable", "resourceTable"] {
            file["shared"][key] = file["threads"][0].as_object_mut().unwrap().remove(key).unwrap();
        }
    }
    if version >= 66 {
        let stacks = file["shared"]["stackTable"].as_object_mut().unwrap();
        stacks.remove("prefix");
        stacks.insert("prefixOffset".to_owned(), json!([0, 1, 1, 1, 4, 1, 6]));
    }
    if version >= 75 {
        // Nothing is 0 where the flags tell that it is nothing.
        let frames = file["shared"]["frameTable"].as_object_mut().unwrap();
        frames.remove("inlineDepth");
        frames.insert("flags".to_owned(), json!([6, 22, 55, 4, 20, 6, 22]));
        frames.insert("address".to_owned(), json!([16, 32, 32, 0, 0, 119, 48]));
        frames.insert("lib".to_owned(), json!([0, 0, 0, 0, 0, 0, 0]));
        frames.insert("line".to_owned(), json!([0, 7, 8, 0, 99, 0, 9]));
        frames.insert("column".to_owned(), json!([0, 0, 3, 0, 0, 0, 0]));
        let functions = file["shared"]["funcTable"].as_object_mut().unwrap();
        functions.insert("flags".to_owned(), json!([4, 12, 12, 0, 1, 4]));
        functions.insert("source".to_owned(), json!([0, 0, 0, 0, 0, 0]));
        functions.insert("resource".to_owned(), json!([0, 0, 0, 0, 0, 0]));
    }
    file
}

fn stack(machine: &ExportMachine, symbols: &Symbols, sample: &Sample) -> Vec<String> {
    let frames = machine.stacks().get(sample.stack).iter();
    frames
        .flat_map(|&id| {
            let frame = machine.frames().get(id);
            let place = if frame.has_address() { format!("{:#x}", frame.address.0) } else { "-".to_owned() };
            symbols.functions(id).map(move |of| (of, place.clone())).collect::<Vec<_>>()
        })
        .map(|(of, place)| {
            let [name, file] = [of.name, of.file].map(|id| symbols.function(id));
            format!("{place} {name} {file}:{}:{} {}", of.line, of.column, of.is_inlined)
        })
        .collect()
}

#[test]
fn profiles_of_several_versions_are_read() {
    for version in [47, 55, 58, 60, 66, 75] {
        let Imported { machine, symbols, left_out } =
            imported(profile(version).to_string().as_bytes()).unwrap();
        assert_eq!(left_out, ["1 markers without a stack are left out", "1 counters are left out"]);
        let samples: Vec<Sample> = machine.samples().iter().collect();
        let kinds: Vec<_> =
            machine.kinds().iter().map(|kind| (machine.string(kind.name), kind.unit, kind.period)).collect();
        // The second sample was taken while the thread waited.
        assert_eq!(kinds, [("samples", Unit::Count, 2_000_000), ("Paint", Unit::Nanoseconds, 1)]);
        let times: Vec<_> = samples.iter().map(|sample| (sample.time.0, sample.value)).collect();
        let expected = [(2_500_000, 1), (4_250_000, 1), (6_000_000, 1), (8_000_001, 1), (3_000_000, 500_000)];
        assert_eq!(times, expected);
        let outer = "0x20 outer main.c:7:0 false";
        let inner = ["0x20 inner main.c:8:3 true", outer];
        let later = "0x30 outer main.c:9:0 false";
        let main = "0x10 main :0:0 false";
        let expected: [&[&str]; 5] = [
            &["- vfs_read :0:0 false", inner[0], inner[1], main],
            &["- script :99:0 false", later, main],
            &[],
            &["0x77 libc.so.6+0x77 :0:0 false", main],
            &[later, main],
        ];
        for (sample, expected) in samples.iter().zip(expected) {
            assert_eq!(stack(&machine, &symbols, sample), expected, "version {version}");
        }
        let thread = machine.thread(samples[0].thread);
        let process = machine.process(thread.process);
        let names = [process.name, thread.name].map(|id| machine.string(id));
        assert_eq!((process.pid.0, thread.tid.0, names), (77, 78, ["Web Content", "GeckoMain"]));
        assert_eq!((process.start.0, process.end), (1_500_000, None));
        assert_eq!(machine.main_kind(), Some(SampleKindId(0)));
        let system = machine.system();
        assert_eq!(system.clocks.unix_at(Nanos(0)), Some(1_700_000_000_000_250_112));
        assert_eq!(Some(system.start), machine.samples().iter().map(|sample| sample.time).min());
        let library = machine.modules().iter().find(|module| module.build_id.is_some()).unwrap();
        assert_eq!(machine.string(library.path), "/lib/libc.so.6");
        assert_eq!(library.build_id.unwrap().as_bytes(), [0xab, 0xcd, 0x12]);
    }
}

#[test]
fn what_is_told_of_the_whole_comes_back() {
    let made = Made::new();
    let again = imported(&written(&Firefox, &made.machine, &made.symbols)).unwrap();
    let system = again.machine.system();
    assert_eq!((&*system.command, &*system.kernel), ("prog --fast on build-07", "Linux 6.18.0 x86_64"));
    assert!(system.account.contains(&"3 lost (ring_full 3)".to_owned()), "{:?}", system.account);
    assert_eq!(system.lost, Some(3));
    assert_eq!(imported(profile(55).to_string().as_bytes()).unwrap().machine.system().lost, None);
}

fn error(value: &Value) -> String {
    firefox::Firefox.import(&mut Cursor::new(value.to_string())).unwrap_err().to_string()
}

#[test]
fn what_is_not_read_names_the_remedy() {
    let mut gecko = profile(55);
    gecko["meta"].as_object_mut().unwrap().remove("preprocessedProfileVersion");
    assert!(error(&gecko).contains("as the browser itself hands it over; open it in profiler.firefox.com"));
    for version in [46, 76] {
        let told = error(&profile(version));
        assert!(told.contains(&format!("of version {version} ")) && told.contains("47 to 75"), "{told}");
    }
    assert!(
        error(&json!({"a": 1}))
            .contains("not a profile of Firefox Profiler, or a damaged one: missing field `meta`")
    );
}

#[test]
fn what_makes_no_sense_is_told() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut file = profile(55);
        change(&mut file);
        error(&file)
    };
    let cyclic = with(&|file| file["threads"][0]["stackTable"]["prefix"] = json!([2, 0, 1, 2, 0, 4, 0]));
    assert!(cyclic.contains("stack 0 is called from one that does not stand before it"), "{cyclic}");
    let outside = with(&|file| file["threads"][0]["stackTable"]["frame"] = json!([0, 1, 2, 3, 6, 50, 5]));
    assert!(outside.contains("frame 50 has no function"), "{outside}");
    let outside = with(&|file| file["threads"][0]["samples"]["stack"] = json!([4_000_000_000_u32]));
    assert!(outside.contains("stack 4000000000 has no frame"), "{outside}");
    let lacking = with(&|file| file["threads"][0]["stringArray"] = json!(null));
    assert!(lacking.contains("no strings"), "{lacking}");
    let deep = format!("{{\"meta\": {}", "[".repeat(100_000));
    assert!(firefox::Firefox.import(&mut Cursor::new(deep)).is_err());
    let deep = format!("{{\"x\": {}", "[".repeat(100_000));
    assert!(firefox::Firefox.import(&mut Cursor::new(deep)).is_err());
}

/// A chain of stacks that are called from each other, each of them sampled, has as many frames as the square of its length.
#[test]
fn stacks_are_limited() {
    const COUNT: u32 = 20_000;
    let mut file = profile(55);
    let thread = &mut file["threads"][0];
    let prefix = (0..COUNT).map(|stack| stack.checked_sub(1));
    thread["stackTable"] = json!({"frame": vec![0; COUNT as usize], "prefix": prefix.collect::<Vec<_>>()});
    thread["samples"]["stack"] = json!((0..COUNT).collect::<Vec<_>>());
    assert!(error(&file).contains("17097216 frames on its stacks"), "{}", error(&file));
}
