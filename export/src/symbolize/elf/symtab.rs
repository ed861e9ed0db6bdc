//! One pass over a symbol table: which symbol holds each wanted address.
//!
//! The smallest symbol around an address names it; of those of one size the one that [`choice`] prefers.
//! Assembly often has symbols without a size: such a symbol goes on to the next symbol of its section, and names
//! what no symbol with a size holds. (ELF gABI chapter 4, "Symbol Table".) The next one may be in another table, as
//! `.dynsym` and `.gnu_debugdata` have a part of a file's symbols each; so it is a guess until nothing better is found.
//!
//! [`choice`]: crate::symbolize::choice

use std::io::{Read, Seek};

use object::Endianness;
use object::elf::{
    EM_AARCH64, EM_ARM, EM_RISCV, SHN_ABS, SHN_UNDEF, STB_GLOBAL, STB_LOCAL, STT_FUNC, STT_GNU_IFUNC,
    STT_NOTYPE,
};
use object::read::elf::{FileHeader, Sym};

use super::SymbolError;
use super::layout::{Layout, Section};
use super::stream::{Strings, each_entry};
use crate::symbolize::answer::{Answer, MOST_NAME_BYTES};
use crate::symbolize::choice::{Binding, reads_better};
use crate::table::Table;

/// How often a symbol may be noted for an address in one table. Real symbols hardly overlap; a made-up table in
/// which each holds every address ends here.
const MAX_NOTES: u64 = 1 << 26;

/// Different names starting like `$x` that are looked at; the real ones are a handful.
const MAX_MARKS: usize = 1 << 12;

/// Finds names in one symbol table for the addresses that have none, and guesses where a symbol without a size is the
/// nearest.
pub(super) fn look_up<Elf, R>(
    layout: &Layout,
    table: &Section,
    file: &mut R,
    answer: &mut Answer<'_>,
) -> Result<(), SymbolError>
where
    Elf: FileHeader<Endian = Endianness>,
    R: Read + Seek,
{
    if answer.is_complete() || !table.has_bytes() {
        return Ok(());
    }
    let Some(strings) = layout.linked(table) else { return Ok(()) };
    let mut strings = Strings::new(strings);
    let mut search = Search::new(layout, answer.wanted());
    let mut marks = Marks::default();
    let scanned = each_entry::<Elf::Sym, R>(file, table, "symbol table", |file, symbols| {
        for symbol in symbols.iter().filter_map(|symbol| Symbol::of::<Elf>(layout, symbol)) {
            let Some((slot, end)) = search.reach(&symbol) else { continue };
            if !(symbol.may_be_mark && marks.contain(&mut strings, file, symbol.name)?) {
                search.offer(&symbol, slot, end);
            }
        }
        Ok(search.notes < MAX_NOTES)
    });
    // What a table that is cut short has told still counts.
    let named = name(search.finish(answer), &mut strings, file, answer);
    scanned.and(named)
}

/// What matters of a symbol of code.
struct Symbol {
    start: u64,
    size: u64,
    binding: Binding,
    /// Position of its name in the strings.
    name: u32,
    /// Whether it could be one of the marks `$x` (code) and `$d` (data) of some architectures' assemblers.
    may_be_mark: bool,
}

impl Symbol {
    fn of<Elf: FileHeader<Endian = Endianness>>(layout: &Layout, symbol: &Elf::Sym) -> Option<Self> {
        let endian = layout.endian;
        let kind = symbol.st_type();
        let section = symbol.st_shndx(endian);
        if ![STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE].contains(&kind) || [SHN_UNDEF, SHN_ABS].contains(&section) {
            return None;
        }
        let binding = match symbol.st_bind() {
            STB_GLOBAL => Binding::Global,
            // The name that is called stands before that of the function that resolves it.
            STB_LOCAL if kind == STT_GNU_IFUNC => Binding::Weak,
            STB_LOCAL => Binding::Local,
            // STB_WEAK; STB_GNU_UNIQUE and what is not known are visible at least.
            _ => Binding::Weak,
        };
        let mut start: u64 = symbol.st_value(endian).into();
        if layout.machine == EM_ARM {
            // Bit 0 says that the function is in Thumb code.
            start &= !1;
        }
        let marked = [EM_ARM, EM_AARCH64, EM_RISCV].contains(&layout.machine);
        Some(Self {
            start,
            size: symbol.st_size(endian).into(),
            binding,
            name: symbol.st_name(endian),
            may_be_mark: marked && kind == STT_NOTYPE && binding == Binding::Local,
        })
    }
}

/// Which names are marks. The marks share few names, and names are shared in the strings.
#[derive(Default)]
struct Marks(Table<u32, bool>);

impl Marks {
    fn contain<R: Read + Seek>(
        &mut self,
        strings: &mut Strings,
        file: &mut R,
        name: u32,
    ) -> Result<bool, SymbolError> {
        if let Some(&known) = self.0.get(&name) {
            return Ok(known);
        }
        let is_mark = strings.get(file, name)?.starts_with(b"$");
        if self.0.len() < MAX_MARKS {
            self.0.insert(name, is_mark);
        }
        Ok(is_mark)
    }
}

/// Names of equally good symbols. Which of them reads best is found out when the names are read.
#[derive(Clone, Copy, Default)]
struct Ties {
    binding: Option<Binding>,
    names: [u32; 4],
    len: u8,
}

impl Ties {
    fn offer(&mut self, symbol: &Symbol) {
        if self.binding < Some(symbol.binding) {
            *self = Self { binding: Some(symbol.binding), ..Self::default() };
        }
        if self.binding == Some(symbol.binding)
            && !self.names().contains(&symbol.name)
            && let Some(free) = self.names.get_mut(usize::from(self.len))
        {
            *free = symbol.name;
            self.len += 1;
        }
    }

    fn names(&self) -> &[u32] {
        &self.names[..usize::from(self.len)]
    }
}

/// The best symbols with a size around one address.
#[derive(Clone, Copy)]
struct Around {
    size: u64,
    ties: Ties,
}

/// The symbols at the greatest start that is not above one address.
#[derive(Clone, Copy)]
struct Below {
    start: u64,
    /// Whether one of them has a size, and so an end.
    ends: bool,
    ties: Ties,
}

struct Search<'a> {
    layout: &'a Layout,
    wanted: &'a [u64],
    around: Vec<Option<Around>>,
    /// By wanted address: the nearest symbols above the wanted address before it.
    below: Vec<Option<Below>>,
    notes: u64,
}

impl<'a> Search<'a> {
    fn new(layout: &'a Layout, wanted: &'a [u64]) -> Self {
        Self { layout, wanted, around: vec![None; wanted.len()], below: vec![None; wanted.len()], notes: 0 }
    }

    /// The position of the first wanted address at or after a symbol, and the address the symbol ends at; none if
    /// it can't matter.
    fn reach(&self, symbol: &Symbol) -> Option<(usize, u64)> {
        let slot = self.wanted.partition_point(|&wanted| wanted < symbol.start);
        let &next = self.wanted.get(slot)?;
        let (_, section_end) = self.layout.code_at(symbol.start)?;
        (next < section_end).then(|| (slot, section_end.min(symbol.start.saturating_add(symbol.size))))
    }

    fn offer(&mut self, symbol: &Symbol, slot: usize, end: u64) {
        let below = &mut self.below[slot];
        if below.is_none_or(|below| below.start < symbol.start) {
            *below = Some(Below { start: symbol.start, ends: false, ties: Ties::default() });
        }
        if let Some(below) = below.as_mut().filter(|below| below.start == symbol.start) {
            below.ends |= symbol.size > 0;
            below.ties.offer(symbol);
        }
        for (around, _) in
            self.around[slot..].iter_mut().zip(&self.wanted[slot..]).take_while(|(_, w)| **w < end)
        {
            self.notes += 1;
            match around {
                Some(best) if best.size < symbol.size => {}
                Some(best) if best.size == symbol.size => best.ties.offer(symbol),
                _ => {
                    let mut ties = Ties::default();
                    ties.offer(symbol);
                    *around = Some(Around { size: symbol.size, ties });
                }
            }
        }
    }

    /// What may name the positions that lack a name. Where the nearest symbol has ended, guesses of farther ones are ruled out.
    fn finish(self, answer: &mut Answer<'_>) -> Vec<Pick> {
        let mut nearest: Option<Below> = None;
        let mut picks = Vec::new();
        let slots = self.wanted.iter().zip(self.around).zip(self.below).enumerate();
        for (position, ((&wanted, around), below)) in slots {
            nearest = below.or(nearest);
            if !answer.lacks(position) {
                continue;
            }
            if let Some(Around { ties, .. }) = around {
                picks.push(Pick { position, start: None, ties });
                continue;
            }
            match nearest {
                Some(Below { start, ends: true, .. }) => answer.rule_out(position, start),
                Some(Below { start, ties, .. })
                    if answer.may_guess(position, start)
                        && self.layout.code_at(start).is_some_and(|(_, end)| wanted < end) =>
                {
                    picks.push(Pick { position, start: Some(start), ties });
                }
                _ => {}
            }
        }
        picks
    }
}

/// Symbols of which one names an address.
struct Pick {
    /// Which address it is.
    position: usize,
    /// Where they start, if they have no size.
    start: Option<u64>,
    ties: Ties,
}

/// Reads the names, in the order of the file, and gives each address the one that reads best.
fn name<R: Read + Seek>(
    picks: Vec<Pick>,
    strings: &mut Strings,
    file: &mut R,
    answer: &mut Answer<'_>,
) -> Result<(), SymbolError> {
    let mut offsets: Vec<u32> = picks.iter().flat_map(|pick| pick.ties.names()).copied().collect();
    offsets.sort_unstable();
    offsets.dedup();
    let mut names: Table<u32, Vec<u8>> = Table::default();
    let mut read = Ok(());
    let mut kept = 0;
    // From where on strings there is no room for names.
    let mut full = None;
    for offset in offsets {
        match strings.get(file, offset) {
            Ok([]) => {}
            Ok(name) if kept + name.len() > MOST_NAME_BYTES => {
                full = Some(offset);
                break;
            }
            Ok(name) => {
                kept += name.len();
                names.insert(offset, name.to_vec());
            }
            Err(error) => {
                read = Err(error.into());
                break;
            }
        }
    }
    let mut ids: Table<u32, Option<u32>> = Table::default();
    for Pick { position, start, ties } in picks {
        let known = ties.names().iter().filter_map(|&offset| Some((offset, names.get(&offset)?)));
        let best = known.reduce(|best, next| if reads_better(next.1, best.1) { next } else { best });
        if let Some((offset, name)) = best {
            let id = *ids
                .entry(offset)
                .or_insert_with(|| answer.add_name(String::from_utf8_lossy(name).into_owned()));
            match start {
                None => answer.set(position, id),
                Some(start) => answer.guess(position, start, id),
            }
        } else {
            let is_left_out = full.is_some_and(|full| ties.names().iter().any(|&offset| offset >= full));
            answer.leave_out(is_left_out.into());
        }
    }
    read
}
