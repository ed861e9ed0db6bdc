//! Lines of a large stack beyond its copy, in which user space has found the outer frames of the thread's earlier samples: they are
//! as they were at the sample, where memory that is read later need not be.

use aya_ebpf::helpers::generated::bpf_probe_read_user;
use collector_common::wire::{OuterLines, OuterPlaces, SampleFlags, TrappedReturns};

use crate::{
    current::Sample,
    maps::{OUTER_PLACES, zero},
};

/// Bytes of a record that the lines of a sample need, with the room behind them: 0 where there are none.
#[inline(always)]
pub(crate) fn room(sample: &Sample) -> u64 {
    let room = if places(sample).is_some() { (OuterLines::SIZE + TrappedReturns::SIZE) as u64 } else { 0 };
    room ^ zero()
}

/// Where the outer frames of the current thread lie.
#[inline(always)]
fn places(sample: &Sample) -> Option<*const OuterPlaces> {
    if sample.flags & SampleFlags::STACK_CUT == 0 {
        return None;
    }
    let places = OUTER_PLACES.get_ptr(sample.tid)?;
    // SAFETY: the map gave a valid pointer; an element that is replaced meanwhile has one thread's places or another's.
    let (stack_end, pid) = unsafe { ((*places).stack_end, (*places).pid) };
    (stack_end == sample.stack_end && pid == sample.pid).then_some(places)
}

/// Copies the lines. Says whether there are any.
///
/// # Safety
/// `to` may be written to.
#[inline(always)]
pub(crate) unsafe fn copy(to: *mut OuterLines, sample: &Sample) -> bool {
    let Some(places) = places(sample) else { return false };
    // SAFETY: as the caller promises; the map gave a valid pointer, and the helper checks the source.
    unsafe {
        (*to).lines = (*places).lines;
        for line in 0..OuterLines::MOST {
            // Where it is needed: all of them at once have no room on the program's own stack.
            let address = (&raw const (*to).lines[line]).read_volatile();
            let bytes = (&raw mut (*to).bytes[line]).cast();
            let result = bpf_probe_read_user(bytes, OuterLines::LINE as u32, address as *const _);
            // Without a branch: the verifier would follow both sides of every line.
            (&raw mut (*to).lines[line]).write_volatile(address & !((result as u64 >> 63).wrapping_neg()));
        }
    }
    true
}
