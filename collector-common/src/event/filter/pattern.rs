//! Comparisons of text, unit by unit: bytes, or units of UTF-16 as they lie in an event. Nothing is copied.

use std::cmp::Ordering;

use super::super::value::Utf16Text;
use super::{Comparison, TextTest};
use crate::byte_order::ByteOrder;

/// Text of an event.
pub(super) trait Units: Copy {
    type Unit: Copy + Ord + From<u8>;

    fn count(self) -> usize;
    fn unit(self, index: usize) -> Option<Self::Unit>;
}

impl Units for &[u8] {
    type Unit = u8;

    fn count(self) -> usize {
        self.len()
    }

    fn unit(self, index: usize) -> Option<u8> {
        self.get(index).copied()
    }
}

impl Units for Utf16Text<'_> {
    type Unit = u16;

    fn count(self) -> usize {
        self.bytes.len() / 2
    }

    fn unit(self, index: usize) -> Option<u16> {
        let unit = *self.bytes.as_chunks().0.get(index)?;
        Some(match self.order {
            ByteOrder::Little => u16::from_le_bytes(unit),
            ByteOrder::Big => u16::from_be_bytes(unit),
        })
    }
}

/// What a text is compared with.
#[derive(Clone, Debug)]
pub(super) struct Pattern<U> {
    pub(super) test: Test,
    pub(super) units: Box<[U]>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    Compare(Comparison),
    Text(TextTest),
}

impl<U: Copy + Ord + From<u8>> Pattern<U> {
    pub(super) fn matches(&self, text: impl Units<Unit = U>) -> bool {
        let own = &*self.units;
        match self.test {
            Test::Compare(comparison) => comparison.holds(Some(order(text, own))),
            Test::Text(TextTest::StartsWith) => is_at(text, 0, own),
            Test::Text(TextTest::EndsWith) => {
                text.count().checked_sub(own.len()).is_some_and(|start| is_at(text, start, own))
            }
            Test::Text(TextTest::Contains) => {
                let starts = (text.count() + 1).saturating_sub(own.len());
                (0..starts).any(|start| is_at(text, start, own))
            }
            Test::Text(TextTest::Glob) => glob(text, own),
        }
    }
}

fn order<T: Units>(text: T, own: &[T::Unit]) -> Ordering {
    let different = own.iter().enumerate().find_map(|(index, unit)| match text.unit(index) {
        Some(other) if other == *unit => None,
        Some(other) => Some(other.cmp(unit)),
        None => Some(Ordering::Less),
    });
    different.unwrap_or_else(|| text.count().cmp(&own.len()))
}

fn is_at<T: Units>(text: T, start: usize, own: &[T::Unit]) -> bool {
    own.iter().enumerate().all(|(index, unit)| text.unit(start + index) == Some(*unit))
}

/// Whether the whole text is as the pattern says. Where a part does not fit, only the last `*` takes more: what an earlier
/// one could take, that one can.
fn glob<T: Units>(text: T, pattern: &[T::Unit]) -> bool {
    let is = |unit: T::Unit, sign: u8| unit == T::Unit::from(sign);
    let (mut at, mut in_pattern) = (0, 0);
    // Behind the last `*`, and where in the text it ends for now.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let unit = text.unit(at);
        match (pattern.get(in_pattern), unit) {
            (Some(sign), _) if is(*sign, b'*') => {
                in_pattern += 1;
                star = Some((in_pattern, at));
                continue;
            }
            (None, None) => return true,
            (Some(sign), Some(_)) if is(*sign, b'?') => {
                (at, in_pattern) = (at + 1, in_pattern + 1);
                continue;
            }
            (Some(sign), Some(unit)) => {
                let escaped = pattern.get(in_pattern + 1).filter(|_| is(*sign, b'\\'));
                let length = 1 + usize::from(escaped.is_some());
                if *escaped.unwrap_or(sign) == unit {
                    (at, in_pattern) = (at + 1, in_pattern + length);
                    continue;
                }
            }
            _ => {}
        }
        match &mut star {
            Some((behind, end)) if *end < text.count() => {
                *end += 1;
                (at, in_pattern) = (*end, *behind);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "abc", true),
            ("a*c", "abbbc", true),
            ("a*c", "abbbd", false),
            ("*b*b", "abab", true),
            ("*aab", "aaaab", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("?", "", false),
            (r"\*", "*", true),
            (r"\*", "a", false),
            (r"a\?*", "a?b", true),
            ("abc", "abcd", false),
            ("**", "x", true),
            ("a*", "ba", false),
        ] {
            assert_eq!(glob(text.as_bytes(), pattern.as_bytes()), expected, "{pattern} {text}");
        }
    }
}
