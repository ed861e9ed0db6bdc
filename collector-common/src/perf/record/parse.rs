//! From a record's bytes to its fields, and back.

use thiserror::Error;

use super::{Context, Misc, RawRecord, Record, RecordKind, SampleId, Switch, Visitor};
use crate::perf::fields::Fields;
use crate::perf::write::{WriteError, Writer};
use crate::perf::{Bytes, ParseConfig, Sample};

/// Why a record could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The record ends before its fields do: its event has other attributes than were given, or it is damaged.
    #[error("perf record of type {} ends after {len} bytes, in the field at byte {at}", .kind.0)]
    CutOff {
        /// The record's type.
        kind: RecordKind,
        /// Bytes there were behind the header.
        len: usize,
        /// Where the field begins that is not whole.
        at: usize,
    },
}

/// A record whose fields have been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<'a> {
    /// The bits of its header.
    pub misc: Misc,
    /// Its fields.
    pub record: Record<'a>,
    /// When and where it was written; for a sample, the same parts of the sample.
    pub sample_id: SampleId,
    /// Bytes between the fields known here and the sample id: fields that a newer kernel has added. Those of
    /// [`Record::Other`] are in it.
    pub rest: Bytes<'a>,
}

impl<'a> RawRecord<'a> {
    /// Reads the record's fields. `config` is that of the event that it came from; a [`Record::Other`] is never an
    /// error.
    ///
    /// # Errors
    /// When the record is too short for its fields.
    #[inline]
    pub fn parse(&self, config: &ParseConfig) -> Result<Parsed<'a>, ParseError> {
        // What is returned is filled in where it lies: a sample is large enough for its moves to cost more than its reading.
        let mut result = Ok(Parsed {
            misc: self.misc,
            record: Record::Switch(Switch),
            sample_id: SampleId::default(),
            rest: Bytes::default(),
        });
        let mut fields = Fields::new(self.body, config.byte_order);
        if let Ok(parsed) = &mut result
            && self.fill(parsed, &mut fields, config).is_none()
        {
            result = Err(ParseError::CutOff {
                kind: self.kind,
                len: self.body.len(),
                at: self.body.len().saturating_sub(fields.rest.len()),
            });
        }
        result
    }

    #[inline]
    fn fill(&self, parsed: &mut Parsed<'a>, fields: &mut Fields<'a>, config: &ParseConfig) -> Option<()> {
        if self.kind != RecordKind::SAMPLE {
            return self.fill_other(parsed, fields, config);
        }
        parsed.record = Record::Sample(Sample::default());
        if let Record::Sample(sample) = &mut parsed.record {
            sample.fill(fields, config)?;
            parsed.sample_id = sample.sample_id();
            parsed.rest = fields.rest;
        }
        Some(())
    }

    fn fill_other(
        &self,
        parsed: &mut Parsed<'a>,
        fields: &mut Fields<'a>,
        config: &ParseConfig,
    ) -> Option<()> {
        if self.kind.may_be_too_long() {
            parsed.record.fill(self, fields, config)?;
            parsed.sample_id = SampleId::read(fields, config)?;
            return Some(());
        }
        let id = if self.kind.is_of_kernel() { config.sample_id_size() } else { 0 };
        let own = self.body.len().checked_sub(id).and_then(|own| self.body.split_at_checked(own));
        if !self.kind.is_known() {
            parsed.record = Record::Other(*self);
            if let Some((_, id)) = own
                && self.kind.is_of_kernel()
            {
                let id = SampleId::read(&mut Fields::new(id, config.byte_order), config);
                parsed.sample_id = id.unwrap_or_default();
            }
            return Some(());
        }
        let (own, id) = own.unwrap_or((Bytes::default(), Bytes::default()));
        fields.rest = own;
        parsed.record.fill(self, fields, config)?;
        parsed.rest = fields.rest;
        fields.rest = id;
        parsed.sample_id = SampleId::read(fields, config)?;
        Some(())
    }
}

impl Parsed<'_> {
    /// Appends the record to `out`, header and all, as an event with this `config` has it. What a record was read
    /// from is written again byte for byte if it was read with the same `config`, but for bytes that are not in use
    /// and for those that the kernel leaves behind some of its records.
    ///
    /// # Errors
    /// When the event needs more than the record has, or the record is too long. `out` is as it was, then.
    pub fn write(&self, config: &ParseConfig, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let start = out.len();
        let written = self.append(config, out);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    fn append(&self, config: &ParseConfig, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let start = out.len();
        let mut writer = Writer::new(out, config.byte_order);
        writer.u32(self.record.kind().0);
        writer.u16(self.record.misc(self.misc, config).0);
        let size_at = writer.len();
        writer.u16(0);
        self.record.write(&mut writer, config)?;
        writer.bytes(self.rest);
        if !matches!(self.record, Record::Sample(_) | Record::Other(_)) {
            self.sample_id.write(&mut writer, config)?;
        }
        let size = writer.len() - start;
        writer.set_u16(size_at, u16::try_from(size).map_err(|_| WriteError::TooLong(size))?);
        Ok(())
    }

    /// Calls the visitor's method for this record's type.
    ///
    /// # Errors
    /// The visitor's own.
    pub fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), V::Error> {
        let Self { misc, record, sample_id, .. } = self;
        record.visit(&Context { record, misc: *misc, sample_id }, visitor)
    }
}
