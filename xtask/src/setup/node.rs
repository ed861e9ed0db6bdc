//! The npm packages that browser tests import.
//!
//! Out: `target/node/node_modules/playwright-core`, which drives the Chromium that is installed and downloads
//! none.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::Need;
use crate::command;
use crate::workspace::Workspace;

/// The newest that runs on the Node 18 of Debian 12.
const PLAYWRIGHT: &str = "1.60.0";

/// Whether a verb with these needs lacks the packages.
pub(super) fn is_missing(workspace: &Workspace, needs: &[Need]) -> bool {
    if !needs.contains(&Need::Browser) {
        return false;
    }
    let manifest = workspace.node().join("node_modules/playwright-core/package.json");
    let text = fs::read_to_string(manifest).unwrap_or_default();
    !text.contains(&format!("\"version\": \"{PLAYWRIGHT}\""))
}

/// Installs them from the npm registry. No package's install script runs.
pub(super) fn install(workspace: &Workspace) -> Result<()> {
    let folder = workspace.node();
    fs::create_dir_all(&folder).with_context(|| format!("{} can't be made", folder.display()))?;
    let manifest = folder.join("package.json");
    let text =
        format!("{{ \"private\": true, \"dependencies\": {{ \"playwright-core\": \"{PLAYWRIGHT}\" }} }}\n");
    fs::write(&manifest, text).with_context(|| format!("{} can't be written", manifest.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&folder);
    command::run(&mut npm).context("playwright-core could not be installed")
}
