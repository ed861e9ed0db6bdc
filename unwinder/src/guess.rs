//! The caller of a frame without a rule: code of JIT compilers, assembly, files that can't be read.
//!
//! Candidates, in the order in which they are believed:
//!
//! 1. the frame pointer's, where the call before its return address is of this very function;
//! 2. of the words on the stack that are the return address of a call of this very function, the one whose call names the
//!    nearest address: no function begins within another;
//! 3. the frame pointer's, where there is any call before its return address;
//! 4. the nearest word on the stack that is the return address of a call that may be of this function;
//! 5. the nearest that is one of a call of another function, which may have jumped on to this one.
//!
//! Where calls leave the return address in a register, the innermost frame may have its own still there: that is believed
//! as the frame pointer's is, and after it, if both have the same to say for them.
//!
//! A return address is one in executable memory with a call instruction before it. The call is of this function where it
//! names an address shortly before the frame's; it may be where it names none (a register, a word in memory) or the
//! address of a jump (a linkage table's, a JIT compiler's stub). Where the address space has no code to look at, the frame
//! pointer is believed, and then what a function finds when it is called.

use std::cmp::Reverse;

use crate::arch::{Call, Core, LONGEST_CODE};
use crate::region;
use crate::{AddressSpace, Architecture, Frame, FrameKind, StackMemory};

/// How far into a function an address may be for a call of the function to be one of it.
const MAX_FUNCTION: u64 = 16 << 10;

/// Words on the stack that are looked at: frames are hardly larger, and old return addresses lie everywhere.
const SCANNED: u64 = 256;

/// What speaks for a return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    /// There is a call of another function before it, which may have jumped on to the frame's.
    CallOfAnother,
    /// There is a call before it that may be of the frame's function.
    Call,
    /// There is a call of the frame's function before it, which begins this far before the frame's address.
    CallOfThis(Reverse<u64>),
}

/// A frame without a rule and what is known around it.
pub(crate) struct Guess<'a, A: Architecture, S, M> {
    pub(crate) space: &'a S,
    pub(crate) stack: &'a M,
    pub(crate) frame: Frame,
    pub(crate) core: A::Core,
}

impl<A: Architecture, S: AddressSpace<A>, M: StackMemory> Guess<'_, A, S, M> {
    /// The likeliest caller. Code that is not mapped can't have pushed a frame: there the top of the stack comes first, and
    /// a return address into such a place is not worth a guess.
    pub(crate) fn caller(&self, mapped: bool) -> Option<A::Core> {
        let innermost = self.frame.kind == FrameKind::Ip;
        let by_entry = self.core.by_entry(self.stack).filter(|_| innermost);
        let by_frame_pointer = self.core.by_frame_pointer(self.stack).filter(|_| innermost || mapped);
        if !mapped {
            return [by_entry, by_frame_pointer].into_iter().flatten().find(|&core| self.is_plausible(core));
        }
        let by_frame_pointer = by_frame_pointer.filter(|&core| self.is_plausible(core));
        if !self.has_code() {
            return by_frame_pointer.or(by_entry.filter(|&core| self.is_plausible(core)));
        }
        // The end of a chain need not be called: Go's runtime puts an address in `goexit` there, others a zero.
        let evidence = |core: A::Core| {
            self.evidence(core.ip()).or((core.frame_pointer() == 0).then_some(Evidence::Call))
        };
        let pointed = by_frame_pointer.and_then(|core| Some((evidence(core)?, core)));
        let held = by_entry.filter(|_| A::RETURNS_BY_REGISTER);
        let held = held.and_then(|core| Some((self.evidence(core.ip())?, core)));
        let held = held.filter(|(evidence, _)| *evidence != Evidence::CallOfAnother);
        let known = match (pointed, held) {
            (Some(pointed), Some(held)) if held.0 > pointed.0 => Some(held),
            _ => pointed.or(held),
        };
        match known {
            Some((Evidence::CallOfThis(_), core)) => Some(core),
            _ => match (self.scan(), known) {
                (Some((Evidence::CallOfThis(_), core)), _)
                | (_, Some((_, core)))
                | (Some((_, core)), None) => Some(core),
                (None, None) => None,
            },
        }
    }

    /// A return address is executable; a chain of frame pointers ends in two zeros.
    fn is_plausible(&self, caller: A::Core) -> bool {
        (caller.ip() == 0 && caller.frame_pointer() == 0) || self.is_executable(caller.ip().wrapping_sub(1))
    }

    fn is_executable(&self, address: u64) -> bool {
        region::find(self.space, address).region.is_mapped()
    }

    fn has_code(&self) -> bool {
        self.space.code(self.frame.lookup_address(), &mut [0]) == 1
    }

    fn evidence(&self, return_address: u64) -> Option<Evidence> {
        if !self.is_executable(return_address.checked_sub(1)?) {
            return None;
        }
        let mut buffer = [0; LONGEST_CODE];
        match A::call_at_end(code_before(self.space, return_address, &mut buffer)?)? {
            Call::Direct(distance) => {
                let target = return_address.wrapping_add_signed(distance.into());
                let into = self.frame.address.wrapping_sub(target);
                if into < MAX_FUNCTION {
                    return Some(Evidence::CallOfThis(Reverse(into)));
                }
                let code = code(self.space, target, buffer.get_mut(..A::LONGEST_STUB)?);
                let jumps = code.is_none_or(A::is_stub);
                Some(if jumps { Evidence::Call } else { Evidence::CallOfAnother })
            }
            Call::Indirect => Some(Evidence::Call),
        }
    }

    /// The likeliest return address on the stack.
    fn scan(&self) -> Option<(Evidence, A::Core)> {
        let mut best: Option<(Evidence, A::Core)> = None;
        for word in 0..SCANNED {
            let slot = self.core.sp().checked_add(word * 8)?;
            let Ok(address) = self.stack.read_u64(slot) else { break };
            let Some(evidence) = self.evidence(address) else { continue };
            if best.is_none_or(|(known, _)| evidence > known) {
                best = Some((evidence, self.core.by_slot(slot, address, self.stack)?));
            }
        }
        best
    }
}

/// The code before an address that may be a call.
pub(crate) fn code_before<'b, A: Architecture>(
    space: &impl AddressSpace<A>,
    address: u64,
    buffer: &'b mut [u8; LONGEST_CODE],
) -> Option<&'b [u8]> {
    let start = address.checked_sub(A::LONGEST_CALL as u64)?;
    code(space, start, buffer.get_mut(..A::LONGEST_CALL)?)
}

/// All of `buffer`, filled with the code at `address`.
pub(crate) fn code<'b, A: Architecture>(
    space: &impl AddressSpace<A>,
    address: u64,
    buffer: &'b mut [u8],
) -> Option<&'b [u8]> {
    (space.code(address, buffer) >= buffer.len()).then_some(buffer)
}
