//! `PerfView`'s XML, as Python's readers of zip archives and XML find it.

use std::collections::BTreeMap;

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::record::{ExportMachine, Sample, Unit};
use export::format::perfview::PerfView;
use export::format::{ExportFormat, Profile};
use export::symbolize::Symbols;

use crate::made::{Made, PERIOD};
use crate::tools::{file, output, tool};

/// Follows callers as the format's own reader does, and adds up metrics by stack.
const READER: &str = "
import json, sys, zipfile, xml.etree.ElementTree as tree
archive = zipfile.ZipFile(sys.argv[1])
assert archive.testzip() is None
[name] = archive.namelist()
window = tree.fromstring(archive.read(name))
assert window.tag == 'StackWindow', window.tag
[source] = window
assert source.tag == 'StackSource' and [part.tag for part in source] == ['Frames', 'Stacks', 'Samples']
frames, stacks, samples = source
assert all(int(part.get('Count')) == len(part) for part in source)
assert all(int(row.get('ID')) == at for part in source for at, row in enumerate(part))
def path(at):
    names = []
    while at >= 0:
        names.append(frames[int(stacks[at].get('FrameID'))].text)
        at = int(stacks[at].get('CallerID'))
    return names[::-1]
rows = [[float(sample.get('Time')), path(int(sample.get('StackID'))), float(sample.get('Metric'))] for sample in samples]
json.dump([name, rows], sys.stdout)
";

fn read(machine: &ExportMachine, symbols: &Symbols) -> Option<Vec<(f64, Vec<String>, f64)>> {
    let mut bytes = Vec::new();
    PerfView.write(Profile { machine, symbols }, &mut bytes).unwrap();
    rows(&bytes)
}

/// Time, frames from the process on, and metric of each sample; none where there is no Python.
pub(crate) fn rows(bytes: &[u8]) -> Option<Vec<(f64, Vec<String>, f64)>> {
    let mut python = tool("python3")?;
    let file = file(bytes, ".perfview.xml.zip");
    let told = output(python.args(["-c", READER]).arg(&*file));
    let (name, rows): (String, Vec<(f64, Vec<String>, f64)>) =
        serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"));
    assert!(name.ends_with(".perfView.xml"), "{name}");
    Some(rows)
}

/// What in an archive tells of where it was made: the system (3 is Unix), the file's mode, and the time, which is none.
#[test]
fn an_archive_does_not_depend_on_the_system() {
    const DIRECTORY: &[u8] = b"PK\x01\x02";
    let made = Made::new();
    let mut bytes = Vec::new();
    PerfView.write(Profile { machine: &made.machine, symbols: &made.symbols }, &mut bytes).unwrap();
    let entry = bytes.windows(4).rposition(|window| window == DIRECTORY).unwrap();
    let number = |at: usize, size: usize| -> u32 {
        bytes[entry + at..][..size].iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
    };
    let [system, time, date, attributes] = [number(5, 1), number(12, 2), number(14, 2), number(38, 4)];
    // The first of January 1980.
    assert_eq!((system, time, date), (3, 0, 1 << 5 | 1));
    assert_eq!(attributes, 0o100_644 << 16);
}

#[test]
fn stacks_and_metrics_are_the_recordings() {
    let made = Made::new();
    let Some(rows) = read(&made.machine, &made.symbols) else { return };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, path, metric) in &rows {
        *counts.entry(path.join(";")).or_default() += 1;
        assert_eq!((metric * 1e6).round() as u64, PERIOD);
    }
    let expected = [
        ("Process64 prog (100);Thread (100) prog;/opt/prog!main;/opt/prog!work(int; char)", 40),
        ("Process64 prog (100);Thread (101) worker 7;/opt/prog!main;/opt/prog!work(int; char)", 20),
        ("Process64 prog (100);Thread (101) worker 7", 1),
        (
            "Process64 prog (200);Thread (200) prog;/opt/prog!main;/opt/prog!work(int; char);[kernel]!vfs_read",
            8,
        ),
    ];
    for (path, count) in expected {
        assert_eq!(counts.get(path), Some(&count), "{path} of {counts:?}");
    }
    assert_eq!(rows.len(), 85);
    let recursion = counts.keys().find(|path| path.contains("recurse")).unwrap();
    assert_eq!(recursion.matches("!recurse").count(), 3, "{recursion}");
    // The first is taken 1 us after the start, the next ones of each stack a period apart.
    let times: Vec<f64> = rows.iter().map(|(time, ..)| *time).collect();
    assert!(times.is_sorted());
    assert_eq!((times[0], times.last()), (0.001, Some(&39.118_351)), "1 us and 39 periods");
}

#[test]
fn values_are_in_their_unit_and_text_is_escaped() {
    for (unit, value, metric) in
        [(Unit::Nanoseconds, -1_500_000, -1.5), (Unit::Bytes, 4096, 4096.0), (Unit::Count, 7, 7.0)]
    {
        let mut machine = ExportMachine::default();
        let kind = machine.add_kind("kind", unit, 1);
        let process = machine.add_process(Pid(7), "<a> & \"b\"\u{1}", None, Nanos(0));
        let name = machine.intern_string("é\n]]>");
        let thread = machine.intern_thread(process, Tid(8), name);
        machine.system_mut().start = Nanos(500);
        let sample = Sample { time: Nanos(400), thread, kind, value, ..Sample::default() };
        machine.add_sample(&sample);
        let symbols = Symbols::unresolved(&machine);
        let Some(rows) = read(&machine, &symbols) else { return };
        let path = ["Process64 <a> & \"b\"  (7)", "Thread (8) é ]]>"].map(str::to_owned);
        assert_eq!(rows, [(0.0, path.to_vec(), metric)], "it began before the recording did");
    }
}
