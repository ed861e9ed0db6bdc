//! What the eBPF programs are made of.
//!
//! In: cargo's dependency tree of `collector-ebpf`. Out: a finding for each crate in it that has no place in the
//! kernel, and for the default features of `collector-common`, which need an allocator.

use anyhow::Result;

use super::Finding;
use crate::command;
use crate::toolchain;
use crate::workspace::Workspace;

const MANIFEST: &str = "collector-ebpf/Cargo.toml";

/// Crates besides aya's; `num_enum` is the one that aya's log types use.
const ALLOWED: [&str; 4] = ["bytemuck", "collector-common", "collector-ebpf", "num_enum"];

/// Asks cargo for the tree, without build scripts and derive macros, which run on this machine.
pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut cargo = toolchain::own_cargo(workspace);
    cargo.args(["tree", "--manifest-path", MANIFEST, "--target", "bpfel-unknown-none"]);
    cargo.args(["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}|{f}"]);
    Ok(findings(&command::output(&mut cargo)?))
}

/// Findings in lines `name version (place)|feature,feature`.
fn findings(tree: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut rules: Vec<String> = tree.lines().filter_map(broken_rule).collect();
    rules.sort();
    rules.dedup();
    findings.extend(rules.into_iter().map(|rule| Finding::new(MANIFEST, 1, rule)));
    findings
}

fn broken_rule(line: &str) -> Option<String> {
    let (package, features) = line.split_once('|')?;
    let name = package.split(' ').next()?;
    let features = features.trim_end_matches("(*)").trim();
    if !ALLOWED.contains(&name) && !name.starts_with("aya-") {
        return Some(format!("{name} may not be part of the eBPF programs"));
    }
    if name == "collector-common" && features.split(',').any(|feature| feature == "std") {
        return Some(
            "collector-common is taken with feature std; take it with default-features = false".into(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "collector-ebpf v0.1.0 (dir)|\naya-ebpf v0.2.1|\nbytemuck v1.25.0|derive\n\
                        collector-common v0.1.0 (dir)|\nbytemuck v1.25.0|derive (*)\n";

    #[test]
    fn the_crates_that_belong_there_are_no_finding() {
        assert_eq!(findings(GOOD), []);
    }

    #[test]
    fn a_foreign_crate_is_found_once() {
        let tree = format!("{GOOD}hashbrown v0.16.0|\nhashbrown v0.16.0| (*)\n");
        let found = findings(&tree);
        assert_eq!(found, [Finding::new(MANIFEST, 1, "hashbrown may not be part of the eBPF programs")]);
    }

    #[test]
    fn the_std_feature_is_found() {
        let found = findings("collector-common v0.1.0 (dir)|default,std\n");
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
