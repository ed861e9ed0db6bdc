//! What BPF programs say of themselves (Linux 6.17).

use super::{UserBody, write_text};
use crate::perf::fields::Fields;
use crate::perf::write::Writer;
use crate::perf::{Bytes, Misc, Text};

/// `PERF_RECORD_BPF_METADATA`: the variables of a BPF program whose names begin with `bpf_metadata_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BpfMetadata<'a> {
    /// The program, as the kernel names its code: `bpf_prog_TAG_NAME`.
    pub program: Text<'a>,
    entries: Bytes<'a>,
}

/// A variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BpfMetadataEntry<'a> {
    /// Its name, without `bpf_metadata_`.
    pub key: Text<'a>,
    /// Its value.
    pub value: Text<'a>,
}

/// `BPF_PROG_NAME_LEN`, which is `KSYM_NAME_LEN`.
const PROGRAM: usize = 512;

/// `BPF_METADATA_KEY_LEN`
const KEY: usize = 64;

/// `BPF_METADATA_VALUE_LEN`
const VALUE: usize = 256;

impl<'a> BpfMetadata<'a> {
    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = BpfMetadataEntry<'a>> + use<'a> {
        let mut rest = self.entries;
        std::iter::from_fn(move || {
            let (key, behind) = rest.split_at_checked(KEY)?;
            let (value, behind) = behind.split_at_checked(VALUE)?;
            rest = behind;
            Some(BpfMetadataEntry { key: Text::from_field(key), value: Text::from_field(value) })
        })
    }
}

impl<'a> UserBody<'a> for BpfMetadata<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        let program = Text::from_field(fields.bytes(PROGRAM)?);
        let count = fields.u64()?;
        let entries = fields.bytes_of(count.checked_mul((KEY + VALUE) as u64)?)?;
        Some(Self { program, entries })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        write_text(writer, self.program, PROGRAM);
        writer.u64((self.entries.len() / (KEY + VALUE)) as u64);
        writer.bytes(self.entries);
    }
}
