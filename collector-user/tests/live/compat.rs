//! Stacks of 32-bit programs, which the kernel runs beside 64-bit ones.

use std::process::Command;

use crate::chains::Program;
use crate::languages::{recursion, sorted, threads};
use crate::prerequisites::{live_with, skip};
use crate::programs::{COMPAT_COMPILER, compile_compat, folder};
use crate::recording::record;

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
