//! The Python packages that tests read our files with.
//!
//! Out: `target/python`, a virtual environment of the system's Python: `perfetto` and `opentelemetry-proto` have the messages of the
//! formats that are called so, `protobuf` decodes them, and `grpcio` receives them; `pyarrow`, `duckdb` and `datafusion` read Parquet.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::Need;
use crate::command;
use crate::fixtures::PYTHON;
use crate::workspace::Workspace;

/// Names and versions.
const PACKAGES: [(&str, &str); 7] = [
    ("perfetto", "0.59.1"),
    ("grpcio", "1.85.1"),
    ("opentelemetry-proto", "1.45.2"),
    ("protobuf", "7.36.2"),
    ("pyarrow", "26.0.1"),
    ("duckdb", "2.0.0"),
    ("datafusion", "55.0.0"),
];

/// Whether a verb with these needs lacks the packages.
pub(super) fn is_missing(workspace: &Workspace, needs: &[Need]) -> bool {
    needs.contains(&Need::Readers)
        && fs::read_to_string(installed(workspace)).unwrap_or_default() != requirements()
}

/// Makes the environment anew and installs them from the index that pip is set to. No package's set-up script runs.
pub(super) fn install(workspace: &Workspace) -> Result<()> {
    let folder = workspace.python();
    command::run(Command::new(PYTHON).args(["-m", "venv", "--clear"]).arg(&folder))
        .context("the environment of the Python packages could not be made")?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    pip.args(["--only-binary", ":all:"]).args(requirements().lines());
    command::run(&mut pip).context("the Python packages of the tests could not be installed")?;
    let installed = installed(workspace);
    fs::write(&installed, requirements()).with_context(|| format!("{} can't be written", installed.display()))
}

/// Says what is installed, once it is.
fn installed(workspace: &Workspace) -> PathBuf {
    workspace.python().join("installed.txt")
}

fn requirements() -> String {
    PACKAGES.map(|(package, version)| format!("{package}=={version}\n")).concat()
}
