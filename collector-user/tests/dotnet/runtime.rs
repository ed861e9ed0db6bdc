//! A runtime with the known program, and what is run of it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The versions that there are.
pub(crate) const VERSIONS: [&str; 3] = ["3.1", "9", "10"];

/// What the runtime is to write of itself.
const CONFIG: &str = "Microsoft-DotNETCore-SampleProfiler:0:5,Microsoft-Windows-DotNETRuntime:8:4,\
    Microsoft-Windows-DotNETRuntimeRundown:58:5";

/// A runtime.
pub(crate) struct Runtime {
    pub(crate) folder: PathBuf,
    /// What its variables begin with.
    prefix: &'static str,
}

impl Runtime {
    pub(crate) fn of(version: &str) -> Self {
        let Some(all) = env::var_os("COLLECTOR_DOTNET") else {
            panic!("COLLECTOR_DOTNET does not say where runtimes are: run `cargo xtask test --all`")
        };
        let prefix = if version == "3.1" { "COMPlus" } else { "DOTNET" };
        Self { folder: Path::new(&all).join(version), prefix }
    }

    fn program(&self) -> Vec<PathBuf> {
        let at = |name: &str| self.folder.join(name);
        if at("dotnet").exists() { vec![at("dotnet"), at("azmcp.dll")] } else { vec![at("azmcp")] }
    }

    /// Sets variables of the runtime.
    fn set(&self, command: &mut Command, variables: &[(&str, &str)]) {
        command.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
        command.envs(variables.iter().map(|(name, value)| (format!("{}_{name}", self.prefix), value)));
    }

    /// Runs the program, of which the runtime writes a capture into a folder.
    pub(crate) fn capture(&self, folder: &Path) -> PathBuf {
        let program = self.program();
        let mut command = Command::new(&program[0]);
        self.set(&mut command, &[("EnableEventPipe", "1"), ("EventPipeConfig", CONFIG)]);
        succeed(command.args(&program[1..]).current_dir(folder));
        let captures = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        captures.into_iter().find(|path| path.extension() == Some(OsStr::new("nettrace"))).unwrap()
    }

    /// Records the program with variables of the runtime, and others of ours.
    pub(crate) fn record(&self, output: &Path, of_runtime: &[(&str, &str)], ours: &[(&str, &Path)]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_collector"));
        self.set(&mut command, of_runtime);
        command.envs(ours.iter().copied()).current_dir(output.parent().unwrap());
        command.args(["run", "-o"]).arg(output).arg("--").args(self.program());
        succeed(&mut command);
        remove_maps();
    }
}

/// Runs our program with further variables.
pub(crate) fn collector(arguments: &[&dyn AsRef<OsStr>], variables: &[(&str, &Path)]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_collector"));
    succeed(command.args(arguments).envs(variables.iter().copied()));
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{told}", output.status);
}

/// Removes what the runtime has left in `/tmp`: maps that have the program's methods.
fn remove_maps() {
    for entry in fs::read_dir("/tmp").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let is_map =
            ["perf-", "perfinfo-"].iter().any(|begin| name.starts_with(begin)) && name.ends_with(".map");
        let text = if is_map { fs::read_to_string(entry.path()).unwrap_or_default() } else { String::new() };
        if text.contains("Known.Hot::Spin") || text.contains("azmcp.dll") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// How many samples of folded stacks are in a function, which is told with its callers.
pub(crate) fn samples(folded: &str, end: &str) -> u64 {
    let lines = folded.lines().filter_map(|line| line.rsplit_once(' '));
    lines.filter(|(stack, _)| stack.contains(end)).map(|(_, count)| count.parse::<u64>().unwrap()).sum()
}
