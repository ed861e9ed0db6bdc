//! `collector list formats`: a line for each format that is written and what it holds and leaves out, and one for each that is read, in
//! so many columns as a terminal has.

use collector_user::replay::CAPTURED;
use export::format::{Held, Holds, Part, formats};

use crate::raw;
#[cfg(windows)]
use crate::trace;

/// The most columns of a line.
const WIDTH: usize = 100;

/// Columns of a name, and of endings, with the blank behind.
const NAME: usize = 13;
const ENDING: usize = 19;

/// What is read: name, usual endings, and what it is.
const READ: &[(&str, &str, &str)] = &[
    (
        raw::NAME,
        raw::ENDING,
        "recordings of `collector run` and `perf record` (also a folder of `--threads`, or a stream on stdin), whose stacks are unwound \
         and named then; by `convert` alone",
    ),
    ("nettrace", ".nettrace", "traces of .NET's runtime, and ours"),
    ("jfr", ".jfr", "recordings of the JDK's flight recorder and async-profiler, and ours"),
    ("firefox", ".json.gz .json", "Firefox Profiler's processed profiles, of it, samply and ours"),
    ("pprof", ".pb.gz .pb", "profile.proto of Go, perf_to_profile and others, and ours"),
    ("folded", ".folded .txt", "folded stacks of stackcollapse-perf and others, and ours; by gzip, too"),
    ("etl", ".etl", "traces of Event Tracing for Windows"),
    (
        "minidump",
        ".dmp .mdmp",
        "Windows' minidumps: each thread is a sample, unwound by the images and named then",
    ),
];

/// All that is to be printed.
pub(crate) fn list() -> String {
    let mut text = wrapped(
        0,
        "Written by `run` and `convert`, by the ending of -o or the name in --format. All of them hold values, stacks of functions, and \
         names of threads; what else a recording may have:",
    );
    for format in formats() {
        text.push('\n');
        add(&mut text, format.name(), format.ending(), format.description());
        add_holds(&mut text, format.holds());
    }
    #[cfg(windows)]
    {
        text.push('\n');
        add(&mut text, trace::NAME, trace::ENDING, trace::DESCRIPTION);
    }
    text.push('\n');
    add(&mut text, raw::NAME, raw::ENDING, raw::DESCRIPTION);
    // Of scenarios it has what they share with samples and counters.
    add_holds(&mut text, CAPTURED.with_some(&[Part::Kinds]));
    text.push('\n');
    text += &wrapped(
        0,
        "Read by `convert` and `report`; what a file is is told by its first bytes, not by its ending:",
    );
    text.push('\n');
    for (name, endings, about) in READ {
        add(&mut text, name, endings, about);
    }
    text
}

/// Adds what a format holds and what it leaves out, in the words that a run has for it. Of the two the longer is not listed, unless
/// there is something in part.
fn add_holds(text: &mut String, holds: Holds) {
    let is_held = |part: &Part| holds.held(*part) == Held::Wholly;
    let (held, left_out): (Vec<Part>, Vec<Part>) = Part::ALL.into_iter().partition(is_held);
    let is_in_part = left_out.iter().any(|&part| holds.has(part));
    let held_text = if held.len() > left_out.len() {
        "all but what is left out".to_owned()
    } else {
        held.iter().map(|part| part.text()).collect::<Vec<_>>().join(", ")
    };
    let left_out_text = if held.len() < left_out.len() && !is_in_part {
        "all but what it holds".to_owned()
    } else {
        let texts = left_out.into_iter().map(|part| match holds.held(part) {
            Held::Partly => part.text_of_rest(),
            Held::Not | Held::Wholly => part.text().to_owned(),
        });
        texts.collect::<Vec<_>>().join(", ")
    };
    add(text, "", "holds", &held_text);
    add(text, "", "leaves out", &left_out_text);
}

/// Adds columns.
fn add(text: &mut String, name: &str, ending: &str, about: &str) {
    let begin = format!("{name:<NAME$}{ending:<ENDING$}");
    *text += &begin;
    *text += &wrapped(begin.len(), about);
}

/// Lines of words, ended; what is before the first has so many columns, which the others leave blank.
fn wrapped(indent: usize, words: &str) -> String {
    let mut text = String::new();
    let mut column = indent;
    for word in words.split(' ') {
        let length = word.chars().count();
        if column > indent && column + 1 + length > WIDTH {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if column > indent {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += length;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use export::import::{ImportFormat, importers};

    use super::*;
    use crate::imported::OF_WINDOWS;

    #[test]
    fn lines_fit_and_columns_are_aligned() {
        let text = list();
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH && line.trim_end() == line, "{line}");
        }
        for format in formats() {
            let line = text.lines().find(|line| line.split(' ').next() == Some(format.name())).unwrap();
            let (name, rest) = line.split_at(NAME);
            let (ending, about) = rest.split_at(ENDING);
            assert_eq!((name.trim_end(), ending.trim_end()), (format.name(), format.ending()));
            assert!(ending.ends_with(' ') && format.description().starts_with(about), "{line}");
        }
    }

    /// What a list says of a format, on one line.
    fn row(text: &str, name: &str, label: &str) -> String {
        let paragraph =
            text.split("\n\n").find(|paragraph| paragraph.starts_with(&format!("{name} "))).unwrap();
        let lines: Vec<&str> =
            paragraph.lines().skip_while(|line| !line.trim_start().starts_with(label)).collect();
        let end = lines.iter().skip(1).position(|line| !line[NAME..].starts_with(' '));
        let own = &lines[..end.map_or(lines.len(), |end| end + 1)];
        own.iter().map(|line| line[NAME + ENDING..].to_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_held_in_part_is_told_as_a_run_tells_it() {
        let text = list();
        let rows = [
            ("firefox", "some CPUs, some attributes, some of which values are estimates"),
            ("perfetto", "some CPUs, some attributes"),
            ("pprof", "processes and times of mappings"),
            ("otlp", "processes and times of mappings"),
            ("perf.data", "some parents of processes"),
            ("perf.data", "some other kinds of samples"),
            ("firefox", "processes without samples"),
        ];
        for (name, said) in rows {
            let row = row(&text, name, "leaves out");
            assert!(row.contains(said), "{name}: {row}");
        }
        assert_eq!(
            row(&text, "folded", "holds"),
            "samples of 0 and less, threads' former names, inlined functions"
        );
        assert_eq!(row(&text, "folded", "leaves out"), "all but what it holds");
        assert_eq!(row(&text, "jfr", "holds"), "all but what is left out");
    }

    #[test]
    fn all_that_is_read_is_listed() {
        let listed: BTreeSet<&str> = READ.iter().map(|(name, ..)| *name).collect();
        let mut known: BTreeSet<&str> = importers().iter().map(|importer| importer.name()).collect();
        known.extend(OF_WINDOWS.map(ImportFormat::name));
        known.insert(raw::NAME);
        assert_eq!(listed, known);
    }
}
