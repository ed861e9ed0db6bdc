//! Names for frames: each distinct frame is looked up once, after the recording.
//!
//! - `resolve`: the way from a machine and its files to [`Symbols`].
//! - `files`, `task`, `workers`: what files are asked for, what is looked up of one module, and that of several at a time.
//! - `elf`, `kernel`: names for the addresses of one file, and for those of the kernel.
//! - `dwarf`: source lines and inlined functions for the addresses of one file.
//! - `jit`: names for code that was made at run time.
//! - `pe`, `pdb`: names of a PE image by its exports, and names, source lines and inlined functions by its PDB; `words`: how
//!   their numbers are read. `map_lines`: lines that tell where functions are, as perf maps and maps of what .NET compiled ahead have.
//! - `choice`, `demangle`, `msvc`, `short`: which of several names, and how it reads.
//! - `answer`, `symbols`: what was found, for one module and for the machine.

mod answer;
mod choice;
mod demangle;
mod dwarf;
mod elf;
mod files;
mod jit;
mod kernel;
mod map_lines;
mod msvc;
mod pdb;
mod pe;
mod resolve;
mod short;
mod symbols;
mod task;
mod words;
mod workers;

pub use demangle::{NameForm, demangle};
pub use dwarf::LineError;
pub use elf::SymbolError;
pub use files::{KernelModule, ModuleFiles};
pub use jit::{JitCode, JitDump, JitDumpError, JitLine, JitNames, JitPlace, Language, PerfMap};
pub use pdb::PdbError;
pub use pe::{AheadMapError, AheadMapId, CodeSection, PdbId, code_of_image};
pub use resolve::{Detail, Naming, symbolize, symbolize_rest};
pub(crate) use symbols::offset;
pub use symbols::{Function, Name, NameId, STACK_CUT, Symbols, Unreadable};
