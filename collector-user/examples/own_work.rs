//! Records a part of what this program does, leaves out what it does not want, and writes it with a number of its own; the same program on
//! every system that there is a recorder for. `sudo cargo run --example own_work -- FILE.pb.gz`, and on Windows without `sudo`, in a terminal
//! that was opened by "Run as administrator".

use collector_user::universal::{ExportSettings, RECORDER, UniversalExporter, Verdict};

fn main() -> anyhow::Result<()> {
    let path = std::env::args_os().nth(1).ok_or_else(|| anyhow::anyhow!("name a file, as x.pb.gz"))?;
    let settings = ExportSettings::default()
        .with_scenario("cpu_profiling")
        .with_pid(std::process::id())
        .with_output(std::path::PathBuf::from(path));
    let mut exporter = UniversalExporter::new(settings).with_export_hook(|profile| {
        let samples = profile.machine.samples().iter();
        let deepest = samples.map(|sample| profile.machine.stacks().get(sample.stack).len()).max();
        println!("the deepest stack has {} functions", deepest.unwrap_or(0));
        Ok(())
    });
    // The recording has a thread of its own, which is recorded with the others.
    exporter.on_sample(|view, sample| {
        let is_own = view.string(view.thread(sample.thread).name) != RECORDER;
        if is_own { Verdict::Keep } else { Verdict::Drop }
    });
    exporter.start_collection()?;
    let sum = sum_of_primes(2_000_000);
    exporter.on_parsed(move |machine| machine.add_custom_metric("sum of primes", sum as f64, ""));
    let exported = exporter.stop_and_export()?;
    for warning in &exported.recording.warnings {
        println!("{warning}");
    }
    println!(
        "{} samples, {} lost",
        exported.recording.machine.samples().len(),
        exported.recording.ledger.total_lost()
    );
    Ok(())
}

#[inline(never)]
fn sum_of_primes(end: u64) -> u64 {
    (2..end).filter(|&number| is_prime(number)).sum()
}

#[inline(never)]
fn is_prime(number: u64) -> bool {
    (2..number)
        .take_while(|divisor| divisor * divisor <= number)
        .all(|divisor| !number.is_multiple_of(divisor))
}
