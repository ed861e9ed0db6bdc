//! `cargo xtask windows`: the cross-platform crates and the `collector` binary for `x86_64-pc-windows-gnu`, tried under Wine.
//!
//! Out: `target/windows/x86_64-pc-windows-gnu/debug/collector.exe`. That it links is the proof that no crate
//! which claims to be cross-platform leans on Linux. The tests of `windows-etw` and of the binary, and the binaries, run under Wine, which has no ETW:
//! what needs that is in `docs/windows.md`.

mod checks;
mod recordings;
mod wine;

use std::process::Command;

use anyhow::{Result, bail};

use crate::command;
use crate::setup::{self, Verb};
use crate::test::{self, Totals};
use crate::toolchain::{CrossTarget, CrossToolchain};
use crate::workspace::{CRATES, Workspace};
use wine::Wine;
pub(crate) use wine::{DEBIAN_WINE, program as wine_program};

/// The crate whose code is for Windows alone, in part.
const ETW: &str = "windows-etw";
/// The crate of the binary.
const USER: &str = "collector-user";
/// The example that embeds the library, the same on Linux.
const EMBEDDING: &str = "own_work";
/// The same for all, so that the standard library is built once.
const STANDARD_LIBRARY: &str = "std,panic_unwind,test";

/// What is tried is not timed: without optimisation and debug information it is compiled in less time.
const QUICK: [&str; 4] =
    ["--config", "profile.dev.debug=false", "--config", "profile.dev.package.\"*\".opt-level=0"];

/// Compiles, lints, tests and tries them.
pub(crate) fn windows(workspace: &Workspace, totals: &mut Totals) -> Result<()> {
    setup::setup(workspace, Verb::Windows)?;
    let Some(toolchain) = CrossToolchain::detect(CrossTarget::WINDOWS) else {
        bail!("no toolchain compiles for Windows here; run `cargo xtask setup --for windows`");
    };
    let wine = Wine::ready(workspace, &CrossTarget::WINDOWS)?;
    let _server = wine.keep_server()?;
    let folder = workspace.join("target/windows");
    let here = |mut cargo: Command| {
        cargo.args(QUICK).arg("--target-dir").arg(&folder).current_dir(workspace.top());
        cargo
    };
    let etw = workspace.package(ETW)?;

    let mut build = here(toolchain.cargo("build", STANDARD_LIBRARY));
    build.args(["--lib", "--bin", "collector", "--example", "etw_record", "--example", EMBEDDING]);
    for crate_folder in CRATES {
        build.args(["--package", &workspace.package(crate_folder)?]);
    }
    command::run(&mut build)?;

    let mut lint = here(toolchain.cargo_clippy(STANDARD_LIBRARY));
    command::run(lint.args(["--package", &etw, "--all-targets", "--", "-D", "warnings"]))?;

    let mut tests = here(toolchain.cargo("test", STANDARD_LIBRARY));
    wine.runner(&mut tests, &CrossTarget::WINDOWS);
    test::stream::run_tests(tests.args(["--package", &etw, "--lib", "--tests"]), &[], totals)?;

    let package = workspace.package(USER)?;
    let mut lint = here(toolchain.cargo_clippy(STANDARD_LIBRARY));
    command::run(lint.args([
        "--package",
        &package,
        "--bin",
        "collector",
        "--tests",
        "--",
        "-D",
        "warnings",
    ]))?;

    let mut tests = here(toolchain.cargo("test", STANDARD_LIBRARY));
    wine.runner(&mut tests, &CrossTarget::WINDOWS);
    test::stream::run_tests(tests.args(["--package", &package, "--lib", "--bin", "collector"]), &[], totals)?;

    checks::run(workspace, &wine, &folder.join(CrossTarget::WINDOWS.triple).join("debug"), totals)
}
