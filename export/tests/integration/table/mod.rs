//! One recording of known truth in every format, each read back by a reader that is not ours, but for the HTML page, whose own decoder
//! reads it, and nettrace, which our strict reader does: the same samples, threads, times, functions and totals as far as the format has a
//! place for them, and nothing else.
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

use export::format::{Profile, formats};

use facts::{Fact, Reader, Row, Sums, Told, sums};
use recording::{INLINED, recording};

/// A reader for each format.
const READERS: [Reader; 13] = [
    html::READER,
    pprof::READER,
    folded::FOLDED,
    folded::FLAME_GRAPH,
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

#[test]
fn each_format_holds_what_its_reader_finds() {
    let (machine, symbols) = recording();
    let mut wrong = Vec::new();
    for reader in &READERS {
        let format = export::format::by_name(reader.format).unwrap();
        let mut bytes = Vec::new();
        format.write(Profile { machine: &machine, symbols: &symbols }, &mut bytes).unwrap();
        wrong.extend((reader.read)(&bytes).map(|told| differences(reader, told)));
    }
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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

/// Which rows of the documentation's table say that the format of a reader has a place for something.
fn held_rows(reader: &Reader) -> BTreeSet<&'static str> {
    let mut held_rows: BTreeSet<_> = reader.facts.iter().filter_map(|fact| fact.documented()).collect();
    let rows = held(reader);
    let mut add =
        |name, is_held: &dyn Fn(&Row) -> bool| held_rows.extend(rows.iter().any(is_held).then_some(name));
    add("time of a sample", &|row| row.time.is_some());
    add("CPU", &|row| row.cpu.is_some());
    add("attributes (lock, file, system call, `estimated`): labels and numbers", &|row| {
        !row.attributes.is_empty()
    });
    add("process of a sample", &|row| row.pid.is_some());
    add("thread of a sample", &|row| row.thread.is_some());
    add("inlined functions", &|row| row.stack.iter().any(|name| name == INLINED));
    add("kinds of samples", &|row| row.kind != "cpu");
    held_rows
}

/// What the documentation calls no place.
const NONE: [&str; 3] = ["no", "order alone", "the first one with samples"];

#[test]
fn the_documentation_says_what_formats_hold() {
    let documented = documented();
    let columns: BTreeSet<_> = documented.keys().map(|(_, column)| column.as_str()).collect();
    assert_eq!(columns, READERS.iter().map(|reader| reader.column).collect());
    for ((row, column), cell) in &documented {
        let says = !NONE
            .iter()
            .any(|none| cell.strip_prefix(none).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)));
        let of_column = READERS.iter().filter(|reader| reader.column == column);
        let is_held = of_column.clone().any(|reader| held_rows(reader).contains(row.as_str()));
        assert_eq!(says, is_held, "{row} of {column}: {cell}");
    }
}
