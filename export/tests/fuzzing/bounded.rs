//! Reads an input as one of the formats of other tools, and counts the memory that it takes.

use std::io::{self, Cursor, Read as _};
use std::time::{Duration, Instant};

use collector_common::record::FrameId;
use export::import::{ImportFormat, Imported};
use flate2::bufread::MultiGzDecoder;

/// What gzip's files begin with. What is compressed may be any number of times as large, up to the limit of its reader.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// As far as the bytes of what is compressed are counted: what is larger may hold no more than what has so many.
const MOST: u64 = 256 << 20;

/// What has no bytes takes no longer, instrumented or not, and so much more what has a byte.
const MOST_TIME: Duration = Duration::from_secs(5);
const PER_BYTE: Duration = Duration::from_micros(4);

/// How many bytes there are to read.
fn plain_len(input: &[u8]) -> u64 {
    if !input.starts_with(&GZIP) {
        return input.len() as u64;
    }
    let mut counted = Counted(0);
    // What comes before an error was read, too.
    let _ = io::copy(&mut MultiGzDecoder::new(input).take(MOST), &mut counted);
    input.len() as u64 + counted.0
}

/// How much was written.
struct Counted(u64);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads all of the input. Out: whether it is of the format.
pub(crate) fn run(format: &dyn ImportFormat, input: &[u8], fixed_memory: u64, per_byte: u64) -> bool {
    let plain_len = plain_len(input);
    let most = fixed_memory + plain_len * per_byte;
    let longest = MOST_TIME + PER_BYTE * u32::try_from(plain_len).unwrap_or(u32::MAX);
    let mut is_read = false;
    let start = Instant::now();
    let used = allocation_counter::measure(|| {
        let Ok(Imported { machine, symbols, .. }) = format.import(&mut Cursor::new(input)) else { return };
        for sample in machine.samples().iter() {
            assert!(usize::from(sample.kind.0) < machine.kinds().len());
            machine.process(machine.thread(sample.thread).process);
            assert!(machine.stacks().get(sample.stack).len() <= 1 << 24);
        }
        for id in (0..machine.frames().len() as u32).map(FrameId) {
            let functions: Vec<_> = symbols.functions(id).collect();
            let inlined = functions.iter().filter(|function| function.is_inlined).count();
            assert_eq!(inlined + 1, functions.len(), "one is not inlined");
        }
        is_read = true;
    });
    assert!(start.elapsed() < longest, "{:?}, of which {longest:?} are the bound", start.elapsed());
    assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
    is_read
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::panic::catch_unwind;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::run;
    use crate::fuzzing::{firefox, folded, pprof};

    /// A profile of one sample type and strings, 100 KB that are 300 bytes compressed.
    #[test]
    fn what_is_compressed_is_measured() {
        let plain = [&[0x32, 0, 0x0a, 0][..], &[0x32, 0].repeat(50_000)].concat();
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&plain).unwrap();
        let packed = packed.finish().unwrap();
        assert!(packed.len() < 1_000 && super::plain_len(&packed) == (plain.len() + packed.len()) as u64);
        assert!(pprof::run(&packed));
        let none = catch_unwind(|| run(&export::import::pprof::Pprof, &packed, 0, 0));
        assert!(none.is_err(), "it took no memory");
    }

    /// What takes the most memory for each byte.
    #[test]
    fn the_densest_tables_are_in_proportion() {
        const COUNT: usize = 100_000;
        let [firefox, folded, pprof] = [firefox::run, folded::run, pprof::run];
        let meta = r#"{"meta":{"preprocessedProfileVersion":55,"interval":1,"startTime":0},"threads":"#;
        let list = |element: &str| vec![element; COUNT].join(",");
        assert!(!firefox(format!("{meta}[{}]}}", list("{}")).as_bytes()), "too many threads");
        for (table, element) in [("markers\":{\"data", "{}"), ("samples\":{\"time", "0")] {
            let text = format!("{meta}[{{\"{table}\":[{}]}}}}]}}", list(element));
            assert!(!firefox(text.as_bytes()), "a thread without strings");
        }
        let lines = (0..COUNT).map(|at| format!("{at:x} 2\n"));
        assert!(folded(lines.collect::<String>().as_bytes()));
        let lines = (0..COUNT).map(|at| format!("a;{at:x}_[k] 1\n"));
        assert!(folded(lines.collect::<String>().as_bytes()));
        // An empty string and a sample type, and then locations of which nothing is told, or samples.
        let profile = |rest: Vec<u8>| [&[0x32, 0, 0x0a, 0][..], &rest].concat();
        let locations = (0..COUNT).flat_map(|at| {
            let id = [at as u8 | 0x80, (at >> 7) as u8 | 0x80, (at >> 14) as u8];
            [0x22, 8, 0x08, id[0], id[1], id[2], 0x18, id[0], id[1], id[2]]
        });
        assert!(pprof(&profile(locations.collect())));
        assert!(pprof(&profile([0x12, 3, 0x12, 1, 1].repeat(COUNT))));
        let types = [0x0a, 0].repeat(63);
        let row = [&[0x12, 66, 0x12, 64][..], &[1; 64]].concat();
        assert!(pprof(&profile([types, row.repeat(COUNT / 50)].concat())));
    }
}
