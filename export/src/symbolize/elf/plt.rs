//! Procedure linkage stubs: code addresses in, `memcpy@plt` out.
//!
//! A stub has no symbol. It jumps through a slot of the global offset table, and a relocation says what the slot
//! is filled with: a function of another file, by its name, or (`IRELATIVE`) what a resolver function of this file
//! gives, by the resolver's address. So each wanted stub is decoded, and the relocations are searched for its
//! slot; that holds for every linker's layout. Stubs that only push a number (the lazy half of x86-64's split
//! stubs) carry the position of their relocation. Those of 32-bit x86 jump through a slot by its address, or where code can be moved by its
//! distance from the table, which is in `%ebx`; their relocations have no addend, which is what is in the slot.
//!
//! x86-64 psABI section 5.2 and its IBT annex; i386 psABI section 5.2 and its IBT annex; aarch64: ELF for the Arm 64-bit Architecture, PLT sequences.

use std::io::{Read, Seek, SeekFrom};

use object::Endianness;
use object::elf::{EM_386, EM_AARCH64, EM_X86_64, SHT_REL, SHT_RELA};
use object::read::elf::{FileHeader, Rel, Rela, Sym};

use super::SymbolError;
use super::layout::{Layout, Section};
use super::stream::{Strings, each_entry};
use crate::symbolize::answer::{Answer, MOST_NAME_BYTES};
use crate::table::Table;

/// Stubs are 16 bytes long, or 8 where a linker can do with that.
const STUB: u64 = 16;

/// What a stub's code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Target {
    /// It jumps through the slot at this address.
    Slot(u64),
    /// Its relocation is the one at this position of the stubs' relocations.
    Relocation(u64),
}

/// What a stub leads to.
#[derive(Clone, Copy, Debug)]
enum Callee {
    /// A symbol: its position in the table that the relocations' section links to, and that section's.
    Symbol { section: usize, index: u32 },
    /// What the function at this address chooses.
    ResolvedBy(u64),
}

/// The wanted addresses that lie in stubs.
#[derive(Debug, Default)]
pub(super) struct Stubs {
    /// Position among the wanted addresses, and among the names.
    imports: Vec<(usize, usize)>,
    names: Vec<String>,
    /// Position among the wanted addresses, and resolver's address.
    chosen: Vec<(usize, u64)>,
    /// Names that there is no room for.
    left_out: u64,
}

impl Stubs {
    /// Addresses of resolver functions, whose names are wanted too.
    pub(super) fn resolvers(&self) -> impl Iterator<Item = u64> + '_ {
        self.chosen.iter().map(|&(_, address)| address)
    }

    /// Names the stubs.
    pub(super) fn name(self, resolvers: &Answer<'_>, answer: &mut Answer<'_>) {
        let mut add = |name: &str| {
            let plain = name.split('@').next().unwrap_or(name);
            answer.add_name(format!("{plain}@plt"))
        };
        let ids: Vec<Option<u32>> = self.names.iter().map(|name| add(name)).collect();
        let mut of_resolvers: Table<u64, Option<u32>> = Table::default();
        let chosen = self.chosen.iter().map(|&(position, resolver)| {
            let id = of_resolvers.entry(resolver);
            (position, *id.or_insert_with(|| resolvers.name_at(resolver).and_then(&mut add)))
        });
        let chosen: Vec<_> = chosen.collect();
        let imports =
            self.imports.iter().map(|&(position, name)| (position, ids.get(name).copied().flatten()));
        for (position, id) in imports.chain(chosen) {
            answer.set(position, id);
        }
        answer.leave_out(self.left_out);
        answer.leave_out(resolvers.left_out());
    }
}

/// Finds out where the wanted stubs lead to.
pub(super) fn stubs<Elf, R>(layout: &Layout, file: &mut R, answer: &Answer<'_>) -> Result<Stubs, SymbolError>
where
    Elf: FileHeader<Endian = Endianness>,
    R: Read + Seek,
{
    let mut targets = Vec::new();
    for section in layout.stub_sections() {
        let first = answer.wanted().partition_point(|&wanted| wanted < section.address);
        let here = answer.wanted()[first..].iter().take_while(|&&wanted| section.contains(wanted));
        for (position, &wanted) in here.enumerate().map(|(index, wanted)| (first + index, wanted)) {
            if let Some(target) = decode(layout, section, file, wanted)? {
                targets.push((position, target));
            }
        }
    }
    let mut found = Stubs::default();
    // By where its string is: which of the names it is, if there is one, and room for it.
    let mut known: Table<(u64, u32), Option<usize>> = Table::default();
    let mut room = MOST_NAME_BYTES;
    for (position, callee) in callees::<Elf, R>(layout, file, &targets)? {
        let (section, index) = match callee {
            Callee::ResolvedBy(address) => {
                found.chosen.push((position, address));
                continue;
            }
            Callee::Symbol { section, index } => (section, index),
        };
        let Some((strings, at)) = import::<Elf, R>(layout, file, section, index)? else { continue };
        let import = if let Some(&import) = known.get(&(strings.offset, at)) {
            import
        } else {
            let mut all = Strings::new(strings);
            let name = all.get(file, at)?;
            let import = match room.checked_sub(name.len()) {
                _ if name.is_empty() => None,
                None => {
                    found.left_out += 1;
                    None
                }
                Some(left) => {
                    room = left;
                    found.names.push(String::from_utf8_lossy(name).into_owned());
                    Some(found.names.len() - 1)
                }
            };
            known.insert((strings.offset, at), import);
            import
        };
        found.imports.extend(import.map(|name| (position, name)));
    }
    Ok(found)
}

fn decode<R: Read + Seek>(
    layout: &Layout,
    section: &Section,
    file: &mut R,
    wanted: u64,
) -> Result<Option<Target>, SymbolError> {
    let stub = if section.entry_size == 8 { 8 } else { STUB };
    let start = (wanted - section.address) / stub * stub;
    let mut code = [0; STUB as usize];
    let length = (section.size - start).min(stub) as usize;
    file.seek(SeekFrom::Start(section.offset.saturating_add(start)))?;
    file.read_exact(&mut code[..length])?;
    let address = section.address.wrapping_add(start);
    Ok(match layout.machine {
        EM_X86_64 => x86_64(&code[..length], address),
        EM_386 => i386(&code[..length], layout.offset_table),
        EM_AARCH64 => aarch64(&code[..length], address),
        _ => None,
    })
}

/// `jmp *slot(%rip)`, or `push $position`, after any `endbr64` and `bnd`.
fn x86_64(code: &[u8], address: u64) -> Option<Target> {
    let mut rest = code;
    for prefix in [&[0xf3, 0x0f, 0x1e, 0xfa][..], &[0xf2]] {
        rest = rest.strip_prefix(prefix).unwrap_or(rest);
    }
    match *rest {
        [0xff, 0x25, a, b, c, d, ..] => {
            let next = address.wrapping_add((code.len() - rest.len() + 6) as u64);
            let distance = i32::from_le_bytes([a, b, c, d]);
            Some(Target::Slot(next.wrapping_add_signed(distance.into())))
        }
        [0x68, a, b, c, d, ..] => Some(Target::Relocation(u32::from_le_bytes([a, b, c, d]).into())),
        _ => None,
    }
}

/// `jmp *slot`, `jmp *slot-table(%ebx)`, or `push $position`, after any `endbr32`. The position is one in bytes, of 8 a relocation.
fn i386(code: &[u8], table: Option<u64>) -> Option<Target> {
    let rest = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfb]).unwrap_or(code);
    let &[kind, ref rest @ ..] = rest else { return None };
    let word = |bytes: &[u8]| bytes.first_chunk().copied().map(u32::from_le_bytes);
    match (kind, rest) {
        (0xff, [0x25, slot @ ..]) => Some(Target::Slot(word(slot)?.into())),
        (0xff, [0xa3, distance @ ..]) => {
            Some(Target::Slot((table? as u32).wrapping_add(word(distance)?).into()))
        }
        (0x68, position) => Some(Target::Relocation(u64::from(word(position)?) / 8)),
        _ => None,
    }
}

/// `adrp x16, page; ldr x17, [x16, #offset]`, after any `bti c`.
fn aarch64(code: &[u8], address: u64) -> Option<Target> {
    const BTI_C: u32 = 0xd503_245f;
    let word = |index: usize| {
        let bytes = code.get(index * 4..index * 4 + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let at = usize::from(word(0)? == BTI_C);
    let (adrp, load) = (word(at)?, word(at + 1)?);
    if adrp & 0x9f00_001f != 0x9000_0010 || load & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    let pages = (adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3;
    let pages = i64::from((pages << 11) as i32 >> 11);
    let page = (address.wrapping_add(at as u64 * 4) & !0xfff).wrapping_add_signed(pages << 12);
    Some(Target::Slot(page.wrapping_add(u64::from(load >> 10 & 0xfff) * 8)))
}

/// The stubs that are searched for, and what was found of them.
struct Search {
    open: Table<Target, Vec<usize>>,
    found: Vec<(usize, Callee)>,
}

impl Search {
    /// Takes a relocation: of which slot it is, its number where it is of stubs, and what fills the slot.
    fn take(&mut self, slot: u64, number: Option<u64>, callee: impl FnOnce() -> Option<Callee>) {
        let by_slot = self.open.remove(&Target::Slot(slot));
        let by_number = number.and_then(|number| self.open.remove(&Target::Relocation(number)));
        let positions: Vec<usize> = by_slot.into_iter().chain(by_number).flatten().collect();
        if !positions.is_empty()
            && let Some(callee) = callee()
        {
            self.found.extend(positions.into_iter().map(|position| (position, callee)));
        }
    }
}

/// Searches the relocations for the slots: those of stubs first, the rest only for slots not found there.
fn callees<Elf, R>(
    layout: &Layout,
    file: &mut R,
    targets: &[(usize, Target)],
) -> Result<Vec<(usize, Callee)>, SymbolError>
where
    Elf: FileHeader<Endian = Endianness>,
    R: Read + Seek,
{
    let mut search = Search { open: Table::default(), found: Vec::new() };
    for &(position, target) in targets {
        search.open.entry(target).or_default().push(position);
    }
    let has_addends = layout.machine != EM_386;
    let kind = if has_addends { SHT_RELA } else { SHT_REL };
    let mut tables: Vec<(usize, &Section)> = layout.tables(kind).collect();
    tables.sort_by_key(|(_, table)| !table.plt);
    for (section, table) in tables {
        if search.open.is_empty() || !table.has_bytes() {
            continue;
        }
        let (endian, what) = (layout.endian, "relocation table");
        let mut numbers = 0..;
        let mut number = || numbers.next().filter(|_| table.plt);
        if has_addends {
            each_entry::<Elf::Rela, R>(file, table, what, |_, entries| {
                for entry in entries {
                    search.take(entry.r_offset(endian).into(), number(), || {
                        Some(match entry.r_sym(endian, false) {
                            0 => Callee::ResolvedBy(entry.r_addend(endian).into() as u64),
                            index => Callee::Symbol { section, index },
                        })
                    });
                }
                Ok(!search.open.is_empty())
            })?;
        } else {
            each_entry::<Elf::Rel, R>(file, table, what, |file, entries| {
                for entry in entries {
                    let slot = entry.r_offset(endian).into();
                    search.take(slot, number(), || match entry.r_sym(endian) {
                        0 => Some(Callee::ResolvedBy(in_slot(layout, file, slot)?)),
                        index => Some(Callee::Symbol { section, index }),
                    });
                }
                Ok(!search.open.is_empty())
            })?;
        }
    }
    Ok(search.found)
}

/// What a 32-bit file has in a slot.
fn in_slot<R: Read + Seek>(layout: &Layout, file: &mut R, slot: u64) -> Option<u64> {
    let section = layout.sections.iter().find(|section| section.has_bytes() && section.contains(slot))?;
    let mut word = [0; 4];
    file.seek(SeekFrom::Start(section.offset.saturating_add(slot - section.address))).ok()?;
    file.read_exact(&mut word).ok()?;
    Some(u32::from_le_bytes(word).into())
}

/// Where the name of a symbol is that relocations of a section refer to: the strings, and the position among them.
fn import<'a, Elf, R>(
    layout: &'a Layout,
    file: &mut R,
    section: usize,
    index: u32,
) -> Result<Option<(&'a Section, u32)>, SymbolError>
where
    Elf: FileHeader<Endian = Endianness>,
    R: Read + Seek,
{
    let symbols = layout.sections.get(section).and_then(|relocations| layout.linked(relocations));
    let Some(symbols) = symbols else { return Ok(None) };
    let Some(strings) = layout.linked(symbols) else { return Ok(None) };
    let size = size_of::<Elf::Sym>() as u64;
    let mut name = None;
    let at = u64::from(index) * size;
    if at < symbols.size {
        let one = Section { offset: symbols.offset.saturating_add(at), size, entry_size: size, ..*symbols };
        each_entry::<Elf::Sym, R>(file, &one, "symbol table", |_, entries| {
            name = entries.first().map(|symbol| symbol.st_name(layout.endian));
            Ok(false)
        })?;
    }
    Ok(name.map(|name| (strings, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code is what `llvm-mc` assembles.
    #[test]
    fn stubs_are_decoded() {
        let lazy = [0xff, 0x25, 0xca, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff];
        assert_eq!(x86_64(&lazy, 0x1030), Some(Target::Slot(0x4000)));
        let marked = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xf5, 0xff, 0xff, 0xff];
        assert_eq!(x86_64(&marked, 0x1000), Some(Target::Slot(0x1000)));
        let pushes = [0xf3, 0x0f, 0x1e, 0xfa, 0x68, 7, 0, 0, 0, 0xf2, 0xe9, 0, 0, 0, 0, 0x90];
        assert_eq!(x86_64(&pushes, 0x1000), Some(Target::Relocation(7)));
        assert_eq!(x86_64(&[0x90; 16], 0x1000), None);
        assert_eq!(x86_64(&[0xff, 0x25, 0], 0x1000), None);

        // endbr32; jmp *0x10(%ebx)
        let marked = [0xf3, 0x0f, 0x1e, 0xfb, 0xff, 0xa3, 0x10, 0, 0, 0, 0x66, 0x0f, 0x1f, 0x44, 0, 0];
        assert_eq!(i386(&marked, Some(0x3ff4)), Some(Target::Slot(0x4004)));
        assert_eq!(i386(&marked, None), None);
        let before = [0xff, 0xa3, 0xf4, 0xff, 0xff, 0xff];
        assert_eq!(i386(&before, Some(0x4000)), Some(Target::Slot(0x3ff4)));
        assert_eq!(i386(&[0xff, 0x25, 0x0c, 0xc0, 0x04, 0x08], None), Some(Target::Slot(0x804_c00c)));
        assert_eq!(i386(&[0x68, 0x18, 0, 0, 0, 0xe9, 0, 0, 0, 0], None), Some(Target::Relocation(3)));
        assert_eq!(i386(&[0x68, 0x18], None), None);
        assert_eq!(i386(&[0xff, 0x35, 4, 0, 0, 0], Some(1)), None);

        let bti = [0x5f, 0x24, 0x03, 0xd5];
        let up = [0xf0, 0x00, 0x00, 0xf0];
        let down = [0xf0, 0xff, 0xff, 0xd0];
        let load = [0x11, 0xde, 0x47, 0xf9];
        assert_eq!(aarch64(&[up, load].concat(), 0x40_0010), Some(Target::Slot(0x41_ffb8)));
        assert_eq!(aarch64(&[down, load].concat(), 0x40_0010), Some(Target::Slot(0x3f_efb8)));
        assert_eq!(aarch64(&[bti, up, load].concat(), 0x40_0ffc), Some(Target::Slot(0x42_0fb8)));
        assert_eq!(aarch64(&up, 0x40_0010), None);
        assert_eq!(aarch64(&[load, up].concat(), 0x40_0010), None);
    }
}
