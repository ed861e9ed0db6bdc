//! Perf maps: the text files in which runtimes tell of the code that they made.
//!
//! In: lines `START SIZE NAME`, the numbers in hexadecimal with or without `0x`; a name may have spaces
//! (`tools/perf/Documentation/jit-interface.txt` of Linux). Out: names for wanted addresses.
//!
//! A runtime adds a line for what it makes, also where other code lay before: the last line that holds an address is right. So
//! the file is read from its end, piece by piece, until all addresses have a name.

use std::io::{self, Read, Seek, SeekFrom};

use super::super::answer::Answer;
use super::super::map_lines::{Entry, MOST_OF_LINE, Unnamed};

/// Bytes that are read at once.
const PIECE: u64 = 256 << 10;

/// Bytes from the end that are looked at: some million functions.
const MOST: u64 = 1 << 30;

/// A perf map.
#[derive(Debug)]
pub struct PerfMap<F> {
    /// The file. It may grow while it is read.
    pub file: F,
    /// Whether more may be written into it: then a last line without an end is a part of one.
    pub is_growing: bool,
}

impl<F: Read + Seek> PerfMap<F> {
    /// Names those of the wanted addresses that have no name.
    pub(super) fn look_up(&mut self, answer: &mut Answer<'_>) -> io::Result<()> {
        let mut unnamed = Unnamed::of(answer);
        let mut end = self.file.seek(SeekFrom::End(0))?;
        let first = end.saturating_sub(MOST);
        // The beginning of the line that the last piece began in; `None` for one that is too long.
        let mut begun = Some(Vec::new());
        let mut is_last = self.is_growing;
        while end > first && !unnamed.is_empty() {
            let start = end.saturating_sub(PIECE).max(first);
            self.file.seek(SeekFrom::Start(start))?;
            let mut piece = vec![0; (end - start) as usize];
            self.file.read_exact(&mut piece)?;
            end = start;
            let mut rest = piece.as_slice();
            while let Some(at) = rest.iter().rposition(|&byte| byte == b'\n') {
                let head = &rest[at + 1..];
                rest = &rest[..at];
                let tail = begun.replace(Vec::new()).filter(|tail| tail.len() + head.len() <= MOST_OF_LINE);
                match tail.filter(|_| !is_last) {
                    Some(tail) if tail.is_empty() => unnamed.name(Entry::parse(head), answer),
                    Some(tail) => unnamed.name(Entry::parse(&[head, &tail].concat()), answer),
                    None => {}
                }
                is_last = false;
            }
            begun = begun.filter(|tail| tail.len() + rest.len() <= MOST_OF_LINE);
            begun = begun.map(|tail| [rest, &tail].concat());
        }
        // What is before the first of all ends of lines, unless that is not where the file begins.
        if let Some(line) = begun.filter(|_| first == 0 && end == 0 && !is_last) {
            unnamed.name(Entry::parse(&line), answer);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn names(text: &[u8], is_growing: bool, wanted: &[u64]) -> Vec<Option<String>> {
        let mut answer = Answer::new(wanted);
        PerfMap { file: Cursor::new(text), is_growing }.look_up(&mut answer).unwrap();
        wanted.iter().map(|&wanted| answer.name_at(wanted).map(str::to_owned)).collect()
    }

    fn name(text: &str, wanted: u64) -> Option<String> {
        names(text.as_bytes(), false, &[wanted]).remove(0)
    }

    #[test]
    fn numbers_are_hexadecimal_however_they_are_written() {
        for line in
            ["1a0 20 f", "0x1a0 0x20 f", "0X1A0 0X20 f", "00000000000001A0\t20\tf\r", "  1a0  20  f  "]
        {
            let found = names(line.as_bytes(), false, &[0x19f, 0x1a0, 0x1bf, 0x1c0]);
            assert_eq!(found, [None, Some("f".to_owned()), Some("f".to_owned()), None], "{line:?}");
        }
    }

    #[test]
    fn names_may_have_spaces() {
        let text = "1000 10 int Hot.burn(int, java.lang.String)\n2000 10 JS:* /a b/c d.js:1:1\n";
        assert_eq!(name(text, 0x1008).as_deref(), Some("int Hot.burn(int, java.lang.String)"));
        assert_eq!(name(text, 0x2008).as_deref(), Some("JS:* /a b/c d.js:1:1"));
    }

    #[test]
    fn the_last_line_that_holds_an_address_names_it() {
        let text = b"1000 100 first\n1000 100 again\n1040 10 inside\n10f0 20 over\n";
        let found = names(text, false, &[0x1000, 0x1040, 0x1050, 0x10f0, 0x110f, 0x1110]);
        let expected = [Some("again"), Some("inside"), Some("again"), Some("over"), Some("over"), None];
        assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn other_lines_name_nothing() {
        for line in
            ["", "1000", "1000 10", "1000 10 ", "1000 0 f", "+1000 10 f", "1000 -10 f", "xyz 10 f", "0x 10 f"]
        {
            assert_eq!(
                name(&format!("1000 10 right\n{line}\n"), 0x1000).as_deref(),
                Some("right"),
                "{line:?}"
            );
        }
        assert_eq!(name("fffffffffffffff0 ffff f\n", u64::MAX - 1).as_deref(), Some("f"));
    }

    #[test]
    fn a_line_that_is_being_written_is_left_out() {
        let text = b"1000 10 whole\n1000 10 ha";
        assert_eq!(names(text, true, &[0x1000]), [Some("whole".to_owned())]);
        assert_eq!(names(text, false, &[0x1000]), [Some("ha".to_owned())]);
        assert_eq!(names(b"1000 10 ha", true, &[0x1000]), [None]);
        assert_eq!(names(b"1000 10 whole\n", true, &[0x1000]), [Some("whole".to_owned())]);
    }

    #[test]
    fn lines_that_lie_in_two_pieces_are_whole_and_endless_ones_cost_only_themselves() {
        let mut text = String::from("10 10 first\n");
        writeln!(text, "20 10 {}", "x".repeat(3 * PIECE as usize)).unwrap();
        let mut wanted = vec![0x10, 0x20];
        for number in 0..30_000_u64 {
            writeln!(text, "{:x} 10 function number {number}", 0x1000 + number * 16).unwrap();
            wanted.push(0x1000 + number * 16 + 7);
        }
        let found = names(text.as_bytes(), false, &wanted);
        assert_eq!(found[..2], [Some("first".to_owned()), None]);
        for (number, found) in found[2..].iter().enumerate() {
            assert_eq!(found.as_deref(), Some(format!("function number {number}").as_str()));
        }
    }

    #[test]
    fn a_map_of_lines_that_hold_everything_takes_no_longer() {
        let wanted: Vec<u64> = (0..50_000).collect();
        let mut text = String::from("0 c000 all\n");
        text.extend(std::iter::repeat_n("1 c34e most\n", 200_000));
        let found = names(text.as_bytes(), false, &wanted);
        assert_eq!(found[0].as_deref(), Some("all"));
        assert!(found[1..49_999].iter().all(|name| name.as_deref() == Some("most")));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[0-9a-fx \n\\x00-\\x20]{0,200}", noise in any::<Vec<u8>>(), growing: bool) {
            names(text.as_bytes(), growing, &[0, 1, 0xa, 0x10, u64::MAX]);
            names(&noise, growing, &[0, u64::MAX]);
        }

        #[test]
        fn agrees_with_looking_at_every_line(
            lines in proptest::collection::vec((0_u64..100, 0_u64..30, "[a-c]{1,3}"), 0..40),
            wanted in proptest::collection::btree_set(0_u64..140, 0..20),
        ) {
            let mut text = String::new();
            for (start, size, name) in &lines {
                writeln!(text, "{start:x} {size:x} {name}").unwrap();
            }
            let wanted: Vec<u64> = wanted.into_iter().collect();
            let found = names(text.as_bytes(), false, &wanted);
            for (&wanted, found) in wanted.iter().zip(&found) {
                let last = lines.iter().rev().find(|(start, size, _)| (*start..start + size).contains(&wanted));
                prop_assert_eq!(found.as_ref(), last.map(|(_, _, name)| name));
            }
        }
    }
}
