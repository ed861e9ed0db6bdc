//! Stacks of 32-bit programs, which the kernel runs beside 64-bit ones.

use std::process::Command;

use crate::chains::Program;
use crate::languages::{recursion, sorted, threads};
use crate::prerequisites::{live, live_with, skip};
use crate::programs::{COMPAT_COMPILER, compile, compile_compat, folder};
use crate::recording::{Stack, record};

/// Records a program that is built from `source`, if there are both who compiles and who runs it.
fn check(test: &str, program: &Program, source: &str, options: &[&str]) {
    let Some(_live) = live_with(test, &[COMPAT_COMPILER]) else { return };
    let folder = folder();
    let file = compile_compat(folder.path(), program.comm, source, options);
    if let Err(error) = Command::new(&file).status() {
        return skip(test, &format!("this kernel runs no 32-bit programs: {error}"));
    }
    program.check(&record(folder.path(), ["--".as_ref(), file.as_os_str()]));
}

#[test]
fn recursion_of_32_bits() {
    check("recursion_of_32_bits", &recursion("recursion-32"), "recursion.c", &[]);
}

#[test]
fn recursion_of_32_bits_at_a_fixed_place() {
    let options = ["-no-pie", "-fno-pie"];
    check("recursion_of_32_bits_at_a_fixed_place", &recursion("rec-fixed-32"), "recursion.c", &options);
}

#[test]
fn callback_of_qsort_of_32_bits() {
    check("callback_of_qsort_of_32_bits", &sorted("sorted-32"), "sorted.c", &[]);
}

#[test]
fn threads_of_32_bits() {
    check("threads_of_32_bits", &threads("threads-32"), "threads.c", &["-pthread"]);
}

/// Its rules are of another architecture than its registers: the stack is cut or guessed, and counted.
#[test]
fn code_of_32_bits_in_a_64_bit_process() {
    let Some(_live) = live("code_of_32_bits_in_a_64_bit_process") else { return };
    let folder = folder();
    let options = ["-static", "-no-pie", "-fno-pie", "-mno-red-zone"];
    let file = compile(folder.path(), "gate", "gate.c", &options);
    match Command::new(&file).status() {
        Ok(status) if status.success() => {}
        other => {
            let reason = format!("this kernel runs no 32-bit code: {other:?}");
            return skip("code_of_32_bits_in_a_64_bit_process", &reason);
        }
    }
    let recorded = record(folder.path(), ["--".as_ref(), file.as_os_str()]);
    let in_gate = recorded.stacks.iter().filter(|stack| stack.user_frames().last() == Some("gate"));
    let (whole, cut): (Vec<_>, Vec<_>) = in_gate.partition(|stack| !stack.is_cut());
    let sum = |stacks: &[&Stack]| stacks.iter().map(|stack| stack.count).sum::<u64>();
    assert!(sum(&cut) > 500 && sum(&whole) < sum(&cut) / 10, "{whole:#?} {cut:#?}");
}
