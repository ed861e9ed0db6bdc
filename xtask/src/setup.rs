//! `cargo xtask setup`: installs what is missing for a verb.
//!
//! In: a verb. Out: a machine on which it works, or an error with the exact commands that a person must run. When
//! nothing is missing, this is a handful of file look-ups and starts no package manager.

mod bpf_linker;
mod by_hand;
mod cargo_tool;
mod components;
pub(crate) mod dotnet;
mod node;
mod packages;
mod python;
mod requirement;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::toolchain::{BpfToolchain, CrossTarget, CrossToolchain};
use crate::windows;
use crate::workspace::Workspace;
use cargo_tool::CargoTool;
use requirement::Requirement;

const CARGO_DENY: CargoTool = CargoTool { name: "cargo-deny", version: "0.20.2", args: &[], env: &[] };
const CARGO_FUZZ: CargoTool = CargoTool { name: "cargo-fuzz", version: "0.13.1", args: &[], env: &[] };
const SAMPLY: CargoTool = CargoTool { name: "samply", version: "0.13.1", args: &[], env: &[] };

/// A verb of `cargo xtask`, as far as it needs something on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verb {
    /// Whatever any verb needs
    Any,
    BuildEbpf,
    Install,
    Run,
    Test,
    Package,
    Windows,
    Tidy,
    Bench,
    Fixtures,
    Vm,
    Fuzz,
}

/// A group of requirements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// Compile eBPF programs.
    Bpf,
    /// Cross-compile for Windows.
    Windows,
    /// Run what is for Windows.
    Wine,
    /// Run the unwinder's tests as programs for aarch64.
    Aarch64,
    /// Readers and workloads that tests use.
    Tests,
    /// A browser and what drives it.
    Browser,
    /// Readers of our files that are written in Python.
    Readers,
    /// Clippy and rustfmt.
    Lints,
    /// A debugger, and the languages of the programs that it samples.
    Fixtures,
    /// Other kernels, and a machine for them.
    Vm,
    /// A compiler of programs for .NET, which `test --all` alone needs.
    DotNet,
    /// What kernels are built with, which one of `vm` alone needs.
    KernelBuild,
}

/// All of them, those of [`Verb::Test`] first.
const ALL: [Need; 10] = [
    Need::Bpf,
    Need::Windows,
    Need::Wine,
    Need::Aarch64,
    Need::Tests,
    Need::Browser,
    Need::Readers,
    Need::Lints,
    Need::Fixtures,
    Need::Vm,
];

/// How many are needed by tests.
const OF_TESTS: usize = 8;

impl Verb {
    fn needs(self) -> &'static [Need] {
        match self {
            Self::BuildEbpf | Self::Install | Self::Run | Self::Package => &[Need::Bpf],
            Self::Windows => &[Need::Windows, Need::Wine, Need::Lints],
            Self::Test => ALL.split_at(OF_TESTS).0,
            Self::Any => &ALL,
            Self::Bench => &[Need::Bpf, Need::Aarch64, Need::Tests],
            Self::Fixtures => &[Need::Tests, Need::Fixtures],
            Self::Vm => &[Need::Bpf, Need::Tests, Need::Vm],
            Self::Fuzz => &[Need::Tests],
            Self::Tidy => &[],
        }
    }
}

/// Installs what `verb` needs and this machine lacks.
pub(crate) fn setup(workspace: &Workspace, verb: Verb) -> Result<()> {
    let needs = verb.needs();
    let missing = missing(workspace, verb);
    let lacks_linker = bpf_linker::is_missing(workspace, needs);
    install(&missing, lacks_linker.then(|| bpf_linker::BPF_LINKER.by_hand(workspace)))?;
    if lacks_linker {
        bpf_linker::BPF_LINKER.install(workspace)?;
    }
    if components::are_missing(needs) {
        components::install()?;
    }
    if node::is_missing(workspace, needs) {
        node::install(workspace)?;
    }
    if python::is_missing(workspace, needs) {
        python::install(workspace)?;
    }
    Ok(())
}

/// Installs Debian's packages, or says how it is done by hand, with what else is to be done.
fn install(missing: &[Requirement], also: Option<String>) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|requirement| requirement.name).collect();
    eprintln!("missing on this machine: {}", names.join(", "));
    if !packages::can_install() {
        let commands = by_hand::commands(missing, by_hand::Manager::detect()).into_iter().chain(also);
        let commands: Vec<String> = commands.collect();
        bail!(
            "this system is not Debian 12, so nothing was installed; run:\n    {}",
            commands.join("\n    ")
        );
    }
    packages::install(missing)
}

/// Installs .NET's runtimes and a compiler for them.
pub(crate) fn dotnet_runtimes(workspace: &Workspace) -> Result<()> {
    install_for(Need::DotNet)?;
    dotnet::install(workspace)
}

/// Installs what kernels are built with.
pub(crate) fn kernel_build() -> Result<()> {
    install_for(Need::KernelBuild)
}

/// Installs what one need lacks that no verb has.
fn install_for(need: Need) -> Result<()> {
    let needed = requirement::of(need).into_iter();
    let missing: Vec<Requirement> = needed.filter(|requirement| !requirement.is_met()).collect();
    install(&missing, None)
}

/// Installs cargo-deny, which `test --all` alone needs.
pub(crate) fn cargo_deny(workspace: &Workspace) -> Result<PathBuf> {
    CARGO_DENY.ensure(workspace)
}

/// Installs cargo-fuzz, which instruments the fuzz targets.
pub(crate) fn cargo_fuzz(workspace: &Workspace) -> Result<PathBuf> {
    CARGO_FUZZ.ensure(workspace)
}

/// Installs samply, a peer that benches measure beside us.
pub(crate) fn samply(workspace: &Workspace) -> Result<PathBuf> {
    SAMPLY.ensure(workspace)
}

/// The requirements of `verb` that are not met.
fn missing(workspace: &Workspace, verb: Verb) -> Vec<Requirement> {
    let unmet = verb.needs().iter().filter(|need| !is_met_otherwise(workspace, **need));
    unmet.flat_map(|need| requirement::of(*need)).filter(|requirement| !requirement.is_met()).collect()
}

/// Whether the machine has what `need` is about, be it by Debian's packages or by rustup.
fn is_met_otherwise(workspace: &Workspace, need: Need) -> bool {
    match need {
        Need::Bpf => BpfToolchain::detect(workspace).is_some(),
        Need::Lints => matches!(BpfToolchain::detect(workspace), Some(BpfToolchain::Nightly { .. })),
        Need::Windows => CrossToolchain::detect(CrossTarget::WINDOWS).is_some(),
        Need::Wine => windows::wine_program().is_some(),
        Need::Aarch64
        | Need::Tests
        | Need::Browser
        | Need::Readers
        | Need::Fixtures
        | Need::Vm
        | Need::DotNet
        | Need::KernelBuild => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_up_without_a_verb_covers_what_every_verb_needs() {
        for verb in Verb::value_variants() {
            for need in verb.needs() {
                assert!(Verb::Any.needs().contains(need), "{verb:?} needs {need:?}");
            }
        }
    }
}
