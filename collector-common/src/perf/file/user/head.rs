//! What is in the header of a file, as the records of a stream; and records about the records themselves.

use super::UserBody;
use crate::ids::{BuildId, Pid};
use crate::perf::fields::Fields;
use crate::perf::file::Feature;
use crate::perf::write::Writer;
use crate::perf::{Attr, AttrError, ByteOrder, Bytes, Misc, Text, Words};

/// `PERF_RECORD_HEADER_ATTR`: an event, with one id for each CPU or thread that it was opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderAttr<'a> {
    attr: Bytes<'a>,
    order: ByteOrder,
    /// The ids.
    pub ids: Words<'a>,
}

impl HeaderAttr<'_> {
    /// The attributes. Nothing is allocated for those that are known here.
    ///
    /// # Errors
    /// When they make no sense.
    pub fn attr(&self) -> Result<Attr, AttrError> {
        Attr::parse(self.attr, self.order)
    }
}

impl<'a> UserBody<'a> for HeaderAttr<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        let mut front = *fields;
        let _kind = front.u32()?;
        let size = front.u32()? as usize;
        let attr = fields.bytes(size.max(Attr::FIRST_SIZE))?;
        let ids = fields.words(fields.rest.len() as u64 / 8)?;
        Some(Self { attr, order: fields.order, ids })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        match self.attr() {
            Ok(attr) if writer.order() != self.order => {
                let mut bytes = Vec::new();
                attr.write(writer.order(), &mut bytes);
                writer.bytes(Bytes::from(&bytes));
            }
            _ => writer.bytes(self.attr),
        }
        writer.words(self.ids);
    }
}

/// `PERF_RECORD_HEADER_EVENT_TYPE`: the name of an event. `perf` has not written it since 2013.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventType<'a> {
    /// The event's [`Attr::config`].
    pub config: u64,
    /// The name.
    pub name: Text<'a>,
}

impl<'a> UserBody<'a> for EventType<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        Some(Self { config: fields.u64()?, name: Text::from_field(fields.remaining()) })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        writer.u64(self.config);
        writer.text(self.name);
    }
}

/// `PERF_RECORD_HEADER_TRACING_DATA`: what [`crate::perf::file::tracepoint_formats`] reads follows the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracingData {
    /// How many bytes it has, without those that fill it up to a multiple of 8.
    pub size: u32,
}

impl<'a> UserBody<'a> for TracingData {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        Some(Self { size: fields.u32()? })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        writer.u32(self.size);
    }
}

/// `PERF_RECORD_HEADER_BUILD_ID`: the build id of a file in which samples are. The section
/// [`Feature::BUILD_ID`] is made of such records, with any type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderBuildId<'a> {
    /// The guest's process; `u32::MAX` for the host.
    pub pid: Pid,
    /// The build id; `None` if it is empty.
    pub build_id: Option<BuildId>,
    /// The file, or a name such as `[kernel.kallsyms]`.
    pub path: Text<'a>,
}

impl HeaderBuildId<'_> {
    /// `PERF_RECORD_MISC_BUILD_ID_SIZE`: the length is given. Before Linux 5.11, it was always 20.
    pub const HAS_SIZE: Misc = Misc(1 << 15);

    /// Bytes that a path is filled up to a multiple of, `NAME_ALIGN`.
    const ALIGNMENT: usize = 64;
}

impl<'a> UserBody<'a> for HeaderBuildId<'a> {
    fn read(fields: &mut Fields<'a>, misc: Misc) -> Option<Self> {
        let pid = fields.pid()?;
        let bytes: [u8; BuildId::MAX] = fields.array()?;
        let [len, _, _, _] = fields.array()?;
        let len = if misc.contains(Self::HAS_SIZE) { usize::from(len) } else { BuildId::MAX };
        let build_id = BuildId::new(bytes.get(..len).unwrap_or(&bytes));
        Some(Self { pid, build_id, path: Text::from_field(fields.remaining()) })
    }

    fn write(&self, writer: &mut Writer<'_>, misc: Misc) {
        writer.pid(self.pid);
        let id = self.build_id.as_ref().map_or(&[][..], BuildId::as_bytes);
        writer.bytes(Bytes::from(id));
        writer.zeros(BuildId::MAX - id.len());
        writer.u8(if misc.contains(Self::HAS_SIZE) { id.len() as u8 } else { 0 });
        writer.zeros(3);
        let (path, is_whole) = self.path.field();
        let len = if is_whole { path.len() } else { (path.len() + 1).next_multiple_of(Self::ALIGNMENT) };
        super::write_text(writer, self.path, len);
    }
}

/// `PERF_RECORD_FINISHED_ROUND`, all rings have been read once, and `PERF_RECORD_FINISHED_INIT` (Linux 6.0), what was
/// known at the start has been written. Neither has fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark;

impl<'a> UserBody<'a> for Mark {
    fn read(_: &mut Fields<'a>, _: Misc) -> Option<Self> {
        Some(Self)
    }

    fn write(&self, _: &mut Writer<'_>, _: Misc) {}
}

/// `PERF_RECORD_ID_INDEX`: where the events were opened that have these ids (Linux 3.19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdIndex<'a> {
    entries: Words<'a>,
    /// As many pairs, or nothing.
    guests: Words<'a>,
}

/// One id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdIndexEntry {
    /// The id.
    pub id: u64,
    /// Which of `perf`'s rings.
    pub index: u64,
    /// The CPU, or -1: any.
    pub cpu: i64,
    /// The thread, or -1: any.
    pub tid: i64,
    /// The process of the virtual machine and its CPU (Linux 6.0).
    pub guest: Option<(u64, u64)>,
}

impl<'a> IdIndex<'a> {
    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = IdIndexEntry> + use<'a> {
        let (mut entries, mut guests) = (self.entries.iter(), self.guests.iter());
        std::iter::from_fn(move || {
            Some(IdIndexEntry {
                id: entries.next()?,
                index: entries.next()?,
                cpu: entries.next()? as i64,
                tid: entries.next()? as i64,
                guest: guests.next().zip(guests.next()),
            })
        })
    }
}

impl<'a> UserBody<'a> for IdIndex<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        let count = fields.u64()?;
        let entries = fields.words(count.checked_mul(4)?)?;
        // What is too short for them is something else.
        let guests = fields.words(count.checked_mul(2)?).unwrap_or_default();
        Some(Self { entries, guests })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        writer.u64(self.entries.len() as u64 / 4);
        writer.words(self.entries);
        writer.words(self.guests);
    }
}

/// `PERF_RECORD_TIME_CONV`: how a CPU's counter becomes a time, from the `perf_event_mmap_page` of the kernel
/// (Linux 4.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeConv {
    /// How many bits the product of counter and [`Self::multiplier`] is shifted to the right.
    pub shift: u64,
    /// What the counter is multiplied with.
    pub multiplier: u64,
    /// What is added, in nanoseconds.
    pub zero: u64,
    /// For counters that wrap around (Linux 5.10).
    pub cycles: Option<TimeConvCycles>,
}

/// For counters that wrap around: the counter's value is `cycles + ((value - cycles) & mask)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeConvCycles {
    /// What the counter had.
    pub cycles: u64,
    /// The bits that it has.
    pub mask: u64,
    /// Whether [`TimeConv::zero`] holds.
    pub has_zero: bool,
    /// Whether the counter wraps around.
    pub is_short: bool,
}

impl<'a> UserBody<'a> for TimeConv {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        let (shift, multiplier, zero) = (fields.u64()?, fields.u64()?, fields.u64()?);
        if fields.rest.is_empty() {
            return Some(Self { shift, multiplier, zero, cycles: None });
        }
        let (cycles, mask) = (fields.u64()?, fields.u64()?);
        let [has_zero, is_short, ..]: [u8; 8] = fields.array()?;
        let cycles = TimeConvCycles { cycles, mask, has_zero: has_zero != 0, is_short: is_short != 0 };
        Some(Self { shift, multiplier, zero, cycles: Some(cycles) })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        for number in [self.shift, self.multiplier, self.zero] {
            writer.u64(number);
        }
        if let Some(cycles) = &self.cycles {
            writer.u64(cycles.cycles);
            writer.u64(cycles.mask);
            writer.u8(cycles.has_zero.into());
            writer.u8(cycles.is_short.into());
            writer.zeros(6);
        }
    }
}

/// `PERF_RECORD_HEADER_FEATURE`: a feature section (Linux 4.14). The one with the number that comes behind the last one of
/// its `perf` is empty and ends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderFeature<'a> {
    /// Which one.
    pub feature: Feature,
    /// What a file has in its section.
    pub section: Bytes<'a>,
}

impl<'a> UserBody<'a> for HeaderFeature<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        let feature = Feature(u32::try_from(fields.u64()?).ok()?);
        Some(Self { feature, section: fields.remaining() })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        writer.u64(self.feature.0.into());
        writer.bytes(self.section);
    }
}

/// `PERF_RECORD_COMPRESSED`: a piece of records that are packed by zstd (Linux 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressed<'a> {
    /// The piece.
    pub data: Bytes<'a>,
}

impl<'a> UserBody<'a> for Compressed<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        Some(Self { data: fields.remaining() })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        writer.bytes(self.data);
    }
}

/// `PERF_RECORD_COMPRESSED2`: as [`Compressed`], with its length, so that it can be filled up (Linux 6.16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressed2<'a> {
    /// The piece.
    pub data: Bytes<'a>,
}

impl<'a> UserBody<'a> for Compressed2<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        let size = fields.u64()?;
        Some(Self { data: fields.bytes_of(size)? })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        writer.u64(self.data.len() as u64);
        writer.bytes(self.data);
    }
}
