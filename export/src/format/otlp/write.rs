//! A [`Profile`] in, `ProfilesData` out, which is the same bytes as the request that sends it (`ExportProfilesServiceRequest`).
//!
//! A process is a resource, and each kind of samples in it a profile. A sample is all of those with one stack, thread, CPU and
//! attributes, with the time and the value of each; where each value of a kind is 1 they have none, as the format wants it. Clocks
//! count samples, and say by the period what one stands for. Attributes have the names of OpenTelemetry's semantic conventions,
//! and those that a sample was recorded with their own.
//!
//! Where no time of day is known, samples have no times, and the sum of their values.
//!
//! A message tells its length before itself. So all lengths are found first, which fills the dictionary, and then the samples are
//! gone through again and written. Samples of a part of the time make a message that is whole in itself in the same way.

use std::io::{self, Write};

use collector_common::ids::Nanos;
use collector_common::record::{self, ExportMachine, SampleKindId, Unit};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

use super::proto::{Profile as ProfileMessage, ResourceProfiles, Scope, ScopeProfiles, ValueType, field};
use super::resource::resource;
use super::rows::{Group, Rows};
use super::samples::Samples;
use crate::format::account::account;
use crate::format::{ExportFormat, Holds, Part, Profile};

/// Bytes that are collected before they are written.
const PIECE: usize = 64 << 10;

/// The OTLP format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Otlp;

impl ExportFormat for Otlp {
    fn name(&self) -> &'static str {
        "otlp"
    }

    fn ending(&self) -> &'static str {
        ".otlp"
    }

    fn description(&self) -> &'static str {
        "OpenTelemetry's profiles (v1development, 1.10): every sample with its time and attributes, by process and kind"
    }

    fn holds(&self) -> Holds {
        Holds::everything()
            .without(&[
                Part::EarlyTimes,
                Part::Unsampled,
                Part::Programs,
                Part::FileDetails,
                Part::FrameRules,
                Part::System,
                Part::Events,
                Part::Spans,
                Part::Tables,
            ])
            .with_some(&[Part::Mappings])
    }

    /// All is told of a profile, of which there is one for each kind of samples in a process.
    fn holds_without_samples(&self) -> Holds {
        Holds::nothing()
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        let samples = profile.machine.samples();
        let span = whole_span(profile.machine);
        let whole = Data::plan(profile, samples, span, usize::MAX);
        whole.map_or(Ok(()), |data| data.write(out))
    }
}

/// The first and last time of anything in a recording.
pub(super) fn whole_span(machine: &ExportMachine) -> (Nanos, Nanos) {
    let system = machine.system();
    let ends = (system.start, system.end);
    let span = machine.samples().span().unwrap_or(ends);
    (ends.0.min(span.0), ends.1.max(span.1))
}

/// Messages on their way out.
struct Out<'a> {
    buffer: Vec<u8>,
    out: &'a mut dyn Write,
}

impl Out<'_> {
    fn begin(&mut self, tag: u32, length: usize) {
        encode_key(tag, WireType::LengthDelimited, &mut self.buffer);
        encode_varint(length as u64, &mut self.buffer);
    }

    fn message(&mut self, tag: u32, message: &impl Message) -> io::Result<()> {
        self.begin(tag, message.encoded_len());
        self.part(message)
    }

    /// What a message begins with.
    fn part(&mut self, message: &impl Message) -> io::Result<()> {
        message.encode_raw(&mut self.buffer);
        if self.buffer.len() < PIECE { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// The length of a message as a field.
fn field_len(tag: u32, length: usize) -> usize {
    key_len(tag) + encoded_len_varint(length as u64) + length
}

/// A profile that is to be written.
struct Plan {
    group: Group,
    begin: ProfileMessage,
    length: usize,
}

/// Some samples of a recording with all they refer to, of which the length is known.
pub(super) struct Data<'a> {
    plans: Vec<Plan>,
    writer: Writer<'a>,
    length: usize,
}

impl<'a> Data<'a> {
    /// What these samples make, told to be of a span of time; `None` if that is longer than so many bytes.
    pub(super) fn plan(
        profile: Profile<'a>,
        samples: &'a record::Samples,
        span: (Nanos, Nanos),
        most: usize,
    ) -> Option<Self> {
        let (rows, groups) = Rows::of(profile.machine, samples);
        let mut writer = Writer::new(profile, samples, rows, span);
        let mut plans = Vec::with_capacity(groups.len());
        let mut left = most;
        for group in groups {
            let plan = writer.plan(group, left)?;
            left = left.checked_sub(plan.length)?;
            plans.push(plan);
        }
        let resources = resources(&plans).map(|plans| {
            let [_, length] = writer.lengths(plans);
            field_len(field::DATA_RESOURCE_PROFILES, length)
        });
        let tables = writer.samples.dictionary.encoded_len();
        let length = resources.sum::<usize>() + field_len(field::DATA_DICTIONARY, tables);
        (length <= most).then_some(Self { plans, writer, length })
    }

    /// Bytes that are written.
    pub(super) fn encoded_len(&self) -> usize {
        self.length
    }

    /// Profiles in it.
    pub(super) fn profiles(&self) -> usize {
        self.plans.len()
    }

    pub(super) fn write(self, out: &mut dyn Write) -> io::Result<()> {
        let Self { plans, mut writer, .. } = self;
        let mut out = Out { buffer: Vec::with_capacity(PIECE), out };
        for resource in resources(&plans) {
            writer.resource(resource, &mut out)?;
        }
        out.message(field::DATA_DICTIONARY, &writer.samples.dictionary.finish())?;
        out.flush()?;
        out.out.flush()?;
        writer.rows.check()
    }
}

/// The profiles of each process.
fn resources(plans: &[Plan]) -> impl Iterator<Item = &[Plan]> {
    plans.chunk_by(|a, b| a.group.process == b.group.process)
}

struct Writer<'a> {
    machine: &'a ExportMachine,
    samples: Samples<'a>,
    rows: Rows<'a>,
    span: (Nanos, Nanos),
    /// What is told of the recording as a whole, for people.
    comments: Vec<String>,
}

impl<'a> Writer<'a> {
    fn new(profile: Profile<'a>, samples: &record::Samples, rows: Rows<'a>, span: (Nanos, Nanos)) -> Self {
        let machine = profile.machine;
        let system = machine.system();
        let command = (!system.command.is_empty()).then(|| format!("command: {}", system.command));
        let comments = command.into_iter().chain(account(machine)).collect();
        Self { machine, samples: Samples::new(profile, samples), rows, span, comments }
    }

    /// The length of a profile; `None` as soon as it, or the dictionary, is seen to be longer than so many bytes.
    fn plan(&mut self, group: Group, most: usize) -> Option<Plan> {
        let begin = self.begin(group.kind);
        let mut length = begin.encoded_len();
        for row in self.rows.get(&group) {
            for part in self.samples.parts(row, self.rows.samples()) {
                let sample = self.samples.of_row(part, self.rows.samples());
                length += field_len(field::PROFILE_SAMPLES, sample.encoded_len());
            }
            if length > most || self.samples.dictionary.encoded_len() > most {
                return None;
            }
        }
        Some(Plan { group, begin, length })
    }

    fn begin(&mut self, kind: SampleKindId) -> ProfileMessage {
        let kind = self.machine.kinds()[usize::from(kind.0)];
        let name = self.machine.string(kind.name);
        let dictionary = &mut self.samples.dictionary;
        let mut value_type = |name: &str, unit: &str| ValueType {
            type_strindex: dictionary.string(name),
            unit_strindex: dictionary.string(unit),
        };
        let is_clock = kind.unit == Unit::Count && kind.period > 1;
        // As OpenTelemetry's own profiler has its clock.
        let (sample_type, period_type) = if is_clock {
            (value_type("samples", "count"), value_type(name, "nanoseconds"))
        } else {
            let own = value_type(name, kind.unit.name());
            (own, own)
        };
        let (first, last) = self.span;
        let unix = self.machine.system().clocks.unix_at(first);
        let comments =
            (!self.comments.is_empty()).then(|| dictionary.texts("pprof.profile.comment", &self.comments));
        ProfileMessage {
            sample_type: Some(sample_type),
            time_unix_nano: unix.and_then(|unix| unix.try_into().ok()).unwrap_or(0),
            // All times are before its end.
            duration_nano: (last.0 - first.0).saturating_add(1),
            period_type: Some(period_type),
            // Some readers refuse 0.
            period: i64::try_from(kind.period).unwrap_or(i64::MAX).max(1),
            attribute_indices: comments.into_iter().collect(),
        }
    }

    /// The length of what holds the profiles of a process, and of all that is told of it.
    fn lengths(&self, plans: &[Plan]) -> [usize; 2] {
        let profiles = plans.iter().map(|plan| field_len(field::SCOPE_PROFILES, plan.length));
        let scope_len = scope().encoded_len() + profiles.sum::<usize>();
        let scope_field = field_len(field::RESOURCE_SCOPE_PROFILES, scope_len);
        [scope_len, self.begin_of(plans).encoded_len() + scope_field]
    }

    /// The process of some profiles.
    fn begin_of(&self, plans: &[Plan]) -> ResourceProfiles {
        let process = plans.first().map(|plan| resource(self.machine, plan.group.process));
        ResourceProfiles { resource: process }
    }

    /// Writes the profiles of a process.
    fn resource(&mut self, plans: &[Plan], out: &mut Out<'_>) -> io::Result<()> {
        let [scope_len, length] = self.lengths(plans);
        out.begin(field::DATA_RESOURCE_PROFILES, length);
        out.part(&self.begin_of(plans))?;
        out.begin(field::RESOURCE_SCOPE_PROFILES, scope_len);
        out.part(&scope())?;
        for plan in plans {
            out.begin(field::SCOPE_PROFILES, plan.length);
            out.part(&plan.begin)?;
            for row in self.rows.get(&plan.group) {
                for part in self.samples.parts(row, self.rows.samples()) {
                    out.message(field::PROFILE_SAMPLES, self.samples.of_row(part, self.rows.samples()))?;
                }
            }
        }
        Ok(())
    }
}

/// Who recorded.
fn scope() -> ScopeProfiles {
    let scope = Scope { name: "collector".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    ScopeProfiles { scope: Some(scope) }
}
