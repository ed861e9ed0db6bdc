//! What files say of themselves beyond what is needed to unwind and to name: for whoever looks for their symbols later.
//!
//! Of ELF files that is in [`Layout`]. Of PE images it is read here: "PE Format" of Microsoft's documentation, "The Debug Section" and
//! "The .rsrc Section", `VS_FIXEDFILEINFO` of the Windows API, and type 21 of `docs/design/specs/PE-COFF.md` of .NET's runtime. On
//! Linux such images are mapped by .NET, which has compiled its own libraries ahead of time, and by Wine.

use std::fs::File;

use collector_common::record::{ImageHeader, ImageKey, ModuleDetails, Pdb, PerfMap, Signature};
use object::pe::{self, ImageNtHeaders32, ImageNtHeaders64};
use object::read::FileKind;
use object::read::pe::{ImageNtHeaders, ImageOptionalHeader as _, PeFile, ResourceDirectory};
use object::{Bytes, LittleEndian as LE, ReadRef, elf, pod};

use super::bounded::{BoundedFile, HEADERS};
use super::layout::Layout;

/// The type of a debug directory's entry that names a map of .NET's.
const PERF_MAP: u32 = 21;

/// Entries of a debug directory that are looked at; linkers write five at most.
const MOST_ENTRIES: usize = 64;

/// The number of resources that are versions.
const RT_VERSION: u16 = 16;

/// Where the fixed part of a version is: behind three lengths and the name `VS_VERSION_INFO`.
const FIXED_INFO: usize = 40;

/// What that begins with.
const FIXED_INFO_SIGNATURE: u32 = 0xfeef_04bd;

/// The details of a file with this layout, if there are any.
pub(super) fn of(file: Option<&File>, layout: &Layout) -> Option<ModuleDetails> {
    let details = if layout.machine == elf::EM_NONE {
        of_image(&BoundedFile::new(file?, HEADERS))?
    } else {
        let debug_link = layout.debug_link.as_ref().map(Into::into);
        ModuleDetails { debug_link, package: layout.package.clone(), ..ModuleDetails::default() }
    };
    (details != ModuleDetails::default()).then_some(details)
}

/// The details of an image of Windows that was loaded, with the date and the size of its own header; none where the file is another one.
pub(crate) fn of_loaded(file: &File, told: ImageHeader) -> Option<ModuleDetails> {
    let data = &BoundedFile::new(file, HEADERS);
    let key = Header::of(data)?.matching(told)?;
    Some(ModuleDetails { image: Some(key.into()), ..of_image(data)? })
}

/// Whether a file is the image of Windows that was loaded, as far as that is told: of some images that is their size alone.
pub(crate) fn is_loaded(file: &File, told: ImageHeader) -> bool {
    Header::of(&BoundedFile::new(file, HEADERS)).and_then(|header| header.matching(told)).is_some()
}

/// What of a file's header tells it from others.
struct Header {
    key: ImageKey,
    checksum: u32,
}

impl Header {
    fn of<'d, R: ReadRef<'d>>(data: R) -> Option<Self> {
        match FileKind::parse(data).ok()? {
            FileKind::Pe32 => Some(Self::of_file(&PeFile::<ImageNtHeaders32, R>::parse(data).ok()?)),
            FileKind::Pe64 => Some(Self::of_file(&PeFile::<ImageNtHeaders64, R>::parse(data).ok()?)),
            _ => None,
        }
    }

    fn of_file<'d, Image: ImageNtHeaders, R: ReadRef<'d>>(file: &PeFile<'d, Image, R>) -> Self {
        let headers = file.nt_headers();
        let (date, optional) = (headers.file_header().time_date_stamp.get(LE), headers.optional_header());
        Self { key: ImageKey { date, size: optional.size_of_image() }, checksum: optional.check_sum() }
    }

    /// Date and size, if it has what is told.
    fn matching(self, told: ImageHeader) -> Option<ImageKey> {
        let is_it = match told {
            ImageHeader::Dated(key) => self.key == key,
            ImageHeader::Summed { checksum, size } => (self.checksum, self.key.size) == (checksum, size),
            ImageHeader::Sized(size) => self.key.size == size,
        };
        is_it.then_some(self.key)
    }
}

fn of_image<'d, R: ReadRef<'d>>(data: R) -> Option<ModuleDetails> {
    match FileKind::parse(data).ok()? {
        FileKind::Pe32 => Some(parse(&PeFile::<ImageNtHeaders32, R>::parse(data).ok()?, data)),
        FileKind::Pe64 => Some(parse(&PeFile::<ImageNtHeaders64, R>::parse(data).ok()?, data)),
        _ => None,
    }
}

fn parse<'d, Image: ImageNtHeaders, R: ReadRef<'d>>(file: &PeFile<'d, Image, R>, data: R) -> ModuleDetails {
    let mut details = ModuleDetails { version: version(file, data), ..ModuleDetails::default() };
    let directory = directory(file, data, pe::IMAGE_DIRECTORY_ENTRY_DEBUG);
    let entries =
        directory.and_then(|bytes| pod::slice_from_all_bytes::<pe::ImageDebugDirectory>(bytes).ok());
    for entry in entries.unwrap_or_default().iter().take(MOST_ENTRIES) {
        let place = (entry.pointer_to_raw_data.get(LE), entry.size_of_data.get(LE));
        let Ok(content) = data.read_bytes_at(place.0.into(), place.1.into()) else { continue };
        match entry.typ.get(LE) {
            pe::IMAGE_DEBUG_TYPE_CODEVIEW => details.pdb = details.pdb.or_else(|| pdb_of_record(content)),
            kind if kind.0 == PERF_MAP => {
                details.perf_map = details.perf_map.or_else(|| perf_map(content));
            }
            _ => {}
        }
    }
    details
}

/// The bytes of one of an image's tables, and no more: in images of .NET's they are in one section with its code.
fn directory<'d, Image: ImageNtHeaders, R: ReadRef<'d>>(
    file: &PeFile<'d, Image, R>,
    data: R,
    index: usize,
) -> Option<&'d [u8]> {
    let (offset, size) = file.data_directory(index)?.file_range(&file.section_table()).ok()?;
    data.read_bytes_at(offset.into(), size.into()).ok()
}

/// `RSDS`, the signature, the age, and the path.
pub(crate) fn pdb_of_record(content: &[u8]) -> Option<Pdb> {
    let (signature, age, path) = named(content.strip_prefix(b"RSDS")?)?;
    Some(Pdb { path, signature: Signature(signature), age })
}

/// `R2RM`, the signature, the version, and the path.
fn perf_map(content: &[u8]) -> Option<PerfMap> {
    let (signature, version, path) = named(content.strip_prefix(b"R2RM")?)?;
    Some(PerfMap { path, signature, version })
}

/// Bytes, a number, and a path with a NUL.
fn named(content: &[u8]) -> Option<([u8; 16], u32, String)> {
    let (signature, rest) = content.split_first_chunk()?;
    let (number, path) = rest.split_first_chunk()?;
    let path = Bytes(path).read_string().ok()?;
    Some((*signature, u32::from_le_bytes(*number), String::from_utf8_lossy(path).into_owned()))
}

/// The file version of the first language that there is.
fn version<'d, Image: ImageNtHeaders, R: ReadRef<'d>>(
    file: &PeFile<'d, Image, R>,
    data: R,
) -> Option<String> {
    let resources = ResourceDirectory::new(directory(file, data, pe::IMAGE_DIRECTORY_ENTRY_RESOURCE)?);
    let kinds = resources.root().ok()?;
    let versions = kinds.entries.iter().find(|entry| entry.name_or_id().id() == Some(RT_VERSION))?;
    let languages = versions.data(resources).ok()?.table()?.entries.first()?.data(resources).ok()?.table()?;
    let place = languages.entries.first()?.data(resources).ok()?.data()?;
    let (offset, most) = file.section_table().pe_file_range_at(place.offset_to_data.get(LE))?;
    let info = data.read_bytes_at(offset.into(), place.size.get(LE).min(most).into()).ok()?;
    let word = |at: usize| -> Option<u32> {
        let word = info.get(FIXED_INFO + at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*word))
    };
    if word(0)? != FIXED_INFO_SIGNATURE {
        return None;
    }
    let (high, low) = (word(8)?, word(12)?);
    Some(format!("{}.{}.{}.{}", high >> 16, high & 0xffff, low >> 16, low & 0xffff))
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn tool(folder: &Path, program: &str, args: &[&str]) -> String {
        let output = Command::new(program).args(args).current_dir(folder).output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
        assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn of_path(path: &Path) -> Option<ModuleDetails> {
        let file = File::open(path).unwrap();
        of(Some(&file), &Layout::read(&file).unwrap_or_default())
    }

    const PACKAGE: &str = r#"{"type":"deb","name":"collector","version":"1.2-3","os":"debian"}"#;

    #[test]
    fn an_elf_file_tells_its_package_and_its_debug_file() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join("source.c"), "int main(void) { return 0; }").unwrap();
        let option = format!("--package-metadata={PACKAGE}");
        tool(folder, "gcc", &["-g", "-Xlinker", &option, "-o", "whole", "source.c"]);
        tool(folder, "objcopy", &["--only-keep-debug", "whole", "whole.debug"]);
        tool(folder, "objcopy", &["--strip-debug", "--add-gnu-debuglink=whole.debug", "whole", "linked"]);
        let details = of_path(&folder.join("linked")).unwrap();
        let notes = tool(folder, "readelf", &["-n", "linked"]);
        assert!(notes.contains(&format!("Packaging Metadata: {PACKAGE}")), "{notes}");
        assert_eq!(details.package.as_deref(), Some(PACKAGE));
        let link = details.debug_link.unwrap();
        let told = tool(folder, "readelf", &["--debug-dump=links", "linked"]);
        assert_eq!(link.name, "whole.debug");
        assert!(told.contains("whole.debug") && told.contains(&format!("{:#x}", link.checksum)), "{told}");
        assert_eq!((details.version, details.pdb, details.perf_map), (None, None, None));
        tool(folder, "gcc", &["-o", "plain", "source.c"]);
        assert_eq!(of_path(&folder.join("plain")), None);
    }

    #[test]
    fn an_image_of_windows_tells_its_version_and_its_symbols() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join("source.c"), "int main(void) { return 0; }").unwrap();
        let resource = "1 VERSIONINFO\nFILEVERSION 8,0,24,52809\nPRODUCTVERSION 1,2,3,4\nBEGIN\nEND\n";
        fs::write(folder.join("version.rc"), resource).unwrap();
        for machine in ["x86_64", "i686"] {
            let tools = ["gcc", "windres"].map(|name| format!("{machine}-w64-mingw32-{name}"));
            let is_there = |name: &String| Command::new(name).arg("--version").output().is_ok();
            if machine == "i686" && !tools.iter().all(is_there) {
                continue;
            }
            tool(folder, &tools[1], &["version.rc", "version.o"]);
            tool(folder, &tools[0], &["-Wl,--pdb=main.pdb", "-o", "main.exe", "source.c", "version.o"]);
            let details = of_path(&folder.join("main.exe")).unwrap();
            assert_eq!(details.version.as_deref(), Some("8.0.24.52809"));
            let pdb = details.pdb.unwrap();
            assert_eq!(pdb.path, "main.pdb");
            // `(format RSDS signature GUID age N ...)`, with the bytes as they are stored or as they are written.
            let told = tool(folder, "objdump", &["-p", "main.exe"]);
            let line = told.lines().find(|line| line.contains("format RSDS signature")).unwrap();
            let as_stored = pdb.signature.0.map(|byte| format!("{byte:02x}")).concat();
            let as_written = pdb.signature.to_string().to_lowercase();
            assert!(line.contains(&as_stored) || line.contains(&as_written), "{line}: {as_stored}");
            assert!(line.contains(&format!("age {}", pdb.age)), "{line}");
        }
    }

    #[test]
    fn a_map_of_dotnet_has_a_signature_and_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join("source.c"), "int main(void) { return 0; }").unwrap();
        tool(folder, "x86_64-w64-mingw32-gcc", &["-Wl,--pdb=main.pdb", "-o", "main.exe", "source.c"]);
        // The linker's entry becomes one of .NET's: another type, and another mark before the signature.
        let mut image = fs::read(folder.join("main.exe")).unwrap();
        let mark = image.windows(4).position(|bytes| bytes == b"RSDS").unwrap();
        let entry = image.windows(4).position(|bytes| bytes == (mark as u32).to_le_bytes()).unwrap();
        image[mark..mark + 4].copy_from_slice(b"R2RM");
        // `PointerToRawData` is at 24, and `Type` at 12.
        image[entry - 12..entry - 8].copy_from_slice(&PERF_MAP.to_le_bytes());
        let details = of_image(&*image).unwrap();
        let map = details.perf_map.unwrap();
        assert_eq!(map.signature, image[mark + 4..mark + 20]);
        // The age stands where the version is.
        assert_eq!(
            (map.version.to_le_bytes().as_slice(), &*map.path),
            (&image[mark + 20..mark + 24], "main.pdb")
        );
        assert_eq!(details.pdb, None);
    }

    /// As images of .NET's are, whose code is in one section with all else.
    #[test]
    fn a_table_in_a_section_larger_than_what_is_read_is_found() {
        const LARGE: u32 = 2 * HEADERS as u32;
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join("source.c"), "int main(void) { return 0; }").unwrap();
        fs::write(folder.join("version.rc"), "1 VERSIONINFO\nFILEVERSION 1,2,3,4\nBEGIN\nEND\n").unwrap();
        tool(folder, "x86_64-w64-mingw32-windres", &["version.rc", "version.o"]);
        let args = ["-s", "-Wl,--pdb=main.pdb", "-o", "main.exe", "source.c", "version.o"];
        tool(folder, "x86_64-w64-mingw32-gcc", &args);
        let whole = fs::read(folder.join("main.exe")).unwrap();
        let file = PeFile::<ImageNtHeaders64, _>::parse(&*whole).unwrap();
        for table in [pe::IMAGE_DIRECTORY_ENTRY_DEBUG, pe::IMAGE_DIRECTORY_ENTRY_RESOURCE] {
            let address = file.data_directory(table).unwrap().virtual_address.get(LE);
            let sections = file.section_table();
            let section = sections.iter().find(|section| section.contains_rva(address)).unwrap();
            let name = whole.windows(8).position(|bytes| bytes == section.name).unwrap();
            let mut image = whole.clone();
            // `VirtualSize` and `SizeOfRawData`.
            for at in [8, 16] {
                image[name + at..name + at + 4].copy_from_slice(&LARGE.to_le_bytes());
            }
            image.resize(whole.len() + LARGE as usize, 1);
            let path = folder.join("large.exe");
            fs::write(&path, image).unwrap();
            let details = of_path(&path).unwrap();
            if table == pe::IMAGE_DIRECTORY_ENTRY_DEBUG {
                assert_eq!(details.pdb.unwrap().path, "main.pdb");
            } else {
                assert_eq!(details.version.as_deref(), Some("1.2.3.4"));
            }
        }
    }

    #[test]
    fn damaged_images_tell_less() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join("source.c"), "int main(void) { return 0; }").unwrap();
        fs::write(folder.join("version.rc"), "1 VERSIONINFO\nFILEVERSION 1,2,3,4\nBEGIN\nEND\n").unwrap();
        tool(folder, "x86_64-w64-mingw32-windres", &["version.rc", "version.o"]);
        let args = ["-s", "-Wl,--pdb=main.pdb", "-o", "main.exe", "source.c", "version.o"];
        tool(folder, "x86_64-w64-mingw32-gcc", &args);
        let whole = fs::read(folder.join("main.exe")).unwrap();
        for at in (0..whole.len()).step_by(61) {
            of_image(&whole[..at]);
            let mut spoilt = whole.clone();
            spoilt[at..].iter_mut().take(4).for_each(|byte| *byte ^= 0xff);
            of_image(&*spoilt);
        }
    }
}
