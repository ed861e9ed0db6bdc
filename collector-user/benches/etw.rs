//! How fast an `.etl` file becomes a recording, with the reader alone beside it: `cargo bench -p collector-user --bench etw`.
//! Prints a Markdown table of times on one CPU and of megabytes of the file a second.
//!
//! The file is `net.4.5.2.x64.etl` of `shared/data/etl` beside the checkout, of the kernel and .NET on 8 CPUs, once as it is,
//! in packed buffers, and once with them unpacked.

#![allow(clippy::unwrap_used, reason = "a failed step of a bench should stop it")]

#[path = "../tests/etw/data.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod data;
#[path = "../../windows-etw/benches/etl/later.rs"]
#[allow(dead_code, reason = "the reader's bench uses all of it")]
mod later;
#[path = "common/spread.rs"]
mod spread;

use std::hint::black_box;
use std::io::Cursor;

use anyhow::{Result, ensure};
use clap::Parser;
use collector_common::record::EventRecords;
use collector_user::etw::{Etl, Taker, Trace};
use export::import::ImportFormat as _;
use rustix::time::{ClockId, clock_gettime};
use windows_etw::etl::EtlFile;

use spread::Spread;

const FILE: &str = "net.4.5.2.x64.etl";
/// Records of it, and `cpu` samples among them.
const RECORDS: u64 = 179_474;
const SAMPLES: usize = 6320;

#[derive(Parser)]
struct Arguments {
    /// How often each is measured, one after the other
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Which `cargo bench` says to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

/// What is measured, each with what is before it.
#[derive(Clone, Copy)]
enum Part {
    /// Records, one after the other
    Read,
    /// What they tell, taken
    Take,
    /// The recording that is made of that
    Record,
    /// The same with raw events
    Events,
}

impl Part {
    const ALL: [Self; 4] = [Self::Read, Self::Take, Self::Record, Self::Events];

    const fn name(self) -> &'static str {
        match self {
            Self::Read => "the reader alone",
            Self::Take => "all records taken",
            Self::Record => "a recording",
            Self::Events => "a recording with raw events",
        }
    }

    fn run(self, file: &[u8]) -> Result<()> {
        match self {
            Self::Read => read(file),
            Self::Take => {
                black_box(take(file)?);
                Ok(())
            }
            Self::Record => record(file, 0),
            Self::Events => record(file, EventRecords::LIMIT),
        }
    }
}

fn main() -> Result<()> {
    let Arguments { rounds, .. } = Arguments::parse();
    let Some(packed) = data::bytes(FILE) else { return Ok(()) };
    let unpacked = later::unpacked(&packed);
    println!("| what | file | ms | MB/s | of the reader's |\n|---|---|---:|---:|---:|");
    for (kind, file) in [("packed", &packed), ("unpacked", &unpacked)] {
        let mut took = [const { Vec::new() }; Part::ALL.len()];
        for _ in 0..rounds.max(1) {
            for (part, took) in Part::ALL.into_iter().zip(&mut took) {
                let before = cpu_seconds();
                part.run(black_box(file))?;
                took.push(cpu_seconds() - before);
            }
        }
        let megabytes = file.len() as f64 / 1e6;
        for (part, own) in Part::ALL.into_iter().zip(&took) {
            let times = Spread::of(own.iter().map(|seconds| seconds * 1e3).collect());
            let speeds = Spread::of(own.iter().map(|seconds| megabytes / seconds).collect());
            let ratios = Spread::of(own.iter().zip(&took[0]).map(|(own, read)| read / own).collect());
            println!(
                "| {} | {kind}, {megabytes:.1} MB | {times:.1} | {speeds:.0} | {ratios:.2} |",
                part.name()
            );
        }
    }
    Ok(())
}

/// What this process has had of CPUs.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn read(file: &[u8]) -> Result<()> {
    let mut file = EtlFile::open(Cursor::new(file))?;
    let (mut found, mut sum) = (0, 0_u64);
    while let Some(record) = file.next_record()? {
        found += 1;
        let known = u64::from(record.provider.0[0]) + u64::from(record.descriptor.opcode);
        sum = sum.wrapping_add(known + record.ticks as u64 + record.payload.len() as u64);
    }
    black_box(sum);
    ensure!(found == RECORDS, "{found} records");
    Ok(())
}

fn take(file: &[u8]) -> Result<Taker> {
    let mut file = EtlFile::open(Cursor::new(file))?;
    let mut taker = Taker::new(Trace::from(file.header()), 0);
    while let Some(record) = file.next_record()? {
        taker.take(&record);
    }
    Ok(taker)
}

fn record(file: &[u8], event_bytes: u64) -> Result<()> {
    let machine = Etl.import_with_events(&mut Cursor::new(file), event_bytes)?.machine;
    let is_cpu = |kind: usize| machine.kinds().get(kind).is_some_and(|it| machine.string(it.name) == "cpu");
    let samples = machine.samples().iter().filter(|sample| is_cpu(usize::from(sample.kind.0))).count();
    ensure!(samples == SAMPLES, "{samples} samples");
    Ok(())
}
