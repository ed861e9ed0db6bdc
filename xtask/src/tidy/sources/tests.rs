//! Each rule on a file, with text that keeps it and text that breaks it.

use super::*;

const DOCS: &str = "//! Docs.\n";

/// The lines of the findings whose rule mentions `word`.
fn lines(path: &str, text: &str, word: &str) -> Vec<usize> {
    check(path, text)
        .into_iter()
        .filter(|finding| finding.rule.contains(word))
        .map(|finding| finding.line)
        .collect()
}

#[test]
fn a_file_that_keeps_every_rule_has_no_finding() {
    let text = format!("{DOCS}use std::fs::File;\n\nfn open() -> File {{ unreachable() }}\n");
    assert_eq!(check("export/src/open.rs", &text), []);
}

#[test]
fn length_is_limited_for_sources_alone() {
    let long = format!("{DOCS}{}", "\n".repeat(800));
    assert_eq!(lines("a/b.rs", &long, "at most 800"), [801]);
    assert_eq!(lines("a/b.mjs", &long, "at most 800"), [801]);
    assert_eq!(lines("CHANGELOG.md", &long, "at most 800"), []);
    let just_right = format!("{DOCS}{}", "\n".repeat(799));
    assert_eq!(lines("a/b.rs", &just_right, "at most 800"), []);
}

#[test]
fn a_file_opens_with_docs() {
    assert_eq!(lines("a/b.rs", "use std::fs;\n//! Late.\n", "opens with"), [1]);
    assert_eq!(lines("a/b.rs", "", "opens with"), [1]);
    assert_eq!(lines("a/b.rs", "#![no_std]\n//! Docs.\n", "opens with"), []);
}

#[test]
fn an_example_for_every_system_has_no_cfg() {
    let path = "collector-user/examples/own_work.rs";
    for code in ["#[cfg(windows)]", "    #[cfg_attr(windows, allow(unused))]", "if cfg!(windows) {}"] {
        let text = format!("{DOCS}// Without a `cfg`.\nfn config() {{}}\n{code}\n");
        assert_eq!(lines(path, &text, "every system"), [4], "{code}");
        assert_eq!(lines("collector-user/examples/other.rs", &text, "every system"), []);
    }
    let text = format!("{DOCS}// Without a `cfg`.\nfn cfg_of(config: &str) {{}}\n");
    assert_eq!(lines(path, &text, "every system"), []);
}

#[test]
fn glob_imports_are_for_tests() {
    for import in ["use a::*;", "pub use a::b::*;", "pub(crate) use a::*;", "use a::{b, c::*};"] {
        let text = format!("{DOCS}{import}\n");
        assert_eq!(lines("a/src/b.rs", &text, "glob import"), [2], "{import}");
        assert_eq!(lines("a/tests/b.rs", &text, "glob import"), [], "{import}");
        assert_eq!(lines("a/src/b/tests.rs", &text, "glob import"), [], "{import}");
    }
    let inline = format!("{DOCS}#[cfg(test)]\nmod tests {{\n    use super::*;\n}}\nuse c::*;\n");
    assert_eq!(lines("a/src/b.rs", &inline, "glob import"), [6]);
    let several = format!("{DOCS}use a::{{\n    b,\n    c::*,\n}};\n");
    assert_eq!(lines("a/src/b.rs", &several, "glob import"), [4]);
    let other = format!("{DOCS}// use a::*;\nconst A: &str = \"use a::*;\";\nlet b = c::d * e;\n");
    assert_eq!(lines("a/src/b.rs", &other, "glob import"), []);
}

#[test]
fn names_mean_something() {
    assert_eq!(lines("a/src/helpers.rs", DOCS, "says nothing"), [1]);
    assert_eq!(lines("a/src/utils/mod.rs", DOCS, "says nothing"), [1]);
    assert_eq!(lines("a/src/b.rs", "//! D\npub(crate) mod manager;\n", "says nothing"), [2]);
    assert_eq!(lines("a/src/b.rs", "//! D\nmod utils {\n}\n", "says nothing"), [2]);
    assert_eq!(lines("a/src/bpf_helpers_abi.rs", "//! D\nmod session_manager_ids;\n", "says nothing"), []);
}

#[test]
fn unfinished_work_is_found() {
    for mark in ["todo!()", "unimplemented!(\"later\")", "#[ignore]", "#[ignore = \"slow\"]"] {
        assert_eq!(lines("a/b.rs", &format!("{DOCS}{mark}\n"), "unfinished"), [2], "{mark}");
        assert_eq!(lines("a/b.rs", &format!("{DOCS}// {mark}\n"), "unfinished"), [], "{mark}");
    }
    let comment = format!("{DOCS}// {FIX_MARK}: later\n");
    assert_eq!(lines("a/b.rs", &comment, "unfinished"), [2]);
    assert_eq!(lines("README.md", FIX_MARK, "unfinished"), [1]);
}

#[test]
fn home_folders_are_found_and_proc_roots_are_not() {
    let [linux, root, mac] = HOMES;
    for path in [format!("\"{linux}jo/a\""), format!("see {root}.cargo/bin"), format!("({mac}jo)")] {
        assert_eq!(lines("README.md", &path, "machine"), [1], "{path}");
    }
    for path in
        ["/proc/1/root/lib", "/proc/{pid}/root/usr", "/proc/$PID/root/lib", "/root", "the /home/ folder"]
    {
        assert_eq!(lines("README.md", path, "machine"), [], "{path}");
    }
}

#[test]
fn a_source_knows_no_format() {
    let path = "collector-user/src/source/perf/ring.rs";
    for import in [
        "use export::format::pprof;",
        "use ::export::{sink, format::folded};",
        "use export::{\n    sink::{a, b},\n    format,\n};",
        "fn f() { export::format::write() }",
    ] {
        let text = format!("{DOCS}{import}\n");
        assert_eq!(lines(path, &text, "export::format"), [2], "{import}");
        assert_eq!(lines("collector-user/src/session.rs", &text, "export::format"), [], "{import}");
    }
    let fine = format!("{DOCS}use export::sink::format;\nuse export::{{sink::{{format}}, symbolize}};\n");
    assert_eq!(lines(path, &fine, "export::format"), []);
}
