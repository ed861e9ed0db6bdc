//! Modules: what code lies in. A module is one file (by identity, not by path), the kernel, or anonymous
//! executable memory of one process.

use std::fmt;

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
    /// A file; addresses are as linked, but for those of [`ExportMachine::is_relative`](super::ExportMachine::is_relative).
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

/// A module at its place in a process, until another is mapped there, the process executes a program, or it ends.
///
/// Of a process that was forked while it was recorded there are those that it inherited as far as its stacks lead through them, since it was
/// forked.
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
    /// When it was first seen, or inherited; 0 for what was there before the recording.
    pub since: Nanos,
}

/// What a module's file says of itself beyond its build id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleDetails {
    /// The file that has what was stripped from this one (`.gnu_debuglink`).
    pub debug_link: Option<DebugLink>,
    /// The package that it came with, as JSON (`.note.package`).
    pub package: Option<String>,
    /// Of an image of Windows or .NET: its file version, as `8.0.24.52809`.
    pub version: Option<String>,
    /// Of such an image: the file that has its symbols.
    pub pdb: Option<Pdb>,
    /// Of one that .NET compiled ahead of time: the map of its functions.
    pub perf_map: Option<PerfMap>,
    /// Of an image of Windows: by what its file is found.
    pub image: Option<ImageHeader>,
}

/// What a recording tells of the header of an image of Windows that was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageHeader {
    /// By what its file is found, also in symbol stores.
    Dated(ImageKey),
    /// `CheckSum`, which is not 0, and `SizeOfImage`: a file that is where the image was can be told by these. ETW tells no date of what was loaded
    /// before it began.
    Summed {
        /// `CheckSum`.
        checksum: u32,
        /// `SizeOfImage`.
        size: u32,
    },
    /// `SizeOfImage` alone, which tells no file from others of its name.
    Sized(u32),
}

impl From<ImageKey> for ImageHeader {
    fn from(key: ImageKey) -> Self {
        Self::Dated(key)
    }
}

/// What tells an image of Windows from others of its name, by its header. Symbol stores have it as `NAME/DATESIZE/NAME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageKey {
    /// `TimeDateStamp`: when it was linked, or a number in place of that.
    pub date: u32,
    /// `SizeOfImage`: bytes of memory that it takes.
    pub size: u32,
}

impl fmt::Display for ImageKey {
    /// As symbol stores have it: the date in eight digits, the size in as many as it has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08X}{:x}", self.date, self.size)
    }
}

/// A map of functions as an image of .NET names it (`R2RM` of its debug section).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfMap {
    /// The file's name.
    pub path: String,
    /// What the two have in common: mere bytes, and no GUID.
    pub signature: [u8; 16],
    /// The version of the map's format.
    pub version: u32,
}

/// A debug file as a file links to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugLink {
    /// Its name without a folder.
    pub name: String,
    /// CRC-32 of all of it.
    pub checksum: u32,
}

/// A file of symbols as an image of Windows names it (`RSDS` of its debug section).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdb {
    /// Where it was when the image was linked.
    pub path: String,
    /// What the two have in common.
    pub signature: Signature,
    /// How often it has been written since it was made.
    pub age: u32,
}

/// A GUID as it is stored: its first three numbers have their lowest bytes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature(pub [u8; 16]);

impl fmt::Display for Signature {
    /// In hexadecimal digits alone, as symbol servers have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        order.iter().try_for_each(|&at: &usize| write!(f, "{:02X}", self.0[at]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_written_as_windows_writes_guids() {
        // {497B72F6-390A-44FC-878E-5A2D63B6CC4B}, the example of Microsoft's "SymStore".
        let stored =
            [0xf6, 0x72, 0x7b, 0x49, 0x0a, 0x39, 0xfc, 0x44, 0x87, 0x8e, 0x5a, 0x2d, 0x63, 0xb6, 0xcc, 0x4b];
        assert_eq!(Signature(stored).to_string(), "497B72F6390A44FC878E5A2D63B6CC4B");
    }
}
