//! `cargo xtask bench`: runs the benches.
//!
//! In: the name of a bench target, or none for all. Out: what the benches print. Those of `live.rs` measure the
//! collector on this machine and run as root; the others as whoever started us.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::build_ebpf::{self, Arch};
use crate::command;
use crate::install;
use crate::setup::{self, Verb};
use crate::toolchain;
use crate::workspace::{CRATES, Workspace};

/// The bench of `collector-user` that needs root.
const LIVE: &str = "live";

/// Runs the bench called `only`, or every bench.
pub(crate) fn bench(workspace: &Workspace, only: Option<&str>) -> Result<()> {
    setup::setup(workspace, Verb::Bench)?;
    build_ebpf::build_ebpf(workspace, Arch::host()?)?;
    let mut ran = 0;
    for folder in CRATES {
        let package = workspace.package(folder)?;
        for name in names(workspace, folder)? {
            if only.is_some_and(|only| only != name) {
                continue;
            }
            ran += 1;
            if name == LIVE { live(workspace, &package)? } else { stage(workspace, &package, &name)? }
        }
    }
    anyhow::ensure!(ran > 0, "no crate has a bench called {}", only.unwrap_or("anything"));
    Ok(())
}

/// The bench targets of the crate in `folder`: the files of its `benches/`.
fn names(workspace: &Workspace, folder: &str) -> Result<Vec<String>> {
    let benches = workspace.join(folder).join("benches");
    if !benches.is_dir() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in benches.read_dir().with_context(|| format!("{} can't be read", benches.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

fn stage(workspace: &Workspace, package: &str, name: &str) -> Result<()> {
    command::run(toolchain::own_cargo(workspace).args(["bench", "--package", package, "--bench", name]))
}

/// Compiles as ourselves and runs as root, so that root owns nothing in `target/`.
fn live(workspace: &Workspace, package: &str) -> Result<()> {
    install::build_release(workspace)?;
    let mut cargo = toolchain::own_cargo(workspace);
    cargo.args(["bench", "--package", package, "--bench", LIVE, "--no-run", "--message-format", "short"]);
    let executable = executable(workspace, &mut cargo)?;
    let mut bench = command::as_root(&executable)?;
    command::run(bench.arg("--bench").current_dir(workspace.join("collector-user")))
}

/// The file that `cargo bench --no-run` names on stderr, as in `Executable benches/live.rs (target/...)`.
fn executable(workspace: &Workspace, cargo: &mut Command) -> Result<PathBuf> {
    eprintln!("$ {}", command::line(cargo));
    let output = cargo.output().context("cargo can't be started")?;
    let text = String::from_utf8_lossy(&output.stderr);
    eprint!("{text}");
    anyhow::ensure!(output.status.success(), "`{}` failed: {}", command::line(cargo), output.status);
    let named = text.lines().rev().find_map(|line| {
        let (_, path) = line.trim().strip_prefix("Executable ")?.split_once('(')?;
        path.strip_suffix(')')
    });
    let path = named.context("cargo named no executable for the live bench")?;
    Ok(workspace.join(path))
}
