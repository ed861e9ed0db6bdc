//! The table against the processor: programs for Windows run instruction by instruction (`tests/programs/pe_steps.c`; for
//! ARM64 in qemu), and at each of them every caller's address and registers are those that the run's own account of calls
//! has.

mod aarch64;
mod packed;
mod reads;
mod remote;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use reads::{Shared, Watched};

use crate::expression::Steps;
use crate::general::{GeneralStep, Known};
use crate::pe::PeMachine;
use crate::x86_64::X86_64;
use crate::{
    AddressSpace, Architecture, CopiedStack, FrameKind, Mapping, Registers, StopReason, UnwindTable, Unwinder,
};

const IMAGE_BASE: &str = "0x10000000";
const GCC: &str = "x86_64-w64-mingw32-gcc";
const CLANG: &str = "clang-22";
const LLD: &str = "lld-link-22";

/// rbx, rbp, rsi, rdi, r12 to r15 by DWARF number: what a function leaves as it was.
const KEPT: [u16; 8] = [3, 6, 4, 5, 12, 13, 14, 15];

#[derive(Clone)]
struct Call {
    return_address: u64,
    sp: u64,
    /// By the architecture's list of what a function leaves as it was.
    kept: Vec<u64>,
    interrupted: bool,
}

/// A stop before an instruction.
struct Step<A: Architecture> {
    registers: Registers<A>,
    stack_base: u64,
    stack: Vec<u8>,
    /// Innermost first; the last one is of the program that called the image.
    calls: Vec<Call>,
}

struct Run<A: Architecture> {
    image: Vec<u8>,
    steps: Vec<Step<A>>,
}

struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(*self.bytes(8).first_chunk().unwrap())
    }

    fn step(&mut self) -> Step<X86_64> {
        let ip = self.word();
        let registers = Registers::<X86_64>::new(ip, std::array::from_fn(|_| self.word()));
        let (stack_base, length) = (self.word(), self.word());
        let stack = self.bytes(length as usize).to_vec();
        let call = |words: &mut Self| Call {
            return_address: words.word(),
            sp: words.word(),
            kept: KEPT.map(|_| words.word()).to_vec(),
            interrupted: words.word() != 0,
        };
        let calls = (0..self.word()).map(|_| call(self)).collect();
        Step { registers, stack_base, stack, calls }
    }
}

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Programs that a build needs; a line says so where one is not installed.
fn are_installed(programs: &[&str]) -> bool {
    programs.iter().all(|program| {
        let found = Command::new(program).arg("--version").output().is_ok();
        if !found {
            eprintln!("SKIPPED: {program} is not installed");
        }
        found
    })
}

fn succeed(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Runs the image that `build` makes, whose path it is told.
fn run(build: impl FnOnce(&Path)) -> Run<X86_64> {
    let folder = tempfile::tempdir().unwrap();
    let [image, runner] = ["image.exe", "runner"].map(|name| folder.path().join(name));
    build(&image);
    succeed(Command::new("cc").args(["-O1", "-o"]).arg(&runner).arg(program("pe_steps.c")));
    let output = succeed(Command::new(&runner).arg(&image).env_clear());
    let mut words = Words(&output);
    let mut steps = Vec::new();
    while !words.0.is_empty() {
        steps.push(words.step());
    }
    Run { image: std::fs::read(image).unwrap(), steps }
}

fn run_gcc(flags: &[&str]) -> Run<X86_64> {
    run(|image| {
        let mut compile = Command::new(GCC);
        compile.args(["-w", "-nostdlib", "-ffreestanding", "-Wl,-e,entry", "-Wl,--disable-dynamicbase"]);
        compile.arg(format!("-Wl,--image-base={IMAGE_BASE}")).args(flags).arg("-o").arg(image);
        succeed(compile.args(["windows.c", "windows_shapes.s"].map(program)));
    })
}

/// Builds an image for `target` with clang.
fn build_clang(target: &str, sources: &[PathBuf], flags: &[&str], image: &Path) {
    let mut link = Command::new(LLD);
    link.args(["/nodefaultlib", "/entry:entry", "/fixed:no", "/subsystem:console"]);
    link.arg(format!("/base:{IMAGE_BASE}")).arg(format!("/out:{}", image.display()));
    for source in sources {
        let object = image.with_file_name(source.file_name().unwrap()).with_extension("obj");
        let mut compile = Command::new(CLANG);
        compile.arg(format!("--target={target}")).args(["-w", "-ffreestanding"]).args(flags);
        compile.args(["-fasynchronous-unwind-tables", "-c", "-o"]).arg(&object).arg(source);
        succeed(&mut compile);
        link.arg(object);
    }
    succeed(&mut link);
}

fn run_clang(flags: &[&str]) -> Run<X86_64> {
    let sources = ["windows.c", "windows_shapes.s"].map(program);
    run(|image| build_clang("x86_64-pc-windows-msvc", &sources, flags, image))
}

struct Space<'a, A: Architecture> {
    table: &'a UnwindTable<A>,
    start: u64,
    end: u64,
    bias: u64,
}

impl<'a, A: Architecture> Space<'a, A> {
    fn new(table: &'a UnwindTable<A>) -> Self {
        Self::at(table, 0)
    }

    fn at(table: &'a UnwindTable<A>, bias: u64) -> Self {
        let (start, size, _) = table.text();
        let start = start + bias;
        Space { table, start, end: start + u64::from(size), bias }
    }
}

impl<A: Architecture> AddressSpace<A> for Space<'_, A> {
    fn lookup(&self, address: u64) -> Option<Mapping<'_, A>> {
        (self.start..self.end).contains(&address).then_some(Mapping {
            start: self.start,
            end: self.end,
            bias: self.bias,
            table: Some(self.table),
        })
    }
}

/// Whether the walk from a stop has the run's own account of calls.
fn walked<A: Architecture>(space: &Space<'_, A>, step: &Step<A>) -> Result<(), String> {
    let stack = CopiedStack::new(step.stack_base, &step.stack, 0);
    let mut frames = Vec::new();
    let stop = Unwinder::new().unwind(space, &step.registers, &stack, |frame| frames.push(frame));
    let addresses = frames.iter().map(|frame| frame.address);
    let returns = step.calls.iter().map(|call| call.return_address);
    let expected = [step.registers.ip()].into_iter().chain(returns);
    let interrupted = step.calls.iter().map(|call| call.interrupted);
    let is_right = stop == StopReason::NoMapping
        && addresses.eq(expected.clone())
        && frames.iter().all(|frame| !frame.heuristic)
        && frames.iter().skip(1).map(|frame| frame.kind == FrameKind::Ip).eq(interrupted);
    is_right
        .then_some(())
        .ok_or_else(|| format!("{stop:?}, {frames:x?}, not {:x?}", expected.collect::<Vec<_>>()))
}

fn assert_walked<A: Architecture>(space: &Space<'_, A>, step: &Step<A>) {
    walked(space, step).unwrap();
}

/// Every register of every caller, by the rules in full.
fn assert_restored<A: Architecture>(table: &UnwindTable<A>, step: &Step<A>, kept_registers: &[u16]) {
    let stack = CopiedStack::new(step.stack_base, &step.stack, 0);
    let mut registers = step.registers;
    for (depth, call) in step.calls.iter().enumerate() {
        let at = format!("frame {depth} of the stack at {:#x}", step.registers.ip());
        let exact = depth == 0 || step.calls[depth - 1].interrupted;
        let address = registers.ip() - u64::from(!exact);
        let id = table.rule_id(address).unwrap_or_else(|| panic!("{at} has no rule"));
        let steps = Steps::of_frames(1);
        let general =
            GeneralStep { registers: &registers, known: Known::All, stack: &stack, bias: 0, steps: &steps };
        let caller = table.with_rule(id, |rule| general.apply(rule)).unwrap().unwrap();
        assert_eq!((caller.ip(), caller.sp()), (call.return_address, call.sp), "{at}");
        let kept: Vec<u64> = kept_registers.iter().map(|&register| caller.get(register).unwrap()).collect();
        assert_eq!(kept, call.kept, "{at}");
        registers = caller;
    }
}

/// Returns how many distinct instructions were compared.
fn assert_every_instruction<A: PeMachine>(run: &Run<A>, kept: &[u16]) -> usize {
    let image = Watched::new(&run.image, 0..0);
    let table = UnwindTable::<A>::from_pe(Shared(Arc::clone(&image))).unwrap();
    assert_eq!(image.read_of_text(), 0);
    let space = Space::new(&table);
    for step in &run.steps {
        assert_walked(&space, step);
        assert_restored(&table, step, kept);
    }
    let places: std::collections::BTreeSet<u64> = run.steps.iter().map(|step| step.registers.ip()).collect();
    eprintln!("{} stops at {} instructions; {:?}", run.steps.len(), places.len(), table.size_report());
    places.len()
}

#[test]
fn every_instruction_of_gcc_programs() {
    if !are_installed(&[GCC]) {
        return;
    }
    for optimization in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
        for more in ["-fomit-frame-pointer", "-fno-omit-frame-pointer"] {
            assert!(
                assert_every_instruction(&run_gcc(&[optimization, more]), &KEPT) > 500,
                "{optimization} {more}"
            );
        }
    }
}

/// .NET turns bits of `Machine`, and who records where images are mapped has addresses relative to that.
#[test]
fn an_image_for_linux_that_is_told_of_by_where_it_is_loaded() {
    if !are_installed(&[GCC]) {
        return;
    }
    let mut run = run_gcc(&["-O2", "-fomit-frame-pointer"]);
    let headers = u32::from_le_bytes(*run.image[0x3c..].first_chunk().unwrap()) as usize;
    run.image[headers + 4..headers + 6].copy_from_slice(&0xfd1d_u16.to_le_bytes());
    let table = UnwindTable::<X86_64>::from_pe_by_rva(run.image.clone()).unwrap();
    let space = Space::at(&table, 0x1000_0000);
    run.steps.iter().for_each(|step| assert_walked(&space, step));
    run.image[headers + 4..headers + 6].copy_from_slice(&0xd11d_u16.to_le_bytes());
    assert!(UnwindTable::<X86_64>::from_pe_by_rva(run.image.clone()).is_err(), "ARM64's");
}

/// Unwind information of version 1, and of version 2 for the functions that clang has it for.
#[test]
fn every_instruction_of_clang_programs() {
    if !are_installed(&[CLANG, LLD]) {
        return;
    }
    for optimization in ["-O0", "-O1", "-O2", "-Os"] {
        for version in ["disabled", "best-effort"] {
            let flag = format!("-fwinx64-eh-unwindv2={version}");
            let run = run_clang(&[optimization, &flag]);
            assert!(assert_every_instruction(&run, &KEPT) > 500, "{optimization} {version}");
        }
    }
}
