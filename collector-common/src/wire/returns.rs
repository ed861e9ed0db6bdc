//! Calls of a thread whose returns the kernel traps: where a return probe is (`uretprobe`, a uprobe session), it puts its own
//! address into the place of the return address, and keeps that (`struct return_instance` of `include/linux/uprobes.h`).

use bytemuck::{Pod, Zeroable};

/// The end of a record with [`super::SampleFlags::RETURNS`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct TrappedReturns {
    /// What the thread has for a return address in each of them: where `[uprobes]` begins.
    pub trampoline: u64,
    /// How many of `calls` there are.
    pub count: u32,
    /// Zero.
    pub reserved: u32,
    /// Innermost first; those after `count` are not written.
    pub calls: [TrappedReturn; MOST_CALLS],
}

/// One call whose return is trapped.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct TrappedReturn {
    /// The stack pointer at the function's first instruction. On `x86_64` the return address lies there; on aarch64 it is in a
    /// register then, and what the function saves of that lies below.
    pub stack: u64,
    /// Where the function returns to.
    pub address: u64,
}

/// As many as make half a KiB of it.
const MOST_CALLS: usize = 31;

impl TrappedReturns {
    /// Calls that are told of at most.
    pub const MOST: usize = MOST_CALLS;
    /// Bytes at a record's end.
    pub const SIZE: usize = size_of::<Self>();

    /// What lay at an address of an `x86_64` stack, where `value` lies now, before returns were trapped.
    #[inline]
    pub fn original(&self, address: u64, value: u64) -> u64 {
        if value != self.trampoline {
            return value;
        }
        // A call that ended by `longjmp` stays until another one is trapped: its place may be another's by now.
        let mut calls = self.calls.iter().take(self.count as usize);
        calls.find(|call| call.stack == address).map_or(value, |call| call.address)
    }
}

const _: () = assert!(TrappedReturns::SIZE == 512);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trapped_addresses_alone_are_replaced() {
        let mut returns = TrappedReturns { trampoline: 0x7000, count: 2, ..TrappedReturns::zeroed() };
        returns.calls[0] = TrappedReturn { stack: 0x100, address: 0x4001 };
        returns.calls[1] = TrappedReturn { stack: 0x200, address: 0x4002 };
        returns.calls[2] = TrappedReturn { stack: 0x300, address: 0x4003 };
        assert_eq!(returns.original(0x100, 0x7000), 0x4001);
        assert_eq!(returns.original(0x200, 0x7000), 0x4002);
        assert_eq!(returns.original(0x200, 0x5000), 0x5000, "another call's frame by now");
        assert_eq!(returns.original(0x208, 0x7000), 0x7000, "a copy of it");
        assert_eq!(returns.original(0x300, 0x7000), 0x7000, "not written");
        returns.count = u32::MAX;
        assert_eq!(returns.original(0x300, 0x7000), 0x4003);
        assert_eq!(returns.original(0x308, 0x7000), 0x7000);
    }
}
