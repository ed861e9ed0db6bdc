//! What fuzzing starts from: small ELF files and an object, made here by the C compiler, and the unwind sections of those
//! and of programs of this machine; and PE images of the programs that the unwinder is tested with.
//!
//! Out: `target/fuzz/seeds/elf` and `target/fuzz/seeds/pe` (files); `target/fuzz/seeds/lookup` (a byte that tells
//! `.eh_frame`, 0, from `.debug_frame`, 1, and the section's first bytes); and `target/fuzz/seeds/debug` (a byte, two lengths,
//! and the first bytes of three sections).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::workspace::Workspace;

/// Functions with saved registers, a realigned stack and a variable frame.
const SOURCE: &str = "
int outside(void *, int);
int saves(int a, int b, int c, int d) { int s = outside(&a, b); s += outside(&c, d); return s + a + b + c + d; }
int realigns(int n) { int block[64] __attribute__((aligned(64))); return outside(block, n) + block[n]; }
int grows(int n) { int block[n]; return outside(block, n) + block[n / 2]; }
int outside(void *p, int n) { return n ? saves(n, n - 1, *(int *)p, 0) + realigns(n) + grows(n) : 0; }
";

/// What compiles `SOURCE`, by the name of the seed.
const VARIANTS: [(&str, &[&str]); 5] = [
    ("shared", &["-shared", "-fPIC"]),
    ("cold", &["-shared", "-fPIC", "-Wl,--no-eh-frame-hdr"]),
    ("object", &["-c", "-ffunction-sections"]),
    ("debug", &["-shared", "-fPIC", "-g1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]),
    ("packed", &["-shared", "-fPIC", "-g1", "-fno-asynchronous-unwind-tables", "-gz", "-fno-unwind-tables"]),
];

/// Targets of clang, what is compiled for each, and with which options, by the name of the seed.
const IMAGES: [(&str, &str, [&str; 2], &[&str]); 5] = [
    ("x64", "x86_64", ["windows.c", "windows_shapes.s"], &["-O2"]),
    ("x64-frames", "x86_64", ["windows.c", "windows_shapes.s"], &["-O0"]),
    ("x64-codes", "x86_64", ["windows.c", "windows_shapes.s"], &["-O2", "-fwinx64-eh-unwindv2=best-effort"]),
    ("arm64", "aarch64", ["windows.c", "windows_shapes_arm64.s"], &["-Os"]),
    (
        "arm64-signed",
        "aarch64",
        ["windows.c", "windows_shapes_arm64.s"],
        &["-O1", "-mbranch-protection=pac-ret"],
    ),
];

/// Bytes of a section that are taken.
const SECTION_PART: usize = 8 << 10;

/// Sections that a seed of `debug` has, and the bytes of each that are taken.
const DEBUG_PARTS: [(&str, usize); 3] =
    [(".eh_frame", 8 << 10), (".eh_frame_hdr", 2 << 10), (".debug_frame", 4 << 10)];

/// What begins a seed of `debug`: x86-64, and all sections in the main file, or all in the debug file.
const DEBUG_KINDS: [u8; 2] = [0, 0xe1];

/// Makes all seeds and returns the folder that has one folder for each target with seeds.
pub(super) fn make(workspace: &Workspace) -> Result<PathBuf> {
    let seeds = workspace.target().join("fuzz/seeds");
    let [files, sections, images, debug] = ["elf", "lookup", "pe", "debug"].map(|target| seeds.join(target));
    for folder in [&files, &sections, &images, &debug] {
        fs::create_dir_all(folder).with_context(|| format!("{} can't be made", folder.display()))?;
    }
    let source = seeds.join("seed.c");
    write(&source, SOURCE.as_bytes())?;
    let mut sources = vec![env::current_exe()?, command::find_program("ld").context("ld is not on PATH")?];
    for (name, flags) in VARIANTS {
        let file = files.join(name);
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-nostdlib", "-Wl,-z,noseparate-code", "-Wl,--build-id=none"]).args(flags);
        command::run(cc.arg("-o").arg(&file).arg(&source))?;
        sources.push(file);
    }
    for (kind, section) in [".eh_frame", ".debug_frame"].into_iter().enumerate() {
        for file in &sources {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let bytes = section_of(file, section, SECTION_PART, &seeds)?;
            if !bytes.is_empty() {
                write(
                    &sections.join(format!("{name}{section}")),
                    &[&[kind as u8], bytes.as_slice()].concat(),
                )?;
            }
        }
    }
    for file in &sources {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let mut lengths = Vec::new();
        let mut content = Vec::new();
        for (section, most) in DEBUG_PARTS {
            let bytes = section_of(file, section, most, &seeds)?;
            lengths.extend((bytes.len() as u16).to_le_bytes());
            content.extend(bytes);
        }
        // The last section ends with the seed.
        lengths.truncate(4);
        for kind in DEBUG_KINDS {
            write(&debug.join(format!("{name}-{kind}")), &[&[kind], &lengths[..], &content].concat())?;
        }
    }
    for (name, architecture, sources, options) in IMAGES {
        let objects = seeds.join("objects");
        fs::create_dir_all(&objects).with_context(|| format!("{} can't be made", objects.display()))?;
        let mut link = Command::new("lld-link-22");
        link.args(["/nodefaultlib", "/entry:entry", "/fixed:no", "/subsystem:console", "/base:0x10000000"]);
        link.arg(format!("/out:{}", images.join(name).display()));
        for source in sources {
            let object = objects.join(source);
            let mut clang = Command::new("clang-22");
            clang.arg(format!("--target={architecture}-pc-windows-msvc")).args(["-w", "-ffreestanding"]);
            clang.args(options).args(["-fasynchronous-unwind-tables", "-c", "-o"]).arg(&object);
            command::run(clang.arg(workspace.join("unwinder/tests/programs").join(source)))?;
            link.arg(object);
        }
        command::run(&mut link)?;
    }
    Ok(seeds)
}

/// The first bytes of a file's section, `most` of them, by way of a file in `folder`; none where it has no such section.
fn section_of(file: &Path, section: &str, most: usize, folder: &Path) -> Result<Vec<u8>> {
    let copy = folder.join("section");
    let mut objcopy = Command::new("objcopy");
    objcopy.args(["--output-target", "binary", "--only-section", section, "--decompress-debug-sections"]);
    objcopy.args(["--set-section-flags", &format!("{section}=alloc")]).arg(file).arg(&copy);
    command::output(&mut objcopy)?;
    let mut bytes = fs::read(&copy).with_context(|| format!("{} can't be read", copy.display()))?;
    bytes.truncate(most);
    Ok(bytes)
}

fn write(seed: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(seed, bytes).with_context(|| format!("{} can't be written", seed.display()))
}
