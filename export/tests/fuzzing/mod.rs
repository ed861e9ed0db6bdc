//! What fuzzing does with an input, one file per target, each a `run(&[u8])` that panics where a promise is broken: no
//! input panics, and memory is in proportion to the input. `fuzz/` wraps each into a libFuzzer binary; here they run over
//! noise, and over the inputs of `seeds/`, with which fuzzing begins.

pub(crate) mod nettrace;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    fn seeds() -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzing/seeds/nettrace");
        folder.read_dir().unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect()
    }

    #[test]
    fn seeds_are_traces() {
        let seeds = seeds();
        assert!(seeds.iter().all(|seed| super::nettrace::run(seed)));
        assert_eq!(seeds.len(), 2);
    }

    proptest! {
        #[test]
        fn spoilt_files(
            which: prop::sample::Index,
            places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let seeds = seeds();
            let mut data = which.get(&seeds).clone();
            for (at, byte) in places {
                let at = at.index(data.len());
                data[at] = byte;
            }
            super::nettrace::run(&data);
        }
    }
}
