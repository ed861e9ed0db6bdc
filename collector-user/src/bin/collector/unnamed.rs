//! What names were looked up for, in; which files could not be read for them, why, and what helps, a line each, out.

use std::io;

use collector_common::record::{ExportMachine, ImageHeader, ImageKey, ModuleId, ModuleKind, Pdb};
use export::hottest::printable;
use export::is_of_windows;
use export::symbolize::{LineError, SymbolError, Symbols, Unreadable};
#[cfg(target_os = "linux")]
use rustix::fs::{Access, access};

/// Files that are named; of more it is told how many they are.
const MOST_LINES: usize = 5;

/// What can be done about an image of Windows that is not here, of which the recording tells neither its PDB nor its date.
const IMAGE_WITHOUT_PDB: &str = "nothing tells which PDB is its: of an .etl, convert one that a tool has merged (`xperf -merge`) on the machine that was \
                                 recorded, with the PDBs in folders of _NT_SYMBOL_PATH; of a .dmp, put the image beside it";

/// What can be done about one of which the recording tells a checksum alone, which no store is ordered by.
const IMAGE_WITHOUT_DATE: &str = "nothing tells when it was linked, nor which PDB is its: convert it on the machine that was recorded, as long as that has the \
                                  file, or one that a tool has merged there (`xperf -merge`), with the PDBs in folders of _NT_SYMBOL_PATH";

/// The lines, those first that most addresses were recorded in.
pub(crate) fn lines(machine: &ExportMachine, symbols: &Symbols) -> Vec<String> {
    let mut addresses = vec![0_usize; machine.modules().len()];
    for frame in machine.frames().iter() {
        if let Some(count) = addresses.get_mut(frame.module.0 as usize) {
            *count += 1;
        }
    }
    let count = |module: ModuleId| addresses.get(module.0 as usize).copied().unwrap_or_default();
    let mut unreadable: Vec<&Unreadable> =
        symbols.unreadable().iter().filter(|it| !is_told_of_elsewhere(machine, it)).collect();
    unreadable.sort_by_key(|it| std::cmp::Reverse(count(it.module)));
    let more = unreadable.len().saturating_sub(MOST_LINES);
    let line = |it: &&Unreadable| {
        let path = machine.string(machine.module(it.module).path);
        let details = machine.details(it.module);
        let pdb = details.and_then(|details| details.pdb.as_ref());
        let image = details.and_then(|details| details.image);
        let remedy = match (&it.error, pdb, image) {
            (SymbolError::Missing, Some(pdb), _) => remedy_by_pdb(pdb),
            (SymbolError::Missing, None, Some(ImageHeader::Dated(key))) => remedy_by_image(path, key),
            (SymbolError::Missing, None, Some(ImageHeader::Summed { .. })) => IMAGE_WITHOUT_DATE.to_owned(),
            (SymbolError::Missing, None, _) if is_of_windows(path) => IMAGE_WITHOUT_PDB.to_owned(),
            (error, ..) => remedy(error, path),
        };
        printable(&format!("{}; {remedy}", it.message(machine)))
    };
    let lines = unreadable.iter().take(MOST_LINES).map(line);
    lines.chain((more > 0).then(|| format!("so it is with {more} more files"))).collect()
}

/// Of what is no file, as the kernel of another machine, a recording's own warnings tell.
fn is_told_of_elsewhere(machine: &ExportMachine, it: &Unreadable) -> bool {
    matches!(it.error, SymbolError::Missing) && machine.module(it.module).kind != ModuleKind::File
}

/// What can be done about an image that is not here, of which nothing tells which PDB is its.
fn remedy_by_image(path: &str, key: ImageKey) -> String {
    let name = file_name(path);
    format!(
        "convert it on the machine that was recorded, as long as that has the file, or put that into a folder of _NT_SYMBOL_PATH, as \
         {name}/{key}/{name}, with its PDB"
    )
}

/// What can be done about one of which the PDB is known.
fn remedy_by_pdb(pdb: &Pdb) -> String {
    let name = file_name(&pdb.path);
    format!("put its PDB into a folder of _NT_SYMBOL_PATH, as {name}/{}{:X}/{name}", pdb.signature, pdb.age)
}

/// The name in a path of Windows.
fn file_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().unwrap_or_default()
}

/// Whether a file is there, and may be read.
#[cfg(target_os = "linux")]
fn look(path: &str) -> io::Result<()> {
    Ok(access(path, Access::READ_OK)?)
}

/// Whether a file is there. A path of another system is nowhere.
#[cfg(not(target_os = "linux"))]
fn look(path: &str) -> io::Result<()> {
    let path = std::path::Path::new(path);
    if path.is_absolute() { path.metadata().map(drop) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// What can be done.
fn remedy(error: &SymbolError, path: &str) -> String {
    match error {
        // It is not opened: it may be anything by now.
        SymbolError::Missing => match look(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => "run as root to read it".to_owned(),
            Ok(()) => "what is there now is another file, or nothing tells that it is the same: install that one again".to_owned(),
            Err(_) => {
                "it is not there: keep it until the end of a recording; later, install it or its debug file, or name a server that has it \
                 (DEBUGINFOD_URLS)"
                    .to_owned()
            }
        },
        SymbolError::Lines(LineError::SplitMissing { .. }) => {
            "keep the .dwo files where they were compiled, or pack them beside the program (`dwp -e`)"
                .to_owned()
        }
        SymbolError::Lines(LineError::SharedMissing { path }) => {
            format!("install the package with debug information that {path} is of")
        }
        SymbolError::Lines(LineError::Late) => "--no-inline does without".to_owned(),
        SymbolError::Read(_) | SymbolError::Lines(LineError::Read(_)) => {
            "it may have become shorter, or its disk may fail".to_owned()
        }
        SymbolError::Lines(_) => {
            "its debug information has to be made anew; --no-inline does without".to_owned()
        }
        _ => "it is damaged: install it again, or its debug file".to_owned(),
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::process::Command;

    use collector_common::ids::Svma;
    use collector_common::record::{Frame, FrameFlags, Module, ModuleDetails, Signature};
    use export::symbolize::{Detail, ModuleFiles, symbolize};

    use super::*;

    /// Files by module; the first are not there.
    struct Files(usize, Vec<u8>);

    impl ModuleFiles for Files {
        type File = Cursor<Vec<u8>>;

        fn open(&self, module: ModuleId) -> Option<Self::File> {
            let at = (module.0 as usize).checked_sub(self.0)?;
            (at == 0).then(|| Cursor::new(self.1.clone()))
        }
    }

    #[test]
    fn the_files_with_most_addresses_are_told_with_what_helps() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("main.c");
        let program = folder.path().join("main");
        std::fs::write(&source, "int main(void) { return 0; }").unwrap();
        assert!(Command::new("gcc").arg("-o").args([&program, &source]).status().unwrap().success());
        let mut bytes = std::fs::read(&program).unwrap();
        let whole = symbolize(&machine(&["/main"]), &Files(1, bytes.clone()), Detail::Lines);
        assert!(lines(&machine(&["/main"]), &whole).is_empty());

        // Its section headers, which are at its end.
        bytes.truncate(bytes.len() - 64);
        let changed = program.to_str().unwrap();
        let machine = machine(&[
            "/gone/a",
            "/gone/b",
            "/gone/c",
            "/gone/d",
            changed,
            "/gone/f\x1b]0;f\x07\n",
            "/damaged",
        ]);
        let files = Files(machine.modules().len() - 1, bytes);
        let told = lines(&machine, &symbolize(&machine, &files, Detail::Lines));
        let [damaged, gone, another, .., last] = &told[..] else { panic!("{told:?}") };
        assert!(
            damaged.starts_with("no names for /damaged: not a whole ELF file")
                && damaged.contains("; it is damaged"),
            "{damaged}"
        );
        assert!(
            gone.starts_with(
                "no names for /gone/f\u{fffd}]0;f\u{fffd}\u{fffd}: its file could not be opened; it is not there"
            ),
            "{gone}"
        );
        assert!(another.contains("; what is there now is another file"), "{another}");
        assert_eq!((told.len(), last.as_str()), (MOST_LINES + 1, "so it is with 2 more files"));
    }

    #[test]
    fn images_of_windows_have_other_remedies() {
        let mut machine = machine(&[
            r"C:\app\z.dll",
            r"C:\Windows\system32\ntdll.dll",
            r"\Device\HarddiskVolume3\app\y.dll",
            r"C:\app\x.exe",
        ]);
        let guid =
            [0x33, 0x22, 0x11, 0, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];
        let (signature, module) = (Signature(guid), machine.frames().iter().last().unwrap().module);
        let pdb = Some(Pdb { path: r"D:\build\x.pdb".into(), signature, age: 10 });
        machine.set_details(module, ModuleDetails { pdb, ..ModuleDetails::default() });
        let image = Some(ImageKey { date: 0x0f12_3abc, size: 0x1_f000 }.into());
        machine.set_details(ModuleId(module.0 - 1), ModuleDetails { image, ..ModuleDetails::default() });
        let image = Some(ImageHeader::Summed { checksum: 7, size: 0x1_f000 });
        machine.set_details(ModuleId(module.0 - 3), ModuleDetails { image, ..ModuleDetails::default() });
        let told = lines(&machine, &symbolize(&machine, &Files(usize::MAX, Vec::new()), Detail::Lines));
        let [known, dated, unknown, undated] = &told[..] else { panic!("{told:?}") };
        let place = "x.pdb/00112233445566778899AABBCCDDEEFFA/x.pdb";
        assert!(known.contains(r"C:\app\x.exe") && known.contains("_NT_SYMBOL_PATH"), "{known}");
        assert!(known.ends_with(place), "{known}");
        assert!(dated.ends_with("as y.dll/0F123ABC1f000/y.dll, with its PDB"), "{dated}");
        assert!(
            unknown.contains(r"\ntdll.dll: its file could not be opened; nothing tells which PDB"),
            "{unknown}"
        );
        assert!(unknown.contains("_NT_SYMBOL_PATH") && unknown.contains("merged"), "{unknown}");
        assert!(
            undated.contains("nothing tells when it was linked") && !undated.contains("z.dll/"),
            "{undated}"
        );
        assert!(told.iter().all(|line| !line.contains("DEBUGINFOD_URLS")), "{told:?}");
    }

    /// As many addresses in each file as its place says.
    fn machine(paths: &[&str]) -> ExportMachine {
        let mut machine = ExportMachine::default();
        for (count, path) in (1..).zip(paths) {
            let path = machine.intern_string(path);
            let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
            for address in 0..count {
                let flags = FrameFlags::default();
                machine.intern_frame(Frame { module, address: Svma(0x1139 + address), flags });
            }
        }
        machine
    }
}
