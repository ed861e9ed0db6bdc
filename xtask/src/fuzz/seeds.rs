//! What fuzzing starts from: small ELF files and an object, made here by the C compiler, and the unwind sections of those
//! and of programs of this machine; and PE images of the programs that the unwinder is tested with.
//!
//! Out: `target/fuzz/seeds/elf` and `target/fuzz/seeds/pe` (files), and `target/fuzz/seeds/lookup` (a byte that tells
//! `.eh_frame`, 0, from `.debug_frame`, 1, and the section's first bytes).

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

/// Makes all seeds and returns the folder that has one folder for each target with seeds.
pub(super) fn make(workspace: &Workspace) -> Result<PathBuf> {
    let seeds = workspace.target().join("fuzz/seeds");
    let (files, sections, images) = (seeds.join("elf"), seeds.join("lookup"), seeds.join("pe"));
    for folder in [&files, &sections, &images] {
        fs::create_dir_all(folder).with_context(|| format!("{} can't be made", folder.display()))?;
    }
    let source = seeds.join("seed.c");
    fs::write(&source, SOURCE).with_context(|| format!("{} can't be written", source.display()))?;
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
            section_of(file, section, kind as u8, &sections.join(format!("{name}{section}")))?;
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

/// Writes the first bytes of a file's section behind `kind` to `seed`; nothing where the file has no such section.
fn section_of(file: &Path, section: &str, kind: u8, seed: &Path) -> Result<()> {
    let mut objcopy = Command::new("objcopy");
    objcopy.args(["--output-target", "binary", "--only-section", section, "--decompress-debug-sections"]);
    objcopy.args(["--set-section-flags", &format!("{section}=alloc")]).arg(file).arg(seed);
    command::output(&mut objcopy)?;
    let mut bytes = fs::read(seed).with_context(|| format!("{} can't be read", seed.display()))?;
    if bytes.is_empty() {
        return fs::remove_file(seed).with_context(|| format!("{} can't be removed", seed.display()));
    }
    bytes.truncate(SECTION_PART);
    bytes.insert(0, kind);
    fs::write(seed, bytes).with_context(|| format!("{} can't be written", seed.display()))
}
