//! Programs whose rules are not in the file that was run: binutils and xz take them out of it, and the stacks that the
//! whole program had captured of itself are walked with what is left.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use object::{CompressionFormat, Object, ObjectSection};
use tempfile::TempDir;
use unwinder::{Section, StopReason, TableError, UnwindSections, UnwindTable, Unwinder};

use crate::corpus::{self, Run};

/// Runs a program in `folder`.
fn tool(folder: &Path, program: &str, args: &[&str]) {
    let status = Command::new(program).args(args).current_dir(folder).status();
    assert!(status.unwrap_or_else(|error| panic!("{program}: {error}")).success(), "{program} {args:?}");
}

/// A program that was run, and its files taken apart.
struct TakenApart {
    run: Run,
    /// `program`, `main` (without its rules) and `debug` (what `main` lacks).
    folder: TempDir,
}

impl TakenApart {
    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join(name)).unwrap()
    }

    /// Walks all stacks with `table` as the program's.
    fn assert_complete(&mut self, table: UnwindTable) {
        self.run.program().table = Some(Arc::new(table));
        for stack in &self.run.stacks {
            if stack.name == "alternate_stack" {
                continue;
            }
            let (mut frames, mut guessed) = (Vec::new(), false);
            let bytes = stack.stack();
            let stop = Unwinder::new().unwind(&self.run.space, &stack.registers, &bytes, |frame| {
                frames.push(frame.address);
                guessed |= frame.heuristic;
            });
            assert_eq!((frames, stop), (stack.chain.clone(), StopReason::Root), "{}", stack.name);
            assert!(!guessed, "{}", stack.name);
        }
    }
}

/// A run of a program whose rules are in both sections.
fn run(flags: &[&str]) -> Option<Run> {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/both_sections.h");
    corpus::run("walks.c", &[&["-include", header.to_str()?], flags].concat())
}

fn taken_apart() -> Option<TakenApart> {
    let mut run = run(&[])?;
    assert!(run.stacks.len() > 10, "{}", run.stacks.len());
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(folder.path().join("program"), run.program().elf.as_slice()).unwrap();
    tool(folder.path(), "objcopy", &["--only-keep-debug", "program", "debug"]);
    let without_rules = ["--strip-all", "-R", ".eh_frame", "-R", ".eh_frame_hdr", "program", "main"];
    tool(folder.path(), "objcopy", &without_rules);
    Some(TakenApart { run, folder })
}

#[test]
fn rules_are_found_in_gnu_debugdata() {
    let Some(mut parts) = taken_apart() else { return };
    let folder = parts.folder.path();
    tool(folder, "xz", &["--keep", "debug"]);
    tool(folder, "objcopy", &["--add-section", ".gnu_debugdata=debug.xz", "main", "packed"]);
    let without = <UnwindTable>::from_elf(parts.read("main").as_slice());
    assert!(matches!(without, Err(TableError::NoUnwindSection)), "{without:?}");
    let table = <UnwindTable>::from_elf(parts.read("packed").as_slice()).unwrap();
    parts.assert_complete(table);
}

#[test]
fn rules_are_found_in_a_debug_frame_that_binutils_packed() {
    let Some(mut parts) = taken_apart() else { return };
    for (option, format) in [("zlib", CompressionFormat::Zlib), ("zstd", CompressionFormat::Zstandard)] {
        let option = format!("--compress-debug-sections={option}");
        let flags = ["-R", ".eh_frame", "-R", ".eh_frame_hdr", &option, "program", "packed"];
        tool(parts.folder.path(), "objcopy", &flags);
        let packed = parts.read("packed");
        let file = object::File::parse(&*packed).unwrap();
        let section = file.section_by_name(".debug_frame").unwrap();
        assert_eq!(section.compressed_data().unwrap().format, format);
        parts.assert_complete(<UnwindTable>::from_elf(&*packed).unwrap());
    }
}

#[test]
fn a_damaged_gnu_debugdata_has_no_rules() {
    let Some(parts) = taken_apart() else { return };
    let folder = parts.folder.path();
    tool(folder, "xz", &["--keep", "debug"]);
    let whole = parts.read("debug.xz");
    let bomb = vec![0; 80 << 20];
    std::fs::write(folder.join("bomb"), bomb).unwrap();
    tool(folder, "xz", &["bomb"]);
    let middle = whole.len() / 2;
    let mut flipped = whole.clone();
    flipped[middle] ^= 0x10;
    for packed in [&whole[..3], &whole[..middle], &flipped, &parts.read("bomb.xz")] {
        std::fs::write(folder.join("damaged.xz"), packed).unwrap();
        tool(folder, "objcopy", &["--add-section", ".gnu_debugdata=damaged.xz", "main", "packed"]);
        let table = <UnwindTable>::from_elf(parts.read("packed").as_slice());
        let is_said = matches!(&table, Err(TableError::Unread(unread)) if unread.section == ".gnu_debugdata");
        assert!(is_said, "{table:?}");
    }
}

#[test]
fn rules_are_found_in_a_debug_file() {
    let Some(mut parts) = taken_apart() else { return };
    let (main, debug) = (parts.read("main"), parts.read("debug"));
    let table = <UnwindTable>::from_elf_with_debug(&*main, || Some(&*debug)).unwrap();
    parts.assert_complete(table);
}

#[test]
fn rules_of_a_debug_file_hold_where_the_file_was_moved() {
    let Some(mut parts) = taken_apart() else { return };
    // Linked at another address, as the file that a prelinked one was made of; all else is the same.
    let Some(mut elsewhere) = run(&["-Wl,-Ttext-segment=0x10000000"]) else { return };
    let folder = parts.folder.path();
    std::fs::write(folder.join("elsewhere"), elsewhere.program().elf.as_slice()).unwrap();
    let absolute = ["--only-keep-debug", "-R", ".eh_frame", "-R", ".eh_frame_hdr", "elsewhere", "debug"];
    tool(folder, "objcopy", &absolute);
    let text = |file: &[u8]| object::File::parse(file).unwrap().section_by_name(".text").unwrap().address();
    let (main, debug) = (parts.read("main"), parts.read("debug"));
    assert_eq!(text(&debug).wrapping_sub(text(&main)), 0x1000_0000);
    // Addresses in `.debug_frame` are absolute, those in `.eh_frame` relative to the section's own.
    let whole = parts.read("elsewhere");
    let relative = <UnwindTable>::from_elf_with_debug(&*main, || Some(&*whole)).unwrap();
    let table = <UnwindTable>::from_elf_with_debug(&*main, || Some(&*debug)).unwrap();
    assert!(relative.size_report().section_bytes > table.size_report().section_bytes);
    parts.assert_complete(table);
    parts.assert_complete(relative);
}

#[test]
fn what_is_no_debug_file_counts_as_none() {
    let Some(parts) = taken_apart() else { return };
    let (main, whole) = (parts.read("main"), parts.read("program"));
    for debug in [None, Some(&b"no ELF file"[..])] {
        let table = <UnwindTable>::from_elf_with_debug(&*main, || debug);
        assert!(matches!(table, Err(TableError::NoUnwindSection)), "{table:?}");
        assert!(<UnwindTable>::from_elf_with_debug(&*whole, || debug).is_ok());
    }
}

#[test]
fn a_file_with_rules_needs_no_debug_file() {
    let Some(parts) = taken_apart() else { return };
    let mut asked = false;
    let table = <UnwindTable>::from_elf_with_debug(&*parts.read("program"), || {
        asked = true;
        None::<&[u8]>
    });
    assert!(table.is_ok() && !asked);
}

#[test]
fn bare_sections_have_the_rules_of_their_file() {
    let Some(mut parts) = taken_apart() else { return };
    let bytes = parts.read("program");
    let file = object::File::parse(&*bytes).unwrap();
    let section = |name: &str| {
        let section = file.section_by_name(name).unwrap();
        Section { address: section.address(), bytes: section.data().unwrap() }
    };
    let code = [".init", ".plt", ".text", ".fini"].map(section);
    let all = UnwindSections {
        text: code[0].address..code[3].address + code[3].bytes.len() as u64,
        eh_frame: Some(section(".eh_frame")),
        eh_frame_hdr: Some(section(".eh_frame_hdr")),
        debug_frame: Some(section(".debug_frame").bytes),
    };
    let of_file = <UnwindTable>::from_elf(&*bytes).unwrap().size_report();
    let table = UnwindTable::from_sections(&all).unwrap();
    assert_eq!(table.size_report().functions, of_file.functions);
    parts.assert_complete(table);
    let without_hdr = UnwindSections { eh_frame_hdr: None, debug_frame: None, ..all.clone() };
    parts.assert_complete(UnwindTable::from_sections(&without_hdr).unwrap());
}
