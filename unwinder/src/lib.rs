//! Stack unwinding without I/O: registers, stack bytes and modules in, frames out.
//!
//! The crate opens no file, reads no memory of its own accord, allocates nothing per stack and has no `unsafe`. A
//! profiler, a debugger and a crash reporter call it the same way:
//!
//! 1. Make one [`UnwindTable`] per file ([`UnwindTable::from_elf`], [`UnwindTable::from_pe`]) and share it by `Arc`
//!    between all processes that map the file. A function's rules are read when an address asks for them, those of a PE image
//!    by way of what has its bytes ([`ImageBytes`]).
//! 2. Implement [`AddressSpace`] for a process: a binary search from address to [`Mapping`], and if the process' state
//!    has a number, [`AddressSpace::generation`], which saves short stacks most of those searches.
//! 3. Wrap the copied stack in [`CopiedStack`], or implement [`StackMemory`] over memory that can be read live.
//! 4. Keep one [`Unwinder`] per thread and call [`Unwinder::unwind`] for each sample; every stack ends with a
//!    [`StopReason`].
//!
//! ```
//! use unwinder::x86_64::Registers;
//! use unwinder::{AddressSpace, CopiedStack, Mapping, StopReason, Unwinder};
//!
//! struct Nothing;
//! impl AddressSpace for Nothing {
//!     fn lookup(&self, _address: u64) -> Option<Mapping<'_>> {
//!         None
//!     }
//! }
//!
//! let registers = Registers::new(0x1234, [0; 16]);
//! let stack = CopiedStack::new(registers.sp(), &[], 0);
//! let mut frames = Vec::new();
//! let stop = Unwinder::new().unwind(&Nothing, &registers, &stack, |frame| frames.push(frame.address));
//! assert_eq!((frames.as_slice(), stop), ([0x1234].as_slice(), StopReason::NoMapping));
//! ```
//!
//! The architecture is a type parameter, [`x86_64::X86_64`] unless another is named. Rust takes that default where a type is
//! written, not in an expression: it is `let table: UnwindTable = ...`, or `UnwindTable::<X86_64>::from_elf(...)`.
//!
//! ```no_run
//! use unwinder::x86_64::Registers;
//! use unwinder::{AddressSpace, CopiedStack, Mapping, StopReason, UnwindTable, Unwinder};
//!
//! /// A program that is one file, mapped at `start` to run as it was linked to.
//! struct Program {
//!     start: u64,
//!     code: Vec<u8>,
//!     table: UnwindTable,
//! }
//!
//! impl AddressSpace for Program {
//!     fn lookup(&self, address: u64) -> Option<Mapping<'_>> {
//!         let end = self.start + self.code.len() as u64;
//!         let mapping = Mapping { start: self.start, end, bias: 0, table: Some(&self.table) };
//!         (self.start..end).contains(&address).then_some(mapping)
//!     }
//!
//!     // What has no rules is guessed by its instructions.
//!     fn code(&self, address: u64, buffer: &mut [u8]) -> usize {
//!         let at = address.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
//!         let Some(code) = at.and_then(|at| self.code.get(at..)) else { return 0 };
//!         let length = code.len().min(buffer.len());
//!         buffer[..length].copy_from_slice(&code[..length]);
//!         length
//!     }
//! }
//!
//! let table: UnwindTable = UnwindTable::from_elf(std::fs::read("program")?.as_slice())?;
//! println!("{:?}", table.size_report());
//! let program = Program { start: 0x40_0000, code: std::fs::read("code")?, table };
//!
//! // As ptrace, perf_event_open or a crash dump hands them over: the general registers in DWARF order, and the stack from
//! // where its pointer is.
//! let (ip, general, stack) = (0x40_1136, [0; 16], std::fs::read("stack")?);
//! let registers = Registers::new(ip, general);
//! let (mut unwinder, mut stopped) = (Unwinder::new(), [0; StopReason::ALL.len()]);
//! let stop = unwinder.unwind(&program, &registers, &CopiedStack::new(registers.sp(), &stack, 0), |frame| {
//!     // A symbol is that of the call, not of what is behind it.
//!     println!("{:#x}{}", frame.lookup_address(), if frame.heuristic { " (guessed)" } else { "" });
//! });
//! stopped[stop as usize] += 1;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Where to read on: `unwinder.rs` is the walk, `guess.rs` who the caller is where there are no rules, `code.rs` what that asks
//! about code, `table/` turns CFI into rows and rules, `pe/` does so for Windows' unwind information, `x86_64/`, `x86/` and
//! `aarch64/` say what a rule is on that architecture and how it is applied.

pub mod aarch64;
mod address_space;
mod arch;
mod cache;
mod code;
mod code_memory;
mod epilogue;
mod error;
mod expression;
mod frame;
mod general;
mod guess;
mod memory;
mod metered;
mod pe;
mod prologue;
mod region;
mod registers;
mod rule;
mod stop_reason;
mod table;
mod unwinder;
mod word;
pub mod x86;
pub mod x86_64;

pub use address_space::{AddressSpace, Mapping};
pub use arch::Architecture;
pub use error::{Compression, SectionProblem, TableError, UnreadSection};
pub use frame::{Frame, FrameKind};
pub use memory::{CopiedStack, StackMemory, StackReadError};
pub use pe::ImageBytes;
pub use registers::Registers;
pub use stop_reason::StopReason;
pub use table::{Section, SizeReport, UnwindSections, UnwindTable};
pub use unwinder::{DEFAULT_DEPTH_LIMIT, Unwinder};
