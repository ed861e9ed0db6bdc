//! Dumps that are made here, and recordings of a few samples of one process.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::Arc;

use collector_common::ids::{Pid, Svma, Tid};
use collector_common::intern::StringId;
use collector_common::record::{
    AttributeListId, EventFacts, EventKind, EventRecord, FrameFlags, ProcessId, Sample, ThreadId, Unit,
};

use super::*;

/// A dump of codes: when, where, how long, and the name.
fn dump(codes: &[(u64, u64, u64, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend([0x4a69_5444_u32, 1, 40, 62, 0, 7].iter().flat_map(|number| number.to_le_bytes()));
    bytes.extend([0; 16]);
    for (index, &(time, start, size, name)) in codes.iter().enumerate() {
        let len = 16 + 40 + name.len() as u32 + 1;
        bytes.extend([0, len].iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend(time.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend([start, start, size, index as u64].iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend(name.as_bytes());
        bytes.push(0);
    }
    bytes
}

/// A machine with one process, whose code has no file.
struct Recorded {
    machine: ExportMachine,
    process: ProcessId,
    thread: ThreadId,
    module: ModuleId,
}

impl Recorded {
    fn new() -> Self {
        let mut machine = ExportMachine::default();
        machine.add_kind("samples", Unit::Count, 1);
        let process = machine.add_process(Pid(7), "runtime", None, Nanos(0));
        let name = machine.intern_string("runtime");
        let thread = machine.intern_thread(process, Tid(7), name);
        let path = machine.intern_string("[anon]");
        let kind = ModuleKind::Anonymous(process);
        let module = machine.add_module(Module { kind, path, build_id: None });
        Self { machine, process, thread, module }
    }

    /// Adds a sample of return addresses, leaf first.
    fn sample(&mut self, time: u64, addresses: &[u64]) {
        let frames: Vec<FrameId> = addresses
            .iter()
            .map(|&address| {
                let flags = FrameFlags(FrameFlags::RETURN_ADDRESS);
                self.machine.intern_frame(Frame { module: self.module, address: Svma(address), flags })
            })
            .collect();
        let stack = self.machine.intern_stack(&frames);
        self.machine.add_sample(&Sample {
            time: Nanos(time),
            thread: self.thread,
            stack,
            cpu: 0,
            kind: collector_common::record::SampleKindId(0),
            value: 1,
            attributes: AttributeListId::NONE,
        });
    }

    fn settle(&mut self, has_times: bool, dumps: &[Vec<u8>]) -> FxHashMap<ModuleId, JitNames> {
        let modules = FxHashSet::from_iter([self.module]);
        settle(&mut self.machine, &modules, has_times, |wanted| {
            let read = |bytes: &Vec<u8>| JitDump::read(Cursor::new(bytes.clone()), wanted).unwrap();
            dumps.iter().map(read).collect()
        })
    }

    /// By time: the names of a sample's frames.
    fn named(&self, names: &FxHashMap<ModuleId, JitNames>) -> BTreeMap<u64, Vec<String>> {
        let samples = self.machine.samples().iter();
        samples.map(|sample| self.named_at(names, sample.time, sample.stack)).collect()
    }

    fn named_at(
        &self,
        names: &FxHashMap<ModuleId, JitNames>,
        time: Nanos,
        stack: StackId,
    ) -> (u64, Vec<String>) {
        let name = |&id: &FrameId| {
            let frame = self.machine.frames().get(id);
            let names = names.get(&frame.module);
            let place = names.and_then(|names| Some((names, names.at(frame.lookup_address().0)?)));
            place.map_or("?".to_owned(), |(names, place)| names.name(place.name).to_owned())
        };
        (time.0, self.machine.stacks().get(stack).iter().map(name).collect())
    }
}

fn expected(rows: &[(u64, &[&str])]) -> BTreeMap<u64, Vec<String>> {
    rows.iter().map(|(time, names)| (*time, names.iter().map(|name| (*name).to_owned()).collect())).collect()
}

#[test]
fn code_that_stays_changes_no_record() {
    let mut recorded = Recorded::new();
    for time in [5, 50] {
        recorded.sample(time, &[0x1010, 0x2010, 0x9999]);
    }
    let (modules, frames) = (recorded.machine.modules().len(), recorded.machine.frames().len());
    let names =
        recorded.settle(true, &[dump(&[(10, 0x1000, 0x100, "f")]), dump(&[(20, 0x2000, 0x100, "g")])]);
    assert_eq!(recorded.named(&names), expected(&[(5, &["f", "g", "?"]), (50, &["f", "g", "?"])]));
    assert_eq!((recorded.machine.modules().len(), recorded.machine.frames().len()), (modules, frames));
}

#[test]
fn each_sample_has_the_code_of_its_time() {
    let mut recorded = Recorded::new();
    for time in [5, 10, 19, 20, 30, 99] {
        recorded.sample(time, &[0x1010, 0x5010]);
    }
    let dump = dump(&[
        (10, 0x1000, 0x100, "a"),
        (30, 0x1008, 0x10, "c"),
        (20, 0x1000, 0x80, "b"),
        (1, 0x5000, 0x100, "main"),
    ]);
    let names = recorded.settle(true, std::slice::from_ref(&dump));
    assert_eq!(
        recorded.named(&names),
        expected(&[
            (5, &["a", "main"]),
            (10, &["a", "main"]),
            (19, &["a", "main"]),
            (20, &["b", "main"]),
            (30, &["c", "main"]),
            (99, &["c", "main"]),
        ])
    );
    // What is laid over the first module is mapped where and when its code was made.
    let laid: Vec<_> =
        recorded.machine.mappings().iter().map(|at| (at.process, at.start.0, at.end.0, at.since.0)).collect();
    assert_eq!(laid, [(recorded.process, 0x1000, 0x1080, 20), (recorded.process, 0x1008, 0x1018, 30)]);
    let mut again = Recorded::new();
    again.sample(5, &[0x1010]);
    again.sample(20, &[0x1010]);
    let names = again.settle(false, &[dump]);
    assert_eq!(again.named(&names), expected(&[(5, &["c"]), (20, &["c"])]), "the last that held it");
}

/// Of one with a sample, and of one without; of another address there are events alone.
#[test]
fn events_have_the_code_of_their_time() {
    let mut recorded = Recorded::new();
    let name = recorded.machine.intern_string("made:event");
    let event = EventKind {
        name,
        provider: StringId::EMPTY,
        short_name: StringId::EMPTY,
        id: 1,
        facts: EventFacts::default(),
        format: Arc::default(),
        samples: None,
    };
    let event = recorded.machine.add_event_kind(event).unwrap();
    for (time, is_sampled, address) in
        [(10, true, 0x1010), (12, false, 0x1010), (30, true, 0x1010), (32, false, 0x1010)]
            .into_iter()
            .chain([(13, false, 0x2010), (33, false, 0x2010)])
    {
        let flags = FrameFlags(FrameFlags::RETURN_ADDRESS);
        let frame = Frame { module: recorded.module, address: Svma(address), flags };
        let frame = recorded.machine.intern_frame(frame);
        let (time, stack) = (Nanos(time), recorded.machine.intern_stack(&[frame]));
        if is_sampled {
            let sample = Sample { time, thread: recorded.thread, stack, value: 1, ..Sample::default() };
            recorded.machine.add_sample_of_event(&sample, event, &[]);
        } else {
            let record =
                EventRecord { time, thread: recorded.thread, stack, kind: event, ..EventRecord::default() };
            recorded.machine.add_event_record(&record, &[]).unwrap();
        }
    }
    let codes = [
        (1, 0x1000, 0x100, "a"),
        (20, 0x1000, 0x100, "b"),
        (1, 0x2000, 0x100, "c"),
        (20, 0x2000, 0x100, "d"),
    ];
    let names = recorded.settle(true, &[dump(&codes)]);
    assert_eq!(recorded.named(&names), expected(&[(10, &["a"]), (30, &["b"])]));
    let events = recorded.machine.event_records().iter();
    let events = events.map(|(_, record, _)| recorded.named_at(&names, record.time, record.stack)).collect();
    let rows: [(u64, &[&str]); 6] =
        [(10, &["a"]), (12, &["a"]), (30, &["b"]), (32, &["b"]), (13, &["c"]), (33, &["d"])];
    assert_eq!(expected(&rows), events);
}

#[test]
fn a_function_is_in_one_module_however_many_others_lay_below() {
    let mut recorded = Recorded::new();
    recorded.sample(1, &[0x1010]);
    recorded.sample(20, &[0x1010, 0x1090]);
    let names = recorded.settle(true, &[dump(&[(1, 0x1000, 0x20, "small"), (10, 0x1000, 0x100, "large")])]);
    assert_eq!(recorded.named(&names), expected(&[(1, &["small"]), (20, &["large", "large"])]));
    let stack = recorded.machine.samples().at(1).stack;
    let modules: FxHashSet<ModuleId> = recorded
        .machine
        .stacks()
        .get(stack)
        .iter()
        .map(|&id| recorded.machine.frames().get(id).module)
        .collect();
    assert_eq!(modules.len(), 1);
}

#[test]
fn code_that_nobody_sampled_makes_no_module() {
    let mut recorded = Recorded::new();
    recorded.sample(20, &[0x1010]);
    let codes: Vec<_> = (0..50).map(|time| (time, 0x1000, 0x100, "f")).collect();
    let modules = recorded.machine.modules().len();
    recorded.settle(true, &[dump(&codes)]);
    assert_eq!(recorded.machine.modules().len(), modules);
}

#[test]
fn very_many_codes_at_one_address_are_bounded() {
    let mut recorded = Recorded::new();
    let count = u64::from(MOST_LAYERS) * 3;
    let names: Vec<String> = (0..count).map(|number| format!("f{number}")).collect();
    let codes: Vec<_> =
        names.iter().zip(0..).map(|(name, time)| (time, 0x1000, 0x100, name.as_str())).collect();
    (0..count).for_each(|time| recorded.sample(time, &[0x1010]));
    let names = recorded.settle(true, &[dump(&codes)]);
    assert!(recorded.machine.modules().len() <= MOST_LAYERS as usize + 3);
    let named = recorded.named(&names);
    for time in [0, 1, 500, u64::from(MOST_LAYERS) - 1] {
        assert_eq!(named[&time], [format!("f{time}")]);
    }
}

/// Code that is thrown out and made anew at one address, with a sample of each and one of the first for each: looking at each code for
/// each sample would be three thousand millions of looks.
#[test]
fn many_codes_of_one_address_end() {
    const COUNT: u64 = 60_000;
    let names: Vec<String> = (0..COUNT).map(|at| format!("f{at}")).collect();
    let codes: Vec<_> = names.iter().zip(1..).map(|(name, at)| (at * 10, 0x1000, 0x100, &**name)).collect();
    let mut recorded = Recorded::new();
    for at in 1..=COUNT {
        recorded.sample(at * 10 + 5, &[0x1010]);
        recorded.sample(15, &[0x1020]);
    }
    let begun = std::time::Instant::now();
    let names = recorded.settle(true, &[dump(&codes)]);
    assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}", begun.elapsed());
    let named = recorded.named(&names);
    assert_eq!([&named[&15], &named[&25], &named[&5015]], [&["f0"], &["f1"], &["f500"]]);
}
