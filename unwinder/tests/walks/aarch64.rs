//! Stacks of aarch64 programs, with and without signed return addresses.

use unwinder::aarch64::Aarch64;

use super::{assert_all_complete, assert_ends_at_what_was_interrupted, assert_exact_above_signals};
use crate::corpus::{Run, run_on};

const WALKS: [&str; 13] = [
    "recursion",
    "qsort",
    "alloca",
    "realigned",
    "huge_frame",
    "outer_x19",
    "outer_x28",
    "outer_expression",
    "outer_moved",
    "outer_without_record",
    "signal",
    "fault",
    "thread",
];

const SIGNED: &str = "-mbranch-protection=standard";

#[test]
fn c_stacks_are_complete() {
    for flags in [&[][..], &[SIGNED], &["-mbranch-protection=pac-ret+leaf+b-key"], &["-no-pie", "-fno-pie"]] {
        assert_all_complete::<Aarch64>("walks.c", flags, &WALKS);
    }
}

#[test]
fn stacks_of_static_programs_are_complete() {
    for flags in
        [&["-static"][..], &["-static", SIGNED], &["-static-pie"], &["-static", "-Wl,--no-eh-frame-hdr"]]
    {
        assert_all_complete::<Aarch64>("walks.c", flags, &WALKS);
    }
}

#[test]
fn stacks_without_optimisation_are_complete() {
    assert_all_complete::<Aarch64>("walks.c", &["-fno-omit-frame-pointer", "-O0"], &WALKS);
    assert_all_complete::<Aarch64>("walks.c", &["-O0", SIGNED], &WALKS);
}

#[test]
fn cpp_stacks_are_complete() {
    let names = ["virtual", "function", "destructor", "handler"];
    for flags in [&[][..], &[SIGNED], &["-O3", "-flto", SIGNED]] {
        assert_all_complete::<Aarch64>("exceptions.cc", flags, &names);
    }
}

#[test]
fn return_addresses_are_signed_in_the_corpus() {
    let signed = |run: &Run<Aarch64>| {
        let words = run.stack("recursion").bytes.chunks_exact(8);
        let words = words.map(|word| u64::from_le_bytes(*word.first_chunk().unwrap()));
        words
            .filter(|word| {
                word >> 48 != 0 && run.stack("recursion").chain.contains(&(word & 0xffff_ffff_ffff))
            })
            .count()
    };
    let (Some(plain), Some(with_codes)) = (run_on("walks.c", &[]), run_on("walks.c", &[SIGNED])) else {
        return;
    };
    assert_eq!(signed(&plain), 0);
    // A code may be zero by chance.
    assert!(signed(&with_codes) > 30, "the emulated processor signs nothing");
}

#[test]
fn frames_above_a_signal_are_exact() {
    assert_exact_above_signals::<Aarch64>(&[SIGNED], &["signal", "fault"]);
}

#[test]
fn a_handler_on_an_alternate_stack_ends_at_what_it_interrupted() {
    assert_ends_at_what_was_interrupted::<Aarch64>();
}
