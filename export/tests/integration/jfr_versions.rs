//! Recordings of other JDKs than that of the machine, of a program of ours, `java/Later.java`: what the JDK's reader shows of them, and
//! what each JDK's own said.
//!
//! They are of the JDKs 11.0.13, 21.0.8 and 25.0.2 of Eclipse Temurin, each made so, and packed (`zip -9 -X`):
//!
//! ```sh
//! javac --release 11 Later.java
//! java -Djdk.virtualThreadScheduler.parallelism=1 -Djdk.virtualThreadScheduler.maxPoolSize=1 \
//!   -XX:StartFlightRecording=settings=later.jfc,filename=25.jfr Later
//! jfr print --json 25.jfr
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use collector_common::record::Sample;
use export::import::Imported;
use export::import::jfr::import;

use crate::import_jfr::compare;
use crate::jfr_made::Bytes;
use crate::nettrace_old::unzipped;
use crate::tools::{file, tool};

/// Numbers of samples by kind and thread.
type Counts<'a> = BTreeMap<(&'a str, &'a str), usize>;

fn capture(version: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/java");
    unzipped(&folder.join(format!("{version}.jfr.zip")))
}

/// All samples, and those within a function.
fn counted<'a>(imported: &'a Imported, function: &str) -> (Counts<'a>, Counts<'a>) {
    let Imported { machine, symbols, .. } = imported;
    let (mut all, mut within) = (Counts::new(), Counts::new());
    for sample in machine.samples().iter() {
        let Sample { kind, thread, stack, .. } = sample;
        let kind = machine.string(machine.kinds()[usize::from(kind.0)].name);
        let key = (kind, machine.string(machine.thread(thread).name));
        *all.entry(key).or_default() += 1;
        if machine.stacks().get(stack).iter().any(|frame| symbols.name(*frame).function == function) {
            *within.entry(key).or_default() += 1;
        }
    }
    (all, within)
}

const COMPUTE: &str = "Later.compute";
const PARKED: &str = "jdk.ThreadPark";

/// A recording has what the JDK's reader shows: where it is there, as everything else is in the files.
fn as_shown(version: &str) -> Imported {
    let bytes = capture(version);
    let imported = import(&*bytes).unwrap();
    if tool("jfr").is_some() {
        compare(&file(&bytes, ".jfr"), &imported, 1);
    }
    imported
}

/// Of the clock that goes by time on a CPU each sample is one, also those that have no stack, and how many were lost is told.
#[test]
fn jdk_25_counts_time_on_cpus() {
    let imported = as_shown("25");
    let (all, within) = counted(&imported, COMPUTE);
    let truth = [
        (("cpu", "[virtual]"), 8),
        (("cpu", "main"), 6),
        (("cpu", "platform"), 9),
        (("cpu", "virtual 1"), 8),
        (("cpu", "virtual 2"), 9),
        (("cpu_time", "[virtual]"), 9),
        (("cpu_time", "main"), 3),
        (("cpu_time", "platform"), 8),
        (("cpu_time", "virtual 1"), 8),
        (("cpu_time", "virtual 2"), 9),
        ((PARKED, "ForkJoinPool-1-delayScheduler"), 16),
        ((PARKED, "ForkJoinPool-1-worker-1"), 5),
        ((PARKED, "main"), 3),
        ((PARKED, "platform"), 3),
    ];
    assert_eq!(all, Counts::from(truth));
    let computing = truth.into_iter().filter(|((kind, thread), _)| *kind != PARKED && *thread != "main");
    assert_eq!(within, computing.collect::<Counts<'_>>());
    let machine = &imported.machine;
    assert_eq!(machine.system().lost, Some(2));
    let main_kind = machine.kinds()[usize::from(machine.shown_kind().unwrap().0)];
    assert_eq!(machine.string(main_kind.name), "cpu_time");
    assert!(main_kind.period.abs_diff(10_000_000) < 10, "{}", main_kind.period);
    assert!(imported.left_out.iter().all(|line| !line.contains("CPU time")), "{:?}", imported.left_out);
}

/// Virtual threads have names of their own, or are one thread.
#[test]
fn jdk_21_tells_of_virtual_threads() {
    let imported = as_shown("21");
    let (all, within) = counted(&imported, COMPUTE);
    let truth = [
        (("cpu", "ForkJoinPool-1-worker-1"), 1),
        (("cpu", "[virtual]"), 9),
        (("cpu", "main"), 1),
        (("cpu", "platform"), 11),
        (("cpu", "virtual 1"), 8),
        (("cpu", "virtual 2"), 8),
        ((PARKED, "ForkJoinPool-1-worker-1"), 3),
        ((PARKED, "VirtualThread-unparker"), 9),
        ((PARKED, "main"), 3),
        ((PARKED, "platform"), 3),
    ];
    assert_eq!(all, Counts::from(truth));
    let threads = ["[virtual]", "platform", "virtual 1", "virtual 2"];
    assert_eq!(within, Counts::from(threads.map(|thread| (("cpu", thread), all[&("cpu", thread)]))));
    assert_eq!(imported.machine.system().lost, None);
}

#[test]
fn jdk_11_has_an_older_version_of_the_format() {
    let imported = as_shown("11");
    let (all, within) = counted(&imported, COMPUTE);
    let truth = [
        (("cpu", "JFR Periodic Tasks"), 1),
        (("cpu", "main"), 2),
        (("cpu", "platform"), 11),
        ((PARKED, "platform"), 3),
    ];
    assert_eq!(all, Counts::from(truth));
    assert_eq!(within, Counts::from([(("cpu", "platform"), 11)]));
    let machine = &imported.machine;
    assert!(machine.system().command.contains("Later"), "{}", machine.system().command);
    assert_eq!(machine.processes().iter().map(|of| of.pid.0).collect::<Vec<_>>(), [20631]);
}

/// Of files of several chunks, and where the period changes, which none of these do.
#[test]
fn samples_that_were_lost_or_have_another_period_are_told_of() {
    let bytes = capture("25");
    let twice = import(&*[&bytes[..], &bytes].concat()).unwrap();
    assert_eq!(twice.machine.system().lost, Some(4));
    assert_eq!(counted(&twice, COMPUTE).0[&("cpu_time", "platform")], 16);

    let mut chunk = Bytes::default();
    chunk.types(&[
        (7, "long", false, &[]),
        (20, "jdk.CPUTimeSample", true, &["startTime:7", "samplingPeriod:7"]),
        (21, "jdk.CPUTimeSamplesLost", true, &["startTime:7", "lostSamples:7"]),
    ]);
    // Two ticks are a nanosecond. What rounding makes of a period is the same one.
    for period in [10_000_000, 10_000_900, 20_000_000, 9_000_000] {
        chunk.event(20, |out| out.long(200).long(2 * period));
    }
    chunk.event(21, |out| out.long(300).long(7));
    let imported = import(&*chunk.chunk()).unwrap();
    let machine = &imported.machine;
    assert_eq!((machine.samples().len(), machine.system().lost), (4, Some(7)));
    assert_eq!(machine.kinds()[0].period, 10_000_000);
    let told = "2 samples of CPU time stand for another time than the first one, and are taken for as much";
    assert_eq!(imported.left_out, [told]);
}
