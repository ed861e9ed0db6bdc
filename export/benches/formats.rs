//! A recording of a million samples on 10,000 stacks, and one of ten million, to each format: how long it takes, by the clock and of
//! processors (which others on the machine do not make longer), how much is written, and how much more memory than the recording's own it
//! takes at its peak.
//!
//! `cargo xtask bench formats [-- [--in-a-file] FORMAT...]`. With samples in a file all but a MB of them are in a temporary one. Each is
//! written by a process of its own, whose peak the kernel is told to forget before
//! (`/proc/self/clear_refs`, Linux alone).

mod busy;
#[path = "../tests/integration/counted.rs"]
mod counted;

use std::env;
use std::fs;
use std::io::Write as _;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use busy::busy;
use counted::Counted;
use export::format::otlp::Requests;
use export::format::{Profile, by_name, formats};

const STACKS: usize = 10_000;
const SAMPLES: [u64; 2] = [1_000_000, 10_000_000];

/// No file, but what receivers of OTLP are sent, and how much of it at once.
const REQUESTS: &str = "otlp-requests";
const LIMIT: usize = 4_000_000;

/// The word by which this program is told to write one format.
const ONE: &str = "--one-format";

/// The word by which it is told to put samples into a file, and what of them stays in memory then.
const IN_A_FILE: &str = "--in-a-file";
const IN_MEMORY: u64 = 1 << 20;

fn main() -> anyhow::Result<()> {
    let mut args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let is_in_a_file = args.iter().any(|arg| arg == IN_A_FILE);
    args.retain(|arg| arg != IN_A_FILE);
    if let [word, format, samples] = args.as_slice()
        && word == ONE
    {
        return one(format, samples.parse()?, is_in_a_file);
    }
    println!(
        "{:<13} {:>10} {:>9} {:>9} {:>12} {:>14}",
        "format", "samples", "seconds", "of CPUs", "MB written", "MB of memory"
    );
    for format in formats().iter().map(|format| format.name()).chain([REQUESTS]) {
        if !args.is_empty() && !args.iter().any(|arg| arg == format) {
            continue;
        }
        for samples in SAMPLES {
            let mut child = Command::new(env::current_exe()?);
            child.args([ONE, format, &samples.to_string()]).args(is_in_a_file.then_some(IN_A_FILE));
            let status = child.status()?;
            ensure!(status.success(), "{format}: {status}");
        }
    }
    Ok(())
}

fn one(name: &str, samples: u64, is_in_a_file: bool) -> anyhow::Result<()> {
    let (mut machine, symbols) = busy(samples, STACKS);
    if is_in_a_file {
        machine.samples_mut().spill_beyond(IN_MEMORY, || Ok(Box::new(tempfile::tempfile()?)));
    }
    // Where it can't be told, the peak is that of the whole process.
    let forgets = fs::write("/proc/self/clear_refs", "5").is_ok();
    let before = if forgets { memory("VmRSS:").unwrap_or(0) } else { 0 };
    let mut written = Counted::default();
    let (began, used) = (Instant::now(), processor_time());
    write(name, Profile { machine: &machine, symbols: &symbols }, &mut written)?;
    let took = began.elapsed().as_secs_f64();
    let used = processor_time().zip(used).map(|(after, before)| after - before);
    let used = used.map_or_else(|| "?".to_owned(), |seconds| format!("{seconds:.2}"));
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let peak = memory("VmHWM:")
        .map_or_else(|| "?".to_owned(), |peak| format!("{:.1}", megabytes(peak.saturating_sub(before))));
    println!("{name:<13} {samples:>10} {took:>9.2} {used:>9} {:>12.1} {peak:>14}", megabytes(written.0));
    Ok(())
}

fn write(name: &str, profile: Profile<'_>, out: &mut Counted) -> anyhow::Result<()> {
    if name != REQUESTS {
        return Ok(by_name(name).context("no such format")?.export(profile, out)?);
    }
    for request in Requests::new(profile, LIMIT) {
        out.write_all(&request?.bytes)?;
    }
    Ok(())
}

/// A line of `/proc/self/status`, in bytes.
fn memory(line: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let rest = status.lines().find_map(|text| text.strip_prefix(line))?;
    Some(rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Seconds that this process has used of processors: `proc_pid_stat(5)`, whose clock has 100 ticks a second.
fn processor_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name in brackets, which may have blanks, come the state and ten numbers before these two.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut numbers = rest.split_whitespace().skip(11).map(str::parse::<f64>);
    Some((numbers.next()?.ok()? + numbers.next()?.ok()?) / 100.0)
}
