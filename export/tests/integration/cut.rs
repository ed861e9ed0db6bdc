//! Files whose ends are missing, as of a program that was killed: what is before that is read, and it is said that more was there.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use collector_common::record::ExportMachine;
use export::format::nettrace::Nettrace;
use export::import::jfr::events::ReadError;
use export::import::{ImportError, Imported, jfr, nettrace};

use crate::dotnet::capture;
use crate::import_jfr::{captures, compare};
use crate::jfr_made::Bytes;
use crate::made::Made;
use crate::nettrace_old;
use crate::random::written;
use crate::tools::tool;

/// A sample: its time, thread, kind, value, and how deep its stack is.
type Row<'a> = (u64, u32, &'a str, i64, usize);

fn rows(machine: &ExportMachine) -> Vec<Row<'_>> {
    let samples = machine.samples().iter();
    samples
        .map(|sample| {
            let kind = machine.string(machine.kinds()[usize::from(sample.kind.0)].name);
            let depth = machine.stacks().get(sample.stack).len();
            (sample.time.0, machine.thread(sample.thread).tid.0, kind, sample.value, depth)
        })
        .collect()
}

/// What is told of a file that ends too early, once.
fn missing(imported: &Imported) -> &str {
    let is_told = |line: &&String| line.starts_with("the end is missing: ");
    let told: Vec<_> = imported.left_out.iter().filter(is_told).collect();
    let [line] = &*told else { panic!("{:?}", imported.left_out) };
    let system = imported.machine.system();
    assert!(
        system.account.contains(line) && system.lost != Some(0),
        "{:?}, {:?}",
        system.account,
        system.lost
    );
    assert!(!system.account.iter().any(|line| line == "none lost"));
    line
}

fn is_whole(imported: &Imported) -> bool {
    !imported.left_out.iter().any(|line| line.contains("missing"))
}

/// Compares what is read of the beginnings of a trace with what is of all. Out: how many samples each has.
fn beginnings(bytes: &[u8], lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let whole = nettrace::import(Cursor::new(bytes)).unwrap();
    assert!(is_whole(&whole));
    let all = rows(&whole.machine);
    let read = lengths.filter_map(|length| {
        let cut = match nettrace::import(Cursor::new(&bytes[..length])) {
            Ok(cut) => cut,
            Err(error) => {
                assert!(error.to_string().contains(&format!("byte {length},")), "{error}");
                return None;
            }
        };
        assert_eq!(missing(&cut), format!("the end is missing: the file ends at byte {length}"));
        let rows = rows(&cut.machine);
        assert!(all.starts_with(&rows), "{length}");
        Some(rows.len())
    });
    read.collect()
}

#[test]
fn the_beginning_of_a_trace_of_net_is_read() {
    let ours = ["3.1", "9", "10"].map(capture);
    for bytes in
        ours.into_iter().chain(nettrace_old::captures().iter().map(|path| nettrace_old::unzipped(path)))
    {
        let read = beginnings(&bytes, (1..8).map(|part| bytes.len() * part / 8));
        assert!(read.is_sorted() && read.len() > 3, "{read:?}");
        assert!(read.last() > Some(&0), "{read:?}");
    }
}

/// Ours tells in its beginning what was lost until it was whole.
#[test]
fn a_trace_that_is_cut_does_not_say_that_nothing_was_lost() {
    let Made { mut machine, symbols } = Made::new();
    machine.system_mut().lost = Some(0);
    machine.system_mut().account = vec!["none lost".to_owned(), "build-07".to_owned()];
    let bytes = written(&Nettrace, &machine, &symbols);
    let read = beginnings(&bytes, 0..bytes.len());
    assert_eq!(read.last(), Some(&machine.samples().len()));
    assert!(read.len() < bytes.len());
    let cut = nettrace::import(Cursor::new(&bytes[..bytes.len() - 1])).unwrap();
    assert_eq!(cut.machine.system().account[0], "build-07");
    assert_eq!(cut.machine.system().lost, None);
}

/// A chunk of so many samples.
fn chunk(samples: u64) -> Vec<u8> {
    let mut bytes = Bytes::new(true);
    bytes.types(&[
        (7, "long", false, &[]),
        (8, "stack", false, &["depth:7"]),
        (20, "jdk.ExecutionSample", true, &["startTime:7", "stackTrace:8"]),
    ]);
    for at in 0..samples {
        bytes.event(20, |out| out.long(100 + at).long(1));
    }
    bytes.chunk()
}

/// What a recorder has counted up to by then, when it has not ended a chunk.
fn open(mut chunk: Vec<u8>) -> Vec<u8> {
    chunk[64] = 6;
    chunk
}

#[test]
fn whole_chunks_of_a_flight_recording_are_read() {
    let chunks = [chunk(2), chunk(3), chunk(4)];
    let file = chunks.concat();
    let ends = [chunks[0].len(), chunks[0].len() + chunks[1].len(), file.len()];
    let whole = jfr::import(&*file).unwrap();
    let all = rows(&whole.machine);
    assert!(all.len() == 9 && is_whole(&whole));
    for length in 0..file.len() {
        let cut = match jfr::import(&file[..length]) {
            Ok(cut) => cut,
            Err(ImportError::Jfr(
                ReadError::Cut { position, .. } | ReadError::Malformed { position, .. },
            )) => {
                assert!(length < ends[0] && position == length as u64);
                continue;
            }
            Err(error) => panic!("{length}: {error}"),
        };
        let samples = if length < ends[1] { 2 } else { 5 };
        assert_eq!(rows(&cut.machine), all[..samples]);
        if ends.contains(&length) {
            assert!(is_whole(&cut));
        } else {
            assert!(missing(&cut).ends_with(&format!(" at byte {length}")));
        }
    }
}

/// The recorder writes a chunk's size each second, and events behind that as they come; at first it writes none.
#[test]
fn a_chunk_that_was_not_ended_is_read_to_its_size() {
    let not_ended = "the end is missing: a chunk that was not ended at byte ";
    let first = chunk(2);
    for more in [0, 1, 3, 50, 500] {
        let file = [first.clone(), open(chunk(3)), vec![0x46; more]].concat();
        let read = jfr::import(&*file).unwrap();
        assert_eq!(read.machine.samples().len(), 5);
        assert!(missing(&read).starts_with("the end is missing: a chunk that "), "{more}");
    }
    // As the files of a recorder's folder behind each other.
    let file = [open(chunk(3)), first.clone()].concat();
    assert_eq!(jfr::import(&*file).unwrap().machine.samples().len(), 5);
    let mut without_size = chunk(3);
    without_size[8..16].fill(0);
    let read = jfr::import(&*[&*first, &*without_size].concat()).unwrap();
    assert_eq!(missing(&read), format!("{not_ended}{}", first.len() + 8));
    assert_eq!(read.machine.samples().len(), 2);
    assert!(jfr::import(&*without_size).is_err());
}

/// Of a virtual machine that is killed the JDK shows as much.
#[test]
fn the_file_of_a_killed_virtual_machine_is_read() {
    let (Some(mut java), Some(_)) = (tool("java"), tool("jfr")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/java/Killed.java");
    let repository = format!("-XX:FlightRecorderOptions=repository={}", folder.path().display());
    java.args(["-XX:StartFlightRecording=settings=profile", &repository]).arg(program).arg(folder.path());
    assert_eq!(java.output().unwrap().status.code(), None, "a signal ended it");
    let of = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let folders: Vec<PathBuf> = of(folder.path());
    let files: Vec<PathBuf> = folders.iter().flat_map(|folder| -> Vec<PathBuf> { of(folder) }).collect();
    let [path] = &*files else { panic!("{files:?}") };
    let imported = jfr::import(fs::File::open(path).unwrap()).unwrap();
    assert!(missing(&imported).starts_with("the end is missing: a chunk that was not ended at byte "));
    let rows = compare(path, &imported, 1);
    // How many depends on how busy the machine was.
    assert!(rows.iter().any(|row| row.0 == "cpu" && row.5 == "Killed.compute"));
}

#[test]
fn a_recording_of_async_profiler_is_read_as_far_as_its_chunks_are_whole() {
    for path in captures() {
        let whole = fs::read(path).unwrap();
        let expected = jfr::import(&*whole).unwrap();
        let cut = jfr::import(&*[&*whole, &whole[..whole.len() / 2]].concat()).unwrap();
        assert_eq!(rows(&cut.machine), rows(&expected.machine));
        assert!(missing(&cut).ends_with(&format!(" at byte {}", whole.len() + whole.len() / 2)));
        assert!(is_whole(&expected) && jfr::import(&whole[..whole.len() / 2]).is_err());
    }
}
