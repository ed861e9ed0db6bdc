//! A [`Profile`] in, what there is of each [`Part`] out, and with that what is left out by a format, in one line.

use collector_common::record::{
    ESTIMATED, ExportMachine, FrameFlags, FrameId, ModuleDetails, ModuleId, ModuleKind, ModuleMapping,
    SampleKindId, TimelineOwner, Unit, WITHOUT_ADDRESS,
};

use super::account::account;
use super::facts::other_pid;
use super::{ExportFormat, Held, Holds, Part, Profile};
use crate::table::{KeySet, Table};

/// What a recording has of each part. To find out takes a look at each sample and frame, once for all outputs.
#[derive(Clone, Debug)]
pub struct Contents {
    /// How much there is by part; of what is not counted 1.
    amounts: [u64; Part::ALL.len()],
    /// The name of the kind that is shown where there is room for one.
    shown_kind: String,
    /// What there is of [`Part::FileDetails`], by [`DETAILS`].
    details: [bool; DETAILS.len()],
    has_samples: bool,
}

/// What files say of themselves, for people: of those of Linux, and of images of Windows and .NET.
const DETAILS: [&str; 4] = [
    Part::FileDetails.text(),
    "versions of images",
    "names and signatures of PDBs",
    "names and signatures of perf maps",
];

/// Which of [`DETAILS`] a file says.
fn said(details: &ModuleDetails) -> [bool; DETAILS.len()] {
    // Formats have what an image says of its symbols, and not by what it was found.
    let ModuleDetails { debug_link, package, version, pdb, perf_map, image: _ } = details;
    [debug_link.is_some() || package.is_some(), version.is_some(), pdb.is_some(), perf_map.is_some()]
}

/// Of which processes there are samples, spans or raw events.
fn used(machine: &ExportMachine) -> Vec<bool> {
    let mut threads = vec![false; machine.threads().len()];
    let mut used = vec![false; machine.processes().len()];
    let mark = |list: &mut [bool], at: u32| list.get_mut(at as usize).map(|is_used| *is_used = true);
    for sample in machine.samples().iter() {
        mark(&mut threads, sample.thread.0);
    }
    for (_, record, _) in machine.event_records().iter() {
        mark(&mut threads, record.thread.0);
    }
    for span in machine.spans() {
        match machine.timeline_of(span).map(|timeline| timeline.owner) {
            Some(TimelineOwner::Thread(thread)) => mark(&mut threads, thread.0),
            Some(TimelineOwner::Process(process)) => mark(&mut used, process.0),
            Some(TimelineOwner::Recording) | None => None,
        };
    }
    for (thread, _) in machine.threads().iter().zip(threads).filter(|(_, is_used)| *is_used) {
        mark(&mut used, thread.process.0);
    }
    used
}

/// Whether anything was before 1970.
fn is_early(machine: &ExportMachine) -> bool {
    let clocks = &machine.system().clocks;
    let is_early = |time| clocks.unix_at(time).is_some_and(|unix| unix < 0);
    let starts = machine.processes().iter().map(|process| process.start).filter(|start| start.0 > 0);
    let spans = machine.spans().iter().map(|span| span.start);
    let edges = machine.samples().span().into_iter().flat_map(|(first, last)| [first, last]);
    edges.chain([machine.system().start]).chain(starts).chain(spans).any(is_early)
}

impl Contents {
    /// Those of a profile.
    pub fn of(profile: Profile<'_>) -> Self {
        let machine = profile.machine;
        let kind = machine.shown_kind().and_then(|kind| machine.kinds().get(usize::from(kind.0)));
        let shown_kind = kind.map_or(String::new(), |kind| machine.string(kind.name).to_owned());
        let amounts = [0; Part::ALL.len()];
        let has_samples = !machine.samples().is_empty();
        let mut contents = Self { amounts, shown_kind, details: [false; DETAILS.len()], has_samples };
        contents.add_samples(machine);
        contents.add_processes(machine);
        contents.add_code(profile);
        contents.add_rest(machine);
        contents
    }

    /// Whether there is anything of a part.
    pub fn has(&self, part: Part) -> bool {
        self.amounts[part as usize] > 0
    }

    /// What of it a format has no place for, for people: `folded leaves out times, CPUs and 2 spans`. None where it holds all that there is.
    pub fn left_out(&self, format: &dyn ExportFormat) -> Option<String> {
        let holds = if self.has_samples { format.holds() } else { format.holds_without_samples() };
        self.left_out_by(format.name(), holds)
    }

    /// The same of what is no format, and holds these parts.
    pub fn left_out_by(&self, name: &str, holds: Holds) -> Option<String> {
        let there = Part::ALL.into_iter().filter(|&part| self.has(part));
        let left_out = there.filter_map(|part| match holds.held(part) {
            Held::Wholly => None,
            Held::Partly => Some(part.text_of_rest()),
            Held::Not => Some(self.text(part)),
        });
        let left_out: Vec<String> = left_out.collect();
        let left_out = match &left_out[..] {
            [] => return None,
            [one] => one.clone(),
            [all @ .., last] => format!("{} and {last}", all.join(", ")),
        };
        Some(format!("{name} leaves out {left_out}"))
    }

    fn text(&self, part: Part) -> String {
        let counted = |one: &str, several: &str| match self.amounts[part as usize] {
            1 => format!("1 {one}"),
            count => format!("{count} {several}"),
        };
        match part {
            Part::Kinds => {
                format!("{} beside {}", counted("kind of samples", "kinds of samples"), self.shown_kind)
            }
            Part::FileDetails => {
                let said = DETAILS.iter().zip(self.details).filter(|(_, is_said)| *is_said);
                said.map(|(text, _)| *text).collect::<Vec<_>>().join(", ")
            }
            Part::NotPositive => counted("sample of 0 or less", "samples of 0 and less"),
            Part::Unsampled => counted("process without samples", "processes without samples"),
            Part::Programs => counted("executed program", "executed programs"),
            Part::Events => counted("raw event", "raw events"),
            Part::Spans => counted("span", "spans"),
            Part::Tables => counted("table or histogram", "tables and histograms"),
            _ => part.text().to_owned(),
        }
    }

    fn add(&mut self, part: Part, amount: usize) {
        let amounts = &mut self.amounts[part as usize];
        *amounts = amounts.saturating_add(amount as u64);
    }

    fn add_if(&mut self, part: Part, is_there: bool) {
        self.amounts[part as usize] |= u64::from(is_there);
    }

    fn add_samples(&mut self, machine: &ExportMachine) {
        let samples = machine.samples();
        self.add(Part::Kinds, samples.kinds().count().saturating_sub(1));
        // What one time is told of all is that of the recording.
        self.add_if(Part::Times, samples.span().is_some_and(|(first, last)| first < last));
        self.add_if(Part::EarlyTimes, is_early(machine));
        let mut has_cpus = false;
        let mut not_positive = 0;
        let mut lists = KeySet::default();
        for sample in samples.iter() {
            has_cpus |= sample.cpu != 0;
            not_positive += usize::from(sample.value <= 0);
            lists.insert(sample.attributes);
        }
        self.add_if(Part::Cpus, has_cpus);
        self.add(Part::NotPositive, not_positive);
        for &list in &lists {
            for &(name, _) in machine.attributes().get(list) {
                let is_estimate = machine.string(name) == ESTIMATED;
                self.add_if(if is_estimate { Part::Estimates } else { Part::Attributes }, true);
            }
        }
        let is_measured = |kind: SampleKindId| {
            let kind = machine.kinds().get(usize::from(kind.0));
            kind.is_some_and(|kind| kind.period > 1 || kind.unit != Unit::Count)
        };
        self.add_if(Part::Periods, samples.kinds().any(is_measured));
        // Where no output holds them, they are counted alone.
        let events = machine.event_records();
        self.add(Part::Events, events.len());
        self.add(Part::Events, events.not_asked_for().try_into().unwrap_or(usize::MAX));
    }

    fn add_processes(&mut self, machine: &ExportMachine) {
        let used = used(machine);
        for (process, is_used) in machine.processes().iter().zip(used) {
            // A reader of other tools' files has one without id and name where they tell of none.
            let is_named = process.pid.0 != 0 || !machine.string(process.name).is_empty();
            self.add_if(Part::Processes, is_named);
            self.add(Part::Unsampled, usize::from(is_named && !is_used));
            self.add_if(Part::ThreadIds, process.pid.0 != 0);
            let has_cgroup = !machine.string(process.cgroup).is_empty();
            self.add_if(Part::Owners, process.user.is_some() || has_cgroup);
            self.add_if(Part::Containers, !machine.string(process.container).is_empty());
            self.add_if(Part::Lives, process.start.0 > 0 || process.end.is_some());
            self.add_if(Part::Parents, process.parent.is_some());
            self.add_if(Part::ExitStatuses, process.exit.is_some());
            self.add_if(Part::NamespacePids, other_pid(process).is_some());
        }
        let mut names = Table::default();
        for thread in machine.threads() {
            let name = *names.entry((thread.process, thread.tid)).or_insert(thread.name);
            self.add_if(Part::Renames, name != thread.name);
        }
        let has_arguments = |program| machine.arguments(program).next().is_some();
        self.add_if(Part::Owners, machine.programs().iter().any(has_arguments));
        self.add(Part::Programs, machine.programs().len());
    }

    fn add_code(&mut self, profile: Profile<'_>) {
        let Profile { machine, symbols } = profile;
        for (module, id) in machine.modules().iter().zip(0..) {
            // What has no file, or one that nobody tells of, is called so in brackets by readers of other tools' files.
            let path = machine.string(module.path);
            let is_told = !path.is_empty() && !path.starts_with('[');
            self.add_if(Part::Files, module.kind == ModuleKind::File && is_told);
            self.add_if(Part::BuildIds, module.build_id.is_some());
            for (at, is_said) in machine.details(ModuleId(id)).map(said).into_iter().flatten().enumerate() {
                self.details[at] |= is_said;
            }
        }
        self.add_if(Part::FileDetails, self.details.contains(&true));
        // Such readers make places up, too, where a file has none.
        let is_made_up = |mapping: &ModuleMapping| WITHOUT_ADDRESS.contains(&mapping.start.0);
        self.add_if(Part::Mappings, !machine.mappings().iter().all(is_made_up));
        for (frame, id) in machine.frames().iter().zip(0..) {
            self.add_if(Part::Guesses, frame.flags.has(FrameFlags::HEURISTIC));
            for function in symbols.functions(FrameId(id)) {
                self.add_if(Part::Lines, function.line > 0);
                self.add_if(Part::Sources, !symbols.function(function.file).is_empty());
                self.add_if(Part::Inlined, function.is_inlined);
            }
        }
    }

    fn add_rest(&mut self, machine: &ExportMachine) {
        let system = machine.system();
        let is_told = [&system.distribution, &system.processor].iter().any(|text| !text.is_empty());
        self.add_if(Part::System, is_told || system.memory > 0);
        self.add_if(Part::Host, !system.host.is_empty() || !system.kernel.is_empty());
        self.add_if(Part::FrameRules, !system.drop_frames.is_empty());
        self.add_if(Part::Command, !system.command.is_empty());
        self.add_if(Part::Account, !account(machine).is_empty());
        self.add(Part::Spans, machine.spans().len());
        let lives = usize::from(!machine.lives().is_empty());
        self.add(Part::Tables, machine.tables().len() + machine.histograms().len() + lives);
    }
}

#[cfg(test)]
mod tests {
    use collector_common::record::{DebugLink, Module, Pdb, PerfMap, Signature};

    use super::*;
    use crate::symbolize::Symbols;

    #[test]
    fn details_of_files_are_called_what_they_are() {
        let told = |details: ModuleDetails| {
            let mut machine = ExportMachine::default();
            let path = machine.intern_string("app.dll");
            let module = machine.add_module(Module { kind: ModuleKind::Kernel, path, build_id: None });
            machine.set_details(module, details);
            let symbols = Symbols::unresolved(&machine);
            Contents::of(Profile { machine: &machine, symbols: &symbols }).left_out_by("x", Holds::nothing())
        };
        let debug_link = Some(DebugLink { name: "app.debug".to_owned(), checksum: 7 });
        let pdb = Some(Pdb { path: "app.pdb".to_owned(), signature: Signature([7; 16]), age: 1 });
        let perf_map = Some(PerfMap { path: "app.ni.r2rmap".to_owned(), signature: [7; 16], version: 1 });
        let version = Some("1.0.0.0".to_owned());
        let none = ModuleDetails::default;
        for (details, text) in [
            (ModuleDetails { debug_link, ..none() }, "debug links, packages of files"),
            (ModuleDetails { package: Some("{}".to_owned()), ..none() }, "debug links, packages of files"),
            (ModuleDetails { version, pdb, ..none() }, "versions of images, names and signatures of PDBs"),
            (ModuleDetails { perf_map, ..none() }, "names and signatures of perf maps"),
        ] {
            assert_eq!(told(details), Some(format!("x leaves out {text}")));
        }
        assert_eq!(told(none()), None);
    }
}
