//! Images of recordings on Windows, made by a compiler of Linux.

use std::io::Cursor;

use collector_common::record::ModuleId;
use collector_user::etw::{Asking, Lost, Recorded, RecordedPart};
use windows_etw::etl::EtlFile;

use crate::file::{Buffer, System, TICKS, Trace};

/// What Windows writes does not tell which PDB is an image's: the image does, if it is the one that was loaded.
#[test]
fn images_tell_their_pdbs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("main.c"), "int main(void) { return 0; }").unwrap();
    let mut linker = std::process::Command::new("x86_64-w64-mingw32-gcc");
    let linker = linker.args(["-Wl,--pdb=main.pdb", "-o", "main.exe", "main.c"]).current_dir(folder);
    assert!(linker.status().unwrap().success());
    let path = folder.join("main.exe");
    let image = std::fs::read(&path).unwrap();
    // "PE Format": the offset of the signature, `TimeDateStamp` 8 behind it, and `SizeOfImage` 56 in the optional header at 24.
    let word = |at: usize| u32::from_le_bytes(*image[at..].first_chunk().unwrap());
    let header = word(0x3c) as usize;
    let (date, size) = (word(header + 8), word(header + 24 + 56));
    let rsds = image.windows(4).position(|bytes| bytes == b"RSDS").unwrap();

    let details = |size: u32, date: u32| {
        let wide = |text: &str| text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        let numbers = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        // `Image/Load` of version 2: base and size, process, checksum, date, default base, and four words.
        let mut load = numbers(&[0x1_4000_0000, size.into()]);
        load.extend([70, 1, date, 0].iter().flat_map(|word: &u32| word.to_le_bytes()));
        load.extend(numbers(&[0x1_4000_0000, 0, 0]));
        load.extend(wide(path.to_str().unwrap()));
        let load =
            System { group: 3, opcode: 10, pid: 70, tid: 71, ..System::default() }.bytes(TICKS + 1, &load);
        let bytes = Trace::default().file(&[Buffer { size: 4096, ..Buffer::default() }.bytes(&[load])]);
        let file = EtlFile::open(Cursor::new(bytes)).unwrap();
        let recorded =
            Recorded::read(vec![RecordedPart { file, lost: Lost::default() }], &Asking::default()).unwrap();
        let machine = recorded.machine;
        let is_it = |index: &usize| machine.string(machine.modules()[*index].path).ends_with("main.exe");
        let index = (0..machine.modules().len()).find(is_it).unwrap();
        machine.details(ModuleId(index as u32)).cloned()
    };
    let pdb = details(size, date).and_then(|details| details.pdb).unwrap();
    assert_eq!(pdb.path, "main.pdb");
    assert_eq!((&pdb.signature.0[..], pdb.age), (&image[rsds + 4..rsds + 20], word(rsds + 20)));
    assert_eq!([details(size + 4096, date), details(size, date ^ 1)], [None, None]);
}
