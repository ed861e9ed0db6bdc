//! A recording of a process that maps an image of GCC's as Wine does in; which memory is its code out.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use collector_common::ids::Nanos;
use collector_common::record::ModuleKind;

use super::*;
use crate::modules::RecordedFiles;

/// Where GCC's linker puts the first byte of code.
const TEXT: u64 = 0x1000;

/// An image as GCC links it, whose code begins where no page does, and where that is in the file.
fn image(folder: &Path) -> (PathBuf, u64) {
    let [source, image] = ["source.c", "main.exe"].map(|name| folder.join(name));
    std::fs::write(&source, "int main(void) { return 0; }").unwrap();
    let compiled = Command::new("x86_64-w64-mingw32-gcc").arg("-o").args([&image, &source]).status();
    assert!(compiled.unwrap().success());
    let bytes = std::fs::read(&image).unwrap();
    let name = bytes.windows(8).position(|bytes| bytes == b".text\0\0\0").unwrap();
    let word = |at| u32::from_le_bytes(*bytes[name + at..].first_chunk().unwrap());
    assert_eq!((u64::from(word(12)), word(20) % 0x1000 > 0), (TEXT, true));
    (image, word(20).into())
}

fn mapped(start: u64, path: &[u8]) -> MappedFile<'_> {
    MappedFile {
        start: Avma(start),
        end: Avma(start + 0x1000),
        file_offset: FileOffset(if path.starts_with(b"//") { start } else { 0 }),
        identity: None,
        build_id: None,
        path,
        thread: Tid(1),
        since: Nanos(0),
    }
}

/// The modules of a recording that ended a minute from now, and of its process.
fn recorded() -> (Modules, ExportMachine, ProcessId) {
    let files = RecordedFiles::new(SystemTime::now() + Duration::from_mins(1), false);
    let mut machine = ExportMachine::default();
    let process = machine.add_process(Pid(1), "main.exe", None, Nanos(0));
    (Modules::of_recording(files), machine, process)
}

#[test]
fn memory_above_the_headers_of_an_image_is_its_code() {
    const BASE: u64 = 0x1_4000_0000;
    let folder = tempfile::tempdir().unwrap();
    let (path, offset) = image(folder.path());
    let (mut modules, mut machine, process) = recorded();
    let mut resolve = |modules: &mut Modules, start: u64| {
        modules.resolve(&mut machine, process, Pid(1), &mapped(start, b"//anon"))
    };
    let before = resolve(&mut modules, BASE + TEXT);
    modules.data_mapped(process, &mapped(BASE, path.as_os_str().as_bytes()));
    let code = resolve(&mut modules, BASE + TEXT);
    assert_eq!((code.bias, code.file_offset), (BASE, FileOffset(offset)));
    let next = resolve(&mut modules, BASE + TEXT + 0x1000);
    assert_eq!((next.module, next.file_offset), (code.module, FileOffset(offset + 0x1000)));
    // Where it has data, where it has nothing, and below it.
    for start in [BASE + 0xa000, BASE + 0x1000_0000, BASE - 0x1000] {
        assert_eq!(resolve(&mut modules, start).module, before.module, "{start:#x}");
    }
    // A process that executes another program has nothing of that.
    modules.executed(process);
    assert_eq!(resolve(&mut modules, BASE + TEXT).module, before.module);
    assert_eq!(machine.module(before.module).kind, ModuleKind::Anonymous(process));
    assert_eq!(machine.string(machine.module(code.module).path), path.to_str().unwrap());
}

#[test]
fn memory_above_other_files_is_none_of_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = image(folder.path());
    let other = folder.path().join("data");
    std::fs::write(&other, vec![0_u8; 0x8000]).unwrap();
    let program = std::env::current_exe().unwrap();
    let (mut modules, mut machine, process) = recorded();
    let mut start = 0x10_0000;
    for file in [other.as_os_str(), program.as_os_str(), OsStr::new("/no/such/file")] {
        start += 0x10_0000;
        modules.data_mapped(process, &mapped(start, file.as_bytes()));
        let above = modules.resolve(&mut machine, process, Pid(1), &mapped(start + TEXT, b"//anon"));
        assert_eq!(machine.module(above.module).kind, ModuleKind::Anonymous(process));
    }
    assert_eq!(machine.modules().len(), 2, "no file became a module: {:?}", machine.modules());
    // Only the beginning of a file tells, and an image that is executed as it is mapped needs no other.
    let part =
        MappedFile { file_offset: FileOffset(0x1000), ..mapped(0x90_0000, path.as_os_str().as_bytes()) };
    modules.data_mapped(process, &part);
    let above = modules.resolve(&mut machine, process, Pid(1), &mapped(0x90_0000 + TEXT, b"//anon"));
    assert_eq!(machine.module(above.module).kind, ModuleKind::Anonymous(process));
}
