//! Names as programmers write them in, without parameters already; without what stands between angle brackets behind a name out.
//!
//! In `Vec<u8>::push` and `align_of::<u64>` brackets hold arguments, which go. In `<Vec<u8> as Drop>::drop`, `<lambda_1>` and
//! `operator<<` they do not. A name that is not understood stays as it is.

/// What an operator of C++ may be called, longer ones first.
const OPERATORS: [&str; 13] =
    ["<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">", "()", "[]"];

/// The name without arguments.
pub(super) fn short(name: &str) -> String {
    without_arguments(name).unwrap_or_else(|| name.to_owned())
}

fn without_arguments(name: &str) -> Option<String> {
    let mut out = String::with_capacity(name.len());
    // How many brackets are open that stay.
    let mut kept = 0_usize;
    let mut rest = name;
    while let Some(next) = rest.chars().next() {
        if let Some(operator) = rest.strip_prefix("operator").filter(|_| !ends_in_word(&out)) {
            out.push_str("operator");
            let symbol =
                OPERATORS.iter().find(|symbol| operator.starts_with(**symbol)).copied().unwrap_or_default();
            out.push_str(symbol);
            rest = &operator[symbol.len()..];
            // `operator< <int>`
            if !symbol.is_empty() && rest.trim_start().starts_with('<') {
                rest = behind_arguments(rest.trim_start())?;
            }
            continue;
        }
        match next {
            '<' if ends_in_word(&out) || out.ends_with("::") && !is_part(rest) => {
                rest = behind_arguments(rest)?;
                out.truncate(out.strip_suffix("::").map_or(out.len(), str::len));
                continue;
            }
            '<' => kept += 1,
            '>' if !out.ends_with('-') => kept = kept.checked_sub(1)?,
            _ => {}
        }
        out.push(next);
        rest = &rest[next.len_utf8()..];
    }
    (kept == 0 && !out.is_empty()).then_some(out)
}

/// Whether what brackets hold is a part of the name: `<impl u32>` of Rust, `<lambda_0123>` of Microsoft's compiler.
fn is_part(rest: &str) -> bool {
    ["<impl ", "<lambda_", "<unnamed"].iter().any(|start| rest.starts_with(start))
}

fn ends_in_word(text: &str) -> bool {
    text.ends_with(|last: char| last.is_alphanumeric() || matches!(last, '_' | '$' | '}' | '\''))
}

/// What follows the bracket that closes the first one.
fn behind_arguments(text: &str) -> Option<&str> {
    let mut open = 0_usize;
    let mut last = ' ';
    for (at, next) in text.char_indices() {
        match next {
            '<' => open += 1,
            '>' if last != '-' => {
                open = open.checked_sub(1)?;
                if open == 0 {
                    return text.get(at + 1..);
                }
            }
            _ => {}
        }
        last = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arguments_go_and_what_is_a_part_of_the_name_stays() {
        for (name, expected) in [
            ("<Vec<u8> as core::ops::Drop>::drop", "<Vec as core::ops::Drop>::drop"),
            ("core::mem::align_of::<u64>", "core::mem::align_of"),
            ("<fn(A<B>) -> C<D> as E>::call::<F>", "<fn(A) -> C as E>::call"),
            ("core::num::<impl b::C<D> for u32>::f", "core::num::<impl b::C for u32>::f"),
            ("a::<fn(B) -> C>::f", "a::f"),
            ("a::{closure#0}::<B>", "a::{closure#0}"),
            ("std::vector<a<b>, c>::operator std::map<d, e>", "std::vector::operator std::map"),
            ("a<b>::operator->", "a::operator->"),
            ("a::operator()<b>", "a::operator()"),
            ("a::operator<=> <b>", "a::operator<=>"),
            ("<lambda_01>::operator()", "<lambda_01>::operator()"),
            ("a::<lambda_01>::operator()", "a::<lambda_01>::operator()"),
            ("my_operator<b>", "my_operator"),
            ("a<b", "a<b"),
            ("a>b", "a>b"),
            ("<a", "<a"),
            ("", ""),
        ] {
            assert_eq!(short(name), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_added(name in "[a-c<> :(-]{0,40}") {
            let short = short(&name);
            let mut left = name.chars();
            prop_assert!(short.chars().all(|next| left.any(|other| other == next)));
        }
    }
}
