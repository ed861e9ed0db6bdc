//! What of a trace is not there: what ETW lost, and what of the file can't be read.

use std::fmt;

/// Places of damage that are kept.
const MOST_PLACES: usize = 16;

/// What is wrong with a place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// No buffer can begin there.
    Buffer,
    /// The buffer tells another size than all before it, and the next one begins where it does if it has theirs. It is read.
    Size,
    /// The file ends before the buffer does.
    Cut,
    /// So many bytes as the buffer says can't be used of it; what there is, is read.
    Used,
    /// The buffer unpacks to less than it says.
    Packed,
    /// The buffer is packed, and those before it unpack to so much together that no real file of this length does. It is not read.
    Beyond,
    /// No record can be there, so that the rest of its buffer is not read.
    Record,
    /// What is in the record reaches past it; those behind it are read.
    Inside,
}

/// A place of a file that can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The byte of the file at which the buffer begins.
    pub buffer: u64,
    /// The byte of the unpacked buffer, its header included.
    pub at: u32,
    /// What is wrong.
    pub kind: DamageKind,
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { buffer, at, kind } = self;
        match kind {
            DamageKind::Buffer => write!(out, "no buffer can begin at byte {buffer}"),
            DamageKind::Size => write!(out, "the buffer at byte {buffer} tells a wrong size"),
            DamageKind::Cut => write!(out, "the file ends in the buffer at byte {buffer}"),
            DamageKind::Used => {
                write!(out, "the buffer at byte {buffer} says that it uses what it does not have")
            }
            DamageKind::Packed => {
                write!(out, "the buffer at byte {buffer} is packed, and damaged or cut at its byte {at}")
            }
            DamageKind::Beyond => write!(
                out,
                "the buffer at byte {buffer} is not read: those before it unpack to more than a file of this length can have"
            ),
            DamageKind::Record => {
                write!(out, "in the buffer at byte {buffer} there is no record at its byte {at}")
            }
            DamageKind::Inside => {
                write!(out, "in the buffer at byte {buffer} the record at its byte {at} is damaged")
            }
        }
    }
}

/// What is not there. What is found while reading is complete once all was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events that ETW lost, as the file's header says.
    pub events: u32,
    /// Buffers that ETW lost, as the file's header says.
    pub buffers: u32,
    /// Buffers that the header counts and the file does not have: it was cut, or not closed. None of a circular file, where
    /// new buffers replace old ones.
    pub missing_buffers: u64,
    /// Buffers before which, as they say themselves, events or buffers were lost.
    pub flagged_buffers: u64,
    /// Records whose header is not understood.
    pub unread_records: u64,
    /// Records that came later than one that was given before: their buffer was out of order.
    pub late_records: u64,
    /// Bytes of the file, and of buffers, that are not read because of damage.
    pub damaged_bytes: u64,
    /// How many places are damaged.
    pub damages: u64,
    /// The first of them.
    pub places: Vec<Damage>,
}

impl Losses {
    pub(super) fn damage(&mut self, damage: Damage, bytes: u64) {
        self.damages += 1;
        self.damaged_bytes = self.damaged_bytes.saturating_add(bytes);
        if self.places.len() < MOST_PLACES {
            self.places.push(damage);
        }
    }

    /// Whether all that was to be recorded is there.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
