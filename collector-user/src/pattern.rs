//! Names with wildcards: of functions and of tracepoints.

/// Whether a name is a pattern.
pub(crate) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?'])
}

/// `*` is any text, `?` any one byte. The work is bounded by the product of the lengths.
pub(crate) fn matches_pattern(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Where the last star is, and where the name goes on behind what it stands for.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&byte) if byte == b'?' || name.get(n) == Some(&byte) => {
                p += 1;
                n += 1;
            }
            _ => match &mut star {
                Some((at, from)) => {
                    *from += 1;
                    (p, n) = (*at + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|byte| *byte == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("", "a", false),
            ("a*c", "abcbc", true),
            ("a*c", "abcb", false),
            ("a?c*", "abc", true),
            ("**x", "x", true),
            ("?", "", false),
        ] {
            assert_eq!(matches_pattern(pattern, name), expected, "{pattern} {name}");
        }
        let (pattern, name) = ("*a".repeat(200) + "b", "a".repeat(20_000));
        assert!(!matches_pattern(&pattern, &name));
    }
}
