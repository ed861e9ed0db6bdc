//! What fuzzing does with an input, one file per target, each a `run(&[u8])` that panics where a promise is broken: no
//! input panics, and memory is in proportion to the input. `fuzz/` wraps each into a libFuzzer binary; here they run over
//! noise, over the inputs of `regressions/`, which once broke a promise, and over those of `seeds/`, with which fuzzing
//! begins.

pub(crate) mod etl_records;
#[cfg(target_os = "linux")]
pub(crate) mod journal;
pub(crate) mod minidump;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use super::etl_records::run;
    #[cfg(target_os = "linux")]
    use super::journal;
    use super::minidump;
    use crate::made;
    use crate::written::{Buffer, System, Trace, perf_info};

    type Target = (&'static str, fn(&[u8]) -> Option<usize>);

    const TARGETS: &[Target] = &[
        ("etl_records", run),
        #[cfg(target_os = "linux")]
        ("journal", journal::run),
        ("minidump", minidump::run),
    ];

    /// Runs the inputs that are kept in a folder with a folder for each target. Out: how many there are.
    fn run_those_of(folder: &Path) -> usize {
        let mut count = 0;
        for of_target in folder.read_dir().into_iter().flatten() {
            let of_target = of_target.unwrap();
            let name = of_target.file_name();
            if name == "journal" && cfg!(not(target_os = "linux")) {
                continue;
            }
            let (_, run) = TARGETS.iter().find(|(target, _)| **target == *name).unwrap();
            for entry in of_target.path().read_dir().unwrap() {
                let path = entry.unwrap().path();
                // Shown by a failed test alone: it names the input.
                eprintln!("{}", path.display());
                run(&fs::read(path).unwrap());
                count += 1;
            }
        }
        count
    }

    #[test]
    fn regressions() {
        run_those_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzing/regressions"));
    }

    #[test]
    fn all_inputs_that_are_kept_are_run() {
        let folder = tempfile::tempdir().unwrap();
        let of_target = folder.path().join("etl_records");
        fs::create_dir(&of_target).unwrap();
        for (name, input) in [("one", &b"no trace"[..]), ("other", &file(false))] {
            fs::write(of_target.join(name), input).unwrap();
        }
        assert_eq!(run_those_of(folder.path()), 2);
    }

    /// Groups and types of the kernel's hooks.
    const THREAD_START: (u8, u8) = (5, 1);
    const SAMPLE: (u8, u8) = (15, 46);
    const STACK: (u8, u8) = (24, 32);

    fn payload(longs: &[u64], words: &[u32]) -> Vec<u8> {
        let longs = longs.iter().flat_map(|long| long.to_le_bytes());
        longs.chain(words.iter().flat_map(|word| word.to_le_bytes())).collect()
    }

    /// A thread of process 5, and a sample of it with a stack, twice.
    fn records() -> Vec<Vec<u8>> {
        let (group, opcode) = THREAD_START;
        let thread = [payload(&[], &[5, 6]), payload(&[0; 7], &[0]), vec![8, 5, 2, 0, 0, 0]].concat();
        let mut records =
            vec![System { version: 3, kind: 4, group, opcode, ..System::default() }.bytes(2000, &thread)];
        for at in [2001, 2003] {
            records.push(perf_info(17, 2, SAMPLE, at, &payload(&[0x40_1000], &[6, 1])));
            let stack = [payload(&[at as u64], &[5, 6]), payload(&[0x40_1000, 0x40_2000], &[])].concat();
            records.push(perf_info(17, 2, STACK, at + 1, &stack));
        }
        records
    }

    fn file(is_packed: bool) -> Vec<u8> {
        let buffer = Buffer::default();
        Trace::default().file(&[if is_packed { buffer.packed(&records()) } else { buffer.bytes(&records()) }])
    }

    /// Fuzzing begins with these. They are written anew where one is missing.
    #[test]
    fn seeds_are_as_they_are_made() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzing/seeds/etl_records");
        for (name, is_packed) in [("plain", false), ("packed", true)] {
            let path = folder.join(name);
            if !path.exists() {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&path, file(is_packed)).unwrap();
            }
            let seed = fs::read(path).unwrap();
            assert_eq!(seed, file(is_packed));
            assert_eq!(run(&seed), Some(2));
        }
    }

    /// The same of dumps.
    #[test]
    fn seeds_of_dumps_are_as_they_are_made() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzing/seeds/minidump");
        let dumps = [
            ("x64", made::x64().dump(false)),
            ("x64_memory", made::x64().dump(true)),
            ("arm64", made::arm64().dump(true)),
        ];
        for (name, dump) in dumps {
            let (path, dump) = (folder.join(name), dump.finish());
            if !path.exists() {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&path, &dump).unwrap();
            }
            let seed = fs::read(path).unwrap();
            assert_eq!(seed, dump);
            assert_eq!(minidump::run(&seed), Some(2));
        }
    }

    /// Those of `tests/journal`, unpacked.
    #[cfg(target_os = "linux")]
    #[test]
    fn seeds_of_journals_are_whole() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzing/seeds/journal");
        let seeds = folder.read_dir().unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
        let samples: Vec<_> = seeds.map(|seed| journal::run(&seed)).collect();
        assert!(samples.len() == 3 && !samples.contains(&None), "{samples:?}");
    }

    proptest! {
        #[test]
        fn noise(data in proptest::collection::vec(any::<u8>(), 0..3000)) {
            run(&data);
            #[cfg(target_os = "linux")]
            journal::run(&data);
            minidump::run(&data);
        }

        #[test]
        fn spoilt_dumps(
            places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            has_all_memory: bool,
        ) {
            let mut data = made::x64().dump(has_all_memory).finish();
            for (at, byte) in places {
                let at = at.index(data.len());
                data[at] = byte;
            }
            minidump::run(&data);
        }

        #[test]
        fn spoilt_files(
            places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            end: prop::sample::Index,
            is_packed: bool,
        ) {
            let mut data = file(is_packed);
            for (at, byte) in places {
                let at = at.index(data.len());
                data[at] = byte;
            }
            run(&data);
            run(&data[..end.index(data.len())]);
        }
    }
}
