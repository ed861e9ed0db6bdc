//! The flame graph, read by an XML parser.

use collector_common::record::{ExportMachine, Sample};
use export::format::flamegraph::{FlameGraph, Icicle};
use export::format::{ExportFormat, Profile};
use export::symbolize::Symbols;

use crate::made::Made;

fn drawn(machine: &ExportMachine, symbols: &Symbols) -> String {
    let mut out = Vec::new();
    FlameGraph.write(Profile { machine, symbols }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A frame as it is drawn: its title, and the place of its box.
#[derive(Clone, Debug, PartialEq)]
struct Drawn {
    title: String,
    y: f64,
    height: f64,
    from: u64,
    width: u64,
}

/// Frames of a picture, from the top down and from left to right.
fn frames(svg: &str) -> Vec<Drawn> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(svg, options).unwrap();
    let groups = document.descendants().filter(|node| node.tag_name().name() == "g");
    let mut frames: Vec<Drawn> = groups
        .filter_map(|group| {
            let part = |name| group.children().find(|child| child.tag_name().name() == name);
            let (title, shape) = (part("title")?.text()?.to_owned(), part("rect")?);
            let number = |name| shape.attribute(name).unwrap().parse().unwrap();
            let counted = |name| {
                let mut all = shape.attributes();
                let found = all.find(|other| other.name() == name && other.namespace().is_some());
                found.unwrap().value().parse().unwrap()
            };
            let (from, width) = (counted("x"), counted("w"));
            Some(Drawn { title, y: number("y"), height: number("height"), from, width })
        })
        .collect();
    frames.sort_by(|a, b| a.y.total_cmp(&b.y).then(a.from.cmp(&b.from)));
    frames
}

/// The root is on top of an icicle, whatever was called is one row below its caller and within it, and all is as in the flame graph but for
/// the rows.
#[test]
fn an_icicle_hangs_from_its_root() {
    let made = Made::new();
    let mut out = Vec::new();
    Icicle.write(Profile { machine: &made.machine, symbols: &made.symbols }, &mut out).unwrap();
    let icicle = frames(str::from_utf8(&out).unwrap());
    let [root, called @ ..] = &icicle[..] else { panic!("{icicle:?}") };
    assert_eq!((root.title.as_str(), root.from, root.width), ("all (85 samples, 100%)", 0, 85));
    let row = |frame: &Drawn| (frame.y - root.y) / (root.height + 1.0);
    for frame in called {
        let is_caller = |other: &&Drawn| {
            let is_around = other.from <= frame.from && frame.from + frame.width <= other.from + other.width;
            is_around && (row(other) + 1.0 - row(frame)).abs() < 0.01
        };
        assert_eq!(icicle.iter().filter(is_caller).count(), 1, "{frame:?} in {icicle:#?}");
    }
    // Of `prog`: `main`, and below it `work`.
    let found = |name: &str| icicle.iter().find(|frame| frame.title.starts_with(name)).unwrap();
    let at = |name| row(found(name)).round() as i64;
    assert_eq!([at("all "), at("prog "), at("main "), at("work(")], [0, 1, 2, 3]);

    let flame_graph = frames(&drawn(&made.machine, &made.symbols));
    let lowest = flame_graph.last().unwrap();
    assert_eq!(lowest.title, root.title);
    let mut turned: Vec<Drawn> =
        flame_graph.iter().map(|frame| Drawn { y: root.y + lowest.y - frame.y, ..frame.clone() }).collect();
    turned.sort_by(|a, b| a.y.total_cmp(&b.y).then(a.from.cmp(&b.from)));
    assert_eq!(turned, icicle);
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
    // The title of the whole.
    evil.clone_into(&mut made.machine.system_mut().command);
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

/// Each sample is all that a number has room for. There are 85, of which 8 are in `vfs_read`.
#[test]
fn shares_of_what_is_too_large_are_right() {
    let made = with_value(i64::MAX);
    let titles = titles(&drawn(&made.machine, &made.symbols));
    let found =
        |begin: &str, end: &str| titles.iter().any(|title| title.starts_with(begin) && title.ends_with(end));
    assert!(found("all (", " times 86 samples, 100%)"), "{titles:#?}");
    assert!(found("vfs_read (", " times 86 samples, 9.41%)"), "{titles:#?}");
}

#[test]
fn what_counts_nothing_is_still_a_picture() {
    for value in [0, -5] {
        let made = with_value(value);
        assert!(drawn(&made.machine, &made.symbols).contains("no samples were recorded"));
    }
}
