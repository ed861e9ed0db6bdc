//! Recordings that are damaged or made up in, and what is told of them.

use std::io::Cursor;
use std::time::{Duration, UNIX_EPOCH};

use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Tid};
use collector_common::loss::LossCause;
use collector_common::perf::file::{ClockData, FileWriter};
use collector_common::perf::{
    Attr, ByteOrder, Bytes, Comm, Lost, LostSamples, Misc, Mmap, Parsed, Record, Sample, SampleId,
    SampleType, Task, Text,
};
use collector_common::sharing::Writable;

use super::*;
use crate::replay::UNFINISHED;

const FILES: [&[u8]; 2] = [
    include_bytes!("../../../../collector-common/tests/fuzzing/seeds/perf_data/plain"),
    include_bytes!("../../../../collector-common/tests/fuzzing/seeds/perf_data/packed"),
];
const STREAM: &[u8] = include_bytes!("../../../../collector-common/tests/fuzzing/seeds/perf_data/stream");

/// A file of `perf record` with samples.
const CALLS: &[u8] = include_bytes!("../../../../xtask/fixtures/perf_data/calls.data");

/// When files were written last: a minute into 1970.
fn written() -> SystemTime {
    UNIX_EPOCH + Duration::from_mins(1)
}

/// Both ways to a recording; neither may panic.
fn replayed(bytes: &[u8]) -> Option<Recording> {
    let of_stream = Replay::stream(bytes).ok();
    let of_file = FileReader::open(Cursor::new(bytes)).ok();
    let origin = Origin { written: written(), is_dated: true, user: None };
    let of_file = of_file.and_then(|reader| Replay::new(reader, origin).ok());
    let of_stream = of_stream.map(Replay::run);
    of_file.map(Replay::run).or(of_stream)
}

#[test]
fn damaged_recordings_give_what_they_have() {
    for whole in FILES.into_iter().chain([STREAM]) {
        assert!(replayed(whole).is_some());
        for at in (0..whole.len()).step_by(41) {
            replayed(&whole[..at]);
            let mut spoilt = whole.to_vec();
            spoilt[at] ^= 0xff;
            replayed(&spoilt);
            spoilt[at..].iter_mut().take(8).for_each(|byte| *byte = 0xff);
            replayed(&spoilt);
        }
    }
}

/// The header says where the records are and how many bytes they have, at byte 40; what was killed has nothing behind them.
#[test]
fn what_was_killed_is_read_to_its_end() {
    let is_told = |recording: &Recording| recording.warnings.iter().any(|warning| warning == UNFINISHED);
    let mut delivered = 0;
    for whole in FILES {
        let [from, size] = records(whole);
        let mut killed = whole[..from + size].to_vec();
        killed[48..56].fill(0);
        let (whole, killed) = (replayed(whole).unwrap(), replayed(&killed).unwrap());
        assert_eq!((is_told(&whole), is_told(&killed)), (false, true), "{:?}", killed.warnings);
        assert_eq!((lost(&whole), lost(&killed)), (Some(0), None));
        assert!(killed.machine.system().account.iter().any(|line| line == UNFINISHED));
        delivered += killed.ledger.delivered();
        assert_eq!(killed.ledger.delivered(), whole.ledger.delivered());
        assert_eq!(killed.machine.samples().len(), whole.machine.samples().len());
    }
    assert!(delivered > 0, "one of them has samples");
}

/// The header says how large the list of events is, at byte 32.
#[test]
fn samples_of_no_event_are_lost() {
    for whole in FILES {
        let delivered = replayed(whole).unwrap().ledger.delivered();
        let mut spoilt = whole.to_vec();
        spoilt[32..40].fill(0);
        let ledger = replayed(&spoilt).unwrap().ledger;
        assert_eq!((ledger.delivered(), ledger.lost(LossCause::Malformed)), (0, delivered));
    }
}

#[test]
fn any_number_of_lost_samples_can_be_told() {
    let mut bytes = STREAM.to_vec();
    for kind in [RecordKind::LOST, RecordKind::LOST_SAMPLES] {
        for _ in 0..2 {
            // An id and a count, or a count; then room for the number of the thread and whatever else the event has.
            let body = [u64::MAX, u64::MAX, 0, 0, 0, 0, 0, 0];
            bytes.extend(kind.0.to_le_bytes());
            bytes.extend([0, 0]);
            bytes.extend((8 + size_of_val(&body) as u16).to_le_bytes());
            bytes.extend(body.iter().flat_map(|word| word.to_le_bytes()));
        }
    }
    let recording = replayed(&bytes).unwrap();
    assert_eq!(recording.ledger.lost(LossCause::RingFull), u64::MAX);
    assert_eq!(recording.ledger.produced(), u64::MAX);
}

#[test]
fn causes_that_a_file_of_ours_tells() {
    let mut writer = FileWriter::new(Cursor::new(Vec::new()), ByteOrder::NATIVE).unwrap();
    let attr = Attr { sample_type: SampleType::TIME, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() };
    let event = writer.add_event(&attr, vec![1], None).unwrap();
    let sample_id = SampleId { time: Some(Nanos(1)), ..SampleId::default() };
    for record in [Record::Lost(Lost { id: 1, count: 5 }), Record::LostSamples(LostSamples { count: 10 })] {
        let parsed = Parsed { misc: Misc(0), record, sample_id, rest: Bytes::default() };
        writer.write(event, &parsed).unwrap();
    }
    let losses = [("not_run", 7), ("ring_full", 1), ("of_later_versions", 2)];
    writer.features().set_losses(losses.into_iter()).unwrap();
    writer.features().set_span((Nanos(0), Nanos(2_100_000_000)));
    let bytes = writer.finish().unwrap().into_inner();
    let recording = replayed(&bytes).unwrap();
    let lost: Vec<(LossCause, u64)> = recording.ledger.causes().filter(|(_, count)| *count > 0).collect();
    let told = [(LossCause::RingFull, 1), (LossCause::NotRun, 7), (LossCause::Unaccounted, 2)];
    assert_eq!(lost, told);
    // Not the time of its only records, which is 1.
    let system = recording.machine.system();
    assert_eq!((system.start, system.end), (Nanos(0), Nanos(2_100_000_000)));
    assert_eq!(recording.stats.duration_ns, 2_100_000_000);
    let of_sideband = "5 records of new mappings and processes were lost";
    assert!(
        recording.warnings.iter().any(|warning| warning.starts_with(of_sideband)),
        "{:?}",
        recording.warnings
    );
}

/// What outputs say of how many samples were lost.
fn lost(recording: &Recording) -> Option<u64> {
    recording.machine.system().lost
}

/// A file of others: a process is named, is in the kernel and ends.
fn made(features: impl FnOnce(&mut FileWriter<Cursor<Vec<u8>>>), kernel: Option<(&str, u64)>) -> Vec<u8> {
    let mut writer = FileWriter::new(Cursor::new(Vec::new()), ByteOrder::NATIVE).unwrap();
    let sample_type = SampleType::IP | SampleType::TID | SampleType::TIME;
    let attr = Attr { sample_type, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() };
    let event = writer.add_event(&attr, vec![1], None).unwrap();
    let (pid, tid) = (Pid(7), Tid(7));
    let mut write = |time: u64, misc, record| {
        let time = Some(Nanos(time));
        let sample_id = SampleId { pid: Some(pid), tid: Some(tid), time, ..SampleId::default() };
        let parsed = Parsed { misc, record, sample_id, rest: Bytes::default() };
        writer.write(event, &parsed).unwrap();
    };
    let (symbol, start) = kernel.unwrap_or(("_text", 0xffff_ffff_8100_0000));
    let path = format!("[kernel.kallsyms]{symbol}");
    let mmap = Mmap {
        pid: Pid(u32::MAX),
        tid: Tid(0),
        start: Avma(start),
        len: 1 << 24,
        file_offset: FileOffset(start),
        path: Text::new(path.as_bytes()),
    };
    write(0, Misc::KERNEL, Record::Mmap(mmap));
    write(5_000, Misc::USER, Record::Comm(Comm { pid, tid, name: Text::new(b"sleep") }));
    let (ip, time) = (Some(Avma(start + 0x100)), Some(Nanos(6_000)));
    let sample = Sample { ip, pid: Some(pid), tid: Some(tid), time, ..Sample::default() };
    write(6_000, Misc::KERNEL, Record::Sample(sample));
    let time = Nanos(9_000);
    let exit = Task { pid, parent_pid: Pid(1), tid, parent_tid: Tid(1), time };
    write(9_000, Misc::USER, Record::Exit(exit));
    features(&mut writer);
    writer.finish().unwrap().into_inner()
}

#[test]
fn a_recording_lasts_from_its_first_record_to_its_last() {
    let recording = replayed(&made(|_| (), None)).unwrap();
    let system = recording.machine.system();
    assert_eq!((system.start, system.end), (Nanos(5_000), Nanos(9_000)));
    assert_eq!((recording.stats.duration_ns, recording.ledger.delivered()), (4_000, 1));
}

/// Where the records of a file are and how many bytes they have: its header tells it at byte 40.
fn records(file: &[u8]) -> [usize; 2] {
    [40, 48].map(|at| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize)
}

#[test]
fn nobody_knows_what_was_lost_with_the_end() {
    let whole = replayed(CALLS).unwrap();
    assert_eq!((lost(&whole), whole.stats.account()[0].as_str()), (Some(0), "none lost"));
    let [from, size] = records(CALLS);
    let cut = replayed(&CALLS[..from + size / 2]).unwrap();
    let delivered = cut.ledger.delivered();
    assert!(lost(&cut).is_none() && delivered > 0 && delivered < whole.ledger.delivered(), "{delivered}");
    let account = &cut.machine.system().account;
    assert!(account.iter().all(|line| line != "none lost"), "{account:?}");
    assert!(account.iter().any(|line| line.starts_with("the end is missing: ")), "{account:?}");
    assert_eq!(cut.stats.account()[0], "how many were lost is not known");
}

/// What a file of ours tells of lost samples is behind its records, as its last feature.
#[test]
fn nobody_knows_what_was_lost_without_its_count() {
    let mut bytes =
        made(|writer| writer.features().set_losses([("ring_full", 3)].into_iter()).unwrap(), None);
    assert_eq!(lost(&replayed(&bytes).unwrap()), Some(3));
    let [from, size] = records(&bytes);
    let features: u32 = bytes[72..104].iter().map(|flags| flags.count_ones()).sum();
    let size_of_last = from + size + 16 * features as usize - 8;
    bytes[size_of_last..size_of_last + 8].fill(0x7f);
    let without = replayed(&bytes).unwrap();
    assert_eq!((lost(&without), without.ledger.delivered()), (None, 1), "{:?}", without.warnings);
}

#[test]
fn samples_are_read_where_features_are_cut_off() {
    let whole = replayed(CALLS).unwrap();
    let cut = replayed(&CALLS[..CALLS.len() - 124]).unwrap();
    assert!(cut.ledger.delivered() > 0);
    assert_eq!(cut.ledger.delivered(), whole.ledger.delivered());
    assert_eq!((lost(&cut), cut.machine.system().host.as_str()), (Some(0), "recorded"));
    let is_told = |lines: &[String]| lines.iter().any(|line| line.starts_with("what these features tell"));
    assert!(is_told(&cut.warnings) && is_told(&cut.machine.system().account), "{:?}", cut.warnings);
    assert!(!is_told(&whole.warnings));
}

#[test]
fn the_time_of_day_is_that_of_the_clocks_or_else_of_the_file() {
    let by_date = |recording: &Recording| {
        recording.machine.system().account.iter().any(|line| line.starts_with("times of day are by when"))
    };
    let unix = |recording: &Recording| {
        let system = recording.machine.system();
        system.clocks.unix_at(system.end)
    };
    let bytes = made(|_| (), None);
    let dated = replayed(&bytes).unwrap();
    assert_eq!((unix(&dated), by_date(&dated)), (Some(60_000_000_000), true));
    let origin = Origin { written: written(), is_dated: true, user: None };
    let undated = Replay::new(FileReader::open(Cursor::new(&*bytes)).unwrap(), origin).unwrap();
    let undated = undated.undated().run();
    assert_eq!((unix(&undated), by_date(&undated)), (None, false));
    let clock_data = ClockData { clockid: MONOTONIC as u32, wall_clock: 100_000, clock: Nanos(5_000) };
    let with_clocks = replayed(&made(|writer| writer.features().set_clock_data(clock_data), None)).unwrap();
    assert_eq!((unix(&with_clocks), by_date(&with_clocks)), (Some(104_000), false));
    let stream = Replay::stream(STREAM).unwrap().run();
    let has_clocks = stream.machine.system().clocks.start.is_some();
    assert!(!has_clocks, "it does not tell the time of day");
}

/// Kernels without KASLR all lie at one place.
#[cfg(target_os = "linux")]
#[test]
fn names_of_another_kernel_are_not_taken() {
    use collector_common::ids::BuildId;

    use crate::this_machine::kernel_build_id;

    let here = crate::capture::kernel::beginning();
    let of = |release: &str, id: Option<BuildId>| {
        let kernel = BuildIdOfFile {
            misc: Misc::KERNEL,
            pid: Pid(u32::MAX),
            build_id: id,
            path: "[kernel.kallsyms]".to_owned(),
        };
        let bytes = made(
            |writer| {
                let features = writer.features();
                features.set_text(Feature::OSRELEASE, release).unwrap();
                if id.is_some() {
                    features.set_build_ids(&[kernel]).unwrap();
                }
            },
            here,
        );
        replayed(&bytes).unwrap()
    };
    let is_told = |recording: &Recording, release: &str| {
        let told = format!("recorded on another kernel ({release}) than the one that runs here");
        recording.warnings.iter().any(|warning| warning.contains(&told))
    };
    let own = rustix::system::uname().release().to_string_lossy().into_owned();
    // Where the running kernel hides its addresses, none has names.
    let is_known = here.is_some();
    let same = of(&own, None);
    assert_eq!(
        (same.kernel_symbols.is_some(), is_told(&same, &own)),
        (is_known, false),
        "{:?}",
        same.warnings
    );
    let other = of("6.18.44-fc-v445-x", None);
    assert!(other.kernel_symbols.is_none() && is_told(&other, "6.18.44-fc-v445-x"), "{:?}", other.warnings);
    if let Some(id) = kernel_build_id() {
        let same = of("another name", Some(id));
        assert_eq!((same.kernel_symbols.is_some(), is_told(&same, "another name")), (is_known, false));
        let rebuilt = of(&own, BuildId::new(&[7; 20]));
        assert!(rebuilt.kernel_symbols.is_none() && is_told(&rebuilt, &own), "{:?}", rebuilt.warnings);
    }
}

/// The time that a closure is told of the one sample of [`made`].
fn told(bytes: &[u8], clock: EventClock) -> Result<u64, ReplayError> {
    let origin = Origin { written: written(), is_dated: true, user: None };
    let mut replay = Replay::new(FileReader::open(Cursor::new(bytes))?, origin)?;
    replay.set_event_clock(clock)?;
    let time = Writable::new(0);
    let seen = time.clone();
    let [replayed] = replay.hooks_mut() else { panic!("it has one event") };
    replayed.event.add_closure(move |data| {
        let told = data.context().unwrap().time.0;
        Ok(seen.write(|time| *time = told)?)
    });
    let recording = replay.run();
    assert_eq!(recording.machine.samples().get(0).unwrap().time, Nanos(6_000));
    Ok(time.into_inner().unwrap())
}

#[test]
fn closures_are_told_the_time_of_the_clock_that_was_chosen_where_it_is_known() {
    let of_clock = |clockid: u32| {
        let clock_data = ClockData { clockid, wall_clock: 100_000, clock: Nanos(5_000) };
        made(|writer| writer.features().set_clock_data(clock_data), None)
    };
    let [monotonic, boottime] = [MONOTONIC as u32, BOOTTIME].map(of_clock);
    let undated = made(|_| (), None);
    // A closure of a clock that nothing tells of is refused.
    for (bytes, expected) in [
        (&monotonic, [Some(6_000), Some(101_000), None]),
        (&boottime, [Some(6_000), Some(101_000), Some(6_000)]),
        (&undated, [Some(6_000), None, None]),
    ] {
        let clocks = [EventClock::Monotonic, EventClock::Realtime, EventClock::Boottime];
        for (clock, expected) in clocks.into_iter().zip(expected) {
            match told(bytes, clock) {
                Err(ReplayError::NoClock { clock: refused }) => {
                    assert_eq!((expected, refused), (None, clock));
                }
                told => assert_eq!(told.ok(), expected, "{clock}"),
            }
        }
    }
}
