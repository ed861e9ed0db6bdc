//! Attributes as our own files have them in, keys and values out: `key=value` with `, ` between, a `\` before what is one of `\`, `,`
//! and `=` itself.

/// Takes them apart. What is no pair is left out.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let (mut key, mut part) = (None, String::new());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => part.extend(letters.next()),
            '=' if key.is_none() => key = Some(std::mem::take(&mut part)),
            ',' => {
                let value = std::mem::take(&mut part);
                pairs.extend(key.take().map(|key| (key, value)));
                // The space behind it.
                letters.next();
            }
            _ => part.push(letter),
        }
    }
    pairs.extend(key.map(|key| (key, part)));
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_marked_is_part_of_the_text() {
        let told = |text| -> Vec<String> {
            pairs(text).into_iter().map(|(key, value)| format!("{key}|{value}")).collect()
        };
        assert!(told("").is_empty());
        assert_eq!(told("a=b"), ["a|b"]);
        assert_eq!(told(r"a\=\,=b\\c, d="), [r"a=,|b\c", "d|"]);
        assert_eq!(told("nothing, a=b=c"), ["a|b=c"]);
        assert_eq!(told("a=\\"), ["a|"]);
    }
}
