//! Outputs with their formats. A URL is a receiver, which takes profiles of OTLP; all others are targets.

use std::collections::BTreeSet;
use std::path::Path;

use collector_common::record::{EventRecords, ExportMachine};
use collector_user::output::{Places, is_url};
use export::format::otlp::Otlp;
use export::format::{Contents, ExportFormat, Held, Part, Profile};
use export::symbolize::Symbols;

use crate::chosen::chosen;
use crate::kind::without_samples;
use crate::receiver::Receiver;
use crate::target::Target;
use crate::{say, tell, unnamed};

/// Endings of outputs that are written elsewhere.
#[cfg(target_os = "linux")]
const OTHER_ENDINGS: [&str; 1] = [crate::raw::ENDING];
#[cfg(not(target_os = "linux"))]
const OTHER_ENDINGS: [&str; 0] = [];

/// An output with its format.
pub(crate) struct Output {
    destination: Destination,
    format: &'static dyn ExportFormat,
    /// The kind of samples that it is to show, and of which there are none.
    nothing_of: Option<String>,
}

enum Destination {
    Target(Target),
    Receiver(Receiver),
}

impl Output {
    /// `-` is stdout and needs `format`; elsewhere the ending says the format, unless `format` does. A URL is a receiver.
    pub(crate) fn open(path: &Path, format: Option<&str>, taken: &mut Places) -> anyhow::Result<Self> {
        if is_url(path) {
            let receiver = Receiver::open(path, format, taken)?;
            let destination = Destination::Receiver(receiver);
            return Ok(Self { destination, format: &Otlp, nothing_of: None });
        }
        let format = chosen(path, format, &OTHER_ENDINGS)?;
        let destination = Destination::Target(Target::open(path, taken)?);
        Ok(Self { destination, format, nothing_of: None })
    }

    /// There are no samples of the kind that it is to show: where it has room for one it shows none of another in its place.
    pub(crate) fn show_nothing_of(&mut self, kind: &str) {
        if !self.format.holds().has(Part::Kinds) {
            self.nothing_of = Some(kind.to_owned());
        }
    }

    /// What is at its place when it is written is kept, and the file is called `name` then.
    pub(crate) fn or_named(mut self, name: &str) -> Self {
        if let Destination::Target(Target::File(file)) = self.destination {
            self.destination = Destination::Target(Target::File(file.or_named(name)));
        }
        self
    }

    /// Whether writing it may wait for somebody.
    pub(crate) fn may_wait(&self) -> bool {
        match &self.destination {
            Destination::Target(target) => target.may_wait(),
            Destination::Receiver(_) => true,
        }
    }

    /// What it is called.
    pub(crate) fn name(&self) -> String {
        match &self.destination {
            Destination::Target(target) => target.name(),
            Destination::Receiver(receiver) => receiver.name(),
        }
    }

    /// Writes the profile and puts the file into place, or sends it.
    pub(crate) fn write(self, profile: Profile<'_>) -> anyhow::Result<()> {
        let nothing = self.nothing_of.map(|_| without_samples(profile.machine));
        let nothing = nothing.as_ref().map(|(machine, symbols)| Profile { machine, symbols });
        let profile = nothing.unwrap_or(profile);
        match self.destination {
            Destination::Target(target) => target.fill(|out| self.format.export(profile, out)),
            Destination::Receiver(receiver) => receiver.send(profile),
        }
    }
}

/// Says what kept files with names from being found, or from being read.
pub(crate) fn tell_failures(machine: &ExportMachine, symbols: &Symbols) {
    for failure in symbols.failures().iter().cloned().chain(unnamed::lines(machine, symbols)) {
        say(&format!("warning: {failure}"));
    }
}

/// Says what of the recording outputs leave out, a line each.
pub(crate) fn tell_left_out(outputs: &[Output], profile: Profile<'_>) {
    if outputs.is_empty() {
        return;
    }
    let contents = Contents::of(profile);
    for output in outputs {
        if let Some(kind) = &output.nothing_of {
            say(&format!(
                "{}: {} has no samples, as there are none of {kind}",
                output.name(),
                output.format.name()
            ));
        } else if let Some(left_out) = contents.left_out(output.format) {
            say(&format!("{}: {left_out}", output.name()));
        }
    }
}

/// What raw events may take of memory for all of some outputs, where their names are not known: nothing unless one holds them all.
pub(crate) fn event_bytes(outputs: &[Output]) -> u64 {
    let holds_all = |output: &Output| output.format.holds().held(Part::Events) == Held::Wholly;
    if outputs.iter().any(holds_all) { EventRecords::LIMIT } else { 0 }
}

/// Of some events by name: what all that are kept may take of memory, and which are not, as none of some outputs holds them.
pub(crate) fn kept_events<'a>(
    outputs: &[Output],
    names: impl Iterator<Item = &'a str>,
) -> (u64, BTreeSet<String>) {
    let is_kept = |name: &&str| outputs.iter().any(|output| output.format.keeps_events_of(name));
    let (kept, others): (Vec<&str>, Vec<&str>) = names.partition(is_kept);
    let bytes = if kept.is_empty() { 0 } else { EventRecords::LIMIT };
    (bytes, others.into_iter().map(str::to_owned).collect())
}

/// Of several results the last failure is given, the others are told.
pub(crate) fn tell_all_but_last(results: Vec<anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut failures = results.into_iter().filter_map(Result::err);
    let last = failures.next_back();
    failures.for_each(|error| tell(&error));
    last.map_or(Ok(()), Err)
}
