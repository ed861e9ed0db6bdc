//! The files of a recording that was made earlier, or on another machine.
//!
//! A file is taken where it was mapped from, or from the folder where `perf record` and `perf buildid-cache` keep copies
//! (`PERF_BUILDID_DIR`, else `~/.debug`), if it has the build id that the recording tells. For a file without one the only sign is its date:
//! it is not taken if it was written to after the recording. Layout of the folder: `tools/perf/util/build-id.c`. Of a file that is in
//! neither place servers are asked, where there are any.

use std::cell::RefCell;
use std::env;
use std::fs::File;
use std::path::PathBuf;
use std::time::SystemTime;

use collector_common::ids::BuildId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::jit::{Believed, JitFiles};
use super::layout::Layout;
use super::noted::{NotedFile, VDSO};
use super::open::{open_chosen, open_regular};
use super::store::MappedFile;
#[cfg(feature = "debuginfod")]
use crate::debuginfod::Servers;
use crate::procfs::Identity;
use crate::symbol_path::text;

/// Files of which a recording tells build ids beside its mappings, at most: more than all processes of a machine have.
pub(crate) const MOST_BUILD_IDS: usize = 262_144;

/// Where the files of a recording are.
#[derive(Debug)]
pub struct RecordedFiles {
    /// What the recording tells beside its mappings, by path.
    build_ids: FxHashMap<Box<[u8]>, BuildId>,
    /// The same of what it found, where it is a journal; whether that could be opened, and its build id.
    found: FxHashMap<Identity, (bool, Option<BuildId>)>,
    /// When the recording ended.
    ended: SystemTime,
    copies: Option<PathBuf>,
    /// Whether it was made on the kernel that runs now, as far as it does not tell the vDSO's build id.
    of_this_kernel: bool,
    /// Paths where another file is than that of the recording.
    changed: RefCell<FxHashSet<Box<[u8]>>>,
    jit: JitFiles,
    #[cfg(feature = "debuginfod")]
    servers: Option<Servers>,
}

impl RecordedFiles {
    /// Of a recording that ended then.
    pub fn new(ended: SystemTime, of_this_kernel: bool) -> Self {
        let copies = env::var_os("PERF_BUILDID_DIR").map(PathBuf::from);
        let copies = copies.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".debug")));
        let (build_ids, changed, jit) = (FxHashMap::default(), RefCell::default(), JitFiles::gone());
        Self {
            build_ids,
            found: FxHashMap::default(),
            ended,
            copies,
            of_this_kernel,
            changed,
            jit,
            #[cfg(feature = "debuginfod")]
            servers: None,
        }
    }

    /// From now on, files that are not here are asked for.
    #[cfg(feature = "debuginfod")]
    pub(crate) fn ask_servers(&mut self, servers: Option<Servers>) {
        self.servers = servers;
    }

    /// The servers that are asked.
    #[cfg(feature = "debuginfod")]
    pub(crate) fn servers(&self) -> Option<&Servers> {
        self.servers.as_ref()
    }

    /// The recording was made on this machine: what its processes wrote of their code may be there. `has_system_clock`: its times
    /// are those of the monotonic clock.
    pub(crate) fn believe(&mut self, believed: Believed, has_system_clock: bool) {
        self.jit = JitFiles::of_recording(believed, has_system_clock);
    }

    pub(super) fn take_jit(&mut self) -> JitFiles {
        std::mem::take(&mut self.jit)
    }

    /// The recording tells a file's build id, for when it is mapped. There is room for 262,144.
    pub fn set_build_id(&mut self, path: &[u8], id: BuildId) {
        if self.build_ids.len() < MOST_BUILD_IDS {
            self.build_ids.insert(path.into(), id);
        }
    }

    /// That build id.
    pub(super) fn told_build_id(&self, path: &[u8]) -> Option<BuildId> {
        self.build_ids.get(path).copied()
    }

    /// A journal tells what a file was found to be.
    pub(crate) fn set_found(&mut self, file: &NotedFile) {
        match (file.identity, file.build_id) {
            (Some(identity), _) => {
                self.found.insert(identity, (file.is_open, file.build_id));
            }
            (None, Some(id)) if *file.path == *VDSO => self.set_build_id(VDSO, id),
            // The path may be another file's later.
            _ => {}
        }
    }

    /// What a mapped file was found to be. Where `/proc` told of it first, that told no generation.
    fn found(&self, mapped: &MappedFile<'_>) -> Option<(bool, Option<BuildId>)> {
        let identity = mapped.identity?;
        let any_generation = || self.found.get(&Identity { generation: 0, ..identity });
        self.found.get(&identity).or_else(any_generation).copied()
    }

    /// The build id of what is mapped, as far as the recording tells it.
    pub(super) fn build_id(&self, mapped: &MappedFile<'_>) -> Option<BuildId> {
        let found = || self.found(mapped).and_then(|(_, id)| id);
        mapped.build_id.or_else(found).or_else(|| self.told_build_id(mapped.path))
    }

    /// The file, if it is still what it was, and could be opened when it was recorded.
    pub(super) fn open(&self, mapped: &MappedFile<'_>) -> Option<File> {
        let was_open = self.found(mapped).is_none_or(|(is_open, _)| is_open);
        if !was_open {
            return None;
        }
        self.find(mapped.path, self.build_id(mapped))
    }

    /// The file that was at a path, with this build id if one is told.
    pub(super) fn find(&self, recorded: &[u8], expected: Option<BuildId>) -> Option<File> {
        let path = PathBuf::from(text(recorded));
        let original = path.is_absolute().then(|| open_regular(&path)).flatten();
        let is_there = original.is_some();
        let copy = || open_chosen(&self.copy(&expected?, "elf")?);
        let same = |file: &File| self.is_same(file, expected);
        let found = original.filter(same).or_else(|| copy().filter(same));
        #[cfg(feature = "debuginfod")]
        let found = found.or_else(|| self.servers()?.executable(expected?));
        if found.is_none() && is_there {
            self.changed.borrow_mut().insert(recorded.into());
        }
        found
    }

    /// A copy that `perf` keeps: `.build-id/ab/cdef/NAME`.
    pub(crate) fn copy(&self, id: &BuildId, name: &str) -> Option<PathBuf> {
        let id = id.to_string();
        let (head, tail) = id.split_at_checked(2)?;
        Some(self.copies.as_ref()?.join(".build-id").join(head).join(tail).join(name))
    }

    fn is_same(&self, file: &File, expected: Option<BuildId>) -> bool {
        match expected {
            Some(_) => Layout::read(file).and_then(|layout| layout.build_id) == expected,
            None => file
                .metadata()
                .and_then(|metadata| metadata.modified())
                .is_ok_and(|modified| modified <= self.ended),
        }
    }

    /// Whether an image is the recording's vDSO.
    pub(super) fn has_vdso(&self, image: &[u8]) -> bool {
        match self.build_ids.get(&b"[vdso]"[..]) {
            Some(id) => Layout::of_image(image).and_then(|layout| layout.build_id) == Some(*id),
            None => self.of_this_kernel,
        }
    }

    /// Whether there is another file at a path than that of the recording.
    pub(super) fn has_changed(&self, path: &[u8]) -> bool {
        self.changed.borrow().contains(path)
    }
}
