//! Names with wildcards, of events, functions and fields' texts: `*` stands for any text, `?` for any one unit (a byte, or 16 bits of UTF-16),
//! and what is behind a `\` for itself.
//!
//! ```
//! use collector_common::glob::{is_glob, matches_glob};
//!
//! assert!(matches_glob("sched:sched_*", "sched:sched_switch"));
//! assert!(matches_glob(r"operator\*", "operator*") && !matches_glob(r"operator\*", "operator+"));
//! assert!(is_glob("sched:*") && !is_glob("sched:sched_switch"));
//! ```

/// Whether a name has a wildcard in it.
pub fn is_glob(name: &str) -> bool {
    name.contains(['*', '?'])
}

/// Whether the whole text is as the pattern says; `?` is a byte.
pub fn matches_glob(pattern: &str, text: &str) -> bool {
    glob(text.as_bytes(), pattern.as_bytes())
}

/// Text, unit by unit.
pub(crate) trait Units: Copy {
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

/// Whether the whole text is as the pattern says. Where a part does not fit, only the last `*` takes more: what an earlier
/// one could take, that one can, so that the work is bounded by the product of the lengths.
pub(crate) fn glob<T: Units>(text: T, pattern: &[T::Unit]) -> bool {
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
            ("a*c", "abcbc", true),
            ("a*c", "abcb", false),
            ("a?c*", "abc", true),
            ("**x", "x", true),
            (r"a\", r"a\", true),
            (r"\a", "a", true),
        ] {
            assert_eq!(matches_glob(pattern, text), expected, "{pattern} {text}");
        }
    }

    /// What is tried again and again ends.
    #[test]
    fn many_wildcards_take_no_longer_than_the_product_of_the_lengths() {
        let (pattern, text) = ("*a".repeat(200) + "b", "a".repeat(20_000));
        assert!(!matches_glob(&pattern, &text));
    }
}
