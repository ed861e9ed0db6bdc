//! Names of functions that are inlined: they have none among the symbols, but one among the types (streams 2 and 4; kinds of
//! records from Microsoft's `cvinfo.h`). One pass over each stream finds those that are wanted.

use std::collections::HashMap;
use std::io::{Read, Seek};

use super::PdbError;
use super::container::Container;
use super::object::Inlinee;
use crate::symbolize::answer::Answer;
use crate::symbolize::words::{text_at, u16_at, u32_at};

const TYPES: u32 = 2;
const IDS: u32 = 4;

/// Kinds of records.
mod leaf {
    pub(super) const FUNCTION: u16 = 0x1601;
    pub(super) const MEMBER_FUNCTION: u16 = 0x1602;
    pub(super) const STRING: u16 = 0x1605;
    pub(super) const CLASS: u16 = 0x1504;
    pub(super) const STRUCTURE: u16 = 0x1505;
    pub(super) const UNION: u16 = 0x1506;
    pub(super) const INTERFACE: u16 = 0x1519;
}

/// What a function is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Scope {
    None,
    /// A namespace, by its number.
    Namespace(u32),
    /// A class, by its number.
    Class(u32),
}

/// Adds the names of functions, with what they are in, as far as they can be read.
pub(super) fn names<R: Read + Seek>(
    pdb: &mut Container<'_, R>,
    wanted: &[Inlinee],
    answer: &mut Answer<'_>,
) -> (HashMap<Inlinee, u32>, Result<(), PdbError>) {
    let mut found: HashMap<Inlinee, (Scope, String)> =
        wanted.iter().map(|&id| (id, (Scope::None, String::new()))).collect();
    if found.is_empty() {
        return (HashMap::new(), Ok(()));
    }
    let mut outcome = each(pdb, IDS, |number, kind, record| {
        let Some(slot) = found.get_mut(&number) else { return };
        let (Some(scope), Some(name)) = (u32_at(record, 0), text_at(record, 8)) else { return };
        let scope = match kind {
            leaf::FUNCTION if scope == 0 => Scope::None,
            leaf::FUNCTION => Scope::Namespace(scope),
            leaf::MEMBER_FUNCTION => Scope::Class(scope),
            _ => return,
        };
        *slot = (scope, String::from_utf8_lossy(name).into_owned());
    });
    let mut scopes: HashMap<Scope, String> =
        found.values().map(|(scope, _)| (*scope, String::new())).collect();
    scopes.remove(&Scope::None);
    if scopes.keys().any(|scope| matches!(scope, Scope::Namespace(_))) {
        outcome = outcome.and(each(pdb, IDS, |number, kind, record| {
            let text = text_at(record, 4).filter(|_| kind == leaf::STRING);
            if let Some((slot, text)) = scopes.get_mut(&Scope::Namespace(number)).zip(text) {
                *slot = String::from_utf8_lossy(text).into_owned();
            }
        }));
    }
    if scopes.keys().any(|scope| matches!(scope, Scope::Class(_))) {
        outcome = outcome.and(each(pdb, TYPES, |number, kind, record| {
            if let Some(slot) = scopes.get_mut(&Scope::Class(number))
                && let Some(name) = class_name(kind, record)
            {
                *slot = String::from_utf8_lossy(name).into_owned();
            }
        }));
    }
    let whole =
        found.into_iter().filter(|(_, (_, name))| !name.is_empty()).filter_map(|(id, (scope, name))| {
            let scope = scopes.get(&scope).filter(|scope| !scope.is_empty());
            Some((id, answer.add_name(scope.map_or(name.clone(), |scope| format!("{scope}::{name}")))?))
        });
    (whole.collect(), outcome)
}

/// All records of a stream with their numbers.
fn each<R: Read + Seek>(
    pdb: &mut Container<'_, R>,
    stream: u32,
    mut take: impl FnMut(u32, u16, &[u8]),
) -> Result<(), PdbError> {
    let header = pdb.part(stream, 0, 56)?;
    let word =
        |at| u32_at(&header, at).ok_or_else(|| PdbError::damaged("list of types", Some(stream), at as u64));
    let (start, first, size) = (word(4)?, word(8)?, word(16)?);
    let mut number = first;
    pdb.each_record(stream, start, start.saturating_add(size), |kind, record| {
        take(number, kind, record);
        number = number.wrapping_add(1);
    })
}

/// The name of a class: behind its size, which has 2 bytes, or says how many more it has.
fn class_name(kind: u16, record: &[u8]) -> Option<&[u8]> {
    let at = match kind {
        leaf::CLASS | leaf::STRUCTURE | leaf::INTERFACE => 16,
        leaf::UNION => 8,
        _ => return None,
    };
    let size = match u16_at(record, at)? {
        0..0x8000 => 2,
        0x8000 => 3,
        0x8001 | 0x8002 => 4,
        0x8003 | 0x8004 => 6,
        0x8009 | 0x800a => 10,
        _ => return None,
    };
    text_at(record, at + size)
}
