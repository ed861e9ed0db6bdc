//! Code of PE images that a process has in memory without a file: which image's it is.
//!
//! Wine maps an image's headers, and of its sections those that begin at a page of the file. Others, such as all are that GCC links
//! without being asked for more, it reads into memory (`map_image_into_view` and `map_file_into_view` of its
//! `dlls/ntdll/unix/virtual.c`). That lies where the section would, so the file of which the beginning is mapped next below tells:
//!
//! ```text
//! 140000000-140001000 r--p 00000000 program.exe     has code from RVA 0x1000 on
//! 140001000-140003000 r-xp                          which is this
//! 140003000-140004000 rw-p 00002000 program.exe
//! ```
//!
//! Wine 8 maps headers as if they were to be executed, and says otherwise a moment later, so that the sideband tells of them. Else, as for a
//! process that runs already, `/proc` is asked while it is recorded, for processes that execute images of which there are mappings, as
//! Wine's own libraries are in each of its processes. A recording that was made earlier has to have records of all mappings then (`perf
//! record -d`, and ours).

use std::collections::BTreeMap;

use collector_common::ids::{Avma, BuildId, FileOffset, Pid, Tid};
use collector_common::record::{ExportMachine, ModuleId, ProcessId};
use rustc_hash::FxHashMap;

use super::{MappedFile, Modules, Resolved};
use crate::modules::file::ModuleFile;
use crate::modules::layout::Layout;
use crate::procfs::{self, Identity, MapsEntry};

/// How often `/proc` is asked for a process at most: it takes up to a millisecond where there are thousands of mappings. Of a JIT
/// compiler's memory it tells nothing.
const MOST_LOOKS: u32 = 1000;

/// A mapping of a file's beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beginning {
    start: Avma,
    end: Avma,
    identity: Option<Identity>,
    build_id: Option<BuildId>,
    path: Box<[u8]>,
}

impl Beginning {
    /// That of an entry, if it is one.
    pub(crate) fn of_entry(entry: &MapsEntry<'_>) -> Option<Self> {
        let is_one = !entry.executable && entry.file_offset.0 == 0 && entry.identity.inode != 0;
        is_one.then(|| Self {
            start: entry.start,
            end: entry.end,
            identity: Some(entry.identity),
            build_id: None,
            path: (*entry.path).into(),
        })
    }

    /// Whether what is executed above it may be of the same file.
    pub(crate) fn is_base_of(&self, above: &Resolved) -> bool {
        above.bias == self.start.0
    }

    /// The mapping, as it was when one above it came about.
    fn below<'a>(&'a self, above: &MappedFile<'_>) -> MappedFile<'a> {
        let &Self { start, end, identity, build_id, ref path } = self;
        let MappedFile { thread, since, .. } = *above;
        MappedFile { start, end, file_offset: FileOffset(0), identity, build_id, path, thread, since }
    }
}

/// What is known of the processes that may have such code.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Processes that execute images of which there are mappings, and how often was looked at each.
    looks: FxHashMap<ProcessId, u32>,
    /// What records tell: of images, and in a recording that was made earlier of all files.
    told: FxHashMap<ProcessId, BTreeMap<Avma, Beginning>>,
}

impl Copies {
    /// A process executes an image.
    pub(super) fn image_mapped(&mut self, process: ProcessId, mapped: &MappedFile<'_>) {
        self.looks.entry(process).or_default();
        self.mapped(process, mapped);
    }

    fn mapped(&mut self, process: ProcessId, mapped: &MappedFile<'_>) {
        let &MappedFile { start, end, file_offset, identity, build_id, path, .. } = mapped;
        if file_offset.0 == 0 {
            let beginning = Beginning { start, end, identity, build_id, path: path.into() };
            self.told.entry(process).or_default().insert(start, beginning);
        }
    }

    /// A process has ended, or executes another program.
    pub(super) fn forget(&mut self, process: ProcessId) {
        self.looks.remove(&process);
        self.told.remove(&process);
    }

    fn look(&mut self, process: ProcessId, pid: Pid, mapped: &MappedFile<'_>) -> Option<Beginning> {
        let looks = self.looks.get_mut(&process).filter(|looks| **looks < MOST_LOOKS)?;
        *looks += 1;
        let mut nearest = None;
        // The thread may have ended.
        for thread in [mapped.thread, Tid(pid.0)] {
            let read = procfs::mappings(thread, |entry| {
                if entry.start <= mapped.start
                    && let Some(beginning) = Beginning::of_entry(entry)
                {
                    nearest = Some(beginning);
                }
            });
            if read.is_ok() {
                break;
            }
        }
        nearest
    }
}

/// Where code of an image lies that was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copied {
    pub(super) module: ModuleId,
    /// Where the image begins in memory.
    pub(super) base: Avma,
    /// Where the code is in the file.
    pub(super) file_offset: FileOffset,
}

impl Modules {
    /// A process has something mapped that it does not execute, in a recording that was made earlier.
    pub(crate) fn data_mapped(&mut self, process: ProcessId, mapped: &MappedFile<'_>) {
        if self.recorded.is_some() && mapped.has_path_of_file() {
            self.copies.mapped(process, mapped);
        }
    }

    /// The image of which a mapping is code, by what was told, and else by what `/proc` tells.
    pub(super) fn copied(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        pid: Pid,
        mapped: &MappedFile<'_>,
    ) -> Option<Copied> {
        let told = self.copies.told.get(&process);
        let told = told.and_then(|told| told.range(..=mapped.start).next_back());
        if let Some((_, beginning)) = told {
            let beginning = beginning.clone();
            let copied = self.copied_from(machine, process, pid, mapped, &beginning);
            if copied.is_some() {
                return copied;
            }
        }
        if self.recorded.is_some() {
            return None;
        }
        let found = self.copies.look(process, pid, mapped)?;
        self.copied_from(machine, process, pid, mapped, &found)
    }

    /// The image of which a mapping without a file is code, if what begins below it is one that has code there.
    pub(super) fn copied_from(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        pid: Pid,
        mapped: &MappedFile<'_>,
        beginning: &Beginning,
    ) -> Option<Copied> {
        let base = beginning.start;
        let rva = mapped.start.0.checked_sub(base.0)?;
        let below = beginning.below(mapped);
        let key = self.key(&below)?;
        let module = match self.known(&key) {
            Some(module) => module,
            None if self.begins_image(pid, &below) => self.add_file(machine, pid, &below, key),
            None => {
                // Nor is it for the next mapping above it.
                if let Some(told) = self.copies.told.get_mut(&process) {
                    told.remove(&base);
                }
                return None;
            }
        };
        let file_offset = self.files.get(module.0 as usize)?.offset_of_code(rva)?;
        self.copies.image_mapped(process, &below);
        Some(Copied { module, base, file_offset })
    }

    fn begins_image(&self, pid: Pid, below: &MappedFile<'_>) -> bool {
        let layout = self.open(pid, below).as_ref().and_then(Layout::read);
        layout.is_some_and(|layout| layout.is_of_image())
    }
}

impl ModuleFile {
    /// Where in the file of an image code is that has this address in it; `None` where it has none, or is none.
    fn offset_of_code(&self, rva: u64) -> Option<FileOffset> {
        let distance = |address: u64, size: u64| rva.checked_sub(address).filter(|&distance| distance < size);
        let mut code = self.segments.iter().filter(|_| self.is_image());
        code.find_map(|it| it.file_offset.checked_add(distance(it.address, it.file_size)?)).map(FileOffset)
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests;
