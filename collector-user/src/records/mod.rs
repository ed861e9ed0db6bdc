//! Records as every source hands them over, and how samples of perf events become such: what recordings that are being made share with
//! those that were made earlier, on any system.

pub(crate) mod decode;
pub(crate) mod machine_registers;
pub(crate) mod outer;
mod record;

pub use record::{EventIndex, RELEASED, SourceRecord};
