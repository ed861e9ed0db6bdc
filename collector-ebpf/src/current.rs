//! What a record says of the current thread: found out before the record is reserved, whose size depends on it.

use core::ffi::c_void;

use collector_common::wire::{Config, Counter, PAGE_SIZE, SampleFlags, SampleHeader, Transfer};

use crate::{
    kernel::{current_task, read_word},
    maps::{config, count, zero},
    record,
    registers::{Place, UserRegisters},
    returns, stack,
};

/// A sample without its stacks.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// The program's, by which the kernel walks its own stack.
    pub(crate) context: *mut c_void,
    pub(crate) time: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) flags: u32,
    pub(crate) registers: UserRegisters,
    /// Where the thread is, or will be as soon as the kernel's own code for probes is done.
    pub(crate) place: Place,
    /// How many calls whose returns are trapped [`returns::find`] has found.
    pub(crate) returns: u64,
    /// Bytes of stack to copy.
    pub(crate) len: u64,
    /// First address after the stack; 0 where it is not known.
    pub(crate) stack_end: u64,
    /// As `SampleHeader::ran`.
    pub(crate) ran: u64,
    /// As `SampleHeader::data`.
    pub(crate) data: [u64; SampleHeader::DATA],
    /// Of `SampleFlags::TRANSFER`, else null.
    pub(crate) transfer: *const Transfer,
}

impl Sample {
    /// The same, of which the verifier forgets how it came about. That of Linux 6.1 takes every value of a program with a
    /// callback for one that matters, and would follow what writes a record once for each combination of them, until it
    /// refuses the program for its length.
    #[inline(always)]
    pub(crate) fn forgotten(&self) -> Self {
        let zero = zero();
        let mut sample = *self;
        sample.flags ^= zero as u32;
        sample.len ^= zero;
        sample.place.sp ^= zero;
        sample.stack_end ^= zero;
        sample.ran ^= zero;
        for word in &mut sample.data {
            *word ^= zero;
        }
        sample
    }

    /// Of the current thread, which is `tid` of `pid`, with as much of its stack as there is room for now; `flags` are those that are
    /// known already.
    #[inline(always)]
    pub(crate) fn of_current<const FIND_VMA: bool>(
        context: *mut c_void,
        time: u64,
        pid: u32,
        tid: u32,
        flags: u32,
    ) -> Self {
        let mut sample = Self::whole::<FIND_VMA>(context, time, pid, tid, flags);
        let most = record::stack_room(sample.place.sp);
        if sample.len > most {
            sample.flags |= SampleFlags::STACK_CUT;
            sample.len = most;
        }
        sample
    }

    /// The same with all of the stack, up to the largest copy: for programs that write fewer records instead where their ring fills, and for
    /// those that keep so much else that their own stack, of 512 bytes, has no room for what a look at the ring needs.
    #[inline(always)]
    pub(crate) fn whole<const FIND_VMA: bool>(
        context: *mut c_void,
        time: u64,
        pid: u32,
        tid: u32,
        flags: u32,
    ) -> Self {
        let task = current_task();
        let registers = UserRegisters::of_current(task);
        let mut sample = Self {
            context,
            time,
            pid,
            tid,
            flags,
            registers,
            place: Place { ip: 0, sp: 0 },
            returns: 0,
            len: 0,
            stack_end: 0,
            ran: 0,
            data: [0; SampleHeader::DATA],
            transfer: core::ptr::null(),
        };
        let mm = read_word(task, config(|c: &Config| &raw const c.task_mm));
        if mm == 0 {
            return sample;
        }
        sample.place = Place { ip: registers.ip(), sp: registers.sp() };
        // Workers of io_uring have user memory and never run user code.
        if sample.place.ip == 0 {
            count(Counter::NoRegisters, 1);
            return sample;
        }
        sample.returns = returns::find(task, mm, registers, &mut sample.place);
        let sp = sample.place.sp;
        sample.flags |= SampleFlags::USER_REGISTERS;
        if registers.is_compat() {
            sample.flags |= SampleFlags::COMPAT;
        }
        let most = u64::from(config(|c: &Config| &raw const c.max_stack_pages)) * PAGE_SIZE as u64;
        sample.len = if let Some(end) = stack::end::<FIND_VMA>(task, mm, tid, sp) {
            sample.stack_end = end.address;
            if end.is_mapping {
                sample.flags |= SampleFlags::MAPPING_END;
            }
            end.address - sp
        } else {
            sample.flags |= SampleFlags::BOUND_UNKNOWN;
            most
        };
        if sample.len > most {
            sample.flags |= SampleFlags::STACK_CUT;
            sample.len = most;
        }
        sample
    }
}
