//! The threads that are recorded (Linux 4.5).

use super::{UserBody, write_text};
use crate::perf::fields::Fields;
use crate::perf::write::Writer;
use crate::perf::{ByteOrder, Bytes, Misc, Text};

/// `PERF_RECORD_THREAD_MAP`: the threads.
#[derive(Clone, Copy, Debug)]
pub struct ThreadMap<'a> {
    entries: Bytes<'a>,
    order: ByteOrder,
}

/// A thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadMapEntry<'a> {
    /// Its id, or -1: any.
    pub tid: i64,
    /// Its name, or nothing.
    pub name: Text<'a>,
}

/// Bytes of a name.
const NAME: usize = 16;

impl<'a> ThreadMap<'a> {
    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = ThreadMapEntry<'a>> + use<'a> {
        let mut fields = Fields::new(self.entries, self.order);
        std::iter::from_fn(move || {
            let tid = fields.u64()? as i64;
            Some(ThreadMapEntry { tid, name: Text::from_field(fields.bytes(NAME)?) })
        })
    }
}

impl PartialEq for ThreadMap<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ThreadMap<'_> {}

impl<'a> UserBody<'a> for ThreadMap<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        let count = fields.u64()?;
        let entries = fields.bytes_of(count.checked_mul(8 + NAME as u64)?)?;
        Some(Self { entries, order: fields.order })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        writer.u64((self.entries.len() / (8 + NAME)) as u64);
        for entry in self.iter() {
            writer.u64(entry.tid as u64);
            write_text(writer, entry.name, NAME);
        }
    }
}
