//! Headers of events, in their two forms.

use super::ReadError;
use super::cursor::Cursor;

type Result<T> = std::result::Result<T, ReadError>;

/// What is told of an event. That of the one before is where what is left out is taken from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// Where it begins in the file.
    pub(super) position: u64,
    pub(super) metadata: u32,
    pub(super) sequence: u32,
    pub(super) recorder: u64,
    pub(super) processor: u32,
    pub(super) thread: u64,
    pub(super) stack: u32,
    pub(super) time: u64,
    pub(super) labels: u32,
    /// Before version 6 there are these instead of labels: of the activity, and of a related one.
    pub(super) activities: [[u8; 16]; 2],
    /// Whether no later event is older.
    pub(super) is_sorted: bool,
    pub(super) payload: u32,
}

/// Reads a header with nothing left out.
pub(super) fn whole(cursor: &mut Cursor<'_>, is_old: bool) -> Result<Header> {
    const SORTED: u32 = 1 << 31;
    let start = *cursor;
    let size = cursor.u32()?;
    let before = cursor.len();
    let metadata = cursor.u32()?;
    let sequence = cursor.u32()?;
    let (thread, recorder) = (cursor.u64()?, cursor.u64()?);
    let (processor, stack) = (cursor.u32()?, cursor.u32()?);
    let time = cursor.u64()?;
    let (activities, labels) =
        if is_old { ([cursor.array()?, cursor.array()?], 0) } else { ([[0; 16]; 2], cursor.u32()?) };
    let payload = cursor.u32()?;
    if u64::from(size) != (before - cursor.len()) as u64 + u64::from(payload) {
        return Err(start.malformed("an event of another size than it says"));
    }
    Ok(Header {
        position: start.position(),
        metadata: metadata & !SORTED,
        sequence,
        recorder,
        processor,
        thread,
        stack,
        time,
        labels,
        activities,
        is_sorted: metadata & SORTED != 0,
        payload,
    })
}

/// Reads a header in which much is left out.
pub(super) fn compressed(cursor: &mut Cursor<'_>, before: &Header, is_old: bool) -> Result<Header> {
    let start = *cursor;
    let flags = cursor.u8()?;
    if !is_old && flags & 1 << 5 != 0 {
        return Err(start.malformed("an event with a flag that does not exist"));
    }
    let has = |bit: u32| flags & 1 << bit != 0;
    let mut now = Header { position: start.position(), ..*before };
    if has(0) {
        now.metadata = cursor.varuint32()?;
    }
    if has(1) {
        now.sequence = now.sequence.wrapping_add(cursor.varuint32()?);
        now.recorder = cursor.varuint()?;
        now.processor = cursor.varuint32()?;
    }
    // Types of events, which old files have as events of no type, are not numbered.
    let is_numbered = !is_old || now.metadata != 0;
    now.sequence = now.sequence.wrapping_add(is_numbered.into());
    if has(2) {
        now.thread = cursor.varuint()?;
    }
    if has(3) {
        now.stack = cursor.varuint32()?;
    }
    // A block of several threads' events goes back in time.
    now.time = now.time.wrapping_add(cursor.varuint()?);
    if has(4) && !is_old {
        now.labels = cursor.varuint32()?;
    }
    for (activity, bit) in now.activities.iter_mut().zip([4, 5]) {
        if is_old && has(bit) {
            *activity = cursor.array()?;
        }
    }
    now.is_sorted = has(6);
    if has(7) {
        now.payload = cursor.varuint32()?;
    }
    Ok(now)
}
