//! Events that are made by hand, as ETW lays them out.

use collector_common::event::Guid;
use windows_sys::Win32::System::Diagnostics::Etw::EVENT_HEADER_EXTENDED_DATA_ITEM;
use windows_sys::core::GUID;

use super::*;
use crate::record::{Instance, StackItem, StackKey};

const PERF_INFO: GUID = GUID::from_u128(0xce1d_bfb4_137e_4da6_87b0_3f59_aa10_2cbc);

fn item(kind: u16, data: &[u8]) -> EVENT_HEADER_EXTENDED_DATA_ITEM {
    EVENT_HEADER_EXTENDED_DATA_ITEM {
        ExtType: kind,
        DataSize: data.len() as u16,
        DataPtr: data.as_ptr().expose_provenance() as u64,
        ..EVENT_HEADER_EXTENDED_DATA_ITEM::default()
    }
}

/// What `look` makes of an event with this payload and these items, after `change`.
fn with<T>(
    payload: &mut [u8],
    items: &mut [EVENT_HEADER_EXTENDED_DATA_ITEM],
    change: impl FnOnce(&mut EVENT_RECORD),
    look: impl FnOnce(EtwRecord<'_>) -> T,
) -> T {
    let mut event = EVENT_RECORD {
        UserData: payload.as_mut_ptr().cast(),
        UserDataLength: payload.len() as u16,
        ExtendedData: items.as_mut_ptr(),
        ExtendedDataCount: items.len() as u16,
        ..EVENT_RECORD::default()
    };
    change(&mut event);
    // SAFETY: payload and items are as long as is said, and outlive the call.
    look(unsafe { record_of(&event) })
}

#[test]
fn a_sample_of_the_kernel() {
    let mut payload = [0x10, 0x32, 0x54, 0x76, 0xf8, 0x7f, 0, 0, 0xd2, 4, 0, 0, 1, 0, 0, 0];
    let change = |event: &mut EVENT_RECORD| {
        event.EventHeader.ProviderId = PERF_INFO;
        event.EventHeader.Flags = 0x140;
        event.EventHeader.ProcessId = u32::MAX;
        event.EventHeader.ThreadId = u32::MAX;
        event.EventHeader.TimeStamp = 123_456_789;
        event.EventHeader.EventDescriptor.Opcode = 46;
        event.EventHeader.EventDescriptor.Version = 2;
        event.BufferContext.Anonymous.ProcessorIndex = 0x0803;
    };
    with(&mut payload, &mut [], change, |record| {
        assert_eq!(record.provider.to_string(), "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc");
        assert_eq!((record.schema, record.pointer_size), (Schema::Classic, PointerSize::Bits64));
        assert_eq!((record.pid, record.tid, record.ticks), (None, None, 123_456_789));
        // The upper byte is the alignment of the buffer.
        assert_eq!((record.cpu, record.descriptor.opcode, record.descriptor.version), (3, 46, 2));
        assert_eq!(record.payload, [0x10, 0x32, 0x54, 0x76, 0xf8, 0x7f, 0, 0, 0xd2, 4, 0, 0, 1, 0, 0, 0]);
    });
}

#[test]
fn an_event_of_a_provider() {
    let change = |event: &mut EVENT_RECORD| {
        let header = &mut event.EventHeader;
        header.ProviderId = GUID::from_u128(0x22fb_2cd6_0e7b_422b_a0c7_2fad_1fd0_e716);
        header.Flags = 0x220;
        (header.ProcessId, header.ThreadId) = (4, 0);
        header.ActivityId = GUID::from_u128(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10);
        let descriptor = &mut header.EventDescriptor;
        (descriptor.Id, descriptor.Version, descriptor.Channel, descriptor.Level) = (1, 2, 16, 4);
        (descriptor.Opcode, descriptor.Task, descriptor.Keyword) = (1, 7, 0x8000_0000_0000_0010);
        event.BufferContext.Anonymous.ProcessorIndex = 0x0103;
    };
    with(&mut [1, 2, 3], &mut [], change, |record| {
        assert_eq!((record.schema, record.pointer_size), (Schema::Manifest, PointerSize::Bits32));
        assert_eq!((record.pid, record.tid, record.cpu), (Some(Pid(4)), Some(Tid(0)), 0x103));
        assert_eq!(record.activity.to_string(), "01020304-0506-0708-090a-0b0c0d0e0f10");
        let keyword = 0x8000_0000_0000_0010;
        let expected = Descriptor { id: 1, version: 2, channel: 16, level: 4, opcode: 1, task: 7, keyword };
        assert_eq!((record.descriptor, record.payload), (expected, &[1, 2, 3][..]));
        assert_eq!(record.extended, Extended::default());
    });
}

#[test]
fn all_that_goes_with_an_event() {
    let guid: [u8; 16] =
        [0x23, 0x0d, 0x3c, 0xe1, 0xbc, 0xcc, 0x12, 0x4e, 0x93, 0x1b, 0xd9, 0xcc, 0x2e, 0xee, 0x27, 0xe4];
    let stack: Vec<u8> =
        [9_u64, 0x7ff8_0000_1000, 0x7ff8_0000_2000].iter().flat_map(|word| word.to_le_bytes()).collect();
    let longer = [stack.as_slice(), &[1, 2, 3]].concat();
    let key: Vec<u8> = [9_u64, 77].iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut instance = vec![5, 0, 0, 0, 6, 0, 0, 0];
    instance.extend(guid);
    let mut items = [
        item(1, &guid),
        item(2, b"sid"),
        item(3, &[2, 0, 0, 0]),
        item(4, &instance),
        // Three bytes too many for whole addresses.
        item(6, &longer),
        item(8, &key),
        item(10, &8_u64.to_le_bytes()),
        item(11, b"schema"),
        item(12, b"traits"),
        item(13, &11_u64.to_le_bytes()),
        item(16, b"container"),
        item(18, &key),
        item(14, b"of no use"),
        item(999, b"unknown"),
    ];
    with(
        &mut [],
        &mut items,
        |event| event.EventHeader.Flags = 0x41,
        |record| {
            let clr: Guid = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4".parse().unwrap();
            let addresses = &stack[8..];
            let expected = Extended {
                related_activity: Some(clr),
                sid: Some(b"sid"),
                terminal_session: Some(2),
                stack: Some(StackItem { match_id: 9, width: PointerSize::Bits64, addresses }),
                self_description: Some(b"schema"),
                provider_traits: Some(b"traits"),
                process_start_key: Some(11),
                stack_key: Some(StackKey { match_id: 9, key: 77 }),
                instance: Some(Instance { id: 5, parent_id: 6, parent: clr }),
                counters: Some(&key),
                event_key: Some(8),
                container: Some(b"container"),
                is_after_loss: false,
            };
            assert_eq!(record.extended, expected);
            assert_eq!((record.schema, record.payload), (Schema::SelfDescribing, &[][..]));
        },
    );
}

#[test]
fn items_that_are_too_short_are_left_out() {
    for kind in [1, 3, 4, 5, 6, 10, 13, 17, 18] {
        for length in 0..4 {
            let data = vec![0xff; length];
            let mut items = [item(kind, &data)];
            with(&mut [], &mut items, |_| {}, |record| assert_eq!(record.extended, Extended::default()));
        }
    }
    let stack32 = [9, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
    let mut items = [item(5, &stack32), item(17, &stack32)];
    with(
        &mut [],
        &mut items,
        |_| {},
        |record| {
            let stack = StackItem { match_id: 9, width: PointerSize::Bits32, addresses: &[1, 2, 3, 4] };
            assert_eq!(record.extended.stack, Some(stack));
            assert_eq!(record.extended.stack_key, Some(StackKey { match_id: 9, key: 0x0403_0201 }));
        },
    );
}

#[test]
fn nothing_where_windows_points_nowhere() {
    let change = |event: &mut EVENT_RECORD| {
        event.UserData = std::ptr::null_mut();
        event.UserDataLength = 8;
        event.ExtendedData = std::ptr::null_mut();
        event.ExtendedDataCount = 3;
    };
    with(&mut [], &mut [], change, |record| {
        assert!(record.payload.is_empty());
        assert_eq!(record.extended, Extended::default());
        assert_eq!(record.pointer_size, PointerSize::Bits64);
    });
}

#[test]
fn texts_and_messages() {
    for (flags, schema) in
        [(0x44, Schema::Text), (0x48, Schema::Message), (0x40, Schema::Manifest), (0x140, Schema::Classic)]
    {
        with(
            &mut [],
            &mut [],
            |event| event.EventHeader.Flags = flags,
            |record| assert_eq!(record.schema, schema),
        );
    }
}
