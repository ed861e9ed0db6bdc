//! Page faults: as many as the kernel counts for the program itself, with its stacks, by either backend.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use collector_common::loss::LossCause;
use collector_user::session::{Backend, Recording, SessionSettings};

use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::scenarios::{in_function, record, settings};

const BACKENDS: [Backend; 2] = [Backend::Auto, Backend::Perf];

fn record_by(backend: Backend, command: &[OsString]) -> Recording {
    record(SessionSettings { backend, ..settings(&["page_faults"]) }, command)
}

/// How many of a kind happened in a function, as far as they are in the recording.
fn faults_in(recording: &Recording, kind: &str, function: &str) -> u64 {
    in_function(recording, kind, function).0 as u64
}

#[test]
fn minor_faults_are_where_memory_is_touched_first() {
    let Some(_live) = live("minor_faults_are_where_memory_is_touched_first") else { return };
    let folder = folder();
    let touches: PathBuf = compile(folder.path(), "touches", "touches.c", &[]);
    for backend in BACKENDS {
        let recording = record_by(backend, &[touches.clone().into()]);
        let faults = faults_in(&recording, "minor-faults", "touch_pages");
        // They come faster than the ring may be emptied; and there may be those of the loop's own code and stack.
        let lost = recording.ledger.lost(LossCause::RingFull);
        assert!(faults > 500 && faults < 2010 && faults + lost >= 2000, "{faults}: {:?}", recording.ledger);
        assert_eq!(faults_in(&recording, "major-faults", "touch_pages"), 0);
    }
}

#[test]
fn major_faults_are_those_that_the_kernel_counts_for_the_program() {
    let Some(_live) = live("major_faults_are_those_that_the_kernel_counts_for_the_program") else { return };
    let folder = folder();
    let mapped = compile(folder.path(), "mapped", "mapped.c", &[]);
    let (file, told) = (folder.path().join("pages"), folder.path().join("told"));
    fs::write(&file, vec![1; 200 * 4096]).unwrap();
    for backend in BACKENDS {
        let recording = record_by(backend, &[&mapped, &file, &told].map(|path| path.clone().into()));
        let text = fs::read_to_string(&told).unwrap();
        let numbers: Vec<u64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let [major, minor, sum] = numbers[..] else { panic!("{text}") };
        assert_eq!(sum, 200);
        assert!(major >= 100, "the pages were in memory: {text}");
        let found = ["major-faults", "minor-faults"].map(|kind| faults_in(&recording, kind, "read_pages"));
        let lost = recording.ledger.lost(LossCause::RingFull);
        // The kernel's figures have those of `getrusage` itself.
        assert!(found[0] <= major && found[0] + lost >= major, "{found:?}: {text} {:?}", recording.ledger);
        assert!(
            found[1] <= minor && found[1] + lost + 2 >= minor,
            "{found:?}: {text} {:?}",
            recording.ledger
        );
    }
}
