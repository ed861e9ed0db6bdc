//! The blocks of a trace, one after the other.

use std::io::Read;

use super::blobs::Blobs;
use super::cursor::Cursor;
use super::framing::{Framing, Kind};
use super::header::Header;
use super::old_types;
use super::tables::{Label, LabelValue, Tables};
use super::{Event, ReadError, Summary, Trace};

type Result<T> = std::result::Result<T, ReadError>;

/// Reads a trace.
pub(super) fn read(
    input: impl Read,
    begin: impl FnOnce(&Trace),
    mut each: impl FnMut(&Event<'_>),
) -> Result<Summary> {
    let mut file = Framing::begin(input)?;
    let mut block = Vec::new();
    if file.next(&mut block)? != Kind::Trace {
        return Err(ReadError::Malformed {
            what: "another first block than that of the trace",
            position: file.content_start(),
        });
    }
    let trace = trace(Cursor::of(&block, file.content_start()), file.is_old())?;
    begin(&trace);
    let mut reader = Reader::new(&trace, file.is_old());
    loop {
        let kind = match file.next(&mut block) {
            Err(ReadError::Cut { position, .. }) if reader.summary.events > 0 => {
                reader.summary.cut_at = Some(position);
                return Ok(reader.summary);
            }
            kind => kind?,
        };
        reader.summary.blocks += 1;
        let content = Cursor::of(&block, file.content_start());
        match kind {
            Kind::End if content.is_empty() => return Ok(reader.summary),
            Kind::End => return Err(content.malformed("an end that is not empty")),
            Kind::Trace => return Err(content.malformed("two descriptions of the trace")),
            Kind::Events => reader.events(content, &mut each)?,
            Kind::Types if file.is_old() => reader.old_types(content)?,
            Kind::Types => reader.tables.add_types(content)?,
            Kind::SequencePoint => reader.sequence_point(content)?,
            Kind::Stacks => reader.tables.add_stacks(content, trace.pointer_size)?,
            Kind::Threads => reader.tables.add_threads(content)?,
            Kind::RemovedThreads => reader.remove_threads(content)?,
            Kind::Labels => reader.tables.add_labels(content)?,
            Kind::Other => {}
        }
    }
}

fn trace(mut block: Cursor<'_>, is_old: bool) -> Result<Trace> {
    /// What old files have, under the names that newer ones have for it.
    const FACTS: [&str; 3] = ["ProcessId", "HardwareThreadCount", "ExpectedCPUSamplingRate"];
    let start = block;
    let mut date = [0; 8];
    for part in &mut date {
        *part = block.u16()?;
    }
    let unix_milliseconds =
        milliseconds(date).ok_or_else(|| start.malformed("a time of day that does not exist"))?;
    let clock = block;
    let (ticks, frequency) = (block.u64()?.cast_signed(), block.u64()?);
    let pointer_size = block.u32()?;
    if frequency == 0 || !matches!(pointer_size, 4 | 8) {
        return Err(clock.malformed("a clock or addresses that can't be"));
    }
    let mut pairs = Vec::new();
    if is_old {
        for name in FACTS {
            pairs.push((name.to_owned(), block.u32()?.to_string()));
        }
    } else {
        for _ in 0..block.u32()? {
            pairs.push((block.text()?.to_owned(), block.text()?.to_owned()));
        }
    }
    if !block.is_empty() {
        return Err(block.malformed("more in a block than it tells of"));
    }
    Ok(Trace { unix_milliseconds, ticks, frequency, pointer_size, pairs })
}

/// The first year of a `SYSTEMTIME`, and how many days it is from there to 1970.
const FIRST_YEAR: u16 = 1601;
const UNTIL_1970: i64 = 134_774;

/// Milliseconds since 1970 of a date that exists. The day of the week follows from the others, and some writers count it from Monday.
fn milliseconds([year, month, _, day, hour, minute, second, millisecond]: [u16; 8]) -> Option<i64> {
    let is_leap =
        |year: u16| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let february = if is_leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let index = usize::from(month.checked_sub(1)?);
    let is_day = (FIRST_YEAR..=9999).contains(&year) && day >= 1 && day <= *months.get(index)?;
    let before = months.get(..index)?;
    let is_time = hour < 24 && minute < 60 && second < 60 && millisecond < 1000;
    let years: i64 = (FIRST_YEAR..year).map(|year| 365 + i64::from(is_leap(year))).sum();
    let days =
        years + before.iter().map(|&days| i64::from(days)).sum::<i64>() + i64::from(day.checked_sub(1)?);
    let days = days - UNTIL_1970;
    let seconds = (days * 24 + i64::from(hour)) * 3600 + i64::from(minute) * 60 + i64::from(second);
    (is_day && is_time).then_some(seconds * 1000 + i64::from(millisecond))
}

/// What old files tell instead of labels.
fn activities(header: &Header) -> Vec<Label> {
    let named = ["ActivityId", "RelatedActivityId"].into_iter().zip(header.activities);
    let told = named.filter(|(_, id)| *id != [0; 16]);
    told.map(|(key, id)| Label { key: key.to_owned(), value: LabelValue::Id(id) }).collect()
}

struct Reader {
    /// The process that a file of a version before 6 is of.
    old: Option<u64>,
    pointer_size: usize,
    tables: Tables,
    summary: Summary,
    /// No later event is older.
    oldest: u64,
    newest: u64,
    last_point: Option<u64>,
}

impl Reader {
    fn new(trace: &Trace, is_old: bool) -> Self {
        let process = trace.pairs.iter().find(|(name, _)| is_old && name == "ProcessId");
        Self {
            old: process.map(|(_, pid)| pid.parse().unwrap_or_default()),
            pointer_size: trace.pointer_size as usize,
            tables: Tables::default(),
            summary: Summary::default(),
            oldest: 0,
            newest: 0,
            last_point: None,
        }
    }

    fn events(&mut self, block: Cursor<'_>, each: &mut impl FnMut(&Event<'_>)) -> Result<()> {
        let mut blobs = Blobs::of(block, self.old.is_some())?;
        while let Some((header, payload)) = blobs.next()? {
            self.event(&header, payload, each)?;
        }
        self.summary.misplaced += blobs.outside;
        Ok(())
    }

    fn old_types(&mut self, block: Cursor<'_>) -> Result<()> {
        let mut blobs = Blobs::of(block, true)?;
        while let Some((_, payload)) = blobs.next()? {
            let (number, of) = old_types::event_type(payload)?;
            self.tables.add_type(number, of, payload.position())?;
        }
        Ok(())
    }

    fn event(
        &mut self,
        header: &Header,
        payload: Cursor<'_>,
        each: &mut impl FnMut(&Event<'_>),
    ) -> Result<()> {
        let position = header.position;
        let malformed = |what| ReadError::Malformed { what, position };
        if header.time < self.oldest {
            return Err(malformed("an event that is older than what is before it may be"));
        }
        if header.is_sorted {
            self.oldest = header.time;
        }
        self.newest = self.newest.max(header.time);
        if let Some(pid) = self.old {
            self.tables.old_thread(header.thread, pid, position)?;
            self.tables.old_thread(header.recorder, pid, position)?;
        }
        let recorder = self.tables.thread(header.recorder, position)?;
        if header.time < recorder.last_time {
            return Err(malformed("a thread's event that is older than the one before"));
        }
        recorder.last_time = header.time;
        // The event itself is one of them.
        let missing = recorder.advance(header.sequence).unwrap_or(1).wrapping_sub(1);
        self.lose(missing, position)?;
        let activities = activities(header);
        let tables = &self.tables;
        let missing = malformed("an event of a type, or of a thread, that is not there");
        let (Some(event_type), Some(recorder)) =
            (tables.types.get(&header.metadata), tables.threads.get(&header.thread))
        else {
            return Err(missing);
        };
        let (labels, label_list) = if activities.is_empty() {
            tables.label_list(header.labels, position)?
        } else {
            (activities.as_slice(), None)
        };
        let (stack, stack_position) = tables.stack(header.stack, position)?;
        self.summary.events += 1;
        each(&Event {
            event_type,
            time: header.time,
            thread: &recorder.thread,
            processor: header.processor,
            labels,
            label_list,
            stack,
            stack_position,
            pointer_size: self.pointer_size,
            payload: payload.rest(),
            position: payload.position(),
        });
        Ok(())
    }

    /// Counts events by how many numbers are missing before that place.
    fn lose(&mut self, missing: u32, position: u64) -> Result<()> {
        if missing > i32::MAX as u32 {
            if self.old.is_some() {
                // There a new thread may have the id of one that has ended, and begins anew.
                return Ok(());
            }
            return Err(ReadError::Malformed {
                what: "a thread's events with numbers that go back",
                position,
            });
        }
        self.summary.lost += u64::from(missing);
        Ok(())
    }

    /// Takes account of how many events a thread must have had by now.
    fn check_thread(&mut self, block: &mut Cursor<'_>) -> Result<u64> {
        let position = block.position();
        let (index, sequence) = match self.old {
            Some(pid) => {
                let (index, sequence) = (block.u64()?, block.u32()?);
                self.tables.old_thread(index, pid, position)?;
                (index, sequence)
            }
            None => (block.varuint()?, block.varuint32()?),
        };
        let missing = self.tables.thread(index, position)?.advance(sequence).unwrap_or_default();
        self.lose(missing, position)?;
        Ok(index)
    }

    fn sequence_point(&mut self, mut block: Cursor<'_>) -> Result<()> {
        const FORGET_THREADS: u32 = 1;
        const FORGET_TYPES: u32 = 2;
        let start = block;
        let time = block.u64()?;
        let flags = if self.old.is_some() { 0 } else { block.u32()? };
        let count = block.u32()?;
        if self.last_point.is_some_and(|last| time < last) {
            return Err(start.malformed("a sequence point that is older than the one before it"));
        }
        self.summary.misplaced += u64::from(time < self.newest);
        if flags & !(FORGET_THREADS | FORGET_TYPES) != 0 {
            return Err(start.malformed("a sequence point with a flag that does not exist"));
        }
        for _ in 0..count {
            self.check_thread(&mut block)?;
        }
        if !block.is_empty() {
            return Err(block.malformed("more in a block than it tells of"));
        }
        (self.oldest, self.newest, self.last_point) = (time, time, Some(time));
        self.summary.sequence_points += 1;
        self.tables.forget();
        if flags & FORGET_THREADS != 0 {
            self.tables.threads.clear();
        }
        if flags & FORGET_TYPES != 0 {
            self.tables.types.clear();
        }
        Ok(())
    }

    fn remove_threads(&mut self, mut block: Cursor<'_>) -> Result<()> {
        while !block.is_empty() {
            let index = self.check_thread(&mut block)?;
            self.tables.threads.remove(&index);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of day is what `date -u` says.
    #[test]
    fn only_dates_that_exist_are_times() {
        assert_eq!(milliseconds([2025, 6, 0, 15, 15, 6, 40, 123]), Some(1_750_000_000_123));
        assert_eq!(milliseconds([2025, 6, 6, 15, 15, 6, 40, 123]), Some(1_750_000_000_123), "from Monday");
        assert_eq!(milliseconds([2000, 2, 2, 29, 0, 0, 0, 0]), Some(951_782_400_000));
        for (year, month, day) in
            [(1970, 14, 0), (1970, 13, 1), (1970, 0, 1), (1970, 1, 0), (2023, 2, 29), (0, 0, 0)]
        {
            for weekday in 0..7 {
                assert_eq!(milliseconds([year, month, weekday, day, 0, 0, 0, 0]), None);
            }
        }
        assert_eq!(milliseconds([u16::MAX; 8]), None);
    }
}
