//! One file that is or was executed.
//!
//! Files are read, never mapped: a file that is cut short while it is used gives an error, not a signal.

use std::cell::{Cell, OnceCell};
use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use collector_common::ids::{Avma, BuildId, FileOffset};
use export::symbolize::{AheadMapId, PdbId};
use object::elf;
use unwinder::TableError;

use super::bounded::{BoundedFile, UNWIND_SECTIONS};
use super::debug;
use super::image_file::ImageFile;
use super::layout::{DebugLink, Layout, PAGE_MASK, Segment, is_of_image};
use super::pdb;
use super::root::Root;
use super::table::Table;
use crate::symbol_path::VARIABLE;

/// A file, kept open so that it can be read when it has been deleted.
#[derive(Debug, Default)]
pub struct ModuleFile {
    /// `None` when it could not be opened, or was closed to bound the number of open files. An image's table reads on in it.
    pub(super) file: Option<Arc<File>>,
    /// As the process that mapped it saw it.
    pub(super) path: PathBuf,
    /// Below which the path is, and what belongs to the file.
    pub(super) root: Root,
    /// As it was when it was opened; `None` when it holds something else now.
    pub(super) written: Cell<Option<Written>>,
    /// What executes it; [`elf::EM_NONE`] where that is not known.
    pub(super) machine: elf::Machine,
    pub(super) build_id: Option<BuildId>,
    /// The address as linked of the first page that is loaded; 0 where that is not known.
    pub(super) start: u64,
    pub(super) segments: Vec<Segment>,
    pub(super) has_symbols: bool,
    pub(super) debug_link: Option<DebugLink>,
    pub(super) table: OnceCell<Option<Table>>,
}

impl ModuleFile {
    pub(super) fn new(file: Option<File>, path: PathBuf, layout: Layout) -> Self {
        let written = Cell::new(file.as_ref().and_then(Written::of));
        let file = file.map(Arc::new);
        let Layout { machine, start, segments, build_id, has_symbols, debug_link, .. } = layout;
        let (root, table) = (Root::default(), OnceCell::new());
        Self { file, path, root, written, machine, build_id, start, segments, has_symbols, debug_link, table }
    }

    /// Whether it is a PE image with code.
    pub(super) fn is_image(&self) -> bool {
        is_of_image(self.machine, &self.segments)
    }

    /// The file, while it holds what was executed: one that was written to since holds something else. One that has only a
    /// new date (`touch`, a restored backup) has its build id still.
    pub(super) fn unchanged(&self) -> Option<&File> {
        let file = self.file.as_deref()?;
        let (then, now) = (self.written.get()?, Written::of(file)?);
        if then != now {
            let build_id = || Layout::read(file).and_then(|layout| layout.build_id);
            let same = then.size == now.size && self.build_id.is_some() && build_id() == self.build_id;
            self.written.set(same.then_some(now));
        }
        self.written.get().map(|_| file)
    }

    /// Its unwind table, read the first time it is asked for; where the file has few rules, with those of its debug file.
    pub(super) fn table(&self) -> Option<&Table> {
        self.table.get_or_init(|| self.read_table(|| self.open_debug())).as_ref()
    }

    fn read_table(&self, open_debug: impl FnOnce() -> Option<File>) -> Option<Table> {
        let bounded = OnceCell::new();
        let debug = || {
            let file = open_debug()?;
            Some(bounded.get_or_init(|| BoundedFile::new(file, UNWIND_SECTIONS)))
        };
        let file = BoundedFile::new(self.unchanged()?, UNWIND_SECTIONS);
        let (of_image, written) = (self.file.as_ref()?, self.written.get()?);
        let table = Table::read(&file, debug, || ImageFile::new(Arc::clone(of_image), written));
        let path = self.path.display();
        table
            .inspect(|table| {
                if let Some(unread) = table.unread() {
                    log::warn!("{path} has more unwind rules than are used: {unread}");
                }
            })
            .inspect_err(|error| match error {
                TableError::Unread(_) => log::warn!("{path} has unwind rules, but none are used: {error}"),
                _ => log::info!("{path} has no unwind rules: {error}"),
            })
            .ok()
    }

    /// Its debug file, where one is installed.
    pub(super) fn open_debug(&self) -> Option<File> {
        self.root.and_ours().find_map(|root| {
            let by_build_id = self.build_id.and_then(|id| debug::by_build_id(&root, id));
            by_build_id.or_else(|| debug::by_link(&root, &self.path, self.debug_link.as_ref()?))
        })
    }

    /// The file that its debug information is shared with, where one is installed.
    pub(super) fn open_shared(&self, link: &[u8], build_id: &[u8]) -> Option<File> {
        self.root.and_ours().find_map(|root| debug::shared(&root, &self.path, link, build_id))
    }

    /// A file that its debug information was split into.
    pub(super) fn open_split(&self, folder: &[u8], name: &[u8]) -> Option<File> {
        self.root.and_ours().find_map(|root| debug::split(&root, &self.path, folder, name))
    }

    /// The file that all of these were packed into.
    pub(super) fn open_package(&self) -> Option<File> {
        self.root.and_ours().find_map(|root| debug::package(&root, &self.path))
    }

    /// Its PDB, if it is a PE image, and that is somewhere here.
    pub(super) fn open_pdb(&self, id: &PdbId) -> Option<File> {
        // Those folders are ours.
        let symbol_path = env::var_os(VARIABLE);
        let beside = self.root.is_other().then(|| pdb::find(&self.root, &self.path, id, None)).flatten();
        beside.or_else(|| pdb::find(&Root::default(), &self.path, id, symbol_path.as_deref()))
    }

    /// The same of its map of what .NET compiled ahead.
    pub(super) fn open_ahead_map(&self, id: &AheadMapId) -> Option<File> {
        let symbol_path = env::var_os(VARIABLE);
        let beside = self.root.is_other().then(|| pdb::find_map(&self.root, &self.path, id, None)).flatten();
        beside.or_else(|| pdb::find_map(&Root::default(), &self.path, id, symbol_path.as_deref()))
    }

    /// Address in the process minus address as linked, wrapping, of a mapping of this file. A file without
    /// segments (no ELF) counts as linked at its file offsets.
    pub(super) fn bias(&self, start: Avma, file_offset: FileOffset) -> u64 {
        let segment = self.segments.iter().find(|segment| {
            let first = segment.file_offset & PAGE_MASK;
            first <= file_offset.0 && file_offset.0 < segment.file_offset.saturating_add(segment.file_size)
        });
        let linked = segment.map_or(file_offset.0, |segment| {
            file_offset.0.wrapping_sub(segment.file_offset).wrapping_add(segment.address)
        });
        start.0.wrapping_sub(linked)
    }
}

/// The debug file of an open file, where one is installed.
pub(crate) fn debug_file_of(file: &File, path: &Path) -> Option<File> {
    ModuleFile::new(None, path.to_owned(), Layout::read(file)?).open_debug()
}

/// The build id of an open file, if it is an ELF file that has one.
#[cfg(feature = "debuginfod")]
pub(crate) fn build_id_of(file: &File) -> Option<BuildId> {
    Layout::read(file)?.build_id
}

/// What changes when a file is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    /// Where its file system tells.
    modified: Option<SystemTime>,
    pub(super) size: u64,
}

impl Written {
    pub(super) fn of(file: &File) -> Option<Self> {
        let metadata = file.metadata().ok()?;
        Some(Self { modified: metadata.modified().ok(), size: metadata.len() })
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::Command;
    use std::time::Duration;

    use unwinder::x86_64::X86_64;

    use super::super::Recorded as _;
    use super::*;

    #[test]
    fn addresses_are_virtual_addresses_not_file_offsets() {
        // As lld links: text at file offset 0x6c0 has address 0x16c0, so the kernel maps the page of file offset
        // 0 at the page of address 0x1000, as it does for the headers, which are mapped at address 0.
        let text = Segment { file_offset: 0x6c0, file_size: 0x300, address: 0x16c0 };
        let file = ModuleFile { segments: vec![text], ..ModuleFile::default() };
        let base = 0x5555_5555_0000;
        assert_eq!(file.bias(Avma(base + 0x1000), FileOffset(0)), base);
    }

    /// Runs a program in a folder.
    fn tool(folder: &Path, program: &str, args: &[&str]) {
        let status = Command::new(program).args(args).current_dir(folder).status();
        assert!(status.unwrap().success(), "{program} {args:?}");
    }

    /// Makes `main`, a library that has no rules, and `debug`, which has those of its function.
    fn taken_apart(folder: &Path, flag: &str) -> ModuleFile {
        std::fs::write(folder.join("source.c"), "int one(int a) { return a + 1; }").unwrap();
        let without = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-g", flag];
        tool(folder, "gcc", &[&["-shared", "-nostdlib", "-o", "main", "source.c"], &without[..]].concat());
        tool(folder, "objcopy", &["--only-keep-debug", "main", "debug"]);
        tool(folder, "strip", &["main"]);
        opened(folder)
    }

    fn opened(folder: &Path) -> ModuleFile {
        let path = folder.join("main");
        let file = File::open(&path).unwrap();
        let layout = Layout::read(&file).unwrap();
        ModuleFile::new(Some(file), path, layout)
    }

    fn functions(table: &Table) -> usize {
        X86_64::of(table).expect("a table of this machine's architecture").size_report().functions
    }

    /// Whether a file counts as unchanged after it was written anew with what `change` makes of it, and has another date.
    fn is_unchanged_after(folder: &Path, change: impl FnOnce(&mut Vec<u8>)) -> bool {
        let (module, path) = (opened(folder), folder.join("main"));
        assert!(module.unchanged().is_some());
        let mut bytes = std::fs::read(&path).unwrap();
        change(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let date = file.metadata().unwrap().modified().unwrap();
        file.set_modified(date + Duration::from_secs(1)).unwrap();
        let unchanged = module.unchanged().is_some();
        assert_eq!(module.unchanged().is_some(), unchanged, "that stays so");
        unchanged
    }

    #[test]
    fn a_new_date_is_no_change() {
        let folder = tempfile::tempdir().unwrap();
        let build_id = taken_apart(folder.path(), "-Wl,--build-id").build_id.unwrap();
        assert!(is_unchanged_after(folder.path(), |_| {}));
        assert!(!is_unchanged_after(folder.path(), |bytes| bytes.push(0)));
        assert!(!is_unchanged_after(folder.path(), |bytes| {
            let id = build_id.as_bytes();
            let place = bytes.windows(id.len()).position(|window| window == id).unwrap();
            bytes[place] ^= 1;
        }));
        taken_apart(folder.path(), "-Wl,--build-id=none");
        assert!(!is_unchanged_after(folder.path(), |_| {}), "nobody knows what was written");
    }

    #[test]
    fn rules_that_a_file_lacks_are_its_debug_files() {
        let folder = tempfile::tempdir().unwrap();
        let main = taken_apart(folder.path(), "-Wl,--build-id");
        assert!(main.build_id.is_some() && main.read_table(|| None).is_none());
        let debug = || File::open(folder.path().join("debug")).ok();
        assert_eq!(functions(&main.read_table(debug).unwrap()), 1);
    }

    #[test]
    fn a_debug_file_is_found_by_its_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        let unlinked = taken_apart(folder.path(), "-Wl,--build-id=none");
        assert!(unlinked.build_id.is_none() && unlinked.open_debug().is_none());
        tool(folder.path(), "objcopy", &["--add-gnu-debuglink=debug", "main"]);
        assert_eq!(functions(opened(folder.path()).table().unwrap()), 1);

        std::fs::create_dir(path(".debug")).unwrap();
        std::fs::rename(path("debug"), path(".debug/debug")).unwrap();
        // Another file of that name.
        std::fs::copy(path("main"), path("debug")).unwrap();
        let mut found = opened(folder.path()).open_debug().unwrap();
        let mut bytes = Vec::new();
        found.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, std::fs::read(path(".debug/debug")).unwrap());

        std::fs::write(path(".debug/debug"), &bytes[..bytes.len() - 1]).unwrap();
        assert!(opened(folder.path()).open_debug().is_none());
    }
}
