//! The input is a row of events: per event a byte of what it is, one of its version and one of its length, from 224 on in KiB, and its payload,
//! which may be its own description, too.

use collector_common::event::{EventData, Guid};
use collector_common::ids::{Pid, Tid};
use windows_etw::decode::clr::{self, ClrEvent};
use windows_etw::decode::described::Schemas;
use windows_etw::decode::kernel::{self, KernelEvent};
use windows_etw::decode::state::{LifeLimits, Lives, NtPaths, OwnStack, StackAt, StackLimits, Stacks};
use windows_etw::decode::windows::{self, WindowsEvent};
use windows_etw::decode::{EventKey, spec_of, specs};
use windows_etw::record::{Descriptor, EtwRecord, Extended, PointerSize, Schema, StackItem, StackKey};

use super::within_memory;

/// Bytes that any input may take: tables of what is known, and formats.
const FIXED: u64 = 4 << 20;

/// Bytes for each of the input's: a description of few bytes makes a format of fields.
const PER_BYTE: u64 = 2048;

/// Takes all events of the input.
pub(crate) fn run(input: &[u8]) {
    within_memory(FIXED + input.len() as u64 * PER_BYTE, || take(input));
}

/// The next event, and what is behind it.
fn next(input: &[u8], ticks: i64) -> Option<(EtwRecord<'_>, &[u8])> {
    let [what, how, length, rest @ ..] = input else { return None };
    let bytes = match usize::from(*length) {
        bytes @ ..224 => bytes,
        length => (length - 223) << 10,
    };
    let (payload, rest) = rest.split_at(bytes.min(rest.len()));
    let place = usize::from(*what) + 256 * usize::from(how >> 7);
    let spec = specs().nth(place % specs().count())?;
    let mut descriptor = Descriptor { version: how & 7, ..Descriptor::default() };
    let schema = match spec.key {
        EventKey::Opcode(opcode) => {
            descriptor.opcode = opcode;
            Schema::Classic
        }
        EventKey::Id(id) => {
            descriptor.id = id;
            Schema::Manifest
        }
    };
    // A manifest that a program writes.
    if how & 0x38 == 0x28 {
        descriptor = Descriptor { id: 0xfffe, opcode: 0xfe, ..descriptor };
    }
    let pointer_size = if how & 8 == 0 { PointerSize::Bits64 } else { PointerSize::Bits32 };
    let is_own = how & 0x30 == 0x30;
    let stack = StackItem { match_id: u64::from(*length) % 4, width: pointer_size, addresses: payload };
    let record = EtwRecord {
        provider: spec.provider,
        descriptor,
        schema: if is_own { Schema::SelfDescribing } else { schema },
        pointer_size,
        pid: Some(Pid(u32::from(*length))),
        tid: Some(Tid(u32::from(how & 1))),
        cpu: 0,
        ticks,
        activity: Guid([0; 16]),
        extended: Extended {
            self_description: is_own.then_some(payload),
            provider_traits: (how & 0x40 != 0).then_some(payload),
            stack: (how & 0x30 == 0x10).then_some(stack),
            stack_key: (how & 0x30 == 0x20).then_some(StackKey { match_id: stack.match_id, key: 7 }),
            ..Extended::default()
        },
        payload,
    };
    Some((record, rest))
}

fn take(input: &[u8]) {
    let (mut schemas, mut paths) = (Schemas::default(), NtPaths::default());
    let mut lives = Lives::new(LifeLimits { processes: 64, images: 64 });
    let mut stacks = Stacks::new(StackLimits { events: 16, frames: 256, waiting_frames: 256, keys: 64 });
    let (mut rest, mut events, mut joined) = (input, 0_u64, 0_u64);
    while let Some((record, behind)) = next(rest, i64::try_from(events / 3).unwrap_or(0)) {
        (rest, events) = (behind, events + 1);
        let decoded = [
            KernelEvent::decode(&record).map(|event| event.is_some()),
            ClrEvent::decode(&record).map(|event| event.is_some()),
            WindowsEvent::decode(&record).map(|event| event.is_some()),
        ];
        for error in decoded.iter().filter_map(|decoded| decoded.as_ref().err()) {
            assert!(error.position <= record.payload.len() && !error.to_string().is_empty());
        }
        let is_learnt = schemas.learn(&record);
        assert!(is_learnt.as_ref().map_or_else(|error| !error.to_string().is_empty(), |()| true));
        match schemas.describe(&record) {
            Ok(Some(described)) => {
                let data = EventData::new(record.payload, record.payload, &described.format);
                let is_whole = data.values().filter(|(_, value)| value.is_ok()).count()
                    == described.format.fields().len();
                // What is decoded is what the format says, unless the event says something else of itself.
                let is_decoded = decoded.contains(&Ok(true));
                let is_manifest = record.descriptor.id == 0xfffe;
                assert!(is_whole || !is_decoded || is_manifest || record.extended.self_description.is_some());
                let _ = data.as_text().to_string();
            }
            Ok(None) => assert!(spec_of(&record).is_none()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        if let Ok(Some(event)) = WindowsEvent::decode(&record) {
            lives.take_manifest(&record, &event, &paths);
        }
        let Ok(event) = KernelEvent::decode(&record) else { continue };
        if let Some(event) = &event {
            paths.learn(event);
            lives.take(&record, event, &paths);
            if stacks.stack(event, record.cpu) {
                continue;
            }
        }
        let (at, own) = (StackAt::of(&record, event.as_ref(), None), OwnStack::of(&record));
        if at.zip(own).is_some_and(|(at, own)| stacks.rest(at, own)) {
            continue;
        }
        joined += u64::from(stacks.event(at, own, ()).is_some());
    }
    assert!(lives.processes().len() <= 64 && lives.images().len() <= 64);
    for life in lives.images() {
        let start = life.start.unwrap_or(0);
        if life.size > 0 && life.end.is_none_or(|end| end > start) {
            assert!(lives.image_at(life.pid, life.base, start).is_some());
        }
        assert!(life.start.is_none_or(|start| life.end.is_none_or(|end| start <= end)));
    }
    joined += stacks.finish().count() as u64;
    assert!(joined <= events);
    let names = [kernel::provider_name, clr::provider_name, windows::provider_name];
    assert!(specs().all(|spec| names.iter().any(|name| name(spec.provider).is_some())));
}
