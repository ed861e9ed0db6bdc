//! What a sample is on its thread's lane: a moment, or a span and of what.

use collector_common::record::{ExportMachine, Sample, SampleKind, Unit};

use crate::format::duration::duration;

/// What a sample is in time. The numbers are part of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An occurrence, or bytes.
    Moment = 0,
    /// The thread ran: a clock's tick, which stands for its period, or a time in nanoseconds.
    Running = 1,
    /// The thread was off its CPU and waited for something, for as long as the value says.
    Blocked = 2,
    /// The thread could have run and waited for a CPU, for as long as the value says.
    Waiting = 3,
    /// Something else took as long as the value says.
    Time = 4,
    /// A value in nanoseconds that is no duration.
    Estimate = 5,
}

impl Form {
    /// The form of a sample of `machine`.
    pub(super) fn of(machine: &ExportMachine, sample: &Sample) -> Self {
        let Some(kind) = machine.kinds().get(usize::from(sample.kind.0)) else { return Self::Moment };
        if kind.unit != Unit::Nanoseconds {
            return if is_clock(kind) { Self::Running } else { Self::Moment };
        }
        if duration(machine, sample).is_none() {
            return Self::Estimate;
        }
        match machine.attribute(sample.attributes, "state").as_deref() {
            Some("running") => Self::Running,
            Some("blocked") => Self::Blocked,
            Some("runnable") => Self::Waiting,
            // As the scenario calls it, and as a .nettrace does.
            _ if matches!(machine.string(kind.name), "off_cpu" | "cswitch") => Self::Blocked,
            _ => Self::Time,
        }
    }
}

fn is_clock(kind: &SampleKind) -> bool {
    kind.unit == Unit::Count && kind.period > 1 && !kind.is_sum
}

#[cfg(test)]
mod tests {
    use collector_common::record::{AttributeListId, ESTIMATED, SampleKindId};

    use super::*;

    #[test]
    fn samples_have_the_form_of_their_kind_and_attributes() {
        let mut machine = ExportMachine::default();
        let cpu = machine.add_kind("cpu", Unit::Count, 1_000_000);
        let faults = machine.add_kind("page-faults", Unit::Count, 1);
        let space = machine.add_kind("alloc_space", Unit::Bytes, 1);
        let off_cpu = machine.add_kind("off_cpu", Unit::Nanoseconds, 1);
        let wall_clock = machine.add_kind("wall_clock", Unit::Nanoseconds, 1);
        let lock = machine.add_kind("lock", Unit::Nanoseconds, 1);
        let mut list = |name: &str, value: &str| {
            let pair = [name, value].map(|text| machine.intern_string(text));
            machine.attributes_mut().intern(&[(pair[0], pair[1])])
        };
        let estimated = list(ESTIMATED, "yes");
        let [running, blocked, runnable] =
            ["running", "blocked", "runnable"].map(|state| list("state", state));
        let none = AttributeListId::NONE;
        for (kind, attributes, form) in [
            (cpu, none, Form::Running),
            (faults, none, Form::Moment),
            (space, none, Form::Moment),
            (off_cpu, none, Form::Blocked),
            (off_cpu, estimated, Form::Estimate),
            (wall_clock, running, Form::Running),
            (wall_clock, blocked, Form::Blocked),
            (wall_clock, runnable, Form::Waiting),
            (wall_clock, estimated, Form::Estimate),
            (lock, none, Form::Time),
            (SampleKindId(99), none, Form::Moment),
        ] {
            let sample = Sample { kind, attributes, value: 5, ..Sample::default() };
            assert_eq!(Form::of(&machine, &sample), form, "{kind:?} {attributes:?}");
        }
    }
}
