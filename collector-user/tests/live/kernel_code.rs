//! Code that the kernel held for a part of the recording only.

use std::fs;

use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::recording::record;

#[test]
fn bpf_programs_that_are_gone_when_names_are_looked_up() {
    let Some(_live) = live("bpf_programs_that_are_gone_when_names_are_looked_up") else { return };
    let folder = folder();
    let loader = compile(folder.path(), "kernel-code", "kernel_code.c", &[]);
    let recorded = record(folder.path(), ["--".as_ref(), loader.as_os_str()]);
    assert!(recorded.stderr.contains("the command exited with status 0"), "{}", recorded.stderr);
    let listed = fs::read_to_string("/proc/kallsyms").unwrap();
    for name in ["_burn_first", "_burn_second"] {
        assert!(!listed.contains(name), "{name} is gone");
        let is_it =
            |frame: &String| frame.starts_with("bpf_prog_") && frame.ends_with(&format!("{name}_[k]"));
        let seen = recorded.stacks.iter().filter(|stack| stack.frames.iter().any(is_it));
        let samples: u64 = seen.map(|stack| stack.count).sum();
        assert!(samples > 1000, "{name}: {samples} samples\n{}", recorded.stderr);
    }
}
