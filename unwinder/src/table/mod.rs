//! From the unwind section of an ELF file to rules, in stages, each a file:
//!
//! | stage | in | out |
//! |---|---|---|
//! | `elf_file` | an ELF file | its text and its sections |
//! | `unpack`, `debug_data`, `xz` | a section that is packed | its bytes, or the file in it |
//! | `object_file` | a relocatable object | the same, relocated |
//! | `code_sections` | a caller's sections | the same |
//! | `sections` | those | the bytes of `.eh_frame` and `.debug_frame` |
//! | `functions` | those bytes | each function's start and FDE |
//! | `index` | that list | a sorted, bucketed index |
//! | `entries` | an offset | a function's FDE with its CIE |
//! | `compile` | that | its rows, by running its program |
//! | `rules` | a row | an interned rule |
//! | `rows` | offsets and rules | the compact table that is searched |
//!
//! `unwind_table` ties them together and compiles a function when it is first asked for. `from_pe` makes the same table of
//! a PE image, whose functions `crate::pe` reads and compiles.

mod bytes;
mod code_sections;
mod compile;
mod debug_data;
mod elf_file;
mod entries;
mod from_pe;
mod functions;
mod index;
mod object_file;
mod row;
mod rows;
mod rules;
mod sections;
#[cfg(test)]
mod tests;
mod unpack;
mod unwind_table;
mod xz;

pub use code_sections::{Section, UnwindSections};
pub(crate) use row::{CfaRule, ExpressionSpan, RegisterNumber, RegisterRule, Row};
pub(crate) use rows::MAX_SECTION;
pub(crate) use rules::{RuleId, RuleView, Saved, Traits};
pub use unwind_table::{SizeReport, UnwindTable};
