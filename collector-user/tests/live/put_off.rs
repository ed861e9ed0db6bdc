//! User stacks that come after their samples (`PERF_RECORD_CALLCHAIN_DEFERRED` of Linux 6.19), in recordings as
//! `perf_callchain_deferred_output` and `get_perf_callchain` of the kernel write them.

use std::path::{Path, PathBuf};

use collector_common::ids::{Avma, Nanos, Pid, Tid};
use collector_common::perf::{
    Attr, AttrFlags, ByteOrder, Callchain, CallchainDeferred, ChainContext, Misc, Record, Sample, SampleType,
    Task, Words,
};
use collector_user::session::Recording;
use tempfile::TempDir;

use crate::programs::folder;
use crate::put_together::{PutTogether, frames, replay};

const PROGRAM: &str = "/no/such/program";
const START: u64 = 0x40_0000;

/// A recording of `perf record --call-graph fp,defer` that is put together.
struct Deferring {
    file: PutTogether,
    path: PathBuf,
    _folder: TempDir,
}

impl Deferring {
    fn new(order: ByteOrder) -> Self {
        let folder = folder();
        let path = folder.path().join("perf.data");
        let attr = Attr {
            sample_type: SampleType::CALLCHAIN,
            flags: AttrFlags::DEFER_CALLCHAIN.or(AttrFlags::DEFER_OUTPUT),
            ..Attr::default()
        };
        let mut file = PutTogether::new(&path, order, &attr);
        for pid in [100, 200] {
            file.map(pid, [START, START + 0x1_0000, 0], Path::new(PROGRAM));
        }
        Self { file, path, _folder: folder }
    }

    /// A sample in the kernel, whose user stack will come under a number.
    fn sample(&mut self, pid: u32, kernel: u64, cookie: u64) {
        let chain = [ChainContext::KERNEL.0, kernel, ChainContext::USER_DEFERRED.0, cookie];
        let callchain = Some(Callchain::from(Words::from(&chain[..])));
        self.file.sample(
            pid,
            Misc::KERNEL,
            &Sample { ip: Some(Avma(kernel)), callchain, ..Sample::default() },
        );
    }

    /// The stack of a thread that goes back to user code. The kernel writes addresses alone.
    fn stack(&mut self, pid: u32, cookie: u64, offsets: &[u64]) {
        let addresses: Vec<u64> = offsets.iter().map(|offset| START + offset).collect();
        let callchain = Callchain::from(Words::from(addresses.as_slice()));
        let record = Record::CallchainDeferred(CallchainDeferred { cookie, callchain });
        self.file.record(pid, Misc::USER, &record);
    }

    fn exit(&mut self, pid: u32) {
        let (pid, tid) = (Pid(pid), Tid(pid));
        let task = Task { pid, parent_pid: pid, tid, parent_tid: tid, time: Nanos(0) };
        self.file.record(pid.0, Misc::USER, &Record::Exit(task));
    }

    fn replayed(self) -> Recording {
        self.file.finish(Some("x86_64"));
        replay(&self.path)
    }
}

/// The addresses of each stack.
fn addresses(recording: &Recording) -> Vec<Vec<u64>> {
    let stacks = frames(recording).into_iter();
    stacks.map(|stack| stack.into_iter().map(|(_, address)| address).collect()).collect()
}

/// A mark where a stack was cut.
const CUT: u64 = 0;

#[test]
fn user_stacks_are_joined_to_the_samples_that_they_are_of() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let mut file = Deferring::new(order);
        file.sample(100, 0xf1, 5);
        // Of another thread that uses the same number, and comes back first.
        file.sample(200, 0xf2, 5);
        file.sample(100, 0xf3, 5);
        file.stack(200, 5, &[0x20, 0x21]);
        file.stack(100, 5, &[0x10, 0x11, 0x12]);
        file.sample(100, 0xf4, 6);
        file.stack(100, 6, &[0x13]);
        let recording = file.replayed();
        let expected: [&[u64]; 4] =
            [&[0xf1, 0x10, 0x11, 0x12], &[0xf2, 0x20, 0x21], &[0xf3, 0x10, 0x11, 0x12], &[0xf4, 0x13]];
        assert_eq!(addresses(&recording), expected);
        assert_eq!(recording.stats.stacks, [("walked_when_recorded", 4)].into());
    }
}

#[test]
fn samples_whose_user_stacks_never_came_are_counted() {
    let mut file = Deferring::new(ByteOrder::Little);
    // The record of 5 was lost, 100 was killed in the kernel, and 200 sleeps to the end. One stack is of no sample.
    file.sample(100, 0xf1, 5);
    file.sample(100, 0xf2, 6);
    file.stack(100, 6, &[0x10]);
    file.stack(200, 9, &[0x11]);
    file.sample(100, 0xf3, 7);
    file.exit(100);
    file.sample(200, 0xf4, 8);
    let recording = file.replayed();
    let expected: [&[u64]; 4] = [&[0xf1, CUT], &[0xf2, 0x10], &[0xf3, CUT], &[0xf4, CUT]];
    assert_eq!(addresses(&recording), expected);
    assert_eq!(recording.stats.stacks, [("not_walked", 3), ("walked_when_recorded", 1)].into());
    let told = recording.warnings.join(" ");
    assert!(told.contains("3 stacks end in the kernel"), "{told}");
}

#[test]
fn a_file_that_was_mapped_over_meanwhile_is_that_of_the_sample() {
    let mut file = Deferring::new(ByteOrder::Little);
    file.sample(100, 0xf1, 5);
    // So much time passes that what only older samples could need is dropped.
    for cookie in 0..300 {
        file.sample(200, 0xf2, cookie);
        file.stack(200, cookie, &[0x20]);
    }
    file.file.map(100, [START, START + 0x1_0000, 0x10_0000], Path::new("/no/such/other"));
    for cookie in 300..600 {
        file.sample(200, 0xf2, cookie);
        file.stack(200, cookie, &[0x20]);
    }
    file.stack(100, 5, &[0x10]);
    assert_eq!(addresses(&file.replayed())[0], [0xf1, 0x10]);
}
