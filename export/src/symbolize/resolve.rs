//! A machine's frames and the files they lie in, in; [`Symbols`] out.
//!
//! Frames are sorted by module and address. Each module's file is opened once and asked for all of its addresses;
//! each symbol found is demangled once. DWARF is opened for modules with such addresses only. Several modules are looked up at a
//! time; what was found is put together in the order of modules.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use collector_common::ids::Svma;
use collector_common::record::{ExportMachine, FrameFlags, FrameId, ModuleId, ModuleKind};

use super::demangle::{NameForm, demangle};
use super::elf::SymbolError;
use super::files::ModuleFiles;
use super::jit::{self, Language};
use super::symbols::{Function, Symbols, Unreadable};
use super::task::{Found, Source, Task, Wanted};
use super::workers::look_up_all;

/// How much is looked up for each frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Nothing that is in a file, since files can be read later and elsewhere: addresses in them. What the recorded machine
    /// alone can tell, as the names of its kernel's functions, is looked up.
    Addresses,
    /// The name of the function that it was compiled into, from the file's symbols.
    Names,
    /// Source lines and inlined functions as well, where the file, or a debug file of it, has DWARF.
    #[default]
    Lines,
}

/// How frames are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    /// How much is looked up.
    pub detail: Detail,
    /// How names read.
    pub form: NameForm,
    /// By how many threads; else as many as there are CPUs for this process, and at most eight. It makes no difference to what is
    /// found, but where the time for lines and inlined functions runs out; and each holds what it has read of a file.
    pub threads: Option<NonZeroUsize>,
}

impl From<Detail> for Naming {
    fn from(detail: Detail) -> Self {
        Self { detail, ..Self::default() }
    }
}

/// Names every frame of `machine` that a symbol can be found for.
pub fn symbolize(machine: &ExportMachine, files: &impl ModuleFiles, naming: impl Into<Naming>) -> Symbols {
    symbolize_rest(machine, files, naming, Symbols::unnamed(machine))
}

/// Names the frames that have no symbol in `symbols` yet, as they were recorded without names or by somebody who knew fewer.
pub fn symbolize_rest(
    machine: &ExportMachine,
    files: &impl ModuleFiles,
    naming: impl Into<Naming>,
    mut symbols: Symbols,
) -> Symbols {
    let naming = naming.into();
    let mut places: Vec<Place> = machine
        .frames()
        .iter()
        .enumerate()
        .map(|(index, frame)| (FrameId(index as u32), frame))
        .filter(|(id, frame)| !frame.flags.has(FrameFlags::CUT) && !symbols.is_resolved(*id))
        .map(|(id, frame)| Place {
            module: frame.module,
            address: files.linked(frame.module, frame.lookup_address()).0,
            frame: id,
        })
        .collect();
    places.sort_unstable();
    let of_modules: Vec<&[Place]> = places.chunk_by(|a, b| a.module == b.module).collect();
    let tasks: Vec<Task> =
        of_modules.iter().filter_map(|places| task(machine, naming.detail, places)).collect();
    let deadline = Instant::now() + MOST_TIME;
    let wanted = Wanted { detail: naming.detail, form: naming.form, deadline };
    let mut found = look_up_all(files, &tasks, &wanted, naming.threads).into_iter();
    let mut tasks = tasks.iter().peekable();
    for places in of_modules {
        let Some(&Place { module, .. }) = places.first() else { continue };
        let outcome = if tasks.next_if(|task| task.module == module).is_some() {
            found.next().map_or(Ok(()), |found| add(found, places, &mut symbols))
        } else {
            name_without_files(machine, files, module, places, &mut symbols)
        };
        if let Err(error) = outcome {
            let has_names = places.iter().any(|place| symbols.is_resolved(place.frame));
            symbols.add_unreadable(Unreadable { module, error, has_names });
        }
    }
    symbols.name_the_rest(machine);
    symbols.set_failures(files.failures());
    symbols
}

/// The longest that the DWARF of all files may take: seconds are enough for a browser's.
const MOST_TIME: Duration = Duration::from_mins(1);

/// What an inlined function without a name is called.
const UNNAMED: &str = "[unnamed]";

/// A frame and where it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) module: ModuleId,
    pub(super) address: u64,
    pub(super) frame: FrameId,
}

/// What is to be looked up in files for the frames of one module; none where there is nothing.
fn task(machine: &ExportMachine, detail: Detail, places: &[Place]) -> Option<Task> {
    let &Place { module, .. } = places.first()?;
    let source = match machine.module(module).kind {
        ModuleKind::Kernel => Source::Kernel,
        ModuleKind::Vdso => Source::Vdso,
        ModuleKind::File if detail != Detail::Addresses => Source::File,
        _ => return None,
    };
    let mut addresses: Vec<u64> = places.iter().map(|place| place.address).collect();
    addresses.dedup();
    let removed = |(position, &address)| {
        let name = machine.removed_codes().at(Svma(address))?;
        Some((position, machine.string(name).to_owned()))
    };
    let known = match source {
        Source::Kernel => addresses.iter().enumerate().filter_map(removed).collect(),
        Source::Vdso | Source::File => Vec::new(),
    };
    Some(Task { module, source, addresses, known })
}

/// Names the frames of a module of which the machine or its processes tell.
fn name_without_files(
    machine: &ExportMachine,
    files: &impl ModuleFiles,
    module: ModuleId,
    places: &[Place],
    symbols: &mut Symbols,
) -> Result<(), SymbolError> {
    match machine.module(module).kind {
        ModuleKind::KernelCode => {
            let name = machine.string(machine.module(module).path);
            for place in places {
                symbols.set(place.frame, &demangle(name), name);
            }
            Ok(())
        }
        ModuleKind::Anonymous(process) | ModuleKind::Unmapped(process) => {
            jit::name(files, module, process, places, symbols)
        }
        ModuleKind::Kernel | ModuleKind::Vdso | ModuleKind::File => Ok(()),
    }
}

/// Gives each frame what was found for its address.
fn add(found: Found<'_>, places: &[Place], symbols: &mut Symbols) -> Result<(), SymbolError> {
    let Found { answer, readable, outcome } = found;
    let names = answer
        .names()
        .zip(&readable)
        .map(|(linkage, readable)| (readable.as_deref().unwrap_or(linkage), linkage));
    let mut names = symbols.intern_all(names);
    for (_, name) in names.iter_mut().enumerate().filter(|(position, _)| answer.is_dot_net(*position)) {
        name.set_language(Language::DotNet);
    }
    let sources: Vec<_> = answer.sources().map(|path| symbols.intern(path)).collect();
    let unnamed = symbols.intern(UNNAMED);
    let mut lists = Vec::new();
    for list in answer.lists() {
        let functions = list.iter().map(|level| {
            let named = level.name.and_then(|name| names.get(name as usize));
            let (name, linkage) = named.map_or((unnamed, unnamed), |entry| (entry.function, entry.linkage));
            let file = level.file.and_then(|file| sources.get(file as usize)).copied().unwrap_or_default();
            let (line, column) = (level.line, level.column);
            Function { name, linkage, file, line, column, ..Function::default() }
        });
        lists.push(symbols.add_functions(functions));
    }
    let wanted = answer.wanted();
    let mut position = 0;
    for place in places {
        while wanted.get(position).is_some_and(|&address| address < place.address) {
            position += 1;
        }
        if let Some(&name) = answer.found(position).and_then(|index| names.get(index)) {
            symbols.set_interned(place.frame, name);
        }
        if let Some(&list) = answer.list(position).and_then(|index| lists.get(index)) {
            symbols.set_list(place.frame, list);
        }
    }
    outcome
}
