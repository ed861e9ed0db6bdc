//! What the files behind a machine's modules are asked for.

use std::io::{BufRead, Read, Seek};

use collector_common::ids::Svma;
use collector_common::record::{ModuleId, ProcessId};

use super::jit::{JitNames, PerfMap};
use super::pe::{AheadMapId, PdbId};

/// A module that is loaded into the kernel.
#[derive(Debug)]
pub struct KernelModule<F> {
    /// Its object file, with its DWARF.
    pub file: F,
    /// Where its sections lie, by their names.
    pub sections: Vec<(String, u64)>,
}

/// Where the bytes behind modules are. The recording side keeps files open from when they were mapped, so that
/// a program that was deleted since can still be named. It is asked by one thread alone.
pub trait ModuleFiles {
    /// An open file. Those of two modules are read at the same time, each from a position of its own.
    type File: Read + Seek + Send;

    /// The file of a module that is one.
    fn open(&self, module: ModuleId) -> Option<Self::File>;

    /// An address of such a module as its file was linked. It is that already, but for recordings of others who did not know how
    /// it was linked.
    fn linked(&self, _module: ModuleId, address: Svma) -> Svma {
        address
    }

    /// A file with the debug information of such a module, asked for when its own file does not name everything, or only by
    /// guesses, or has no DWARF.
    fn open_debug(&self, _module: ModuleId) -> Option<Self::File> {
        None
    }

    /// The file that a module or its debug file shares DWARF with, by the path and the build id in its
    /// `.gnu_debugaltlink` (`dwz -m`). The path is relative to the linking file, or absolute. Both are what the file says.
    fn open_shared(&self, _module: ModuleId, _path: &[u8], _build_id: &[u8]) -> Option<Self::File> {
        None
    }

    /// A file that DWARF of a module was split into (`-gsplit-dwarf`), by the folder that the compiler ran in and the name
    /// it gave, which may have folders. Both are what the file says.
    fn open_split(&self, _module: ModuleId, _folder: &[u8], _name: &[u8]) -> Option<Self::File> {
        None
    }

    /// The one file that all those of a module were packed into (`.dwp`).
    fn open_package(&self, _module: ModuleId) -> Option<Self::File> {
        None
    }

    /// The PDB of a module that is a PE image, by what the image says of it. What its path leads to need not be the same.
    fn open_pdb(&self, _module: ModuleId, _id: &PdbId) -> Option<Self::File> {
        None
    }

    /// Which PDB is that of a module whose image is not here, where the recording tells it.
    fn pdb_of(&self, _module: ModuleId) -> Option<PdbId> {
        None
    }

    /// The map of what .NET compiled ahead of a module that is a PE image, by what the image says of it. What its path leads to need not
    /// be the same.
    fn open_ahead_map(&self, _module: ModuleId, _id: &AheadMapId) -> Option<Self::File> {
        None
    }

    /// Which such map is that of a module whose image is not here, where the recording tells it.
    fn ahead_map_of(&self, _module: ModuleId) -> Option<AheadMapId> {
        None
    }

    /// The text of `/proc/kallsyms`.
    fn kernel_symbols(&self) -> Option<Box<dyn BufRead + Send>> {
        None
    }

    /// The kernel's ELF image with its DWARF (`vmlinux`), and how far the kernel lies above where it was linked, wrapping.
    fn kernel_image(&self) -> Option<(Self::File, u64)> {
        None
    }

    /// A module of the kernel, by the name that the kernel has for it.
    fn kernel_module(&self, _name: &str) -> Option<KernelModule<Self::File>> {
        None
    }

    /// The ELF image of a module that is a vDSO.
    fn vdso(&self, _module: ModuleId) -> Option<&[u8]> {
        None
    }

    /// What is known of the addresses of a module that is no file before it is looked for elsewhere: what each was at the time of
    /// its samples.
    fn jit_names(&self, _module: ModuleId) -> Option<&JitNames> {
        None
    }

    /// What a process's runtime tells of the code that it made.
    fn perf_map(&self, _process: ProcessId) -> Option<PerfMap<Self::File>> {
        None
    }

    /// What kept it from finding files up to now, a line each.
    fn failures(&self) -> Vec<String> {
        Vec::new()
    }
}
