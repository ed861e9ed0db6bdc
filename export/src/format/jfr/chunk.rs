//! Events in, chunks out. A chunk has its own constants and can be read without the others. It is kept until it is whole, since its
//! head says how large it is.

use std::io::{self, Write};

use collector_common::ids::Nanos;
use collector_common::record::ClockAnchor;

use super::constants::Constants;
use super::wire::{long, size};

/// Bytes of events and constants that are kept before they go out.
const LARGEST: usize = 8 << 20;

const HEADER: u64 = 68;

/// Ticks of the clock in a second: times are nanoseconds.
const FREQUENCY: u64 = 1_000_000_000;

const VERSION: [u8; 4] = [0, 2, 0, 0];

/// Numbers are of variable length.
const FEATURES: [u8; 4] = [0, 0, 0, 1];

/// Events on their way into chunks.
pub(super) struct Chunks<'a> {
    out: &'a mut dyn Write,
    anchor: ClockAnchor,
    /// The event that tells the types.
    metadata: Vec<u8>,
    pub(super) constants: Constants<'a>,
    events: Vec<u8>,
    /// Of an event: what is behind its size.
    content: Vec<u8>,
    /// The first and the last time in the chunk.
    span: Option<(Nanos, Nanos)>,
}

impl<'a> Chunks<'a> {
    pub(super) fn new(
        out: &'a mut dyn Write,
        anchor: ClockAnchor,
        metadata: Vec<u8>,
        constants: Constants<'a>,
    ) -> Self {
        Self { out, anchor, metadata, constants, events: Vec::new(), content: Vec::new(), span: None }
    }

    /// Adds an event: `fields` writes what is behind the time.
    pub(super) fn event(
        &mut self,
        type_id: u64,
        time: Nanos,
        fields: impl FnOnce(&mut Vec<u8>, &mut Constants<'a>),
    ) -> io::Result<()> {
        if self.events.len() + self.constants.len() >= LARGEST {
            self.flush()?;
        }
        self.include(time);
        self.content.clear();
        long(&mut self.content, type_id);
        long(&mut self.content, time.0);
        fields(&mut self.content, &mut self.constants);
        size(&mut self.events, self.content.len() as u64);
        self.events.extend_from_slice(&self.content);
        Ok(())
    }

    fn include(&mut self, time: Nanos) {
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some((first, last)) = self.span.take() else { return Ok(()) };
        let pieces = self.constants.event(first.0);
        let mut constants = Vec::new();
        size(&mut constants, pieces.iter().map(|piece| piece.as_ref().len() as u64).sum());
        let constants_size = pieces.iter().fold(constants.len(), |sum, piece| sum + piece.as_ref().len());
        let at_events = HEADER + self.metadata.len() as u64;
        let at_constants = at_events + self.events.len() as u64;
        let head = [
            at_constants + constants_size as u64,
            at_constants,
            HEADER,
            // Times have a sign there.
            i64::try_from(self.anchor.unix_at(first)).unwrap_or(0).cast_unsigned(),
            last.0 - first.0,
            first.0,
            FREQUENCY,
        ];
        self.out.write_all(b"FLR\0")?;
        self.out.write_all(&VERSION)?;
        for number in head {
            self.out.write_all(&number.to_be_bytes())?;
        }
        self.out.write_all(&FEATURES)?;
        self.out.write_all(&self.metadata)?;
        self.out.write_all(&self.events)?;
        self.out.write_all(&constants)?;
        for piece in pieces {
            self.out.write_all(piece.as_ref())?;
        }
        self.events.clear();
        self.constants.clear();
        Ok(())
    }

    /// Writes the rest. The recording lasts to `end` at least.
    pub(super) fn end(mut self, end: Nanos) -> io::Result<()> {
        if let Some((first, _)) = self.span {
            self.include(end.max(first));
        }
        self.flush()?;
        self.out.flush()
    }
}
