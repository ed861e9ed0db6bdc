//! The ledger: what was produced is delivered or lost for a counted cause, by three counters that do not know of
//! each other: the kernel's count of program runs, the programs' own, and what was taken out of the rings.

use std::ffi::OsString;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use collector_common::ids::Nanos;
use collector_common::loss::LossCause;
use collector_common::wire::Counter;
use collector_user::kernel::online_cpus;
use collector_user::session::{self, Ended, Session, SessionSettings};
use collector_user::source::ebpf::Sampler;
use collector_user::source::{Settings, Source as _};

use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::recording::assert_balanced;

/// The smallest ring holds two samples or three.
fn tiny_rings() -> Settings {
    Settings { frequency: 9999, ring_bytes: Some(4096), ..Settings::default() }
}

#[test]
fn a_storm_of_forks_over_tiny_rings() {
    let Some(_live) = live("a_storm_of_forks_over_tiny_rings") else { return };
    let folder = folder();
    let storm = OsString::from(compile(folder.path(), "storm", "storm.c", &[]));
    let settings = SessionSettings { sampling: tiny_rings(), ..SessionSettings::default() };
    let mut session = Session::start(settings, Some(session::Command::start(&[storm]).unwrap())).unwrap();
    let (stop, _never) = UnixStream::pair().unwrap();
    let ended = session.run(stop.as_fd(), |_| {}).unwrap();
    assert!(matches!(ended, Ended::Command(status) if status.success()), "{ended:?}");
    let recording = session.finish().unwrap();

    let ledger = &recording.ledger;
    assert!(ledger.lost(LossCause::RingFull) > 0, "{ledger:?}");
    assert!(ledger.delivered() > 0, "{ledger:?}");
    assert_eq!(ledger.lost(LossCause::Malformed) + ledger.lost(LossCause::Unaccounted), 0, "{ledger:?}");
    assert_eq!(recording.machine.samples().len() as u64, ledger.delivered());
    assert_balanced(&recording.stats_now().to_json());
    let run = ledger.delivered() + ledger.lost(LossCause::RingFull) + ledger.lost(LossCause::NoRing);
    assert!(recording.stats.bpf_run_count >= run, "{:?}", recording.stats);
}

#[test]
fn the_kernel_counts_what_the_programs_count() {
    let Some(_live) = live("the_kernel_counts_what_the_programs_count") else { return };
    let folder = folder();
    let storm = compile(folder.path(), "storm", "storm.c", &[]);
    let mut sampler = Sampler::load(&tiny_rings(), &[], &online_cpus().unwrap()).unwrap();
    sampler.start().unwrap();
    assert!(Command::new(storm).status().unwrap().success());
    let mut taken = 0_u64;
    // Once while samples come in, and once when none do.
    sampler.drain(Nanos(u64::MAX), &mut |_| taken += 1);
    sampler.stop().unwrap();
    sampler.drain(Nanos(u64::MAX), &mut |_| taken += 1);

    let account = sampler.account().unwrap();
    let [idle, other, full, no_ring] =
        [Counter::FilteredIdle, Counter::FilteredTarget, Counter::RingFull, Counter::NoRing]
            .map(|counter| account.counter(counter));
    assert_eq!(account.counter(Counter::Submitted), taken, "{account:?}");
    assert_eq!(account.run_count, idle + other + full + no_ring + taken, "{account:?}");
    assert!(taken > 0 && full > 0, "{account:?}");
    assert_eq!([other, no_ring], [0, 0], "{account:?}");
}

/// Descriptors of this process, and what is pinned.
fn traces() -> (usize, Vec<PathBuf>) {
    let pinned = fs::read_dir("/sys/fs/bpf").into_iter().flatten().map(|entry| entry.unwrap().path());
    (fs::read_dir("/proc/self/fd").unwrap().count(), pinned.collect())
}

#[test]
fn a_session_leaves_nothing_behind() {
    let Some(_live) = live("a_session_leaves_nothing_behind") else { return };
    let record = || {
        let command = session::Command::start(&["true".into()]).unwrap();
        let mut session = Session::start(SessionSettings::default(), Some(command)).unwrap();
        let (stop, _never) = UnixStream::pair().unwrap();
        session.run(stop.as_fd(), |_| {}).unwrap();
        assert!(traces().0 > 5, "a session has descriptors");
        drop(session.finish().unwrap().symbolize());
    };
    // What the first session leaves may be there once for all; what the second adds is a leak.
    record();
    let before = traces();
    record();
    assert_eq!(traces(), before);
}
