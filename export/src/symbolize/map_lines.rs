//! What the text files have in common that tell where functions are: lines `START SIZE NAME`, the numbers in hexadecimal.

use std::ops::Range;

use super::answer::Answer;

/// Longer lines are left out: names of this length tell nobody anything.
pub(super) const MOST_OF_LINE: usize = 16 << 10;

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// Addresses.
    pub(super) code: Range<u64>,
    pub(super) name: &'a [u8],
}

impl<'a> Entry<'a> {
    /// `None` for a line of another form, or one that names nothing.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        Self::parse_any(line).filter(|entry| !entry.code.is_empty())
    }

    /// The same, with those that name no address.
    pub(super) fn parse_any(line: &'a [u8]) -> Option<Self> {
        let mut rest = line.trim_ascii();
        let mut number = || {
            let len = rest.iter().position(u8::is_ascii_whitespace)?;
            let (text, after) = rest.split_at(len);
            rest = after.trim_ascii_start();
            hexadecimal(text)
        };
        let (start, size) = (number()?, number()?);
        let code = start..start.saturating_add(size);
        (!rest.is_empty()).then_some(Self { code, name: rest })
    }
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    // The standard library would take a sign, too.
    let is_number = digits.first().is_some_and(u8::is_ascii_hexdigit);
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok().filter(|_| is_number)
}

/// Positions of addresses without a name. Each is passed over once after it has one, however many lines hold it.
pub(super) struct Unnamed {
    /// By position: a position from which on the next one is looked for; itself where it has no name.
    next: Vec<u32>,
    left: usize,
}

impl Unnamed {
    pub(super) fn of(answer: &Answer<'_>) -> Self {
        let len = answer.wanted().len();
        // One more, which is always there.
        let mut this = Self { next: (0..=len as u32).collect(), left: len };
        for position in (0..len).filter(|&position| !answer.lacks(position)) {
            this.remove(position);
        }
        this
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Names what a line holds and none did before.
    pub(super) fn name(&mut self, entry: Option<Entry<'_>>, answer: &mut Answer<'_>) {
        let Some(Entry { code, name }) = entry else { return };
        let wanted = answer.wanted();
        let positions = wanted.partition_point(|&address| address < code.start)
            ..wanted.partition_point(|&address| address < code.end);
        let mut added = None;
        while let Some(position) = self.take_from(&positions) {
            let name =
                *added.get_or_insert_with(|| answer.add_name(String::from_utf8_lossy(name).into_owned()));
            answer.set(position, name);
        }
    }

    fn remove(&mut self, position: usize) {
        self.next[position] = position as u32 + 1;
        self.left -= 1;
    }

    /// The first of some positions that has no name, which counts as having one from now on.
    fn take_from(&mut self, positions: &Range<usize>) -> Option<usize> {
        let mut at = positions.start;
        while self.next[at] as usize != at {
            let next = self.next[at] as usize;
            self.next[at] = self.next[next];
            at = next;
        }
        if !positions.contains(&at) {
            return None;
        }
        self.remove(at);
        Some(at)
    }
}
