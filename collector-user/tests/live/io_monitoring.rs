//! Requests to block devices: what is counted is what the kernel counts of the device.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use collector_common::record::{Histogram, Sample};
use collector_user::session::Recording;

use crate::prerequisites::{live, not_on_this_kernel};
use crate::programs::{compile, folder};
use crate::scenarios::{attribute, record_machine, settings};

/// Reads of the device, and how large each is.
const READS: u64 = 64;
const READ_KIB: u64 = 64;

/// A device that is made of a file, and gone in the end.
struct Loop {
    path: PathBuf,
    name: String,
}

impl Loop {
    fn of(folder: &Path) -> Self {
        let file = folder.join("disk");
        fs::write(&file, vec![1; (READS * READ_KIB) as usize * 1024]).unwrap();
        Self::of_file(&file, &[])
    }

    fn of_file(file: &Path, options: &[&str]) -> Self {
        let mut losetup = Command::new("losetup");
        let output = losetup.args(["--find", "--show"]).args(options).arg(file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end());
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        // udev reads what a new device has on it. Where it is not there, nobody does.
        _ = Command::new("udevadm").arg("settle").status();
        Self { path, name }
    }

    /// What the kernel counted: reads, sectors of 512 bytes, and milliseconds. See `Documentation/block/stat.rst`.
    fn told(&self) -> [u64; 3] {
        let text = fs::read_to_string(format!("/sys/block/{}/stat", self.name)).unwrap();
        let numbers: Vec<u64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
        [numbers[0], numbers[2], numbers[3]]
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let status = Command::new("losetup").arg("--detach").arg(&self.path).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("{} could not be detached", self.path.display());
        }
    }
}

/// A file whose reads are kept waiting by a process of ours. It is gone in the end.
struct LateDisk {
    server: Child,
    answers: BufReader<ChildStdout>,
}

impl LateDisk {
    fn start(program: &Path, folder: &Path, late_us: u64) -> Self {
        let mut server = Command::new(program);
        server.arg("serve").arg(folder).args([READS * READ_KIB, late_us].map(|number| number.to_string()));
        let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(server.stdout.take().unwrap());
        let mut disk = Self { server, answers };
        assert_eq!(disk.answer(), "ready");
        disk
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// How many reads it has kept waiting, and for how many nanoseconds in all.
    fn told(&mut self) -> [u64; 2] {
        self.server.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let answer = self.answer();
        let (reads, waited) = answer.split_once(' ').unwrap();
        [reads, waited].map(|number| number.parse().unwrap())
    }
}

impl Drop for LateDisk {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        if !self.server.wait().is_ok_and(|status| status.success()) {
            eprintln!("the late disk was not taken away");
        }
    }
}

/// The histogram of reads from a device.
fn of_reads<'a>(recording: &'a Recording, name: &str, device: &Loop) -> &'a Histogram {
    of_requests(recording, name, device, "read")
}

fn of_requests<'a>(recording: &'a Recording, name: &str, device: &Loop, operation: &str) -> &'a Histogram {
    let label = format!("{} {operation}", device.name);
    let found = recording.machine.histograms().iter().find(|one| one.name == name && one.label == label);
    found.unwrap_or_else(|| panic!("{name} of {label}: {:?}", recording.machine.histograms()))
}

#[test]
fn reads_from_a_device_are_those_that_the_kernel_counts() {
    let Some(_live) = live("reads_from_a_device_are_those_that_the_kernel_counts") else { return };
    let folder = folder();
    let device = Loop::of(folder.path());
    let before = device.told();
    let [input, size, count] =
        [format!("if={}", device.path.display()), format!("bs={READ_KIB}k"), format!("count={READS}")];
    let command = ["dd", &input, "of=/dev/null", &size, &count, "iflag=direct"].map(OsString::from);
    let recording = record_machine(settings(&["io"]), &command);
    let after = device.told();
    let [reads, sectors, ms] = [0, 1, 2].map(|index| after[index] - before[index]);
    let times = of_reads(&recording, "times of block requests", &device);
    let sizes = of_reads(&recording, "sizes of block requests", &device);
    println!("{reads} reads, {sectors} sectors, {ms} ms: {times:?} {sizes:?}");
    assert_eq!([reads, sectors], [READS, READS * READ_KIB * 2]);
    assert_eq!([times.count(), sizes.count(), sizes.sum], [reads, reads, sectors * 512]);
    let filled: Vec<_> = sizes.filled().filter(|(_, _, count)| *count > 0).collect();
    assert_eq!(filled, [(READ_KIB * 1024, 2 * READ_KIB * 1024, READS)]);
    // The kernel looks at a coarser clock, and gives whole milliseconds.
    assert!(times.sum > 0 && times.sum / 1_000_000 <= ms + ms / 10 + 1, "{times:?} of {ms} ms");
}

#[test]
fn reads_from_a_device_have_the_stacks_of_who_reads() {
    let Some(_live) = live("reads_from_a_device_have_the_stacks_of_who_reads") else { return };
    let folder = folder();
    let device = Loop::of(folder.path());
    let mut settings = settings(&["io_monitoring"]);
    // Each request is one for itself, and nothing beside them.
    settings.events.retain(|hook| hook.event.name() == "block_io");
    settings.sampling.off_cpu_period = collector_common::ids::Nanos(1);
    let input = format!("if={}", device.path.display());
    let command = ["dd", &input, "of=/dev/null", "bs=64k", "iflag=direct"].map(OsString::from);
    let recording = record_machine(settings, &command);
    let machine = &recording.machine;
    let symbols = recording.symbolize();
    let samples = machine.samples().iter();
    let samples: Vec<_> =
        samples.filter(|sample| attribute(machine, sample, "device") == device.name).collect();
    assert_eq!(samples.len() as u64, READS, "{:?}", recording.ledger);
    let times = of_reads(&recording, "times of block requests", &device);
    assert_eq!(samples.iter().map(|sample| sample.value as u64).sum::<u64>(), times.sum);
    for sample in &samples {
        assert_eq!(attribute(machine, sample, "operation"), "read");
        assert_eq!(attribute(machine, sample, "bytes"), (READ_KIB * 1024).to_string());
    }
    // A device that is busy is given its requests later, by a worker of the kernel.
    let of_reader = samples.iter().filter(|sample| {
        let stack = machine.stacks().get(sample.stack);
        let has = |name| stack.iter().any(|&frame| symbols.name(frame).function == name);
        machine.string(machine.thread(sample.thread).name) == "dd" && has("ksys_read")
    });
    assert!(of_reader.count() > 0, "{samples:?}");
    let kind = machine.kinds()[0];
    assert_eq!([machine.string(kind.name), kind.unit.name()], ["block_io", "nanoseconds"]);
}

/// The file of the device is another process's, which keeps each read of it waiting: that is the least that they take, and what the reader
/// sees is the most. Each takes longer than a period, so that it stands for itself alone.
#[test]
fn reads_from_a_device_take_as_long_as_it_keeps_them_waiting() {
    const LATE_US: u64 = 2_000;
    let test = "reads_from_a_device_take_as_long_as_it_keeps_them_waiting";
    let Some(_live) = live(test) else { return };
    if !Path::new("/dev/fuse").exists() {
        return not_on_this_kernel(test, "it was built without CONFIG_FUSE_FS, or has not loaded it");
    }
    let folder = folder();
    let mounted = folder.path().join("late");
    fs::create_dir(&mounted).unwrap();
    let program = compile(folder.path(), "late_disk", "late_disk.c", &[]);
    let mut disk = LateDisk::start(&program, &mounted, LATE_US);
    let device = Loop::of_file(&mounted.join("disk"), &["--read-only"]);
    let file = folder.path().join("told");
    let [count, size] = [READS, READ_KIB].map(|number| number.to_string().into());
    let command = [program.into(), "read".into(), (&device.path).into(), count, size, file.clone().into()];
    let before = disk.told();
    let recording = record_machine(settings(&["io"]), &command);
    let after = disk.told();
    let [served, least] = [0, 1].map(|index| after[index] - before[index]);
    let most: u64 = fs::read_to_string(file).unwrap().trim_end().parse().unwrap();
    assert!(served == READS && least >= READS * LATE_US * 1000, "{served} reads in {least} ns");

    let times = of_reads(&recording, "times of block requests", &device);
    let sizes = of_reads(&recording, "sizes of block requests", &device);
    println!("{} ns between {least} and {most}", times.sum);
    assert_eq!([times.count(), sizes.count(), sizes.sum], [READS, READS, READS * READ_KIB * 1024]);
    assert!((least..=most).contains(&times.sum), "{times:?}: {least} to {most}");
    let shorter = times.filled().filter(|(_, end, count)| *count > 0 && *end <= LATE_US * 1000);
    assert_eq!(shorter.count(), 0, "{times:?}");
    let machine = &recording.machine;
    let reads = |kind: &str, of: &str, value: &str| -> Vec<_> {
        let is_read = |sample: &Sample| {
            machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == kind
                && attribute(machine, sample, of) == value
                && attribute(machine, sample, "operation") == "read"
        };
        machine.samples().iter().filter(is_read).collect()
    };
    let sum = |samples: &[Sample]| samples.iter().map(|sample| sample.value as u64).sum::<u64>();
    let calls = reads("file_io", "path", device.path.to_str().unwrap());
    let reads = reads("block_io", "device", &device.name);
    assert_eq!(reads.len() as u64, READS, "{:?}", recording.ledger);
    assert_eq!(sum(&reads), times.sum);
    assert!(reads.iter().all(|sample| sample.value as u64 >= LATE_US * 1000), "{reads:?}");
    // One after the other, so that the device is never busy: who reads is who issues the request.
    let name_of = |sample: &Sample| machine.string(machine.thread(sample.thread).name);
    assert!(reads.iter().all(|sample| name_of(sample) == "late_disk"), "{reads:?}");
    let symbols = recording.symbolize();
    let has_stack = |sample: &&Sample| {
        let stack = machine.stacks().get(sample.stack);
        stack.iter().any(|&frame| symbols.name(frame).function == "read_pieces")
    };
    // One that is expected to take a period has its stacks taken for sure, whatever CPU the ones before it ended on.
    assert_eq!(reads.iter().filter(has_stack).count() as u64, READS, "{reads:?}");
    // A request is a part of a call.
    let (count, called) = (calls.len() as u64, sum(&calls));
    assert_eq!(count, READS, "{:?}", recording.ledger);
    assert!((times.sum..=most).contains(&called), "{called}: {} to {most}", times.sum);
}

/// The file of the device is locked for known times, so that what is written to the device waits for that, and so does who has it written.
#[test]
fn requests_and_syncs_take_as_long_as_the_device() {
    const TURNS: usize = 5;
    const HELD_MS: u64 = 60;
    let Some(_live) = live("requests_and_syncs_take_as_long_as_the_device") else { return };
    let folder = folder();
    let of_device = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let device = Loop::of(of_device.path());
    let program = compile(folder.path(), "held", "held.c", &["-pthread"]);
    let file = folder.path().join("told");
    let [turns, held] = [TURNS as u64, HELD_MS].map(|number| number.to_string().into());
    let disk = of_device.path().join("disk");
    let command = [program.into(), disk.into(), turns, held, file.clone().into(), (&device.path).into()];
    let recording = record_machine(settings(&["io"]), &command);
    let text = fs::read_to_string(file).unwrap();
    let numbers: Vec<i64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let [waiter, _, _, least, most] = numbers[..] else { panic!("{text}") };
    assert!(least >= TURNS as i64 * HELD_MS as i64 * 1_000_000, "{text}");
    let machine = &recording.machine;
    // What takes a millisecond or longer is told of each time, and stands for itself alone.
    let sum_of = |kind: &str, attributes: [(&str, &str); 2]| {
        let samples = machine.samples().iter().filter(|sample| {
            machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == kind
                && sample.value >= HELD_MS as i64 * 1_000_000
                && attributes.iter().all(|(name, value)| attribute(machine, sample, name) == *value)
        });
        samples.fold((0, 0), |(count, sum), sample| (count + 1, sum + sample.value))
    };
    let (count, requested) = sum_of("block_io", [("device", &device.name), ("operation", "write")]);
    let path = device.path.to_str().unwrap();
    let (calls, synced) = sum_of("file_io", [("path", path), ("operation", "sync")]);
    println!("requests {requested}, syncs {synced}, between {least} and {most}");
    assert_eq!((count, calls), (TURNS, TURNS), "{waiter}: {:?}", recording.ledger);
    // The request is a part of the call.
    assert!(least <= requested && requested <= synced && synced <= most, "{requested}, {synced}: {text}");
    let times = of_requests(&recording, "times of block requests", &device, "write");
    assert!(times.sum >= requested as u64 && times.sum <= most as u64, "{times:?}");
    let syncs = machine.histograms().iter().find(|one| one.label == "sync block device").unwrap();
    assert!(syncs.count() >= TURNS as u64 && syncs.sum >= synced as u64, "{syncs:?}");
}
