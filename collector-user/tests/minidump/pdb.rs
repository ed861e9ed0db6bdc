//! A dump of a program that LLVM linked, whose functions its PDB names: as a symbol server has it, or beside the dump.

use std::fs;
use std::path::Path;
use std::process::Command;

use object::Object as _;
use object::read::pe::PeFile64;

use crate::made::{BASE, MODULES, Module, x64};
use crate::prerequisites::{find, skip};

const COMPILER: &str = "clang-22";
const LINKER: &str = "lld-link-22";

/// Makes `main.exe`, which begins in the function `begin`, and `main.pdb`.
fn build(folder: &Path) {
    fs::write(folder.join("source.c"), "int begin(void) { return 0; }").unwrap();
    let compile = ["--target=x86_64-pc-windows-msvc", "-g", "-gcodeview", "-c", "source.c"];
    let link = ["/debug", "/nodefaultlib", "/entry:begin", "/subsystem:console", "/out:main.exe", "source.o"];
    for (tool, args) in [(COMPILER, &compile[..]), (LINKER, &link)] {
        assert!(Command::new(tool).args(args).current_dir(folder).status().unwrap().success());
    }
}

#[test]
fn functions_are_named_by_the_pdb_that_the_dump_tells() {
    let test = "functions_are_named_by_the_pdb_that_the_dump_tells";
    if let Some(missing) = [COMPILER, LINKER].into_iter().find(|tool| find(tool).is_none()) {
        skip(test, &format!("{missing} is not on PATH"));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    build(folder.path());
    let bytes = fs::read(at("main.exe")).unwrap();
    let image = PeFile64::parse(&*bytes).unwrap();
    let headers = image.nt_headers();
    let (date, size) = (
        headers.file_header.time_date_stamp.get(object::LittleEndian),
        headers.optional_header.size_of_image.get(object::LittleEndian),
    );
    let entry = headers.optional_header.address_of_entry_point.get(object::LittleEndian);
    let pdb = image.pdb_info().unwrap().unwrap();

    // A thread at its first instruction.
    let mut program = x64();
    program.context[0xf8..0x100].copy_from_slice(&(BASE + u64::from(entry)).to_le_bytes());
    let mut made = program.dump(false);
    let module = Module {
        path: r"Q:\app\main.exe",
        size,
        date,
        guid: pdb.guid(),
        age: pdb.age(),
        pdb: r"Q:\build\main.pdb",
    };
    let module = made.module(&module);
    let list = made.put(&module);
    made.replace(MODULES, module.len() as u32, list);
    let dump = at("dumps/x.dmp");
    fs::create_dir(at("dumps")).unwrap();
    fs::write(&dump, made.finish()).unwrap();
    let innermost = || {
        let mut collector = Command::new(env!("CARGO_BIN_EXE_collector"));
        collector.arg("convert").arg(&dump).args(["--format", "folded", "-o", "-"]);
        let output = collector.env("_NT_SYMBOL_PATH", at("symbols")).output().unwrap();
        let folded = String::from_utf8(output.stdout).unwrap();
        let line = folded.lines().find(|line| line.starts_with("The worker;")).unwrap().to_owned();
        line.rsplit_once(';').unwrap().1.to_owned()
    };
    let unnamed = format!("main.exe+{entry:#x} 1");
    assert_eq!(innermost(), unnamed);
    let beside = at("dumps/main.pdb");
    fs::rename(at("main.pdb"), &beside).unwrap();
    assert_eq!(innermost(), "begin 1", "beside the dump");
    let digits: Vec<String> = pdb.guid().iter().map(|byte| format!("{byte:02X}")).collect();
    // The first three numbers of a GUID have their lowest bytes first.
    let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let key: String = order.iter().map(|&at| digits[at].as_str()).collect();
    let stored = at("symbols/main.pdb").join(format!("{key}{:X}", pdb.age()));
    fs::create_dir_all(&stored).unwrap();
    fs::rename(&beside, stored.join("main.pdb")).unwrap();
    assert_eq!(innermost(), "begin 1", "as symbol servers have it");
    fs::rename(stored.join("main.pdb"), at("symbols/other.pdb")).unwrap();
    assert_eq!(innermost(), unnamed);
}
