//! A call of one of many functions of the kernel, or its return.

use bytemuck::{Pod, Zeroable};

use super::SampleHeader;

/// Data of records of [`super::SampleFlags::FUNCTION`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct FunctionCall {
    /// Address of the function.
    pub function: u64,
    /// Of a call the arguments that registers hold, six on `x86_64` and eight on aarch64; of a return what is returned.
    pub values: [u64; 8],
    /// Which of the session's events it is: what the program is attached with, its cookie.
    pub event: u32,
    /// The thread.
    pub tid: u32,
}

impl FunctionCall {
    /// A record's data, as this.
    pub fn within(data: &mut [u64; SampleHeader::DATA]) -> &mut Self {
        bytemuck::cast_mut(data)
    }
}

const _: () = {
    assert!(size_of::<FunctionCall>() == SampleHeader::DATA * 8);
    assert!(core::mem::offset_of!(FunctionCall, values) == 8);
    assert!(core::mem::offset_of!(FunctionCall, event) == 72);
    assert!(core::mem::offset_of!(FunctionCall, tid) == 76);
};
