//! What a file with the records themselves has of a recording, beside what a replay finds in it.

use std::fs::File;

use collector_user::replay::Replay;
use collector_user::session::{Recording, SessionSettings};
use collector_user::source::Named;
use export::format::{Contents, Held, Part, Profile};

use crate::prerequisites::live;
use crate::programs::folder;
use crate::scenarios::{record, settings};

fn contents(recording: &Recording) -> Contents {
    let symbols = recording.symbolize();
    Contents::of(Profile { machine: &recording.machine, symbols: &symbols })
}

#[test]
fn a_file_of_records_has_the_parts_that_are_told() {
    let Some(_live) = live("a_file_of_records_has_the_parts_that_are_told") else { return };
    let folder = folder();
    for scenarios in [&["off_cpu", "scheduling"][..], &[]] {
        let path = folder.path().join(format!("{}.perf.data", scenarios.len()));
        let words = ["sh", "-c", "for i in 1 2 3; do ls / >/dev/null; done; sleep 0.1; exec env true"];
        let Named { hooks: events, .. } =
            Named::parse(&["sched:sched_process_exec".to_owned()], false).unwrap();
        let capture = Some(File::create_new(&path).unwrap());
        let mut settings = SessionSettings { capture, ..settings(scenarios) };
        settings.events.extend(events);
        settings.sampling.clock = true;
        let recorded = record(settings, &words.map(Into::into));
        let replayed = contents(&Replay::open_path(&path).unwrap().run());
        let captured = recorded.captured();
        let there = contents(&recorded);
        for part in Part::ALL.into_iter().filter(|&part| there.has(part)) {
            let is_held = captured.held(part) != Held::Not;
            assert_eq!(replayed.has(part), is_held, "{part:?} with {scenarios:?}");
        }
        let of_scenarios = [there.has(Part::Tables), there.has(Part::Attributes), recorded.not_captured > 0];
        assert_eq!(of_scenarios, [!scenarios.is_empty(); 3]);
        assert!(there.has(Part::Owners) && there.has(Part::Events) && there.has(Part::System));
        let line = there.left_out_by("perf.data", captured).unwrap();
        assert_eq!(line.contains("some other kinds of samples, "), !scenarios.is_empty(), "{line}");
    }
}
