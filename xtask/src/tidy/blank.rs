//! Rust source with its comments and literals blanked, so that rules see code alone.
//!
//! In: source text. Out: text of the same lines, where each character of a comment, string or character literal
//! is a space; and, from it, which lines are test modules. The lexical rules are those of the Rust reference,
//! "Comments" and "Tokens".

/// Code without comments and literals; line `n` of it is line `n` of `source`.
pub(super) fn blank(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = token_end(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|letter| if *letter == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// Where the comment or literal that begins at `at` ends; `at` if none begins there.
fn token_end(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => position(chars, at, |letter| letter == '\n'),
        '/' if next == Some('*') => block_comment_end(chars, at),
        '"' => string_end(chars, at),
        'r' if !follows_word(chars, at) => raw_string_end(chars, at).unwrap_or(at),
        'b' if next == Some('r') && !follows_word(chars, at) => raw_string_end(chars, at + 1).unwrap_or(at),
        '\'' => char_end(chars, at),
        _ => at,
    }
}

fn follows_word(chars: &[char], at: usize) -> bool {
    at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_') && chars[at - 1] != 'b'
}

fn position(chars: &[char], from: usize, stop: impl Fn(char) -> bool) -> usize {
    let rest = chars.get(from..).unwrap_or_default();
    rest.iter().position(|letter| stop(*letter)).map_or(chars.len(), |offset| from + offset)
}

/// Block comments nest.
fn block_comment_end(chars: &[char], at: usize) -> usize {
    let (mut depth, mut here) = (0_usize, at);
    while here < chars.len() {
        match (chars[here], chars.get(here + 1)) {
            ('/', Some('*')) => (depth, here) = (depth + 1, here + 2),
            ('*', Some('/')) if depth == 1 => return here + 2,
            ('*', Some('/')) => (depth, here) = (depth - 1, here + 2),
            _ => here += 1,
        }
    }
    chars.len()
}

fn string_end(chars: &[char], at: usize) -> usize {
    let mut here = at + 1;
    while here < chars.len() {
        match chars[here] {
            '\\' => here += 2,
            '"' => return here + 1,
            _ => here += 1,
        }
    }
    chars.len()
}

/// `r"..."` or `r#"..."#` with any number of marks.
fn raw_string_end(chars: &[char], at: usize) -> Option<usize> {
    let quote = position(chars, at + 1, |letter| letter != '#');
    if chars.get(quote) != Some(&'"') {
        return None;
    }
    let marks = quote - at - 1;
    let closes = |here: usize| {
        chars[here] == '"' && chars[here + 1..].iter().take_while(|letter| **letter == '#').count() >= marks
    };
    let end = (quote + 1..chars.len()).find(|here| closes(*here));
    Some(end.map_or(chars.len(), |end| end + 1 + marks))
}

/// A quote opens a character literal if one closes it behind one character or an escape; else it is a lifetime.
fn char_end(chars: &[char], at: usize) -> usize {
    match chars.get(at + 1) {
        Some('\\') => (position(chars, at + 3, |letter| letter == '\'') + 1).min(chars.len()),
        Some(_) if chars.get(at + 2) == Some(&'\'') => at + 3,
        _ => at,
    }
}

/// For each line of blanked `code`, whether it is inside an item under `#[cfg(test)]`.
pub(super) fn test_lines(code: &str) -> Vec<bool> {
    let mut lines = Vec::new();
    let (mut depth, mut pending, mut inside) = (0_usize, false, None);
    for line in code.lines() {
        if line.trim_start().starts_with("#[cfg(test)]") && inside.is_none() {
            pending = true;
        }
        let begins_inside = pending || inside.is_some();
        for letter in line.chars() {
            match letter {
                '{' => {
                    if pending {
                        (pending, inside) = (false, Some(depth));
                    }
                    depth += 1;
                }
                '}' => {
                    depth = depth.saturating_sub(1);
                    if inside == Some(depth) {
                        inside = None;
                    }
                }
                ';' if pending => pending = false,
                _ => {}
            }
        }
        lines.push(begins_inside);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_become_spaces_and_lines_stay() {
        let source =
            "let a = \"x { \\\" y\"; // use b::*;\n/* { /* } */ \n*/ let c = '\"'; let d = r#\"q\"{\"#;\n";
        let code = blank(source);
        assert_eq!(code.lines().count(), source.lines().count());
        assert!(!code.contains(['{', '}', '"', '*']), "{code}");
        assert!(code.contains("let a =") && code.contains("let c =") && code.contains("let d ="), "{code}");
    }

    #[test]
    fn lifetimes_and_names_that_end_in_r_are_code() {
        let code = blank("fn var<'a>(b: &'a str) -> Chars<'a> { bar(b) }");
        assert_eq!(code, "fn var<'a>(b: &'a str) -> Chars<'a> { bar(b) }");
        assert_eq!(blank(r"('\u{7f}', '\'', b'\\', 'x')").replace(' ', ""), "(,,b,)");
    }

    #[test]
    fn lines_of_a_test_module_are_known() {
        let code = "use a::b;\n#[cfg(test)]\nmod tests {\n    fn f() { }\n}\nfn g() {}\n#[cfg(test)]\nmod t;\nfn h() {}\n";
        assert_eq!(test_lines(code), [false, true, true, true, true, false, true, true, false]);
    }

    #[test]
    fn an_unclosed_literal_ends_with_the_text() {
        for source in ["\"abc", "\"abc\\", "/* abc", "r#\"abc", "'\\", "'", "b'\\"] {
            assert_eq!(blank(source).chars().count(), source.chars().count(), "{source}");
        }
    }
}
