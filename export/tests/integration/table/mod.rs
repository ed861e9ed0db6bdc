//! One recording of known truth in every format, each read back by a reader that is not ours, but for the HTML page, which has a layout of its
//! own: the decoder in it reads it, and a browser shows it. There are the same samples, threads, times, functions and totals as far as the
//! format has a place for them, and nothing else.
//!
//! `.perf.data` is not among them, since the kernel's own records are written as they come: `collector-user/tests/live/captured.rs` compares it, by
//! `perf script`, with JSON lines of the same recording.
//!
//! - `recording`: what is recorded, and all that is true of it; `facts`: the words for it.
//! - A file for each format, or for two that are alike, with its `READER`.

mod facts;
mod firefox;
mod folded;
mod html;
mod jfr;
mod jsonl;
mod nettrace;
mod otlp;
mod parquet;
mod perfetto;
mod perfview;
mod pprof;
mod recording;
mod speedscope;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use collector_common::record::{ESTIMATED, ExportMachine};
use export::format::{Contents, ExportFormat, Held, Holds, Part, Profile, formats};
use export::symbolize::Symbols;

use facts::{Fact, Reader, Row, Sums, Told, sums};
use recording::{INLINED, recording, with_unnamed, without_samples};

/// A reader for each format.
const READERS: [Reader; 14] = [
    html::READER,
    pprof::READER,
    folded::FOLDED,
    folded::FLAME_GRAPH,
    folded::ICICLE,
    speedscope::READER,
    firefox::READER,
    nettrace::READER,
    perfview::READER,
    perfetto::READER,
    otlp::READER,
    jfr::READER,
    parquet::READER,
    jsonl::READER,
];

/// A profile in a format.
fn written(format: &str, profile: Profile<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    export::format::by_name(format).unwrap().write(profile, &mut bytes).unwrap();
    bytes
}

/// A reader's format, and what the reader tells of a profile in it; none where that is not here.
fn written_and_read(reader: &Reader, profile: Profile<'_>) -> (&'static dyn ExportFormat, Option<Told>) {
    let format = export::format::by_name(reader.format).unwrap();
    (format, (reader.read)(&written(reader.format, profile)))
}

#[test]
fn each_format_holds_what_its_reader_finds() {
    let (machine, symbols) = recording();
    let mut wrong = Vec::new();
    for reader in &READERS {
        let (_, told) = written_and_read(reader, Profile { machine: &machine, symbols: &symbols });
        wrong.extend(told.map(|told| differences(reader, told)));
    }
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Code without a name is called by its file and address, and this one is the same in all formats: that of the call, which was looked up.
#[test]
fn code_without_a_name_has_one_address_everywhere() {
    let (machine, symbols) = with_unnamed();
    for reader in &READERS {
        let profile = Profile { machine: &machine, symbols: &symbols };
        let (_, Some(told)) = written_and_read(reader, profile) else { continue };
        let is_unnamed = |row: &&Row| row.stack.iter().any(|name| name.contains("+0x"));
        let rows: Vec<&Row> = told.rows.iter().filter(is_unnamed).collect();
        let [Row { stack, .. }] = &rows[..] else { panic!("{}: {rows:?}", reader.format) };
        assert_eq!(*stack, ["main", "app+0x470f", "app+0x4620"], "{}", reader.format);
    }
}

/// What is in a file and was not recorded, and the other way round.
fn differences(reader: &Reader, told: Told) -> Vec<String> {
    if reader.has_single_samples && told.rows.iter().all(|row| row.time.is_none()) {
        let mut expected = recording::rows();
        expected.sort_by_key(|row| row.time);
        let expected = by_thread(expected.into_iter().filter_map(reader.holds));
        assert_eq!(by_thread(told.rows.clone()), expected, "order of {}", reader.format);
    }
    let (mut expected, mut found) = (sums(held(reader)), sums(told.rows));
    if !reader.has_single_samples {
        expected.values_mut().chain(found.values_mut()).for_each(|(count, _)| *count = 1);
    }
    let of_samples = |all: &Sums| -> BTreeSet<String> { all.iter().map(|row| format!("{row:?}")).collect() };
    let is_held = |(fact, _): &(Fact, String)| reader.facts.contains(fact);
    let known: BTreeSet<_> = recording::facts().into_iter().filter(is_held).collect();
    let of_facts = |all: &BTreeSet<(Fact, String)>| -> BTreeSet<String> {
        all.iter().map(|(fact, text)| format!("{fact:?} {text}")).collect()
    };
    let all = [(of_samples(&expected), of_samples(&found)), (of_facts(&known), of_facts(&told.facts))];
    let of_pair = |(expected, found): (BTreeSet<String>, BTreeSet<String>)| {
        let lacking = expected.difference(&found).map(|line| format!("{} lacks {line}", reader.format));
        let beyond = found.difference(&expected).map(|line| format!("{} has {line}", reader.format));
        lacking.chain(beyond).collect::<Vec<_>>()
    };
    all.into_iter().flat_map(of_pair).collect()
}

/// Samples of each kind and thread, in their order.
fn by_thread(rows: impl IntoIterator<Item = Row>) -> BTreeMap<Row, Vec<Row>> {
    let mut all = BTreeMap::<Row, Vec<Row>>::new();
    for row in rows {
        let thread = Row { stack: Vec::new(), value: 0, ..row.clone() };
        all.entry(thread).or_default().push(row);
    }
    all
}

/// What a format holds of the samples.
fn held(reader: &Reader) -> Vec<Row> {
    recording::rows().into_iter().filter_map(reader.holds).collect()
}

#[test]
fn each_format_has_a_reader() {
    let formats: Vec<_> = formats().iter().map(|format| format.name()).collect();
    let readers: Vec<_> = READERS.iter().map(|reader| reader.format).collect();
    assert_eq!(readers, formats, "in the order of the list");
}

/// Cells of the table in `docs/formats.md`, by row and column.
fn documented() -> BTreeMap<(String, String), String> {
    let page = include_str!("../../../../docs/formats.md");
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = page.lines().skip_while(|line| !line.starts_with("| | HTML |"));
    let columns = cells(lines.next().unwrap());
    let rows = lines.skip(1).take_while(|line| line.starts_with('|')).map(cells);
    rows.flat_map(|row| {
        let of_columns = columns[1..].iter().zip(&row[1..]);
        let cells = of_columns.map(|(column, cell)| ((row[0].clone(), column.clone()), cell.clone()));
        cells.collect::<Vec<_>>()
    })
    .collect()
}

/// The row of the documentation's table that tells of a part.
fn documented_row(part: Part) -> &'static str {
    match part {
        Part::Kinds => "kinds of samples",
        Part::NotPositive => "samples of 0 and less",
        Part::Times => "time of a sample",
        Part::EarlyTimes => "times of day before 1970",
        Part::Cpus => "CPU",
        Part::Attributes | Part::Estimates => {
            "attributes (lock, file, system call, `estimated`): labels and numbers"
        }
        Part::Processes => "process of a sample",
        Part::Unsampled => "processes without samples",
        Part::Owners | Part::Containers => "command line, user, container, cgroup of a process",
        Part::Programs => "programs that a process executed, with times",
        Part::ThreadIds | Part::Renames => "thread of a sample",
        Part::Lives | Part::Parents => "starts, ends and parents of processes",
        Part::ExitStatuses => "how a process ended: its exit status, or a signal",
        Part::NamespacePids => "pid of a process in its pid namespace, where it is another one",
        Part::Files | Part::BuildIds | Part::FileDetails => "files",
        Part::Mappings => "mappings",
        Part::Lines | Part::Sources => "source lines",
        Part::Inlined => "inlined functions",
        Part::Guesses => "guessed frames",
        Part::FrameRules => "frames to be dropped or kept",
        Part::Periods => "unit and period of a kind",
        Part::System => "distribution, processor, memory",
        Part::Host | Part::Command => "host, kernel, command",
        Part::Account => "account of losses, numbers of an embedding program",
        Part::Events => "raw events with their fields",
        Part::Spans => "spans of an embedding program",
        Part::Tables => "tables, histograms",
        other => panic!("{other:?} has no row"),
    }
}

/// What the documentation calls no place.
const NONE: [&str; 3] = ["no", "order alone", "the main one"];

#[test]
fn the_documentation_says_what_formats_declare() {
    let documented = documented();
    let columns: BTreeSet<_> = documented.keys().map(|(_, column)| column.as_str()).collect();
    assert_eq!(columns, READERS.iter().map(|reader| reader.column).collect());
    let rows: BTreeSet<_> = documented.keys().map(|(row, _)| row.as_str()).collect();
    assert_eq!(rows, Part::ALL.into_iter().map(documented_row).collect());
    for ((row, column), cell) in &documented {
        let says = !NONE
            .iter()
            .any(|none| cell.strip_prefix(none).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)));
        let of_column = READERS.iter().filter(|reader| reader.column == column);
        let holds = of_column.map(|reader| export::format::by_name(reader.format).unwrap().holds());
        let mut parts = Part::ALL.into_iter().filter(|&part| documented_row(part) == row);
        let is_held = parts.any(|part| holds.clone().any(|holds| holds.has(part)));
        assert_eq!(says, is_held, "{row} of {column}: {cell}");
    }
}

/// What samples say of a part, by what that is about.
fn of_samples(part: Part, rows: &[Row]) -> Option<BTreeSet<String>> {
    let each = |told: &dyn Fn(&Row) -> Option<String>| Some(rows.iter().filter_map(told).collect());
    let attributes = |is_wanted: fn(&str) -> bool| {
        let all = rows.iter().flat_map(|row| row.attributes.iter().map(|pair| (&row.kind, pair)));
        let wanted = all.filter(|(_, (name, _))| is_wanted(name));
        Some(wanted.map(|(kind, (name, value))| format!("{kind} {name} {value}")).collect())
    };
    match part {
        Part::Kinds => each(&|row| (row.kind != "cpu").then(|| row.kind.clone())),
        Part::NotPositive => each(&|row| (row.value <= 0).then(|| format!("{} {}", row.kind, row.value))),
        // To the microsecond.
        Part::Times => each(&|row| Some((row.time? / 1000).to_string())),
        Part::Cpus => each(&|row| Some(format!("{} {}", row.kind, row.cpu?))),
        Part::Attributes => attributes(|name| name != ESTIMATED),
        Part::Estimates => attributes(|name| name == ESTIMATED),
        Part::Processes => each(&|row| Some(format!("{} {}", row.pid?, row.process.as_ref()?))),
        Part::ThreadIds => each(&|row| Some(row.tid?.to_string())),
        Part::Inlined => each(&|row| row.stack.iter().find(|name| *name == INLINED).cloned()),
        _ => None,
    }
}

/// Whether the thread that changes its name has both names in samples of one kind, or a moment tells of it.
fn renames(told: &Told) -> BTreeSet<String> {
    let of_thread =
        |row: &&Row| row.kind == "cpu" && row.thread.as_ref().is_some_and(|name| name.starts_with("app"));
    let threads = told.rows.iter().filter(of_thread).filter(|row| row.pid.is_none_or(|pid| pid == 300));
    let names: BTreeSet<_> = threads.filter_map(|row| row.thread.as_deref()).collect();
    let is_told = names.len() > 1 || told.facts.iter().any(|(fact, _)| *fact == Fact::Renamed);
    is_told.then(|| "app: ready".to_owned()).into_iter().collect()
}

/// How much of a part a reader finds of what was recorded; none where nothing was recorded that would tell.
fn found(part: Part, holds: Holds, told: &Told) -> Option<Held> {
    let mut recorded = Told { rows: recording::rows(), facts: recording::facts() };
    if !holds.has(Part::Kinds) && part != Part::Kinds {
        recorded.rows.retain(|row| row.kind == "cpu");
    }
    let facts = |told: &Told| -> BTreeSet<String> {
        let of_part = told.facts.iter().filter(|(fact, _)| fact.part() == Some(part));
        of_part.map(|(fact, text)| format!("{fact:?} {text}")).collect()
    };
    let both = |of: &dyn Fn(&Told) -> BTreeSet<String>| [of(&recorded), of(told)];
    let [recorded, found] = match part {
        Part::Renames => both(&renames),
        part => match (of_samples(part, &recorded.rows), of_samples(part, &told.rows)) {
            (Some(recorded), Some(found)) => [recorded, found],
            _ => both(&facts),
        },
    };
    let is_linked = part == Part::Mappings && told.facts.iter().any(|(fact, _)| *fact == Fact::Segment);
    match recorded.intersection(&found).count() {
        _ if recorded.is_empty() => None,
        0 if is_linked => Some(Held::Partly),
        0 => Some(Held::Not),
        count if count < recorded.len() => Some(Held::Partly),
        _ => Some(Held::Wholly),
    }
}

#[test]
fn formats_declare_what_their_readers_find() {
    let (machine, symbols) = recording();
    let profile = Profile { machine: &machine, symbols: &symbols };
    let contents = Contents::of(profile);
    // What is early has a test of its own.
    let mut others = Part::ALL.into_iter().filter(|part| *part != Part::EarlyTimes);
    assert!(others.all(|part| contents.has(part)), "nothing is left to chance");
    let mut wrong = Vec::new();
    for reader in &READERS {
        let (format, Some(told)) = written_and_read(reader, profile) else { continue };
        let holds = format.holds();
        for part in Part::ALL {
            let found = found(part, holds, &told);
            if found.is_some_and(|found| found != holds.held(part)) {
                let declared = holds.held(part);
                wrong.push(format!(
                    "{}: {part:?} is declared as {declared:?}, found as {found:?}",
                    reader.format
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The line of what a format leaves out has attributes and spans if, and only if, its reader lacks some.
#[test]
fn formats_say_that_attributes_and_spans_are_left_out() {
    let (machine, symbols) = recording();
    let profile = Profile { machine: &machine, symbols: &symbols };
    let contents = Contents::of(profile);
    let mut wrong = Vec::new();
    for reader in &READERS {
        let (format, Some(told)) = written_and_read(reader, profile) else { continue };
        let line = contents.left_out(format).unwrap();
        let (_, left_out) = line.split_once(" leaves out ").unwrap();
        let left_out: Vec<&str> = left_out.split(", ").flat_map(|part| part.split(" and ")).collect();
        for (part, [none, some]) in
            [(Part::Attributes, ["attributes", "some attributes"]), (Part::Spans, ["3 spans", "some spans"])]
        {
            let expected = match found(part, format.holds(), &told).unwrap() {
                Held::Not => Some(none),
                Held::Partly => Some(some),
                Held::Wholly => None,
            };
            let said = left_out.iter().copied().find(|said| [none, some].contains(said));
            if said != expected {
                wrong.push(format!("{} says {said:?}, and not {expected:?}", reader.format));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Of a recording without samples a format tells what is of it as a whole, or that it leaves that out.
#[test]
fn formats_say_what_is_lost_without_samples() {
    let (machine, symbols) = without_samples();
    let profile = Profile { machine: &machine, symbols: &symbols };
    let contents = Contents::of(profile);
    let mut wrong = Vec::new();
    for reader in &READERS {
        let (format, Some(told)) = written_and_read(reader, profile) else { continue };
        let line = contents.left_out(format).unwrap_or_default();
        for part in [Part::System, Part::Host, Part::Command, Part::Account] {
            let is_lost = found(part, format.holds(), &told) != Some(Held::Wholly);
            if line.contains(part.text()) != is_lost {
                wrong.push(format!("{}: {part:?} is lost is {is_lost}, and {line}", reader.format));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the recording has, told of the format with the fewest parts, of one that lacks some parts of what it holds, and of one from
/// outside that says it holds everything.
#[test]
fn what_is_left_out_is_one_line() {
    struct Everything;

    impl ExportFormat for Everything {
        fn name(&self) -> &'static str {
            "everything"
        }

        fn ending(&self) -> &'static str {
            ".everything"
        }

        fn description(&self) -> &'static str {
            "whatever there is"
        }

        fn holds(&self) -> Holds {
            Holds::everything()
        }

        fn write(&self, _: Profile<'_>, _: &mut dyn io::Write) -> io::Result<()> {
            Ok(())
        }
    }

    let (machine, symbols) = recording();
    let contents = Contents::of(Profile { machine: &machine, symbols: &symbols });
    let left_out = |name| contents.left_out(export::format::by_name(name).unwrap());
    assert_eq!(
        left_out("folded").unwrap(),
        "folded leaves out 3 kinds of samples beside cpu, times, CPUs, attributes, which values are estimates, processes, 1 process without samples, threads' ids, \
         command lines, users, cgroups, containers, 2 executed programs, starts and ends of processes, parents of processes, exit statuses, pids in their namespaces, files, \
         build ids, debug links, packages of files, mappings, source lines, source files, which frames are guessed, which frames to drop, periods, \
         distribution, processor, memory, host, kernel, the command, the account of losses, 2 raw events, 3 spans and 3 tables and \
         histograms"
    );
    assert_eq!(
        left_out("perfetto").unwrap(),
        "perfetto leaves out some CPUs, some attributes, some of which values are estimates, debug links, packages of files, \
         processes and times of mappings, which frames are guessed, which frames to drop, distribution, processor, memory, \
         raw events but all CPUs' switches and wakeups of threads and 3 tables and histograms"
    );
    assert_eq!(contents.left_out(&Everything), None);
    let empty = ExportMachine::default();
    let symbols = Symbols::unresolved(&empty);
    let nothing = Contents::of(Profile { machine: &empty, symbols: &symbols });
    assert!(formats().iter().all(|format| nothing.left_out(*format).is_none()));
}
