//! The tasks of the checkout: `cargo xtask <verb>`.
//!
//! In: a verb and its options. Out: what the verb leaves below `target/`, and the exit code: 0 done, 1 failed,
//! 2 wrong usage. Each verb is one file and first sets up what it needs, so that any of them works on a fresh
//! machine.

mod bench;
mod build_ebpf;
mod command;
mod dotnet;
mod fixtures;
mod fuzz;
mod install;
mod package;
mod run;
mod setup;
mod test;
mod tidy;
mod toolchain;
mod vm;
mod windows;
mod workspace;

#[path = "../../collector-user/bpf_hash.rs"]
mod bpf_hash;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::build_ebpf::Arch;
use crate::setup::Verb;
use crate::test::Totals;
use crate::vm::Kernel;
use crate::workspace::Workspace;

/// Builds, tests and releases Collector.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what is missing on this machine (Debian 12), or print the commands that do
    Setup {
        /// Only what this verb needs; without it, what any verb needs
        #[arg(long = "for", value_name = "VERB")]
        verb: Option<Verb>,
    },
    /// Compile the eBPF programs to target/bpf
    BuildEbpf {
        /// Machine whose registers and stacks the programs read; by default this one
        #[arg(long)]
        arch: Option<Arch>,
    },
    /// Build the release binary and put it on root's PATH
    Install {
        /// Folder that gets bin/collector
        #[arg(long, value_name = "DIR", default_value = "/usr/local")]
        root: PathBuf,
    },
    /// Build, then `collector run` with elevated rights, for 10 s unless told otherwise
    Run {
        /// Arguments of `collector run`
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Every check there is: format, lints, tests, docs, the Windows build
    Test {
        /// Also the slow ones: licences and advisories, benches and fuzz targets compiled, packages
        #[arg(long)]
        all: bool,
    },
    /// Release tarball and publishable crates, in target/package
    Package,
    /// Cross-compile for x86_64-pc-windows-gnu, and try what can be tried under Wine
    Windows,
    /// Check the house rules that no compiler checks
    Tidy,
    /// Sample real programs under gdb, for the unwinder's replay test and bench, into target/fixtures
    Fixtures {
        /// Names of programs; all, if there is none
        names: Vec<String>,
        /// Also replace the part that is in the repository
        #[arg(long)]
        commit: bool,
    },
    /// Run the benches, all or those of one name
    Bench {
        /// Name of a bench target
        name: Option<String>,
        /// Arguments of the bench
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Run the live tests, or a command, on Debian's other kernels in an emulated machine that has this one's files
    Vm {
        /// Which; all that Debian builds, if there is none
        kernels: Vec<Kernel>,
        /// Only live tests with this in their names
        #[arg(long, value_name = "FILTER", conflicts_with = "command")]
        live: Option<String>,
        /// How long it may take on each kernel
        #[arg(long, value_name = "N", default_value_t = 90)]
        minutes: u64,
        /// A command to run as root instead, in the checkout
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Run the fuzz targets, all or one, each for ten minutes unless told otherwise
    Fuzz {
        /// Name of a target
        target: Option<String>,
        /// How long to run each
        #[arg(long, value_name = "N", default_value_t = 600)]
        seconds: u64,
        /// A minute each
        #[arg(long, conflicts_with = "seconds")]
        smoke: bool,
    },
}

fn main() -> ExitCode {
    match perform(Cli::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn perform(task: Task) -> anyhow::Result<()> {
    let workspace = Workspace::locate()?;
    match task {
        Task::Setup { verb } => setup::setup(&workspace, verb.unwrap_or(Verb::Any)),
        Task::BuildEbpf { arch } => build_ebpf::build_ebpf(&workspace, arch.unwrap_or(Arch::host()?)),
        Task::Install { root } => install::install(&workspace, &root),
        Task::Run { args } => run::run(&workspace, args),
        Task::Test { all } => test::test(&workspace, all),
        Task::Package => package::package(&workspace),
        Task::Windows => windows::windows(&workspace, &mut Totals::default()),
        Task::Tidy => tidy::tidy(&workspace),
        Task::Fixtures { names, commit } => fixtures::fixtures(&workspace, &names, commit),
        Task::Bench { name, args } => bench::bench(&workspace, name.as_deref(), &args),
        Task::Vm { kernels, live, minutes, command } => {
            let limit = Duration::from_secs(minutes.saturating_mul(60));
            vm::vm(&workspace, &vm::Plan { kernels, filter: live, command, limit })
        }
        Task::Fuzz { target, seconds, smoke } => {
            fuzz::fuzz(&workspace, target.as_deref(), if smoke { fuzz::SMOKE } else { seconds })
        }
    }
}
