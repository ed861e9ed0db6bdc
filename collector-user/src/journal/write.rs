//! Writes a journal, a step of its session after the other. A step's answers are known when it is over, and come before it: so its items
//! wait until then.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use collector_common::ids::Nanos;
use collector_common::perf::Parsed;
use collector_common::wire;
use collector_common::wire::{SampleFlags, SampleHeader};

use super::told::{Ending, Start};
use super::{MAGIC, MOST, VERSION, kind};
use crate::event_clock::ClockReading;
use crate::modules::NotedFile;
use crate::packed::{Packed, Unpacker, pack_counted};
use crate::recorder::{Question, Recorder};
use crate::source::SourceRecord;
use crate::source::sideband::LAYOUT;

/// A journal while it is written.
pub(crate) struct JournalWriter {
    file: BufWriter<File>,
    /// The items of a step that is not over.
    step: Vec<u8>,
    /// Nothing is written any more after it.
    failure: Option<io::Error>,
}

impl JournalWriter {
    /// A journal in `file`, which is empty, of a recorder that has taken in what runs already.
    pub(crate) fn new(file: File, start: &Start, recorder: &mut Recorder) -> Self {
        let file = BufWriter::with_capacity(1 << 20, file);
        let mut journal = Self { file, step: Vec::new(), failure: None };
        let mut head = MAGIC.to_vec();
        VERSION.pack(&mut head);
        wire::VERSION.pack(&mut head);
        item(&mut head, kind::START, |out| start.pack(out));
        journal.write(&head);
        item(&mut journal.step, kind::SCAN, |_| ());
        journal.end_step(recorder);
        journal
    }

    /// A record of the sideband, as it is taken in.
    pub(crate) fn sideband(&mut self, parsed: &Parsed<'_>, time: Nanos) {
        let mut result = Ok(());
        item(&mut self.step, kind::SIDEBAND, |out| {
            time.pack(out);
            result = parsed.write(&LAYOUT, out);
        });
        if let Err(error) = result {
            self.failure.get_or_insert_with(|| io::Error::other(error));
        }
    }

    /// All that the sideband had was taken in, and processes were looked at.
    pub(crate) fn looked(&mut self, recorder: &mut Recorder) {
        item(&mut self.step, kind::LOOK, |_| ());
        self.end_step(recorder);
    }

    /// A record of a source.
    pub(crate) fn record(&mut self, record: &SourceRecord<'_>) {
        if record.written.is_empty() {
            item(&mut self.step, kind::RECORD, |out| pack_record(record, out));
        } else {
            item(&mut self.step, kind::RING, |out| pack_written(record, out));
        }
    }

    /// What the clocks showed.
    pub(crate) fn clocks(&mut self, reading: &ClockReading) {
        item(&mut self.step, kind::CLOCKS, |out| reading.pack(out));
    }

    /// A round is over.
    pub(crate) fn round(&mut self, until: Nanos, recorder: &mut Recorder) {
        item(&mut self.step, kind::ROUND, |out| until.pack(out));
        self.end_step(recorder);
    }

    /// All processes were taken in anew.
    pub(crate) fn rescan(&mut self, now: Nanos, recorder: &mut Recorder) {
        item(&mut self.step, kind::RESCAN, |out| now.pack(out));
        self.end_step(recorder);
    }

    /// All records were taken in, and nothing is asked any more.
    ///
    /// # Errors
    /// When it is not whole.
    pub(crate) fn finish(mut self, ending: &Ending, recorder: &mut Recorder) -> io::Result<()> {
        item(&mut self.step, kind::END, |out| ending.pack(out));
        self.end_step(recorder);
        self.failure.map_or_else(|| self.file.flush(), Err)
    }

    fn end_step(&mut self, recorder: &mut Recorder) {
        let mut before = Vec::new();
        let notes = recorder.take_notes();
        for notes in parts(&notes, MOST as usize) {
            item(&mut before, kind::ANSWERS, |out| out.extend_from_slice(notes));
        }
        for file in recorder.modules_mut().take_noted() {
            item(&mut before, kind::FILE, |out| NotedFile::pack(&file, out));
        }
        self.write(&before);
        let mut step = std::mem::take(&mut self.step);
        self.write(&step);
        step.clear();
        self.step = step;
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.file.write_all(bytes).err();
        }
    }
}

/// Questions with their answers in parts of so many bytes at most, if no single one has more.
fn parts(mut notes: &[u8], most: usize) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut from = Unpacker::new(notes);
    let mut end = 0;
    while Question::unpack(&mut from).is_some() && from.counted().is_some() {
        let next = notes.len() - from.rest().len();
        if next > most && end > 0 {
            let (part, rest) = notes.split_at(end);
            parts.push(part);
            notes = rest;
        }
        end = notes.len() - from.rest().len();
    }
    parts.extend((!notes.is_empty()).then_some(notes));
    parts
}

/// Adds an item: what it is, its length, and what `pack` adds.
fn item(out: &mut Vec<u8>, kind: u8, pack: impl FnOnce(&mut Vec<u8>)) {
    const HEAD: usize = 5;
    let start = out.len();
    out.extend_from_slice(&[kind, 0, 0, 0, 0]);
    pack(out);
    let len = out.len() - start - HEAD;
    debug_assert!(len <= MOST as usize);
    out[start + 1..start + HEAD].copy_from_slice(&(len as u32).to_le_bytes());
}

/// A record of our programs. What is behind the kernel's part is from records that were there before.
fn pack_written(record: &SourceRecord<'_>, out: &mut Vec<u8>) {
    record.event.0.pack(out);
    let start = out.len();
    out.extend_from_slice(record.written);
    let header = record.header;
    if !header.flags().has(SampleFlags::TRANSFER) {
        let behind = start + SampleHeader::SIZE + usize::from(header.kernel_bytes);
        let end = start + SampleHeader::STACK_OFFSET;
        if let Some(room) = out.get_mut(behind..end) {
            room.fill(0);
        }
    }
}

/// A record of another source, part for part.
fn pack_record(record: &SourceRecord<'_>, out: &mut Vec<u8>) {
    let SourceRecord {
        event,
        header,
        is_named,
        kernel,
        stack,
        returns,
        outer: _,
        user,
        value,
        data,
        written: _,
    } = *record;
    event.0.pack(out);
    is_named.pack(out);
    value.pack(out);
    out.extend_from_slice(bytemuck::bytes_of(header));
    for addresses in [kernel, user] {
        pack_counted(bytemuck::cast_slice(addresses), out);
    }
    pack_counted(stack, out);
    pack_counted(returns.map(bytemuck::bytes_of).unwrap_or_default(), out);
    pack_counted(data, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Subject;

    #[test]
    fn answers_are_parted_between_one_and_the_next() {
        let mut notes = Vec::new();
        let ends: Vec<usize> = (0..10_u64)
            .map(|pid| {
                Question::new(Subject::Device, pid).pack(&mut notes);
                pack_counted(&vec![7; 10 * pid as usize], &mut notes);
                notes.len()
            })
            .collect();
        assert_eq!(parts(&notes, notes.len()), [&notes[..]]);
        for most in [120, 200, 300, notes.len() - 1] {
            let parts = parts(&notes, most);
            assert!(parts.len() > 1 && parts.iter().all(|part| part.len() <= most));
            assert_eq!(parts.concat(), notes);
            let mut end = 0;
            assert!(parts.iter().all(|part| {
                end += part.len();
                ends.contains(&end)
            }));
        }
        assert!(parts(&[], 9).is_empty());
    }
}
