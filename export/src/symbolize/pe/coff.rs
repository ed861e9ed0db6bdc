//! The table of symbols that GCC leaves in images which are not stripped ("COFF Symbol Table" and "COFF String Table" of "PE Format"
//! by Microsoft): names of functions, also of those that are not exported.
//!
//! ```text
//! a symbol   name (8 bytes, or 4 of zeros and where in the strings it is) | value u32 | section u16 | type u16 | class u8 | more u8
//! strings    their size in bytes with this number, u32 | NAME\0NAME\0...
//! ```
//!
//! A value is where in its section the symbol is. Behind a symbol come so many records of the same size that tell more of it.

use std::io::{BufReader, Read, Seek, SeekFrom};

use super::super::answer::Answer;
use super::super::choice::{Binding, reads_better};
use super::super::elf::SymbolError;
use super::super::words::{text_at, u16_at, u32_at};
use super::{DAMAGED, Image, MOST_NAME, Section};

const SIZE: u64 = 18;

/// Symbols that are looked at: the largest programs have a million.
const MOST_SYMBOLS: u32 = 1 << 22;

/// `IMAGE_SYM_CLASS_EXTERNAL`, `IMAGE_SYM_CLASS_STATIC`
const EXTERNAL: u8 = 2;
const STATIC: u8 = 3;

/// `IMAGE_SYM_DTYPE_FUNCTION`, and the bits that it is in.
const FUNCTION: u16 = 0x20;
const DERIVED: u16 = 0x30;

/// Names of one function that are compared.
const MOST_NAMES: usize = 16;

/// A function's symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Symbol {
    address: u32,
    binding: Binding,
    name: [u8; 8],
}

impl Symbol {
    /// Reads a record; `None` for what is no function.
    fn parse(record: &[u8; SIZE as usize], sections: &[Section]) -> Option<Self> {
        let (name, rest) = record.split_first_chunk()?;
        let section = *sections.get(usize::from(u16_at(rest, 4)?).checked_sub(1)?)?;
        let is_function = u16_at(rest, 6)? & DERIVED == FUNCTION;
        let binding = match *rest.get(8)? {
            // Those that were written in assembly may have no type.
            EXTERNAL if is_function || section.flags & Section::EXECUTABLE != 0 => Binding::Global,
            STATIC if is_function => Binding::Local,
            _ => return None,
        };
        Some(Self { address: section.address.checked_add(u32_at(rest, 0)?)?, binding, name: *name })
    }
}

impl<R: Read + Seek> Image<'_, R> {
    /// Names addresses that have no name by the table of symbols, where there is one.
    pub(super) fn name_symbols(&mut self, answer: &mut Answer<'_>) -> Result<(), SymbolError> {
        let symbols = self.functions()?;
        let mut last: Option<(u32, Option<u32>)> = None;
        for (position, &wanted) in answer.wanted().iter().enumerate() {
            let Ok(wanted) = u32::try_from(wanted) else { continue };
            let after = symbols.partition_point(|symbol| symbol.address <= wanted);
            let Some(nearest) = after.checked_sub(1).and_then(|at| symbols.get(at)) else { continue };
            let section = self.section_of(wanted).map(|section| section.address);
            let is_in_section =
                section.is_some() && section == self.section_of(nearest.address).map(|it| it.address);
            if !is_in_section || !answer.lacks(position) {
                continue;
            }
            let name = match last {
                Some((known, name)) if known == nearest.address => name,
                _ => {
                    let same = symbols.get(..after).unwrap_or_default().iter().rev();
                    // The most visible ones come last.
                    let same =
                        same.take_while(|it| (it.address, it.binding) == (nearest.address, nearest.binding));
                    let name = self.name_of(same.take(MOST_NAMES))?;
                    answer.add_name(String::from_utf8_lossy(&name).into_owned())
                }
            };
            last = Some((nearest.address, name));
            answer.set(position, name);
        }
        Ok(())
    }

    /// All of them, by address and how visible they are.
    fn functions(&mut self) -> Result<Vec<Symbol>, SymbolError> {
        let (start, count) = self.symbols;
        if start == 0 || count == 0 {
            return Ok(Vec::new());
        }
        if count > MOST_SYMBOLS {
            let limit = MOST_SYMBOLS.into();
            return Err(SymbolError::TooLarge { what: "table of symbols", size: count.into(), limit });
        }
        self.file.seek(SeekFrom::Start(start.into()))?;
        let mut records = BufReader::new(Read::take(&mut *self.file, u64::from(count) * SIZE));
        let mut symbols = Vec::new();
        let mut more = 0_u8;
        for _ in 0..count {
            let mut record = [0; SIZE as usize];
            records.read_exact(&mut record)?;
            if let Some(left) = more.checked_sub(1) {
                more = left;
                continue;
            }
            more = record[SIZE as usize - 1];
            symbols.extend(Symbol::parse(&record, &self.sections));
        }
        symbols.sort_unstable();
        Ok(symbols)
    }

    fn name_of<'s>(&mut self, symbols: impl Iterator<Item = &'s Symbol>) -> Result<Vec<u8>, SymbolError> {
        let mut best = Vec::new();
        for symbol in symbols {
            let name = self.text_of(symbol)?;
            if best.is_empty() || reads_better(&name, &best) {
                best = name;
            }
        }
        Ok(best)
    }

    fn text_of(&mut self, symbol: &Symbol) -> Result<Vec<u8>, SymbolError> {
        let short = symbol.name;
        if short.first_chunk() != Some(&[0; 4]) {
            return Ok(short.iter().take_while(|&&byte| byte != 0).copied().collect());
        }
        let (start, count) = self.symbols;
        let at = u64::from(start) + u64::from(count) * SIZE + u64::from(u32_at(&short, 4).ok_or(DAMAGED)?);
        self.file.seek(SeekFrom::Start(at))?;
        let mut bytes = Vec::new();
        Read::take(&mut *self.file, MOST_NAME).read_to_end(&mut bytes)?;
        Ok(text_at(&bytes, 0).ok_or(DAMAGED)?.to_vec())
    }
}
