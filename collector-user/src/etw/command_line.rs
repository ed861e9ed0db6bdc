//! A command line of Windows in, its arguments out, by the rules of Microsoft's C runtime ("Parsing C command-line arguments").

/// The arguments, each with a NUL behind it.
pub(super) fn arguments(line: &str) -> Vec<u8> {
    let mut all = Vec::with_capacity(line.len() + 1);
    let mut chars = line.trim_matches(is_space).chars().peekable();
    let (mut is_quoted, mut has_begun, mut is_first) = (false, false, true);
    while let Some(char) = chars.next() {
        let mut text = [0; 4];
        match char {
            char if is_space(char) && !is_quoted => {
                if has_begun {
                    all.push(0);
                }
                (has_begun, is_first) = (false, false);
                continue;
            }
            // In the program's own name backslashes are what they are.
            '\\' if !is_first => {
                let mut count = 1;
                while chars.next_if_eq(&'\\').is_some() {
                    count += 1;
                }
                let is_quote = chars.peek() == Some(&'"');
                all.resize(all.len() + if is_quote { count / 2 } else { count }, b'\\');
                if is_quote && count % 2 == 1 {
                    chars.next();
                    all.push(b'"');
                }
            }
            // Two of them within quotes are one.
            '"' if is_quoted && !is_first && chars.next_if_eq(&'"').is_some() => all.push(b'"'),
            '"' => is_quoted = !is_quoted,
            // Arguments end at NULs here.
            '\0' => {}
            char => all.extend_from_slice(char.encode_utf8(&mut text).as_bytes()),
        }
        has_begun = true;
    }
    if has_begun {
        all.push(0);
    }
    all
}

fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<String> {
        let text = String::from_utf8(arguments(line)).unwrap();
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    /// The examples of the page that the rules are from.
    #[test]
    fn arguments_are_those_of_the_c_runtime() {
        let rest = |line: &str| split(&format!("x {line}")).split_off(1);
        assert_eq!(rest(r#""abc" d e"#), ["abc", "d", "e"]);
        assert_eq!(rest(r#"a\\b d"e f"g h"#), [r"a\\b", "de fg", "h"]);
        assert_eq!(rest(r#"a\\\"b c d"#), [r#"a\"b"#, "c", "d"]);
        assert_eq!(rest(r#"a\\\\"b c" d e"#), [r"a\\b c", "d", "e"]);
        assert_eq!(rest(r#"a"b"" c d"#), [r#"ab" c d"#]);
    }

    #[test]
    fn the_program_keeps_its_backslashes() {
        assert_eq!(split(r#""C:\Program Files\a\" /x  "b c""#), [r"C:\Program Files\a\", "/x", "b c"]);
        assert_eq!(split(r"\SystemRoot\System32\smss.exe"), [r"\SystemRoot\System32\smss.exe"]);
        assert_eq!(split(r#"a.exe """#), ["a.exe", ""]);
        assert!(arguments("").is_empty() && arguments(" \t ").is_empty());
    }
}
