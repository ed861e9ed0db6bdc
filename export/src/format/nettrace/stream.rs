//! Events with stacks and labels in, blocks out.
//!
//! Events come in the order of time and are recorded by one thread of the file's own, so that each is marked as sorted. Stacks
//! and lists of labels are written before the events that refer to them, and numbered anew after each sequence point,
//! which bounds what a reader keeps, and what is kept here.

use std::io;

use collector_common::ids::Nanos;
use collector_common::intern::StackId;
use collector_common::record::{AttributeListId, ProcessId};

use super::blocks::{Blocks, Kind};
use super::labels::Quality;
use super::places::Epoch;
use crate::leb128;
use crate::table::Table;

/// The thread that records.
pub(super) const RECORDER: u64 = 1;

/// Bytes of events, stacks or labels after which they are written.
const PIECE: usize = 256 << 10;

/// Stacks and lists of labels after which there is a sequence point.
const NUMBERED: usize = 1 << 15;

/// An event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event<'a> {
    pub(super) metadata: u32,
    pub(super) thread: u64,
    pub(super) cpu: u32,
    pub(super) time: Nanos,
    /// 0 for none.
    pub(super) stack: u32,
    /// 0 for none.
    pub(super) labels: u32,
    pub(super) payload: &'a [u8],
}

/// What of an event's header is left out where it is that of the event before.
#[derive(Clone, Copy, Debug, Default)]
struct Previous {
    metadata: u32,
    sequence: u32,
    recorder: u64,
    cpu: u32,
    thread: u64,
    stack: u32,
    time: u64,
    labels: u32,
    payload: usize,
}

/// A stack in a process, while the modules in it stay where they are.
pub(super) type StackKey = (ProcessId, Epoch, StackId);

/// A list of labels.
pub(super) type LabelsKey = (AttributeListId, Quality);

/// Rows that have numbers from 1, with those that are not written yet.
#[derive(Debug)]
struct Rows {
    waiting: Vec<u8>,
    first: u32,
    count: u32,
}

impl Default for Rows {
    fn default() -> Self {
        Self { waiting: Vec::new(), first: 1, count: 0 }
    }
}

impl Rows {
    /// The number of the row whose bytes are now added.
    fn add(&mut self) -> u32 {
        self.count += 1;
        self.first + self.count - 1
    }

    fn write(&mut self, kind: Kind, blocks: &mut Blocks<'_>) -> io::Result<()> {
        if self.count > 0 {
            let header = [self.first.to_le_bytes(), self.count.to_le_bytes()].concat();
            self.waiting.splice(0..0, header);
            blocks.write(kind, &self.waiting)?;
        }
        self.first += self.count;
        self.count = 0;
        self.waiting.clear();
        Ok(())
    }
}

/// Events on their way.
pub(super) struct Stream<'a> {
    blocks: Blocks<'a>,
    events: Vec<u8>,
    first_time: u64,
    previous: Previous,
    /// That of the last event.
    sequence: u32,
    last_point: Nanos,
    stacks: Rows,
    stack_numbers: Table<StackKey, (u32, Quality)>,
    /// Those of one stack.
    addresses: Vec<u64>,
    labels: Rows,
    label_numbers: Table<LabelsKey, u32>,
}

impl<'a> Stream<'a> {
    pub(super) fn new(blocks: Blocks<'a>) -> Self {
        Self {
            blocks,
            events: Vec::new(),
            first_time: 0,
            previous: Previous::default(),
            sequence: 0,
            last_point: Nanos(0),
            stacks: Rows::default(),
            stack_numbers: Table::default(),
            addresses: Vec::new(),
            labels: Rows::default(),
            label_numbers: Table::default(),
        }
    }

    /// The number of a stack, whose addresses, leaf first, are asked for if it has none yet.
    pub(super) fn stack(
        &mut self,
        key: StackKey,
        addresses: impl FnOnce(&mut Vec<u64>) -> Quality,
    ) -> (u32, Quality) {
        /// Those at the root are left out: `PerfView` keeps the size of a stack and 8 bytes in 16 bits.
        const DEEPEST: usize = (u16::MAX as usize - 8) / 8;
        if let Some(&known) = self.stack_numbers.get(&key) {
            return known;
        }
        let frames = &mut self.addresses;
        frames.clear();
        let mut quality = addresses(frames);
        quality.is_cut |= frames.len() > DEEPEST;
        frames.truncate(DEEPEST);
        let number = if frames.is_empty() { 0 } else { self.stacks.add() };
        if number > 0 {
            self.stacks.waiting.extend_from_slice(&(frames.len() as u32 * 8).to_le_bytes());
            self.stacks.waiting.extend(frames.iter().flat_map(|frame| frame.to_le_bytes()));
        }
        self.stack_numbers.insert(key, (number, quality));
        (number, quality)
    }

    /// The number of a list of labels, which is asked for if it has none yet.
    pub(super) fn labels(&mut self, key: LabelsKey, list: impl FnOnce() -> Vec<u8>) -> u32 {
        if key == (AttributeListId::NONE, Quality::default()) {
            return 0;
        }
        if let Some(&known) = self.label_numbers.get(&key) {
            return known;
        }
        let list = list();
        let number = if list.is_empty() { 0 } else { self.labels.add() };
        self.labels.waiting.extend_from_slice(&list);
        self.label_numbers.insert(key, number);
        number
    }

    /// Makes room for an event of a time, before its stack and labels are asked for.
    pub(super) fn prepare(&mut self, time: Nanos) -> io::Result<()> {
        let waiting = [&self.events, &self.stacks.waiting, &self.labels.waiting].map(Vec::len);
        if waiting.into_iter().any(|bytes| bytes >= PIECE) {
            self.flush()?;
        }
        let numbered = self.stack_numbers.len() + self.label_numbers.len();
        if numbered >= NUMBERED && time > self.last_point {
            self.flush()?;
            self.sequence_point(time, None)?;
        }
        Ok(())
    }

    /// Adds an event.
    pub(super) fn event(&mut self, event: &Event<'_>) {
        const METADATA: u8 = 1;
        const RECORDED: u8 = 1 << 1;
        const THREAD: u8 = 1 << 2;
        const STACK: u8 = 1 << 3;
        const LABELS: u8 = 1 << 4;
        const SORTED: u8 = 1 << 6;
        const PAYLOAD: u8 = 1 << 7;
        if self.events.is_empty() {
            self.previous = Previous::default();
            self.first_time = event.time.0;
        }
        self.sequence = self.sequence.wrapping_add(1);
        let before = self.previous;
        let now = Previous {
            metadata: event.metadata,
            sequence: self.sequence,
            recorder: RECORDER,
            cpu: event.cpu,
            thread: event.thread,
            stack: event.stack,
            time: event.time.0,
            labels: event.labels,
            payload: event.payload.len(),
        };
        let is_next = now.sequence == before.sequence.wrapping_add(1);
        let is_recorded = !is_next || (now.recorder, now.cpu) != (before.recorder, before.cpu);
        let flags = [
            (METADATA, now.metadata != before.metadata),
            (RECORDED, is_recorded),
            (THREAD, now.thread != before.thread),
            (STACK, now.stack != before.stack),
            (LABELS, now.labels != before.labels),
            (SORTED, true),
            (PAYLOAD, now.payload != before.payload),
        ];
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set).fold(0, |flags, (flag, _)| flags | flag);
        self.events.push(flags);
        let mut number_if = |flag: u8, number: u64| {
            if flags & flag != 0 {
                leb128::write(&mut self.events, number);
            }
        };
        number_if(METADATA, now.metadata.into());
        number_if(RECORDED, now.sequence.wrapping_sub(before.sequence).wrapping_sub(1).into());
        number_if(RECORDED, now.recorder);
        number_if(RECORDED, now.cpu.into());
        number_if(THREAD, now.thread);
        number_if(STACK, now.stack.into());
        number_if(SORTED, now.time.saturating_sub(before.time));
        number_if(LABELS, now.labels.into());
        number_if(PAYLOAD, now.payload as u64);
        self.events.extend_from_slice(event.payload);
        self.previous = now;
    }

    /// Writes what waits: first what events refer to.
    fn flush(&mut self) -> io::Result<()> {
        const HEADER: u16 = 20;
        const COMPRESSED: u16 = 1;
        self.stacks.write(Kind::Stack, &mut self.blocks)?;
        self.labels.write(Kind::LabelList, &mut self.blocks)?;
        if !self.events.is_empty() {
            let mut header = [HEADER.to_le_bytes(), COMPRESSED.to_le_bytes()].concat();
            header.extend(self.first_time.to_le_bytes());
            header.extend(self.previous.time.to_le_bytes());
            self.events.splice(0..0, header);
            self.blocks.write(Kind::Event, &self.events)?;
        }
        self.events.clear();
        Ok(())
    }

    /// Ends a span of numbers, and may tell which number the recording thread's last event had.
    fn sequence_point(&mut self, time: Nanos, sequence: Option<u32>) -> io::Result<()> {
        const KEEP_ALL: u32 = 0;
        let mut point = time.0.to_le_bytes().to_vec();
        point.extend(KEEP_ALL.to_le_bytes());
        point.extend(u32::from(sequence.is_some()).to_le_bytes());
        if let Some(sequence) = sequence {
            leb128::write(&mut point, RECORDER);
            leb128::write(&mut point, sequence.into());
        }
        self.last_point = time;
        (self.stacks, self.labels) = (Rows::default(), Rows::default());
        self.stack_numbers.clear();
        self.label_numbers.clear();
        self.blocks.write(Kind::SequencePoint, &point)
    }

    /// Writes the rest, and how many events are lost: as if the recording thread had left them out at the end.
    pub(super) fn end(mut self, time: Nanos, lost: u64) -> io::Result<()> {
        // Readers take a difference of more than 31 bits for one that is negative.
        let lost = lost.min(i32::MAX as u64) as u32;
        self.flush()?;
        let after = Nanos(self.last_point.0.saturating_add(1));
        self.sequence_point(time.max(after), Some(self.sequence.wrapping_add(lost)))?;
        self.blocks.end()
    }
}
