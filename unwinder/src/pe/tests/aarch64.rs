//! ARM64 images in qemu, whose debugger's stub steps through them.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use object::{Object, ObjectSection};

use super::packed::{self, Fields};
use super::remote::Remote;
use super::{
    CLANG, Call, LLD, Run, Step, are_installed, assert_every_instruction, build_clang, program, succeed,
};
use crate::aarch64::{Aarch64, LR, PC, Registers, ReturnAddressMask, SP};

const GCC: &str = "aarch64-linux-gnu-gcc";
const QEMU: &str = "qemu-aarch64-static";
const MASK: ReturnAddressMask = ReturnAddressMask::of_address_bits(48);
const MAX_STEPS: usize = 40_000;

/// x19 to x29.
const KEPT: [u16; 11] = [19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29];

const TARGET: &str = "aarch64-pc-windows-msvc";

/// Runs the image that `build` makes, whose path it is told.
fn run(build: impl FnOnce(&Path)) -> Run<Aarch64> {
    let folder = tempfile::tempdir().unwrap();
    let [image, runner, socket] = ["image.exe", "runner", "socket"].map(|name| folder.path().join(name));
    build(&image);
    succeed(Command::new(GCC).args(["-static", "-O1", "-o"]).arg(&runner).arg(program("pe_run.c")));
    let steps = steps(&image, &runner, &socket);
    Run { image: std::fs::read(image).unwrap(), steps }
}

/// `hint #100`, which marks an interrupt in `windows_shapes_arm64.s`.
const INTERRUPT: u32 = 0xd503_2c9f;
/// `br x17`, half of an instruction that returns from one.
const HALF_RETURN: u32 = 0xd61f_0220;

/// The account of calls is kept by what the processor does: a call leaves the address behind itself in `x30`, and goes
/// elsewhere; a return goes there with the `sp` of the call.
fn steps(image: &Path, runner: &Path, socket: &Path) -> Vec<Step<Aarch64>> {
    let entry = object::File::parse(std::fs::read(image).unwrap().as_slice()).unwrap().entry();
    let mut qemu = Command::new(QEMU);
    qemu.args(["-cpu", "max", "-g"]).arg(socket).arg(runner).arg(image).stdout(Stdio::null());
    let mut qemu = qemu.spawn().unwrap();
    let mut remote = Remote::new(connect(&mut qemu, socket));
    remote.run_to(entry);
    let mut at = remote.registers();
    let (end, bottom) = (at[usize::from(LR)], at[usize::from(SP)]);
    let kept = |at: &[u64]| KEPT.map(|register| at[usize::from(register)]).to_vec();
    let mut calls = vec![Call { return_address: end, sp: bottom, kept: kept(&at), interrupted: false }];
    let mut steps = Vec::new();
    while at[usize::from(PC)] != end && steps.len() < MAX_STEPS {
        let (pc, sp) = (at[usize::from(PC)], at[usize::from(SP)]);
        let general: [u64; 31] = *at.first_chunk().unwrap();
        let instruction = u32::from_le_bytes(*remote.memory(pc, 4).first_chunk().unwrap());
        if instruction == INTERRUPT {
            calls.push(Call {
                return_address: general[17],
                sp: general[16],
                kept: kept(&at),
                interrupted: true,
            });
            remote.step();
            remote.step();
            at = remote.registers();
            continue;
        }
        if instruction != HALF_RETURN {
            steps.push(Step {
                registers: Registers::new(pc, sp, general, MASK),
                stack_base: sp,
                stack: remote.memory(sp, (bottom - sp) as usize + 16),
                calls: calls.iter().rev().cloned().collect(),
            });
        }
        remote.step();
        let next = remote.registers();
        let (next_pc, next_lr) = (next[usize::from(PC)], next[usize::from(LR)]);
        if next_pc != pc + 4 && next_lr == pc + 4 {
            calls.push(Call { return_address: next_lr, sp, kept: kept(&at), interrupted: false });
        }
        while calls
            .last()
            .is_some_and(|call| call.return_address == next_pc && call.sp == next[usize::from(SP)])
        {
            calls.pop();
        }
        at = next;
    }
    qemu.kill().unwrap();
    qemu.wait().unwrap();
    steps
}

/// qemu listens once it has loaded the program.
fn connect(qemu: &mut Child, socket: &Path) -> UnixStream {
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return stream,
            Err(error) => assert!(qemu.try_wait().unwrap().is_none(), "qemu ended: {error}"),
        }
        std::thread::yield_now();
    }
}

#[test]
fn every_instruction_of_arm64_programs() {
    if !are_installed(&[CLANG, LLD, GCC, QEMU]) {
        return;
    }
    let sources = ["windows.c", "windows_shapes_arm64.s"].map(program);
    for flags in [&["-O0"][..], &["-O1", "-mbranch-protection=pac-ret"], &["-O2"], &["-Os"]] {
        let run = run(|image| build_clang(TARGET, &sources, flags, image));
        assert!(assert_every_instruction(&run, &KEPT) > 500, "{flags:?}");
    }
}

/// Where clang packs unwind data by itself, it is what the fields say; where it does not, it is replaced by that.
#[test]
fn every_instruction_of_arm64_functions_with_packed_data() {
    if !are_installed(&[CLANG, LLD, GCC, QEMU]) {
        return;
    }
    let all = Fields::all();
    let (text, lengths) = packed::assembly(&all);
    let run = run(|image| {
        let source = image.with_file_name("packed.s");
        std::fs::write(&source, text).unwrap();
        build_clang(TARGET, &[source], &[], image);
        let mut bytes = std::fs::read(image).unwrap();
        let file = object::File::parse(bytes.as_slice()).unwrap();
        let (at, size) = file.section_by_name(".pdata").unwrap().file_range().unwrap();
        let mut by_clang = 0;
        for (entry, (fields, length)) in all.iter().zip(lengths).enumerate() {
            let data = &mut bytes[at as usize..][..size as usize][8 * entry + 4..][..4];
            let packed = fields.data(length).to_le_bytes();
            if data[0] & 3 != 0 {
                assert_eq!(*data, packed, "{fields:?}");
                by_clang += 1;
            }
            data.copy_from_slice(&packed);
        }
        eprintln!("clang packed {by_clang} of {}", all.len());
        assert!(by_clang > 100);
        std::fs::write(image, bytes).unwrap();
    });
    assert!(assert_every_instruction(&run, &KEPT) > 5000);
}
