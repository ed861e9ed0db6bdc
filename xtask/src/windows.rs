//! `cargo xtask windows`: the cross-platform crates and the `collector` binary for `x86_64-pc-windows-gnu`.
//!
//! Out: `target/windows/x86_64-pc-windows-gnu/debug/collector.exe`. That it links is the proof that no crate
//! which claims to be cross-platform leans on Linux.

use anyhow::{Result, bail};

use crate::command;
use crate::setup::{self, Verb};
use crate::toolchain::{CrossTarget, CrossToolchain};
use crate::workspace::{CRATES, Workspace};

/// The crate that holds the binary.
const BINARY: &str = "collector-user";

/// Compiles and links them.
pub(crate) fn windows(workspace: &Workspace) -> Result<()> {
    setup::setup(workspace, Verb::Windows)?;
    let Some(toolchain) = CrossToolchain::detect(CrossTarget::WINDOWS) else {
        bail!("no toolchain compiles for Windows here; run `cargo xtask setup --for windows`");
    };
    let cargo_build = || toolchain.cargo("build", "std,panic_abort");
    let mut libraries = cargo_build();
    libraries.arg("--lib");
    for folder in CRATES.into_iter().filter(|folder| *folder != BINARY) {
        libraries.args(["--package", &workspace.package(folder)?]);
    }
    let mut binary = cargo_build();
    binary.args(["--package", BINARY, "--bin", "collector"]);
    for mut cargo in [libraries, binary] {
        cargo.arg("--target-dir").arg(workspace.join("target/windows")).current_dir(workspace.top());
        command::run(&mut cargo)?;
    }
    Ok(())
}
