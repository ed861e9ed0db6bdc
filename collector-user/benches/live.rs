//! What a recording costs on this machine, with the peers beside it in the same run. As root, on a quiet machine:
//! `cargo xtask bench live`, or parts of it by name: `cargo xtask bench live -- cost stacks`. Prints Markdown tables.
//!
//! Every figure of CPU time is of the whole process, user and system together; a slope is the difference between a
//! 12 s and a 4 s run, divided by the difference in samples.

#[path = "common/collector.rs"]
mod collector;
#[path = "common/cpu.rs"]
mod cpu;
#[path = "live/peers.rs"]
mod peers;
#[path = "common/spread.rs"]
mod spread;
#[path = "live/workload.rs"]
mod workload;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use collector::Recording;
use peers::{FREQUENCY, Recorder};
use spread::Spread;
use workload::{Busy, PROGRAMS, Workload};

/// Seconds of the recordings that a slope is taken from, and how often it is taken.
const SHORT: u32 = 4;
const LONG: u32 = 12;
const SLOPES: usize = 3;

/// Pairs of runs with and without the collector.
const PAIRS: usize = 5;

#[derive(Parser)]
struct Arguments {
    /// What is measured; without, all of it
    parts: Vec<Part>,
    /// Which `cargo bench` says to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    /// CPU time of the recorders
    Cost,
    /// Time in the kernel by size of the stack
    Stacks,
    /// How much less the programs get done
    Slowdown,
    /// Memory, start and account of a recording of a minute
    Minute,
}

fn main() -> Result<()> {
    let Arguments { parts, .. } = Arguments::parse();
    let workload = Workload::compile()?;
    for part in if parts.is_empty() { Part::value_variants() } else { &parts } {
        match part {
            Part::Cost => cost_per_sample(&workload)?,
            Part::Stacks => kernel_time_by_stack_size(&workload)?,
            Part::Slowdown => slowdown(&workload)?,
            Part::Minute => one_minute(&workload)?,
        }
    }
    Ok(())
}

/// CPU time per further sample, and what does not grow with time.
fn cost_per_sample(workload: &Workload) -> Result<()> {
    println!(
        "\n| {FREQUENCY} Hz, {PROGRAMS} busy programs | us per further sample | fixed ms |\n|---|---|---|"
    );
    for recorder in [Recorder::Collector, Recorder::PerfPlain, Recorder::PerfDwarf, Recorder::Samply] {
        let mut slopes = Vec::new();
        let mut fixed = Vec::new();
        for _ in 0..SLOPES {
            let short = recorder.record(workload, SHORT)?;
            let long = recorder.record(workload, LONG)?;
            let slope = (long.cpu_us - short.cpu_us) / (long.samples - short.samples);
            slopes.push(slope);
            fixed.push((short.cpu_us - slope * short.samples) / 1e3);
        }
        println!("| {recorder} | {} | {:.0} |", Spread::of(slopes), Spread::of(fixed));
    }
    Ok(())
}

/// Time in the BPF program (`bpf_stats`).
fn kernel_time_by_stack_size(workload: &Workload) -> Result<()> {
    println!("\n| stack, KiB | bytes copied per sample | kernel time per sample, us |\n|---|---|---|");
    for depth in [0, 3, 7, 15, 31, 60, 200] {
        let _busy = Busy::start(workload, 6.0, depth)?;
        let figures = Recording::start(workload.folder(), FREQUENCY, 3, &["out.pb.gz"])?.figures()?;
        println!(
            "| {} | {:.0} | {:.2} |",
            depth + 1,
            figures.bytes_per_sample()?,
            figures.kernel_us_per_sample()?
        );
    }
    Ok(())
}

/// How much less the programs get done, over interleaved pairs.
fn slowdown(workload: &Workload) -> Result<()> {
    println!(
        "\n| frequency | work done with the collector, in percent of without ({PAIRS} pairs) |\n|---|---|"
    );
    for frequency in [99, FREQUENCY] {
        let mut shares = Vec::new();
        for _ in 0..PAIRS {
            let without = Busy::start(workload, 3.0, 0)?.rounds()?;
            let busy = Busy::start(workload, 3.0, 0)?;
            Recording::start(workload.folder(), frequency, 3, &["out.pb.gz"])?.figures()?;
            shares.push(100.0 * busy.rounds()? / without);
        }
        println!("| {frequency} Hz | {} |", Spread::of(shares));
    }
    Ok(())
}

/// Memory and start of a recording of a minute.
fn one_minute(workload: &Workload) -> Result<()> {
    let _busy = Busy::start(workload, 64.0, 0)?;
    let figures = Recording::start(workload.folder(), FREQUENCY, 60, &["out.pb.gz"])?.figures()?;
    println!("\n| 60 s, {FREQUENCY} Hz, {PROGRAMS} busy programs | |\n|---|---|");
    figures.print_rows()
}
