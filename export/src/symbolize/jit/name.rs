//! The addresses of one module of code that was made at run time in, their names out: from the records of a jitdump, which know
//! the time and the lines, else from a perf map.

use collector_common::record::{ModuleId, ProcessId};

use super::super::answer::Answer;
use super::super::demangle::{Demangler, NameForm};
use super::super::elf::SymbolError;
use super::super::files::ModuleFiles;
use super::super::resolve::Place;
use super::super::symbols::{Entry, Function, Symbols};
use super::names::JitPlace;
use super::readable::Readable;
use crate::table::Table;

/// Names the frames at `places`, which are of one module of a process.
pub(in super::super) fn name(
    files: &impl ModuleFiles,
    module: ModuleId,
    process: ProcessId,
    places: &[Place],
    symbols: &mut Symbols,
) -> Result<(), SymbolError> {
    let mut addresses: Vec<u64> = places.iter().map(|place| place.address).collect();
    addresses.dedup();
    let mut left = Vec::new();
    let dumped = files.jit_names(module);
    let at = |address| dumped.and_then(|names| names.at(address));
    left.extend(addresses.into_iter().filter(|&address| at(address).is_none()));
    let mut answer = Answer::new(&left);
    let map = if left.is_empty() { None } else { files.perf_map(process) };
    let read = map.map_or(Ok(()), |mut map| map.look_up(&mut answer));

    let mut demangler = Demangler::new(NameForm::Full);
    let mut known = Table::default();
    for place in places {
        let (written, line) = match (at(place.address), dumped) {
            (Some(at), Some(names)) => (names.name(at.name), Some(at)),
            _ => match answer.name_at(place.address) {
                Some(name) => (name, None),
                None => continue,
            },
        };
        let file = |at: JitPlace| dumped.zip(at.file).map(|(names, file)| names.file(file));
        let told = line.and_then(|at| Some((file(at)?, at.line, at.column)));
        let (entry, list) =
            *known.entry((written, told)).or_insert_with(|| add(written, told, &mut demangler, symbols));
        symbols.set_interned(place.frame, entry);
        if let Some(list) = list {
            symbols.set_list(place.frame, list);
        }
    }
    read.map_err(SymbolError::from).and(answer.had_room(demangler.as_written()))
}

/// Adds a function with the line that was told for it, or else where it begins, if that is in its name.
fn add(
    written: &str,
    told: Option<(&str, u32, u32)>,
    demangler: &mut Demangler,
    symbols: &mut Symbols,
) -> (Entry, Option<u32>) {
    let readable = Readable::of(written, demangler);
    let (name, linkage) = (symbols.intern(&readable.name), symbols.intern(written));
    let (file, line, column) = told.unwrap_or((readable.file, readable.line, readable.column));
    let list = (!file.is_empty()).then(|| {
        let file = symbols.intern(file);
        symbols.add_functions(
            [Function { name, linkage, file, line, column, ..Function::default() }].into_iter(),
        )
    });
    (Entry::of_symbol(name, linkage, readable.language), list)
}
