//! `--kind NAME`: which kind of samples those outputs show that have room for one. In what holds all kinds it is looked at first.
//!
//! Kinds are called as outputs tell of them: `cpu`, `off_cpu`, and of an event as `-e` has it. Of several of one name, as files of other
//! tools may have, `NAME/UNIT` tells one from the others.

use std::fmt::Write as _;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
use collector_common::event::EventFlags;
use collector_common::event::near;
use collector_common::record::{ExportMachine, SampleKind, SampleKindId, Unit};
#[cfg(target_os = "linux")]
use collector_user::session::SessionSettings;
#[cfg(target_os = "linux")]
use collector_user::source::Trigger;
use export::hottest::printable;
use export::symbolize::Symbols;

use crate::output::Output;
use crate::raw::{NAME, is_raw};
use crate::{Usage, say};

/// As many kinds are listed by name; of more it is told how many they are.
const MOST_LISTED: usize = 20;

/// What the sampling clock's kind is called.
#[cfg(target_os = "linux")]
const OF_CLOCK: &str = "cpu";

/// The kind of a name, which is shown from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) kind: SampleKindId,
    pub(crate) name: String,
    /// Whether there are samples of it.
    pub(crate) is_sampled: bool,
    /// What a user should know of it.
    pub(crate) warning: Option<String>,
}

/// Has a recording show the kind that was asked for, if one was.
///
/// # Errors
/// Where there is none of that name.
pub(crate) fn choose(machine: &mut ExportMachine, asked: Option<&str>) -> Result<Option<Chosen>, Usage> {
    let Some(asked) = asked else { return Ok(None) };
    let chosen = find(machine, asked)?;
    machine.set_main_kind(chosen.kind);
    Ok(Some(chosen))
}

/// The same for outputs. Where there are no samples of it, those with room for one kind will have none.
///
/// # Errors
/// Where there is none of that name.
pub(crate) fn choose_for(
    machine: &mut ExportMachine,
    asked: Option<&str>,
    outputs: &mut [Output],
) -> Result<(), Usage> {
    let Some(chosen) = choose(machine, asked)? else { return Ok(()) };
    if let Some(warning) = &chosen.warning {
        say(&format!("warning: {warning}"));
    }
    if !chosen.is_sampled {
        for output in outputs {
            output.show_nothing_of(&chosen.name);
        }
    }
    Ok(())
}

/// `--kind` where every output has records: it would change nothing.
pub(crate) fn refuse_of_records(
    asked: Option<&str>,
    outputs: &[PathBuf],
    format: Option<&str>,
) -> Result<(), Usage> {
    if asked.is_none() || outputs.is_empty() || !outputs.iter().all(|path| is_raw(path, format)) {
        return Ok(());
    }
    Err(Usage(format!(
        "--kind is of outputs with samples, and {NAME} has records: give it to `collector convert`, or name one beside"
    )))
}

/// Refuses a name that no samples will have which a session makes.
#[cfg(target_os = "linux")]
pub(crate) fn refuse_unrecorded(asked: Option<&str>, settings: &SessionSettings) -> Result<(), Usage> {
    let Some(asked) = asked else { return Ok(()) };
    let kinds = recorded(settings);
    let mut names: Vec<&str> = kinds.iter().map(|(name, _)| *name).collect();
    names.dedup();
    if names.contains(&asked) || in_unit(asked).is_some_and(|kind| kinds.contains(&kind)) {
        return Ok(());
    }
    if names.is_empty() {
        let why =
            "nothing of what is recorded has samples: leave it out, or name a scenario or an event that has";
        return Err(Usage(format!("--kind {asked}: {why}")));
    }
    let there = listed(names.iter().map(|name| (*name).to_owned()));
    Err(Usage(format!(
        "no kind of samples that is recorded is called `{asked}`{}There will be {there}",
        hint(asked, names.iter().copied())
    )))
}

/// What the kinds will be called, and their units.
#[cfg(target_os = "linux")]
fn recorded(settings: &SessionSettings) -> Vec<(&str, Unit)> {
    let clock = settings.sampling.clock.then_some((OF_CLOCK, Unit::Count));
    let stacks = settings.events.iter().filter(|hook| hook.event.flags().contains(EventFlags::CALLSTACK));
    let of_events = stacks.flat_map(|hook| {
        let further: &[_] = match hook.trigger {
            Trigger::Program(program) => program.further_kinds(),
            _ => &[],
        };
        std::iter::once((hook.event.name(), hook.unit())).chain(further.iter().copied())
    });
    clock.into_iter().chain(of_events).collect()
}

/// What a recording is without its samples.
pub(crate) fn without_samples(machine: &ExportMachine) -> (ExportMachine, Symbols) {
    let mut nothing = ExportMachine::default();
    nothing.system_mut().clone_from(machine.system());
    let symbols = Symbols::unresolved(&nothing);
    (nothing, symbols)
}

/// `NAME/UNIT`.
fn in_unit(asked: &str) -> Option<(&str, Unit)> {
    let (name, unit) = asked.rsplit_once('/')?;
    Some((name, Unit::by_name(unit)?))
}

/// A kind of a recording.
#[derive(Clone, Copy)]
struct Known<'a> {
    id: SampleKindId,
    name: &'a str,
    kind: SampleKind,
    is_sampled: bool,
}

impl Known<'_> {
    fn text(&self) -> String {
        format!("{} ({})", printable(self.name), self.kind.unit.name())
    }
}

fn known(machine: &ExportMachine) -> Vec<Known<'_>> {
    let kinds = machine.kinds().iter().zip((0..).map(SampleKindId));
    let known = kinds.map(|(&kind, id)| {
        let is_sampled = machine.samples().has_kind(id);
        Known { id, name: machine.string(kind.name), kind, is_sampled }
    });
    known.collect()
}

fn find(machine: &ExportMachine, asked: &str) -> Result<Chosen, Usage> {
    let known = known(machine);
    let (sampled, others): (Vec<_>, Vec<_>) = known.iter().copied().partition(|kind| kind.is_sampled);
    // Those with samples first.
    let all = || sampled.iter().chain(&others);
    let mut found: Vec<_> = all().filter(|kind| kind.name == asked).collect();
    if found.is_empty()
        && let Some((name, unit)) = in_unit(asked)
    {
        found = all().filter(|kind| kind.name == name && kind.kind.unit == unit).collect();
    }
    let of_sampled = || listed(sampled.iter().map(Known::text));
    let Some(&&Known { id, name, kind, is_sampled }) = found.first() else {
        let without = listed(others.iter().map(Known::text));
        let there = match (sampled.is_empty(), others.is_empty()) {
            (true, true) => "It has none".to_owned(),
            (true, false) => format!("It has no samples, though of {without} there might be some"),
            (false, true) => format!("It has {}", of_sampled()),
            (false, false) => format!("It has {}, and of {without} no samples", of_sampled()),
        };
        let hint = hint(asked, all().map(|kind| kind.name));
        let asked = printable(asked);
        return Err(Usage(format!("no kind of samples of the recording is called `{asked}`{hint}{there}")));
    };
    let name = printable(name);
    let same = found.iter().filter(|kind| kind.is_sampled).count();
    let warning = if !is_sampled {
        let there = if sampled.is_empty() { "any other".to_owned() } else { of_sampled() };
        let has = if sampled.is_empty() { "nor of" } else { "but of" };
        Some(format!("the recording has no samples of {name} (--kind), {has} {there}"))
    } else if same > 1 {
        let unit = kind.unit.name();
        Some(format!("{same} kinds of samples are called {name}: the first of them is shown, {name}/{unit}"))
    } else {
        None
    };
    Ok(Chosen { kind: id, name, is_sampled, warning })
}

/// What may have been meant, and the end of what is before.
fn hint<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> String {
    let near = near(asked, names);
    if near.is_empty() {
        return ". ".to_owned();
    }
    let near: Vec<_> = near.into_iter().map(printable).collect();
    format!(": did you mean {}? ", near.join(" or "))
}

fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(MOST_LISTED);
    let mut text = names.take(MOST_LISTED).collect::<Vec<_>>().join(", ");
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use collector_common::ids::{Nanos, Pid, Tid};
    use collector_common::record::Sample;
    use collector_user::output::Places;
    use export::format::{Profile, by_name};

    use super::*;

    /// Kinds by name and unit, each with so many samples of 1.
    fn recording(kinds: &[(&str, Unit, usize)]) -> ExportMachine {
        let mut machine = ExportMachine::default();
        let process = machine.add_process(Pid(7), "prog", None, Nanos(0));
        let name = machine.intern_string("prog");
        let thread = machine.intern_thread(process, Tid(7), name);
        for &(name, unit, count) in kinds {
            let kind = machine.add_kind(name, unit, 1);
            for _ in 0..count {
                machine.add_sample(&Sample { thread, kind, value: 1, ..Sample::default() });
            }
        }
        machine
    }

    const KINDS: [(&str, Unit, usize); 4] = [
        ("cpu", Unit::Count, 3),
        ("off_cpu", Unit::Nanoseconds, 2),
        ("inuse_space", Unit::Bytes, 0),
        ("sched:sched_switch", Unit::Count, 5),
    ];

    fn refused(machine: &ExportMachine, asked: &str) -> String {
        let Err(Usage(why)) = find(machine, asked) else { panic!("{asked} is there") };
        why
    }

    #[test]
    fn what_is_asked_for_is_shown() {
        for (asked, shown, lines) in [
            (None, 0, "prog 3\n"),
            (Some("cpu"), 0, "prog 3\n"),
            (Some("off_cpu"), 1, "prog 2\n"),
            (Some("sched:sched_switch"), 3, "prog 5\n"),
            (Some("off_cpu/nanoseconds"), 1, "prog 2\n"),
        ] {
            let mut machine = recording(&KINDS);
            let chosen = choose(&mut machine, asked).unwrap();
            assert!(chosen.is_none_or(|chosen| chosen.is_sampled && chosen.warning.is_none()));
            assert_eq!(machine.shown_kind(), Some(SampleKindId(shown)));
            let symbols = Symbols::unresolved(&machine);
            let profile = Profile { machine: &machine, symbols: &symbols };
            let mut folded = Vec::new();
            by_name("folded").unwrap().write(profile, &mut folded).unwrap();
            assert_eq!(String::from_utf8(folded).unwrap(), lines, "{asked:?}");
        }
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        let machine = recording(&KINDS);
        assert_eq!(
            refused(&machine, "of_cpu"),
            "no kind of samples of the recording is called `of_cpu`: did you mean off_cpu? It has cpu (count), off_cpu (nanoseconds), \
             sched:sched_switch (count), and of inuse_space (bytes) no samples"
        );
        assert!(refused(&machine, "sched_switch").contains(": did you mean sched:sched_switch? "));
        assert!(refused(&machine, "inuse").contains(": did you mean inuse_space? "));
        for asked in ["allocations", "", "off_cpu/bytes", "off_cpu/", "/count"] {
            let why = refused(&machine, asked);
            assert!(
                why.contains(&format!(" is called `{asked}`")) && why.contains("It has cpu (count), "),
                "{why}"
            );
        }
        assert!(refused(&recording(&[]), "cpu").ends_with("`cpu`. It has none"));
        let unsampled = refused(&recording(&[("cpu", Unit::Count, 0)]), "cp");
        assert!(
            unsampled.ends_with("It has no samples, though of cpu (count) there might be some"),
            "{unsampled}"
        );
        let names: Vec<String> = (0..60).map(|number| format!("call_{number}")).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), Unit::Count, 1)).collect();
        let why = refused(&recording(&many), "x");
        assert!(why.contains(" call_19 (count) and 40 more") && !why.contains("call_20"), "{why}");
    }

    #[test]
    fn names_that_would_drive_a_terminal_do_not() {
        let why = refused(&recording(&[("a\x1b[2J\nb", Unit::Count, 1)]), "a");
        assert!(why.contains("a\u{fffd}[2J\u{fffd}b (count)") && !why.contains(char::is_control), "{why}");
    }

    #[test]
    fn a_kind_without_samples_is_told_and_nothing_is_shown_for_it() {
        let mut machine = recording(&KINDS);
        let chosen = choose(&mut machine, Some("inuse_space")).unwrap().unwrap();
        assert!(!chosen.is_sampled);
        assert_eq!(
            chosen.warning.unwrap(),
            "the recording has no samples of inuse_space (--kind), but of cpu (count), off_cpu (nanoseconds), sched:sched_switch (count)"
        );
        let none = find(&recording(&[("cpu", Unit::Count, 0)]), "cpu").unwrap();
        assert!(none.warning.unwrap().ends_with("no samples of cpu (--kind), nor of any other"));

        let folder = tempfile::tempdir().unwrap();
        let mut taken = Places::default();
        machine.system_mut().host = "build-07".to_owned();
        let symbols = Symbols::unresolved(&machine);
        let mut written = |name: &str| {
            let path = folder.path().join(name);
            let mut output = [Output::open(&path, None, &mut taken).unwrap()];
            let asked = choose_for(&mut machine, Some("inuse_space"), &mut output);
            assert!(asked.is_ok());
            let [output] = output;
            output.write(Profile { machine: &machine, symbols: &symbols }).unwrap();
            std::fs::read_to_string(path).unwrap()
        };
        assert_eq!(written("x.folded"), "");
        assert!(written("x.svg").contains("no samples were recorded"));
        let lines = written("x.jsonl");
        assert_eq!(lines.lines().filter(|line| line.starts_with("{\"type\":\"sample\"")).count(), 10);
    }

    /// Those with samples go first; the unit tells which.
    #[test]
    fn kinds_of_one_name_are_told_apart_by_their_units() {
        let (count, bytes, time) = (Unit::Count, Unit::Bytes, Unit::Nanoseconds);
        let machine =
            recording(&[("alloc", time, 0), ("alloc", count, 2), ("cpu", count, 1), ("alloc", bytes, 3)]);
        let found = |asked: &str| find(&machine, asked).map(|chosen| (chosen.kind.0, chosen.is_sampled)).ok();
        let asked = ["alloc", "alloc/count", "alloc/bytes", "alloc/nanoseconds", "cpu", "cpu/bytes"];
        let expected =
            [Some((1, true)), Some((1, true)), Some((3, true)), Some((0, false)), Some((2, true)), None];
        assert_eq!(asked.map(found), expected);
        let warning = find(&machine, "alloc").unwrap().warning.unwrap();
        assert_eq!(warning, "2 kinds of samples are called alloc: the first of them is shown, alloc/count");
        assert_eq!(find(&machine, "alloc/bytes").unwrap().warning, None);
        // A name may look like one with its unit.
        let machine = recording(&[("a", bytes, 1), ("a/bytes", count, 1)]);
        assert_eq!(find(&machine, "a/bytes").unwrap().kind, SampleKindId(1));
    }

    #[test]
    fn records_have_no_kind_that_is_shown() {
        let refused = |outputs: &[&str], format| {
            let outputs: Vec<_> = outputs.iter().map(PathBuf::from).collect();
            refuse_of_records(Some("cpu"), &outputs, format).is_err()
        };
        assert!(refused(&["x.perf.data"], None) && refused(&["x"], Some("perf.data")));
        assert!(!refused(&["x.perf.data", "x.folded"], None) && !refused(&[], None));
        assert!(refuse_of_records(None, &["x.perf.data".into()], None).is_ok());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_will_not_be_recorded_is_refused_before() {
        use collector_user::scenario;
        use collector_user::source::{Hook, Settings};

        let settings = |clock, scenarios: &[&str]| {
            let sampling = Settings { clock, ..Settings::default() };
            let mut settings = SessionSettings { sampling, ..SessionSettings::default() };
            for name in scenarios {
                scenario::by_name(name).unwrap().register(&mut settings);
            }
            settings
        };
        let refused = |settings: &SessionSettings, asked| match refuse_unrecorded(Some(asked), settings) {
            Ok(()) => None,
            Err(Usage(why)) => Some(why),
        };
        let both = settings(true, &["off_cpu", "memory_tracking", "scheduling"]);
        for name in ["cpu", "off_cpu", "alloc_space", "alloc_objects", "likely_leaks", "off_cpu/nanoseconds"]
        {
            assert_eq!(refused(&both, name), None);
        }
        assert_eq!(
            refused(&both, "offcpu").unwrap(),
            "no kind of samples that is recorded is called `offcpu`: did you mean off_cpu? There will be cpu, off_cpu, alloc_space, \
             alloc_objects, inuse_space, inuse_objects, likely_leaks"
        );
        let off_cpu = settings(false, &["off_cpu"]);
        assert!(refused(&off_cpu, "alloc").unwrap().ends_with("`alloc`. There will be off_cpu"));
        assert!(refused(&off_cpu, "cpu").unwrap().ends_with(": did you mean off_cpu? There will be off_cpu"));
        let counted = refused(&settings(false, &["scheduling"]), "cpu").unwrap();
        assert!(counted.starts_with("--kind cpu: nothing of what is recorded has samples"), "{counted}");
        assert!(refuse_unrecorded(None, &off_cpu).is_ok());
        // An event without stacks has no samples.
        let mut events = settings(false, &[]);
        events.events.extend(Hook::counter("page-faults"));
        assert!(refused(&events, "page-faults").is_some());
        events.events[0].event.flags_mut().set(EventFlags::CALLSTACK, true);
        assert_eq!(refused(&events, "page-faults"), None);
    }
}
