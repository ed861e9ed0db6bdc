//! A machine's frames and the files they lie in, in; [`Symbols`] out.
//!
//! Frames are sorted by module and address. Each module's file is opened once and asked for all of its addresses;
//! each symbol found is demangled once.

use std::io::{BufRead, Cursor, Read, Seek};

use collector_common::ids::Svma;
use collector_common::record::{ExportMachine, FrameFlags, FrameId, ModuleId, ModuleKind};

use super::answer::Answer;
use super::demangle::demangle;
use super::elf::{self, SymbolError};
use super::kernel::kernel_names;
use super::symbols::{Symbols, Unreadable};

/// Where the bytes behind modules are. The recording side keeps files open from when they were mapped, so that
/// a program that was deleted since can still be named.
pub trait ModuleFiles {
    /// An open file.
    type File: Read + Seek;

    /// The file of a module of kind [`ModuleKind::File`].
    fn open(&self, module: ModuleId) -> Option<Self::File>;

    /// A file with the debug information of such a module, asked for when its own file does not name everything.
    fn open_debug(&self, _module: ModuleId) -> Option<Self::File> {
        None
    }

    /// The text of `/proc/kallsyms`.
    fn kernel_symbols(&self) -> Option<Box<dyn BufRead>> {
        None
    }

    /// The ELF image of a module of kind [`ModuleKind::Vdso`].
    fn vdso(&self, _module: ModuleId) -> Option<&[u8]> {
        None
    }
}

/// Names every frame of `machine` that a symbol can be found for.
pub fn symbolize(machine: &ExportMachine, files: &impl ModuleFiles) -> Symbols {
    let mut places: Vec<Place> = machine
        .frames()
        .iter()
        .enumerate()
        .filter(|(_, frame)| !frame.flags.has(FrameFlags::CUT))
        .map(|(index, frame)| Place {
            module: frame.module,
            address: frame.lookup_address().0,
            frame: FrameId(index as u32),
        })
        .collect();
    places.sort_unstable();
    let mut symbols = Symbols::unnamed(machine);
    for places in places.chunk_by(|a, b| a.module == b.module) {
        name_module(machine, files, places, &mut symbols);
    }
    symbols.name_the_rest(machine);
    symbols
}

/// A frame and where it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    module: ModuleId,
    address: u64,
    frame: FrameId,
}

fn name_module(machine: &ExportMachine, files: &impl ModuleFiles, places: &[Place], symbols: &mut Symbols) {
    let Some(&Place { module, .. }) = places.first() else { return };
    let mut wanted: Vec<u64> = places.iter().map(|place| place.address).collect();
    wanted.dedup();
    let mut answer = Answer::new(&wanted);
    let outcome = match machine.module(module).kind {
        ModuleKind::Kernel => kernel(machine, files, &mut answer),
        ModuleKind::KernelCode => {
            let name = answer.add_name(machine.string(machine.module(module).path).to_owned());
            (0..wanted.len()).for_each(|position| answer.set(position, name));
            Ok(())
        }
        ModuleKind::Vdso => files
            .vdso(module)
            .map_or(Err(SymbolError::Missing), |image| elf::look_up(Cursor::new(image), &mut answer)),
        ModuleKind::File => file(files, module, &mut answer),
        ModuleKind::Anonymous(_) | ModuleKind::Unmapped(_) => Ok(()),
    };
    if let Err(error) = outcome {
        symbols.add_unreadable(Unreadable { module, error });
    }
    let names = symbols.intern_all(answer.names().map(|linkage| (demangle(linkage), linkage)));
    let mut position = 0;
    for place in places {
        while wanted.get(position).is_some_and(|&address| address < place.address) {
            position += 1;
        }
        if let Some(&name) = answer.found(position).and_then(|index| names.get(index)) {
            symbols.set_interned(place.frame, name);
        }
    }
}

/// The kernel's own list says what it holds now; what was removed during the recording was there before.
fn kernel(
    machine: &ExportMachine,
    files: &impl ModuleFiles,
    answer: &mut Answer<'_>,
) -> Result<(), SymbolError> {
    let listed = match files.kernel_symbols() {
        Some(mut text) => kernel_names(&mut text, answer).map_err(SymbolError::from),
        None => Err(SymbolError::Missing),
    };
    for (position, &address) in answer.wanted().iter().enumerate() {
        if let Some(name) = machine.removed_codes().at(Svma(address)) {
            let name = answer.add_name(machine.string(name).to_owned());
            answer.set(position, name);
        }
    }
    listed
}

fn file(files: &impl ModuleFiles, module: ModuleId, answer: &mut Answer<'_>) -> Result<(), SymbolError> {
    let own = files.open(module).map_or(Err(SymbolError::Missing), |file| elf::look_up(file, answer));
    if answer.is_complete() {
        return own;
    }
    let debug = files.open_debug(module).map_or(Ok(()), |file| elf::look_up(file, answer));
    own.and(debug)
}
