//! Stacks in, folded lines out of which `inferno` draws the same picture as of a line for each stack.
//!
//! It draws no function that is narrower than a part of the picture, and none of those that such a one called, but holds all of
//! them. So there is one line here for a function that is too narrow, however much it called, and for as many of them beside each other
//! as are too narrow together. Each line begins as one of those that it stands for, so that the order, and with it the place of all that
//! is drawn, is as if these were there.
//!
//! What is deeper than [`DEEPEST`] is one box at the end of what was called before it, and so is what is deeper than less where all lines
//! together would be too large: a picture of a stack of many thousand functions would be of no use, and take that many boxes.

use crate::format::stacks::{Counted, Stacks};

/// The most names above each other, the thread's included.
const DEEPEST: usize = 2048;

/// The most bytes of all lines.
const MOST: usize = 256 << 20;

/// What a name takes beside its bytes: a box.
const OF_NAME: usize = 64;

/// What stands for all that is too deep.
const DEEPER: &str = "[deeper]";

/// What is drawn.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) list: Vec<String>,
    /// How many names are above each other at most, if some are left out that are deeper.
    pub(super) cut_at: Option<usize>,
}

/// The lines of all stacks with counts of at least `divisor`, by which they are divided. What is narrower than `min_width` hundredths
/// of the picture is not drawn.
pub(super) fn lines(stacks: &Stacks, divisor: i64, min_width: f64) -> Lines {
    within(stacks, divisor, min_width, (DEEPEST, MOST))
}

fn within(stacks: &Stacks, divisor: i64, min_width: f64, (mut deepest, most): (usize, usize)) -> Lines {
    let mut drawn = Drawn::of(stacks, divisor, min_width);
    loop {
        drawn.draw(deepest, most);
        if drawn.bytes <= most || deepest == 1 {
            break;
        }
        deepest /= 2;
    }
    let list = drawn.lines.into_iter().map(|Line { text, width }| format!("{text} {width}")).collect();
    Lines { list, cut_at: drawn.is_cut.then_some(deepest) }
}

struct Line {
    text: String,
    width: u64,
}

struct Drawn<'a> {
    stacks: &'a Stacks,
    /// Sorted.
    rows: Vec<Counted>,
    /// By row: how many of its names from the first on are those of the row before.
    shared: Vec<usize>,
    /// By row where it begins in the picture, and at last where that ends.
    starts: Vec<u64>,
    /// What is narrower is not drawn.
    narrowest: f64,
    lines: Vec<Line>,
    /// What these take.
    bytes: usize,
    is_cut: bool,
}

impl<'a> Drawn<'a> {
    fn of(stacks: &'a Stacks, divisor: i64, min_width: f64) -> Self {
        let shown = stacks.counts().iter().filter(|row| row.count / divisor > 0);
        let rows: Vec<Counted> = shown.copied().collect();
        let mut starts = vec![0];
        let mut end = 0_u64;
        for row in &rows {
            end = end.saturating_add((row.count / divisor).unsigned_abs());
            starts.push(end);
        }
        let before = [None].into_iter().chain(rows.iter().map(Some));
        let shared = rows.iter().zip(before).map(|(row, before)| {
            let before = before.into_iter().flat_map(|before| before.names(stacks));
            // At a stack's end a name has another position than on the way to one.
            let is_same = |(a, b): &(u32, u32)| a == b || stacks.name(*a) == stacks.name(*b);
            row.names(stacks).zip(before).take_while(is_same).count()
        });
        let shared = shared.collect();
        // As `inferno` calculates it.
        let narrowest = min_width / (100.0 / end as f64);
        Self { stacks, rows, shared, starts, narrowest, lines: Vec::new(), bytes: 0, is_cut: false }
    }

    /// Makes the lines, until they take more than `most`.
    fn draw(&mut self, deepest: usize, most: usize) {
        self.lines.clear();
        (self.bytes, self.is_cut) = (0, false);
        // The rows at which the functions end that are drawn around the one in hand.
        let mut open: Vec<usize> = Vec::new();
        // How deep the last line is, and the row that it is of, if it is of what is too narrow and below the same functions.
        let mut narrow = None;
        let mut at = 0;
        while at < self.rows.len() && self.bytes <= most {
            while open.last().is_some_and(|&end| end <= at) {
                open.pop();
            }
            let depth = open.len();
            if self.rows[at].names(self.stacks).nth(depth).is_none() {
                self.line(at, depth, self.width(at, at + 1));
                (at, narrow) = (at + 1, None);
                continue;
            }
            if let Some(&end) = open.last().filter(|_| depth == deepest) {
                self.deeper(at, depth, self.width(at, end));
                (at, narrow) = (end, None);
                continue;
            }
            let after = self.shared[at + 1..].iter().position(|&shared| shared <= depth);
            let end = after.map_or(self.rows.len(), |after| at + 1 + after);
            let width = self.width(at, end);
            if !self.is_narrow(width) {
                open.push(end);
                narrow = None;
                continue;
            }
            let line =
                narrow.filter(|&(line_depth, row)| line_depth == depth && !self.goes_on(row, depth, end));
            match (line, self.lines.last_mut()) {
                (Some(_), Some(line)) if ((line.width + width) as f64) < self.narrowest => {
                    line.width += width;
                }
                _ => {
                    self.line(at, depth + 1, width);
                    narrow = Some((depth, at));
                }
            }
            at = end;
        }
    }

    /// Whether a function of the name that a row has at a depth begins at another one: it would be taken for one with it.
    fn goes_on(&self, row: usize, depth: usize, at: usize) -> bool {
        let name = |row: &Counted| row.names(self.stacks).nth(depth).map(|name| self.stacks.name(name));
        self.rows.get(at).is_some_and(|next| name(next) == name(&self.rows[row]))
    }

    fn width(&self, start: usize, end: usize) -> u64 {
        self.starts[end] - self.starts[start]
    }

    fn is_narrow(&self, width: u64) -> bool {
        (width as f64) < self.narrowest
    }

    /// Adds a line of so many names of a row. Where there are more, it ends behind what separates them, as far as it has to for
    /// its place among the others.
    fn line(&mut self, row: usize, names: usize, width: u64) {
        let row = self.rows[row];
        let mut text = String::new();
        self.stacks.line(&mut text, row.names(self.stacks).take(names));
        if row.names(self.stacks).nth(names).is_some() {
            text.push(';');
        }
        self.bytes += text.len() + names * OF_NAME;
        self.lines.push(Line { text, width });
    }

    /// Adds a line of so many names of a row, and of what stands for the rest of this row and others.
    fn deeper(&mut self, row: usize, names: usize, width: u64) {
        self.is_cut = true;
        self.line(row, names, width);
        if let Some(line) = self.lines.last_mut() {
            line.text.push_str(DEEPER);
        }
    }
}

#[cfg(test)]
mod tests {
    use collector_common::ids::{Nanos, Pid, Svma, Tid};
    use collector_common::record::{
        AttributeListId, ExportMachine, Frame, FrameFlags, FrameId, ModuleId, Sample, Unit,
    };
    use inferno::flamegraph::{Options, from_lines};
    use proptest::prelude::*;

    use super::*;
    use crate::format::Profile;
    use crate::format::stacks::Order;
    use crate::symbolize::Symbols;

    /// Some begin as others do, and go on with what sorts before and behind that which separates names in a line.
    const NAMES: [&str; 9] = ["a", "a::b", "a b", "a!", "ab", "b", "", "c", " b "];

    /// Stacks of positions in `NAMES`, root first, with their counts.
    fn stacks(counted: &[(Vec<usize>, i64)]) -> Stacks {
        let mut machine = ExportMachine::default();
        let kind = machine.add_kind("cpu", Unit::Count, 1);
        let process = machine.add_process(Pid(1), "prog", None, Nanos(0));
        let frames: Vec<FrameId> = (0..NAMES.len() as u64)
            .map(|at| {
                let (module, flags) = (ModuleId::KERNEL, FrameFlags(0));
                machine.intern_frame(Frame { module, address: Svma(at), flags })
            })
            .collect();
        for (names, value) in counted {
            let name = machine.intern_string(NAMES[names.len() % 3]);
            let thread = machine.intern_thread(process, Tid(1), name);
            let path: Vec<FrameId> = names.iter().rev().map(|&name| frames[name]).collect();
            let stack = machine.intern_stack(&path);
            let attributes = AttributeListId::NONE;
            machine.add_sample(&Sample {
                time: Nanos(1),
                thread,
                stack,
                cpu: 0,
                kind,
                value: *value,
                attributes,
            });
        }
        let mut symbols = Symbols::unresolved(&machine);
        for (frame, name) in frames.into_iter().zip(NAMES) {
            symbols.set(frame, name, name);
        }
        Stacks::of(Profile { machine: &machine, symbols: &symbols }, Order::Lines)
    }

    fn picture(lines: &[String], min_width: f64) -> String {
        let mut options = Options::default();
        (options.deterministic, options.min_width) = (true, min_width);
        let mut out = Vec::new();
        from_lines(&mut options, lines.iter().map(String::as_str), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn the_picture_is_that_of_all_lines(
            counted in prop::collection::vec(
                (prop::collection::vec(0..NAMES.len(), 0..6), 1_i64..60), 1..60),
            min_width in 0.0_f64..12.0,
        ) {
            let stacks = stacks(&counted);
            let all = lines(&stacks, 1, 0.0).list;
            prop_assert!(all.is_sorted(), "as inferno sorts them: {all:#?}");
            prop_assert_eq!(all.len(), stacks.counts().len());
            let fewer = lines(&stacks, 1, min_width).list;
            prop_assert!(fewer.len() <= all.len());
            let is_same = picture(&fewer, min_width) == picture(&all, min_width);
            prop_assert!(is_same, "{all:#?} as {fewer:#?}");
        }
    }

    /// 100 in one stack, and 300 stacks of 1, whose functions are the digits of their number: at 1 % of 400 three of them are one line.
    #[test]
    fn what_is_narrow_together_is_one_line() {
        let digits = |number: usize| [number / 64, number / 8 % 8, number % 8].to_vec();
        let mut counted: Vec<(Vec<usize>, i64)> =
            (0..300).map(|number| ([vec![5], digits(number)].concat(), 1)).collect();
        counted.push((vec![0], 100));
        let stacks = stacks(&counted);
        assert_eq!(lines(&stacks, 1, 0.0).list.len(), 301);
        // 4 is the narrowest. All 38 of the second digit (8 wide, the last one 4) are drawn; what is in these is 1 wide.
        assert_eq!(lines(&stacks, 1, 1.0).list.len(), 1 + 37 * 3 + 2);
    }

    /// The thread is called `a` where a stack has 3 or 6 functions, and `a::b` where it has 1.
    #[test]
    fn what_is_too_deep_is_one_box() {
        let stacks = stacks(&[
            (vec![5, 7, 0], 4),
            (vec![5, 7, 0, 0, 0, 0], 2),
            (vec![5, 7, 0, 5, 5, 5], 3),
            (vec![5], 1),
        ]);
        let Lines { list, cut_at } = within(&stacks, 1, 0.0, (4, MOST));
        assert_eq!(list, ["a::b;b 1", "a;b;c;a 4", "a;b;c;a;[deeper] 5"]);
        assert_eq!(cut_at, Some(4));
        assert!(list.is_sorted());
        assert_eq!(within(&stacks, 1, 0.0, (7, MOST)).cut_at, None);
        // As much as two levels take, of which there are two lines.
        let Lines { list, cut_at } = within(&stacks, 1, 0.0, (8, 2 * 2 * OF_NAME + 20));
        assert_eq!((list, cut_at), (vec!["a::b;b 1".to_owned(), "a;b;[deeper] 9".to_owned()], Some(2)));
    }

    /// A chain of functions of which each calls another one, too, has lines as large as the square of its length.
    #[test]
    fn a_picture_has_a_size() {
        let chain = |depth: usize| (vec![7; depth], 1);
        let stacks = stacks(&(1..3_000).map(chain).collect::<Vec<_>>());
        let Lines { list, cut_at } = lines(&stacks, 1, 0.0);
        assert_eq!(cut_at, Some(DEEPEST));
        assert!(list.iter().map(String::len).sum::<usize>() < MOST);
        let svg = picture(&list, 0.0);
        assert!(svg.len() < 3 << 20, "{}", svg.len());
    }
}
