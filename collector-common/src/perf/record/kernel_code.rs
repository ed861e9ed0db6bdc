//! Code that the kernel gets, loses or changes while it runs.
//!
//! The records here may be longer than what was written of them: of several events that are told of one, each but
//! the first gets a record that is longer by a sample id than that of the event before, with bytes of earlier records at
//! its end (`perf_event_ksymbol_output`, `perf_event_bpf_output` and `perf_event_text_poke_output` of
//! `kernel/events/core.c` add to one header's size for all of them). So their end is found from their start.

use super::Body;
use crate::ids::Avma;
use crate::perf::bits::bit_set;
use crate::perf::fields::Fields;
use crate::perf::write::{WriteError, Writer};
use crate::perf::{Bytes, Misc, ParseConfig, Text};

bit_set! {
    /// `PERF_RECORD_KSYMBOL_FLAGS_*`
    KsymbolFlags(u16) {
        /// It is gone; else it is new.
        UNREGISTER = 0;
    }
}

/// `PERF_RECORD_KSYMBOL`: code was added to the kernel, or removed (Linux 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ksymbol<'a> {
    /// First address.
    pub start: Avma,
    /// Bytes.
    pub len: u32,
    /// `PERF_RECORD_KSYMBOL_TYPE_*`: 1 a BPF program, 2 code out of line such as a kprobe's.
    pub kind: u16,
    /// Whether it was added or removed.
    pub flags: KsymbolFlags,
    /// Its name.
    pub name: Text<'a>,
}

impl<'a> Body<'a> for Ksymbol<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc, config: &ParseConfig) -> Option<Self> {
        let (start, len) = (fields.address()?, fields.u32()?);
        let (kind, flags) = (fields.u16()?, KsymbolFlags(fields.u16()?));
        let field = (fields.rest.until_nul().len() + 1).next_multiple_of(8);
        let most = fields.rest.len().checked_sub(config.sample_id_size())?;
        let name = Text::from_field(fields.bytes(field.min(most))?);
        Some(Self { start, len, kind, flags, name })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.address(self.start);
        writer.u32(self.len);
        writer.u16(self.kind);
        writer.u16(self.flags.0);
        writer.text(self.name);
        Ok(())
    }
}

/// `PERF_RECORD_BPF_EVENT`: a BPF program was loaded or unloaded (Linux 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BpfEvent {
    /// `PERF_BPF_EVENT_*`: 1 loaded, 2 unloaded.
    pub kind: u16,
    /// None are in use.
    pub flags: u16,
    /// The program's id.
    pub id: u32,
    /// The program's tag.
    pub tag: [u8; 8],
}

impl<'a> Body<'a> for BpfEvent {
    fn read(fields: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        Some(Self { kind: fields.u16()?, flags: fields.u16()?, id: fields.u32()?, tag: fields.array()? })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.u16(self.kind);
        writer.u16(self.flags);
        writer.u32(self.id);
        writer.bytes(Bytes::from(&self.tag));
        Ok(())
    }
}

/// `PERF_RECORD_TEXT_POKE`: the kernel's code was changed (Linux 5.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPoke<'a> {
    /// Where.
    pub address: Avma,
    /// What was there; nothing if the code is new.
    pub old: Bytes<'a>,
    /// What is there now; nothing if the code is gone.
    pub new: Bytes<'a>,
}

impl<'a> Body<'a> for TextPoke<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        let address = fields.address()?;
        let (old_len, new_len) = (usize::from(fields.u16()?), usize::from(fields.u16()?));
        let (old, new) = (fields.bytes(old_len)?, fields.bytes(new_len)?);
        fields.bytes(fill(old_len + new_len))?;
        Some(Self { address, old, new })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.address(self.address);
        for code in [self.old, self.new] {
            writer.u16(u16::try_from(code.len()).map_err(|_| WriteError::TooLong(code.len()))?);
        }
        writer.bytes(self.old);
        writer.bytes(self.new);
        writer.zeros(fill(self.old.len() + self.new.len()));
        Ok(())
    }
}

/// Zeros behind `len` bytes of code, which begin 4 bytes behind a multiple of 8 and end at one.
fn fill(len: usize) -> usize {
    (len + 4).next_multiple_of(8) - (len + 4)
}
