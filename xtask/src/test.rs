//! `cargo xtask test`: every check there is, in one command, the one that CI calls.
//!
//! In: the checkout and the machine. Out: a heading per step, what the step printed, and at the end a line
//! `N passed, N failed, N skipped` over all test runners. The first step that fails ends the run, and the last
//! line names it.
//!
//! Tests that need root and BPF run for real where the machine allows. One that can't writes a line
//! `SKIPPED <test>: <reason>` to stderr, or `SKIPPED: <reason>` among what the runner keeps for it; those lines are counted and repeated
//! at the end. Where the machine does allow it, and on CI, a skip is a failure, which `COLLECTOR_LIVE=require` tells such tests. So are
//! the lines `NOT ON THIS KERNEL <test>: <reason>` of tests of what the kernel was built without, and `NOT BESIDE THE CHECKOUT: <file>` of
//! those of recordings that others made and that are in no repository of ours, which are no failure.

pub(crate) mod stream;
mod totals;

use std::env;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use crate::build_ebpf::{self, Arch};
use crate::command;
use crate::dotnet;
use crate::package;
use crate::setup::{self, Verb};
use crate::tidy;
use crate::toolchain::{self, CrossTarget, CrossToolchain};
use crate::windows;
use crate::workspace::Workspace;
pub(crate) use totals::Totals;

/// A step's heading, and what it does.
type Step = (&'static str, fn(&Workspace, &mut Totals) -> Result<()>);

const STEPS: [Step; 11] = [
    ("set-up", |workspace, _| setup::setup(workspace, Verb::Test)),
    ("format", |workspace, _| format(workspace)),
    ("tidy", |workspace, _| tidy::tidy(workspace)),
    ("eBPF programs", |workspace, _| for_each_arch(workspace, build_ebpf::build_ebpf)),
    ("eBPF lints", |workspace, _| for_each_arch(workspace, build_ebpf::lint)),
    ("lints", |workspace, _| clippy(workspace)),
    ("unit, integration and live tests", cargo_test),
    ("browser tests", browser),
    ("docs", |workspace, _| docs(workspace)),
    ("Windows", |workspace, totals| elsewhere(workspace, totals, windows::windows)),
    ("the unwinder's tests on aarch64", |workspace, totals| elsewhere(workspace, totals, aarch64)),
];

/// What takes longer than it tells on every change.
const SLOW_STEPS: [Step; 6] = [
    ("property tests with other values", other_values),
    (".NET's runtimes", |workspace, totals| dotnet::test(workspace, totals, live_is_required()?)),
    ("licences, bans, sources and advisories", |workspace, _| deny(workspace)),
    ("benches compile", |workspace, _| benches_compile(workspace)),
    ("fuzz targets compile", |workspace, _| fuzz_targets_compile(workspace)),
    ("packages", |workspace, _| package::package(workspace)),
];

/// Runs the steps; `all` adds the slow ones.
pub(crate) fn test(workspace: &Workspace, all: bool) -> Result<()> {
    let mut steps = STEPS.to_vec();
    if all {
        steps.extend(SLOW_STEPS);
    }
    let mut totals = Totals::default();
    let outcome = run(workspace, &steps, &mut totals);
    println!();
    for skipped in totals.skips().iter().chain(totals.absent()) {
        println!("{skipped}");
    }
    if totals.any() {
        println!("{totals}");
    }
    outcome
}

fn run(workspace: &Workspace, steps: &[Step], totals: &mut Totals) -> Result<()> {
    let start = Instant::now();
    for (index, (heading, step)) in steps.iter().enumerate() {
        let seconds = start.elapsed().as_secs();
        println!("\n==> {}/{} {heading} (after {seconds} s)", index + 1, steps.len());
        step(workspace, totals).with_context(|| format!("step `{heading}` failed"))?;
    }
    if live_is_required()? && !totals.skips().is_empty() {
        bail!("tests were skipped, listed above, where every one must run");
    }
    Ok(())
}

fn format(workspace: &Workspace) -> Result<()> {
    command::run(toolchain::own_cargo(workspace).args(["fmt", "--all", "--check"]))?;
    for manifest in ["collector-ebpf/Cargo.toml", "fuzz/Cargo.toml"] {
        let mut cargo = toolchain::own_cargo(workspace);
        command::run(cargo.args(["fmt", "--all", "--check", "--manifest-path", manifest]))?;
    }
    Ok(())
}

fn for_each_arch(workspace: &Workspace, act: fn(&Workspace, Arch) -> Result<()>) -> Result<()> {
    Arch::ALL.into_iter().try_for_each(|arch| act(workspace, arch))
}

fn clippy(workspace: &Workspace) -> Result<()> {
    let mut cargo = toolchain::own_cargo(workspace);
    command::run(cargo.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    // Without eBPF there are the commands on files.
    let package = workspace.package("collector-user")?;
    let mut bare = toolchain::own_cargo(workspace);
    bare.args(["clippy", "--package", &package, "--no-default-features", "--", "-D", "warnings"]);
    command::run(&mut bare)
}

fn cargo_test(workspace: &Workspace, totals: &mut Totals) -> Result<()> {
    let mut cargo = toolchain::own_cargo(workspace);
    cargo.args(["test", "--workspace", "--no-fail-fast"]);
    if live_is_required()? {
        cargo.env("COLLECTOR_LIVE", "require");
    }
    stream::run_tests(&mut cargo, &[], totals)
}

/// All but the live tests, with values of property tests that no other run had, and what is too much for every change.
fn other_values(workspace: &Workspace, totals: &mut Totals) -> Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let seed = now.as_secs().to_string();
    println!("PROPTEST_RNG_SEED={seed}");
    let recorder = workspace.package("collector-user")?;
    let of_files = ["--package", &recorder, "--lib", "--test", "etw", "--test", "fuzz"];
    for chosen in [&["--workspace", "--exclude", &recorder][..], &of_files] {
        let mut cargo = toolchain::own_cargo(workspace);
        cargo.args(["test", "--no-fail-fast"]).args(chosen);
        cargo.env("PROPTEST_RNG_SEED", &seed).env("COLLECTOR_TEST_ALL", "1");
        stream::run_tests(&mut cargo, &[], totals)?;
    }
    Ok(())
}

/// A step under Wine or on an emulated processor, where there are not all of this machine's tools: a test that is skipped there is told of, and no
/// failure.
fn elsewhere(
    workspace: &Workspace,
    totals: &mut Totals,
    step: fn(&Workspace, &mut Totals) -> Result<()>,
) -> Result<()> {
    let mut own = Totals::default();
    let outcome = step(workspace, &mut own);
    totals.add_of_elsewhere(own);
    outcome
}

/// Whether live tests must run: on CI, and wherever they can.
fn live_is_required() -> Result<bool> {
    let on_ci = env::var("CI").is_ok_and(|value| value == "true");
    Ok(on_ci || (command::is_root()? && Path::new("/sys/kernel/btf/vmlinux").exists()))
}

/// What of the unwinder's tests an emulated processor does not run: parts of their names, and why not. Nearly all take more than
/// 20 s there, over code that is the same for all architectures.
const NOT_EMULATED: [(&str, &str); 14] = [
    ("pe::tests::", "steps through Windows' programs in emulators of their own"),
    ("x86::", "x86 code and stacks, of which the machine's own run has more"),
    ("lengths_are_those_that_objdump_tells", "every instruction of files for x86-64"),
    ("openssl_with_its_assembly_agrees", "every address of a large file for x86-64"),
    ("the_rust_compiler_agrees", "the same of a larger one"),
    ("libstdcxx_agrees", "the same"),
    ("made_sections_agree", "thousands of made-up sections"),
    ("fuzzing::noise", "random bytes for each fuzz target"),
    ("hostile::cost::", "bounds of time"),
    ("hostile::pe::", "every byte of a Windows image left out or changed"),
    ("hostile::every_truncation", "the same of a file for x86-64; `hostile::aarch64` has its own"),
    ("hostile::flipped_bytes", "the same"),
    ("hostile::made_up", "the same of registers and stacks"),
    ("only_relocatable_objects_are_placed", "takes its own file for one for x86-64"),
];
/// Of saved samples those of the repository are walked: `target/fixtures` is large.
const SAVED_HERE: [&str; 3] = ["samples_of_this_machine", "recursions_of_compiled_code", "remembered::"];

/// The unwinder compiled for aarch64, on an emulated processor.
fn aarch64(workspace: &Workspace, totals: &mut Totals) -> Result<()> {
    const TARGET: CrossTarget = CrossTarget::AARCH64;
    let toolchain = CrossToolchain::detect(TARGET).context("no toolchain compiles for aarch64 here")?;
    let mut cargo = toolchain.cargo("test", "std,panic_unwind,test");
    cargo.args(["--tests", "--package", &workspace.package("unwinder")?]);
    cargo.arg("--target-dir").arg(workspace.join("target/aarch64")).current_dir(workspace.top());
    cargo.env(TARGET.variable("RUNNER"), "qemu-aarch64-static -cpu max -L /usr/aarch64-linux-gnu");
    // QEMU's user mode can stand still for ever where a program with several threads forks (QEMU's issue 285): the locks of GLib's
    // allocator of slices are not the fork's. Tests that start an assembler did. GLib's own switch does without these.
    cargo.env("G_SLICE", "always-malloc");
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "false");
    let left_out = NOT_EMULATED.iter().map(|(name, _)| name).chain(&SAVED_HERE);
    let arguments: Vec<&str> = left_out.flat_map(|name| ["--skip", name]).collect();
    stream::run_tests(&mut cargo, &arguments, totals)
}

/// The pictures, in a real browser. The page's own sources need no Node; its tests do.
fn browser(workspace: &Workspace, totals: &mut Totals) -> Result<()> {
    let script = workspace.join("export/tests/browser/run.mjs");
    if !script.exists() {
        println!("there are none yet: {} is absent", script.display());
        return Ok(());
    }
    let modules = workspace.node().join("node_modules");
    let chromium = command::find_program("chromium").context("chromium is not on PATH")?;
    let mut node = toolchain::undisturbed("node");
    node.arg(script).current_dir(workspace.top());
    node.env("NODE_PATH", &modules)
        .env("COLLECTOR_NODE_MODULES", &modules)
        .env("COLLECTOR_CHROMIUM", chromium);
    stream::run(&mut node, totals)
}

fn docs(workspace: &Workspace) -> Result<()> {
    let mut cargo = toolchain::own_cargo(workspace);
    command::run(cargo.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

fn benches_compile(workspace: &Workspace) -> Result<()> {
    command::run(toolchain::own_cargo(workspace).args(["bench", "--workspace", "--no-run"]))
}

/// As they are locked: their workspace is one of its own, which a new dependency of a crate is to be added to.
fn fuzz_targets_compile(workspace: &Workspace) -> Result<()> {
    let mut cargo = toolchain::own_cargo(workspace);
    cargo.args(["clippy", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--target-dir"]);
    command::run(cargo.arg(workspace.target().join("fuzz")).args(["--", "-D", "warnings"]))
}

/// By deny.toml. Advisories need a database from outside; where it can't be had, that is said.
fn deny(workspace: &Workspace) -> Result<()> {
    let program = setup::cargo_deny(workspace)?;
    let deny = |args: &[&str]| {
        let mut deny = toolchain::undisturbed(&program);
        command::run(deny.current_dir(workspace.top()).args(["--workspace", "--all-features"]).args(args))
    };
    deny(&["check", "bans", "licenses", "sources"])?;
    deny(&["--manifest-path", "collector-ebpf/Cargo.toml", "check", "bans", "licenses", "sources"])?;
    match deny(&["fetch", "db"]) {
        Ok(()) => deny(&["check", "advisories"]),
        Err(error) => {
            println!("advisories were not checked, for the database can't be had from here: {error:#}");
            Ok(())
        }
    }
}
