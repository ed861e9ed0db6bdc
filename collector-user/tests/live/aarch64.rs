//! Recordings of aarch64: stacks of the unwinder's fixtures (`unwinder/tests/replay`, taken under qemu, with the frames that gdb
//! saw) as samples of a `perf.data`, replayed.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use collector_common::ids::Avma;
use collector_common::perf::{
    Attr, ByteOrder, Bytes, Misc, Registers, RegistersAbi, Sample, SampleType, UserStack, Words,
};
use collector_user::session::Recording;
use flate2::read::GzDecoder;
use object::{Object as _, ObjectSegment as _};

use crate::prerequisites::live_with;
use crate::programs::folder;
use crate::put_together::{PutTogether, frames, replay};
use crate::recording::{Stack, collector};

/// x0 to x30, sp, pc: `PERF_REG_ARM64_X0` to `PERF_REG_ARM64_PC`.
const ALL: u64 = (1 << 33) - 1;

const COMPILER: &str = "aarch64-linux-gnu-gcc";
const ADDR2LINE: &str = "aarch64-linux-gnu-addr2line";
const EMULATOR: &str = "qemu-aarch64-static";

/// The most that the kernel copies of a stack.
const LARGEST_COPY: usize = 65_000;

/// A sample with what gdb saw.
struct Seen {
    registers: [u64; 33],
    stack: Vec<u8>,
    /// From the innermost out.
    chain: Vec<u64>,
}

/// The stacks of one process.
struct Process {
    /// Start, end, offset in the file, and the file.
    maps: Vec<([u64; 3], PathBuf)>,
    seen: Vec<Seen>,
}

/// What is left of a fixture: little-endian words, and bytes behind their number.
struct Left<'a>(&'a [u8]);

impl<'a> Left<'a> {
    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        bytes
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes(8).try_into().unwrap())
    }

    fn sized(&mut self) -> &'a [u8] {
        let count = self.word() as usize;
        self.bytes(count)
    }
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(fs::read(path).unwrap().as_slice()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// What is behind a sample's name.
fn sample(left: &mut Left<'_>) -> Seen {
    let mut registers = [0; 33];
    registers[32] = left.word();
    registers[..32].fill_with(|| left.word());
    let base = left.word();
    let stack = &left.sized()[(registers[31] - base) as usize..];
    let stack = stack[..stack.len().min(LARGEST_COPY) / 8 * 8].to_vec();
    let count = left.word();
    let chain = (0..count).map(|_| left.word()).collect();
    Seen { registers, stack, chain }
}

/// The repository's fixture of this name, whose files are laid into `folder`. `xtask/fixtures/sample.py` has the format.
fn fixture(name: &str, folder: &Path) -> Vec<Process> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../unwinder/tests/replay/corpus/aarch64");
    let bytes = unpacked(&fixtures.join(name).with_extension("gz"));
    let (mut left, mut processes) = (Left(&bytes), Vec::<Process>::new());
    while !left.0.is_empty() {
        match left.word() as u8 {
            b'W' | b'P' => drop(left.sized()),
            b'C' | b'T' => drop((left.word(), left.sized())),
            b'M' => {
                let lines = std::str::from_utf8(left.sized()).unwrap().lines();
                let lines = lines.map(|line| line.split(' ').collect::<Vec<_>>());
                // Memory without a file has no key.
                let maps = lines.filter(|fields| fields[3] != "-").map(|fields| {
                    let places = [0, 1, 2].map(|field| u64::from_str_radix(fields[field], 16).unwrap());
                    let path = folder.join(fields[3]);
                    fs::write(&path, unpacked(&fixtures.join(format!("files/{}.gz", fields[3])))).unwrap();
                    (places, path)
                });
                processes.push(Process { maps: maps.collect(), seen: Vec::new() });
            }
            b'S' => {
                left.bytes(32);
                processes.last_mut().unwrap().seen.push(sample(&mut left));
            }
            other => panic!("{other}"),
        }
    }
    processes
}

/// Writes the stacks as samples that have the registers in `mask`; each process has a number from 100 on.
fn write(path: &Path, processes: &[Process], mask: u64, architecture: Option<&str>) {
    let attr = Attr {
        sample_type: SampleType::REGS_USER.or(SampleType::STACK_USER),
        sample_regs_user: mask,
        sample_stack_user: 65_528,
        ..Attr::default()
    };
    let mut file = PutTogether::new(path, ByteOrder::Little, &attr);
    for (pid, Process { maps, seen }) in (100..).zip(processes) {
        for (places, path) in maps {
            file.map(pid, *places, path);
        }
        for Seen { registers, stack, .. } in seen {
            let wanted = (0..33).filter(|register| mask >> register & 1 != 0);
            let wanted: Vec<u64> = wanted.map(|register| registers[register]).collect();
            let data = Bytes::from(stack.as_slice());
            let sample = Sample {
                ip: Some(Avma(registers[32])),
                user_registers: Registers::new(RegistersAbi::BITS_64, mask, Words::from(wanted.as_slice())),
                user_stack: Some(UserStack { data, dyn_size: data.len() as u64 }),
                ..Sample::default()
            };
            file.sample(pid, Misc::USER, &sample);
        }
    }
    file.finish(architecture);
}

/// The same of the frames that gdb saw.
fn frames_seen(processes: &[Process]) -> Vec<Vec<(String, u64)>> {
    let place = |maps: &[([u64; 3], PathBuf)], address: u64| {
        let holds = |([start, end, _], _): &&([u64; 3], PathBuf)| (*start..*end).contains(&address);
        let ([start, _, offset], path) = maps.iter().find(holds).unwrap();
        let at = address - start + offset;
        let elf = fs::read(path).unwrap();
        let elf = object::File::parse(elf.as_slice()).unwrap();
        let mut segments = elf.segments().map(|segment| (segment.address(), segment.file_range()));
        let (linked, (begin, _)) =
            segments.find(|(_, (begin, size))| (*begin..begin + size).contains(&at)).unwrap();
        (path.display().to_string(), at - begin + linked)
    };
    let stacks = processes.iter().flat_map(|process| process.seen.iter().map(|seen| (&process.maps, seen)));
    stacks.map(|(maps, seen)| seen.chain.iter().map(|address| place(maps, *address)).collect()).collect()
}

/// In how many of all samples all frames are those that gdb saw.
fn alike(recording: &Recording, processes: &[Process]) -> (usize, usize) {
    let (ours, seen) = (frames(recording), frames_seen(processes));
    assert_eq!(ours.len(), seen.len());
    (ours.iter().zip(&seen).filter(|(ours, seen)| ours == seen).count(), seen.len())
}

#[test]
fn stacks_of_aarch64_are_those_that_gdb_saw() {
    let folder = folder();
    let path = folder.path().join("perf.data");
    // Rules of the runtime linker do not count what the linkage table has pushed. gdb goes by them, and finds no code in the
    // caller's frame, in two samples.
    for (name, right) in [("c", (25, 25)), ("static", (25, 25)), ("cpp", (25, 25)), ("start", (23, 25))] {
        let processes = fixture(name, folder.path());
        // The file's header tells what it is, or else the first file that is mapped.
        for architecture in [Some("aarch64"), None] {
            write(&path, &processes, ALL, architecture);
            let recording = replay(&path);
            assert_eq!(alike(&recording, &processes), right, "{name}");
            assert_eq!(recording.warnings, [""; 0]);
        }
    }
}

/// The unwinder's program of many stacks with signed return addresses, under qemu, with the callers that glibc's `backtrace()`
/// found; `capture.h` there has the format.
fn signed_stacks(program: &Path) -> Process {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../unwinder/tests/programs/walks.c");
    let mut compiler = Command::new(COMPILER);
    compiler.args(["-O2", "-w", "-pthread", "-static", "-mbranch-protection=standard", "-o"]);
    assert!(compiler.arg(program).arg(source).status().unwrap().success());
    let output = Command::new(EMULATOR).args(["-cpu", "max"]).arg(program).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut left = Left(&output.stdout);
    let mut process = Process { maps: Vec::new(), seen: Vec::new() };
    while !left.0.is_empty() {
        match left.word() as u8 {
            b'V' => drop(left.sized()),
            b'C' => drop((left.word(), left.sized())),
            b'M' => {
                let lines = std::str::from_utf8(left.sized()).unwrap().lines();
                let lines = lines.filter(|line| line.ends_with(program.to_str().unwrap()));
                let lines = lines.map(|line| line.split(' ').collect::<Vec<_>>());
                let maps = lines.filter(|fields| fields[1].contains('x')).map(|fields| {
                    let (start, end) = fields[0].split_once('-').unwrap();
                    let places = [start, end, fields[2]].map(|hex| u64::from_str_radix(hex, 16).unwrap());
                    (places, program.to_owned())
                });
                process.maps = maps.collect();
            }
            b'S' => {
                let name =
                    left.bytes(32).trim_ascii_end().split(|byte| *byte == 0).next().unwrap().to_owned();
                let seen = sample(&mut left);
                if ["recursion", "alloca", "realigned"].map(str::as_bytes).contains(&name.as_slice()) {
                    process.seen.push(seen);
                }
            }
            other => panic!("{other}"),
        }
    }
    process
}

/// The functions that addresses are in, as binutils name them.
fn named_by_binutils(program: &Path, addresses: &[u64]) -> Vec<String> {
    let mut binutils = Command::new(ADDR2LINE);
    binutils.arg("-f").arg("-e").arg(program).args(addresses.iter().map(|address| format!("{address:x}")));
    let text = String::from_utf8(binutils.output().unwrap().stdout).unwrap();
    text.lines().step_by(2).map(str::to_owned).collect()
}

#[test]
fn signed_return_addresses_are_followed_and_named() {
    let test = "signed_return_addresses_are_followed_and_named";
    let Some(_live) = live_with(test, &[COMPILER, EMULATOR, ADDR2LINE]) else { return };
    let folder = folder();
    let (program, path) = (folder.path().join("walks"), folder.path().join("perf.data"));
    let process = signed_stacks(&program);
    let is_signed = |stack: &[u8], chain: &[u64]| {
        let words = stack.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        words.filter(|word| word >> 48 != 0 && chain.contains(&(word & 0xffff_ffff_ffff))).count()
    };
    assert_eq!(process.seen.len(), 3);
    // A code may be zero by chance.
    assert!(process.seen.iter().all(|seen| is_signed(&seen.stack, &seen.chain) > 1));
    write(&path, std::slice::from_ref(&process), ALL, Some("aarch64"));

    let folded = folder.path().join("out.folded");
    let mut converter = collector();
    converter.arg("convert").arg(&path).args(["--no-inline", "-o"]).arg(&folded);
    assert!(converter.status().unwrap().success());
    let stacks: Vec<_> = fs::read_to_string(folded).unwrap().lines().map(Stack::parse).collect();
    assert_eq!(stacks.len(), 3);
    for Seen { chain, .. } in &process.seen {
        let calls: Vec<u64> =
            chain.iter().enumerate().map(|(at, address)| address - u64::from(at > 0)).collect();
        let names = named_by_binutils(&program, &calls);
        // Beyond it, the C library has several names for a place.
        let main = names.iter().position(|name| name == "main").unwrap();
        let is_same = |stack: &&Stack| {
            let ours: Vec<&str> = stack.user_frames().collect();
            ours.len() == names.len()
                && ours.iter().rev().zip(&names[..=main]).all(|(ours, name)| ours == name)
        };
        assert!(stacks.iter().any(|stack| is_same(&stack)), "{names:?} {stacks:?}");
    }
}

#[test]
fn stacks_larger_than_the_copy_are_cut() {
    let folder = folder();
    let path = folder.path().join("perf.data");
    let processes = fixture("big_frame", folder.path());
    write(&path, &processes, ALL, Some("aarch64"));
    let recording = replay(&path);
    assert_eq!(recording.stats.stacks, [("truncated", 6)].into());
    for (ours, seen) in frames(&recording).iter().zip(frames_seen(&processes)) {
        let (end, known) = ours.split_last().unwrap();
        assert!(
            *end == Default::default() && !known.is_empty() && seen.starts_with(known),
            "{ours:?} {seen:?}"
        );
    }
}

#[test]
fn registers_that_were_not_recorded_are_told() {
    let folder = folder();
    let path = folder.path().join("perf.data");
    let processes = fixture("c", folder.path());
    // Frame pointer, link register, stack pointer and program counter.
    write(&path, &processes, 0xf << 29, Some("aarch64"));
    assert_eq!(alike(&replay(&path), &processes), (25, 25));
    // Without the link register, a function that calls none has no caller.
    write(&path, &processes, ALL & !(1 << 30), Some("aarch64"));
    let recording = replay(&path);
    assert_eq!(recording.stats.stacks, [("not_walked", 25)].into());
    for (ours, seen) in frames(&recording).iter().zip(frames_seen(&processes)) {
        assert_eq!(*ours, [seen[0].clone(), Default::default()]);
    }
    let told = recording.warnings.join(" ");
    assert!(told.contains("25 stacks") && told.contains("without `--user-regs`"), "{told}");
}
