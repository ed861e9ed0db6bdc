//! Memory that is asked for in vain is no memory, whatever is recorded, and asking for it does what it does without a recording.

use collector_common::record::ExportMachine;
use collector_user::session::Recording;

use crate::native_memory::{ALLOCATORS, counted_of, every, installed, preloaded, record_told};
use crate::prerequisites::{kernel_is_since, live, not_on_this_kernel};
use crate::programs::{compile, folder};
use crate::scenarios::in_function;

const ROUNDS: u32 = 20;

/// With nothing recorded, by the default, and with all recorded.
const DISTANCES: [u64; 3] = [1 << 40, 512 << 10, 1];

/// Functions of `failing` that get nothing, and the one that keeps what it has.
const IN_VAIN: [&str; 3] = ["too_much", "overflows", "misaligned"];

fn live_sum(recording: &Recording) -> i64 {
    let machine: &ExportMachine = &recording.machine;
    let of = |kind: u16| machine.string(machine.kinds()[usize::from(kind)].name);
    machine.samples().iter().filter(|sample| of(sample.kind.0) == "inuse_space").map(|it| it.value).sum()
}

#[test]
fn what_is_asked_for_in_vain_is_not_counted() {
    let Some(_live) = live("what_is_asked_for_in_vain_is_not_counted") else { return };
    let folder = folder();
    let program = compile(folder.path(), "failing", "failing.c", &["-fno-builtin"]);
    for distance in DISTANCES {
        let (recording, told) = record_told(&program, &[], ROUNDS, every(&["memory"], distance));
        let [blocks, bytes, freed, kept, failed] = told[..] else { panic!("{told:?}") };
        // Nine calls of each round that no allocator can grant, and three of `realloc` and `reallocarray`.
        assert!(failed >= u64::from(ROUNDS) * (9 + 3), "{failed}");
        assert_eq!(counted_of(&recording, "failing"), [blocks, bytes, freed], "every {distance} bytes");
        let sum = |kind, function| in_function(&recording, kind, function).0 as u64;
        for function in IN_VAIN {
            assert_eq!(sum("alloc_objects", function), 0, "{function}, every {distance} bytes");
        }
        if distance == 1 {
            assert_eq!(recording.ledger.total_lost(), 0);
            let of_all = ["alloc_objects", "alloc_space"].map(|kind| sum(kind, "main"));
            assert_eq!(of_all, [blocks, bytes]);
            assert_eq!(
                sum("inuse_space", "grows_in_vain"),
                kept,
                "what could not be made larger is still there"
            );
            assert_eq!(live_sum(&recording) as u64, kept);
        }
    }
}

#[test]
fn what_other_allocators_refuse_is_not_counted() {
    let test = "what_other_allocators_refuse_is_not_counted";
    let Some(_live) = live(test) else { return };
    let folder = folder();
    let program = compile(folder.path(), "failing", "failing.c", &["-fno-builtin"]);
    for name in ALLOCATORS {
        let Some(library) = installed(test, name) else { return };
        let (_running, start) = preloaded(&library);
        for distance in [1 << 40, 1] {
            let (recording, told) = record_told(&program, &start, ROUNDS, every(&["memory"], distance));
            let [blocks, bytes, freed, kept, _] = told[..] else { panic!("{told:?}") };
            let sum = |kind, function| in_function(&recording, kind, function).0 as u64;
            if distance == 1 {
                let of_main = ["alloc_objects", "alloc_space", "inuse_space"].map(|kind| sum(kind, "main"));
                assert_eq!(of_main, [blocks, bytes, kept], "{name}");
            }
            // What the library does for itself as it begins is no call of the program's.
            let counted = counted_of(&recording, "failing");
            let more: Vec<u64> =
                counted.iter().zip([blocks, bytes, freed]).map(|(all, own)| all - own).collect();
            assert!(
                more[0] <= 8 && more[1] <= 100_000 && more[2] <= 8,
                "{name}, {distance}: {counted:?} of {told:?}"
            );
        }
    }
}

/// An exception finds no rules for a trapped return, and would end the program. Without C++, mimalloc ends it itself.
#[test]
fn a_program_goes_on_that_catches_what_operators_throw() {
    let test = "a_program_goes_on_that_catches_what_operators_throw";
    let Some(_live) = live(test) else { return };
    if !kernel_is_since(6, 13) {
        return not_on_this_kernel(test, "it is older than 6.13, and traps all returns");
    }
    let folder = folder();
    let program = compile(folder.path(), "throws", "throws.cpp", &["-std=c++17"]);
    for name in ALLOCATORS.into_iter().filter(|name| !name.contains("mimalloc")) {
        let Some(library) = installed(test, name) else { return };
        let (_running, start) = preloaded(&library);
        let limited = [&start[..], &["LIMITED=1".into()]].concat();
        // What is recorded is trapped: there the process is not limited, so that what it gets nothing for is more than the machine has.
        for (distance, start) in [(1, &start[..]), (1 << 40, &limited)] {
            let (recording, told) = record_told(&program, start, ROUNDS, every(&["memory"], distance));
            let [blocks, bytes, freed, caught] = told[..] else { panic!("{name}: {told:?}") };
            let of_limit = u64::from(distance != 1);
            let rounds = u64::from(ROUNDS);
            assert_eq!([blocks, freed, caught], [rounds, rounds, rounds + of_limit], "{name}");
            if distance == 1 {
                // What is thrown is allocated, too, elsewhere.
                let of_deep = ["alloc_objects", "alloc_space", "inuse_space"]
                    .map(|kind| in_function(&recording, kind, "deep").0 as u64);
                assert_eq!(of_deep, [blocks, bytes, 0], "{name}");
            }
        }
    }
}
