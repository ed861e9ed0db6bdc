//! One file that is or was executed.
//!
//! Files are read, never mapped: a file that is cut short while it is used gives an error, not a signal.

use std::cell::OnceCell;
use std::fs::File;
use std::path::PathBuf;
use std::time::SystemTime;

use collector_common::ids::{Avma, BuildId, FileOffset};

use super::bounded::{BoundedFile, UNWIND_SECTIONS};
use super::debug;
use super::layout::{DebugLink, Layout, Segment};
use super::table::Table;

/// A file, kept open so that it can be read when it has been deleted.
#[derive(Debug, Default)]
pub struct ModuleFile {
    /// `None` when it could not be opened, or was closed to bound the number of open files.
    pub(super) file: Option<File>,
    /// As the process that mapped it saw it.
    pub(super) path: PathBuf,
    /// When it had last been written when it was opened.
    pub(super) modified: Option<SystemTime>,
    pub(super) build_id: Option<BuildId>,
    pub(super) segments: Vec<Segment>,
    pub(super) has_symbols: bool,
    pub(super) debug_link: Option<DebugLink>,
    pub(super) table: OnceCell<Option<Table>>,
}

impl ModuleFile {
    pub(super) fn new(file: Option<File>, path: PathBuf, layout: Layout) -> Self {
        let modified = file.as_ref().and_then(modified);
        let Layout { segments, build_id, has_symbols, debug_link } = layout;
        let table = OnceCell::new();
        Self { file, path, modified, build_id, segments, has_symbols, debug_link, table }
    }

    /// The file, while it holds what was executed: one that was written to since holds something else.
    pub(super) fn unchanged(&self) -> Option<&File> {
        let file = self.file.as_ref()?;
        (modified(file) == self.modified).then_some(file)
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
        Table::read(&BoundedFile::new(self.unchanged()?, UNWIND_SECTIONS), debug)
    }

    /// Its debug file, where one is installed.
    pub(super) fn open_debug(&self) -> Option<File> {
        let by_build_id = self.build_id.and_then(debug::by_build_id);
        by_build_id.or_else(|| debug::by_link(&self.path, self.debug_link.as_ref()?))
    }

    /// Address in the process minus address as linked, wrapping, of a mapping of this file. A file without
    /// segments (no ELF) counts as linked at its file offsets.
    pub(super) fn bias(&self, start: Avma, file_offset: FileOffset) -> u64 {
        /// Segments are mapped from the page they begin on.
        const PAGE_MASK: u64 = !0xfff;
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

/// When a file was last written, where its file system tells.
fn modified(file: &File) -> Option<SystemTime> {
    file.metadata().and_then(|metadata| metadata.modified()).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::path::Path;
    use std::process::Command;

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
