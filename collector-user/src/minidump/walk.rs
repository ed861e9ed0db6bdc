//! A thread's registers, the memory and the images of a dump in, the frames of its stack out.

use std::num::NonZeroU64;

use unwinder::aarch64::{self, Aarch64, ReturnAddressMask};
use unwinder::x86::{self, X86};
use unwinder::{AddressSpace, Frame, FrameKind, Mapping, Registers, StopReason, Unwinder, x86_64};

use super::context::Context;
use super::images::Images;
use super::memory::Memory;
use crate::modules::Recorded;

/// The process that was dumped.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) images: &'a Images,
    pub(super) memory: &'a Memory<'a>,
}

impl<A: Recorded> AddressSpace<A> for View<'_> {
    fn lookup(&self, address: u64) -> Option<Mapping<'_, A>> {
        let lying = self.images.at(address)?;
        let code = self.images.code_around(lying, address, self.memory)?;
        let table = self.images.table(lying, self.memory).and_then(A::of);
        Some(Mapping { start: code.start, end: code.end, bias: lying.base, table })
    }

    /// It never changes.
    fn generation(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(1)
    }

    fn code(&self, address: u64, buffer: &mut [u8]) -> usize {
        match self.memory.read(address, buffer) {
            0 => self
                .images
                .at(address)
                .map_or(0, |lying| self.images.code(lying, address, buffer, self.memory)),
            read => read,
        }
    }
}

/// Walks stacks, whichever of the architectures they are of.
#[derive(Debug, Default)]
pub(super) struct Walker {
    x86: Unwinder<X86>,
    x64: Unwinder,
    arm64: Unwinder<Aarch64>,
}

impl Walker {
    /// Adds the frames of a stack, innermost first; says why there is no further one.
    pub(super) fn walk(&mut self, view: View<'_>, context: &Context, frames: &mut Vec<Frame>) -> StopReason {
        match *context {
            Context::X86 { ip, general } => {
                let pointer = u64::from(general[4]);
                walk(&mut self.x86, &x86::Registers::new(ip, general), view, pointer, frames)
            }
            Context::X64 { ip, general } => {
                let pointer = general[7];
                walk(&mut self.x64, &x86_64::Registers::new(ip, general), view, pointer, frames)
            }
            Context::Arm64 { ip, sp, general } => {
                // Return addresses may be signed.
                let highest = view.images.end().saturating_sub(1).max(ip);
                let mask = ReturnAddressMask::of_highest_address(highest);
                let registers = aarch64::Registers::new(ip, sp, general, mask);
                walk(&mut self.arm64, &registers, view, sp, frames)
            }
        }
    }
}

fn walk<A: Recorded>(
    unwinder: &mut Unwinder<A>,
    registers: &Registers<A>,
    view: View<'_>,
    stack_pointer: u64,
    frames: &mut Vec<Frame>,
) -> StopReason {
    unwinder.unwind(&view, registers, &view.memory.stack(stack_pointer), |frame| frames.push(frame))
}

/// Of a thread whose stack is not walked: where it is.
pub(super) fn innermost(context: &Context) -> Frame {
    Frame { address: context.ip(), kind: FrameKind::Ip, heuristic: false }
}
