//! Rules that a single file can break.
//!
//! In: path and text of a file. Out: findings: length, the opening docs, glob imports, names without meaning,
//! marks of unfinished work, paths of one person's machine, a source that knows a format, and an example that is not the same on every system.

use std::path::Path;

use super::Finding;
use super::blank::{blank, test_lines};

/// No file is longer.
const MOST_LINES: usize = 800;
/// Endings of files whose length counts.
const SOURCES: [&str; 6] = ["css", "html", "js", "mjs", "rs", "sh"];
/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 7] = ["helper", "helpers", "manager", "managers", "util", "utility", "utils"];
/// Code that marks unfinished work.
const UNFINISHED: [&str; 3] = ["todo!(", "unimplemented!(", "#[ignore"];
/// A comment that marks unfinished work, in two parts because this file is checked too.
const FIX_MARK: &str = concat!("FIX", "ME");
/// Examples that are the same program on every system that there is a recorder for.
const UNIVERSAL: [&str; 1] = ["collector-user/examples/own_work.rs"];
/// Where people's home folders are, in parts for the same reason.
const HOMES: [&str; 3] = [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];

/// Findings in one file.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut report = |line: usize, rule: String| findings.push(Finding::new(path, line, rule));
    let ending = Path::new(path).extension().and_then(|ending| ending.to_str());
    if ending.is_some_and(|ending| SOURCES.contains(&ending)) {
        too_long(text, &mut report);
    }
    for (line, text) in numbered(text) {
        if text.contains(FIX_MARK) {
            report(line, format!("{FIX_MARK} marks unfinished work; do it or file it"));
        }
        if let Some(home) = home_path(text) {
            report(line, format!("`{home}` is a path of one person's machine"));
        }
    }
    if ending == Some("rs") {
        rust(path, text, &mut report);
    }
    findings
}

fn rust(path: &str, text: &str, report: &mut impl FnMut(usize, String)) {
    let code = blank(text);
    let in_tests = test_lines(&code);
    if !opens_with_docs(text) {
        report(1, "a file opens with `//!`: what comes in, what goes out, where the fact is from".into());
    }
    if let Some(name) = path.trim_end_matches(".rs").split('/').find(|name| EMPTY_NAMES.contains(name)) {
        report(1, format!("`{name}` says nothing about what is inside; name it for what it does"));
    }
    for ((line, code), in_test) in numbered(&code).zip(in_tests) {
        if let Some(name) = module_name(code).filter(|name| EMPTY_NAMES.contains(name)) {
            report(line, format!("module `{name}` says nothing about what is inside"));
        }
        for mark in UNFINISHED.into_iter().filter(|mark| code.contains(mark)) {
            report(line, format!("`{mark}` marks unfinished work"));
        }
        if is_glob_import(code) && !in_test && !is_test_file(path) {
            report(line, "a glob import hides where names are from; list them".into());
        }
    }
    if UNIVERSAL.contains(&path) {
        for (line, _) in
            numbered(&code).filter(|(_, code)| ["cfg", "cfg_attr"].iter().any(|word| has_word(code, word)))
        {
            report(line, "this example is the same on every system, without a `cfg`".into());
        }
    }
    if path.starts_with("collector-user/src/source/") {
        for line in format_imports(&code) {
            report(line, "a source must not know `export::format`".into());
        }
    }
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

fn too_long(text: &str, report: &mut impl FnMut(usize, String)) {
    let lines = text.lines().count();
    if lines > MOST_LINES {
        report(
            MOST_LINES + 1,
            format!("{lines} lines; a file has at most {MOST_LINES}, split it by subject"),
        );
    }
}

/// The first line that is not blank, an inner attribute or a licence remark is `//!`.
fn opens_with_docs(text: &str) -> bool {
    let skipped = |line: &str| line.is_empty() || line.starts_with("#!") || line.starts_with("// ");
    text.lines().map(str::trim).find(|line| !skipped(line)).is_some_and(|line| line.starts_with("//!"))
}

/// The name in `mod name;` or `mod name {`, whatever its visibility.
fn module_name(code: &str) -> Option<&str> {
    let (before, after) = code.split_once("mod ")?;
    let visibility = before.trim();
    if !visibility.is_empty() && !visibility.starts_with("pub") {
        return None;
    }
    after.split([';', '{', ' ']).next()
}

/// `use a::*;` and `use a::{b, c::*};`, also the last line of one that spans several.
fn is_glob_import(code: &str) -> bool {
    let code = code.trim();
    let imports = code.starts_with("use ") || (code.starts_with("pub") && code.contains(" use "));
    let continued = code.ends_with("::*;") || code.ends_with("::*,") || code.ends_with("::*};");
    continued || (imports && code.contains("::*"))
}

/// Whether a name is in code, and not as a part of a longer one.
fn has_word(code: &str, word: &str) -> bool {
    code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|name| name == word)
}

fn is_test_file(path: &str) -> bool {
    path.trim_end_matches(".rs").split('/').any(|part| part == "tests")
}

/// Lines on which the path `export::format` is named, in full or by `use export::{...}`.
fn format_imports(code: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    for (at, _) in code.match_indices("export::") {
        let after = code[at + "export::".len()..].trim_start();
        let names_format = match after.strip_prefix('{') {
            Some(list) => top_level_names(list).any(|name| name == "format"),
            None => first_word(after) == "format",
        };
        if names_format {
            lines.push(code[..at].matches('\n').count() + 1);
        }
    }
    lines
}

/// The first path segment of each entry in `a, b::{c}, d}`.
fn top_level_names(list: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut begin, mut names) = (0_i32, 0, Vec::new());
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '}' => {
                names.push(first_word(list[begin..at].trim_start()));
                break;
            }
            ',' if depth == 0 => {
                names.push(first_word(list[begin..at].trim_start()));
                begin = at + 1;
            }
            _ => {}
        }
    }
    names.into_iter()
}

fn first_word(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
    &text[..end]
}

/// A path below a home folder. `/proc/self/root/` and the like are none: there the folder is inside a path.
fn home_path(line: &str) -> Option<&str> {
    for home in HOMES {
        for (at, _) in line.match_indices(home) {
            let inside_path = line[..at].ends_with(|letter: char| {
                letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '}' | '>' | '*' | '/' | '$')
            });
            let rest = &line[at + home.len()..];
            if !inside_path && rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '.') {
                let end = rest.find(|letter: char| !letter.is_alphanumeric() && !"._-/".contains(letter));
                return Some(&line[at..at + home.len() + end.unwrap_or(rest.len())]);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests;
