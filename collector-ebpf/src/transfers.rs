//! Programs at the entry and exit of system calls that transfer data or wait for a connection: all are counted by what they do
//! and to what kind of file, and some are recorded with the stack, and with the path or the address.
//!
//! A call that takes a period or longer is recorded for itself, a shorter one with the chance that its time is of the period.
//! So each record of a shorter one stands for a period, and the sum of all has no bias.

use aya_ebpf::{
    EbpfContext as _,
    btf_maps::{LruHashMap, PerCpuArray},
    helpers::{
        bpf_get_current_pid_tgid,
        generated::{bpf_get_prandom_u32, bpf_get_smp_processor_id, bpf_ktime_get_ns},
    },
    macros::{btf_map, raw_tracepoint},
    programs::RawTracePointContext,
};
use collector_common::wire::{
    Config, Counter, FIRST_TRANSFER_BYTES, FIRST_TRANSFER_NS, FileKind, Operation, Peer, SampleFlags,
    TRANSFER_SIZES, TRANSFER_TIMES, Transfer, TransferCounts, TransferOffsets,
};

use crate::{
    current::Sample,
    files, filter,
    kernel::{read_user, read_word},
    maps::{RINGS, config, count},
    record,
    registers::UserRegisters,
    sockets, tcp,
};

/// Offsets, patched before load.
#[unsafe(no_mangle)]
static TRANSFER_OFFSETS: TransferOffsets = TransferOffsets::NONE;

/// By `operation * FileKind::ALL.len() + kind`. The number of entries is set before load.
#[btf_map]
static TRANSFERS: PerCpuArray<TransferCounts, 1> = PerCpuArray::new();

/// Room to put a record together, before it is known how large it is.
#[btf_map]
static TRANSFER: PerCpuArray<Transfer, 1> = PerCpuArray::new();

/// A call that has not returned.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entered {
    /// When it was made; 0 when it has returned.
    since: u64,
    descriptor: u32,
    reserved: u32,
}

/// By thread. Calls that never return are forgotten for others' sake. The number of entries is set before load.
#[btf_map]
static TRANSFERRING: LruHashMap<u32, Entered, 1> = LruHashMap::new();

/// `MAX_ERRNO` of `include/linux/err.h`.
const MAX_ERRNO: u64 = 4095;

/// What a call is, by its number: 0 where it is none of these, else the [`Operation`] and one, and these bits.
mod call {
    use collector_common::wire::Operation::{self, Accept, Connect, Read, Receive, Send, Sync, Write};

    pub(super) const OPERATION: u8 = 0xf;
    /// Its descriptor is the second argument, not the first one.
    pub(super) const SECOND: u8 = 1 << 4;
    /// It returns how many messages there were, and their lengths lie behind them.
    pub(super) const MESSAGES: u8 = 1 << 5;
    /// Where the address is: the second argument, ...
    pub(super) const AT_SECOND: u8 = 1 << 6;
    /// ... the fifth, ...
    pub(super) const AT_FIFTH: u8 = 2 << 6;
    /// ... or what the second one points to points to it.
    pub(super) const IN_MESSAGE: u8 = 3 << 6;
    pub(super) const ADDRESS: u8 = 3 << 6;

    /// Numbers up to this.
    pub(super) const NUMBERS: usize = 512;

    /// `asm/unistd_64.h`. The same number is another call for 32-bit programs, which are left out.
    #[cfg(bpf_target_arch = "x86_64")]
    const CALLS: &[(usize, Operation, u8)] = &[
        (0, Read, 0),
        (1, Write, 0),
        (17, Read, 0),
        (18, Write, 0),
        (19, Read, 0),
        (20, Write, 0),
        (40, Read, SECOND),
        (42, Connect, AT_SECOND),
        (43, Accept, 0),
        (44, Send, AT_FIFTH),
        (45, Receive, AT_FIFTH),
        (46, Send, IN_MESSAGE),
        (47, Receive, IN_MESSAGE),
        (74, Sync, 0),
        (75, Sync, 0),
        (277, Sync, 0),
        (288, Accept, 0),
        (295, Read, 0),
        (296, Write, 0),
        (299, Receive, MESSAGES | IN_MESSAGE),
        (307, Send, MESSAGES | IN_MESSAGE),
        (326, Read, 0),
        (327, Read, 0),
        (328, Write, 0),
    ];

    /// `asm-generic/unistd.h`.
    #[cfg(bpf_target_arch = "aarch64")]
    const CALLS: &[(usize, Operation, u8)] = &[
        (63, Read, 0),
        (64, Write, 0),
        (65, Read, 0),
        (66, Write, 0),
        (67, Read, 0),
        (68, Write, 0),
        (69, Read, 0),
        (70, Write, 0),
        (71, Read, SECOND),
        (82, Sync, 0),
        (83, Sync, 0),
        (84, Sync, 0),
        (202, Accept, 0),
        (203, Connect, AT_SECOND),
        (206, Send, AT_FIFTH),
        (207, Receive, AT_FIFTH),
        (211, Send, IN_MESSAGE),
        (212, Receive, IN_MESSAGE),
        (242, Accept, 0),
        (243, Receive, MESSAGES | IN_MESSAGE),
        (269, Send, MESSAGES | IN_MESSAGE),
        (285, Read, 0),
        (286, Read, 0),
        (287, Write, 0),
    ];

    static BY_NUMBER: [u8; NUMBERS] = {
        let mut table = [0; NUMBERS];
        let mut index = 0;
        while index < CALLS.len() {
            let (number, operation, bits) = CALLS[index];
            table[number] = (operation as u8 + 1) | bits;
            index += 1;
        }
        table
    };

    #[inline(always)]
    pub(super) fn of(number: u64) -> u8 {
        if number < NUMBERS as u64 { BY_NUMBER[number as usize] } else { 0 }
    }
}

/// A field of a structure of the kernel's at `base`, by its offset.
#[inline(always)]
pub(crate) fn at(base: u64, offset: impl Fn(&TransferOffsets) -> *const u32) -> u64 {
    read_word(base, setting(offset))
}

/// An offset, or a setting.
#[inline(always)]
pub(crate) fn setting(get: impl Fn(&TransferOffsets) -> *const u32) -> u32 {
    // SAFETY: `get` returns a pointer to a field of the static it was given; volatile, because the value is patched before
    // load and must not be folded into the code.
    unsafe { core::ptr::read_volatile(get(&TRANSFER_OFFSETS)) }
}

/// `sys_enter(struct pt_regs *regs, long id)`. Minimum kernel: 5.8.
#[raw_tracepoint(tracepoint = "sys_enter")]
pub(crate) fn transfer_begins(context: RawTracePointContext) -> i32 {
    let call = call::of(context.arg(1));
    if call == 0 {
        return 0;
    }
    let id = bpf_get_current_pid_tgid();
    if !filter::wanted((id >> 32) as u32) {
        return 0;
    }
    let registers = UserRegisters::at(context.arg(0));
    if registers.is_compat() {
        return 0;
    }
    let descriptor = registers.argument(usize::from(call & call::SECOND != 0)) as u32;
    // SAFETY: the helper has no preconditions.
    let entered = Entered { since: unsafe { bpf_ktime_get_ns() }, descriptor, reserved: 0 };
    if let Some(known) = TRANSFERRING.get_ptr_mut(id as u32) {
        // SAFETY: the map gave a valid pointer; nobody but this thread writes to its entry.
        unsafe { *known = entered };
    } else {
        // What finds no room is counted when it returns.
        let _ = TRANSFERRING.insert(id as u32, entered, 0);
    }
    0
}

/// `sys_exit(struct pt_regs *regs, long ret)`. Minimum kernel: 5.17.
#[raw_tracepoint(tracepoint = "sys_exit")]
pub(crate) fn transfer_ends(context: RawTracePointContext) -> i32 {
    let registers = UserRegisters::at(context.arg(0));
    let call = call::of(u64::from(registers.call() as u32));
    if call == 0 {
        return 0;
    }
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    let Some(entered) = TRANSFERRING.get_ptr_mut(tid) else {
        count(Counter::TransfersUnknown, u64::from(filter::wanted(pid) && !registers.is_compat()));
        return 0;
    };
    // SAFETY: the map gave a valid pointer; nobody but this thread writes to its entry.
    let Entered { since, descriptor, .. } = unsafe { *entered };
    if since == 0 {
        return 0;
    }
    // SAFETY: as above.
    unsafe { (*entered).since = 0 };
    let Some(transfer) = TRANSFER.get_ptr_mut(0) else { return 0 };
    let took = now.saturating_sub(since).max(1);
    // SAFETY: the map gave a valid pointer to this CPU's value, which is this program's alone. The tracepoints come with
    // preemption off, and never in an interrupt.
    let transfer = unsafe { &mut *transfer };
    let file = note(transfer, call, descriptor, (took, context.arg(1)), registers);
    if is_asked(transfer) {
        add(transfer);
        if is_told(transfer) {
            let address = if transfer.kind == FileKind::Socket as u32 { address(call, registers) } else { 0 };
            tell(&context, transfer, (file, address), now, (pid, tid));
        }
    }
    0
}

/// A value in memory, of which the verifier is to know nothing: else it would follow each value by itself through all that
/// comes after.
#[inline(always)]
pub(crate) fn forgotten<T: Copy>(value: &T) -> T {
    // SAFETY: a reference is valid for a read.
    unsafe { core::ptr::read_volatile(value) }
}

/// Notes what a call did that has returned. Gives the address of its `struct file`; 0 where there is none.
#[inline(always)]
fn note(
    transfer: &mut Transfer,
    call: u8,
    descriptor: u32,
    (took, returned): (u64, u64),
    registers: UserRegisters,
) -> u64 {
    let operation = u32::from(call & call::OPERATION) - 1;
    let is_accepted = operation == Operation::Accept as u32 && !is_error(returned);
    let descriptor = if is_accepted { returned as u32 } else { descriptor };
    let file = files::of_descriptor(descriptor);
    (transfer.took, transfer.returned, transfer.bytes) = (took, returned as i64, 0);
    (transfer.operation, transfer.kind) = (operation, files::kind(file));
    if is_accepted {
        tcp::accepted(file);
    } else if carries(operation) && !is_error(returned) {
        if call & call::MESSAGES == 0 {
            transfer.bytes = returned;
        } else {
            add_lengths(transfer, registers.argument(1), returned);
        }
    }
    file
}

/// Whether it is of the network: a call on a socket, or one that is of sockets alone.
#[inline(always)]
fn is_of_socket(transfer: &Transfer) -> bool {
    forgotten(&transfer.kind) == FileKind::Socket as u32
        || forgotten(&transfer.operation) >= Operation::Send as u32
}

/// Whether such calls are asked for.
#[inline(always)]
fn is_asked(transfer: &Transfer) -> bool {
    if is_of_socket(transfer) {
        setting(|o| &raw const o.is_of_sockets) != 0
    } else {
        setting(|o| &raw const o.is_of_files) != 0
    }
}

/// Whether it is recorded.
#[inline(always)]
fn is_told(transfer: &Transfer) -> bool {
    let period = config(|c: &Config| &raw const c.off_cpu_period);
    let took = forgotten(&transfer.took);
    if took >= period {
        return true;
    }
    // SAFETY: the helper has no preconditions.
    let random = u64::from(unsafe { bpf_get_prandom_u32() } as u32);
    // A period of more than 4 s is cut to that: then the product is no overflow.
    (random * period.min(u64::from(u32::MAX))) >> 32 < took
}

/// Counts it.
#[inline(always)]
fn add(transfer: &Transfer) {
    let slot = forgotten(&transfer.operation) * FileKind::ALL.len() as u32 + forgotten(&transfer.kind);
    let Some(counts) = TRANSFERS.get_ptr_mut(slot) else { return };
    let (took, bytes) = (forgotten(&transfer.took), forgotten(&transfer.bytes));
    let time = (u64::BITS - (took / FIRST_TRANSFER_NS).leading_zeros()) as usize;
    let size = (u64::BITS - (bytes / FIRST_TRANSFER_BYTES).leading_zeros()) as usize;
    // SAFETY: the map gave a valid pointer to this CPU's value, which nobody else writes to while this runs.
    unsafe {
        let counts = &mut *counts;
        counts.times[time.min(TRANSFER_TIMES - 1)] += 1;
        counts.ns += took;
        counts.longest = counts.longest.max(took);
        if is_error(forgotten(&transfer.returned) as u64) {
            counts.errors += 1;
        } else if carries(forgotten(&transfer.operation)) {
            counts.sizes[size.min(TRANSFER_SIZES - 1)] += 1;
            counts.bytes += bytes;
        }
    }
}

/// Writes a record of it, with the file and the address in the program's memory that the call has.
#[inline(always)]
fn tell(
    context: &RawTracePointContext,
    transfer: &mut Transfer,
    (file, address): (u64, u64),
    now: u64,
    (pid, tid): (u32, u32),
) {
    // What is behind `name_bytes` is not read.
    (transfer.family, transfer.protocol, transfer.local_port) = (0, 0, 0);
    (transfer.inode, transfer.peer) = (0, Peer { address: [0; 2], port: 0, reserved: 0 });
    (transfer.is_cut, transfer.is_nameless, transfer.name_bytes) = (0, 0, 0);
    if forgotten(&transfer.kind) == FileKind::Socket as u32 {
        sockets::tell(transfer, file, address);
    } else if file != 0 {
        files::tell(transfer, file);
    }
    let flags = if is_of_socket(transfer) { SampleFlags::SOCKET } else { 0 } | SampleFlags::TRANSFER;
    let mut sample = Sample::of_current::<true>(context.as_ptr(), now, pid, tid, flags);
    sample.transfer = transfer;
    // SAFETY: the helper has no preconditions.
    let ring = RINGS.get(unsafe { bpf_get_smp_processor_id() } as u32);
    let is_written = ring.is_some_and(|ring| record::emit(ring, &sample));
    count(if is_written { Counter::TransfersRecorded } else { Counter::TransfersLost }, 1);
}

/// Where in the program's memory a call has an address, or 0.
#[inline(always)]
fn address(call: u8, registers: UserRegisters) -> u64 {
    match call & call::ADDRESS {
        call::AT_SECOND => registers.argument(1),
        call::AT_FIFTH => registers.argument(4),
        call::IN_MESSAGE => read_user::<u64>(registers.argument(1)),
        _ => 0,
    }
}

/// Whether calls of that kind carry bytes.
#[inline(always)]
fn carries(operation: u32) -> bool {
    operation < Operation::Connect as u32 && operation != Operation::Sync as u32
}

#[inline(always)]
fn is_error(returned: u64) -> bool {
    returned >= MAX_ERRNO.wrapping_neg()
}

/// Adds the bytes of `count` messages, each a `struct mmsghdr` of `include/linux/socket.h`.
#[inline(always)]
fn add_lengths(transfer: &mut Transfer, messages: u64, count: u64) {
    /// `UIO_MAXIOV` of `include/uapi/linux/uio.h`: the kernel takes no more at a time.
    const MOST: u64 = 1024;
    const SIZE: u64 = 64;
    const LEN: u64 = 56;
    let mut index = 0;
    while index < MOST {
        if index >= count {
            break;
        }
        let len = read_user::<u32>(messages.wrapping_add(index * SIZE + LEN));
        transfer.bytes = forgotten(&transfer.bytes) + u64::from(len);
        index += 1;
    }
}
