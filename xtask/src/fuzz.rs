//! `cargo xtask fuzz`: runs the fuzz targets.
//!
//! In: a target of `fuzz/fuzz_targets`, or none for all, and for how long. Out: what libFuzzer prints, failure on the
//! first finding, whose input it names; the corpus in `target/fuzz/corpus` grows with each run. An input that was a
//! finding goes to the folder `regressions/<target>` beside the target's body, where `cargo test` runs it ever after.
//! What is in `seeds/<target>` there is where fuzzing begins, as are the seeds that are made here.

mod seeds;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::command;
use crate::setup::{self, Verb};
use crate::toolchain;
use crate::workspace::{CRATES, Workspace};

/// Seconds of a smoke run.
pub(crate) const SMOKE: u64 = 60;

/// Seconds after which one input counts as a hang. The slowest seed takes milliseconds.
const TIMEOUT: u64 = 10;

/// MiB that the whole process may hold, corpus and coverage included.
const MEMORY: u64 = 1024;

/// Longest input: a small ELF file, or some hundred functions' call frame information.
const LONGEST: u64 = 16 << 10;

/// Fuzzes the target called `only`, or each in turn, for this many seconds.
pub(crate) fn fuzz(workspace: &Workspace, only: Option<&str>, seconds: u64) -> Result<()> {
    setup::setup(workspace, Verb::Fuzz)?;
    let cargo_fuzz = setup::cargo_fuzz(workspace)?;
    let mut targets = names(workspace)?;
    targets.retain(|target| only.is_none_or(|only| only == target));
    anyhow::ensure!(!targets.is_empty(), "there is no fuzz target called {}", only.unwrap_or("anything"));
    let seeds = seeds::make(workspace)?;
    for target in targets {
        let corpus = workspace.target().join("fuzz/corpus").join(&target);
        let artifacts = workspace.target().join("fuzz/artifacts").join(&target);
        for folder in [&corpus, &artifacts] {
            fs::create_dir_all(folder).with_context(|| format!("{} can't be made", folder.display()))?;
        }
        let mut run = toolchain::undisturbed(&cargo_fuzz);
        // The instrumentation needs options that are not stable. The code under test has no `unsafe` for a sanitizer
        // to watch; without one, more inputs are tried.
        run.env("RUSTC_BOOTSTRAP", "1").current_dir(workspace.top());
        run.args(["run", "--sanitizer", "none", "--fuzz-dir", "fuzz", "--target-dir"]);
        run.arg(workspace.target().join("fuzz")).arg(&target).arg(&corpus);
        let body = folder_of_body(workspace, &target)?;
        let kept = ["regressions", "seeds"].map(|kind| body.join(kind).join(&target));
        run.args(kept.into_iter().chain([seeds.join(&target)]).filter(|folder| folder.is_dir()));
        run.arg("--").arg(format!("-artifact_prefix={}/", artifacts.display()));
        run.args([
            format!("-max_total_time={seconds}"),
            format!("-timeout={TIMEOUT}"),
            format!("-rss_limit_mb={MEMORY}"),
            format!("-max_len={LONGEST}"),
            "-print_final_stats=1".to_owned(),
        ]);
        command::run(&mut run).with_context(|| {
            format!("fuzz target {target} has a finding; its input is in {}", artifacts.display())
        })?;
    }
    Ok(())
}

/// The targets: the files of `fuzz/fuzz_targets`.
fn names(workspace: &Workspace) -> Result<Vec<String>> {
    let folder = workspace.join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in folder.read_dir().with_context(|| format!("{} can't be read", folder.display()))? {
        let path: PathBuf = entry?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// The folder with the body of a target, and with the inputs that are kept for it: `tests/fuzzing` of the one crate that
/// has a file of the target's name there.
fn folder_of_body(workspace: &Workspace, target: &str) -> Result<PathBuf> {
    let mut folders: Vec<PathBuf> =
        CRATES.iter().map(|name| workspace.join(name).join("tests/fuzzing")).collect();
    folders.retain(|folder| folder.join(target).with_extension("rs").is_file());
    let count = folders.len();
    let only = folders.pop().filter(|_| count == 1);
    only.with_context(|| format!("{count} crates have a tests/fuzzing/{target}.rs, and it should be one"))
}
