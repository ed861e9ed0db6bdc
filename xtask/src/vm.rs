//! `cargo xtask vm`: commands, and the live tests, on other kernels than this machine's.
//!
//! In: kernels, by default those that Debian builds; a command, by default the live tests. Out: what it prints, and exit code 1
//! where it fails on any of them. Each kernel is fetched from Debian's archive, or built of sources from there, once, and runs in an
//! emulated machine with this one's files.

mod archive;
mod build;
mod initramfs;
mod kernel;
mod machine;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
pub(crate) use archive::ARCHIVE_KEYS;
pub(crate) use kernel::Kernel;

use crate::build_ebpf::{self, Arch};
use crate::command;
use crate::setup::{self, Verb};
use crate::toolchain;
use crate::workspace::Workspace;

/// What is asked for.
pub(crate) struct Plan {
    /// All that Debian builds, if there is none.
    pub(crate) kernels: Vec<Kernel>,
    /// Part of the names of live tests.
    pub(crate) filter: Option<String>,
    /// Run in the place of the live tests.
    pub(crate) command: Vec<String>,
    /// For each kernel.
    pub(crate) limit: Duration,
}

/// Runs what is asked for on one kernel after the other.
pub(crate) fn vm(workspace: &Workspace, plan: &Plan) -> Result<()> {
    setup::setup(workspace, Verb::Vm)?;
    let line = if plan.command.is_empty() {
        live_tests(workspace, plan.filter.as_deref())?
    } else {
        plan.command.iter().map(|word| machine::quoted(word)).collect::<Vec<_>>().join(" ")
    };
    let kernels = if plan.kernels.is_empty() { &Kernel::MATRIX[..] } else { &plan.kernels };
    let mut failed = Vec::new();
    for kernel in kernels {
        eprintln!("==> Linux {kernel}");
        let folder = workspace.join("target/vm").join(kernel.to_string());
        let job = machine::Job { line: &line, limit: plan.limit, lacks: kernel.lacks() };
        let package = match kernel {
            Kernel::UserEvents => build::build(*kernel, &folder),
            _ => archive::fetch(*kernel, &folder),
        };
        let outcome = package.and_then(|package| machine::run(workspace, &folder, &package, &job));
        if let Err(error) = outcome {
            eprintln!("Linux {kernel}: {error:#}");
            failed.push(kernel.to_string());
        }
    }
    if !failed.is_empty() {
        bail!("failed on Linux {}", failed.join(", "));
    }
    Ok(())
}

/// Builds the live tests. Gives the command that runs them, one after the other.
fn live_tests(workspace: &Workspace, filter: Option<&str>) -> Result<String> {
    build_ebpf::build_ebpf(workspace, Arch::X86_64)?;
    let package = workspace.package("collector-user")?;
    command::run(toolchain::own_cargo(workspace).args(["build", "--package", &package, "--examples"]))?;
    let tests = executable(toolchain::own_cargo(workspace).args([
        "test",
        "--package",
        &package,
        "--test",
        "live",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ]))?;
    has_any(&tests, filter)?;
    let mut words = vec!["COLLECTOR_LIVE=require".to_owned(), machine::quoted(&tests.display().to_string())];
    words.push("--test-threads=1".to_owned());
    words.extend(filter.map(machine::quoted));
    Ok(words.join(" "))
}

/// That the file has tests of these names: a run of none would succeed.
fn has_any(tests: &Path, filter: Option<&str>) -> Result<()> {
    let listed = command::output(Command::new(tests).args(["--list", "--format=terse"]).args(filter))?;
    ensure!(
        listed.lines().any(|line| line.ends_with(": test")),
        "no live test has {} in its name",
        filter.unwrap_or_default()
    );
    Ok(())
}

/// The tests that `cargo` says it built, by its messages: programs that they run are among these.
fn executable(cargo: &mut Command) -> Result<PathBuf> {
    const BEGIN: &str = "\"executable\":\"";
    let messages = command::output(cargo)?;
    let tests = messages.lines().filter(|line| line.contains("\"kind\":[\"test\"]"));
    let found = tests.rev().find_map(|line| line.split_once(BEGIN)?.1.split_once('"'));
    let (path, _) = found.context("cargo built no live tests")?;
    Ok(PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the tests that this is one of.
    #[test]
    fn a_name_that_no_test_has_is_told() {
        let tests = std::env::current_exe().unwrap();
        assert!(has_any(&tests, None).is_ok());
        assert!(has_any(&tests, Some("a_name_that_no_test")).is_ok());
        let error = has_any(&tests, Some("TYPO")).unwrap_err();
        assert_eq!(error.to_string(), "no live test has TYPO in its name");
    }
}
