//! What fuzzing does with an input, one file per target, each a `run(&[u8])` that panics where a promise is broken:
//! bounded frames, memory in proportion to the input, answers that do not depend on what was asked before. `fuzz/`
//! wraps each into a libFuzzer binary; here they run over the inputs of `regressions/`, which once broke a promise.

pub(crate) mod debug;
pub(crate) mod elf;
pub(crate) mod image;
pub(crate) mod lookup;
pub(crate) mod pe;
pub(crate) mod walk;

use std::ops::RangeInclusive;

use unwinder::x86_64::{Registers, X86_64};
use unwinder::{AddressSpace, Architecture, DEFAULT_DEPTH_LIMIT, Mapping};

/// What a stack may have, whatever it holds.
const FRAMES: RangeInclusive<usize> = 1..=DEFAULT_DEPTH_LIMIT;

/// Bytes that any use of the crate may hold: the caches of an unwinder.
const FIXED_MEMORY: u64 = 1 << 20;

/// Where stacks begin that a target makes up.
const STACK: u64 = 0x7000_0000;

/// Runs `use_it` and fails if it held more memory than `bound` says of its result.
fn within_memory<T>(use_it: impl FnOnce() -> T, bound: impl FnOnce(&T) -> u64) {
    let mut result = None;
    let used = allocation_counter::measure(|| result = Some(use_it()));
    let most = FIXED_MEMORY + result.as_ref().map_or(0, bound);
    assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
}

/// One mapping over all addresses.
struct Everywhere<'a, A: Architecture = X86_64>(Mapping<'a, A>);

impl<A: Architecture> AddressSpace<A> for Everywhere<'_, A> {
    fn lookup(&self, _address: u64) -> Option<Mapping<'_, A>> {
        Some(self.0)
    }
}

/// Registers that all point into the stack.
fn registers_at(ip: u64) -> Registers {
    let mut gprs = [STACK + 0x100; 16];
    gprs[7] = STACK;
    Registers::new(ip, gprs)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    type Target = (&'static str, fn(&[u8]));

    const TARGETS: [Target; 5] = [
        ("debug", super::debug::run),
        ("elf", super::elf::run),
        ("lookup", super::lookup::run),
        ("pe", super::pe::run),
        ("walk", super::walk::run),
    ];

    #[test]
    fn regressions() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzing/regressions");
        for of_target in folder.read_dir().unwrap() {
            let of_target = of_target.unwrap();
            let name = of_target.file_name();
            let (_, run) = TARGETS.into_iter().find(|(target, _)| **target == *name).unwrap();
            for entry in of_target.path().read_dir().unwrap() {
                let path = entry.unwrap().path();
                // Shown by a failed test alone: it names the input.
                eprintln!("{}", path.display());
                run(&std::fs::read(path).unwrap());
            }
        }
    }

    proptest! {
        #[test]
        fn noise(data in proptest::collection::vec(any::<u8>(), 0..3000)) {
            for (_, run) in TARGETS {
                run(&data);
            }
        }
    }
}
