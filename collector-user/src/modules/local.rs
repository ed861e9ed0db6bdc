//! The files of this machine that a profile names which was made elsewhere, or was written without names: a file is taken where
//! it was mapped from or among `perf`'s copies, if it has the build id that the profile tells. An image of Windows is taken by its date and
//! size, or by its checksum and size, where [`ImagePlaces`] has it. Where the profile tells none of these, nothing says that a file of that name
//! is the same, and it is left alone.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use collector_common::ids::{Avma, FileOffset, Svma};
use collector_common::record::{ExportMachine, ImageHeader, Module, ModuleDetails, ModuleId, ModuleKind};
use export::symbolize::{AheadMapId, ModuleFiles, Naming, PdbId, Symbols, symbolize_rest};

use super::details::of_loaded;
use super::file::ModuleFile;
use super::layout::Layout;
use super::pdb;
use super::recorded::RecordedFiles;
use super::root::Root;
#[cfg(feature = "debuginfod")]
use crate::debuginfod::WithServers;
use crate::image_places::{ImagePlaces, MOST_IMAGES, open_at};
use crate::symbol_path::{ahead_map_of, pdb_of, text};

/// Names the frames of a profile that have no name in it, as far as their files are here, or with the servers that
/// `DEBUGINFOD_URLS` names.
pub fn name_from_files(machine: &ExportMachine, symbols: Symbols, naming: impl Into<Naming>) -> Symbols {
    let files = LocalFiles::of(machine);
    #[cfg(feature = "debuginfod")]
    let files = WithServers::new(files, machine, None);
    symbolize_rest(machine, &files, naming, symbols)
}

/// Has the images of Windows on stacks say which PDBs and maps are theirs, and when they were linked, as far as they are here: a trace that no tool
/// has merged does not. Out: a warning of those that there are too many of; they are looked for no more.
pub fn tell_of_images(machine: &mut ExportMachine) -> Option<String> {
    let places = ImagePlaces::new(None);
    tell_by(machine, MOST_IMAGES, |path, told| Some(places.find(path, told)?.0))
}

/// The same of a recording that was made here a moment ago. Windows lets nobody write to what is loaded, so that another file is at an image's path only if
/// that was renamed meanwhile: its size is enough where no more is told, as of programs without a checksum that ran when it began.
pub(crate) fn tell_of_recent_images(machine: &mut ExportMachine) -> Option<String> {
    let places = ImagePlaces::new(None);
    let find = |path: &str, told| open_at(Path::new(path), told).or_else(|| Some(places.find(path, told)?.0));
    tell_by(machine, MOST_IMAGES, find)
}

fn tell_by(
    machine: &mut ExportMachine,
    most: usize,
    find: impl Fn(&str, ImageHeader) -> Option<File>,
) -> Option<String> {
    let on_stacks: BTreeSet<ModuleId> = machine.frames().iter().map(|frame| frame.module).collect();
    let has_image = |module: &ModuleId| machine.details(*module).is_some_and(|told| told.image.is_some());
    let images: Vec<ModuleId> = on_stacks.into_iter().filter(has_image).collect();
    for (module, index) in images.iter().zip(0..) {
        let Some(told) = machine.details(*module).cloned() else { continue };
        let Some(image) = told.image else { continue };
        if index >= most {
            machine.set_details(*module, ModuleDetails { image: None, ..told });
            continue;
        }
        if told.pdb.is_some() {
            continue;
        }
        let found = find(machine.string(machine.module(*module).path), image);
        if let Some(own) = found.and_then(|file| of_loaded(&file, image)) {
            let version = told.version.or(own.version);
            machine.set_details(*module, ModuleDetails { version, ..own });
        }
    }
    let beyond = images.len().checked_sub(most).filter(|beyond| *beyond > 0)?;
    Some(format!("images that were not looked for, as {most} are the most: {beyond}"))
}

/// How many mappings of one file that start below an address are looked at.
const MAX_OVERLAP: usize = 16;

/// The files of one machine's modules. Each is opened when it is asked for.
#[derive(Debug)]
struct LocalFiles<'a> {
    machine: &'a ExportMachine,
    recorded: RecordedFiles,
    /// By module.
    files: Vec<OnceCell<ModuleFile>>,
    /// By module and start.
    mappings: Vec<Mapped>,
    /// Where images of Windows and their PDBs are.
    places: ImagePlaces,
}

/// A mapping in the addresses that frames have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mapped {
    module: ModuleId,
    start: u64,
    end: u64,
    file_offset: FileOffset,
}

impl<'a> LocalFiles<'a> {
    fn of(machine: &'a ExportMachine) -> Self {
        let files = std::iter::repeat_with(OnceCell::new).take(machine.modules().len()).collect();
        let mapped = machine.mappings().iter().map(|mapping| Mapped {
            module: mapping.module,
            start: mapping.start.0.wrapping_sub(mapping.bias),
            end: mapping.end.0.wrapping_sub(mapping.bias),
            file_offset: mapping.file_offset,
        });
        let mut mappings: Vec<_> = mapped.collect();
        mappings.sort_unstable();
        mappings.dedup();
        let recorded = RecordedFiles::new(SystemTime::now(), false);
        Self { machine, recorded, files, mappings, places: ImagePlaces::new(None) }
    }

    fn mapping(&self, module: ModuleId, address: Svma) -> Option<&Mapped> {
        let after = self.mappings.partition_point(|it| (it.module, it.start) <= (module, address.0));
        let below = self.mappings.get(..after)?.iter().rev().take(MAX_OVERLAP);
        below.take_while(|it| it.module == module).find(|it| address.0 < it.end)
    }

    fn file(&self, module: ModuleId) -> Option<&ModuleFile> {
        let Module { kind, path, build_id } = *self.machine.module(module);
        let build_id = build_id.filter(|_| kind == ModuleKind::File)?;
        let open = || {
            let path = self.machine.string(path).as_bytes();
            let file = self.recorded.find(path, Some(build_id));
            let layout = file.as_ref().and_then(Layout::read).unwrap_or_default();
            // A debug file can be there although the file is not.
            let layout = Layout { build_id: Some(build_id), ..layout };
            ModuleFile::new(file, PathBuf::from(text(path)), layout)
        };
        Some(self.files.get(module.0 as usize)?.get_or_init(open))
    }

    fn path(&self, module: ModuleId) -> &str {
        self.machine.string(self.machine.module(module).path)
    }

    /// The image of Windows that a module is, and where it is.
    fn image(&self, module: ModuleId) -> Option<(File, PathBuf)> {
        self.places.find(self.path(module), self.machine.details(module)?.image?)
    }

    /// Where that is or, if it is not here, was.
    fn place(&self, module: ModuleId) -> PathBuf {
        self.image(module).map_or_else(|| self.path(module).into(), |(_, path)| path)
    }
}

impl ModuleFiles for LocalFiles<'_> {
    type File = File;

    fn open(&self, module: ModuleId) -> Option<File> {
        match self.file(module) {
            Some(file) => file.unchanged()?.try_clone().ok(),
            None => self.image(module).map(|(file, _)| file),
        }
    }

    /// Others write addresses of processes, with what was mapped there, or relative to where the image starts, as its file does.
    fn linked(&self, module: ModuleId, address: Svma) -> Svma {
        let file = self.file(module).filter(|file| !file.segments.is_empty());
        if self.machine.is_relative(module) {
            return Svma(address.0.wrapping_add(file.map_or(0, |file| file.start)));
        }
        let bias = file.zip(self.mapping(module, address));
        let bias = bias.map_or(0, |(file, mapping)| file.bias(Avma(mapping.start), mapping.file_offset));
        Svma(address.0.wrapping_sub(bias))
    }

    fn open_debug(&self, module: ModuleId) -> Option<File> {
        self.file(module)?.open_debug()
    }

    fn open_pdb(&self, module: ModuleId, id: &PdbId) -> Option<File> {
        if let Some(file) = self.file(module) {
            return file.open_pdb(id);
        }
        pdb::find(&Root::default(), &self.place(module), id, Some(&self.places.symbol_path))
    }

    /// Recordings of Windows tell the PDBs of images that are there.
    fn pdb_of(&self, module: ModuleId) -> Option<PdbId> {
        pdb_of(self.machine, module)
    }

    fn open_ahead_map(&self, module: ModuleId, id: &AheadMapId) -> Option<File> {
        if let Some(file) = self.file(module) {
            return file.open_ahead_map(id);
        }
        pdb::find_map(&Root::default(), &self.place(module), id, Some(&self.places.symbol_path))
    }

    fn ahead_map_of(&self, module: ModuleId) -> Option<AheadMapId> {
        ahead_map_of(self.machine, module)
    }

    fn open_shared(&self, module: ModuleId, path: &[u8], build_id: &[u8]) -> Option<File> {
        self.file(module)?.open_shared(path, build_id)
    }

    fn open_split(&self, module: ModuleId, folder: &[u8], name: &[u8]) -> Option<File> {
        self.file(module)?.open_split(folder, name)
    }

    fn open_package(&self, module: ModuleId) -> Option<File> {
        self.file(module)?.open_package()
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::process::Command;

    use collector_common::ids::{BuildId, Nanos, Pid};
    use collector_common::record::{Frame, FrameFlags, FrameId, ModuleMapping};
    use export::symbolize::Detail;

    use super::super::details;
    use super::*;

    /// A program that is linked for another place than its place in the file, its build id, and the address of its `main`.
    fn program(folder: &Path) -> (PathBuf, BuildId, u64) {
        let (source, path) = (folder.join("source.c"), folder.join("main"));
        fs::write(&source, "int main(void) { return 0; }").unwrap();
        let options = ["-g", "-no-pie", "-Wl,--build-id=0x0123456789abcdef0123456789abcdef01234567", "-o"];
        assert!(Command::new("gcc").args(options).args([&path, &source]).status().unwrap().success());
        let listed = Command::new("nm").arg(&path).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let main = listed.lines().find_map(|line| line.strip_suffix(" T main")).unwrap();
        let id = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef].repeat(3);
        (path, BuildId::new(&id[..20]).unwrap(), u64::from_str_radix(main, 16).unwrap())
    }

    /// What the frames at `addresses` in a file that is mapped from its start at `mapped` are called.
    fn named(path: &Path, build_id: Option<BuildId>, mapped: Option<u64>, address: u64) -> Option<String> {
        let mut machine = ExportMachine::default();
        let path = machine.intern_string(path.to_str().unwrap());
        let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id });
        let process = machine.add_process(Pid(1), "main", None, Nanos(0));
        machine.add_mapping(ModuleMapping {
            process,
            module,
            start: Avma(mapped.unwrap_or(0)),
            end: Avma(mapped.map_or(0, |start| start + 0x10_0000)),
            file_offset: FileOffset(0x1000),
            bias: 0,
            since: Nanos(0),
        });
        let frame =
            machine.intern_frame(Frame { module, address: Svma(address), flags: FrameFlags::default() });
        let symbols = name_from_files(&machine, Symbols::unresolved(&machine), Detail::Lines);
        symbols.is_resolved(frame).then(|| symbols.name(FrameId(0)).function.to_owned())
    }

    #[test]
    fn a_file_names_what_was_recorded_elsewhere_if_it_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let (path, id, main) = program(folder.path());
        assert_eq!(named(&path, Some(id), None, main).as_deref(), Some("main"));
        assert_eq!(named(&path, BuildId::new(&[1; 20]), None, main), None);
        assert_eq!(named(&path, None, None, main), None);
        assert_eq!(named(&folder.path().join("none"), Some(id), None, main), None);
    }

    #[test]
    fn addresses_of_a_process_are_told_from_those_of_the_file_by_what_was_mapped() {
        let folder = tempfile::tempdir().unwrap();
        let (path, id, main) = program(folder.path());
        // Without `-pie`, GNU ld puts byte 0x1000 of the file, which code begins with, at 0x401000.
        let mapped = |start| named(&path, Some(id), Some(start), start + (main - 0x40_1000));
        assert_eq!(mapped(0x40_1000).as_deref(), Some("main"), "as linked");
        assert_eq!(mapped(0x7f12_3456_7000).as_deref(), Some("main"), "anywhere else");
    }

    /// A program that is linked for 0x400000, which is where its image starts, however the profile was mapped.
    #[test]
    fn addresses_relative_to_the_image_are_those_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, id, main) = program(folder.path());
        let mut machine = ExportMachine::default();
        let path = machine.intern_string(path.to_str().unwrap());
        let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: Some(id) });
        let address = Svma(main - 0x40_0000);
        let frame = machine.intern_frame(Frame { module, address, flags: FrameFlags::default() });
        let named = |machine: &ExportMachine| {
            let symbols = name_from_files(machine, Symbols::unresolved(machine), Detail::Lines);
            symbols.name(frame).function.to_owned()
        };
        assert_eq!(named(&machine), format!("main+{:#x}", address.0));
        machine.set_relative(module);
        assert_eq!(named(&machine), "main");
    }

    #[test]
    fn names_that_are_there_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (path, id, main) = program(folder.path());
        let mut machine = ExportMachine::default();
        let path = machine.intern_string(path.to_str().unwrap());
        let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: Some(id) });
        let flags = FrameFlags::default();
        let [known, unknown] = [main, main + 1]
            .map(|address| machine.intern_frame(Frame { module, address: Svma(address), flags }));
        let mut symbols = Symbols::unresolved(&machine);
        symbols.set(known, "told", "told");
        let symbols = name_from_files(&machine, symbols, Detail::Lines);
        assert_eq!([known, unknown].map(|frame| symbols.name(frame).function), ["told", "main"]);
    }

    #[test]
    fn images_beyond_the_most_are_not_looked_for_and_counted() {
        let tell = |most| {
            let mut machine = ExportMachine::default();
            for name in ["a.dll", "b.dll", "c.dll"] {
                let path = machine.intern_string(name);
                let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
                let image = Some(ImageHeader::Summed { checksum: 1, size: 4096 });
                machine.set_details(module, ModuleDetails { image, ..ModuleDetails::default() });
                let flags = FrameFlags::default();
                machine.intern_frame(Frame { module, address: Svma(1), flags });
            }
            let looked = Cell::new(0);
            let find = |_: &str, _| {
                looked.set(looked.get() + 1);
                None
            };
            let told = tell_by(&mut machine, most, find);
            let modules = (0..machine.modules().len() as u32).map(ModuleId);
            let left =
                modules.filter(|it| machine.details(*it).is_some_and(|details| details.image.is_some()));
            (looked.get(), left.count(), told)
        };
        assert_eq!(tell(3), (3, 3, None));
        let told = "images that were not looked for, as 1 are the most: 2".to_owned();
        assert_eq!(tell(1), (1, 1, Some(told)));
    }

    /// A recording of Windows has no image here, and tells which PDB is its.
    #[test]
    fn a_pdb_names_what_was_recorded_on_windows() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("source.c"), "int begin(void) { return 0; }").unwrap();
        let target = ["--target=x86_64-pc-windows-msvc", "-g", "-gcodeview", "-c", "source.c"];
        let link =
            ["/debug", "/nodefaultlib", "/entry:begin", "/subsystem:console", "/out:main.exe", "source.o"];
        for (tool, args) in [("clang-22", &target[..]), ("lld-link-22", &link)] {
            let Ok(status) = Command::new(tool).args(args).current_dir(folder.path()).status() else {
                eprintln!("SKIPPED: {tool} is not there");
                return;
            };
            assert!(status.success());
        }
        let details = details::of(Some(&File::open(at("main.exe")).unwrap()), &Layout::default()).unwrap();
        let pdb = details.pdb.as_ref().unwrap();
        let stored = at("symbols").join(format!("main.pdb/{}{:X}", pdb.signature, pdb.age));
        fs::create_dir_all(&stored).unwrap();
        fs::rename(at("main.pdb"), stored.join("main.pdb")).unwrap();
        // `AddressOfEntryPoint` of the optional header, which is behind 24 bytes of others.
        let image = fs::read(at("main.exe")).unwrap();
        let word = |at: usize| u32::from_le_bytes(*image[at..].first_chunk().unwrap());
        let begin = u64::from(word(word(0x3c) as usize + 24 + 16));

        let mut machine = ExportMachine::default();
        let path = machine.intern_string(r"C:\Windows\main.exe");
        let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
        machine.set_details(module, details);
        let flags = FrameFlags::default();
        machine.intern_frame(Frame { module, address: Svma(begin), flags });
        let named = |symbol_path: Option<&Path>| {
            let mut files = LocalFiles::of(&machine);
            files.places.symbol_path = symbol_path.map(Into::into).unwrap_or_default();
            let symbols = symbolize_rest(&machine, &files, Detail::Lines, Symbols::unresolved(&machine));
            symbols.name(FrameId(0)).function.to_owned()
        };
        assert_eq!(named(Some(&at("symbols"))), "begin");
        assert_eq!(named(None), format!("main.exe+{begin:#x}"));
    }
}
