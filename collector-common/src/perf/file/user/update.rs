//! What else is known of an event (Linux 4.5).

use super::{CpuMap, UserBody};
use crate::perf::fields::Fields;
use crate::perf::write::Writer;
use crate::perf::{Misc, Text};

/// `PERF_RECORD_EVENT_UPDATE`: something about an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventUpdate<'a> {
    /// One of the event's ids.
    pub id: u64,
    /// What it is.
    pub update: Update<'a>,
}

/// What is said of an event, `PERF_EVENT_UPDATE__*`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Update<'a> {
    /// The unit of its values.
    Unit(Text<'a>),
    /// What its values are multiplied with.
    Scale(f64),
    /// What `perf` calls it.
    Name(Text<'a>),
    /// The CPUs on which it can count.
    Cpus(CpuMap<'a>),
}

impl<'a> UserBody<'a> for EventUpdate<'a> {
    fn read(fields: &mut Fields<'a>, misc: Misc) -> Option<Self> {
        let (kind, id) = (fields.u64()?, fields.u64()?);
        let update = match kind {
            0 => Update::Unit(Text::from_field(fields.remaining())),
            1 => Update::Scale(f64::from_bits(fields.u64()?)),
            2 => Update::Name(Text::from_field(fields.remaining())),
            3 => Update::Cpus(CpuMap::read(fields, misc)?),
            _ => return None,
        };
        Some(Self { id, update })
    }

    fn write(&self, writer: &mut Writer<'_>, misc: Misc) {
        writer.u64(match self.update {
            Update::Unit(_) => 0,
            Update::Scale(_) => 1,
            Update::Name(_) => 2,
            Update::Cpus(_) => 3,
        });
        writer.u64(self.id);
        match self.update {
            Update::Unit(text) | Update::Name(text) => writer.text(text),
            Update::Scale(scale) => writer.u64(scale.to_bits()),
            Update::Cpus(cpus) => cpus.write(writer, misc),
        }
    }
}
