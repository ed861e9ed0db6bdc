//! Programs that `cargo install` brings, into `target/tools`.
//!
//! In: name, pinned version and features. Out: `target/tools/bin/<name>`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::command;
use crate::toolchain;
use crate::workspace::Workspace;

/// A program from crates.io, of one version.
pub(super) struct CargoTool {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    /// Further arguments of `cargo install`.
    pub(super) args: &'static [&'static str],
    /// Variables that its build reads.
    pub(super) env: &'static [(&'static str, &'static str)],
}

impl CargoTool {
    pub(super) fn program(&self, workspace: &Workspace) -> PathBuf {
        workspace.tools().join("bin").join(self.name)
    }

    /// Whether it is there in this version, by cargo's own list of what it installed.
    pub(super) fn is_installed(&self, workspace: &Workspace) -> bool {
        let list = fs::read_to_string(workspace.tools().join(".crates.toml")).unwrap_or_default();
        self.program(workspace).is_file() && list.contains(&format!("\"{} {} ", self.name, self.version))
    }

    /// The program, after installing it where it is not there.
    pub(super) fn ensure(&self, workspace: &Workspace) -> Result<PathBuf> {
        if !self.is_installed(workspace) {
            self.install(workspace)?;
        }
        Ok(self.program(workspace))
    }

    /// Compiles and installs it.
    pub(super) fn install(&self, workspace: &Workspace) -> Result<()> {
        let mut cargo = toolchain::undisturbed("cargo");
        cargo.args(["install", self.name, "--version", self.version, "--locked", "--force"]).args(self.args);
        cargo.arg("--root").arg(workspace.tools()).envs(self.env.iter().copied());
        command::run(&mut cargo)
            .with_context(|| format!("{} {} could not be compiled and installed", self.name, self.version))
    }

    /// The command line that installs it where neither folders nor features are known.
    pub(super) fn by_hand(&self, workspace: &Workspace) -> String {
        format!(
            "cargo install {} --version {} --root {}",
            self.name,
            self.version,
            workspace.tools().display()
        )
    }
}
