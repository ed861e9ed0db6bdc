//! What fuzzing does with an input, one file per target, each a `run(&[u8])` that panics where a promise is broken: no
//! input panics, memory is bounded, the ways to a value agree. `fuzz/` wraps each into a libFuzzer binary; here they run
//! over noise, over the inputs of `regressions/`, which once broke a promise, and over those of `seeds/`, with which fuzzing
//! begins.

pub(crate) mod etl;
pub(crate) mod etw_decode;

/// Runs `use_it` and fails if it ever held more than `most` bytes.
fn within_memory<T>(most: u64, use_it: impl FnOnce() -> T) -> T {
    let mut result = None;
    let used = allocation_counter::measure(|| result = Some(use_it()));
    assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
    result.expect("it was run")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::collection::vec;
    use proptest::prelude::{Just, any, prop};
    use proptest::{prop_oneof, proptest};

    use crate::written::{Buffer, System, Trace, classic, event, item, message, perf_info};

    type Target = (&'static str, fn(&[u8]));

    const TARGETS: [Target; 2] = [("etl", super::etl::run), ("etw_decode", super::etw_decode::run)];

    /// The inputs that are kept in a folder with a folder for each target.
    fn run_those_of(folder: &str) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzing").join(folder);
        for of_target in folder.read_dir().into_iter().flatten() {
            let of_target = of_target.unwrap();
            let name = of_target.file_name();
            let (_, run) = TARGETS.into_iter().find(|(target, _)| **target == *name).unwrap();
            for entry in of_target.path().read_dir().unwrap() {
                let path = entry.unwrap().path();
                // Shown by a failed test alone: it names the input.
                eprintln!("{}", path.display());
                run(&fs::read(path).unwrap());
            }
        }
    }

    #[test]
    fn regressions() {
        run_those_of("regressions");
    }

    #[test]
    fn seeds() {
        run_those_of("seeds");
    }

    /// A record of each kind.
    fn records(first: i64) -> Vec<Vec<u8>> {
        let extended = [item(6, true, &[7; 24]), item(0xb, false, b"schema")].concat();
        let perf = perf_info(17, 0x8102, (15, 46), first + 1, b"pebs....counter1payload");
        vec![
            System { kind: 4, group: 5, ..System::default() }.bytes(first, b"payload"),
            perf,
            event(19, 1, first + 2, &extended, b"payload"),
            classic(20, first + 3, b"payload"),
            classic(21, first + 4, &[5; 30]),
            message(0x2b, &[1; 40]),
            vec![16, 0, 13, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ]
    }

    /// A file with both kinds of buffers.
    fn file(is_packed: bool) -> Vec<u8> {
        let (plain, packed) = (Buffer { cpu: 1, ..Buffer::default() }, Buffer::default());
        let second = if is_packed { packed.packed(&records(2100)) } else { packed.bytes(&records(2003)) };
        Trace::default().file(&[plain.bytes(&records(2000)), second, plain.bytes(&[])])
    }

    /// Fuzzing begins with these. They are written anew where one is missing.
    #[test]
    fn seeds_are_as_they_are_made() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzing/seeds/etl");
        for (name, is_packed) in [("plain", false), ("packed", true)] {
            let path = folder.join(name);
            if !path.exists() {
                fs::write(&path, file(is_packed)).unwrap();
            }
            assert_eq!(fs::read(path).unwrap(), file(is_packed));
        }
    }

    /// Events as the target reads them, of every kind that there is.
    fn events(noise: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for what in 0..=255_u8 {
            for upper in [0, 0x80] {
                let at = usize::from(what) * 7 % noise.len();
                let payload = &noise[at..];
                bytes.extend([what, upper | noise[at] & 0x7f, payload.len().min(255) as u8]);
                bytes.extend(&payload[..payload.len().min(255)]);
            }
        }
        bytes
    }

    #[test]
    fn the_seed_of_events_is_as_it_is_made() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzing/seeds/etw_decode/every");
        let made = events(b"\x10\0Event\0number\0\x08text\0\x02C\0:\0\\\0\0\0");
        if !path.exists() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &made).unwrap();
        }
        assert_eq!(fs::read(path).unwrap(), made);
    }

    proptest! {
        #[test]
        fn noise(data in vec(any::<u8>(), 0..3000)) {
            for (_, run) in TARGETS {
                run(&data);
            }
        }

        #[test]
        fn events_of_noise(noise in vec(prop_oneof![any::<u8>(), Just(0)], 1..400)) {
            super::etw_decode::run(&events(&noise));
        }

        #[test]
        fn spoilt_files(
            places in vec((any::<prop::sample::Index>(), prop_oneof![any::<u8>(), Just(0), Just(255)]), 1..8),
            is_packed: bool,
        ) {
            let mut data = file(is_packed);
            for (at, byte) in places {
                let at = at.index(data.len());
                data[at] = byte;
            }
            super::etl::run(&data);
        }

        #[test]
        fn any_records(noise in vec(vec(any::<u8>(), 1..100), 0..10), upper in prop_oneof![Just(0xc0), Just(0x90)]) {
            let records: Vec<_> = noise
                .into_iter()
                .map(|mut record| {
                    record.resize(record.len().max(8), 0);
                    let size = (record.len() as u16).to_le_bytes();
                    // A marker of a kind that there is, and the size where it has it.
                    (record[2], record[3]) = (record[2] % 24, upper);
                    let at = if matches!(record[2], 1..=4 | 16 | 17) && upper == 0xc0 { 4 } else { 0 };
                    record[at..at + 2].copy_from_slice(&size);
                    record
                })
                .collect();
            let buffer = Buffer { size: 4096, ..Buffer::default() };
            super::etl::run(&Trace::default().file(&[buffer.bytes(&records)]));
            super::etl::run(&Trace::default().file(&[buffer.packed(&records)]));
        }
    }
}
