//! .NET's runtimes, which the slow tests record.
//!
//! Out: in `target/dotnet/packages` `python/dotnetcore2` with 3.1, and `9` and `10`, each with a program that brings its runtime: all
//! files of 9.0.1 beside it, or 10.0.9 and itself in one.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::workspace::Workspace;

/// From the index that pip is set to.
const PYTHON: &str = "dotnetcore2==3.1.23";

/// From the npm registry: the runtime's version, and that of the package.
const NPM: [(&str, &str); 2] = [("9", "0.0.21"), ("10", "2.0.5")];
const NPM_PACKAGE: &str = "@azure/mcp-linux-x64";

/// Installs those that are missing. No package's set-up script runs.
pub(super) fn install(workspace: &Workspace) -> Result<()> {
    let folder = packages(workspace);
    let installed = folder.join("installed.txt");
    let wanted =
        format!("{PYTHON}\n{}", NPM.map(|(_, version)| format!("{NPM_PACKAGE}@{version}\n")).concat());
    if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    let python = framework(workspace);
    if python.exists() {
        fs::remove_dir_all(&python).with_context(|| format!("{} can't be removed", python.display()))?;
    }
    let mut pip = Command::new(workspace.python().join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--only-binary", ":all:", "--target"]).arg(&python).arg(PYTHON);
    command::run(&mut pip).context("the runtime of .NET 3.1 could not be installed")?;
    for (runtime, version) in NPM {
        let folder = folder.join(runtime);
        fs::create_dir_all(&folder).with_context(|| format!("{} can't be made", folder.display()))?;
        let manifest = folder.join("package.json");
        let text =
            format!("{{ \"private\": true, \"dependencies\": {{ \"{NPM_PACKAGE}\": \"{version}\" }} }}\n");
        fs::write(&manifest, text).with_context(|| format!("{} can't be written", manifest.display()))?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock"]);
        command::run(npm.current_dir(&folder))
            .with_context(|| format!("the runtime of .NET {runtime} could not be installed"))?;
    }
    fs::write(&installed, wanted).with_context(|| format!("{} can't be written", installed.display()))
}

fn packages(workspace: &Workspace) -> PathBuf {
    workspace.dotnet().join("packages")
}

/// The folder of the package with 3.1.
fn framework(workspace: &Workspace) -> PathBuf {
    packages(workspace).join("python")
}

/// The folder with `dotnet` 3.1.
pub(crate) fn of_3_1(workspace: &Workspace) -> PathBuf {
    framework(workspace).join("dotnetcore2/bin")
}

/// The folder with the program that brings a newer runtime.
pub(crate) fn of_version(workspace: &Workspace, version: &str) -> PathBuf {
    packages(workspace).join(version).join("node_modules").join(NPM_PACKAGE).join("dist")
}
