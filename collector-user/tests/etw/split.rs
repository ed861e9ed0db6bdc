//! Stacks that come in pieces, of which all is known.

use collector_common::event::Guid;
use windows_etw::decode::kernel::STACK_WALK;
use windows_etw::record::{Extended, PointerSize, StackItem, StackKey};

use crate::made::{Made, Odd, Payload};
use crate::shown::samples;

const PROVIDER: Guid = Guid([7; 16]);
const KERNEL: u64 = 0xffff_8000_0000_1000;

/// An event of a provider.
fn odd(at: i64, id: u16, number: u32) -> Odd {
    Odd { at, provider: PROVIDER, id: Some(id), opcode: 0, version: 0, number }
}

fn bytes(addresses: &[u64]) -> Vec<u8> {
    addresses.iter().flat_map(|address| address.to_le_bytes()).collect()
}

/// An event with a stack, which is of a number.
fn brought(made: &mut Made, odd: &Odd, match_id: u64, stack: &[u64]) {
    let addresses = bytes(stack);
    let item = StackItem { match_id, width: PointerSize::Bits64, addresses: &addresses };
    made.odd_with(odd, Extended { stack: Some(item), ..Extended::default() }, &[]);
}

/// Times and stacks of the samples of a provider's event.
fn of_event(made: Made, id: u16) -> Vec<(u64, Vec<u64>)> {
    let machine = made.finish().machine;
    let name = format!("{PROVIDER}/{id}");
    samples(&machine, &name).into_iter().map(|sample| (sample.at, sample.addresses)).collect()
}

#[test]
fn the_users_part_that_comes_later_is_of_the_event_before() {
    let make = || {
        let mut made = Made::new();
        brought(&mut made, &odd(10, 1, 5), 77, &[KERNEL]);
        brought(&mut made, &odd(20, 1, 6), 77, &[KERNEL + 8]);
        brought(&mut made, &odd(30, 2, 5), 77, &[0x10_0000, 0x10_0010]);
        brought(&mut made, &odd(40, 1, 5), 0, &[KERNEL, 0x20_0000]);
        made
    };
    // What has the same number in another thread is another one's.
    let first = (10, vec![KERNEL, 0x10_0000, 0x10_0010]);
    assert_eq!(of_event(make(), 1), [first, (20, vec![KERNEL + 8]), (40, vec![KERNEL, 0x20_0000])]);
    // The event that brings it is no sample; that it was there is told.
    assert_eq!(of_event(make(), 2), []);
    let machine = make().finish().machine;
    assert_eq!(
        machine.event_records().iter().map(|(_, record, _)| record.time.0).collect::<Vec<_>>(),
        [10, 20, 30, 40]
    );
}

#[test]
fn a_key_stands_for_the_stack_that_an_event_brings() {
    let mut made = Made::new();
    for (at, match_id, key) in [(10, 0, 0xabc), (20, 78, 0xabc), (30, 78, 0xdef)] {
        let stack_key = Some(StackKey { match_id, key });
        made.odd_with(&odd(at, 1, 5), Extended { stack_key, ..Extended::default() }, &[]);
    }
    for (key, address) in [(0xabc, KERNEL), (0xdef, 0x10_0000)] {
        made.classic(90, (STACK_WALK, 36, 2), 0, &Payload::default().u64(&[key, address]));
    }
    assert_eq!(of_event(made, 1), [(10, vec![KERNEL]), (20, vec![KERNEL, 0x10_0000])]);
}

#[test]
fn samples_of_one_stay_in_the_kernel_have_the_users_part_of_the_first() {
    let mut made = Made::new();
    for at in [10, 20, 30] {
        made.sample(at, 0, 71, KERNEL, 0);
        made.stack(at, at.unsigned_abs(), 70, 71, &[KERNEL]);
    }
    made.stack(31, 20, 70, 71, &[0x10_0000]);
    let machine = made.finish().machine;
    let stacks: Vec<_> = samples(&machine, "cpu").into_iter().map(|sample| sample.addresses).collect();
    assert_eq!(stacks, [vec![KERNEL], vec![KERNEL, 0x10_0000], vec![KERNEL, 0x10_0000]]);
}
