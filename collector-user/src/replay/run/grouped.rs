//! Counters that are read with another one's samples, in recordings that are made up.

use std::io::Cursor;

use collector_common::ids::{Avma, Nanos, Pid, Tid};
use collector_common::perf::file::FileWriter;
use collector_common::perf::{
    Attr, AttrFlags, ByteOrder, Bytes, Callchain, CallchainDeferred, ChainContext, Counters, GroupValues,
    Misc, Parsed, ReadFormat, ReadValues, Record, Sample, SampleId, SampleType, Words,
};
use collector_common::record::Unit;

use super::{FileReader, Origin, Recording, Replay, SystemTime};

/// `PERF_TYPE_SOFTWARE` and `PERF_TYPE_TRACEPOINT`.
const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;

const LEADER: u64 = 1;
const SWITCHES: u64 = 2;
const TASK_CLOCK: u64 = 3;
const TICKS: u64 = 4;

/// A recording of a tracepoint with counters of another one and of two clocks, of which the last one makes samples, too.
struct Grouped {
    writer: FileWriter<Cursor<Vec<u8>>>,
    time: u64,
}

impl Grouped {
    fn new() -> Self {
        let mut writer = FileWriter::new(Cursor::new(Vec::new()), ByteOrder::NATIVE).unwrap();
        let parts = [SampleType::TID, SampleType::TIME, SampleType::READ, SampleType::CALLCHAIN];
        let events = [
            (LEADER, TRACEPOINT, 10, 1, "probe:leader"),
            (SWITCHES, TRACEPOINT, 11, 0, "sched:sched_switch"),
            (TASK_CLOCK, SOFTWARE, 1, 0, "task-clock"),
            (TICKS, SOFTWARE, 0, 1_000_000, "cpu-clock"),
        ];
        for (id, kind, config, sample_period, name) in events {
            let attr = Attr {
                kind,
                config,
                sample_period,
                sample_type: parts.into_iter().fold(SampleType::IDENTIFIER, SampleType::or),
                read_format: ReadFormat::GROUP | ReadFormat::ID,
                flags: AttrFlags::SAMPLE_ID_ALL.or(AttrFlags::DEFER_CALLCHAIN).or(AttrFlags::DEFER_OUTPUT),
                ..Attr::default()
            };
            writer.add_event(&attr, vec![id], Some(name.to_owned())).unwrap();
        }
        Self { writer, time: 0 }
    }

    fn write(&mut self, tid: u32, record: impl FnOnce(Option<Nanos>) -> Record<'static>) {
        self.time += 1_000;
        let (pid, tid, time) = (Some(Pid(tid)), Some(Tid(tid)), Some(Nanos(self.time)));
        let sample_id = SampleId { pid, tid, time, identifier: Some(LEADER), ..SampleId::default() };
        let record = record(time);
        self.writer
            .write(0, &Parsed { misc: Misc::KERNEL, record, sample_id, rest: Bytes::default() })
            .unwrap();
    }

    /// The leader's sample with values and their ids; its user stack is to come where it has a number.
    fn sample(&mut self, tid: u32, values: &[u64], cookie: Option<u64>) {
        let chain: Vec<u64> = match cookie {
            Some(cookie) => vec![ChainContext::KERNEL.0, 0xf1, ChainContext::USER_DEFERRED.0, cookie],
            None => vec![ChainContext::KERNEL.0, 0xf1],
        };
        let (chain, values) = (chain.leak(), values.to_vec().leak());
        let values = GroupValues::new(Words::from(&*values), ReadFormat::ID);
        let read = ReadValues { time_enabled: None, time_running: None, counters: Counters::Group(values) };
        self.write(tid, |time| {
            Record::Sample(Sample {
                identifier: Some(LEADER),
                ip: Some(Avma(0xf1)),
                pid: Some(Pid(tid)),
                tid: Some(Tid(tid)),
                time,
                read: Some(read),
                callchain: Some(Callchain::from(Words::from(&*chain))),
                ..Sample::default()
            })
        });
    }

    fn goes_back(&mut self, tid: u32, cookie: u64) {
        let callchain = Callchain::from(Words::from(&[0x10_u64][..]));
        self.write(tid, |_| Record::CallchainDeferred(CallchainDeferred { cookie, callchain }));
    }

    fn replay(self) -> Replay<Cursor<Vec<u8>>> {
        let bytes = self.writer.finish().unwrap().into_inner();
        let origin = Origin { written: SystemTime::UNIX_EPOCH, is_dated: true, user: None };
        Replay::new(FileReader::open(Cursor::new(bytes)).unwrap(), origin).unwrap()
    }
}

/// Thread and value of each sample of a kind, in the order in which they were taken.
fn samples(recording: &Recording, name: &str) -> Vec<(u32, i64)> {
    let machine = &recording.machine;
    let is_of_kind = |kind: usize| machine.string(machine.kinds()[kind].name) == name;
    let samples = machine.samples().iter().filter(|sample| is_of_kind(sample.kind.0.into()));
    samples.map(|sample| (machine.threads()[sample.thread.0 as usize].tid.0, sample.value)).collect()
}

#[test]
fn counts_are_those_of_when_the_sample_was_recorded() {
    let mut file = Grouped::new();
    // Thread 7 stays in the kernel while thread 8 is sampled.
    file.sample(7, &[1, LEADER, 10, SWITCHES], Some(5));
    file.sample(8, &[2, LEADER, 15, SWITCHES], None);
    file.goes_back(7, 5);
    file.sample(8, &[3, LEADER, 20, SWITCHES], None);
    let recording = file.replay().run();
    let mut switches = samples(&recording, "sched:sched_switch");
    switches.sort_unstable();
    assert_eq!(switches, [(7, 10), (8, 5), (8, 5)]);
    assert_eq!(samples(&recording, "probe:leader").len(), 3);
    assert_eq!(recording.ledger.delivered(), 6);
}

#[test]
fn counters_are_samples_in_their_unit_and_no_events() {
    let mut file = Grouped::new();
    file.sample(7, &[1, LEADER, 10, SWITCHES, 812_345, TASK_CLOCK, 900_000, TICKS], None);
    file.sample(7, &[2, LEADER, 10, SWITCHES, 912_345, TASK_CLOCK, 950_000, TICKS, 3, 99], None);
    let mut replay = file.replay();
    replay.keep_events(1 << 20);
    for hook in replay.hooks_mut().iter_mut().filter(|hook| hook.event.name() == "sched:sched_switch") {
        hook.event.add_closure(|_| panic!("there was no such event, but a count of them"));
    }
    let recording = replay.run();
    let machine = &recording.machine;
    let unit = machine.kinds().iter().find(|kind| machine.string(kind.name) == "task-clock").unwrap().unit;
    assert_eq!(unit, Unit::Nanoseconds);
    assert_eq!(samples(&recording, "task-clock"), [(7, 812_345), (7, 100_000)]);
    assert_eq!(samples(&recording, "sched:sched_switch"), [(7, 10)]);
    assert_eq!(samples(&recording, "cpu"), [], "what a clock counts is no ticks");
    assert_eq!(machine.event_records().len(), 0);
    // One value is of nobody. All samples are there.
    assert_eq!((recording.ledger.delivered(), recording.ledger.produced()), (5, 5));
    let told = "1 counts that were read with samples are left out";
    assert!(recording.warnings.iter().any(|line| line.starts_with(told)), "{:?}", recording.warnings);
}
