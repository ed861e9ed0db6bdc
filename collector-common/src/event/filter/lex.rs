//! The words of a filter.

use std::borrow::Cow;

use super::error::FilterError;
use super::{Comparison, Literal, TextTest};

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Open,
    Close,
    OpenElement,
    CloseElement,
    And,
    Or,
    Not,
    Mask,
    Comparison(Comparison),
    TextTest(TextTest),
    Name(Cow<'a, str>),
    Literal(Literal),
    End,
}

/// Signs, longer ones before those they begin with; of one that means nothing, what is meant by it elsewhere.
const SIGNS: [(&str, Result<Token<'_>, &str>); 21] = [
    ("==", Ok(Token::Comparison(Comparison::Equal))),
    ("!=", Ok(Token::Comparison(Comparison::NotEqual))),
    ("<=", Ok(Token::Comparison(Comparison::LessOrEqual))),
    (">=", Ok(Token::Comparison(Comparison::GreaterOrEqual))),
    ("<>", Err("!=")),
    ("=<", Err("<=")),
    ("=>", Err(">=")),
    ("=~", Err("~")),
    ("=", Err("==")),
    ("<", Ok(Token::Comparison(Comparison::Less))),
    (">", Ok(Token::Comparison(Comparison::Greater))),
    ("&&", Ok(Token::And)),
    ("||", Ok(Token::Or)),
    ("|", Err("||")),
    ("&", Ok(Token::Mask)),
    ("!", Ok(Token::Not)),
    ("~", Ok(Token::TextTest(TextTest::Glob))),
    ("(", Ok(Token::Open)),
    (")", Ok(Token::Close)),
    ("[", Ok(Token::OpenElement)),
    ("]", Ok(Token::CloseElement)),
];

/// Words that stand between a field and text.
pub(super) const TEXT_TESTS: [&str; 3] = ["contains", "starts_with", "ends_with"];

const WORDS: [(&str, Token<'_>); 8] = [
    ("and", Token::And),
    ("or", Token::Or),
    ("not", Token::Not),
    ("contains", Token::TextTest(TextTest::Contains)),
    ("starts_with", Token::TextTest(TextTest::StartsWith)),
    ("ends_with", Token::TextTest(TextTest::EndsWith)),
    ("true", Token::Literal(Literal::Integer(1))),
    ("false", Token::Literal(Literal::Integer(0))),
];

/// Reads the word that starts at or behind `at`: it, where it starts, and where the next may.
pub(super) fn next(source: &str, at: usize) -> Result<(Token<'_>, usize, usize), FilterError> {
    let rest = source.get(at..).unwrap_or_default();
    let rest = rest.trim_start();
    let start = source.len() - rest.len();
    let error = |at: usize, message: String| Err(FilterError::new(source, at, message));
    let Some(first) = rest.chars().next() else { return Ok((Token::End, start, start)) };
    if let Some((sign, token)) = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
        return match token {
            Ok(token) => Ok((token.clone(), start, start + sign.len())),
            Err(meant) => error(start, format!("`{sign}` means nothing here; did you mean `{meant}`?")),
        };
    }
    let word_end = |is_part: fn(char) -> bool| rest.find(|char| !is_part(char)).unwrap_or(rest.len());
    match first {
        '\'' | '"' | '`' => {
            let (text, length) = match quoted(rest, first) {
                Ok(text) => text,
                Err((offset, message)) => return error(start + offset, message.to_owned()),
            };
            let token =
                if first == '`' { Token::Name(text.into()) } else { Token::Literal(Literal::Text(text)) };
            Ok((token, start, start + length))
        }
        '0'..='9' | '-' | '.' => {
            let mut length = 1 + word_end_of_number(rest.get(1..).unwrap_or_default());
            length = length.min(rest.len());
            let word = rest.get(..length).unwrap_or(rest);
            match number(word) {
                Some(literal) => Ok((Token::Literal(literal), start, start + length)),
                None => error(start, format!("`{word}` is no number of 64 bits")),
            }
        }
        _ if first.is_alphabetic() || first == '_' => {
            let length = word_end(|char| char.is_alphanumeric() || matches!(char, '_' | '.'));
            let word = rest.get(..length).unwrap_or(rest);
            let known = WORDS.iter().find(|(known, _)| *known == word);
            let token = known.map_or(Token::Name(word.into()), |(_, token)| token.clone());
            Ok((token, start, start + length))
        }
        other => error(start, format!("`{}` means nothing here", other.escape_debug())),
    }
}

/// Bytes of a number behind its first character; an exponent may have a sign.
fn word_end_of_number(rest: &str) -> usize {
    let mut previous = ' ';
    let is_hexadecimal =
        rest.starts_with(['x', 'X']) || rest.get(1..).is_some_and(|rest| rest.starts_with(['x', 'X']));
    rest.find(|char: char| {
        let is_sign = matches!(char, '+' | '-') && matches!(previous, 'e' | 'E') && !is_hexadecimal;
        previous = char;
        !(char.is_alphanumeric() || char == '.' || is_sign)
    })
    .unwrap_or(rest.len())
}

fn number(word: &str) -> Option<Literal> {
    let (negative, digits) = word.strip_prefix('-').map_or((false, word), |digits| (true, digits));
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    if !digits.starts_with(|char: char| char.is_ascii_digit()) {
        return None;
    }
    if hexadecimal.is_none() && digits.contains(['.', 'e', 'E']) {
        let value: f64 = word.parse().ok()?;
        return value.is_finite().then_some(Literal::Float(value));
    }
    let size = match hexadecimal {
        Some(digits) if digits.starts_with('+') => return None,
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    let size = i128::from(size.ok()?);
    let value = if negative { -size } else { size };
    (value >= i64::MIN.into()).then_some(Literal::Integer(value))
}

/// The text between quotes, and bytes with them; or where what is wrong.
fn quoted(rest: &str, quote: char) -> Result<(String, usize), (usize, &'static str)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, escaped @ ('\'' | '"' | '`' | '\\'))) => text.push(escaped),
                // Of patterns, which have the backslash to themselves.
                Some((_, escaped @ ('*' | '?'))) => text.extend(['\\', escaped]),
                _ => {
                    return Err((
                        at,
                        "a backslash is followed by a quote, a backslash, `n`, `t`, `*` or `?`",
                    ));
                }
            },
            char if char == quote => return Ok((text, at + char.len_utf8())),
            char => text.push(char),
        }
    }
    Err((0, "the quote is not closed"))
}
