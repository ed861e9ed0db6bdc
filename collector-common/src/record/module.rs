//! Modules: what code lies in. A module is one file (by identity, not by path), the kernel, or anonymous
//! executable memory of one process.

use super::ProcessId;
use crate::ids::{Avma, BuildId, FileOffset, Nanos};
use crate::intern::StringId;

/// Names a module of one [`super::ExportMachine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

impl ModuleId {
    /// The kernel with its modules and BPF programs; the first module of every machine.
    pub const KERNEL: Self = Self(0);
}

/// What kind of memory a module is. It decides how its addresses are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModuleKind {
    /// The kernel; addresses are kernel addresses.
    Kernel,
    /// One piece of code that was added to the kernel while it was recorded, as a BPF program; its path is its symbol,
    /// addresses are kernel addresses.
    KernelCode,
    /// A file; addresses are as linked.
    File,
    /// The code page the kernel maps into every process (`[vdso]`); addresses are as linked.
    Vdso,
    /// Executable memory of one process without a file (a JIT's); addresses are the process's.
    Anonymous(ProcessId),
    /// Addresses of one process that no known mapping holds.
    Unmapped(ProcessId),
}

/// A module.
#[derive(Clone, Debug)]
pub struct Module {
    /// Its kind.
    pub kind: ModuleKind,
    /// Path as the process saw it, or a name in brackets such as `[kernel]`, `[vdso]`, `[anon]`.
    pub path: StringId,
    /// The build id, where the file has one.
    pub build_id: Option<BuildId>,
}

/// A module at its place in a process, for the time it was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleMapping {
    /// The process.
    pub process: ProcessId,
    /// The module.
    pub module: ModuleId,
    /// First address.
    pub start: Avma,
    /// First address after the mapping.
    pub end: Avma,
    /// Where in the file the mapping starts.
    pub file_offset: FileOffset,
    /// Address in the process minus address as linked, wrapping.
    pub bias: u64,
    /// When it was first seen; 0 for what was there before the recording.
    pub since: Nanos,
}
