//! Records as they are taken out of the rings.

use collector_common::perf::{Bytes, ParseConfig, RawRecord, Record, RecordKind};

use super::account::Counts;
use super::attributes::{ALWAYS, Kind};
use super::events::Cpu;
use super::throttled::Throttled;
use super::twice::{Taken, Told};
use crate::records::decode::Decoder;
use crate::source::sideband::LAYOUT;
use crate::source::{EventIndex, RELEASED, SourceRecord};
use crate::sys::perf_ring::Waiting;

/// Bytes of a number that each sample begins with.
const WORD: usize = 8;

/// A CPU's waiting records, with what they change of it.
pub(super) struct Cursor<'a> {
    waiting: Waiting<'a>,
    counts: &'a mut Counts,
    /// Where threads may have two events of a kind.
    taken: Option<&'a mut Taken>,
    throttled: &'a mut Throttled,
}

impl<'a> Cursor<'a> {
    pub(super) fn of(cpu: &'a mut Cpu) -> Self {
        let Cpu { shared, counts, taken, throttled, .. } = cpu;
        let taken = shared.events.iter().any(|opened| opened.may_be_second).then_some(taken);
        Self { waiting: shared.ring.waiting(), counts, taken, throttled }
    }

    /// When the oldest record was written. What is too short to tell is taken at once.
    pub(super) fn time(&self) -> Option<u64> {
        /// Behind the event's number, process and thread.
        const IN_SAMPLE: usize = 2 * WORD;
        /// The last four numbers are process and thread, time, CPU, the event's.
        const BEFORE_END: usize = 3 * WORD;
        let RawRecord { kind, body, .. } = self.waiting.peek()?;
        let at = if kind == RecordKind::SAMPLE { IN_SAMPLE } else { body.len().saturating_sub(BEFORE_END) };
        Some(word(&body, at).unwrap_or(0))
    }

    /// Frees the room of the oldest record.
    pub(super) fn advance(&mut self) {
        self.waiting.advance();
    }
}

/// The number at a place.
fn word(body: &Bytes<'_>, at: usize) -> Option<u64> {
    let mut word = [0; WORD];
    let (_, from) = body.split_at_checked(at)?;
    (from.copy_to(&mut word) == WORD).then(|| u64::from_ne_bytes(word))
}

/// The pid of what runs outside of the pid namespace that the events were opened in. In the machine's own it is the idle
/// task's. What has been released can't be told from it: tracepoints tell its number in the machine's.
const NOBODY: u32 = 0;

/// The event of a record.
pub(super) struct Named<'a> {
    /// Of its kind.
    pub(super) position: usize,
    pub(super) kind: &'a Kind,
    pub(super) may_be_second: bool,
}

/// Takes records, and counts what it meets.
pub(super) struct Reader {
    decoder: Decoder,
    /// Nothing is known of processes outside of this pid namespace.
    leaves_out_nobodys: bool,
    left_out: u64,
    bytes_copied: u64,
}

impl Reader {
    pub(super) fn new() -> Self {
        let in_initial = crate::doctor::in_initial_pid_namespace();
        Self {
            decoder: Decoder::new(in_initial),
            leaves_out_nobodys: !in_initial,
            left_out: 0,
            bytes_copied: 0,
        }
    }

    /// Takes the oldest record of a CPU. `event_of` knows the events by their numbers.
    pub(super) fn take<'k>(
        &mut self,
        cursor: &mut Cursor<'_>,
        event_of: impl FnOnce(u64) -> Option<Named<'k>>,
        visit: &mut dyn FnMut(&SourceRecord<'_>),
    ) {
        let Some(raw) = cursor.waiting.peek() else { return };
        if raw.kind == RecordKind::SAMPLE {
            let id = word(&raw.body, 0).unwrap_or(0);
            let named = event_of(id);
            let parsed = named.as_ref().and_then(|named| Some(raw.parse(&named.kind.layout).ok()?.record));
            let record = match (&parsed, named) {
                (Some(Record::Sample(sample)), Some(named)) => {
                    let record = self.decoder.decode(named.kind.index, raw.misc, sample);
                    record.map(|record| (named, record))
                }
                _ => None,
            };
            let Some((Named { position: kind, may_be_second, .. }, record)) = record else {
                cursor.counts.is_malformed(1);
                return;
            };
            cursor.counts.hand_over(kind, record.value);
            let told = Told { id, tid: record.header.tid, time: record.header.time, kind, may_be_second };
            if cursor.taken.as_mut().is_some_and(|taken| taken.is_told_twice(told)) {
                return;
            }
            if self.leaves_out_nobodys && (record.header.pid == NOBODY || record.header.tid == RELEASED) {
                self.left_out += 1;
                return;
            }
            self.bytes_copied += record.stack.len() as u64;
            visit(&record);
            return;
        }
        match raw.parse(&OTHERS).map(|parsed| parsed.record) {
            Ok(Record::Lost(lost)) => cursor.counts.lost_is_told(lost.count),
            Ok(Record::Throttle(throttling)) => match event_of(throttling.id) {
                Some(named) if named.kind.index != EventIndex::CLOCK => {
                    cursor.counts.throttle(named.position);
                }
                _ => cursor.throttled.begin(&throttling),
            },
            Ok(Record::Unthrottle(throttling)) => cursor.throttled.end(&throttling),
            Ok(_) => {}
            Err(_) => cursor.counts.is_malformed(1),
        }
    }

    /// Records of processes that this pid namespace does not have.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Bytes of user stack in what was handed over.
    pub(super) fn bytes_copied(&self) -> u64 {
        self.bytes_copied
    }
}

/// How all records but samples are laid out, whichever event they are of.
const OTHERS: ParseConfig = ParseConfig { sample_type: ALWAYS, ..LAYOUT };
