//! Writes one sample into a ring, in place. A ring hands out records of constant size only, so there is a
//! size class per [`write`] instance, chosen by how much stack there is.

use core::ffi::c_void;

use aya_ebpf::{
    bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP},
    helpers::{
        bpf_get_current_comm,
        generated::{
            bpf_get_current_cgroup_id, bpf_get_smp_processor_id, bpf_get_stack, bpf_probe_read_kernel,
            bpf_probe_read_user, bpf_ringbuf_query, bpf_ringbuf_reserve, bpf_ringbuf_submit,
        },
    },
};
use collector_common::wire::{
    COMM_LEN, Config, Counter, OuterLines, PAGE_SIZE, SampleFlags, SampleHeader, Transfer, TrappedReturns,
    VERSION,
};

use crate::{
    current::Sample,
    maps::{RINGS, Ring, config, count},
    outer_lines, returns, tracepoint,
};

/// Writes the sample into the smallest class that holds its stack. Says whether there was room.
#[inline(always)]
pub(crate) fn emit(ring: &Ring, sample: &Sample) -> bool {
    emit_with::<false>(ring, sample)
}

/// The same with lines of outer frames: of programs whose own stack, of 512 bytes, has room for that.
#[inline(always)]
pub(crate) fn emit_with_lines(ring: &Ring, sample: &Sample) -> bool {
    emit_with::<true>(ring, sample)
}

#[inline(always)]
fn emit_with<const LINES: bool>(ring: &Ring, sample: &Sample) -> bool {
    const PAGE: u64 = PAGE_SIZE as u64;
    let sample = &sample.forgotten();
    let len = sample.len;
    if len == 0 {
        return write::<LINES, 0, 0>(ring, sample);
    }
    // A stack of at most PIECE bytes touches two pages at most.
    if len <= 512 {
        const { assert!(TrappedReturns::SIZE <= 512) };
        return write::<LINES, 512, 2>(ring, sample);
    }
    if len <= 1024 {
        return write::<LINES, 1024, 2>(ring, sample);
    }
    if len <= 2048 {
        return write::<LINES, 2048, 2>(ring, sample);
    }
    // Without a branch: 1 where there are any.
    let has_returns = sample.returns.wrapping_neg() >> 63;
    let returns = has_returns * TrappedReturns::SIZE as u64;
    let behind = returns + if LINES { outer_lines::room(sample) } else { 0 };
    // The largest class has a page more than the largest copy.
    const { assert!(OuterLines::SIZE + TrappedReturns::SIZE <= PAGE_SIZE) };
    let pages = ((sample.place.sp & (PAGE - 1)) + len + behind).div_ceil(PAGE);
    match pages {
        0..=2 => write::<LINES, PAGE_SIZE, 2>(ring, sample),
        3 => write::<LINES, PAGE_SIZE, 3>(ring, sample),
        4 => write::<LINES, PAGE_SIZE, 4>(ring, sample),
        5..=6 => write::<LINES, PAGE_SIZE, 6>(ring, sample),
        7..=8 => write::<LINES, PAGE_SIZE, 8>(ring, sample),
        9..=12 => write::<LINES, PAGE_SIZE, 12>(ring, sample),
        _ => write::<LINES, PAGE_SIZE, 17>(ring, sample),
    }
}

/// Writes the sample into a record with room for `PIECES` pieces of user stack of `PIECE` bytes.
#[inline(always)]
fn write<const LINES: bool, const PIECE: usize, const PIECES: usize>(ring: &Ring, sample: &Sample) -> bool {
    let ring = core::ptr::from_ref(ring).cast_mut().cast::<c_void>();
    let size = (SampleHeader::STACK_OFFSET + PIECE * PIECES) as u64;
    // SAFETY: `ring` is a ring buffer map.
    let header = unsafe { bpf_ringbuf_reserve(ring, size, 0) }.cast::<SampleHeader>();
    if header.is_null() {
        return false;
    }
    let record = header.cast::<u8>();
    let mut kernel_bytes = 0;
    if sample.flags & SampleFlags::IN_KERNEL != 0 {
        // SAFETY: the record has `KERNEL_STACK_SIZE` bytes of room after its header.
        let got = unsafe {
            bpf_get_stack(
                sample.context,
                record.add(SampleHeader::SIZE).cast(),
                SampleHeader::KERNEL_STACK_SIZE as u32,
                // The program itself, and what called it.
                if sample.flags & (SampleFlags::OFF_CPU | SampleFlags::LAST | SampleFlags::BLOCK) != 0
                    || sample.flags & (SampleFlags::KERNEL_LOCK | SampleFlags::LOCK_OWNER) != 0
                {
                    2
                } else {
                    0
                },
            )
        };
        kernel_bytes = if got > 0 { got as u16 } else { 0 };
    }
    if sample.flags & SampleFlags::TRANSFER != 0 {
        const { assert!(size_of::<Transfer>() <= SampleHeader::KERNEL_STACK_SIZE) };
        // SAFETY: the record has `KERNEL_STACK_SIZE` bytes of room after its header; the helper checks the source.
        unsafe {
            let to = record.add(SampleHeader::SIZE).cast();
            bpf_probe_read_kernel(to, size_of::<Transfer>() as u32, sample.transfer.cast());
        }
    }
    // SAFETY: the record is at least `STACK_OFFSET` bytes long and aligned to 8 bytes; every field is
    // written, since a ring hands out memory as an earlier record left it.
    unsafe {
        (*header).version = VERSION;
        (*header).kernel_bytes = kernel_bytes;
        (*header).flags = sample.flags;
        (*header).time = sample.time;
        (*header).pid = sample.pid;
        (*header).tid = sample.tid;
        (*header).cgroup = bpf_get_current_cgroup_id();
        (*header).cpu = bpf_get_smp_processor_id() as u32;
        (*header).stack_bytes = sample.len as u32;
        (*header).reserved = 0;
        (*header).ran = sample.ran;
        (*header).stack_end = sample.stack_end;
        (*header).comm = bpf_get_current_comm().unwrap_or_default();
        let with_data = SampleFlags::OFF_CPU
            | SampleFlags::LAST
            | SampleFlags::CALL
            | SampleFlags::BLOCK
            | SampleFlags::ALLOCATION
            | SampleFlags::MAPPED;
        let with_data = with_data
            | SampleFlags::KERNEL_LOCK
            | SampleFlags::LOCK_OWNER
            | SampleFlags::FUNCTION
            | SampleFlags::FAULT
            | SampleFlags::TRACEPOINT;
        if sample.flags & with_data != 0 {
            (*header).data = sample.data;
        }
        if sample.flags & SampleFlags::TRACEPOINT != 0 {
            tracepoint::copy(&raw mut (*header).data, sample.context);
        }
        if sample.flags & SampleFlags::USER_REGISTERS != 0 {
            sample.registers.copy_to(&raw mut (*header).registers, sample.place);
        }
    }
    // SAFETY: the record has `PIECE * PIECES` bytes of room behind `STACK_OFFSET`.
    let absent = unsafe { copy_stack::<PIECE, PIECES>(record.add(SampleHeader::STACK_OFFSET), sample) };
    if absent != 0 {
        count(Counter::StackFault, u64::from(absent.count_ones()));
    }
    // SAFETY: as above; the class is large enough for a stack and that behind it.
    unsafe {
        (*header).absent = absent;
        if PIECES != 0
            && sample.returns != 0
            && returns::copy(record.add(size as usize - TrappedReturns::SIZE).cast())
        {
            (*header).flags |= SampleFlags::RETURNS;
        }
        if LINES
            && PIECE == PAGE_SIZE
            && outer_lines::copy(
                record.add(size as usize - TrappedReturns::SIZE - OuterLines::SIZE).cast(),
                sample,
            )
        {
            (*header).flags |= SampleFlags::OUTER_LINES;
        }
    }
    count(Counter::BytesCopied, sample.len + u64::from(kernel_bytes));
    // SAFETY: the record was reserved from this ring.
    unsafe { submit(ring, record) };
    true
}

/// A record without stacks.
pub(crate) struct Bare {
    /// Of `SampleFlags::TRACEPOINT` the program's, else null.
    pub(crate) context: *mut c_void,
    pub(crate) flags: u32,
    pub(crate) time: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) comm: [u8; COMM_LEN],
    pub(crate) data: [u64; SampleHeader::DATA],
}

/// Tells that something is over, of which a record with stacks may have been written when it began. Says whether there was
/// room.
#[inline(always)]
pub(crate) fn emit_bare(ring: &Ring, bare: &Bare) -> bool {
    let ring = core::ptr::from_ref(ring).cast_mut().cast::<c_void>();
    // SAFETY: `ring` is a ring buffer map.
    let header = unsafe { bpf_ringbuf_reserve(ring, SampleHeader::SIZE as u64, 0) }.cast::<SampleHeader>();
    if header.is_null() {
        return false;
    }
    // SAFETY: the record is a header, aligned to 8 bytes; without the flags for them nobody reads the registers.
    unsafe {
        (*header).version = VERSION;
        (*header).kernel_bytes = 0;
        (*header).flags = bare.flags;
        (*header).time = bare.time;
        (*header).pid = bare.pid;
        (*header).tid = bare.tid;
        (*header).cgroup = 0;
        (*header).cpu = bpf_get_smp_processor_id() as u32;
        (*header).stack_bytes = 0;
        (*header).absent = 0;
        (*header).reserved = 0;
        (*header).ran = 0;
        (*header).stack_end = 0;
        (*header).comm = bare.comm;
        (*header).data = bare.data;
        if bare.flags & SampleFlags::TRACEPOINT != 0 {
            tracepoint::copy(&raw mut (*header).data, bare.context);
        }
        submit(ring, header.cast());
    }
    true
}

/// Bytes of records that the reader has not taken out of a ring.
#[inline(always)]
pub(crate) fn waiting(ring: &Ring) -> u64 {
    let ring = core::ptr::from_ref(ring).cast_mut().cast::<c_void>();
    // SAFETY: `ring` is a ring buffer map.
    unsafe { bpf_ringbuf_query(ring, u64::from(BPF_RB_AVAIL_DATA)) }
}

/// Bytes of stack, from the stack pointer on, that a record of this CPU may have, for the ring to take a burst of them: the fewer the
/// fuller it is. A reader that comes when it is woken, with a quarter of the ring filled, has all; else it takes the rest from the process.
#[inline(always)]
pub(crate) fn stack_room(sp: u64) -> u64 {
    const PAGE: u64 = PAGE_SIZE as u64;
    // SAFETY: the helper has no preconditions.
    let Some(ring) = RINGS.get(unsafe { bpf_get_smp_processor_id() } as u32) else { return u64::MAX };
    let eighths = 2 * waiting(ring) / config(|c: &Config| &raw const c.high_water).max(1);
    match eighths {
        0..3 => u64::MAX,
        // What fits into two pages, with returns that are trapped.
        3..5 => 2 * PAGE - (sp & (PAGE - 1)) - TrappedReturns::SIZE as u64,
        _ => PAGE / 4,
    }
}

/// Hands a record over.
///
/// # Safety
/// `ring` is a ring buffer map, and `record` was reserved from it.
#[inline(always)]
unsafe fn submit(ring: *mut c_void, record: *mut u8) {
    // SAFETY: as the caller promises.
    unsafe {
        let waiting = bpf_ringbuf_query(ring, u64::from(BPF_RB_AVAIL_DATA));
        let wakeup = if waiting >= config(|c: &Config| &raw const c.high_water) {
            BPF_RB_FORCE_WAKEUP
        } else {
            BPF_RB_NO_WAKEUP
        };
        bpf_ringbuf_submit(record.cast(), u64::from(wakeup));
    }
}

/// The same value, of which the compiler knows nothing.
#[inline(always)]
fn unknown(value: u64) -> u64 {
    // SAFETY: a read of a local value.
    unsafe { core::ptr::read_volatile(&raw const value) }
}

/// Copies the user stack page by page, so that an absent page costs only itself; returns a bit per piece that
/// was absent.
///
/// # Safety
/// `to` has room for `PIECE * PIECES` bytes.
#[inline(always)]
unsafe fn copy_stack<const PIECE: usize, const PIECES: usize>(to: *mut u8, sample: &Sample) -> u32 {
    let mut absent = 0;
    if PIECES == 0 {
        return absent;
    }
    // The compiler knows from the choice of the class how large the last piece can be and would leave out the
    // check that the verifier needs, so it must not know the length.
    let len = unknown(sample.len);
    let sp = sample.place.sp;
    let first = (PAGE_SIZE as u64 - (sp & (PAGE_SIZE as u64 - 1))).min(PIECE as u64);
    macro_rules! pieces {
        ($($piece:literal)*) => {
            $(
                if $piece < PIECES {
                    // The bytes before this piece: a constant plus `first`, which the verifier bounds.
                    let before = if $piece == 0 { 0 } else { first + ($piece as u64 - 1) * PAGE_SIZE as u64 };
                    if before >= len {
                        return absent;
                    }
                    // By a comparison of two values neither of which is constant the verifier learns nothing before
                    // Linux 6.8, so that with `first` is followed by one with a constant.
                    let size = if $piece == 0 { unknown(len.min(first)) } else { len - before };
                    let size = size.min(PIECE as u64);
                    // SAFETY: `before` is at most `$piece * PIECE` and `size` at most `PIECE`; the helper
                    // checks the source.
                    let result = unsafe {
                        bpf_probe_read_user(
                            to.add(before as usize).cast(),
                            size as u32,
                            (sp + before) as *const _,
                        )
                    };
                    // Without a branch: the verifier would follow both sides of every piece.
                    absent |= ((result as u64 >> 63) as u32) << $piece;
                    if sample.flags & SampleFlags::BOUND_UNKNOWN != 0 && absent != 0 {
                        // Where the end is unknown, the first absent page is taken for it.
                        return absent | (!0 << $piece);
                    }
                }
            )*
        };
    }
    pieces!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
    absent
}
