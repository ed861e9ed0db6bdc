//! `cargo xtask tidy`: the house rules that people forget and no compiler checks.
//!
//! In: the checkout's files and manifests. Out: a line `path:line: rule` for each finding, and failure if there is
//! one. The rules are in `tidy/`, one file per subject; each is a pure function of text, with a test that breaks
//! it.

mod blank;
mod edges;
mod files;
mod kernel_tree;
mod sources;
mod windows_tree;

use std::fmt;

use anyhow::{Result, bail};

use crate::workspace::Workspace;

/// A place where a rule is broken.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// Relative to the top of the checkout, with `/` between folders.
    path: String,
    /// From 1.
    line: usize,
    /// What the rule says.
    rule: String,
}

impl Finding {
    fn new(path: &str, line: usize, rule: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule: rule.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.path, self.line, self.rule)
    }
}

/// Checks every rule.
pub(crate) fn tidy(workspace: &Workspace) -> Result<()> {
    let mut findings = Vec::new();
    let files = files::read_all(workspace.top())?;
    for file in &files {
        findings.extend(sources::check(&file.path, &file.text));
        if file.path.ends_with("Cargo.toml") {
            findings.extend(edges::check(&file.path, &file.text));
        }
    }
    findings.extend(kernel_tree::check(workspace)?);
    findings.extend(windows_tree::check(workspace)?);

    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        bail!("tidy: {} findings in {} files read", findings.len(), files.len());
    }
    eprintln!("tidy: {} files read, no finding", files.len());
    Ok(())
}
