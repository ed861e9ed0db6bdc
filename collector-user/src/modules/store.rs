//! All modules of a recording.

use std::cell::OnceCell;
use std::fs::File;
use std::path::PathBuf;

use collector_common::ids::{Avma, BuildId, FileOffset, Nanos, Pid, Tid};
use collector_common::record::{ExportMachine, Module, ModuleId, ModuleKind, ProcessId};
use export::symbolize::{AheadMapId, PdbId};
use object::elf;
use rustc_hash::{FxHashMap, FxHashSet};
use unwinder::UnwindTable;

use super::file::ModuleFile;
use super::jit::JitFiles;
use super::layout::Layout;
use super::noted::NotedFile;
use super::recorded::RecordedFiles;
use super::root::{Root, Roots};
use super::table::{Recorded, Table};
use super::{details, open, probes, vdso};
#[cfg(feature = "debuginfod")]
use crate::debuginfod::Servers;
use crate::procfs::Identity;
use crate::symbol_path::text;

mod copied;

pub(crate) use copied::Beginning;
use copied::{Copied, Copies};

/// Files that are kept open at most; further ones are not read and count as unreadable.
const MAX_OPEN_FILES: usize = 4096;

/// A mapping, as the sideband or `/proc` tells it.
#[derive(Clone, Copy, Debug)]
pub struct MappedFile<'a> {
    /// First address.
    pub start: Avma,
    /// First address after it.
    pub end: Avma,
    /// Where in the file it starts.
    pub file_offset: FileOffset,
    /// Which file; `None` where the record does not tell.
    pub identity: Option<Identity>,
    /// Its build id, where the record tells it.
    pub build_id: Option<BuildId>,
    /// Its path as the process sees it, or a name in brackets.
    pub path: &'a [u8],
    /// The thread that mapped it, or one that had not ended when it was found.
    pub thread: Tid,
    /// When it was mapped; 0 for before the recording.
    pub since: Nanos,
}

/// What tells files apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    BuildId(BuildId),
    /// An inode is a file's for as long as the file is there or open; then it may become another's, of another
    /// generation. `/proc` tells no generation, which is 0 then.
    Inode {
        major: u32,
        minor: u32,
        inode: u64,
        generation: u64,
    },
    /// Of a recording that tells neither.
    Path(Box<[u8]>),
}

impl MappedFile<'_> {
    /// Whether the path is one that a file has. What the kernel calls memory without a file looks like one, too
    /// (`perf_event_mmap_event` of `kernel/events/core.c`, `tools/perf/util/map.c`).
    fn has_path_of_file(&self) -> bool {
        self.path.starts_with(b"/") && !self.is_called_memory()
    }

    /// Whether it is memory, and nothing that has a name of the kernel's (`[vdso]`).
    fn has_no_file(&self) -> bool {
        (self.path.is_empty() || self.is_called_memory())
            && self.identity.is_none_or(|identity| identity.inode == 0)
    }

    fn is_called_memory(&self) -> bool {
        const ANONYMOUS: [&[u8]; 4] = [b"//", b"/anon_hugepage", b"/dev/zero", b"/SYSV"];
        ANONYMOUS.iter().any(|name| self.path.starts_with(name))
    }

    /// Whether it is a file that is in no folder (`memfd_create`). .NET has one for code that it makes, to be written to at
    /// one address and executed at another; others have programs in one.
    fn is_in_no_folder(&self) -> bool {
        self.path.starts_with(b"/memfd:")
    }
}

impl From<Identity> for Key {
    fn from(Identity { major, minor, inode, generation }: Identity) -> Self {
        Self::Inode { major, minor, inode, generation }
    }
}

/// All modules, by [`ModuleId`].
#[derive(Debug, Default)]
pub struct Modules {
    /// Where files are looked for that were mapped when the recording was made, `None` while it is made.
    recorded: Option<RecordedFiles>,
    /// By module; shorter than the machine's list where the last ones have no file.
    files: Vec<ModuleFile>,
    by_key: FxHashMap<Key, ModuleId>,
    anonymous: FxHashMap<ProcessId, ModuleId>,
    unmapped: FxHashMap<ProcessId, ModuleId>,
    probe_slots: FxHashMap<ProcessId, ModuleId>,
    probe_trampolines: FxHashMap<ProcessId, ModuleId>,
    vdso: Option<ModuleId>,
    vdso_image: OnceCell<Option<Vec<u8>>>,
    /// That of 32-bit processes, and its image as soon as one could be read.
    compat_vdso: Option<ModuleId>,
    compat_vdso_image: Option<Vec<u8>>,
    open_files: usize,
    /// Files that were opened and not asked for yet; `None` where nobody will.
    opened: Option<Vec<(File, Pid)>>,
    /// What files were found to be, and was not asked for yet; `None` where nobody will.
    noted: Option<Vec<NotedFile>>,
    roots: Roots,
    jit: JitFiles,
    copies: Copies,
}

/// Where a mapping's code is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The file, or what else it is.
    pub module: ModuleId,
    /// Address in the process minus address as linked, wrapping.
    pub bias: u64,
    /// Where in the file it starts; also of a copy of what is there.
    pub file_offset: FileOffset,
}

impl Modules {
    /// Those of a recording that was made earlier.
    pub fn of_recording(mut files: RecordedFiles) -> Self {
        let jit = files.take_jit();
        Self { recorded: Some(files), jit, ..Self::default() }
    }

    /// Names of code that has no file, and where they may be.
    pub(crate) fn jit(&self) -> &JitFiles {
        &self.jit
    }

    /// The same, to be told of what happens.
    pub(crate) fn jit_mut(&mut self) -> &mut JitFiles {
        &mut self.jit
    }

    /// From now on, [`Self::take_opened`] tells of files that are opened.
    pub(crate) fn keep_opened(&mut self) {
        self.opened = Some(Vec::new());
    }

    /// Whether it does.
    pub(crate) fn keeps_opened(&self) -> bool {
        self.opened.is_some()
    }

    /// Files with code that were mapped for the first time, copies of others among them, with the process that did.
    pub(crate) fn take_opened(&mut self) -> Vec<(File, Pid)> {
        self.opened.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// From now on, [`Self::take_noted`] tells what files are found to be.
    pub(crate) fn keep_noted(&mut self) {
        self.noted = Some(Vec::new());
    }

    /// What files were found to be that were mapped for the first time.
    pub(crate) fn take_noted(&mut self) -> Vec<NotedFile> {
        self.noted.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Servers that are asked for files of a recording that was made earlier.
    #[cfg(feature = "debuginfod")]
    pub(crate) fn servers(&self) -> Option<&Servers> {
        self.recorded.as_ref()?.servers()
    }

    /// Where the files of a recording that was made earlier are looked for.
    pub(crate) fn recorded_mut(&mut self) -> Option<&mut RecordedFiles> {
        self.recorded.as_mut()
    }

    /// A process executed another program.
    pub(crate) fn executed(&mut self, process: ProcessId) {
        self.jit.executed(process);
        self.copies.forget(process);
    }

    /// A process has ended.
    pub(crate) fn ended(&mut self, process: ProcessId) {
        self.jit.ended(process);
        self.copies.forget(process);
    }

    /// The module of a mapping, and its bias there. A file seen for the first time is opened now, as the
    /// process may be gone a moment later.
    pub fn resolve(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        pid: Pid,
        mapped: &MappedFile<'_>,
    ) -> Resolved {
        let copied = mapped.has_no_file().then(|| self.copied(machine, process, pid, mapped)).flatten();
        self.resolve_as(machine, process, pid, mapped, copied)
    }

    /// The same for who knows the mapping of a file's beginning next below, or knows that there is none.
    pub(crate) fn resolve_above(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        pid: Pid,
        mapped: &MappedFile<'_>,
        below: Option<&Beginning>,
    ) -> Resolved {
        let below = below.filter(|_| mapped.has_no_file());
        let copied = below.and_then(|below| self.copied_from(machine, process, pid, mapped, below));
        self.resolve_as(machine, process, pid, mapped, copied)
    }

    fn resolve_as(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        pid: Pid,
        mapped: &MappedFile<'_>,
        copied: Option<Copied>,
    ) -> Resolved {
        if let Some(Copied { module, base, file_offset }) = copied {
            return Resolved { module, bias: base.0, file_offset };
        }
        let (module, bias) = self.resolve_as_told(machine, process, pid, mapped);
        Resolved { module, bias, file_offset: mapped.file_offset }
    }

    fn resolve_as_told(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        pid: Pid,
        mapped: &MappedFile<'_>,
    ) -> (ModuleId, u64) {
        if mapped.path == b"[vdso]" {
            let compat = vdso::is_compat(mapped.end);
            let module = if compat { self.compat_vdso(machine, pid, mapped) } else { self.vdso(machine) };
            return (module, mapped.start.0.wrapping_sub(mapped.file_offset.0));
        }
        if mapped.path == probes::SLOTS.as_bytes() {
            return (self.probe_slots(machine, process), mapped.start.0);
        }
        if mapped.path == probes::TRAMPOLINE.as_bytes() {
            return (self.probe_trampoline(machine, process), mapped.start.0);
        }
        let Some(key) = self.key(mapped) else {
            return (self.made_at_run_time(machine, process, pid, mapped), 0);
        };
        let module = self.known(&key).unwrap_or_else(|| self.add_file(machine, pid, mapped, key));
        let is_program =
            || self.files.get(module.0 as usize).is_some_and(|file| file.machine != elf::EM_NONE);
        if mapped.is_in_no_folder() && !is_program() {
            return (self.made_at_run_time(machine, process, pid, mapped), 0);
        }
        self.jit.file_mapped(process, pid, mapped);
        let file = self.files.get(module.0 as usize);
        if file.is_some_and(ModuleFile::is_image) {
            self.copies.image_mapped(process, mapped);
        }
        (module, file.map_or(0, |file| file.bias(mapped.start, mapped.file_offset)))
    }

    /// The module of memory whose code a process has made.
    fn made_at_run_time(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        pid: Pid,
        mapped: &MappedFile<'_>,
    ) -> ModuleId {
        self.jit.code_mapped(process, pid, mapped.thread);
        self.anonymous(machine, process)
    }

    /// What tells the file of a mapping from others; `None` for memory without a file.
    fn key(&self, mapped: &MappedFile<'_>) -> Option<Key> {
        let has_file = mapped.identity.is_none_or(|identity| identity.inode != 0)
            && !mapped.path.is_empty()
            && !mapped.path.starts_with(b"[")
            && !mapped.is_called_memory();
        if !has_file {
            return None;
        }
        let recorded = self.recorded.as_ref().and_then(|files| files.build_id(mapped));
        if let Some(id) = recorded.or(mapped.build_id) {
            return Some(Key::BuildId(id));
        }
        match mapped.identity {
            Some(identity) => Some(Key::from(identity)),
            None => mapped.has_path_of_file().then(|| Key::Path(mapped.path.into())),
        }
    }

    /// The module of a file that is open. Nothing else can have its inode, so the generation need not be known.
    fn known(&self, key: &Key) -> Option<ModuleId> {
        let any_generation = match *key {
            Key::Inode { major, minor, inode, generation: 1.. } => {
                Some(Key::Inode { major, minor, inode, generation: 0 })
            }
            _ => None,
        };
        let mut modules = std::iter::once(key).chain(&any_generation).filter_map(|key| self.by_key.get(key));
        modules.find(|&&module| self.file(module).is_some()).copied()
    }

    fn open(&self, pid: Pid, mapped: &MappedFile<'_>) -> Option<File> {
        match &self.recorded {
            Some(files) => files.open(mapped),
            None => open::open(pid, mapped),
        }
    }

    fn add_file(
        &mut self,
        machine: &mut ExportMachine,
        pid: Pid,
        mapped: &MappedFile<'_>,
        key: Key,
    ) -> ModuleId {
        let file = self.open(pid, mapped).filter(|_| self.open_files < MAX_OPEN_FILES);
        if let Some(noted) = &mut self.noted {
            noted.extend(NotedFile::of(mapped, file.as_ref()));
        }
        if let Some(&known) = self.by_key.get(&key).filter(|_| file.is_none()) {
            return known;
        }
        if let (Some(opened), Some(file)) = (&mut self.opened, &file) {
            opened.extend(file.try_clone().map(|file| (file, pid)));
        }
        let layout = file.as_ref().and_then(Layout::read).unwrap_or_default();
        let build_id = layout.build_id.or(match key {
            Key::BuildId(id) => Some(id),
            _ => None,
        });
        let path = PathBuf::from(text(mapped.path));
        let root = match self.recorded {
            None => self.roots.of(pid, mapped.thread),
            Some(_) => Root::default(),
        };
        if let Some(&known) = build_id.and_then(|id| self.by_key.get(&Key::BuildId(id))) {
            self.add_copy(known, key, ModuleFile { root, ..ModuleFile::new(file, path, layout) });
            return known;
        }
        let name = machine.intern_string(&String::from_utf8_lossy(mapped.path));
        let module = machine.add_module(Module { kind: ModuleKind::File, path: name, build_id });
        if let Some(details) = details::of(file.as_ref(), &layout) {
            machine.set_details(module, details);
        }
        self.by_key.insert(key, module);
        if let Some(id) = build_id {
            self.by_key.insert(Key::BuildId(id), module);
        }
        self.open_files += usize::from(file.is_some());
        self.put(module, ModuleFile { root, ..ModuleFile::new(file, path, layout) });
        module
    }

    /// Copies of a file are one module. Of copies one is kept open, if there is one that names more than the dynamic
    /// linker needs then that; what another's inode is later, its inode alone does not say.
    fn add_copy(&mut self, module: ModuleId, key: Key, copy: ModuleFile) {
        let known = self.files.get(module.0 as usize);
        if copy.has_symbols && known.is_some_and(|known| !known.has_symbols) {
            self.by_key.retain(|key, of| *of != module || matches!(key, Key::BuildId(_)));
            self.by_key.insert(key, module);
            self.put(module, copy);
        } else if matches!(key, Key::Inode { generation: 1.., .. }) {
            self.by_key.insert(key, module);
        }
    }

    /// The module of a process's executable memory without a file.
    pub fn anonymous(&mut self, machine: &mut ExportMachine, process: ProcessId) -> ModuleId {
        *self.anonymous.entry(process).or_insert_with(|| {
            let path = machine.intern_string("[anon]");
            machine.add_module(Module { kind: ModuleKind::Anonymous(process), path, build_id: None })
        })
    }

    /// The module of a process's addresses that no mapping holds.
    pub fn unmapped(&mut self, machine: &mut ExportMachine, process: ProcessId) -> ModuleId {
        *self.unmapped.entry(process).or_insert_with(|| {
            let path = machine.intern_string("[unmapped]");
            machine.add_module(Module { kind: ModuleKind::Unmapped(process), path, build_id: None })
        })
    }

    /// The module of the memory in a process from which probed instructions are executed.
    fn probe_slots(&mut self, machine: &mut ExportMachine, process: ProcessId) -> ModuleId {
        *self.probe_slots.entry(process).or_insert_with(|| {
            let path = machine.intern_string(probes::SLOTS);
            machine.add_module(Module { kind: ModuleKind::Anonymous(process), path, build_id: None })
        })
    }

    /// Whether a module of a process is that.
    pub(crate) fn is_probe_slots(&self, process: ProcessId, module: ModuleId) -> bool {
        self.probe_slots.get(&process) == Some(&module)
    }

    /// The module of what probed instructions of a process call.
    fn probe_trampoline(&mut self, machine: &mut ExportMachine, process: ProcessId) -> ModuleId {
        if let Some(&module) = self.probe_trampolines.get(&process) {
            return module;
        }
        let path = machine.intern_string(probes::TRAMPOLINE);
        let kind = ModuleKind::Anonymous(process);
        let module = machine.add_module(Module { kind, path, build_id: None });
        let table = OnceCell::from(probes::trampoline_table());
        self.put(module, ModuleFile { table, ..ModuleFile::default() });
        self.probe_trampolines.insert(process, module);
        module
    }

    fn vdso(&mut self, machine: &mut ExportMachine) -> ModuleId {
        if let Some(module) = self.vdso {
            return module;
        }
        let module = add_vdso(machine);
        let noted = self.noted.is_some().then(|| NotedFile::of_vdso(self.own_vdso()));
        if let Some(all) = &mut self.noted {
            all.extend(noted);
        }
        let table = Table::known(self.own_vdso());
        self.put(module, ModuleFile { table, ..ModuleFile::default() });
        self.vdso = Some(module);
        module
    }

    /// The same bytes for all 32-bit processes, of which this one may have ended already.
    fn compat_vdso(&mut self, machine: &mut ExportMachine, pid: Pid, mapped: &MappedFile<'_>) -> ModuleId {
        let module = *self.compat_vdso.get_or_insert_with(|| add_vdso(machine));
        if self.compat_vdso_image.is_none() && self.recorded.is_none() {
            self.compat_vdso_image = vdso::compat_image(pid, mapped);
            let table = Table::known(self.compat_vdso_image.as_deref());
            self.put(module, ModuleFile { table, ..ModuleFile::default() });
        }
        module
    }

    fn put(&mut self, module: ModuleId, file: ModuleFile) {
        let at = module.0 as usize;
        if self.files.len() <= at {
            self.files.resize_with(at + 1, ModuleFile::default);
        }
        self.files[at] = file;
    }

    /// The ELF image of a module that is a vDSO.
    pub fn vdso_image(&self, module: ModuleId) -> Option<&[u8]> {
        if self.compat_vdso == Some(module) {
            return self.compat_vdso_image.as_deref();
        }
        self.own_vdso()
    }

    /// That of 64-bit processes.
    fn own_vdso(&self) -> Option<&[u8]> {
        let is_same = |image: &Vec<u8>| self.recorded.as_ref().is_none_or(|files| files.has_vdso(image));
        self.vdso_image.get_or_init(|| vdso::image().filter(is_same)).as_deref()
    }

    /// A module's unwind table, read the first time it is asked for; `None` where its code is of another architecture.
    pub fn table<A: Recorded>(&self, module: ModuleId) -> Option<&UnwindTable<A>> {
        A::of(self.files.get(module.0 as usize)?.table()?)
    }

    /// What executes the first of the files that could be read (`e_machine`).
    pub(crate) fn elf_machine(&self) -> Option<elf::Machine> {
        self.files.iter().map(|file| file.machine).find(|&machine| machine != elf::EM_NONE)
    }

    /// A module's file, if it is open and nobody has written to it since.
    pub fn file(&self, module: ModuleId) -> Option<&File> {
        self.files.get(module.0 as usize)?.unchanged()
    }

    /// The debug file of a module, where one is installed.
    pub fn open_debug(&self, module: ModuleId) -> Option<File> {
        self.files.get(module.0 as usize)?.open_debug()
    }

    /// The PDB of a module that is a PE image, where there is one.
    pub fn open_pdb(&self, module: ModuleId, id: &PdbId) -> Option<File> {
        self.files.get(module.0 as usize)?.open_pdb(id)
    }

    /// The map of what .NET compiled ahead of a module that is a PE image, where there is one.
    pub fn open_ahead_map(&self, module: ModuleId, id: &AheadMapId) -> Option<File> {
        self.files.get(module.0 as usize)?.open_ahead_map(id)
    }

    /// The file that a module's debug information is shared with, by the path and the build id that it tells.
    pub fn open_shared(&self, module: ModuleId, path: &[u8], build_id: &[u8]) -> Option<File> {
        self.files.get(module.0 as usize)?.open_shared(path, build_id)
    }

    /// A file that a module's debug information was split into, by the compiler's folder and the name that it tells.
    pub fn open_split(&self, module: ModuleId, folder: &[u8], name: &[u8]) -> Option<File> {
        self.files.get(module.0 as usize)?.open_split(folder, name)
    }

    /// The file that all of these were packed into.
    pub fn open_package(&self, module: ModuleId) -> Option<File> {
        self.files.get(module.0 as usize)?.open_package()
    }

    /// Paths and build ids of all files and of the vDSO, as far as they have one.
    pub(crate) fn build_ids<'a>(
        &self,
        machine: &'a ExportMachine,
    ) -> impl Iterator<Item = (&'a str, BuildId)> + use<'a> {
        let of_image = |image: &[u8]| Layout::of_image(image).and_then(|layout| layout.build_id);
        let vdso = self.own_vdso().and_then(of_image).filter(|_| self.vdso.is_some());
        machine.modules().iter().filter_map(move |module| match module.kind {
            ModuleKind::File => Some((machine.string(module.path), module.build_id?)),
            ModuleKind::Vdso => Some((machine.string(module.path), vdso?)),
            _ => None,
        })
    }

    /// Those of [`Self::unreadable`] that are there and are not those of a recording that was made earlier.
    pub(crate) fn changed(&self, machine: &ExportMachine) -> usize {
        let Some(files) = &self.recorded else { return 0 };
        let path = |id: ModuleId| machine.string(machine.module(id).path).as_bytes();
        self.not_open(machine).into_iter().filter(|&id| files.has_changed(path(id))).count()
    }

    /// Files with recorded code of which the recording told another build id when they were mapped already: what was opened is not what ran.
    pub(crate) fn mistaken(&self, machine: &ExportMachine) -> usize {
        let Some(files) = &self.recorded else { return 0 };
        let is_other = |module: &ModuleId| {
            let Module { kind, path, build_id } = *machine.module(*module);
            let told = files.told_build_id(machine.string(path).as_bytes());
            kind == ModuleKind::File && build_id.zip(told).is_some_and(|(found, told)| found != told)
        };
        let recorded: FxHashSet<ModuleId> = machine.frames().iter().map(|frame| frame.module).collect();
        recorded.iter().filter(|module| is_other(module)).count()
    }

    /// Files with recorded code that could not be opened when they were first mapped, or were too many to be kept open.
    pub fn unreadable(&self, machine: &ExportMachine) -> usize {
        self.not_open(machine).len()
    }

    fn not_open(&self, machine: &ExportMachine) -> Vec<ModuleId> {
        let recorded: FxHashSet<ModuleId> = machine.frames().iter().map(|frame| frame.module).collect();
        let is_file = |module: &&ModuleId| machine.module(**module).kind == ModuleKind::File;
        let is_open =
            |module: &ModuleId| self.files.get(module.0 as usize).is_some_and(|module| module.file.is_some());
        recorded.iter().filter(is_file).filter(|module| !is_open(module)).copied().collect()
    }
}

fn add_vdso(machine: &mut ExportMachine) -> ModuleId {
    let path = machine.intern_string("[vdso]");
    machine.add_module(Module { kind: ModuleKind::Vdso, path, build_id: None })
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::MetadataExt as _;
    use std::process::Command;

    use collector_common::ids::Svma;
    use collector_common::record::{Frame, FrameFlags};

    use super::*;

    #[test]
    fn a_file_that_cannot_be_opened_counts_when_its_code_is_recorded() {
        let (mut modules, mut machine) = (Modules::default(), ExportMachine::default());
        let process = machine.add_process(Pid(1), "program", None, Nanos(0));
        let mapped = MappedFile {
            start: Avma(0x1000),
            end: Avma(0x2000),
            file_offset: FileOffset(0),
            identity: Some(Identity { major: 0, minor: 0, inode: 1, generation: 0 }),
            build_id: None,
            path: b"/no/such/program",
            since: Nanos(0),
            thread: Tid(u32::MAX),
        };
        let module = modules.resolve(&mut machine, process, Pid(u32::MAX), &mapped).module;
        assert_eq!(modules.unreadable(&machine), 0);
        for address in [1, 2] {
            machine.intern_frame(Frame { module, address: Svma(address), flags: FrameFlags::default() });
        }
        assert_eq!(modules.unreadable(&machine), 1);
    }

    #[test]
    fn names_are_those_of_the_copy_that_has_them() {
        let folder = tempfile::tempdir().unwrap();
        let tool = |program: &str, args: &[&str]| {
            let status = Command::new(program).args(args).current_dir(folder.path()).status();
            assert!(status.unwrap().success(), "{program} {args:?}");
        };
        std::fs::write(folder.path().join("source.c"), "int main(void) { return 0; }").unwrap();
        tool("gcc", &["-Wl,--build-id", "-o", "whole", "source.c"]);
        tool("strip", &["-o", "stripped", "whole"]);
        let (mut modules, mut machine) = (Modules::default(), ExportMachine::default());
        let process = machine.add_process(Pid(1), "program", None, Nanos(0));
        let mut file_of = |name: &str| {
            let path = folder.path().join(name);
            let data = path.metadata().unwrap();
            let (major, minor) = (rustix::fs::major(data.dev()), rustix::fs::minor(data.dev()));
            let mapped = MappedFile {
                start: Avma(0x1000),
                end: Avma(0x2000),
                file_offset: FileOffset(0),
                identity: Some(Identity { major, minor, inode: data.ino(), generation: 0 }),
                build_id: None,
                path: path.as_os_str().as_bytes(),
                thread: Tid(std::process::id()),
                since: Nanos(0),
            };
            let own = Pid(std::process::id());
            let module = modules.resolve(&mut machine, process, own, &mapped).module;
            (module, modules.file(module).unwrap().metadata().unwrap().ino() == data.ino())
        };
        let (module, _) = file_of("stripped");
        assert_eq!(file_of("whole"), (module, true), "the one with names takes its place");
        assert_eq!(file_of("stripped"), (module, false), "and keeps it");
        assert_eq!(file_of("whole"), (module, true));
    }
}
