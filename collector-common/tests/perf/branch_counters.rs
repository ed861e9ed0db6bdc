//! Counts of branches, and which events they are of: recordings made by the words of the kernel. The header of Linux 6.8 has a number
//! for each branch behind the branches (`{ u64 counters; } cntr[nr] && PERF_SAMPLE_BRANCH_COUNTERS`); what is in it is said by
//! `Documentation/ABI/testing/sysfs-bus-event_source-devices-caps`: `branch_counter_nr` counters at most, each of
//! `branch_counter_width` bits; and by `intel_pmu_lbr_counters_reorder`: of the group's events with that bit, in their order.

use std::io::{Cursor, Read};

use collector_common::perf::file::{
    BranchCount, BranchCounters, Feature, FileReader, FileWriter, GroupDescription,
};
use collector_common::perf::{
    Attr, BranchSampleType, ByteOrder, Misc, OwnedRecord, Record, RecordKind, SampleType,
};

use crate::user::Part::{self, Text, U32, U64};
use crate::user::{ORDERS, made};

/// `PERF_TYPE_RAW`
const RAW: u32 = 4;
/// The number of another kind of CPUs.
const ATOM: u32 = 10;

const ANY: BranchSampleType = BranchSampleType::ANY;

/// What each event asks for. The first three are a group, and so are the last two.
fn attrs() -> Vec<Attr> {
    let counted = ANY | BranchSampleType::COUNTERS;
    let kinds = [(RAW, counted), (RAW, ANY), (RAW, counted), (RAW, ANY), (ATOM, ANY), (ATOM, counted)];
    let of = |(kind, branch_sample_type)| Attr {
        kind,
        branch_sample_type,
        sample_type: SampleType::IDENTIFIER | SampleType::BRANCH_STACK | SampleType::CODE_PAGE_SIZE,
        ..Attr::default()
    };
    kinds.map(of).into()
}

fn groups() -> [GroupDescription; 2] {
    [(0, 3), (4, 2)].map(|(leader, members)| GroupDescription { name: String::new(), leader, members })
}

/// `HEADER_PMU_CAPS` and `HEADER_PMU_MAPPINGS`: counts of 2 bits on the CPUs of one kind, and of 4 on the others.
fn capabilities(order: ByteOrder) -> [(Feature, Vec<u8>); 2] {
    let text = |text| [U32(64), Text(text, 64)];
    let of = |count, width, pmu| {
        let words = ["branch_counter_nr", count, "branch_counter_width", width, "branches", "32", pmu];
        [&[U32(3)][..], &words.map(text).concat()].concat()
    };
    let caps: Vec<Part<'_>> = [&[U32(2)][..], &of("4", "2", "cpu"), &of("2", "4", "cpu_atom")].concat();
    let pmus = [&[U32(2), U32(RAW)][..], &text("cpu"), &[U32(ATOM)], &text("cpu_atom")].concat();
    let section = |parts: &[Part<'_>]| made(RecordKind(0), order, parts).body;
    [(Feature::PMU_CAPS, section(&caps)), (Feature::PMU_MAPPINGS, section(&pmus))]
}

/// A sample of the event with this id with two branches; with their counts or without.
fn sample(order: ByteOrder, id: u64, counts: Option<[u64; 2]>) -> OwnedRecord {
    let branches = [2, 0x10, 0x20, 0, 0x30, 0x40, 0].map(U64);
    let counts = counts.map(|counts| counts.map(U64));
    let parts =
        [&[U64(id)][..], &branches, counts.as_ref().map_or(&[][..], |counts| &counts[..]), &[U64(4096)]];
    OwnedRecord { misc: Misc(2), ..made(RecordKind::SAMPLE, order, &parts.concat()) }
}

/// A sample of each event. The kernel writes counts for all events of a group of which one asks for them.
fn samples(order: ByteOrder) -> [OwnedRecord; 6] {
    let counts = |event| if event == 3 { None } else { Some([0b1101, 0x70 + event]) };
    [0, 1, 2, 3, 4, 5].map(|event| sample(order, 10 + event, counts(event)))
}

fn file(order: ByteOrder, with_groups: bool) -> Vec<u8> {
    let mut file = FileWriter::new(Cursor::new(Vec::new()), order).unwrap();
    for (attr, id) in attrs().iter().zip(10..) {
        file.add_event(attr, vec![id], None).unwrap();
    }
    if with_groups {
        file.features().set_groups(&groups()).unwrap();
    }
    for (feature, section) in capabilities(order) {
        file.features().set_section(feature, section);
    }
    for sample in samples(order) {
        file.write_raw(&sample.as_raw(), &[]).unwrap();
    }
    file.finish().unwrap().into_inner()
}

/// `perf_event__synthesize_for_pipe`: the events, what is known of them, and then the records.
fn stream(order: ByteOrder) -> Vec<u8> {
    let groups =
        [&[U32(2)][..], &[U32(64), Text("", 64), U32(0), U32(3)], &[U32(64), Text("", 64), U32(4), U32(2)]];
    let groups = made(RecordKind(0), order, &groups.concat()).body;
    let mut header = [*b"PERFILE2", 16_u64.to_le_bytes()];
    if order == ByteOrder::Big {
        for word in &mut header {
            word.reverse();
        }
    }
    let mut bytes = header.concat();
    let mut write = |kind, body| {
        OwnedRecord { kind, misc: Misc(0), body }.as_raw().write(order, &mut bytes).unwrap();
    };
    for (attr, id) in attrs().iter().zip(10..) {
        let mut body = Vec::new();
        attr.write(order, &mut body);
        body.extend(made(RecordKind(0), order, &[U64(id)]).body);
        write(RecordKind::HEADER_ATTR, body);
    }
    for (feature, section) in [(Feature::GROUP_DESC, groups)].into_iter().chain(capabilities(order)) {
        let mut body = made(RecordKind(0), order, &[U64(feature.0.into())]).body;
        body.extend(section);
        write(RecordKind::HEADER_FEATURE, body);
    }
    for sample in samples(order) {
        write(sample.kind, sample.body);
    }
    bytes
}

/// Of each sample its event, and for both branches the counts with their events.
fn read<R: Read>(mut file: FileReader<R>) -> Vec<(usize, Vec<Option<u64>>)> {
    let mut samples = Vec::new();
    while let Some(record) = file.next_record().unwrap() {
        let Some(event) = record.event else { continue };
        let parsed = record.parse().unwrap();
        assert!(parsed.rest.is_empty(), "{parsed:?}");
        let Record::Sample(sample) = parsed.record else { panic!("{parsed:?}") };
        assert_eq!(sample.code_page_size, Some(4096), "what is behind the counts is where it is");
        let branches = sample.branch_stack.unwrap();
        samples.push((event, branches.iter().map(|branch| branch.counters).collect()));
    }
    let count = |event, count, is_full| BranchCount { event, count, is_full };
    let [of_cpu, of_atom] = [0, 5].map(|event| file.branch_counters(event).unwrap());
    // 0b1101: the first event once, the second that is counted at least 3 times.
    assert_eq!(of_cpu.counts(0b1101).collect::<Vec<_>>(), [count(0, 1, false), count(2, 3, true)]);
    assert_eq!(of_atom.counts(0b1101).collect::<Vec<_>>(), [count(5, 13, false)]);
    assert_eq!(of_atom.counts(0xff).collect::<Vec<_>>(), [count(5, 15, true)]);
    // All of a group are told of the same.
    for (event, events) in [(1, Some(&[0, 2][..])), (2, Some(&[0, 2])), (3, None), (4, Some(&[5])), (6, None)]
    {
        let counters = file.branch_counters(event);
        assert_eq!(counters.as_ref().map(BranchCounters::events), events, "{event}");
    }
    samples
}

#[test]
fn counts_are_of_the_events_of_the_group_in_their_order() {
    for order in ORDERS {
        let counts = |event| (event, vec![Some(0b1101), Some(0x70 + event as u64)]);
        let expected = [counts(0), counts(1), counts(2), (3, vec![None, None]), counts(4), counts(5)];
        let of_file = read(FileReader::open(Cursor::new(file(order, true))).unwrap());
        assert_eq!(of_file, expected, "{order:?}");
        assert_eq!(read(FileReader::stream(Cursor::new(stream(order))).unwrap()), expected, "{order:?}");
    }
}

#[test]
fn an_event_without_a_group_has_counts_of_its_own() {
    let bytes = file(ByteOrder::Little, false);
    let file = FileReader::open(Cursor::new(bytes)).unwrap();
    let of = |event| file.branch_counters(event).map(|counters| counters.events().to_vec());
    assert_eq!([of(0), of(1), of(2)], [Some(vec![0]), None, Some(vec![2])]);
}

#[test]
fn layouts_that_can_not_be_are_none() {
    let text = |text| [U32(64), Text(text, 64)];
    for (count, width, events) in [
        ("4", "2", Some(2)),
        ("1", "2", Some(1)),
        ("0", "2", Some(0)),
        // One has room for a single count.
        ("4", "64", Some(1)),
        ("4", "33", Some(1)),
        ("4", "0", None),
        ("4", "65", None),
        ("x", "2", None),
        ("4", "-2", None),
    ] {
        let words = ["branch_counter_nr", count, "branch_counter_width", width];
        let section =
            made(RecordKind(0), ByteOrder::Little, &[&[U32(2)][..], &words.map(text).concat()].concat());
        let mut file = FileWriter::new(Cursor::new(Vec::new()), ByteOrder::Little).unwrap();
        for attr in &attrs()[..3] {
            file.add_event(attr, Vec::new(), None).unwrap();
        }
        file.features().set_section(Feature::CPU_PMU_CAPS, section.body);
        // Of more members than there are events.
        let group = GroupDescription { name: String::new(), leader: 0, members: u32::MAX };
        file.features().set_groups(&[group]).unwrap();
        let bytes = file.finish().unwrap().into_inner();
        let file = FileReader::open(Cursor::new(bytes)).unwrap();
        let counters = file.branch_counters(0);
        assert_eq!(counters.as_ref().map(|counters| counters.events().len()), events, "{count}, {width}");
        let highest = counters.and_then(|counters| counters.counts(u64::MAX).last());
        assert!(highest.is_none_or(|highest| highest.is_full), "{count}, {width}");
    }
}
