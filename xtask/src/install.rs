//! `cargo xtask install`: `collector` on root's PATH.
//!
//! In: the checkout. Out: `DIR/bin/collector`, replaced in one step, so that a running one is not disturbed and
//! nobody ever starts half a file.

use std::path::Path;

use anyhow::{Context, Result};

use crate::build_ebpf::{self, Arch};
use crate::command;
use crate::setup::{self, Verb};
use crate::toolchain;
use crate::workspace::Workspace;

/// Builds the binary and installs it below `root`, through sudo when the folder is not ours to write.
pub(crate) fn install(workspace: &Workspace, root: &Path) -> Result<()> {
    setup::setup(workspace, Verb::Install)?;
    build_ebpf::build_ebpf(workspace, Arch::host()?)?;
    build_release(workspace)?;

    let folder = root.join("bin");
    let (new, installed) = (folder.join(".collector.new"), folder.join("collector"));
    let ours = std::fs::create_dir_all(&folder).is_ok() && std::fs::write(&new, []).is_ok();
    let program =
        |name: &str| if ours { Ok(std::process::Command::new(name)) } else { command::as_root(name) };
    command::run(program("install")?.args(["-D", "-m", "755"]).arg(workspace.release_binary()).arg(&new))
        .with_context(|| format!("{} can't be written", new.display()))?;
    command::run(program("mv")?.arg("-f").arg(&new).arg(&installed))?;
    eprintln!("installed {}", installed.display());
    Ok(())
}

/// The optimised binary, with the eBPF object of this machine inside.
pub(crate) fn build_release(workspace: &Workspace) -> Result<()> {
    let mut cargo = toolchain::own_cargo(workspace);
    cargo.args(["build", "--release", "--package", "collector-user", "--bin", "collector"]);
    command::run(&mut cargo)
}
