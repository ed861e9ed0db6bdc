//! An event in, what names it to the events that have its stack, and what it brings of that itself, out.
//!
//! `MatchId`: Microsoft's pages on `EVENT_EXTENDED_ITEM_STACK_TRACE64` and `EVENT_EXTENDED_ITEM_STACK_KEY64`.

use collector_common::ids::Tid;

use crate::decode::Addresses;
use crate::decode::kernel::{IMAGE_ID, KernelEvent, META_DATA, SYS_CONFIG};
use crate::record::EtwRecord;

/// What names an event to the event that has its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackAt {
    /// Its time, in ticks, and its thread.
    Thread(i64, Tid),
    /// Its time, where its thread is not told: of interrupts, system calls and page faults.
    Cpu {
        /// In ticks. Several CPUs may have an event each at one.
        ticks: i64,
        /// Where it was.
        cpu: u16,
        /// The thread that ran there, where switches tell it.
        running: Option<Tid>,
    },
    /// A number that both have, and their thread.
    Match(u64, Option<Tid>),
}

impl StackAt {
    /// What names an event, by what it is and by the thread that runs on its CPU, where that is known: stacks of samples and of switches are those of the thread in their payload. What is added
    /// when a trace is merged has no stack, though it has time and thread of an event beside it.
    pub fn of(record: &EtwRecord<'_>, event: Option<&KernelEvent<'_>>, running: Option<Tid>) -> Option<Self> {
        if [IMAGE_ID, META_DATA, SYS_CONFIG].contains(&record.provider) {
            return None;
        }
        let tid = match event {
            Some(KernelEvent::Sample(sample)) => Some(sample.tid),
            Some(KernelEvent::CounterSample(sample)) => Some(sample.tid),
            Some(KernelEvent::ContextSwitch(switch)) => Some(switch.new_tid),
            Some(KernelEvent::HardFault(fault)) => Some(fault.tid),
            _ => match match_id(record) {
                Some(number) => return Some(Self::Match(number, record.tid)),
                None => record.tid,
            },
        };
        let (ticks, cpu) = (record.ticks, record.cpu);
        Some(tid.map_or(Self::Cpu { ticks, cpu, running }, |tid| Self::Thread(ticks, tid)))
    }
}

/// What has the rest of a record's stack, or is the rest of one.
fn match_id(record: &EtwRecord<'_>) -> Option<u64> {
    let extended = &record.extended;
    let of_stack = extended.stack.map(|stack| stack.match_id);
    of_stack.or(extended.stack_key.map(|key| key.match_id)).filter(|number| *number != 0)
}

/// The stack that an event brings.
#[derive(Clone, Copy, Debug)]
pub enum OwnStack<'a> {
    /// Its return addresses.
    Frames(Addresses<'a>),
    /// The key of these.
    Key(u64),
}

impl<'a> OwnStack<'a> {
    /// That of a record.
    pub fn of(record: &EtwRecord<'a>) -> Option<Self> {
        let extended = &record.extended;
        let frames = extended.stack.map(|own| Addresses { bytes: own.addresses, width: own.width });
        frames.map(Self::Frames).or(extended.stack_key.map(|own| Self::Key(own.key)))
    }
}
