//! All targets over what is kept of inputs, over these with bytes and ends spoilt, and over noise.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::{
    ahead, demangle, dwarf, firefox, folded, jfr, jitdump, kallsyms, nettrace, otlp_response, pdb, perf_map,
    pprof,
};

/// What is tried.
struct Target {
    /// Its name, and that of its folders.
    name: &'static str,
    /// What it does. Out: whether that gave what a seed gives.
    run: fn(&[u8]) -> bool,
    /// What noise begins with, to come beyond the first look at it.
    begin: &'static [u8],
    /// Seeds that there are.
    seeds: usize,
    /// Inputs that once broke a promise.
    regressions: usize,
}

const TARGETS: [Target; 13] = [
    Target {
        name: "ahead",
        run: |input| ahead::run(input) > 50,
        begin: b"FFFFFFFF 00 11111111111111111111111111111111\nFFFFFFFE 00 1\n",
        seeds: 1,
        regressions: 0,
    },
    Target {
        name: "demangle",
        run: |input| demangle::run(input) > 12,
        begin: b"_Z1fIX",
        seeds: 2,
        regressions: 0,
    },
    Target {
        name: "dwarf",
        run: |input| dwarf::run(input) > 10,
        begin: b"\x7fELF\x02\x01\x01",
        seeds: 3,
        regressions: 0,
    },
    Target { name: "firefox", run: firefox::run, begin: b"{\"meta\":{", seeds: 5, regressions: 0 },
    Target { name: "folded", run: folded::run, begin: b"main;", seeds: 2, regressions: 0 },
    Target {
        name: "jfr",
        run: |input| jfr::run(input).is_some_and(|events| events >= 2),
        begin: b"FLR\0\0\x02\0\0",
        seeds: 3,
        regressions: 0,
    },
    // Two that are loaded, one of them at a second place.
    Target {
        name: "jitdump",
        run: |input| jitdump::run(input) == 3,
        begin: include_bytes!("seeds/jitdump/little").split_at(40).0,
        seeds: 2,
        regressions: 0,
    },
    Target {
        name: "kallsyms",
        run: |input| kallsyms::run(input) > 200,
        begin: b"ffffffff81000000 T _text\nffffffff81000020 t ",
        seeds: 2,
        regressions: 0,
    },
    Target {
        name: "nettrace",
        run: nettrace::run,
        begin: b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0",
        seeds: 2,
        regressions: 1,
    },
    Target {
        name: "otlp_response",
        run: otlp_response::run,
        begin: b"\x12\x02no\x1a\x22\x0a\x15/google.rpc.RetryInfo\x12\x09",
        seeds: 2,
        regressions: 0,
    },
    Target {
        name: "pdb",
        run: |input| pdb::run(input) > 20,
        begin: b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0",
        seeds: 1,
        regressions: 0,
    },
    Target {
        name: "perf_map",
        run: |input| perf_map::run(input) > 10,
        begin: b"0 10 ",
        seeds: 2,
        regressions: 0,
    },
    Target { name: "pprof", run: pprof::run, begin: &[0x0a, 4, 8, 1, 16, 2], seeds: 2, regressions: 0 },
];

fn inputs(kind: &str, target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzing").join(kind).join(target);
    let Ok(folder) = folder.read_dir() else { return Vec::new() };
    folder.map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect()
}

#[test]
fn seeds_are_read() {
    for target in TARGETS {
        let seeds = inputs("seeds", target.name);
        assert_eq!(seeds.len(), target.seeds, "{}", target.name);
        assert!(seeds.iter().all(|seed| (target.run)(seed)), "{}", target.name);
    }
}

/// None of them is missed: a folder that is not found has none.
#[test]
fn regressions() {
    for target in TARGETS {
        let inputs = inputs("regressions", target.name);
        assert_eq!(inputs.len(), target.regressions, "{}", target.name);
        for input in inputs {
            (target.run)(&input);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128 * TARGETS.len() as u32))]

    #[test]
    fn spoilt_files(
        target in 0..TARGETS.len(),
        which: prop::sample::Index,
        places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        end: prop::sample::Index,
    ) {
        let Target { name, run, .. } = TARGETS[target];
        let mut data = which.get(&inputs("seeds", name)).clone();
        for (at, byte) in places {
            let at = at.index(data.len());
            data[at] = byte;
        }
        run(&data);
        run(&data[..end.index(data.len())]);
    }

    #[test]
    fn noise(target in 0..TARGETS.len(), data in proptest::collection::vec(any::<u8>(), 0..400)) {
        let Target { run, begin, .. } = TARGETS[target];
        run(&data);
        run(&[begin, &data].concat());
    }
}
