//! Images of recordings on Windows, made by compilers of Linux.

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::process::Command;

use collector_common::event::Guid;
use collector_common::record::{ExportMachine, ImageHeader, ImageKey, ModuleDetails, ModuleId, ModuleKind};
use collector_user::etw::{Asking, Lost, Recorded, RecordedPart};
use windows_etw::decode::kernel::{IMAGE_ID, SYS_CONFIG};
use windows_etw::etl::EtlFile;

use crate::file::{Buffer, System, TICKS, Trace, classic, perf_info};
use crate::made::{Made, Payload};

const BASE: u64 = 0x1_4000_0000;
const VOLUME: &str = r"\Device\HarddiskVolume3\";

fn word(image: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*image[at..].first_chunk().unwrap())
}

/// Where the date, the entry, the size and the checksum are. "PE Format": the offset of the signature, `TimeDateStamp` 8 behind it, `AddressOfEntryPoint`
/// 16, `SizeOfImage` 56 and `CheckSum` 64 in the optional header at 24.
fn places(image: &[u8]) -> [usize; 4] {
    let header = word(image, 0x3c) as usize;
    [header + 8, header + 24 + 16, header + 24 + 56, header + 24 + 64]
}

fn key(image: &[u8]) -> ImageKey {
    let [date, _, size, _] = places(image).map(|at| word(image, at));
    ImageKey { date, size }
}

/// What a trace tells of an image.
#[derive(Clone, Copy)]
struct Told {
    /// 10 is `Image/Load`, 3 `Image/DCStart`, which has no dates.
    opcode: u8,
    size: u32,
    checksum: u32,
    date: u32,
    /// By `KernelTraceControl/ImageID`, which a tool adds.
    merged_date: Option<u32>,
}

impl Told {
    /// Mapped while it was recorded.
    fn loaded(key: ImageKey) -> Self {
        Self { opcode: 10, size: key.size, checksum: 1, date: key.date, merged_date: None }
    }

    /// There before.
    fn before(size: u32, checksum: u32) -> Self {
        Self { opcode: 3, size, checksum, date: 0, merged_date: None }
    }
}

/// A file with an image that a process has, and a sample in it.
fn trace(path: &str, told: Told, address: u32) -> Vec<u8> {
    let made = Payload::default;
    let kernel = |group, opcode, payload: Payload| {
        System { group, opcode, pid: 70, tid: 71, ..System::default() }.bytes(TICKS + 1, &payload.0)
    };
    let process = made().u64(&[0x1000]).u32(&[70, 4, 1, 0, 0]).u8(b"made.exe\0").wide("made.exe");
    let thread = made().u32(&[70, 71]).u64(&[0; 7]).u32(&[0]);
    // `Image` of version 2: base and size, process, checksum, date, default base, and four words.
    let image = made().u64(&[BASE, told.size.into()]).u32(&[70, told.checksum, told.date, 0]);
    let image = image.u64(&[BASE, 0, 0]).wide(path);
    let sample = made().u64(&[BASE + u64::from(address)]).u32(&[71]).u8(&[1, 0, 0, 0]);
    let mut records = vec![
        kernel(3, 1, process),
        kernel(5, 1, thread),
        kernel(0x14, told.opcode, image),
        perf_info(17, 2, (15, 46), TICKS + 10, &sample.0),
    ];
    records.extend(told.merged_date.map(|date| {
        let id = made().u64(&[BASE, told.size.into()]).u32(&[70, date]).wide("main.exe");
        let mut record = classic(20, TICKS + 20, &id.0);
        // The opcode, and the class as it stands in a file.
        record[4] = 0;
        let Guid(mut class) = IMAGE_ID;
        for part in [0..4, 4..6, 6..8] {
            class[part].reverse();
        }
        record[24..40].copy_from_slice(&class);
        record
    }));
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

    let details = |told: Told| {
        let file = EtlFile::open(Cursor::new(trace(path.to_str().unwrap(), told, 0x1000))).unwrap();
        let parts = vec![RecordedPart { file, lost: Lost::default() }];
        details(&Recorded::read(parts, &Asking::default()).unwrap().machine)
    };
    let told = |key: ImageKey| details(Told::loaded(key)).pdb;
    let own = key(&image);
    let pdb = told(own).unwrap();
    assert_eq!(pdb.path, "main.pdb");
    let signature = (&image[rsds + 4..rsds + 20], word(&image, rsds + 20));
    assert_eq!((&pdb.signature.0[..], pdb.age), signature);
    let others = [ImageKey { size: own.size + 4096, ..own }, ImageKey { date: own.date ^ 1, ..own }];
    assert_eq!(others.map(told), [None, None]);

    // What was there before has no date: it has the file's, if the checksum is its, or where none is told.
    let checksum = word(&image, places(&image)[3]);
    assert_ne!(checksum, 0);
    let before = |size, checksum| {
        let details = details(Told::before(size, checksum));
        (details.pdb.is_some(), details.image)
    };
    let found = (true, Some(ImageHeader::Dated(own)));
    assert_eq!([checksum, 0].map(|checksum| before(own.size, checksum)), [found, found]);
    let other = checksum ^ 1;
    let summed = ImageHeader::Summed { checksum: other, size: own.size };
    assert_eq!(before(own.size, other), (false, Some(summed)));
    let size = own.size + 4096;
    assert_eq!(before(size, 0), (false, Some(ImageHeader::Sized(size))));
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

/// Stacks and what is said by `collector convert`, with a store in `symbols`.
fn converted(folder: &Path, trace: &[u8]) -> [String; 2] {
    fs::write(folder.join("x.etl"), trace).unwrap();
    let mut collector = Command::new(env!("CARGO_BIN_EXE_collector"));
    let collector =
        collector.arg("convert").arg(folder.join("x.etl")).args(["--format", "folded", "-o", "-"]);
    let output = collector.env("_NT_SYMBOL_PATH", folder.join("symbols")).output().unwrap();
    [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
}

#[test]
fn a_store_names_functions_of_a_trace_that_was_not_merged() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    let Some(mut image) = build(folder.path()) else { return };
    let [date, entry, ..] = places(&image);
    let (key, begin) = (key(&image), word(&image, entry));
    let converted = |told: Told| {
        let trace = trace(&format!(r"{VOLUME}app\Main.exe"), told, begin);
        converted(folder.path(), &trace)
    };
    let loaded = Told::loaded(key);
    let unnamed = format!("Main.exe+{begin:#x} 1\n");
    let place = format!("Main.exe/{key}/Main.exe");
    let [stacks, told] = converted(loaded);
    assert!(stacks.ends_with(&unnamed) && told.contains(&place), "{stacks}{told}");

    let stored = at("symbols").join(place);
    fs::create_dir_all(stored.parent().unwrap()).unwrap();
    fs::rename(at("main.exe"), &stored).unwrap();
    fs::rename(at("main.pdb"), at("symbols/main.pdb")).unwrap();
    // What was there before has the date that a tool added, and without that no place in a store.
    let before = Told::before(key.size, 7);
    for told in [loaded, Told { merged_date: Some(key.date), ..before }] {
        let [stacks, told] = converted(told);
        assert!(stacks.ends_with(";begin 1\n") && !told.contains("no names"), "{stacks}{told}");
    }
    for told in [before, Told { checksum: 0, ..before }] {
        let [stacks, told] = converted(told);
        assert!(stacks.ends_with(&unnamed) && told.contains("no names"), "{stacks}{told}");
        assert!(told.contains("xperf -merge") && !told.contains("Main.exe/"), "{told}");
    }
    image[date] ^= 1;
    fs::write(&stored, &image).unwrap();
    let [stacks, told] = converted(loaded);
    assert!(stacks.ends_with(&unnamed) && told.contains("no names"), "{stacks}{told}");
}

#[test]
fn an_image_that_was_there_before_is_known_by_its_checksum_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut image) = build(folder.path()) else { return };
    let [_, entry, size, checksum] = places(&image);
    image[checksum..][..4].copy_from_slice(&0x1_2345_u32.to_le_bytes());
    let path = folder.path().join("main.exe");
    fs::write(&path, &image).unwrap();
    let (begin, size) = (word(&image, entry), word(&image, size));
    let is_named = |told: Told| {
        let [stacks, told] = converted(folder.path(), &trace(path.to_str().unwrap(), told, begin));
        assert!(!told.contains("00000000"), "{told}");
        let unnamed = format!("main.exe+{begin:#x} 1\n");
        let is_named = stacks.ends_with(";begin 1\n") && !told.contains("no names");
        assert!(is_named || stacks.ends_with(&unnamed) && told.contains("no names"), "{stacks}{told}");
        is_named
    };
    let told = [(size, 0x1_2345), (size, 0x1_2346), (size + 4096, 0x1_2345), (size, 0)];
    assert_eq!(
        told.map(|(size, checksum)| is_named(Told::before(size, checksum))),
        [true, false, false, false]
    );
}

/// One in processes that were there before and in one that began.
#[test]
fn an_image_is_one_module_whether_its_date_is_told_or_not() {
    let modules = |sums: &[[u32; 2]]| {
        let mut made = Made::new();
        for (sum, pid) in sums.iter().zip(70..) {
            made.process(1, 1, pid, "a.exe");
            made.image_of((2, if sum[1] == 0 { 3 } else { 10 }), pid, BASE, r"\??\C:\a.dll", *sum);
        }
        let machine = made.finish().machine;
        machine.modules().iter().filter(|module| module.kind == ModuleKind::File).count()
    };
    assert_eq!(modules(&[[7, 0], [7, 5], [7, 0]]), 1);
    assert_eq!(modules(&[[7, 0], [8, 5]]), 2);
    assert_eq!(modules(&[[7, 0], [8, 0], [7, 0]]), 2);
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
    let write = |[date, checksum]: [u32; 2]| {
        let mut bytes = fs::read(&image).unwrap();
        let [at, _, size, sum] = places(&bytes);
        for (at, value) in [(at, date), (size, 0x1_0000), (sum, checksum)] {
            bytes[at..][..4].copy_from_slice(&value.to_le_bytes());
        }
        fs::write(&image, bytes).unwrap();
    };
    let other = r"\Device\HarddiskVolume4\";
    let paths = |told: Option<&str>, (opcode, sum): (u8, [u32; 2])| {
        let mut made = Made::with_volumes(&[[VOLUME, &drive], [other, r"D:\"]]);
        made.process(1, 1, 70, "a.exe");
        for (place, name) in
            [(0, format!("{VOLUME}b.dll")), (1, format!("{VOLUME}a.dll")), (2, format!("{other}c.dll"))]
        {
            made.image_of((2, opcode), 70, BASE + place * 0x1_0000, &name, sum);
        }
        if let Some(drive) = told {
            made.classic(3, (SYS_CONFIG, 35, 2), 0, &Payload::default().wide(VOLUME).wide(drive));
        }
        let machine = made.finish().machine;
        let files = machine.modules().iter().filter(|module| module.kind == ModuleKind::File);
        files.map(|module| machine.string(module.path).to_owned()).collect::<Vec<_>>()
    };
    let on = |drive: &str| [format!("{drive}b.dll"), format!("{drive}a.dll"), format!("{other}c.dll")];
    let (loaded, before) = ((10, [1, 2]), (3, [1, 0]));
    write([1, 3]);
    assert_eq!([loaded, before].map(|told| paths(None, told)), [on(VOLUME), on(VOLUME)]);
    write([2, 3]);
    assert_eq!([loaded, before].map(|told| paths(None, told)), [on(&drive), on(VOLUME)]);
    write([3, 1]);
    assert_eq!([loaded, before].map(|told| paths(None, told)), [on(VOLUME), on(&drive)]);
    assert_eq!(paths(None, (3, [0, 0])), on(VOLUME), "its size alone is told");
    write([2, 1]);
    assert_eq!(paths(Some(r"E:\"), loaded), on(r"E:\"));
}
