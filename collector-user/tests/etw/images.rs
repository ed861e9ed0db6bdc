//! Images of recordings on Windows, made by compilers of Linux.

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::process::Command;

use collector_common::record::{ExportMachine, ImageKey, ModuleDetails, ModuleId, ModuleKind};
use collector_user::etw::{Asking, Lost, Recorded, RecordedPart};
use windows_etw::decode::kernel::SYS_CONFIG;
use windows_etw::etl::EtlFile;

use crate::file::{Buffer, System, TICKS, Trace, perf_info};
use crate::made::{Made, Payload};

const BASE: u64 = 0x1_4000_0000;
const VOLUME: &str = r"\Device\HarddiskVolume3\";

fn word(image: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*image[at..].first_chunk().unwrap())
}

/// Where the date, the entry and the size are. "PE Format": the offset of the signature, `TimeDateStamp` 8 behind it, `AddressOfEntryPoint` 16
/// and `SizeOfImage` 56 in the optional header at 24.
fn places(image: &[u8]) -> [usize; 3] {
    let header = word(image, 0x3c) as usize;
    [header + 8, header + 24 + 16, header + 24 + 56]
}

fn key(image: &[u8]) -> ImageKey {
    let [date, _, size] = places(image).map(|at| word(image, at));
    ImageKey { date, size }
}

/// A file with an image that a process has, and a sample in it.
fn trace(path: &str, key: ImageKey, address: u32) -> Vec<u8> {
    let made = Payload::default;
    let kernel = |group, opcode, payload: Payload| {
        System { group, opcode, pid: 70, tid: 71, ..System::default() }.bytes(TICKS + 1, &payload.0)
    };
    let process = made().u64(&[0x1000]).u32(&[70, 4, 1, 0, 0]).u8(b"made.exe\0").wide("made.exe");
    let thread = made().u32(&[70, 71]).u64(&[0; 7]).u32(&[0]);
    // `Image/Load` of version 2: base and size, process, checksum, date, default base, and four words.
    let load = made().u64(&[BASE, key.size.into()]).u32(&[70, 1, key.date, 0]).u64(&[BASE, 0, 0]).wide(path);
    let sample = made().u64(&[BASE + u64::from(address)]).u32(&[71]).u8(&[1, 0, 0, 0]);
    let records = [
        kernel(3, 1, process),
        kernel(5, 1, thread),
        kernel(3, 10, load),
        perf_info(17, 2, (15, 46), TICKS + 10, &sample.0),
    ];
    Trace::default().file(&[Buffer { size: 4096, ..Buffer::default() }.bytes(&records)])
}

fn details(machine: &ExportMachine) -> ModuleDetails {
    let files = machine.modules().iter().position(|module| module.kind == ModuleKind::File);
    machine.details(ModuleId(files.unwrap() as u32)).cloned().unwrap_or_default()
}

/// What Windows writes does not tell which PDB is an image's: the image does, if it is the one that was loaded.
#[test]
fn images_tell_their_pdbs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("main.c"), "int main(void) { return 0; }").unwrap();
    let mut linker = Command::new("x86_64-w64-mingw32-gcc");
    let linker = linker.args(["-Wl,--pdb=main.pdb", "-o", "main.exe", "main.c"]).current_dir(folder);
    assert!(linker.status().unwrap().success());
    let path = folder.join("main.exe");
    let image = fs::read(&path).unwrap();
    let rsds = image.windows(4).position(|bytes| bytes == b"RSDS").unwrap();

    let told = |key: ImageKey| {
        let file = EtlFile::open(Cursor::new(trace(path.to_str().unwrap(), key, 0x1000))).unwrap();
        let parts = vec![RecordedPart { file, lost: Lost::default() }];
        details(&Recorded::read(parts, &Asking::default()).unwrap().machine).pdb
    };
    let own = key(&image);
    let pdb = told(own).unwrap();
    assert_eq!(pdb.path, "main.pdb");
    let signature = (&image[rsds + 4..rsds + 20], word(&image, rsds + 20));
    assert_eq!((&pdb.signature.0[..], pdb.age), signature);
    let others = [ImageKey { size: own.size + 4096, ..own }, ImageKey { date: own.date ^ 1, ..own }];
    assert_eq!(others.map(told), [None, None]);
}

/// Makes `main.exe`, which begins in the function `begin`, and `main.pdb`.
fn build(folder: &Path) -> Option<Vec<u8>> {
    fs::write(folder.join("source.c"), "int begin(void) { return 0; }").unwrap();
    let compile = ["--target=x86_64-pc-windows-msvc", "-g", "-gcodeview", "-c", "source.c"];
    let link = ["/debug", "/nodefaultlib", "/entry:begin", "/subsystem:console", "/out:main.exe", "source.o"];
    for (tool, args) in [("clang-22", &compile[..]), ("lld-link-22", &link)] {
        let Ok(status) = Command::new(tool).args(args).current_dir(folder).status() else {
            eprintln!("SKIPPED: {tool} is not there");
            return None;
        };
        assert!(status.success());
    }
    fs::read(folder.join("main.exe")).ok()
}

#[test]
fn a_store_names_functions_of_a_trace_that_was_not_merged() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    let Some(mut image) = build(folder.path()) else { return };
    let [date, entry, _] = places(&image);
    let (key, begin) = (key(&image), word(&image, entry));
    fs::write(at("x.etl"), trace(&format!(r"{VOLUME}app\Main.exe"), key, begin)).unwrap();
    let converted = || {
        let mut collector = Command::new(env!("CARGO_BIN_EXE_collector"));
        let collector = collector.arg("convert").arg(at("x.etl")).args(["--format", "folded", "-o", "-"]);
        let output = collector.env("_NT_SYMBOL_PATH", at("symbols")).output().unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let unnamed = format!("Main.exe+{begin:#x} 1\n");
    let place = format!("Main.exe/{key}/Main.exe");
    let [stacks, told] = converted();
    assert!(stacks.ends_with(&unnamed) && told.contains(&place), "{stacks}{told}");

    let stored = at("symbols").join(place);
    fs::create_dir_all(stored.parent().unwrap()).unwrap();
    fs::rename(at("main.exe"), &stored).unwrap();
    fs::rename(at("main.pdb"), at("symbols/main.pdb")).unwrap();
    let [stacks, told] = converted();
    assert!(stacks.ends_with(";begin 1\n") && !told.contains("no names"), "{stacks}{told}");
    image[date] ^= 1;
    fs::write(&stored, &image).unwrap();
    let [stacks, told] = converted();
    assert!(stacks.ends_with(&unnamed) && told.contains("no names"), "{stacks}{told}");
}

/// A machine has volumes of the same names as any other.
#[test]
fn drives_are_this_machines_where_it_has_an_image() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("main.c"), "int main(void) { return 0; }").unwrap();
    let mut compiler = Command::new("x86_64-w64-mingw32-gcc");
    assert!(compiler.args(["-o", "a.dll", "main.c"]).current_dir(folder.path()).status().unwrap().success());
    let image = folder.path().join("a.dll");
    let drive = format!("{}/", folder.path().display());
    // Those of images that are made.
    let write = |date: u32| {
        let mut bytes = fs::read(&image).unwrap();
        let [at, _, size] = places(&bytes);
        bytes[at..][..4].copy_from_slice(&date.to_le_bytes());
        bytes[size..][..4].copy_from_slice(&0x1_0000_u32.to_le_bytes());
        fs::write(&image, bytes).unwrap();
    };
    let other = r"\Device\HarddiskVolume4\";
    let paths = |told: Option<&str>| {
        let mut made = Made::with_volumes(&[[VOLUME, &drive], [other, r"D:\"]]);
        made.process(1, 1, 70, "a.exe");
        for (place, name) in
            [(0, format!("{VOLUME}b.dll")), (1, format!("{VOLUME}a.dll")), (2, format!("{other}c.dll"))]
        {
            made.image(2, 10, 70, BASE + place * 0x1_0000, &name);
        }
        if let Some(drive) = told {
            made.classic(3, (SYS_CONFIG, 35, 2), 0, &Payload::default().wide(VOLUME).wide(drive));
        }
        let machine = made.finish().machine;
        let files = machine.modules().iter().filter(|module| module.kind == ModuleKind::File);
        files.map(|module| machine.string(module.path).to_owned()).collect::<Vec<_>>()
    };
    let on = |drive: &str| [format!("{drive}b.dll"), format!("{drive}a.dll"), format!("{other}c.dll")];
    write(1);
    assert_eq!(paths(None), on(VOLUME));
    write(2);
    assert_eq!(paths(None), on(&drive));
    assert_eq!(paths(Some(r"E:\")), on(r"E:\"));
}
