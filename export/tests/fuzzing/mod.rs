//! What fuzzing does with an input, one file per target, each a `run(&[u8])` that panics where a promise is broken: no
//! input panics, and memory and time are in proportion to the input. `fuzz/` wraps each into a libFuzzer binary; here they run over
//! noise, over the inputs of `regressions/`, which once broke a promise, and over those of `seeds/`, with which fuzzing
//! begins.

pub(crate) mod ahead;
pub(crate) mod bounded;
pub(crate) mod demangle;
pub(crate) mod dwarf;
pub(crate) mod firefox;
pub(crate) mod folded;
pub(crate) mod jfr;
pub(crate) mod jitdump;
pub(crate) mod kallsyms;
pub(crate) mod nettrace;
pub(crate) mod otlp_response;
pub(crate) mod pdb;
pub(crate) mod perf_map;
pub(crate) mod pprof;
#[cfg(test)]
mod targets;
