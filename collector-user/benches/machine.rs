//! The collector on a machine that compiles this workspace: compilers, linkers, many short processes. As root, on an
//! otherwise quiet machine: `cargo xtask bench machine`, or `cargo xtask bench machine -- minute --seconds 10`.
//! Prints Markdown tables, and fails where the account of samples does not balance.

#[path = "machine/builds.rs"]
mod builds;
#[path = "common/collector.rs"]
mod collector;
#[path = "machine/converting.rs"]
mod converting;
#[path = "common/cpu.rs"]
mod cpu;
#[path = "machine/hottest.rs"]
mod hottest;
#[path = "common/spread.rs"]
mod spread;

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, ValueEnum};
use rustix::process::{Pid, Signal, kill_process};

use builds::{Builds, Took};
use collector::{Figures, Recording};
use hottest::Hottest;
use spread::Spread;

#[derive(Parser)]
struct Arguments {
    /// What is measured; without, all of it
    parts: Vec<Part>,
    /// Length of the recording
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Builds with the collector, and as many without
    #[arg(long, default_value_t = 8)]
    pairs: usize,
    /// Which `cargo bench` says to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

/// Samples per second and CPU.
const FREQUENCY: u32 = 997;

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    /// A recording while the workspace is built, with perf beside it
    Minute,
    /// How much longer a build takes
    Slowdown,
    /// How long it takes to fold a perf.data of builds, which is recorded for a sixth of --seconds, with perf script beside it
    Convert,
}

fn main() -> Result<()> {
    let Arguments { parts, seconds, pairs, .. } = Arguments::parse();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    for part in if parts.is_empty() { Part::value_variants() } else { &parts } {
        match part {
            Part::Minute => minute(folder.path(), seconds)?,
            Part::Slowdown => slowdown(folder.path(), pairs)?,
            Part::Convert => converting::measure(folder.path(), (seconds / 6).max(1), FREQUENCY)?,
        }
    }
    Ok(())
}

/// What was recorded of the builds, what that cost, and what perf saw of the same time.
fn minute(folder: &Path, seconds: u32) -> Result<()> {
    let perf_data = folder.join("perf.data");
    let mut builds = Builds::start(folder)?;
    let ours = Recording::start(folder, FREQUENCY, seconds, &["out.folded", "out.pb.gz"])?;
    let perf = perf_record(&perf_data, FREQUENCY, seconds)?;
    let figures = ours.figures()?;
    let perf = perf.wait_with_output()?;
    ensure!(perf.status.success(), "perf record: {}", String::from_utf8_lossy(&perf.stderr));
    builds.still_run()?;
    drop(builds);

    let ours = Hottest::of_folded(&folder.join("out.folded"))?;
    let perf = Hottest::of_perf(&perf_data)?;
    ensure!(perf.samples() > 0, "perf recorded nothing to compare with");
    println!("\n| {seconds} s, {FREQUENCY} Hz, whole machine, while it compiles | |\n|---|---|");
    figures.print_rows()?;
    println!("| kernel time per sample, us | {:.2} |", figures.kernel_us_per_sample()?);
    println!("| stack copied per sample, bytes | {:.0} |", figures.bytes_per_sample()?);
    println!("| CPU of the collector, with names and two outputs, s | {:.2} |", figures.cpu_us()? / 1e6);
    println!("| samples of perf, without idle | {} |", perf.samples());
    hottest::compare(&perf, &ours);
    check_account(&figures, &ours)
}

/// Perf, of the whole machine, beside us. With build ids of its own: a kernel that writes them for one reader marks the
/// records of the others, too, as if they had some, and perf 6.1 ends there.
fn perf_record(data: &Path, frequency: u32, seconds: u32) -> Result<Child> {
    let mut perf = Command::new("perf");
    perf.args([
        "record",
        "-q",
        "--buildid-mmap",
        "-e",
        "cpu-clock",
        "-a",
        "-F",
        &frequency.to_string(),
        "-o",
    ]);
    perf.arg(data).args(["sleep", &seconds.to_string()]);
    perf.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().context("perf can't be started")
}

/// Every sample has a fate, and what is in the output is what was delivered.
fn check_account(figures: &Figures, written: &Hottest) -> Result<()> {
    let count = |place: &str| figures.count(place);
    let (produced, delivered) = (count("/samples/produced")?, count("/samples/delivered")?);
    let lost: u64 = figures.counts("lost")?.iter().map(|(_, count)| count).sum();
    ensure!(produced == delivered + lost, "{produced} produced, {delivered} delivered, {lost} lost");
    let unaccounted = count("/lost/unaccounted")?;
    ensure!(unaccounted == 0, "the kernel ran the program {unaccounted} times more than the program counts");
    ensure!(written.samples() == delivered, "{delivered} delivered, {} in the output", written.samples());
    Ok(())
}

/// How much longer a build takes with the collector at 99 Hz, over interleaved pairs.
fn slowdown(folder: &Path, pairs: usize) -> Result<()> {
    // The first reads sources and compiler from the disk.
    builds::one(folder)?;
    let (mut plain, mut wall, mut cpu, mut own) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        let (without, (with, figures)) = if pair % 2 == 0 {
            let without = builds::one(folder)?;
            (without, recorded_build(folder)?)
        } else {
            let with = recorded_build(folder)?;
            (builds::one(folder)?, with)
        };
        plain.push(without.wall_us / 1e6);
        wall.push(100.0 * with.wall_us / without.wall_us);
        cpu.push(100.0 * with.cpu_us / without.cpu_us);
        own.push(100.0 * (figures.cpu_us()? + figures.kernel_us()?) / with.cpu_us);
    }
    println!(
        "\n| a build with the collector at 99 Hz, {pairs} interleaved pairs | median (range) |\n|---|---|"
    );
    println!("| without, s | {:.1} |", Spread::of(plain));
    println!("| its CPU time, in percent of without | {}, {} |", mean(&cpu), Spread::of(cpu));
    println!("| its time, in percent of without | {}, {} |", mean(&wall), Spread::of(wall));
    println!(
        "| CPU time of the collector and in its BPF program, in percent of the build's | {} |",
        Spread::of(own)
    );
    Ok(())
}

/// The mean and its standard error: a virtual machine runs the same build faster and slower by several percent.
fn mean(measured: &[f64]) -> String {
    let n = measured.len() as f64;
    let mean = measured.iter().sum::<f64>() / n;
    let variance = measured.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (n - 1.0);
    format!("mean {mean:.2} \u{b1} {:.2}", (variance / n).sqrt())
}

/// A build that is recorded from its start, that of the collector counted in, to its end.
fn recorded_build(folder: &Path) -> Result<(Took, Figures)> {
    // Longer than any build, should nobody be left to end it.
    let recording = Recording::start(folder, 99, 600, &["out.pb.gz"])?;
    let took = builds::one(folder);
    kill_process(Pid::from_child(&recording.child), Signal::INT)?;
    let figures = recording.figures()?;
    Ok((took?, figures))
}
