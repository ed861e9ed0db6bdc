//! `cargo xtask bench`: runs the benches.
//!
//! In: the name of a bench target, or none for all, and its arguments. Out: what the benches print. Those of
//! [`PRIVILEGED`] measure the collector on this machine and run as root; the others as whoever started us. The benches of
//! the package [`PEER`] go by its name.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::build_ebpf::{self, Arch};
use crate::command;
use crate::install;
use crate::setup::{self, Verb};
use crate::toolchain;
use crate::workspace::{CRATES, Workspace};

/// The benches of `collector-user` that need root.
const PRIVILEGED: [&str; 2] = ["live", "machine"];

/// The package of `collector-common` that measures `one_collect` beside it: a workspace of its own, for what it depends on.
const PEER: &str = "one_collect";

/// What finds cargo, its compiler and its registries.
const TOOLCHAIN: [&str; 4] = ["HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"];

/// Runs the bench called `only`, or every bench, with `args`.
pub(crate) fn bench(workspace: &Workspace, only: Option<&str>, args: &[String]) -> Result<()> {
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
            if PRIVILEGED.contains(&&*name) {
                privileged(workspace, &package, &name, args)?;
            } else {
                stage(workspace, &package, &name, args)?;
            }
        }
    }
    if only.is_none_or(|only| only == PEER) {
        ran += 1;
        peer(workspace, args)?;
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

fn stage(workspace: &Workspace, package: &str, name: &str, args: &[String]) -> Result<()> {
    let mut cargo = toolchain::own_cargo(workspace);
    command::run(cargo.args(["bench", "--package", package, "--bench", name, "--"]).args(args))
}

fn peer(workspace: &Workspace, args: &[String]) -> Result<()> {
    let manifest = workspace.join("collector-common/benches").join(PEER).join("Cargo.toml");
    let mut cargo = toolchain::own_cargo(workspace);
    // Crates in other versions than ours: a folder of its own.
    cargo.env("CARGO_TARGET_DIR", workspace.target().join(PEER));
    command::run(cargo.args(["bench", "--locked", "--manifest-path"]).arg(manifest).arg("--").args(args))
}

/// Compiles as ourselves and runs as root, so that root owns nothing in `target/`. Root gets our toolchain, because
/// a bench builds the workspace, and finds the peers.
fn privileged(workspace: &Workspace, package: &str, name: &str, args: &[String]) -> Result<()> {
    let samply = setup::samply(workspace)?;
    install::build_release(workspace)?;
    let mut cargo = toolchain::own_cargo(workspace);
    cargo.args(["bench", "--package", package, "--bench", name, "--no-run", "--message-format", "short"]);
    let executable = executable(workspace, &mut cargo)?;
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = samply.parent().map(Path::to_path_buf).into_iter().chain(env::split_paths(&path));
    let mut path = OsString::from("PATH=");
    path.push(env::join_paths(folders).context("a folder on PATH has a colon in its name")?);
    // `env` carries variables through sudo, which drops those it does not know.
    let mut bench = command::as_root("env")?;
    bench.arg(path);
    for name in TOOLCHAIN {
        bench.args(env::var(name).map(|value| format!("{name}={value}")));
    }
    command::run(bench.arg(&executable).args(args).current_dir(workspace.join("collector-user")))
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
    let path = named.context("cargo named no executable for the bench")?;
    Ok(workspace.join(path))
}
