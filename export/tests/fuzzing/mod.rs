//! What fuzzing does with an input, one file per target, each a `run(&[u8])` that panics where a promise is broken: no
//! input panics, and memory is in proportion to the input. `fuzz/` wraps each into a libFuzzer binary; here they run over
//! noise, over the inputs of `regressions/`, which once broke a promise, and over those of `seeds/`, with which fuzzing
//! begins.

pub(crate) mod bounded;
pub(crate) mod dwarf;
pub(crate) mod firefox;
pub(crate) mod folded;
pub(crate) mod jfr;
pub(crate) mod jitdump;
pub(crate) mod nettrace;
pub(crate) mod pdb;
pub(crate) mod perf_map;
pub(crate) mod pprof;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;

    fn folder(kind: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzing").join(kind).join("nettrace")
    }

    fn inputs(kind: &str) -> Vec<Vec<u8>> {
        folder(kind).read_dir().unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect()
    }

    /// A trace of one block behind the first one.
    fn with_block(kind: u8, content: &[u8]) -> Vec<u8> {
        let mut data = fs::read(folder("seeds").join("recording")).unwrap();
        let first = usize::from(data[20]) | usize::from(data[21]) << 8;
        data.truncate(24 + first);
        data.extend((content.len() as u32 | u32::from(kind) << 24).to_le_bytes());
        data.extend(content);
        data.extend([0; 4]);
        data
    }

    /// What takes the most memory for each byte: lists of one label, threads and stacks of which only the number is told.
    #[test]
    fn the_densest_tables_are_in_proportion() {
        const COUNT: u32 = 300_000;
        let rows =
            |row: &[u8]| [1_u32.to_le_bytes().to_vec(), COUNT.to_le_bytes().to_vec(), row.repeat(300_000)];
        assert!(super::nettrace::run(&with_block(8, &rows(&[0x87, 0]).concat())));
        assert!(super::nettrace::run(&with_block(5, &rows(&[0; 4]).concat())));
        let threads =
            (0..COUNT).flat_map(|at| [3, 0, at as u8 | 0x80, (at >> 7) as u8 | 0x80, (at >> 14) as u8]);
        assert!(super::nettrace::run(&with_block(6, &threads.collect::<Vec<u8>>())));
    }

    #[test]
    fn seeds_are_traces() {
        let seeds = inputs("seeds");
        assert!(seeds.iter().all(|seed| super::nettrace::run(seed)));
        assert_eq!(seeds.len(), 2);
    }

    #[test]
    fn regressions() {
        let regressions = inputs("regressions");
        assert!(!regressions.is_empty());
        for input in regressions {
            super::nettrace::run(&input);
        }
    }

    proptest! {
        #[test]
        fn spoilt_files(
            which: prop::sample::Index,
            places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let seeds = inputs("seeds");
            let mut data = which.get(&seeds).clone();
            for (at, byte) in places {
                let at = at.index(data.len());
                data[at] = byte;
            }
            super::nettrace::run(&data);
        }

        #[test]
        fn noise(data in proptest::collection::vec(any::<u8>(), 0..400)) {
            super::nettrace::run(&data);
        }

        /// Where a block that is not the first one begins, after its size and kind.
        #[test]
        fn noise_in_a_block(
            noise in proptest::collection::vec(any::<u8>(), 0..400),
            kind in 1_u8..10,
        ) {
            super::nettrace::run(&with_block(kind, &noise));
        }
    }
}
