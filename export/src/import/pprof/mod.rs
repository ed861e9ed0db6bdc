//! A profile in pprof's format in, whoever wrote it; a machine out.
//!
//! The bytes may be hostile: each size is limited, each reference is checked, and what comes out is at most a small multiple of what
//! went in. The message is read several times, a field after the other, since what is referred to may stand behind what refers to it.
//!
//! - `wire`: the bytes taken apart. `tables`: strings, functions, mappings and locations, which become frames.
//! - `kinds`: what each column of values becomes. `labels`: the thread of a sample, and its attributes.
//! - `read`: the whole.
//!
//! The format has no times of samples: all are at the beginning. Addresses are those that it has, in modules that are mapped where it
//! says, as though they were linked for that place.

mod kinds;
mod labels;
mod read;
mod tables;
mod wire;

pub use read::Pprof;
