//! The flame graph, read by an XML parser.

use collector_common::record::{ExportMachine, Sample};
use export::format::flamegraph::FlameGraph;
use export::format::{ExportFormat, Profile};
use export::symbolize::Symbols;

use crate::made::Made;

fn drawn(machine: &ExportMachine, symbols: &Symbols) -> String {
    let mut out = Vec::new();
    FlameGraph.write(Profile { machine, symbols }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The titles of frames: `name (count samples, percent)`.
fn titles(svg: &str) -> Vec<String> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(svg, options).unwrap();
    let titles =
        document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "title")));
    titles.filter_map(|node| node.text()).map(|text| text.replace('\u{a0}', " ")).collect()
}

#[test]
fn each_frame_is_drawn_with_its_count() {
    let made = Made::new();
    let svg = drawn(&made.machine, &made.symbols);
    let titles = titles(&svg);
    for expected in [
        "all (85 samples, 100%)",
        "prog (64 samples, 75.29%)",
        "worker 7 (21 samples, 24.71%)",
        "work(int: char) (48 samples, 56.47%)",
        "work(int: char) (20 samples, 23.53%)",
        // The mark of the kernel is its colour here.
        "vfs_read (8 samples, 9.41%)",
        "[stack cut] (4 samples, 4.71%)",
    ] {
        assert!(titles.iter().any(|title| title == expected), "{expected} in {titles:#?}");
    }
    assert_eq!(titles.iter().filter(|title| title.starts_with("recurse ")).count(), 3);
    assert_eq!(svg, drawn(&made.machine, &made.symbols), "the same each time");
}

#[test]
fn hostile_names_stay_text() {
    let mut made = Made::new();
    let evil = "<script>&\"'\u{1}\u{1b}[31m]]>\u{ffff}";
    made.symbols.set(collector_common::record::FrameId(0), evil, evil);
    let titles = titles(&drawn(&made.machine, &made.symbols));
    assert!(titles.iter().any(|title| title.starts_with("<script>&\"' ")), "{titles:#?}");
}

#[test]
fn no_sample_is_still_a_picture() {
    let machine = ExportMachine::default();
    let svg = drawn(&machine, &Symbols::unresolved(&machine));
    let document = roxmltree::Document::parse(&svg).unwrap();
    let text = document.root_element().first_element_child().and_then(|child| child.text());
    assert_eq!(text, Some("no samples were recorded"));
}

/// The made recording with all values changed to this one.
fn with_value(value: i64) -> Made {
    let mut made = Made::new();
    let samples: Vec<_> = made.machine.samples().iter().collect();
    made.machine.apply_custom_filter(|_, _| false);
    for sample in samples {
        made.machine.add_sample(&Sample { value, ..sample });
    }
    made
}

/// Each sample is all that a number has room for, and so is the sum of a stack, of which there are seven.
#[test]
fn shares_of_what_is_too_large_are_right() {
    let made = with_value(i64::MAX);
    let titles = titles(&drawn(&made.machine, &made.symbols));
    let found =
        |begin: &str, end: &str| titles.iter().any(|title| title.starts_with(begin) && title.ends_with(end));
    assert!(found("all (", " times 8 samples, 100%)"), "{titles:#?}");
    assert!(found("vfs_read (", " times 8 samples, 14.29%)"), "{titles:#?}");
}

#[test]
fn what_counts_nothing_is_still_a_picture() {
    for value in [0, -5] {
        let made = with_value(value);
        assert!(drawn(&made.machine, &made.symbols).contains("no samples were recorded"));
    }
}
