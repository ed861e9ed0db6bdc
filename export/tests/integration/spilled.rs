//! Recordings whose samples are in a file: every format writes of them what it writes of the same ones in memory.

use std::io::{self, Read, Seek, SeekFrom, Write};

use allocation_counter::measure;
use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::intern::StackId;
use collector_common::record::{ExportMachine, Sample, SampleKindId, SpillFile, ThreadId, Unit};
use export::format::{ExportFormat, Profile, by_name, formats};
use export::graph::ExportGraph;
use export::import::importers;
use export::symbolize::Symbols;

use crate::several::Several;

/// As [`Several`], with so many samples more, of all its threads, stacks and kinds, about in the order of time.
fn long(samples: u64) -> Several {
    let mut long = Several::new();
    let machine = &mut long.machine;
    let [threads, stacks, kinds] = [machine.threads().len(), machine.stacks().len(), machine.kinds().len()];
    for number in 0..samples {
        let of = |count: usize, factor: u64| ((number * factor) >> 3) as usize % count;
        machine.add_sample(&Sample {
            time: Nanos((crate::several::START + number * 1_000) ^ ((number % 5) << 14)),
            thread: ThreadId(of(threads, 7) as u32),
            stack: StackId(of(stacks, 5) as u32),
            cpu: number as u16 % 3,
            kind: SampleKindId(of(kinds, 11) as u16),
            value: if number % 4 > 0 { 1 } else { number.cast_signed() % 5_000 + 1 },
            ..Sample::default()
        });
    }
    long
}

/// Puts all samples into a file but for so many bytes.
fn spill(machine: &mut ExportMachine, bytes: u64) {
    machine.samples_mut().spill_beyond(bytes, || Ok(Box::new(tempfile::tempfile()?) as Box<dyn SpillFile>));
    assert_eq!(machine.samples().unwritten(), None);
}

fn written(format: &dyn ExportFormat, machine: &ExportMachine, symbols: &Symbols) -> Vec<u8> {
    let mut out = Vec::new();
    format.export(Profile { machine, symbols }, &mut out).unwrap();
    out
}

#[test]
fn every_format_writes_the_same_bytes() {
    let Several { mut machine, symbols } = long(60_000);
    let of_memory: Vec<Vec<u8>> =
        formats().iter().map(|format| written(*format, &machine, &symbols)).collect();
    spill(&mut machine, 0);
    assert!(machine.samples().bytes_in_file() > 300_000);
    for (format, expected) in formats().iter().zip(of_memory) {
        assert!(written(*format, &machine, &symbols) == expected, "{}", format.name());
    }
}

/// As it is recorded: the file is written while samples come.
#[test]
fn samples_go_into_the_file_as_they_come() {
    const SAMPLES: u64 = 300_000;
    const CAP: u64 = 200_000;
    let Several { machine, symbols } = long(SAMPLES);
    let mut spilled = Several::new().machine;
    spill(&mut spilled, CAP);
    let added = measure(|| {
        machine.samples().iter().skip(spilled.samples().len()).for_each(|it| spilled.add_sample(&it));
    });
    assert!(added.bytes_max < CAP + 500_000, "{} bytes", added.bytes_max);
    assert!(
        spilled.samples().bytes_in_file() > 7 * SAMPLES && spilled.samples().len() == machine.samples().len()
    );
    for name in ["pprof", "folded", "jsonl", "perfetto"] {
        let format = by_name(name).unwrap();
        let mut is_equal = Equal { expected: &written(format, &machine, &symbols) };
        let profile = Profile { machine: &spilled, symbols: &symbols };
        let took = measure(|| format.export(profile, &mut is_equal).unwrap());
        assert!(is_equal.expected.is_empty(), "{name}");
        assert!(took.bytes_max < 24 << 20, "{name}: {} bytes", took.bytes_max);
    }
}

/// What readers read goes into a file, too.
#[test]
fn imported_samples_go_into_the_file() {
    let Several { machine, symbols } = long(60_000);
    for importer in importers() {
        let file = written(by_name(importer.name()).unwrap(), &machine, &symbols);
        let of_memory = importer.import(&mut io::Cursor::new(&file)).unwrap();
        let mut empty = ExportMachine::default();
        spill(&mut empty, 0);
        let of_file = importer.import_into(empty, &mut io::Cursor::new(&file), 0).unwrap();
        let name = importer.name();
        // One chunk is in memory always. Profiles without times have fewer samples than that.
        let is_in_file = of_file.machine.samples().bytes_in_file() > 0;
        assert_eq!(is_in_file, of_memory.machine.samples().len() > 4096, "{name}");
        for format in ["jsonl", "folded"].map(|format| by_name(format).unwrap()) {
            let expected = written(format, &of_memory.machine, &of_memory.symbols);
            assert!(written(format, &of_file.machine, &of_file.symbols) == expected, "{name}");
        }
    }
}

/// Takes what is expected, and nothing else.
struct Equal<'a> {
    expected: &'a [u8],
}

impl Write for Equal<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.expected = self.expected.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn filters_parts_and_graphs_are_those_of_memory() {
    let folded = by_name("folded").unwrap();
    let told = |cap: Option<u64>| {
        let Several { mut machine, symbols } = long(30_000);
        if let Some(bytes) = cap {
            spill(&mut machine, bytes);
        }
        machine.apply_custom_filter(|machine, sample| {
            assert!(machine.samples().is_empty());
            machine.thread(sample.thread).tid.0 != 301 && sample.cpu != 2
        });
        let comm = |machine: &ExportMachine, thread| {
            let process = machine.process(machine.thread(thread).process);
            machine.string(process.name) == "app"
        };
        let of_app = machine.with_part(comm, |machine| written(folded, machine, &symbols));
        let graph = format!(
            "{:?}",
            ExportGraph::of(Profile { machine: &machine, symbols: &symbols }, |thread| Some(thread.0 % 2))
        );
        (machine.samples().len(), of_app, written(folded, &machine, &symbols), graph)
    };
    let of_memory = told(None);
    assert!(of_memory.0 > 10_000 && of_memory.1 != of_memory.2);
    assert!(told(Some(0)) == of_memory);
    assert!(told(Some(50_000)) == of_memory);
}

/// A file that loses what is behind a place.
struct Cut(std::fs::File, u64);

impl Read for Cut {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.1.saturating_sub(self.0.stream_position()?);
        Read::by_ref(&mut self.0).take(left).read(bytes)
    }
}

impl Write for Cut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for Cut {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn samples_that_cannot_be_read_back_are_an_error_of_every_format() {
    let mut machine = ExportMachine::default();
    let kind = machine.add_kind("cpu", Unit::Count, 1);
    let process = machine.add_process(Pid(1), "p", None, Nanos(0));
    let name = machine.intern_string("p");
    let thread = machine.intern_thread(process, Tid(1), name);
    let cut = || Ok(Box::new(Cut(tempfile::tempfile()?, 10_000)) as Box<dyn SpillFile>);
    machine.samples_mut().spill_beyond(0, cut);
    for time in 0..20_000 {
        machine.add_sample(&Sample { time: Nanos(time << 20), thread, kind, value: 1, ..Sample::default() });
    }
    let symbols = Symbols::unresolved(&machine);
    for format in formats() {
        let profile = Profile { machine: &machine, symbols: &symbols };
        let told = format.export(profile, &mut io::sink()).unwrap_err().to_string();
        assert!(told.contains("temporary file"), "{}: {told}", format.name());
    }
}
