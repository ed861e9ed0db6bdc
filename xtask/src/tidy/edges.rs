//! Which of our crates may depend on which.
//!
//! In: a crate's manifest. Out: a finding for each dependency on one of ours that the layering forbids, of any
//! kind: a test that leans the wrong way rots the layering as well. The table is ARCHITECTURE.md's.

use super::Finding;

/// Folder of a crate, and the crates of ours that it may name.
const ALLOWED: [(&str, &[&str]); 7] = [
    ("collector-common", &[]),
    ("unwinder", &[]),
    ("export", &["collector-common"]),
    ("windows-etw", &["collector-common"]),
    ("collector-user", &["collector-common", "unwinder", "export", "windows-etw"]),
    ("collector-ebpf", &["collector-common"]),
    ("xtask", &[]),
];

/// Names under which a manifest may speak of a crate, and that crate's folder.
const NAMES: [(&str, &str); 10] = [
    ("collector-common", "collector-common"),
    ("unwinder", "unwinder"),
    ("collector-unwinder", "unwinder"),
    ("export", "export"),
    ("collector-export", "export"),
    ("windows-etw", "windows-etw"),
    ("collector-windows-etw", "windows-etw"),
    ("collector-user", "collector-user"),
    ("collector-ebpf", "collector-ebpf"),
    ("xtask", "xtask"),
];

/// Findings in the manifest at `path`.
pub(super) fn check(path: &str, manifest: &str) -> Vec<Finding> {
    let Some((folder, allowed)) = ALLOWED.iter().find(|(folder, _)| path == format!("{folder}/Cargo.toml"))
    else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (line, named) in dependencies(manifest) {
        if named != *folder && !allowed.contains(&named) {
            findings.push(Finding::new(path, line, format!("{folder} may not depend on {named}")));
        }
    }
    findings
}

/// Line and folder of each crate of ours that is a dependency in `manifest`.
fn dependencies(manifest: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let mut in_dependencies = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let names: Vec<&str> = if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let (table, own) = header.rsplit_once('.').unwrap_or(("", header));
            in_dependencies = own.ends_with("dependencies");
            if table.ends_with("dependencies") { vec![own] } else { Vec::new() }
        } else if in_dependencies {
            let key = line.split(['.', '=', ' ']).next().unwrap_or_default();
            std::iter::once(key).chain(package(line)).collect()
        } else {
            Vec::new()
        };
        let ours = names.iter().find_map(|name| NAMES.iter().find(|(known, _)| known == name));
        found.extend(ours.map(|(_, folder)| (index + 1, *folder)));
    }
    found
}

/// The value of `package = "..."` in an inline table.
fn package(line: &str) -> Option<&str> {
    let (_, after) = line.split_once("package")?;
    after.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, manifest: &str) -> Vec<usize> {
        check(path, manifest).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn an_allowed_edge_is_no_finding() {
        let manifest = "[dependencies]\ncollector-common = { workspace = true }\nserde = \"1\"\n";
        assert_eq!(lines("export/Cargo.toml", manifest), []);
        assert_eq!(lines("collector-user/Cargo.toml", "[dependencies]\nexport.workspace = true\n"), []);
    }

    #[test]
    fn a_forbidden_edge_is_found_in_every_spelling() {
        for manifest in [
            "[dependencies]\ncollector-common.workspace = true\n",
            "[dependencies]\ncollector-common = \"0.1\"\n",
            "[dev-dependencies]\ncommon = { package = \"collector-common\", version = \"1\" }\n",
            "[package]\n[build-dependencies.collector-common]\n",
            "[target.'cfg(unix)'.dependencies]\nexport.workspace = true\n",
        ] {
            assert_eq!(lines("unwinder/Cargo.toml", manifest), [2], "{manifest}");
        }
    }

    #[test]
    fn other_tables_and_comments_name_no_dependency() {
        let manifest =
            "[features]\nexport = []\n[dependencies]\n# export = \"1\"\n[lib]\nname = \"export\"\n";
        assert_eq!(lines("unwinder/Cargo.toml", manifest), []);
    }

    #[test]
    fn the_message_names_both_crates() {
        let findings = check("windows-etw/Cargo.toml", "[dependencies]\nunwinder.workspace = true\n");
        assert_eq!(
            findings[0].to_string(),
            "windows-etw/Cargo.toml:2: windows-etw may not depend on unwinder"
        );
    }
}
