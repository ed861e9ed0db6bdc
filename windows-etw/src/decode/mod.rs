//! Payloads of kernel events. Classic kernel events are told apart by the GUID of their class and an opcode;
//! their payloads are little-endian without padding, pointers as wide as the traced machine's.

mod sampled_profile;

pub use sampled_profile::{PointerSize, SampledProfile, TooShort};
