//! Memory that the kernel gives to processes: where its structures have what is asked of them.

use bytemuck::{Pod, Zeroable};

/// Offsets into kernel structures that the programs of memory that the kernel gives need, from the kernel's BTF.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct GrowthOffsets {
    /// Of `mm_struct::brk`, where the heap ends.
    pub heap_end: u32,
    /// Of `vm_area_struct::vm_file`.
    pub mapping_file: u32,
    /// Of `vm_area_struct::vm_flags`.
    pub mapping_flags: u32,
}

impl GrowthOffsets {
    /// Before user space has set them.
    pub const NONE: Self = Self { heap_end: 0, mapping_file: 0, mapping_flags: 0 };
}
