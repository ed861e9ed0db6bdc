//! Expressions whose values are known; gimli's own evaluator is the second opinion.

use gimli::{Evaluation, EvaluationResult, Expression, Location, Value};
use proptest::prelude::*;

use super::{LittleEndian, MAX_LOOKED_AT, MAX_STEPS, Operands, Slice, Steps, encoding, evaluate, reads_only};
use crate::word::Word;
use crate::{CopiedStack, StopReason, x86, x86_64};

const STACK: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 0x88, 9, 10, 11, 12, 13, 14, 15, 16];

fn ours(bytes: &[u8], cfa: Option<u64>) -> Result<u64, StopReason> {
    let registers = x86_64::Registers::new(0x40_1003, std::array::from_fn(|number| 0x1000 * number as u64));
    let stack = CopiedStack::new(0x7000, &STACK, 0);
    let steps = Steps::of_frames(1);
    evaluate(bytes, &Operands { registers: &registers, stack: &stack, bias: 0x10_0000, cfa, steps: &steps })
}

/// The same with words of 32 bits.
fn ours_narrow(bytes: &[u8]) -> Result<u64, StopReason> {
    let registers = x86::Registers::new(0x40_1003, std::array::from_fn(|number| 0x1000 * number as u32));
    let stack = CopiedStack::new(0x4000, &STACK, 0);
    let (cfa, steps) = (None, Steps::of_frames(1));
    evaluate(bytes, &Operands { registers: &registers, stack: &stack, bias: 0x10_0000, cfa, steps: &steps })
}

/// The same by gimli; `None` where it asks for what we have no answer to, or fails.
fn theirs(bytes: &[u8], word: Word) -> Option<u64> {
    let mut evaluation: Evaluation<Slice<'_>> =
        Expression(Slice::new(bytes, LittleEndian)).evaluation(encoding(word));
    evaluation.set_max_iterations(1000);
    match evaluation.evaluate().ok()? {
        EvaluationResult::Complete => match evaluation.result().as_slice() {
            [piece] if piece.size_in_bits.is_none() => match piece.location {
                Location::Address { address } => Some(address),
                // It cuts addresses to the size of words, and values not.
                Location::Value { value: Value::Generic(value) } => Some(match word {
                    Word::Four => value & u64::from(u32::MAX),
                    Word::Eight => value,
                }),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

#[test]
fn a_plt_stubs_cfa() {
    // rsp + 8 + ((rip & 15) >= 11) << 3
    let plt = [0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
    assert_eq!(ours(&plt, None), Ok(0x7008));
    let at_push = [0x77, 0x08, 0x80, 0x09, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
    assert_eq!(ours(&at_push, None), Ok(0x7010));
    assert!(reads_only(&plt, Word::Eight, |register| [7, 16].contains(&register)));
    assert!(!reads_only(&plt, Word::Eight, |register| register == 7));
}

#[test]
fn of_an_expression_that_is_too_long_nothing_is_told() {
    let reads = |length| !reads_only(&vec![0x96; length], Word::Eight, |_| false);
    assert!(!reads(MAX_LOOKED_AT) && reads(MAX_LOOKED_AT + 1) && reads(60_000));
}

#[test]
fn memory_is_read_in_all_sizes_to_its_last_byte() {
    let read = |offset: u8, size: u8| ours(&[0x77, offset, 0x94, size], None);
    assert_eq!(read(0, 1), Ok(1));
    assert_eq!(read(6, 2), Ok(0x8807));
    assert_eq!(read(8, 8), Ok(0x100f_0e0d_0c0b_0a09));
    assert_eq!(read(12, 4), Ok(0x100f_0e0d));
    assert_eq!(read(15, 1), Ok(16));
    assert_eq!(read(13, 4), Err(StopReason::StackExhausted));
    assert_eq!(read(0, 3), Err(StopReason::Unsupported));
    assert_eq!(ours(&[0x77, 0x7f, 0x06], None), Err(StopReason::Unreadable));
}

#[test]
fn short_words_are_read_to_the_last_byte_and_wrap() {
    // esp is 0x4000
    let read = |offset: u8, size: u8| ours_narrow(&[0x74, offset, 0x94, size]);
    assert_eq!(ours_narrow(&[0x74, 12, 0x06]), Ok(0x100f_0e0d));
    assert_eq!(read(6, 2), Ok(0x8807));
    assert_eq!(read(15, 1), Ok(16));
    assert_eq!(read(13, 4), Err(StopReason::StackExhausted));
    assert_eq!(read(0, 8), Err(StopReason::Unsupported));
    // An address of four bytes, moved by the bias; 1 - 2
    assert_eq!(ours_narrow(&[0x03, 0x78, 0x56, 0x34, 0x12]), Ok(0x1244_5678));
    assert_eq!(ours_narrow(&[0x31, 0x32, 0x1c]), Ok(0xffff_ffff));
}

#[test]
fn the_cfa_is_the_first_value_of_a_registers_expression() {
    // cfa - 16
    assert_eq!(ours(&[0x40, 0x1c], Some(0x5000)), Ok(0x4ff0));
    assert_eq!(ours(&[0x9c], Some(0x5000)), Ok(0x5000));
    assert_eq!(ours(&[0x9c], None), Err(StopReason::Unsupported));
}

#[test]
fn a_value_is_cut_to_a_word_as_an_address_is() {
    // 1 << 32, and that it is a value
    let wide = [&[0x0e][..], &(1_u64 << 32).to_le_bytes(), &[0x9f]].concat();
    for bytes in [&wide[..], &wide[..9]] {
        assert_eq!([ours(bytes, None).ok(), theirs(bytes, Word::Eight)], [Some(1 << 32); 2]);
        assert_eq!([ours_narrow(bytes).ok(), theirs(bytes, Word::Four)], [Some(0); 2]);
    }
}

#[test]
fn addresses_are_relocated() {
    assert_eq!(ours(&[0x03, 0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0], None), Ok(0x1244_5678));
}

#[test]
fn what_never_ends_is_stopped() {
    // skip -3
    assert_eq!(ours(&[0x2f, 0xfd, 0xff], None), Err(StopReason::Unsupported));
    // lit0, skip -4: the stack would grow forever
    assert_eq!(ours(&[0x30, 0x2f, 0xfc, 0xff], None), Err(StopReason::Unsupported));
    assert_eq!(ours(&[], None), Err(StopReason::Unsupported));
}

/// Operations on the stack and on constants alone.
fn operation() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0x30_u8..=0x4f).prop_map(|literal| vec![literal]),
        any::<u64>().prop_map(|value| [&[0x0e][..], &value.to_le_bytes()].concat()),
        any::<i16>().prop_map(|value| [&[0x0b][..], &value.to_le_bytes()].concat()),
        // dup, drop, over, swap, rot; abs .. plus; shl, shr, shra, xor; eq .. ne; nop
        proptest::sample::select(vec![
            0x12, 0x12, 0x13, 0x14, 0x16, 0x17, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22,
            0x24, 0x25, 0x26, 0x27, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x96,
        ])
        .prop_map(|operation: u8| vec![operation]),
        (0_u8..4).prop_map(|index| vec![0x15, index]),
        (0_u8..128).prop_map(|value| vec![0x23, value]),
    ]
}

/// An operation, or a branch over so many of them, forwards or back.
fn step() -> impl Strategy<Value = Result<Vec<u8>, isize>> {
    prop_oneof![9 => operation().prop_map(Ok), 1 => (-4_isize..5).prop_map(Err)]
}

/// The bytes of steps. Branches lead to where operations begin: in operands there may be others, of which a CFA has none.
fn assembled(steps: &[Result<Vec<u8>, isize>]) -> Vec<u8> {
    const BRANCH: usize = 3;
    let len = |step: &Result<Vec<u8>, isize>| step.as_ref().map_or(BRANCH, Vec::len);
    let starts: Vec<usize> = std::iter::once(0)
        .chain(steps.iter().scan(0, |end, step| {
            *end += len(step);
            Some(*end)
        }))
        .collect();
    let bytes_of = |(at, step): (usize, &Result<Vec<u8>, isize>)| match step {
        Ok(bytes) => bytes.clone(),
        Err(over) => {
            let target = (at + 1).saturating_add_signed(*over).min(steps.len());
            let distance = starts[target] as i16 - starts[at + 1] as i16;
            [&[0x28][..], &distance.to_le_bytes()].concat()
        }
    };
    steps.iter().enumerate().flat_map(bytes_of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arithmetic_agrees_with_gimli(
        seeds in proptest::collection::vec(any::<u64>(), 3),
        steps in proptest::collection::vec(step(), 0..12),
    ) {
        let seeds = seeds.iter().flat_map(|seed| [&[0x0e][..], &seed.to_le_bytes()].concat());
        let bytes: Vec<u8> = seeds.chain(assembled(&steps)).collect();
        if let Some(expected) = theirs(&bytes, Word::Eight) {
            prop_assert_eq!(ours(&bytes, None), Ok(expected));
        }
        if let Some(expected) = theirs(&bytes, Word::Four) {
            prop_assert_eq!(ours_narrow(&bytes), Ok(expected));
        }
    }

    #[test]
    fn noise_does_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = ours(&bytes, Some(0x7000));
        let _ = reads_only(&bytes, Word::Eight, |register| register == 7);
    }
}

#[test]
fn the_expressions_of_a_walk_have_a_bound_together() {
    let registers = x86_64::Registers::new(0, [0; 16]);
    let stack = CopiedStack::new(0, &[], 0);
    // DW_OP_nop, and DW_OP_lit1
    let bytes = [&[0x96; MAX_STEPS / 2][..], &[0x31]].concat();
    let of_none = Steps::of_frames(0);
    let operands = Operands { registers: &registers, stack: &stack, bias: 0, cfa: None, steps: &of_none };
    assert_eq!(evaluate(&bytes, &operands), Ok(1));
    assert_eq!(evaluate(&bytes, &operands), Err(StopReason::Unsupported));
    let of_some = Steps::of_frames(1000);
    let operands = Operands { steps: &of_some, ..operands };
    let done = (0..1000).take_while(|_| evaluate(&bytes, &operands).is_ok()).count();
    assert!(done > 100 && done < 1000, "{done}");
}
