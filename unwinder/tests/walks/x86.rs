//! Stacks of 32-bit x86 programs.

use std::collections::BTreeMap;

use unwinder::x86::X86;
use unwinder::{Frame, StopReason, Unwinder};

use super::{
    assert_all_complete, assert_ends_at_what_was_interrupted, assert_exact_above_signals, located, walk,
};
use crate::corpus::run_on;

const WALKS: [&str; 14] = [
    "recursion",
    "qsort",
    "alloca",
    "realigned",
    "huge_frame",
    "outer_ebx",
    "outer_esi",
    "outer_expression",
    "outer_moved",
    "plain_restorer",
    "plain_rt_restorer",
    "signal",
    "fault",
    "thread",
];

#[test]
fn c_stacks_are_complete() {
    for flags in
        [&[][..], &["-no-pie", "-fno-pie"], &["-fcf-protection"], &["-O0", "-fno-omit-frame-pointer"]]
    {
        assert_all_complete::<X86>("walks.c", flags, &WALKS);
    }
}

#[test]
fn stacks_of_static_programs_are_complete() {
    for flags in [&["-static"][..], &["-static-pie"], &["-static", "-Wl,--no-eh-frame-hdr"]] {
        assert_all_complete::<X86>("walks.c", flags, &WALKS);
    }
}

#[test]
fn cpp_stacks_are_complete() {
    let names = ["virtual", "function", "destructor", "handler"];
    for flags in [&[][..], &["-O3", "-flto"]] {
        assert_all_complete::<X86>("exceptions.cc", flags, &names);
    }
}

#[test]
fn frames_above_a_signal_are_exact() {
    assert_exact_above_signals::<X86>(&[], &["signal", "fault", "plain_restorer", "plain_rt_restorer"]);
}

#[test]
fn a_context_ends_where_it_begins() {
    let Some(run) = run_on::<X86>("walks.c", &[]) else { return };
    let stack = run.stack("context");
    let (frames, stop) = walk(&mut Unwinder::new(), &run, stack);
    let addresses: Vec<u64> = frames.iter().map(|frame| frame.address).collect();
    // glibc's `__start_context` has no rule on x86, and lies behind the return of `makecontext`; what `backtrace()` has beyond is by
    // a frame pointer that is another stack's.
    assert_eq!(addresses, stack.chain[..3]);
    assert_eq!(stop, StopReason::Root);
}

#[test]
fn a_handler_on_an_alternate_stack_ends_at_what_it_interrupted() {
    assert_ends_at_what_was_interrupted::<X86>();
}

#[test]
fn every_instruction_of_lazy_binding_prologues_epilogues_and_vdso() {
    for flags in [&["-Wl,-z,lazy"][..], &["-Wl,-z,lazy", "-no-pie", "-fno-pie"], &["-O0", "-Wl,-z,lazy"]] {
        let Some(run) = run_on::<X86>("steps.c", flags) else { return };
        assert!(run.stacks.len() > 1000, "{}", run.stacks.len());
        let mut unwinder = Unwinder::new();
        let walks: Vec<_> = run.stacks.iter().map(|stack| walk(&mut unwinder, &run, stack)).collect();
        let is_exact = |frames: &[Frame]| frames.iter().all(|frame| !frame.heuristic);
        let mut modules = BTreeMap::new();
        for (step, (stack, (frames, stop))) in run.stacks.iter().zip(&walks).enumerate() {
            let addresses: Vec<u64> = frames.iter().map(|frame| frame.address).collect();
            let place = located(&run, &addresses);
            let mut chain = stack.chain.clone();
            if !is_exact(frames) {
                // libgcc finds no callers of code without rules: the C code of the vDSO, and the start files' copy of the
                // function that tells position-independent code its address. The step at which their caller goes on does.
                let later = run.stacks.iter().zip(&walks).skip(step);
                let mut returned =
                    later.filter(|(later, (frames, _))| later.base > stack.base && is_exact(frames));
                let behind = &returned.next().unwrap().0.chain;
                let within = addresses.len().saturating_sub(behind.len());
                assert!((1..=3).contains(&within), "step {step}: {place:?}");
                chain = [&addresses[..within], behind].concat();
            }
            let expected = located(&run, &chain);
            assert_eq!((place.as_slice(), *stop), (expected.as_slice(), StopReason::Root), "step {step}");
            let module = place[0].split('+').next().unwrap().to_owned();
            *modules.entry((module, is_exact(frames))).or_insert(0) += 1;
        }
        eprintln!("steps by module, and whether by rules alone: {modules:?}");
        let has = |name: &str| modules.keys().any(|(module, _)| module.contains(name));
        assert!(["program", "libc.so", "ld-linux", "[vdso]"].into_iter().all(has), "{modules:?}");
    }
}
