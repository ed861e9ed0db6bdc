//! What a recording costs on this machine, with the peers beside it in the same run. As root, on a quiet machine:
//! `cargo xtask bench live`. Prints Markdown tables.
//!
//! Every figure of CPU time is of the whole process, user and system together; a slope is the difference between a
//! 12 s and a 4 s run, divided by the difference in samples.

#[path = "live/peers.rs"]
mod peers;
#[path = "live/workload.rs"]
mod workload;

use anyhow::Result;

use peers::{Cost, Recorder};
use workload::{Busy, Workload};

/// Of the recordings that a slope is taken from.
const SHORT: u32 = 4;
const LONG: u32 = 12;

/// Pairs of runs with and without the collector.
const PAIRS: usize = 5;

fn main() -> Result<()> {
    let workload = Workload::compile()?;
    cost_per_sample(&workload)?;
    kernel_time_by_stack_size(&workload)?;
    slowdown(&workload)?;
    one_minute(&workload)
}

/// CPU time per further sample, and what does not grow with time.
fn cost_per_sample(workload: &Workload) -> Result<()> {
    println!(
        "\n| 997 Hz, whole machine, 2 busy programs | us per further sample | fixed ms |\n|---|---|---|"
    );
    for recorder in [Recorder::Collector, Recorder::PerfPlain, Recorder::PerfDwarf, Recorder::Samply] {
        let _busy = Busy::start(workload, f64::from(SHORT + LONG) + 6.0, 0)?;
        let Some(short) = recorder.record(workload, SHORT)? else {
            println!("| {recorder} | not installed | |");
            continue;
        };
        let Some(long) = recorder.record(workload, LONG)? else { continue };
        let slope = (long.cpu_us - short.cpu_us) / (long.samples - short.samples);
        let fixed = (short.cpu_us - slope * short.samples) / 1e3;
        println!("| {recorder} | {slope:.2} | {fixed:.0} |");
    }
    Ok(())
}

/// Time in the BPF program (`bpf_stats`).
fn kernel_time_by_stack_size(workload: &Workload) -> Result<()> {
    println!("\n| stack, KiB | bytes copied per sample | kernel time per sample, us |\n|---|---|---|");
    for depth in [0, 3, 7, 15, 31, 60, 200] {
        let _busy = Busy::start(workload, 6.0, depth)?;
        let Cost { samples, stats, .. } = peers::collector(workload, 3, 997)?;
        let of = |a: &str, b: &str| stats[a][b].as_f64().unwrap_or(f64::NAN);
        let copied = stats["bytes_copied"].as_f64().unwrap_or(f64::NAN) / samples;
        println!(
            "| {} | {copied:.0} | {:.2} |",
            depth + 1,
            of("bpf", "run_ns") / of("bpf", "run_count") / 1e3
        );
    }
    Ok(())
}

/// How much less the programs get done, over interleaved pairs.
fn slowdown(workload: &Workload) -> Result<()> {
    println!(
        "\n| frequency | work done with the collector, in percent of without (mean of {PAIRS} pairs) | lowest | highest |"
    );
    println!("|---|---|---|---|");
    for frequency in [99, 997] {
        let mut ratios = Vec::new();
        for _ in 0..PAIRS {
            let without = Busy::start(workload, 3.0, 0)?.rounds()?;
            let busy = Busy::start(workload, 3.0, 0)?;
            peers::collector(workload, 3, frequency)?;
            ratios.push(100.0 * busy.rounds()? / without);
        }
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        let lowest = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = ratios.iter().copied().fold(0.0, f64::max);
        println!("| {frequency} Hz | {mean:.2} | {lowest:.2} | {highest:.2} |");
    }
    Ok(())
}

/// Memory and start of a recording of a minute.
fn one_minute(workload: &Workload) -> Result<()> {
    let _busy = Busy::start(workload, 64.0, 0)?;
    let Cost { stats, samples, .. } = peers::collector(workload, 60, 997)?;
    let number = |key: &str| stats[key].as_f64().unwrap_or(f64::NAN);
    println!("\n| 60 s, 997 Hz, 2 busy programs | |\n|---|---|");
    println!("| samples delivered, lost | {samples:.0}, {} |", stats["lost"]);
    println!("| user stacks | {} |", stats["stacks"]);
    println!("| peak memory, MB | {:.1} |", number("peak_rss_bytes") / 1e6);
    println!("| start to first sample, ms | {:.1} |", number("start_to_first_sample_ns") / 1e6);
    Ok(())
}
