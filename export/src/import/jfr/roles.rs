//! A type of events in, what its samples are called and count out.

use collector_common::record::Unit;

use super::events::{Chunk, Event, Type};

/// The type of the samples of a clock that goes by each thread's time on a CPU; each of them tells its period.
pub(super) const CPU_TIME_SAMPLE: &str = "jdk.CPUTimeSample";

/// Where a sample's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    One,
    /// A number in this field.
    Field(&'static str),
    /// The event's duration, in ticks.
    Duration,
}

/// What the events of a type are.
#[derive(Clone, Debug)]
pub(super) struct Role {
    /// The kind of the samples.
    pub(super) name: String,
    pub(super) unit: Unit,
    source: Source,
    /// Whether an event without a stack is a sample, too.
    pub(super) may_lack_stack: bool,
    /// The field that has the thread, where there is one.
    pub(super) thread: Option<&'static str>,
    pub(super) is_wall_clock: bool,
}

impl Role {
    /// `None` where events are no samples.
    pub(super) fn of(kind: &Type) -> Option<Self> {
        let has = |name| kind.field(name).is_some();
        let field = |name| if has(name) { Source::Field(name) } else { Source::One };
        let known = match kind.name() {
            "jdk.ExecutionSample" | "jdk.NativeMethodSample" => ("cpu", Unit::Count, field("value")),
            // Of JDK 25 and later, beside the former, whose clock goes by the time of day.
            CPU_TIME_SAMPLE => ("cpu_time", Unit::Count, Source::One),
            "profiler.WallClockSample" if has("timeSpan") => {
                ("wall_clock", Unit::Nanoseconds, field("timeSpan"))
            }
            "profiler.WallClockSample" if has("value") => ("wall_clock", Unit::Count, field("value")),
            "profiler.WallClockSample" => ("wall_clock", Unit::Count, field("samples")),
            "jdk.ObjectAllocationSample" => ("alloc_space", Unit::Bytes, field("weight")),
            // Of these, the former events are a choice.
            "jdk.ObjectAllocationInNewTLAB" => ("alloc_tlab", Unit::Bytes, field("tlabSize")),
            "jdk.ObjectAllocationOutsideTLAB" => ("alloc_tlab", Unit::Bytes, field("allocationSize")),
            "profiler.LiveObject" => ("live_objects", Unit::Bytes, field("allocationSize")),
            "profiler.Malloc" => ("malloc", Unit::Bytes, field("size")),
            "profiler.Free" => ("free", Unit::Count, Source::One),
            _ if !has("stackTrace") => return None,
            name if name.starts_with("collector.") && has("value") => {
                (kind.label().unwrap_or(name), own_unit(kind), field("value"))
            }
            name if has("duration") => (name, Unit::Nanoseconds, Source::Duration),
            name => (name, Unit::Count, Source::One),
        };
        let is_own = kind.name().starts_with("collector.");
        let is_known = known.0 != kind.name();
        Some(Self {
            name: known.0.to_owned(),
            unit: known.1,
            source: known.2,
            may_lack_stack: is_own || is_known,
            thread: ["sampledThread", "eventThread"].into_iter().find(|name| has(name)),
            is_wall_clock: kind.name() == "profiler.WallClockSample",
        })
    }

    /// Which of several kinds is the first.
    pub(super) fn rank(&self) -> usize {
        const FIRST: [&str; 6] = ["cpu_time", "cpu", "wall_clock", "alloc_space", "alloc_tlab", "malloc"];
        FIRST.iter().position(|name| *name == self.name).unwrap_or(FIRST.len())
    }

    /// A sample's value.
    pub(super) fn value(&self, chunk: &Chunk, event: &Event<'_>) -> i64 {
        match self.source {
            Source::One => 1,
            Source::Field(name) => event.get(name).integer().unwrap_or_default(),
            Source::Duration => {
                let ticks = event.get("duration").integer().unwrap_or_default().max(0).cast_unsigned();
                chunk.clock().nanoseconds(ticks).try_into().unwrap_or(i64::MAX)
            }
        }
    }
}

/// What the field `value` of our own types counts.
fn own_unit(kind: &Type) -> Unit {
    let says = |name| kind.field("value").is_some_and(|field| field.annotation(name).is_some());
    if says("jdk.jfr.Timespan") {
        Unit::Nanoseconds
    } else if says("jdk.jfr.DataAmount") {
        Unit::Bytes
    } else {
        Unit::Count
    }
}
