//! Executed files that are cut short or full of noise: they run all the same, and must not disturb a recording.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSection as _, ObjectSegment as _};

use crate::languages::recursion;
use crate::lives::record_script;
use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::recording::record;

/// Noise that is the same in every run.
fn spoil(bytes: &mut [u8]) {
    let mut x = 88_172_645_463_325_252_u64;
    for byte in bytes {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        *byte = (x >> 32) as u8;
    }
}

/// What is known of the healthy file.
struct Anatomy {
    bytes: Vec<u8>,
    section_headers: Range<usize>,
    end_of_loaded: usize,
    sections: Vec<(String, Range<usize>)>,
}

impl Anatomy {
    fn of(file: &Path) -> Self {
        let bytes = fs::read(file).unwrap();
        // `e_shoff` of the ELF header; the table is the file's end as linkers write it.
        let table = u64::from_le_bytes(bytes[0x28..0x30].try_into().unwrap()) as usize;
        let object = object::File::parse(&*bytes).unwrap();
        let ends = object.segments().map(|segment| segment.file_range()).map(|(start, size)| start + size);
        let end_of_loaded = ends.max().unwrap() as usize;
        let ranges = object.sections().map(|section| {
            let (start, size) = section.file_range().unwrap_or_default();
            (section.name().unwrap().to_owned(), start as usize..(start + size) as usize)
        });
        let sections = ranges.collect();
        assert!(table >= end_of_loaded, "the table of sections is behind what is loaded");
        Self { section_headers: table..bytes.len(), end_of_loaded, sections, bytes }
    }

    fn section(&self, name: &str) -> Range<usize> {
        self.sections.iter().find(|(section, _)| section == name).unwrap().1.clone()
    }

    /// The file with the bytes of a section in a hole behind its end, from where on `size` bytes are to be had.
    fn with_hole(&self, name: &str, size: u64) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let index = self.sections.iter().position(|(section, _)| section == name).unwrap();
        // `sh_offset` and `sh_size` of the section header; the first header is of no section.
        let header = self.section_headers.start + (index + 1) * 64;
        let end = bytes.len().next_multiple_of(4096) as u64;
        bytes[header + 0x18..header + 0x20].copy_from_slice(&end.to_le_bytes());
        bytes[header + 0x20..header + 0x28].copy_from_slice(&size.to_le_bytes());
        bytes
    }

    fn spoilt(&self, range: Range<usize>) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        spoil(&mut bytes[range]);
        bytes
    }
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let file = folder.join(name);
    fs::write(&file, bytes).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

#[test]
fn cut_and_spoilt_files() {
    let Some(_live) = live("cut_and_spoilt_files") else { return };
    let folder = folder();
    let original = compile(folder.path(), "original", "brief.c", &["-static"]);
    let anatomy = Anatomy::of(&original);
    let mut far_table = anatomy.bytes.clone();
    far_table[0x28..0x30].copy_from_slice(&(u64::MAX - 7).to_le_bytes());
    far_table[0x3c..0x3e].copy_from_slice(&u16::MAX.to_le_bytes());
    // Nothing of this is needed to run the program: it throws nothing and is not linked again.
    let runnable = [
        ("bad-headers", anatomy.spoilt(anatomy.section_headers.clone())),
        ("bad-far-table", far_table),
        ("bad-cut", anatomy.bytes[..anatomy.end_of_loaded].to_vec()),
        ("bad-eh-frame", anatomy.spoilt(anatomy.section(".eh_frame"))),
        ("bad-symbols", anatomy.spoilt(anatomy.section(".symtab"))),
        ("bad-strings", anatomy.spoilt(anatomy.section(".strtab"))),
    ];
    let mut files: Vec<PathBuf> =
        runnable.iter().map(|(name, bytes)| write(folder.path(), name, bytes)).collect();
    // The kernel may refuse this one, or end it when it comes to a page that is not there.
    files.push(write(folder.path(), "bad-half", &anatomy.bytes[..anatomy.bytes.len() / 2]));
    files.push(compile(folder.path(), "healthy", "recursion.c", &[]));
    let script = r#"for file in "$@"; do "$file" || echo "$file: status $?" >&2; done"#;
    let args: Vec<_> = files.iter().map(|file| file.as_os_str()).collect();
    let recorded = record_script(folder.path(), script, &args);
    for (name, _) in &runnable {
        assert!(recorded.samples_of(name) > 0, "{name} was not recorded: {}", recorded.stderr);
        assert!(!recorded.stderr.contains(&format!("{name}: status")), "{name} failed: {}", recorded.stderr);
    }
    recursion("healthy").check(&recorded);
}

/// A file system stores nothing of a hole, so that anybody can have files of any size.
#[test]
fn sections_that_are_holes() {
    const SIZE: u64 = 1_200_000_000;
    /// A recording of a second takes some tens.
    const MOST_MEMORY: u64 = 200 << 20;
    let Some(_live) = live("sections_that_are_holes") else { return };
    let folder = folder();
    let original = compile(folder.path(), "original", "recursion.c", &["-Wl,--build-id"]);
    let anatomy = Anatomy::of(&original);
    let sections = [
        ("hole-symbols", ".symtab"),
        ("hole-eh-frame", ".eh_frame"),
        ("hole-hdr", ".eh_frame_hdr"),
        ("hole-note", ".note.gnu.build-id"),
    ];
    for (name, section) in sections {
        let file = write(folder.path(), name, &anatomy.with_hole(section, SIZE));
        fs::File::options().write(true).open(&file).unwrap().set_len(2 * SIZE).unwrap();
        let recorded = record(folder.path(), ["--".as_ref(), file.as_os_str()]);
        let memory = recorded.figure("/peak_rss_bytes");
        assert!(memory < MOST_MEMORY, "{name}: {memory}: {}", recorded.stderr);
        assert!(recorded.samples_of(name) > 500, "{name}: {}", recorded.stderr);
    }
}
