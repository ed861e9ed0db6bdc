//! Types of events that traces tell by number alone: those of .NET's runtime, which has them in its manifest, and the samples of its profiler.
//! Who reads such a trace knows their names and fields beforehand, as `PerfView` does.

use collector_common::event::{
    ByteOrder, EventField, EventFormat, Extent, FieldKind, Guid, KindName, Place, Width,
};
use collector_common::payload::clr::{ClrEvent, name_without_layout, provider_of};
use collector_common::payload::{Encoded, EventSpec, FieldSpec, Layout, Opaque, Payload as _, PointerSize};

/// The stacks of all threads in managed code, again and again.
pub(crate) const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

/// Its only event: the number, the name, and the field, which tells whether the thread was in managed code.
const THREAD_SAMPLE: (u32, &str, &str) = (0, "ThreadSample", "Type");

/// A type of events that has a name, and may have fields.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KnownType {
    /// Of .NET's runtime.
    OfRuntime {
        provider: Guid,
        id: u16,
        version: u8,
        /// That of its addresses.
        pointer_size: PointerSize,
    },
    /// `ThreadSample`.
    ThreadSample,
}

impl KnownType {
    /// That of a number and a version, in a trace whose addresses have so many bytes.
    pub(crate) fn of(provider: &str, id: u32, version: u8, pointer_size: u32) -> Option<Self> {
        if provider == SAMPLER {
            return (id == THREAD_SAMPLE.0).then_some(Self::ThreadSample);
        }
        // The reader takes no others.
        let pointer_size = if pointer_size == 4 { PointerSize::Bits32 } else { PointerSize::Bits64 };
        let id = u16::try_from(id).ok()?;
        let of = Self::OfRuntime { provider: provider_of(provider)?, id, version, pointer_size };
        (!of.name().is_empty()).then_some(of)
    }

    /// Its name, without the version that it may end with in the manifest.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ThreadSample => THREAD_SAMPLE.1,
            Self::OfRuntime { provider, id, .. } => match self.spec() {
                Some(spec) => spec.manifest_name,
                None => name_without_layout(provider, id).unwrap_or_default(),
            },
        }
    }

    /// The fields; `None` where they are not known, or there are none.
    pub(crate) fn format(self) -> Option<EventFormat> {
        match self {
            Self::ThreadSample => {
                let mut format = EventFormat::new(ByteOrder::Little);
                let kind = FieldKind::Unsigned(Width::W32);
                let field = EventField::new(THREAD_SAMPLE.2, "u32", kind, Extent::One, Place::AfterPrevious);
                format.add_field(field).ok()?;
                Some(format)
            }
            Self::OfRuntime { version, pointer_size, .. } => {
                let spec = self.spec().filter(|spec| !is_opaque(spec))?;
                let format = spec.format(Layout { version, pointer: pointer_size }).ok()?;
                (!format.fields().is_empty()).then_some(format)
            }
        }
    }

    /// Whether a payload has all of the fields.
    pub(crate) fn is_whole(self, payload: &[u8]) -> bool {
        match self {
            Self::ThreadSample => payload.len() >= Width::W32.bytes() as usize,
            Self::OfRuntime { .. } => {
                self.encoded(payload).is_some_and(|event| matches!(ClrEvent::decode(event), Ok(Some(_))))
            }
        }
    }

    fn spec(self) -> Option<&'static EventSpec> {
        let event = self.encoded(&[])?;
        ClrEvent::SPECS.iter().find(|spec| spec.is_of(&event))
    }

    fn encoded(self, bytes: &[u8]) -> Option<Encoded<'_>> {
        let Self::OfRuntime { provider, id, version, pointer_size } = self else { return None };
        Some(Encoded { provider, id, opcode: 0, version, pointer_size, bytes })
    }
}

/// Whether only the name of an event is known.
fn is_opaque(spec: &EventSpec) -> bool {
    let names = |fields: &'static [FieldSpec]| fields.iter().map(|field| field.name);
    names(spec.fields).eq(names(Opaque::FIELDS))
}

/// Whether events of two formats have the same fields at the same places.
pub(super) fn is_same(one: &EventFormat, other: &EventFormat) -> bool {
    fn told(field: &EventField) -> (&str, KindName, Option<u32>, Extent, Place) {
        let kind = field.kind();
        (field.name(), kind.name(), kind.size(), field.extent(), field.place())
    }
    one.order() == other.order() && one.fields().iter().map(told).eq(other.fields().iter().map(told))
}
