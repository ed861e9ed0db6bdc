//! Profiles that are larger than what is held of them: more than 256 MiB uncompressed, of which a piece is made at a time.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

use allocation_counter::measure;
use collector_common::record::ExportMachine;
use export::import::firefox::Firefox;
use export::import::pprof::Pprof;
use export::import::{ImportFormat, Imported};

/// As large as files could be that were read as a whole.
const LARGE: u64 = 256 << 20;

/// A file of several pieces, of which one is there at a time.
struct Pieces<F> {
    make: F,
    next: u32,
    piece: Cursor<Vec<u8>>,
    read: u64,
}

impl<F: FnMut(u32) -> Option<Vec<u8>>> Pieces<F> {
    fn new(make: F) -> Self {
        Self { make, next: 0, piece: Cursor::default(), read: 0 }
    }
}

impl<F: FnMut(u32) -> Option<Vec<u8>>> Read for Pieces<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.piece.read(buffer)?;
            self.read += read as u64;
            if read > 0 {
                return Ok(read);
            }
            let Some(piece) = (self.make)(self.next) else { return Ok(0) };
            (self.piece, self.next) = (Cursor::new(piece), self.next + 1);
        }
    }
}

/// To its start alone, which is where readers go.
impl<F> Seek for Pieces<F> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        match position {
            SeekFrom::Start(0) => (self.next, self.piece, self.read) = (0, Cursor::default(), 0),
            SeekFrom::Current(0) => {}
            _ => return Err(io::ErrorKind::Unsupported.into()),
        }
        Ok(self.read)
    }
}

/// Reads a file, which has to be large, with so many bytes of memory at most.
fn read(
    format: &dyn ImportFormat,
    make: impl FnMut(u32) -> Option<Vec<u8>>,
    most: u64,
) -> (ExportMachine, export::symbolize::Symbols) {
    let mut file = Pieces::new(make);
    let mut imported = None;
    let used = measure(|| imported = Some(format.import(&mut file).unwrap()));
    let Imported { machine, symbols, .. } = imported.unwrap();
    assert!(file.read > LARGE, "{} bytes", file.read);
    assert!(used.bytes_max < most, "{} bytes were held of {}", used.bytes_max, file.read);
    (machine, symbols)
}

/// Names as long as those of generic functions, which each thread has again, as each has tables of its own.
#[test]
fn a_profile_of_many_threads_is_held_thread_by_thread() {
    const NAMES: u32 = 6_000;
    const THREADS: u32 = 170;
    const SAMPLES: u32 = 500;
    let list = |each: &dyn Fn(u32) -> String, count| (0..count).map(each).collect::<Vec<_>>().join(",");
    let name = |at: u32| format!("core::iter::{}::function_{at}", "adapters::map::Map<I, F>".repeat(10));
    let names = list(&|at| format!("\"{}\"", name(at)), NAMES);
    let numbers = list(&|at| at.to_string(), NAMES);
    // Each stack is a function that is called from the root.
    let prefix = list(&|at| if at == 0 { "null".to_owned() } else { "0".to_owned() }, NAMES);
    let stacks = list(&|at| (at * 7 % NAMES).to_string(), SAMPLES);
    let times = list(&|at| format!("{at}.25"), SAMPLES);
    let tables = format!(
        "\"stringArray\":[{names}],\"stackTable\":{{\"frame\":[{numbers}],\"prefix\":[{prefix}]}},\
         \"frameTable\":{{\"func\":[{numbers}],\"line\":[{numbers}]}},\"funcTable\":{{\"name\":[{numbers}]}},\
         \"samples\":{{\"stack\":[{stacks}],\"time\":[{times}]}}"
    );
    let head = r#"{"meta":{"preprocessedProfileVersion":55,"interval":1,"startTime":0},"threads":["#;
    let piece = |at: u32| match at {
        0 => Some(head.as_bytes().to_vec()),
        at if at <= THREADS => {
            let separator = if at > 1 { "," } else { "" };
            Some(format!("{separator}{{\"tid\":{at},\"pid\":1,{tables}}}").into_bytes())
        }
        at if at == THREADS + 1 => Some(b"]}".to_vec()),
        _ => None,
    };
    let (machine, symbols) = read(&Firefox, piece, 32 << 20);
    assert_eq!(machine.threads().len(), THREADS as usize);
    assert_eq!(machine.samples().len(), (THREADS * SAMPLES) as usize);
    for (sample, at) in machine.samples().iter().skip(SAMPLES as usize).zip(0..SAMPLES) {
        let stack = machine.stacks().get(sample.stack);
        let function = symbols.functions(stack[0]).next().unwrap();
        let expected = at * 7 % NAMES;
        assert_eq!((symbols.function(function.name), function.line), (&*name(expected), expected));
        assert_eq!(
            (sample.time.0, machine.thread(sample.thread).tid.0),
            (u64::from(at) * 1_000_000 + 250_000, 2)
        );
    }
}

/// Rows of one of few stacks each, which are most of a profile with many labels or much time.
#[test]
fn a_profile_of_many_samples_is_held_field_by_field() {
    const ROWS: u32 = 100;
    const PIECES: u32 = 900;
    // A number of 64 bits.
    let long =
        |id: u32| [id as u8 | 0x80, (id >> 7) as u8 | 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1];
    // 300 of 10,000 locations on its stack, whose ids have 10 bytes each, and one value.
    let row = |at: u32| {
        let locations = (0..300_u32).flat_map(|of| {
            let id = (of * 7 + at) % 10_000 + 1;
            long(id)
        });
        let locations: Vec<u8> = locations.collect();
        let length = locations.len() as u32;
        let mut row = vec![0x0a, length as u8 | 0x80, (length >> 7) as u8];
        row.extend(locations);
        row.extend([0x12, 1, 1]);
        let length = row.len() as u32;
        [&[0x12, length as u8 | 0x80, (length >> 7) as u8][..], &row].concat()
    };
    let rows: Vec<u8> = (0..ROWS).flat_map(row).collect();
    let piece = |at: u32| match at {
        // An empty string, a type of samples, and locations of which an address is told.
        0 => {
            let mut head = vec![0x32, 0, 0x0a, 0];
            for number in 1..=10_000_u32 {
                let id = [number as u8 | 0x80, (number >> 7) as u8 | 0x80, 0];
                head.extend([&[0x22, 15, 0x08][..], &long(number), &[0x18], &id].concat());
            }
            Some(head)
        }
        at if at <= PIECES => Some(rows.clone()),
        _ => None,
    };
    let (machine, _) = read(&Pprof, piece, 32 << 20);
    assert_eq!((machine.samples().len() as u32, machine.stacks().len() as u32), (ROWS * PIECES, ROWS + 1));
    assert!(machine.samples().iter().all(|sample| machine.stacks().get(sample.stack).len() == 300));
}
