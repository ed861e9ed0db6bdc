//! The records by their types: `enum perf_event_type` of `perf_event.h`, types 1 to 22.

mod aux;
mod kernel_code;
mod kind;
mod mmap;
mod parse;
mod raw;
mod sample_id;
mod state;
mod task;
mod visitor;

use super::fields::Fields;
use super::write::{WriteError, Writer};
use super::{ParseConfig, Sample};

pub use aux::{Aux, AuxFlags, AuxOutputHwId, ItraceStart};
pub use kernel_code::{BpfEvent, Ksymbol, KsymbolFlags, TextPoke};
pub use kind::{CpuMode, Misc, RecordKind};
pub use mmap::{MappedFile, Mmap, Mmap2};
pub use parse::{ParseError, Parsed};
pub use raw::{OwnedRecord, RawRecord, Records, RecordsError, records};
pub use sample_id::SampleId;
pub use state::{CallchainDeferred, Lost, LostSamples, Read, Throttling};
pub use task::{Cgroup, Comm, Namespace, Namespaces, Switch, SwitchCpuWide, Task};
pub use visitor::Context;

/// What a record has between its header and its sample id.
pub(super) trait Body<'a>: Sized {
    /// Reads the fields from the front; `None` if there are too few bytes.
    fn read(fields: &mut Fields<'a>, misc: Misc, config: &ParseConfig) -> Option<Self>;

    /// Writes what [`Self::read`] reads.
    fn write(&self, writer: &mut Writer<'_>, config: &ParseConfig) -> Result<(), WriteError>;

    /// `misc` with the bits that say how the fields are to be read.
    fn misc(&self, misc: Misc, _: &ParseConfig) -> Misc {
        misc
    }
}

/// Declares [`Record`] and [`Visitor`] from one list: variant, fields, and the visitor's method.
macro_rules! records {
    ($($(#[$doc:meta])* $variant:ident($fields:ty) = $kind:ident, $method:ident;)*) => {
        /// A record's fields.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        #[expect(clippy::large_enum_variant, reason = "samples are the common case, and nothing is allocated")]
        pub enum Record<'a> {
            $($(#[$doc])* $variant($fields),)*
            /// Of a type that is not known here, or of a profiler's own ([`RecordKind::is_of_kernel`]).
            Other(RawRecord<'a>),
        }

        impl<'a> Record<'a> {
            /// The type.
            pub const fn kind(&self) -> RecordKind {
                match self {
                    $(Self::$variant(_) => RecordKind::$kind,)*
                    Self::Other(raw) => raw.kind,
                }
            }

            /// Takes the fields of a record, or the record as it is if its type is not known.
            fn fill(&mut self, raw: &RawRecord<'a>, fields: &mut Fields<'a>, config: &ParseConfig) -> Option<()> {
                match raw.kind {
                    $(RecordKind::$kind => *self = Self::$variant(Body::read(fields, raw.misc, config)?),)*
                    _ => *self = Self::Other(*raw),
                }
                Some(())
            }

            fn write(&self, writer: &mut Writer<'_>, config: &ParseConfig) -> Result<(), WriteError> {
                match self {
                    $(Self::$variant(fields) => fields.write(writer, config),)*
                    Self::Other(raw) => {
                        writer.bytes(raw.body);
                        Ok(())
                    }
                }
            }

            fn misc(&self, misc: Misc, config: &ParseConfig) -> Misc {
                match self {
                    $(Self::$variant(fields) => fields.misc(misc, config),)*
                    Self::Other(_) => misc,
                }
            }
        }

        visitor::declare! { $($(#[$doc])* $variant($fields) $method;)* }
    };
}

records! {
    /// A mapping was made.
    Mmap(Mmap<'a>) = MMAP, mmap;
    /// Records were lost.
    Lost(Lost) = LOST, lost;
    /// A thread was named.
    Comm(Comm<'a>) = COMM, comm;
    /// A thread ended.
    Exit(Task) = EXIT, exit;
    /// The event stands still.
    Throttle(Throttling) = THROTTLE, throttle;
    /// The event goes on.
    Unthrottle(Throttling) = UNTHROTTLE, unthrottle;
    /// A thread began.
    Fork(Task) = FORK, fork;
    /// Counters at the end of a thread.
    Read(Read<'a>) = READ, read;
    /// The event happened.
    Sample(Sample<'a>) = SAMPLE, sample;
    /// A mapping was made, with what is known of its file.
    Mmap2(Mmap2<'a>) = MMAP2, mmap2;
    /// New data in the AUX area.
    Aux(Aux) = AUX, aux;
    /// A trace of instructions began.
    ItraceStart(ItraceStart) = ITRACE_START, itrace_start;
    /// Samples were lost before they came to be records.
    LostSamples(LostSamples) = LOST_SAMPLES, lost_samples;
    /// A thread got or lost its CPU.
    Switch(Switch) = SWITCH, switch;
    /// A CPU got another thread.
    SwitchCpuWide(SwitchCpuWide) = SWITCH_CPU_WIDE, switch_cpu_wide;
    /// A thread's namespaces.
    Namespaces(Namespaces<'a>) = NAMESPACES, namespaces;
    /// Code was added to the kernel, or removed.
    Ksymbol(Ksymbol<'a>) = KSYMBOL, ksymbol;
    /// A BPF program was loaded or unloaded.
    BpfEvent(BpfEvent) = BPF_EVENT, bpf_event;
    /// A cgroup's name.
    Cgroup(Cgroup<'a>) = CGROUP, cgroup;
    /// The kernel's code was changed.
    TextPoke(TextPoke<'a>) = TEXT_POKE, text_poke;
    /// The hardware's number of an event.
    AuxOutputHwId(AuxOutputHwId) = AUX_OUTPUT_HW_ID, aux_output_hw_id;
    /// The user part of callchains.
    CallchainDeferred(CallchainDeferred<'a>) = CALLCHAIN_DEFERRED, callchain_deferred;
}
