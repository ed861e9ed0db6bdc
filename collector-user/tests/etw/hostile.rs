//! Records that somebody made to cost much: a few bytes that are much each time, and as many records as need that. Memory goes by what is
//! there, and what is left out is counted.

use export::import::Imported;
use windows_etw::decode::kernel::{PERF_INFO, SYS_CONFIG};
use windows_etw::record::Extended;

use crate::made::{Made, Odd, Payload};

const CODE: u64 = 0x20_0000;

/// Does something that holds at most so many bytes.
fn within<T>(most: u64, work: impl FnOnce() -> T) -> T {
    let mut done = None;
    let used = allocation_counter::measure(|| done = Some(work()));
    assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
    done.unwrap()
}

/// How many of something are left out.
fn left_out(imported: &Imported, what: &str) -> u64 {
    let line = imported.left_out.iter().find(|line| line.contains(what));
    line.map_or(0, |line| line.split(' ').next().unwrap().parse().unwrap())
}

const STACKS: &str = "stacks are left out: they are larger together";
const ROOM: &str = "facts, samples or events are left out";

/// Each call is on top of the same deep stack, in another routine.
#[test]
fn calls_of_many_routines_on_a_deep_stack() {
    const CALLS: u64 = 2000;
    let addresses: Vec<u64> = (0..4000).map(|number| CODE + number).collect();
    let imported = within(256 << 20, || {
        let mut made = Made::new();
        made.process(1, 1, 70, "made.exe");
        made.thread(2, 70, 71, "");
        made.switch(3, 0, 0, 5, 71);
        for call in 0..CALLS {
            let at = 10 + 10 * call;
            let routine = 0xffff_f800_0000_0000 + call;
            made.classic(at as i64, (PERF_INFO, 51, 2), 0, &Payload::default().u64(&[routine]));
            made.classic(at as i64 + 1, (PERF_INFO, 52, 2), 0, &Payload::default().u32(&[0]));
            made.stack(at as i64 + 2, at + 1, 70, 71, &addresses);
        }
        made.finish()
    });
    assert!(left_out(&imported, STACKS) > CALLS / 4, "{:?}", imported.left_out);
    let calls = imported
        .machine
        .samples()
        .iter()
        .filter(|sample| imported.machine.stacks().get(sample.stack).len() == 1 + addresses.len());
    assert!(calls.count() > 1000);
}

/// Before each sample something is mapped, so that what is at the addresses of its stack has to be looked for again.
#[test]
fn a_deep_stack_in_a_process_that_changes() {
    const SAMPLES: u64 = 700;
    let addresses: Vec<u64> = (0..8000).map(|number| CODE + number).collect();
    let imported = within(256 << 20, || {
        let mut made = Made::new();
        made.process(1, 1, 70, "made.exe");
        made.thread(2, 70, 71, "");
        for sample in 0..SAMPLES {
            let at = 10 + 10 * sample;
            made.image(at as i64, 10, 70, (1 + sample) << 32, r"C:\a.dll");
            made.sample(at as i64 + 1, 0, 71, CODE, 0);
            made.stack(at as i64 + 2, at + 1, 70, 71, &addresses);
        }
        made.finish()
    });
    let cut = left_out(&imported, STACKS);
    assert!((SAMPLES / 10..SAMPLES / 2).contains(&cut), "{:?}", imported.left_out);
    assert_eq!(imported.machine.samples().len() as u64, SAMPLES);
}

/// The path of each image would begin with as much as a drive is said to be called.
#[test]
fn a_drive_of_a_long_name() {
    const IMAGES: u64 = 4000;
    let imported = within(64 << 20, || {
        let mut made = Made::new();
        let mapping = Payload::default().wide(r"\Device\HarddiskVolume1\").wide(&"d".repeat(30_000));
        made.classic(1, (SYS_CONFIG, 35, 2), 0, &mapping);
        made.process(2, 1, 70, "made.exe");
        for image in 0..IMAGES {
            made.image(3, 10, 70, image << 20, &format!(r"\Device\HarddiskVolume1\{image}"));
        }
        made.finish()
    });
    assert_eq!(left_out(&imported, ROOM), 1, "{:?}", imported.left_out);
    let paths = imported.machine.modules().iter().map(|module| imported.machine.string(module.path));
    assert_eq!(paths.filter(|path| path.starts_with(r"\Device\HarddiskVolume1\")).count() as u64, IMAGES);
}

/// Kinds of events that say of themselves that they have fields, each of which is a structure.
#[test]
fn many_kinds_of_many_fields() {
    const KINDS: u64 = 2000;
    const FIELDS: usize = 455;
    let imported = within(128 << 20, || {
        let mut made = Made::new();
        for kind in 0..KINDS {
            // `win:SYSTEMTIME`, which has eight fields.
            let rest = [format!("\0{kind}\0").into_bytes(), [0, 18].repeat(FIELDS)].concat();
            let description = [(rest.len() as u16 + 2).to_le_bytes().to_vec(), rest].concat();
            let extended = Extended { self_description: Some(&description), ..Extended::default() };
            let provider = collector_common::event::Guid([7; 16]);
            let odd = Odd { at: kind as i64, provider, id: Some(0), opcode: 0, version: 0, number: 3 };
            made.odd_with(&odd, extended, &[]);
        }
        made.finish()
    });
    let kept = (1 << 20) / (9 * FIELDS as u64);
    assert_eq!(left_out(&imported, ROOM), KINDS - kept, "{:?}", imported.left_out);
    assert_eq!(imported.machine.event_records().iter().count() as u64, kept);
}
