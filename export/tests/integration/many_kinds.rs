//! More kinds of samples than a byte can number, as of all system calls: each comes back with what was counted of it.

use std::collections::BTreeMap;

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::record::{AttributeValue, ExportMachine, Sample, SampleKindId, Unit};
use export::format::{Profile, by_name};
use export::symbolize::Symbols;
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::random::{imported, written};

const KINDS: u16 = 700;

/// A sample of the first kind, two of the second, and so on, up to seven.
fn recording() -> ExportMachine {
    let mut machine = ExportMachine::default();
    let process = machine.add_process(Pid(7), "calls", None, Nanos(0));
    let name = machine.intern_string("calls");
    let thread = machine.intern_thread(process, Tid(7), name);
    let mut time = 0;
    for number in 0..KINDS {
        let kind = machine.add_kind(&format!("syscalls:call_{number}"), Unit::Count, 1);
        for _ in 0..=number % 7 {
            time += 1000;
            machine.add_sample(&Sample { time: Nanos(time), thread, kind, value: 1, ..Sample::default() });
        }
    }
    machine
}

/// The first kind is a clock's, whose samples are no markers: each other one has two types, with an attribute and without. Each kind has one
/// more, which tells of it.
#[test]
fn firefox_profilers_files_have_more_types_of_markers_than_a_browser() {
    let mut machine = recording();
    let name = machine.intern_string("argument");
    let attributes = machine.attributes_mut().intern(&[(name, AttributeValue::Number(7))]);
    for sample in machine.samples().iter().collect::<Vec<_>>() {
        machine.add_sample(&Sample { attributes, ..sample });
    }
    let bytes = written(by_name("firefox").unwrap(), &machine, &Symbols::default());
    let file: Value = serde_json::from_reader(GzDecoder::new(&*bytes)).unwrap();
    assert_eq!(
        file["meta"]["markerSchema"].as_array().unwrap().len(),
        2 * usize::from(KINDS - 1) + usize::from(KINDS)
    );
    let again = imported(&bytes).unwrap();
    assert!(again.left_out.is_empty(), "{:?}", again.left_out);
    let counted = counted(&again.machine);
    for number in 1..KINDS {
        let count = counted.get(&format!("syscalls:call_{number}"));
        assert_eq!(count, Some(&(2 * (i64::from(number % 7) + 1))), "{number}");
    }
    let is_told = |sample: &Sample| !again.machine.attributes().get(sample.attributes).is_empty();
    let told = again.machine.samples().iter().filter(is_told).count();
    let of_first = 1;
    assert_eq!(told, machine.samples().len() / 2 - of_first);
}

/// There are 256 names, and 256 lists of two of these for each of 257 kinds, which are more than are read.
#[test]
fn more_types_of_markers_than_are_read_are_not_written() {
    let mut machine = recording();
    let names: Vec<_> = (0..256).map(|number| machine.intern_string(&format!("name {number}"))).collect();
    let first = machine.samples().at(0);
    for &name in &names {
        let list = [names[0], name].map(|name| (name, AttributeValue::Number(7)));
        let attributes = machine.attributes_mut().intern(&list);
        for kind in (0..258).map(SampleKindId) {
            machine.add_sample(&Sample { kind, attributes, ..first });
        }
    }
    let symbols = Symbols::default();
    let profile = Profile { machine: &machine, symbols: &symbols };
    let error = by_name("firefox").unwrap().write(profile, &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("more than the 65536 that are read"), "{error}");
}

/// How much was counted of each kind.
fn counted(machine: &ExportMachine) -> BTreeMap<String, i64> {
    let mut counted = BTreeMap::new();
    for sample in machine.samples().iter() {
        let name = machine.string(machine.kinds()[usize::from(sample.kind.0)].name);
        *counted.entry(name.to_owned()).or_default() += sample.value;
    }
    counted
}

#[test]
fn formats_that_have_all_kinds_have_them_again() {
    let (machine, symbols) = (recording(), Symbols::default());
    for name in ["pprof", "nettrace", "firefox", "jfr"] {
        let bytes = written(by_name(name).unwrap(), &machine, &symbols);
        let again = imported(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let counted = counted(&again.machine);
        // The first is what Firefox Profiler's call tree is of, where it has no name.
        for number in 1..KINDS {
            let kind = format!("syscalls:call_{number}");
            assert_eq!(counted.get(&kind), Some(&(i64::from(number % 7) + 1)), "{name}: {kind}");
        }
        assert_eq!(counted.len(), usize::from(KINDS), "{name}");
    }
}
