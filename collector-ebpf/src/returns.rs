//! Calls of the current thread whose returns the kernel traps, and what of the thread's registers is the kernel's own code for
//! probes and none of the program's (`kernel/events/uprobes.c`).
//!
//! A thread that has never met a probe of a program has no `struct uprobe_task`, so this costs a read of one word there.

use aya_ebpf::{
    btf_maps::PerCpuArray,
    helpers::{bpf_get_current_pid_tgid, generated::bpf_probe_read_kernel},
    macros::btf_map,
};
use collector_common::wire::{Config, ReturnOffsets, TrappedReturn, TrappedReturns};

use crate::{
    kernel::{read_user, read_word},
    maps::config,
    registers::{PROBE_SLOT, Place, RETURN_ADDRESS, UserRegisters, on_stack_behind_call},
};

/// Bytes of `[uprobes]`, the smallest page; the trampoline is in its first slot.
const AREA: u64 = 4096;

/// What the trampoline has on the stack for a moment: three registers (`uretprobe_trampoline_entry` of
/// `arch/x86/kernel/uprobes.c`).
const PUSHED: u64 = 3 * 8;

/// What is found out of a thread before its record is reserved.
#[repr(C)]
struct Found {
    /// Process and thread: on a kernel that preempts programs at probes, another thread's sample may come between.
    whose: u64,
    returns: TrappedReturns,
}

#[btf_map]
static FOUND: PerCpuArray<Found, 1> = PerCpuArray::new();

/// Finds the calls of the current thread whose returns are trapped, for [`copy`], and says how many they are. Where it executes
/// code of the kernel's for a probe, `place` becomes the one where that leads: the probed instruction, which is executed
/// elsewhere, or for a call that is about to return, its caller.
#[inline(always)]
pub(crate) fn find(task: u64, mm: u64, registers: UserRegisters, place: &mut Place) -> u64 {
    let probed = offset(|offsets| &raw const offsets.probed);
    if probed == 0 {
        return 0;
    }
    let probed = read_word(task, probed);
    if probed == 0 {
        return 0;
    }
    let Some(found) = FOUND.get_ptr_mut(0) else { return 0 };
    // SAFETY: the map gave a valid pointer.
    let found = unsafe { &mut *found };
    found.whose = bpf_get_current_pid_tgid();
    find_of_probed(&mut found.returns, probed, mm, registers, place);
    // From memory, so that the verifier does not know the number: else it would follow all of the program for each.
    // SAFETY: the map gave a valid pointer.
    unsafe { (&raw const found.returns.count).read_volatile().into() }
}

/// The same of a thread that has met a probe, with its `struct uprobe_task`.
#[inline(always)]
fn find_of_probed(
    found: &mut TrappedReturns,
    probed: u64,
    mm: u64,
    registers: UserRegisters,
    place: &mut Place,
) {
    let area = read_word(mm, offset(|offsets| &raw const offsets.area));
    found.trampoline = read_word(area, offset(|offsets| &raw const offsets.trampoline));
    let mut instance = read_word(probed, offset(|offsets| &raw const offsets.innermost));
    let is_in = place.ip.wrapping_sub(found.trampoline);
    if is_in < PROBE_SLOT {
        let call = call(instance);
        let above = call.stack + if registers.is_compat() { RETURN_ADDRESS / 2 } else { RETURN_ADDRESS };
        if instance != 0 && above.wrapping_sub(place.sp) <= PUSHED {
            *place = Place { ip: call.address, sp: above };
        } else if let Some(above) = on_stack_behind_call(is_in) {
            let slot = place.sp + above;
            let address = read_user::<u64>(slot);
            // What the function returned lies there until the kernel, which has forgotten the call by then, writes the address.
            if address != registers.returned() {
                *place = Place { ip: address, sp: slot + RETURN_ADDRESS };
            }
        }
    } else if is_in < AREA {
        let executed_at = read_word(probed, offset(|offsets| &raw const offsets.executed_at));
        let executed = place.ip.wrapping_sub(executed_at);
        if executed < PROBE_SLOT {
            let instruction = offset(|offsets| &raw const offsets.instruction);
            place.ip = read_word(probed, instruction).wrapping_add(executed);
        }
    }
    let mut count = 0;
    while count < TrappedReturns::MOST && instance != 0 {
        found.calls[count] = call(instance);
        instance = read_word(instance, offset(|offsets| &raw const offsets.next));
        count += 1;
    }
    found.count = count as u32;
}

/// What is in the place of the return addresses of calls whose returns are trapped, in a process's memory: 0 where none ever was. `None`
/// where the kernel's types do not tell.
#[inline(always)]
pub(crate) fn trampoline(mm: u64) -> Option<u64> {
    let area = offset(|offsets| &raw const offsets.area);
    if area == 0 {
        return None;
    }
    Some(read_word(read_word(mm, area), offset(|offsets| &raw const offsets.trampoline)))
}

/// Copies what was found of the current thread to a record's end. Says whether it did.
///
/// # Safety
/// `to` may be written to.
#[inline(always)]
pub(crate) unsafe fn copy(to: *mut TrappedReturns) -> bool {
    let Some(found) = FOUND.get_ptr(0) else { return false };
    // SAFETY: as the caller promises; the map gave a valid pointer.
    unsafe {
        let is_copied = bpf_probe_read_kernel(
            to.cast(),
            TrappedReturns::SIZE as u32,
            (&raw const (*found).returns).cast(),
        ) == 0;
        is_copied && (*found).whose == bpf_get_current_pid_tgid()
    }
}

/// What a `struct return_instance` tells.
#[inline(always)]
fn call(instance: u64) -> TrappedReturn {
    TrappedReturn {
        stack: read_word(instance, offset(|offsets| &raw const offsets.stack)),
        address: read_word(instance, offset(|offsets| &raw const offsets.address)),
    }
}

#[inline(always)]
fn offset(get: impl Fn(&ReturnOffsets) -> *const u32) -> u32 {
    config(|c: &Config| get(&c.returns))
}
