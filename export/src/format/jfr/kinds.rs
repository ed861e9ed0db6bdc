//! Kinds of samples in, the types of events that they become out.
//!
//! Kinds that readers have a type for get that: `cpu`, `wall_clock` and `alloc_space`. Others get one of their own, `collector.OffCpu`
//! for `off_cpu`, whose label is the kind's name and whose field `value` has the kind's unit. Of samples in nanoseconds it has a
//! duration, too, which is 0 where a sample is an estimate for several.

use std::collections::HashSet;

use collector_common::intern::StringId;
use collector_common::record::{
    AttributeListId, AttributeValue, Attributes, ESTIMATED, ExportMachine, Sample, SampleKind, Unit,
};

use super::numbers::Numbers;
use super::types::{Class, Content, Field, OWN, event, fixed, id};

/// Which type of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `jdk.ExecutionSample`
    Execution,
    /// `profiler.WallClockSample`, with a number of samples.
    WallClock,
    /// `profiler.WallClockSample`, with a time.
    WallClockTime,
    /// `jdk.ObjectAllocationSample`
    Allocation,
    /// One of our own, with a duration.
    Time,
    /// One of our own.
    Count,
    /// One of our own.
    Bytes,
}

/// What a kind of samples is written as.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub(super) type_id: u64,
    pub(super) form: Form,
    /// Whether the values do not fit where the form has them, and are a field of their own.
    pub(super) has_value: bool,
    pub(super) has_attributes: bool,
    /// Fields of their own for those that are numbers.
    pub(super) numbers: Numbers,
    /// Of a sampling clock, in nanoseconds.
    pub(super) period: Option<u64>,
    name: String,
    label: String,
}

/// By kind of sample.
pub(super) fn kinds(machine: &ExportMachine) -> Vec<Kind> {
    let mut taken = fixed().into_iter().map(|class| class.name.into_owned()).collect();
    let kinds = machine.kinds().iter().zip(id::FIRST_KIND..);
    let mut kinds: Vec<Kind> =
        kinds.map(|(kind, type_id)| Kind::of(machine.string(kind.name), kind, type_id, &mut taken)).collect();
    for sample in machine.samples().iter() {
        if let Some(kind) = kinds.get_mut(usize::from(sample.kind.0)) {
            kind.has_value |= !kind.form.holds(sample.value);
            if sample.attributes != AttributeListId::NONE {
                kind.has_attributes = true;
                kind.numbers.add(machine, sample.attributes);
            }
        }
    }
    kinds
}

impl Kind {
    fn of(label: &str, kind: &SampleKind, type_id: u64, taken: &mut HashSet<String>) -> Self {
        let (form, name) = match (label, kind.unit) {
            ("cpu", Unit::Count) => (Form::Execution, "jdk.ExecutionSample".to_owned()),
            ("wall_clock", Unit::Count) => (Form::WallClock, WALL_CLOCK.to_owned()),
            ("wall_clock", Unit::Nanoseconds) => (Form::WallClockTime, WALL_CLOCK.to_owned()),
            ("alloc_space", Unit::Bytes) => (Form::Allocation, "jdk.ObjectAllocationSample".to_owned()),
            (_, unit) => own(label, unit),
        };
        let (form, name) = if taken.contains(&name) { own(label, kind.unit) } else { (form, name) };
        let numbered = (2..).map(|number| format!("{name}{number}"));
        let name = [name.clone()].into_iter().chain(numbered).find(|name| !taken.contains(name));
        let name = name.unwrap_or_default();
        taken.insert(name.clone());
        let period = (kind.unit == Unit::Count && kind.period > 1).then_some(kind.period);
        Self {
            type_id,
            form,
            has_value: false,
            has_attributes: false,
            numbers: Numbers::default(),
            period,
            name,
            label: label.to_owned(),
        }
    }

    /// The type of the events.
    pub(super) fn class(&self, machine: &ExportMachine) -> Class {
        const PROFILING: &[&str] = &["Java Virtual Machine", "Profiling"];
        const APPLICATION: &[&str] = &["Java Application"];
        const SAMPLED: [Field; 3] = [Field::SAMPLED_THREAD, Field::STACK_TRACE, Field::STATE];
        const RECORDED: [Field; 2] = [Field::EVENT_THREAD, Field::STACK_TRACE];
        let (label, category, mut fields) = match self.form {
            Form::Execution => ("Method Profiling Sample", PROFILING, SAMPLED.to_vec()),
            Form::WallClock | Form::WallClockTime => {
                ("Wall Clock Sample", PROFILING, [&SAMPLED[..], &[Field::int("samples", "Samples")]].concat())
            }
            Form::Allocation => (
                "Allocation Sample",
                APPLICATION,
                [
                    &RECORDED[..],
                    &[
                        Field::constant("objectClass", "Object Class", id::CLASS),
                        Field::long("weight", "Sample Weight", Content::Bytes),
                    ],
                ]
                .concat(),
            ),
            Form::Time => (&*self.label, OWN, [&[Field::DURATION], &RECORDED[..]].concat()),
            Form::Count | Form::Bytes => (&*self.label, OWN, RECORDED.to_vec()),
        };
        fields.extend(match self.form {
            Form::Execution | Form::WallClock | Form::Allocation => None,
            Form::WallClockTime => Some(Field::long("timeSpan", "Time Span", Content::Nanoseconds)),
            Form::Time => Some(Field::long("value", "Time", Content::Nanoseconds)),
            Form::Count => Some(Field::long("value", "Count", Content::Plain)),
            Form::Bytes => Some(Field::long("value", "Size", Content::Bytes)),
        });
        fields.extend(self.has_value.then(|| Field::long("value", "Count", Content::Plain)));
        fields.push(Field::int("cpu", "CPU"));
        fields.extend(self.has_attributes.then(|| Field::text("attributes", "Attributes")));
        let mut class = event(self.type_id, self.name.clone(), label.to_owned(), category, &fields);
        self.numbers.add_to(machine, &mut class);
        class
    }
}

const WALL_CLOCK: &str = "profiler.WallClockSample";

/// A type of our own.
fn own(label: &str, unit: Unit) -> (Form, String) {
    let form = match unit {
        Unit::Nanoseconds => Form::Time,
        Unit::Count => Form::Count,
        Unit::Bytes => Form::Bytes,
    };
    let words = label.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    let name: String = words.map(capital).collect();
    // Readers take a name for that of a class.
    let prefix = if name.starts_with(|letter: char| letter.is_ascii_alphabetic()) { "" } else { "Kind" };
    (form, format!("collector.{prefix}{name}"))
}

impl Form {
    /// Whether it has a place for this value.
    fn holds(self, value: i64) -> bool {
        match self {
            Self::Execution => value == 1,
            Self::WallClock => (0..=i64::from(i32::MAX)).contains(&value),
            Self::WallClockTime | Self::Allocation | Self::Time | Self::Count | Self::Bytes => true,
        }
    }
}

/// Whether a sample's value stands for several.
pub(super) fn is_estimate(machine: &ExportMachine, sample: &Sample) -> bool {
    let list = machine.attributes().get(sample.attributes);
    list.iter().any(|(key, _)| machine.string(*key) == ESTIMATED)
}

/// What a sample's thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Runnable = 1,
    Sleeping = 2,
}

impl State {
    pub(super) const ALL: [(Self, &str); 2] =
        [(Self::Runnable, "STATE_RUNNABLE"), (Self::Sleeping, "STATE_SLEEPING")];

    /// By the attribute that samples of the wall clock have.
    pub(super) fn of(machine: &ExportMachine, sample: &Sample) -> Self {
        match machine.attribute(sample.attributes, "state").as_deref() {
            None | Some("running") => Self::Runnable,
            Some(_) => Self::Sleeping,
        }
    }
}

/// Attributes as text: `key=value` with commas between; what is one of `\`, `,` and `=` in a key or value has a `\` before it.
pub(super) fn attributes(
    attributes: &Attributes,
    list: AttributeListId,
    string: impl Fn(StringId) -> String,
) -> String {
    let mut out = String::new();
    for (key, value) in attributes.get(list) {
        if !out.is_empty() {
            out.push_str(", ");
        }
        escape(&mut out, &string(*key));
        out.push('=');
        match value {
            AttributeValue::Label(text) => escape(&mut out, &string(*text)),
            AttributeValue::Number(number) => out.push_str(&number.to_string()),
        }
    }
    out
}

fn escape(out: &mut String, text: &str) {
    for letter in text.chars() {
        if matches!(letter, '\\' | ',' | '=') {
            out.push('\\');
        }
        out.push(letter);
    }
}
