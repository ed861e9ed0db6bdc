//! What fuzzing does with an input, one file per target, each a `run(&[u8])` that panics where a promise is broken: no
//! input panics, memory is in proportion to the input, the ways to a value agree, what is written can be read. `fuzz/`
//! wraps each into a libFuzzer binary; here they run over noise, over the inputs of `regressions/`, which once broke a
//! promise, and over those of `seeds/`, with which fuzzing begins.

pub(crate) mod event_filter;
pub(crate) mod event_format;
pub(crate) mod perf_data;
pub(crate) mod perf_records;

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

    use collector_common::perf::{ByteOrder, RecordKind};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use crate::{layout, user_layout};

    type Target = (&'static str, fn(&[u8]));

    const TARGETS: [Target; 4] = [
        ("event_filter", super::event_filter::run),
        ("event_format", super::event_format::run),
        ("perf_data", super::perf_data::run),
        ("perf_records", super::perf_records::run),
    ];

    /// The inputs that are kept in a folder with a folder for each target.
    fn run_those_of(folder: &str) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzing").join(folder);
        for of_target in folder.read_dir().unwrap() {
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

    proptest! {
        #[test]
        fn noise(data in vec(any::<u8>(), 0..3000)) {
            for (_, run) in TARGETS {
                run(&data);
            }
        }

        #[test]
        fn any_format_over_any_bytes(
            fields in vec(any::<u8>(), 0..100),
            bytes in prop_oneof![vec(any::<u8>(), 0..200), vec(0..4_u8, 0..200)],
        ) {
            super::event_format::run(&[&fields[..], &bytes].concat());
        }

        #[test]
        fn any_text_is_a_filter_or_an_error(text in ".{0,60}") {
            super::event_filter::run(text.as_bytes());
        }

        #[test]
        fn words_of_filters_in_any_order(words in vec(prop_oneof![
            Just("and"), Just("or"), Just("not"), Just("("), Just(")"), Just("number"), Just("text"), Just("=="),
            Just("&"), Just("1"), Just("-2.5"), Just("'t'"), Just("contains"), Just("~"), Just("<"),
            Just("number == 1"), Just("text ~ 'a*'"),
        ], 0..20)) {
            super::event_filter::run(words.join(" ").as_bytes());
        }

        #[test]
        fn spoilt_records(
            head: [u8; 24],
            kinds in vec(layout::KINDS, 1..4),
            config in layout::configs(),
            noise in layout::noise(),
            spoilt in any::<prop::sample::Index>(),
            byte: u8,
        ) {
            let mut data = head.to_vec();
            data[..4].copy_from_slice(&(config.sample_type.0 as u32).to_le_bytes());
            for kind in kinds {
                let record = layout::record(RecordKind(kind), &config, &noise);
                record.as_raw().write(config.byte_order, &mut data).unwrap();
            }
            let at = spoilt.index(data.len());
            data[at] = byte;
            super::perf_records::run(&data);
        }

        #[test]
        fn spoilt_streams(
            kinds in vec(user_layout::KINDS, 1..6),
            noise in layout::noise(),
            is_big: bool,
            places in vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        ) {
            let order = if is_big { ByteOrder::Big } else { ByteOrder::Little };
            let mut header = [*b"PERFILE2", 16_u64.to_le_bytes()];
            if is_big {
                for word in &mut header {
                    word.reverse();
                }
            }
            let mut data = header.concat();
            for kind in kinds {
                let record = user_layout::record(RecordKind(kind), order, &noise);
                record.as_raw().write(order, &mut data).unwrap();
            }
            for (at, byte) in places {
                let at = at.index(data.len());
                data[at] = byte;
            }
            super::perf_data::run(&data);
        }

        #[test]
        fn spoilt_files(places in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), is_packed: bool) {
            let packed = include_bytes!("seeds/perf_data/packed").as_slice();
            let mut data = if is_packed { packed } else { include_bytes!("seeds/perf_data/bpf") }.to_vec();
            for (at, byte) in places {
                let at = at.index(data.len());
                data[at] = byte;
            }
            super::perf_data::run(&data);
        }
    }
}
