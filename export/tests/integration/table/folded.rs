//! Folded stacks, line by line, and the flame graphs that are drawn of them, read as XML.

use super::facts::{Fact, Reader, Row, Told, unmarked};

pub(super) const FOLDED: Reader = Reader {
    format: "folded",
    column: "folded, SVG",
    holds,
    has_single_samples: false,
    facts: &[Fact::Inlined],
    read: |bytes| {
        let mut told = Told::default();
        for line in str::from_utf8(bytes).unwrap().lines() {
            let (path, count) = line.rsplit_once(' ').unwrap();
            add(&mut told, path.split(';'), count.parse().unwrap());
        }
        Some(told)
    },
};

pub(super) const FLAME_GRAPH: Reader = Reader {
    format: "flamegraph",
    column: "folded, SVG",
    holds,
    has_single_samples: false,
    // The marks of functions are colours there.
    facts: &[Fact::Command],
    // The root is the lowest.
    read: |bytes| Some(drawn(str::from_utf8(bytes).unwrap(), |y| y)),
};

pub(super) const ICICLE: Reader = Reader {
    format: "icicle",
    read: |bytes| Some(drawn(str::from_utf8(bytes).unwrap(), |y| -y)),
    ..FLAME_GRAPH
};

/// Threads by name, and the first kind alone.
fn holds(row: Row) -> Option<Row> {
    let Row { kind, thread, stack, value, .. } = row;
    (kind == "cpu").then(|| Row { kind, thread, stack, value, ..Row::default() })
}

/// A path begins with the thread.
fn add<'a>(told: &mut Told, mut path: impl Iterator<Item = &'a str>, value: i64) {
    let thread = path.next().map(str::to_owned);
    let mut stack = Vec::new();
    for name in path {
        let (name, mark) = unmarked(name);
        if mark == "_[i]" {
            told.add(Fact::Inlined, name);
        }
        stack.push(name.to_owned());
    }
    told.rows.push(Row { kind: "cpu".to_owned(), thread, stack, value, ..Row::default() });
}

/// A box of the picture: how far down it is, where from left to right in samples, and its name.
struct Box {
    depth: f64,
    from: i64,
    width: i64,
    name: String,
}

/// What a box has and no box on it is the sum of the samples that end there. How far down it is is told from where it is drawn.
fn drawn(svg: &str, down: fn(f64) -> f64) -> Told {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(svg, options).unwrap();
    let mut boxes: Vec<Box> = document
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "g")))
        .filter_map(|group| {
            let part = |name| group.children().find(|child| child.tag_name().name() == name);
            let (title, shape) = (part("title")?.text()?, part("rect")?);
            let counted = |name| {
                let attribute = shape
                    .attributes()
                    .find(|attribute| attribute.name() == name && attribute.namespace().is_some());
                attribute.unwrap().value().parse().unwrap()
            };
            let name = title.rsplit_once(" (").unwrap().0.replace('\u{a0}', " ");
            let depth = down(shape.attribute("y").unwrap().parse().unwrap());
            Some(Box { depth, from: counted("x"), width: counted("w"), name })
        })
        .collect();
    boxes.sort_by(|a, b| b.depth.total_cmp(&a.depth));
    let mut told = Told::default();
    for (at, own) in boxes.iter().enumerate() {
        let is_on = |upper: &&Box, lower: &Box| {
            upper.from >= lower.from && upper.from + upper.width <= lower.from + lower.width
        };
        let next = boxes[at..].iter().map(|other| other.depth).find(|depth| *depth < own.depth);
        let above = boxes.iter().filter(|other| Some(other.depth) == next && is_on(other, own));
        let value = own.width - above.map(|other| other.width).sum::<i64>();
        let path = boxes.iter().filter(|other| other.depth >= own.depth && is_on(&own, other));
        let path: Vec<&str> = path.map(|other| other.name.as_str()).collect();
        if value > 0 {
            assert_eq!(path[0], "all");
            add(&mut told, path[1..].iter().copied(), value);
        }
    }
    // Without samples there is nothing but a line that says so.
    if let Some(title) = document.descendants().find(|node| node.attribute("id") == Some("title")) {
        told.add(Fact::Command, title.text().unwrap());
    }
    told
}
