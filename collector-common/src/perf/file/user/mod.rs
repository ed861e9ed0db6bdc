//! The records that `perf` itself writes into its files, by their types: `enum perf_user_event_type`, types 64 to 86.
//!
//! A [`RawRecord`] comes in, and its fields come out, borrowed: nothing is allocated. What is of another type, or too short
//! for its fields, comes out as it is.
//!
//! Source: the structures `perf_record_*` of `tools/lib/perf/include/perf/event.h`; where they differ, the functions of
//! `tools/perf/util` that write and swap them. Since when there is a record is said for those that came after Linux 2.6.35.

mod aux;
mod cpus;
mod head;
mod program;
mod schedstat;
mod stat;
mod threads;
mod update;

use crate::perf::fields::Fields;
use crate::perf::write::{WriteError, Writer};
use crate::perf::{ByteOrder, Bytes, Misc, RawRecord, RecordKind, Text};

pub use aux::{Auxtrace, AuxtraceError, AuxtraceInfo, Guest};
pub use cpus::{CpuMap, Numbers};
pub use head::{
    Compressed, Compressed2, EventType, HeaderAttr, HeaderBuildId, HeaderFeature, IdIndex, IdIndexEntry,
    Mark, TimeConv, TimeConvCycles, TracingData,
};
pub use program::{BpfMetadata, BpfMetadataEntry};
pub use schedstat::{SchedstatCpu, SchedstatDomain};
pub use stat::{Stat, StatConfig, StatRound};
pub use threads::{ThreadMap, ThreadMapEntry};
pub use update::{EventUpdate, Update};

/// What a record has behind its header.
trait UserBody<'a>: Sized {
    /// Reads the fields from the front; `None` if there are too few bytes, or if they make no sense.
    fn read(fields: &mut Fields<'a>, misc: Misc) -> Option<Self>;

    /// Writes what [`Self::read`] reads. What is not in use is zero.
    fn write(&self, writer: &mut Writer<'_>, misc: Misc);
}

/// Declares [`UserRecord`]: variant, fields, and type.
macro_rules! user_records {
    ($($(#[$doc:meta])* $variant:ident($fields:ty) = $kind:ident;)*) => {
        /// The fields of a record that `perf` wrote.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum UserRecord<'a> {
            $($(#[$doc])* $variant($fields),)*
            /// One of the kernel's, of a type that is not known here, or damaged.
            Other(RawRecord<'a>),
        }

        impl<'a> UserRecord<'a> {
            /// The type.
            pub const fn kind(&self) -> RecordKind {
                match self {
                    $(Self::$variant(_) => RecordKind::$kind,)*
                    Self::Other(raw) => raw.kind,
                }
            }

            fn read(raw: &RawRecord<'a>, fields: &mut Fields<'a>) -> Option<Self> {
                match raw.kind {
                    $(RecordKind::$kind => UserBody::read(fields, raw.misc).map(Self::$variant),)*
                    _ => None,
                }
            }

            fn write(&self, writer: &mut Writer<'_>, misc: Misc) {
                match self {
                    $(Self::$variant(fields) => fields.write(writer, misc),)*
                    Self::Other(raw) => writer.bytes(raw.body),
                }
            }
        }
    };
}

user_records! {
    /// An event of a stream.
    HeaderAttr(HeaderAttr<'a>) = HEADER_ATTR;
    /// The name of an event, in old files.
    EventType(EventType<'a>) = HEADER_EVENT_TYPE;
    /// Formats of tracepoints follow.
    TracingData(TracingData) = HEADER_TRACING_DATA;
    /// The build id of a file.
    HeaderBuildId(HeaderBuildId<'a>) = HEADER_BUILD_ID;
    /// All rings have been read once.
    FinishedRound(Mark) = FINISHED_ROUND;
    /// Where the events were opened that have these ids.
    IdIndex(IdIndex<'a>) = ID_INDEX;
    /// What is traced into AUX areas.
    AuxtraceInfo(AuxtraceInfo<'a>) = AUXTRACE_INFO;
    /// Data of an AUX area follows.
    Auxtrace(Auxtrace) = AUXTRACE;
    /// The trace could not be decoded.
    AuxtraceError(AuxtraceError<'a>) = AUXTRACE_ERROR;
    /// The threads that are recorded.
    ThreadMap(ThreadMap<'a>) = THREAD_MAP;
    /// The CPUs that are recorded.
    CpuMap(CpuMap<'a>) = CPU_MAP;
    /// How `perf stat` counts.
    StatConfig(StatConfig<'a>) = STAT_CONFIG;
    /// A counter of `perf stat`.
    Stat(Stat) = STAT;
    /// The counters of a moment have been written.
    StatRound(StatRound) = STAT_ROUND;
    /// What else is known of an event.
    EventUpdate(EventUpdate<'a>) = EVENT_UPDATE;
    /// How a CPU's counter becomes a time.
    TimeConv(TimeConv) = TIME_CONV;
    /// A feature section of a stream.
    HeaderFeature(HeaderFeature<'a>) = HEADER_FEATURE;
    /// A piece of packed records.
    Compressed(Compressed<'a>) = COMPRESSED;
    /// What was known at the start has been written.
    FinishedInit(Mark) = FINISHED_INIT;
    /// A piece of packed records that says how long it is.
    Compressed2(Compressed2<'a>) = COMPRESSED2;
    /// What a BPF program says of itself.
    BpfMetadata(BpfMetadata<'a>) = BPF_METADATA;
    /// A CPU's line of `/proc/schedstat`.
    SchedstatCpu(SchedstatCpu) = SCHEDSTAT_CPU;
    /// A line of `/proc/schedstat` on a domain of CPUs.
    SchedstatDomain(SchedstatDomain<'a>) = SCHEDSTAT_DOMAIN;
}

/// A record that `perf` wrote, whose fields have been read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParsedUser<'a> {
    /// The bits of its header.
    pub misc: Misc,
    /// Its fields.
    pub record: UserRecord<'a>,
    /// Bytes behind the fields: what it was filled up with, or fields that a newer `perf` has added. Those of
    /// [`UserRecord::Other`] are in it.
    pub rest: Bytes<'a>,
}

impl<'a> RawRecord<'a> {
    /// Reads the fields of a record that `perf` wrote, with its numbers in this byte order.
    pub fn parse_user(&self, order: ByteOrder) -> ParsedUser<'a> {
        let mut fields = Fields::new(self.body, order);
        let (record, rest) = match UserRecord::read(self, &mut fields) {
            Some(record) => (record, fields.rest),
            None => (UserRecord::Other(*self), Bytes::default()),
        };
        ParsedUser { misc: self.misc, record, rest }
    }
}

impl ParsedUser<'_> {
    /// Appends the record to `out`, header and all. What a record was read from is written again byte for byte, but for
    /// bytes that are not in use.
    ///
    /// # Errors
    /// When the record is too long. `out` is as it was, then.
    pub fn write(&self, order: ByteOrder, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let start = out.len();
        let mut writer = Writer::new(out, order);
        writer.u32(self.record.kind().0);
        writer.u16(self.misc.0);
        let size_at = writer.len();
        writer.u16(0);
        self.record.write(&mut writer, self.misc);
        writer.bytes(self.rest);
        let size = writer.len() - start;
        let Ok(fits) = u16::try_from(size) else {
            out.truncate(start);
            return Err(WriteError::TooLong(size));
        };
        writer.set_u16(size_at, fits);
        Ok(())
    }
}

/// Writes text into a field of `len` bytes, cut off or filled up with NULs.
fn write_text(writer: &mut Writer<'_>, text: Text<'_>, len: usize) {
    let (field, _) = text.field();
    let (cut, _) = field.split_at_checked(len).unwrap_or((field, Bytes::default()));
    writer.bytes(cut);
    writer.zeros(len - cut.len());
}
