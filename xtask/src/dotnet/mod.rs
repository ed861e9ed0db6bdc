//! The tests with .NET's runtimes.
//!
//! In: the packages that set-up brings. Out: `target/dotnet/programs`, by version a runtime with `export/tests/integration/dotnet/Known.cs`
//! for its program, and what the tests with them say.

mod bundle;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::setup::{self, dotnet};
use crate::test::{Totals, stream};
use crate::toolchain;
use crate::workspace::Workspace;

/// What the program's assembly is called: as the one that it takes the place of.
const ASSEMBLY: &str = "azmcp.dll";

/// The version of the framework that the program is compiled against.
const FRAMEWORK: &str = "3.1.23";

/// Runs the tests; those that record, too, where that is possible.
pub(crate) fn test(workspace: &Workspace, totals: &mut Totals, records: bool) -> Result<()> {
    if !cfg!(target_arch = "x86_64") {
        println!("none of them is for this processor");
        return Ok(());
    }
    setup::dotnet_runtimes(workspace)?;
    let programs = workspace.dotnet().join("programs");
    make(workspace, &programs).context("the programs for .NET's runtimes can't be made")?;
    let mut cargo = toolchain::own_cargo(workspace);
    cargo.args(["test", "--package", &workspace.package("collector-user")?, "--test", "dotnet"]);
    cargo.env("COLLECTOR_DOTNET", &programs);
    // Each has the processors for itself.
    let mut arguments = vec!["--test-threads=1"];
    if !records {
        println!("SKIPPED recordings of .NET's runtimes: they need root");
        arguments.push("captures");
    }
    stream::run_tests(&mut cargo, &arguments, totals)
}

fn make(workspace: &Workspace, programs: &Path) -> Result<()> {
    if programs.exists() {
        fs::remove_dir_all(programs)?;
    }
    fs::create_dir_all(programs)?;
    let first = programs.join("3.1");
    fs::create_dir(&first)?;
    let (runtime, assembly) = (dotnet::of_3_1(workspace), first.join(ASSEMBLY));
    compile(workspace, &runtime, &assembly)?;
    let config = format!(
        "{{ \"runtimeOptions\": {{ \"framework\": {{ \"name\": \"Microsoft.NETCore.App\", \"version\": \"{FRAMEWORK}\" }} }} }}\n"
    );
    fs::write(first.join("azmcp.runtimeconfig.json"), config)?;
    symlink(runtime.join("dotnet"), first.join("dotnet"))?;

    // The same files, but for the one.
    let second = programs.join("9");
    let mut copy = Command::new("cp");
    command::run(copy.args(["--recursive", "--link"]).arg(dotnet::of_version(workspace, "9")).arg(&second))?;
    fs::remove_file(second.join(ASSEMBLY))?;
    fs::copy(&assembly, second.join(ASSEMBLY))?;

    let third = programs.join("10");
    fs::create_dir(&third)?;
    let (whole, made) = (dotnet::of_version(workspace, "10").join("azmcp"), third.join("azmcp"));
    fs::copy(&whole, &made)?;
    let mut bytes = fs::read(&whole)?;
    bundle::replace(&mut bytes, ASSEMBLY, &fs::read(&assembly)?)
        .with_context(|| format!("{} has no room for the program", whole.display()))?;
    Ok(fs::write(&made, bytes)?)
}

fn compile(workspace: &Workspace, runtime: &Path, assembly: &Path) -> Result<()> {
    let framework = runtime.join("shared/Microsoft.NETCore.App").join(FRAMEWORK);
    let mut compiler = Command::new("mcs");
    compiler.args(["-nostdlib", "-noconfig", "-optimize+", "-debug-"]);
    compiler.arg(format!("-r:{}", framework.join("System.Private.CoreLib.dll").display()));
    compiler.arg(format!("-out:{}", assembly.display()));
    command::run(compiler.arg(workspace.join("export/tests/integration/dotnet/Known.cs")))
}
