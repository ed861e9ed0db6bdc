//! Samples side by side, a column per field: of each column the upper bytes that all have in common are there once, the others for each.
//!
//! ```text
//! header                                   columns, as many numbers of so many bytes as there are samples      8 bytes more
//! [common: u64 of each][width: u8 of each] [time ...][thread ...][stack ...][cpu][kind][value ...][...][...]   [0; 8]
//! ```
//!
//! Thus times take 5 bytes as long as a chunk lasts less than 18 minutes, values that are all 1 take none, and any sample can be had
//! without those before it. Numbers are little-endian; those of values that may be negative are in zigzag order. Chunks go into a file as
//! they are, and what comes back is looked at before it is used.

use crate::ids::Nanos;
use crate::intern::StackId;
use crate::record::{AttributeListId, EventRecordId, Sample, SampleKindId, ThreadId};

/// Samples of a chunk.
pub(super) const ROWS: usize = 4096;

/// Fields of a sample, and the raw event that it is of.
const COLUMNS: usize = 8;

/// The columns that others ask for by themselves.
const TIME: usize = 0;
const VALUE: usize = 5;
const RECORD: usize = 7;

/// Bytes of a header.
const HEADER: usize = COLUMNS * 9;

/// A number of any width is read as 8 bytes.
const BEHIND: usize = 8;

/// A sample, with the raw event that it is of plus 1; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) sample: Sample,
    record: u32,
}

impl Row {
    pub(super) fn new(sample: &Sample) -> Self {
        Self { sample: *sample, record: 0 }
    }

    pub(super) fn record(&self) -> Option<EventRecordId> {
        self.record.checked_sub(1).map(EventRecordId)
    }

    pub(super) fn set_record(&mut self, record: EventRecordId) {
        self.record = record.0.saturating_add(1);
    }

    #[inline]
    fn numbers(&self) -> [u64; COLUMNS] {
        let Sample { time, thread, stack, cpu, kind, value, attributes } = self.sample;
        let [thread, stack, attributes] = [thread.0, stack.0, attributes.0].map(u64::from);
        [time.0, thread, stack, cpu.into(), kind.0.into(), zigzag(value), attributes, self.record.into()]
    }
}

#[inline]
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

#[inline]
fn from_zigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Where a column is, and what its numbers have in common.
#[derive(Clone, Copy, Debug, Default)]
struct Column {
    common: u64,
    /// The bits that differ.
    mask: u64,
    start: usize,
    width: usize,
}

/// [`ROWS`] samples.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    columns: [Column; COLUMNS],
    /// The header, the columns and what is behind them.
    bytes: Box<[u8]>,
}

impl Chunk {
    /// Packs [`ROWS`] samples.
    pub(super) fn pack(rows: &[Row]) -> Self {
        Self::pack_with(rows, 0)
    }

    /// The same, with so many more bytes for values than these need.
    fn pack_with(rows: &[Row], more_of_values: usize) -> Self {
        let first = rows.first().copied().unwrap_or_default().numbers();
        let mut differing = [0; COLUMNS];
        for row in rows {
            let numbers = row.numbers();
            (0..COLUMNS).for_each(|at| differing[at] |= first[at] ^ numbers[at]);
        }
        let mut widths = differing.map(|bits: u64| (u64::BITS - bits.leading_zeros()).div_ceil(8) as usize);
        widths[VALUE] = (widths[VALUE] + more_of_values).min(8);
        let (columns, length) = columns(first, widths);
        let mut bytes = vec![0; length].into_boxed_slice();
        for (at, column) in columns.iter().enumerate() {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&column.common.to_le_bytes());
            bytes[COLUMNS * 8 + at] = column.width as u8;
        }
        let mut chunk = Self { columns, bytes };
        // In this order: what is too much of a number's 8 bytes is where the next one is going to be.
        chunk.fill::<0>(rows);
        chunk.fill::<1>(rows);
        chunk.fill::<2>(rows);
        chunk.fill::<3>(rows);
        chunk.fill::<4>(rows);
        chunk.fill::<5>(rows);
        chunk.fill::<6>(rows);
        chunk.fill::<7>(rows);
        chunk
    }

    /// Writes a column whose number is known when this is compiled, so that nothing else of the rows is looked at.
    fn fill<const COLUMN: usize>(&mut self, rows: &[Row]) {
        let Column { mask, start, width, .. } = self.columns[COLUMN];
        if width == 0 {
            return;
        }
        for (row, place) in rows.iter().zip((start..).step_by(width)) {
            let number = row.numbers()[COLUMN] & mask;
            self.bytes[place..place + 8].copy_from_slice(&number.to_le_bytes());
        }
    }

    /// What [`Self::bytes`] gave; `None` for anything else.
    pub(super) fn parse(bytes: Box<[u8]>) -> Option<Self> {
        let header = bytes.first_chunk::<HEADER>()?;
        let (common, widths) = header.split_at(COLUMNS * 8);
        let mut numbers = [0; COLUMNS];
        for (number, bytes) in numbers.iter_mut().zip(common.chunks_exact(8)) {
            *number = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        let widths: [u8; COLUMNS] = widths.try_into().ok()?;
        if widths.iter().any(|&width| width > 8) {
            return None;
        }
        let (columns, length) = columns(numbers, widths.map(usize::from));
        (length == bytes.len()).then_some(Self { columns, bytes })
    }

    /// As it is kept in a file.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of memory that it takes.
    pub(super) fn size(&self) -> u64 {
        (self.bytes.len() + size_of::<Self>()) as u64
    }

    #[inline]
    fn number(&self, column: usize, row: usize) -> u64 {
        let Column { common, mask, start, width } = self.columns[column];
        if width == 0 {
            return common;
        }
        let place = start + row * width;
        let bytes = self.bytes.get(place..place + 8).and_then(|bytes| bytes.first_chunk());
        common | bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes)) & mask
    }

    /// A sample.
    #[inline]
    pub(super) fn sample(&self, row: usize) -> Sample {
        Sample {
            time: self.time(row),
            thread: ThreadId(self.number(1, row) as u32),
            stack: StackId(self.number(2, row) as u32),
            cpu: self.number(3, row) as u16,
            kind: SampleKindId(self.number(4, row) as u16),
            value: from_zigzag(self.number(VALUE, row)),
            attributes: AttributeListId(self.number(6, row) as u32),
        }
    }

    /// When a sample was taken.
    #[inline]
    pub(super) fn time(&self, row: usize) -> Nanos {
        Nanos(self.number(TIME, row))
    }

    /// A sample with its raw event.
    #[inline]
    pub(super) fn row(&self, row: usize) -> Row {
        Row { sample: self.sample(row), record: self.number(RECORD, row) as u32 }
    }

    /// Gives a sample another value.
    pub(super) fn set_value(&mut self, row: usize, value: i64) {
        let Column { common, mask, start, width } = self.columns[VALUE];
        let number = zigzag(value);
        if number & !mask == common {
            let place = start + row * width;
            let own = self.bytes.get_mut(place..place + width).into_iter().flatten();
            own.zip(number.to_le_bytes()).for_each(|(byte, new)| *byte = new);
            return;
        }
        let mut rows: Vec<Row> = (0..ROWS).map(|at| self.row(at)).collect();
        if let Some(row) = rows.get_mut(row) {
            row.sample.value = value;
        }
        // Where one value changes, others do: those are likely to have room then.
        *self = Self::pack_with(&rows, 1);
    }
}

/// Where columns are whose numbers are like these but for their last bytes, and bytes of the whole chunk.
fn columns(like: [u64; COLUMNS], widths: [usize; COLUMNS]) -> ([Column; COLUMNS], usize) {
    let mut columns = [Column::default(); COLUMNS];
    let mut start = HEADER;
    for ((column, width), like) in columns.iter_mut().zip(widths).zip(like) {
        let mask = u64::MAX.checked_shr(u64::BITS - 8 * width as u32).unwrap_or(0);
        *column = Column { common: like & !mask, mask, start, width };
        start += width * ROWS;
    }
    (columns, start + BEHIND)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn rows() -> impl Strategy<Value = Vec<Row>> {
        // Of each field, those that differ in some of their last bits.
        let fields = (any::<[u64; COLUMNS]>(), proptest::array::uniform8(0_u32..64), any::<u64>());
        fields.prop_map(|(common, bits, seed)| {
            let mut random = seed | 1;
            let row = |_| {
                let [time, thread, stack, cpu, kind, value, attributes, record] = [0, 1, 2, 3, 4, 5, 6, 7]
                    .map(|at| {
                        random = random.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ random >> 29;
                        common[at] ^ random >> (63 - bits[at])
                    });
                Row {
                    sample: Sample {
                        time: Nanos(time),
                        thread: ThreadId(thread as u32),
                        stack: StackId(stack as u32),
                        cpu: cpu as u16,
                        kind: SampleKindId(kind as u16),
                        value: value.cast_signed(),
                        attributes: AttributeListId(attributes as u32),
                    },
                    record: record as u32,
                }
            };
            (0..ROWS).map(row).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn rows_come_back(rows in rows(), place in 0..ROWS, values in any::<[i64; 3]>(), shift in 0_u32..64) {
            let packed = Chunk::pack(&rows);
            let mut chunk = Chunk::parse(packed.bytes().into()).unwrap();
            let read: Vec<Row> = (0..ROWS).map(|row| chunk.row(row)).collect();
            prop_assert!(read == rows);
            let mut changed = rows;
            for (value, step) in values.into_iter().zip(0..) {
                let place = (place + step * 7) % ROWS;
                chunk.set_value(place, value >> shift);
                changed[place].sample.value = value >> shift;
            }
            let read: Vec<Row> = (0..ROWS).map(|row| chunk.row(row)).collect();
            prop_assert!(read == changed);
        }

        #[test]
        fn damaged_chunks_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..100), cut in 0_usize..200, at in 0..HEADER, byte: u8) {
            let _ = Chunk::parse(bytes.into());
            let whole = Chunk::pack(&vec![Row::new(&Sample { value: 7, ..Sample::default() }); ROWS]);
            prop_assert!(Chunk::parse(whole.bytes().iter().copied().skip(cut).collect()).is_none() || cut == 0);
            let mut changed: Box<[u8]> = whole.bytes().into();
            changed[at] = byte;
            if let Some(chunk) = Chunk::parse(changed) {
                (0..ROWS).for_each(|row| _ = chunk.row(row));
            }
        }
    }

    /// 72 bytes of header, 8 behind, and for each sample what differs: 2 bytes of time and 1 of thread.
    #[test]
    fn what_all_have_in_common_is_there_once() {
        let row = |at: u32| {
            let thread = ThreadId(0xabcd_ef00 + at % 10);
            Row::new(&Sample { time: Nanos(1 << 60 | u64::from(at)), thread, value: -1, ..Sample::default() })
        };
        let rows: Vec<Row> = (0..ROWS as u32).map(row).collect();
        assert_eq!(Chunk::pack(&rows).bytes().len(), 72 + 3 * ROWS + 8);
    }
}
