//! Executable memory without unwind information: what is guessed, that it is marked, and where guessing ends.

use std::num::NonZeroU64;
use std::sync::Arc;

use unwinder::x86_64::Registers;
use unwinder::{AddressSpace, CopiedStack, Frame, FrameKind, Mapping, StopReason, UnwindTable, Unwinder};

use crate::corpus;

mod aarch64;
mod memory;
mod x86;

const CODE: u64 = 0x10_0000;
const STACK: u64 = 0x7000_0000;

/// 64 KiB of executable memory at [`CODE`], of which nothing is known.
struct Jit;

impl AddressSpace for Jit {
    fn lookup(&self, address: u64) -> Option<Mapping<'_>> {
        let (start, end) = (CODE, CODE + 0x1_0000);
        (start..end).contains(&address).then_some(Mapping { start, end, bias: 0, table: None })
    }
}

fn walk(ip: u64, sp: u64, bp: u64, words: &[u64]) -> (Vec<Frame>, StopReason) {
    let mut gprs = [0xdead; 16];
    (gprs[7], gprs[6]) = (sp, bp);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let stack = CopiedStack::new(STACK, &bytes, 0);
    let mut frames = Vec::new();
    let stop = Unwinder::new().unwind(&Jit, &Registers::new(ip, gprs), &stack, |frame| frames.push(frame));
    (frames, stop)
}

fn exact(address: u64) -> Frame {
    Frame { address, kind: FrameKind::Ip, heuristic: false }
}

fn guessed(address: u64) -> Frame {
    Frame { address, kind: FrameKind::ReturnAddress, heuristic: true }
}

#[test]
fn frame_pointers_are_followed_to_their_zeros() {
    let words = [7, 7, STACK + 40, CODE + 0x20, 7, 0, 0];
    let (frames, stop) = walk(CODE + 0x10, STACK, STACK + 16, &words);
    assert_eq!(frames, [exact(CODE + 0x10), guessed(CODE + 0x20)]);
    assert_eq!(stop, StopReason::Root);
}

#[test]
fn a_frame_pointer_must_be_plausible() {
    let return_address = CODE + 0x20;
    // Not aligned; below the stack pointer; beyond the stack; the return address is not executable.
    let cases = [
        (STACK + 9, [7, 0, return_address, 0]),
        (STACK - 8, [7, return_address, 0, 0]),
        (STACK + 64, [7, 0, return_address, 0]),
        (STACK + 8, [7, 0, 0x1234, 0]),
    ];
    for (bp, words) in cases {
        assert_eq!(walk(CODE + 0x10, STACK, bp, &words), (vec![exact(CODE + 0x10)], StopReason::NoRule));
    }
}

#[test]
fn frame_pointers_can_not_loop() {
    let words = [7, STACK + 8, CODE + 0x20, 7];
    let (frames, stop) = walk(CODE + 0x10, STACK, STACK + 8, &words);
    assert_eq!(frames, [exact(CODE + 0x10), guessed(CODE + 0x20)]);
    assert_eq!(stop, StopReason::NoRule);
}

#[test]
fn the_caller_of_a_bad_call_is_on_top_of_the_stack() {
    // A call through a null pointer, from code with a frame pointer: the caller is not skipped.
    let words = [CODE + 0x30, 7, 0, 0];
    let (frames, stop) = walk(0, STACK, STACK + 16, &words);
    assert_eq!(frames, [exact(0), guessed(CODE + 0x30)]);
    assert_eq!(stop, StopReason::Root);
    assert_eq!(walk(0, STACK, 0, &[7, 7]), (vec![exact(0)], StopReason::NoMapping));
}

#[test]
fn a_return_address_in_no_mapping_ends_the_walk() {
    let (frames, stop) = walk(CODE + 0x10, STACK, 0xdead, &[CODE + 0x30, STACK + 16, CODE + 0x40]);
    assert_eq!((frames.len(), stop), (2, StopReason::NoRule));
}

/// As [`Jit`], with code: a call of [`CODE`] ends at each address in `of_this`, another call at each in `others`.
struct Coded<'a> {
    of_this: &'a [u64],
    others: &'a [u64],
}

impl AddressSpace for Coded<'_> {
    fn lookup(&self, address: u64) -> Option<Mapping<'_>> {
        Jit.lookup(address)
    }

    fn code(&self, address: u64, buffer: &mut [u8]) -> usize {
        let end = address + buffer.len() as u64;
        buffer.fill(0x90);
        if let Some(call) = buffer.len().checked_sub(5).and_then(|start| buffer.get_mut(start..)) {
            if self.of_this.contains(&end) {
                call[0] = 0xe8;
                call[1..].copy_from_slice(&(CODE.wrapping_sub(end) as u32).to_le_bytes());
            } else if self.others.contains(&end) {
                // call *%rax
                call[3..].copy_from_slice(&[0xff, 0xd0]);
            }
        }
        buffer.len()
    }
}

fn walk_coded(space: &Coded<'_>, sp: u64, bp: u64, words: &[u64]) -> (Vec<u64>, StopReason) {
    let mut gprs = [0xdead; 16];
    (gprs[7], gprs[6]) = (sp, bp);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let (stack, registers) = (CopiedStack::new(STACK, &bytes, 0), Registers::new(CODE + 0x10, gprs));
    let mut frames = Vec::new();
    let stop = Unwinder::new().unwind(space, &registers, &stack, |frame| frames.push(frame));
    assert!(frames.iter().skip(1).all(|frame| *frame == guessed(frame.address)));
    (frames.iter().map(|frame| frame.address).collect(), stop)
}

#[test]
fn without_a_frame_pointer_the_nearest_call_of_this_function_is_the_caller() {
    let [stale, caller, outer] = [CODE + 0x100, CODE + 0x200, CODE + 0x300];
    let space = Coded { of_this: &[caller, outer], others: &[stale] };
    // An address of code that no call ends at, an old return address, and the caller with what it pushed below.
    let words = [CODE + 0x20, stale, 7, STACK + 56, caller, 7, 7, 0xdead, outer, 7];
    let (frames, stop) = walk_coded(&space, STACK, 0xdead, &words);
    assert_eq!(frames, [CODE + 0x10, caller, outer]);
    assert_eq!(stop, StopReason::NoRule, "nothing says that it is the root");
    // With calls that tell nothing the nearest is all there is.
    let space = Coded { of_this: &[], others: &[stale, caller] };
    assert_eq!(walk_coded(&space, STACK, 0xdead, &words[..5]).0, [CODE + 0x10, stale, caller]);
}

#[test]
fn a_frame_pointer_with_a_call_is_believed_before_a_call_that_tells_nothing() {
    let [stale, caller] = [CODE + 0x100, CODE + 0x200];
    let words = [stale, 7, 7, 0, caller, 7, 7, 7];
    for (of_this, others) in [(&[][..], &[stale, caller][..]), (&[stale, caller], &[])] {
        let space = Coded { of_this, others };
        let (frames, stop) = walk_coded(&space, STACK, STACK + 24, &words);
        assert_eq!((frames, stop), (vec![CODE + 0x10, caller], StopReason::Root), "the chain ends in a zero");
    }
    // Where nothing was called before the frame pointer's word, it is no frame pointer.
    let space = Coded { of_this: &[stale], others: &[] };
    assert_eq!(walk_coded(&space, STACK, STACK + 16, &words).0, [CODE + 0x10, stale]);
}

/// One mapping whose table can be exchanged without a change of generation, which the trait forbids.
struct Careless(Arc<UnwindTable>, u64);

impl AddressSpace for Careless {
    fn lookup(&self, _address: u64) -> Option<Mapping<'_>> {
        Some(Mapping { start: 0, end: 1 << 40, bias: 0, table: Some(&self.0) })
    }

    fn generation(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.1)
    }
}

#[test]
fn a_generation_used_twice_leaves_no_wrong_rules_behind() {
    let Some(run) = corpus::run("walks.c", &[]) else { return };
    let table = |name: &str| {
        let module = run.space.modules.iter().find(|module| module.name.contains(name)).unwrap();
        Arc::new(UnwindTable::from_elf(module.elf.as_slice()).unwrap())
    };
    let (linker, program) = (table("ld-linux"), table("program"));
    let addresses = |offset: u64| (0x1100 + offset..0x2800).step_by(16);
    let walk = |unwinder: &mut Unwinder, space: &Careless, ip: u64| {
        let words: Vec<u8> = (0..64_u64).flat_map(|word| (0x3000 + word * 8).to_le_bytes()).collect();
        let stack = CopiedStack::new(STACK, &words, 0);
        let mut frames = Vec::new();
        unwinder.unwind(space, &Registers::new(ip, [STACK; 16]), &stack, |frame| frames.push(frame));
        frames
    };
    let mut careless = Unwinder::new();
    addresses(0).for_each(|ip| drop(walk(&mut careless, &Careless(Arc::clone(&linker), 1), ip)));
    addresses(7).for_each(|ip| drop(walk(&mut careless, &Careless(Arc::clone(&program), 1), ip)));
    // Those walks may have taken one file for the other; what they cached for either file is that file's.
    for ip in addresses(7) {
        let space = Careless(Arc::clone(&linker), 2);
        assert_eq!(walk(&mut careless, &space, ip), walk(&mut Unwinder::new(), &space, ip), "{ip:#x}");
    }
}
