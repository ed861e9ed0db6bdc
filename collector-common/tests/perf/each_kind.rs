//! A record of each type that the kernel has, made by our writer, and what `perf report -D` prints of it: so that none is left out
//! of the comparison because a machine happens not to make it.

use std::fs::File;

use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Tid};
use collector_common::perf::file::FileWriter;
use collector_common::perf::{
    Attr, AttrFlags, Aux, AuxFlags, AuxOutputHwId, BpfEvent, ByteOrder, Bytes, Cgroup, Comm, Counters,
    ItraceStart, Ksymbol, KsymbolFlags, Lost, LostSamples, MappedFile, Misc, Mmap, Mmap2, Namespaces, Parsed,
    Read, ReadFormat, ReadValue, ReadValues, Record, RecordKind, Sample, SampleId, SampleType, Switch,
    SwitchCpuWide, Task, Text, TextPoke, Throttling, Words,
};

use crate::recorded::{can_record, compare_file, folder, report_of};
use crate::report;

/// `PERF_RECORD_CALLCHAIN_DEFERRED`, which is newer than the `perf` that prints, is not among them.
const KINDS: std::ops::RangeInclusive<u32> = 1..=21;

const PID: Pid = Pid(4711);
const TID: Tid = Tid(4712);
const SAMPLE_TYPE: SampleType =
    SampleType::IDENTIFIER.or(SampleType::IP).or(SampleType::TID).or(SampleType::TIME).or(SampleType::PERIOD);

/// Records with the bits of their headers. Of some types there are several, as `perf` prints them otherwise.
fn records(time: Nanos) -> Vec<(Misc, Record<'static>)> {
    const NAMESPACES: [u64; 14] = [4, 100, 4, 200, 4, 300, 4, 400, 4, 500, 4, 600, 4, 700];
    let task = Task { pid: PID, parent_pid: Pid(4000), tid: TID, parent_tid: Tid(4001), time };
    let throttling = Throttling { time, id: 71, stream_id: 72 };
    let file = MappedFile::Inode { major: 8, minor: 17, inode: 123_456, generation: 7 };
    let (start, len, file_offset) = (Avma(0x40_0000), 0x5000, FileOffset(0x1000));
    let path = Text::new(b"/bin/oven");
    let mapped = Mmap { pid: PID, tid: TID, start, len, file_offset, path };
    let mapped_2 = Mmap2 { pid: PID, tid: TID, start, len, file_offset, file, protection: 5, flags: 2, path };
    let symbol = Ksymbol {
        start: Avma(0xffff_ffff_c000_1000),
        len: 84,
        kind: 1,
        flags: KsymbolFlags::default(),
        name: Text::new(b"bpf_prog_59f4a931744dcdc6_bake"),
    };
    let event =
        BpfEvent { kind: 1, flags: 0, id: 41_432, tag: [0x59, 0xf4, 0xa9, 0x31, 0x74, 0x4d, 0xcd, 0xc6] };
    let switch = SwitchCpuWide { other_pid: PID, other_tid: TID };
    let value = ReadValue { value: 123, id: Some(71), lost: None };
    let (time_enabled, time_running) = (Some(2_000_000), Some(1_500_000));
    let values = ReadValues { time_enabled, time_running, counters: Counters::One(value) };
    let sample = Sample {
        identifier: Some(71),
        ip: Some(Avma(0x40_1000)),
        pid: Some(PID),
        tid: Some(TID),
        time: Some(time),
        period: Some(250),
        ..Sample::default()
    };
    let user = Misc::USER;
    vec![
        (user, Record::Comm(Comm { pid: PID, tid: TID, name: Text::new(b"baker") })),
        (user | Misc::COMM_EXEC, Record::Comm(Comm { pid: PID, tid: TID, name: Text::new(b"oven") })),
        (user, Record::Fork(task)),
        (user, Record::Mmap(mapped)),
        (user | Misc::MMAP_DATA, Record::Mmap(mapped)),
        (user, Record::Mmap2(mapped_2)),
        (user, Record::Mmap2(Mmap2 { protection: 2, flags: 1, ..mapped_2 })),
        (Misc(0), Record::Namespaces(Namespaces { pid: PID, tid: TID, words: Words::from(&NAMESPACES[..]) })),
        (Misc(0), Record::Cgroup(Cgroup { id: 77, path: Text::new(b"/bakery/oven") })),
        (Misc(0), Record::Ksymbol(symbol)),
        (Misc(0), Record::BpfEvent(event)),
        (user, Record::Sample(sample)),
        (Misc(0), Record::Switch(Switch)),
        (Misc::SWITCH_OUT, Record::Switch(Switch)),
        (Misc::SWITCH_OUT | Misc::SWITCH_OUT_PREEMPT, Record::SwitchCpuWide(switch)),
        (Misc(0), Record::SwitchCpuWide(switch)),
        (Misc(0), Record::Throttle(throttling)),
        (Misc(0), Record::Unthrottle(throttling)),
        (Misc(0), Record::Lost(Lost { id: 71, count: 5 })),
        (Misc(0), Record::LostSamples(LostSamples { count: 1_234_567 })),
        (Misc(0), Record::Aux(Aux { offset: 0x1_2340, size: 0x5678, flags: AuxFlags::TRUNCATED })),
        (Misc(0), Record::ItraceStart(ItraceStart { pid: PID, tid: TID })),
        (Misc(0), Record::AuxOutputHwId(AuxOutputHwId { hw_id: 0x1234_5678_9abc })),
        (
            Misc(0),
            Record::TextPoke(TextPoke {
                address: Avma(0xffff_ffff_8100_0123),
                old: Bytes::from(&[0x0f, 0x1f, 0x44, 0, 0]),
                new: Bytes::from(&[0xe9, 1, 2, 3, 4]),
            }),
        ),
        (Misc(0), Record::Read(Read { pid: PID, tid: TID, values })),
        (Misc(0), Record::Ksymbol(Ksymbol { flags: KsymbolFlags::UNREGISTER, ..symbol })),
        (Misc(0), Record::BpfEvent(BpfEvent { kind: 2, ..event })),
        (user, Record::Exit(task)),
    ]
}

#[test]
fn perf_prints_of_each_type_what_we_read() {
    if !can_record() {
        return;
    }
    let path = folder().join("each.perf.data");
    let mut file = FileWriter::new(File::create(&path).unwrap(), ByteOrder::NATIVE).unwrap();
    let attr = Attr {
        kind: 1,
        sample_period: 1,
        sample_type: SAMPLE_TYPE,
        // `perf` prints a READ as if it had all of these.
        read_format: ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING | ReadFormat::ID,
        flags: AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    let event = file.add_event(&attr, vec![71], Some("cpu-clock".into())).unwrap();
    let count = records(Nanos(0)).len();
    let kinds: Vec<RecordKind> = (0..count)
        .map(|place| {
            let time = Nanos(1_000_000_000 + 1000 * place as u64);
            let (misc, record) = records(time)[place];
            let id = SampleId {
                pid: Some(PID),
                tid: Some(TID),
                time: Some(time),
                identifier: Some(71),
                ..SampleId::default()
            };
            let sample_id = if matches!(record, Record::Sample(_)) { SampleId::default() } else { id };
            file.write(event, &Parsed { misc, record, sample_id, rest: Bytes::default() }).unwrap();
            record.kind()
        })
        .collect();
    file.finish().unwrap();
    let printed = report_of(&path);
    compare_file("each", &path, &printed, &KINDS.map(RecordKind).collect::<Vec<_>>());
    for kind in KINDS.map(RecordKind) {
        let name = report::name(kind).unwrap_or_else(|| panic!("{kind:?} is not compared"));
        let written = kinds.iter().filter(|of| **of == kind).count();
        let compared =
            printed.iter().filter(|record| record.kind == name && !record.lines.is_empty()).count();
        assert!(written > 0 && compared == written, "{name}: {compared} of {written}");
    }
}
