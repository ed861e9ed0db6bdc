//! Symbol tables made up for a test, in a file with two sections of code.

use std::io::Cursor;

use proptest::prelude::*;

use super::look_up;
use crate::symbolize::answer::Answer;

const AARCH64: u16 = 183;
const ARM: u16 = 40;
const X86_64: u16 = 62;

const LOCAL: u8 = 0;
const GLOBAL: u8 = 1;
const WEAK: u8 = 2;

const NOTYPE: u8 = 0;
const OBJECT: u8 = 1;
const FUNC: u8 = 2;

/// The sections of code: 0x1000 to 0x1100, and 0x1100 to 0x1200.
const CODE: [(u64, u64); 2] = [(0x1000, 0x100), (0x1100, 0x100)];

#[derive(Clone, Debug)]
struct Symbol {
    start: u64,
    size: u64,
    binding: u8,
    kind: u8,
    name: String,
}

fn symbol(start: u64, size: u64, binding: u8, kind: u8, name: &str) -> Symbol {
    Symbol { start, size, binding, kind, name: name.to_owned() }
}

/// `SHT_SYMTAB`, `SHT_DYNSYM`
const ALL_SYMBOLS: u64 = 2;
const DYNAMIC: u64 = 11;

/// A 64-bit little-endian file: header, section headers, symbols, strings (gABI chapter 4).
fn file(machine: u16, table_kind: u64, symbols: &[Symbol]) -> Vec<u8> {
    const HEADERS: u64 = 64;
    let at_symbols = HEADERS + 5 * 64;
    let at_strings = at_symbols + symbols.len() as u64 * 24;
    let mut strings = vec![0];
    let mut table = Vec::new();
    for symbol in symbols {
        table.extend((strings.len() as u32).to_le_bytes());
        table.extend([symbol.binding << 4 | symbol.kind, 0, 1, 0]);
        table.extend(symbol.start.to_le_bytes());
        table.extend(symbol.size.to_le_bytes());
        strings.extend(symbol.name.bytes().chain([0]));
    }
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    for half in [3, machine] {
        bytes.extend(half.to_le_bytes());
    }
    bytes.extend(1_u32.to_le_bytes());
    for word in [0, 0, HEADERS] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(0_u32.to_le_bytes());
    for half in [64_u16, 0, 0, 64, 5, 0] {
        bytes.extend(half.to_le_bytes());
    }
    let none = [0; 10];
    let code = |(start, size): (u64, u64)| [0, 1, 6, start, 0, size, 0, 0, 1, 0];
    let symtab = [0, table_kind, 0, 0, at_symbols, table.len() as u64, 4, 0, 8, 24];
    let strtab = [0, 3, 0, 0, at_strings, strings.len() as u64, 0, 0, 1, 0];
    for section in [none, code(CODE[0]), code(CODE[1]), symtab, strtab] {
        for (index, field) in section.into_iter().enumerate() {
            if [0, 1, 6, 7].contains(&index) {
                bytes.extend((field as u32).to_le_bytes());
            } else {
                bytes.extend(field.to_le_bytes());
            }
        }
    }
    bytes.extend(table);
    bytes.extend(strings);
    bytes
}

fn names(machine: u16, symbols: &[Symbol], wanted: &[u64]) -> Vec<Option<String>> {
    names_in(&[file(machine, ALL_SYMBOLS, symbols)], wanted)
}

/// What several files tell, one after the other.
fn names_in(files: &[Vec<u8>], wanted: &[u64]) -> Vec<Option<String>> {
    let mut answer = Answer::new(wanted);
    for file in files {
        look_up(&mut Cursor::new(file), &mut answer).unwrap();
    }
    answer.settle();
    wanted.iter().map(|&address| answer.name_at(address).map(str::to_owned)).collect()
}

fn name(machine: u16, symbols: &[Symbol], wanted: u64) -> Option<String> {
    names(machine, symbols, &[wanted]).remove(0)
}

#[test]
fn the_smallest_then_the_most_visible_then_the_best_reading_name_wins() {
    let outer = symbol(0x1000, 0x80, GLOBAL, FUNC, "outer");
    let inner = symbol(0x1010, 0x10, LOCAL, FUNC, "inner");
    assert_eq!(name(X86_64, &[outer.clone(), inner], 0x1018).as_deref(), Some("inner"));
    let weak = symbol(0x1000, 0x80, WEAK, FUNC, "weak");
    let local = symbol(0x1000, 0x80, LOCAL, FUNC, "local_with_a_long_name");
    assert_eq!(name(X86_64, &[weak.clone(), outer.clone(), local.clone()], 0x1018).as_deref(), Some("outer"));
    assert_eq!(name(X86_64, &[local, weak], 0x1018).as_deref(), Some("weak"));
    let under = symbol(0x1000, 0x80, GLOBAL, FUNC, "__outer_with_a_long_name");
    let long = symbol(0x1000, 0x80, GLOBAL, FUNC, "outer64");
    assert_eq!(name(X86_64, &[under, outer, long], 0x1000).as_deref(), Some("outer64"));
    let data = symbol(0x1000, 0x10, GLOBAL, OBJECT, "data");
    assert_eq!(name(X86_64, &[data], 0x1004), None);
    let outside = symbol(0x3000, 0x10, GLOBAL, FUNC, "outside");
    assert_eq!(name(X86_64, &[outside], 0x3004), None);
}

#[test]
fn a_symbol_without_a_size_stays_in_its_section() {
    let bare = symbol(0x10f0, 0, LOCAL, NOTYPE, "bare");
    assert_eq!(
        names(X86_64, &[bare], &[0x10ef, 0x10f0, 0x10ff, 0x1100]),
        [None, Some("bare".to_owned()), Some("bare".to_owned()), None]
    );
}

#[test]
fn marks_of_assemblers_name_nothing() {
    let marks = [
        symbol(0x1000, 0, LOCAL, FUNC, "function"),
        symbol(0x1000, 0, LOCAL, NOTYPE, "$x"),
        symbol(0x1010, 0, LOCAL, NOTYPE, "$d.7"),
        symbol(0x1020, 0, LOCAL, NOTYPE, "label"),
    ];
    for (address, expected) in [(0x1008, "function"), (0x1018, "function"), (0x1028, "label")] {
        assert_eq!(name(AARCH64, &marks, address).as_deref(), Some(expected));
    }
    assert_eq!(name(X86_64, &marks, 0x1018).as_deref(), Some("$d.7"));
    // Bit 0 of an address on 32-bit Arm tells Thumb code, and is no part of it.
    assert_eq!(name(ARM, &[symbol(0x1011, 2, GLOBAL, FUNC, "thumb")], 0x1010).as_deref(), Some("thumb"));
}

/// The rule, for one address at a time: names that may be given.
fn allowed(symbols: &[Symbol], wanted: u64) -> Vec<&Symbol> {
    let section =
        |address: u64| CODE.iter().position(|&(start, size)| (start..start + size).contains(&address));
    let code = || symbols.iter().filter(|symbol| symbol.kind != OBJECT && section(symbol.start).is_some());
    let around = || {
        code().filter(|symbol| {
            (symbol.start..symbol.start + symbol.size).contains(&wanted)
                && section(symbol.start) == section(wanted)
        })
    };
    let smallest = around().map(|symbol| symbol.size).min();
    if smallest.is_some() {
        return around().filter(|symbol| Some(symbol.size) == smallest).collect();
    }
    let nearest = code().map(|symbol| symbol.start).filter(|&start| start <= wanted).max();
    let at: Vec<&Symbol> = code().filter(|symbol| Some(symbol.start) == nearest).collect();
    let applies = at.iter().all(|symbol| symbol.size == 0 && section(symbol.start) == section(wanted));
    if applies { at } else { Vec::new() }
}

/// Some symbols, with a size or without.
fn some_symbols() -> impl Strategy<Value = Vec<Symbol>> {
    let any = (0xff8_u64..0x1210, 0_u64..40, 0_u8..3, 0_u8..3);
    let any = any.prop_map(|(start, size, binding, kind)| {
        let size = size.saturating_sub(8);
        symbol(start, size, binding, kind, &format!("s{start:x}_{size}_{binding}_{kind}"))
    });
    proptest::collection::vec(any, 0..40)
}

fn some_addresses() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::btree_set(0xff0_u64..0x1220, 1..60).prop_map(|set| set.into_iter().collect())
}

/// Holds what was found against the rule.
fn is_as_allowed(symbols: &[Symbol], wanted: &[u64], found: &[Option<String>]) -> Result<(), TestCaseError> {
    let rank = |symbol: &Symbol| [0, 2, 1][usize::from(symbol.binding)];
    for (&wanted, found) in wanted.iter().zip(found) {
        let allowed = allowed(symbols, wanted);
        let best = allowed.iter().map(|symbol| rank(symbol)).max();
        let names: Vec<&str> =
            allowed.iter().filter(|symbol| Some(rank(symbol)) == best).map(|s| s.name.as_str()).collect();
        match found {
            Some(found) => prop_assert!(names.contains(&found.as_str()), "{wanted:#x}: {found}, {names:?}"),
            None => prop_assert!(names.is_empty(), "{wanted:#x}: none, {names:?}"),
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn agrees_with_looking_at_every_symbol(symbols in some_symbols(), wanted in some_addresses()) {
        is_as_allowed(&symbols, &wanted, &names(X86_64, &symbols, &wanted))?;
    }

    /// A stripped file that has the global ones of the symbols without a size, and then its debug file, which has all or all others.
    #[test]
    fn which_table_has_a_symbol_without_a_size_makes_no_difference(
        symbols in some_symbols(),
        wanted in some_addresses()
    ) {
        let (own, others): (Vec<Symbol>, Vec<Symbol>) =
            symbols.iter().cloned().partition(|symbol| symbol.size == 0 && symbol.binding == GLOBAL);
        let stripped = file(X86_64, DYNAMIC, &own);
        for further in [&symbols, &others] {
            let files = [stripped.clone(), file(X86_64, ALL_SYMBOLS, further)];
            is_as_allowed(&symbols, &wanted, &names_in(&files, &wanted))?;
        }
    }
}
