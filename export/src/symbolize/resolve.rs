//! A machine's frames and the files they lie in, in; [`Symbols`] out.
//!
//! Frames are sorted by module and address. Each module's file is opened once and asked for all of its addresses;
//! each symbol found is demangled once. DWARF is opened for modules with such addresses only.

use std::io::{BufRead, Cursor, Read, Seek};
use std::time::{Duration, Instant};

use collector_common::ids::Svma;
use collector_common::record::{ExportMachine, FrameFlags, FrameId, ModuleId, ModuleKind, ProcessId};

use super::answer::Answer;
use super::demangle::demangle;
use super::dwarf;
use super::elf::{self, SymbolError};
use super::jit::{self, JitNames, PerfMap};
use super::kernel::kernel_names;
use super::pdb;
use super::pe::{self, PdbId};
use super::symbols::{Function, Symbols, Unreadable};

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

/// Where the bytes behind modules are. The recording side keeps files open from when they were mapped, so that
/// a program that was deleted since can still be named.
pub trait ModuleFiles {
    /// An open file.
    type File: Read + Seek;

    /// The file of a module of kind [`ModuleKind::File`].
    fn open(&self, module: ModuleId) -> Option<Self::File>;

    /// An address of such a module as its file was linked. It is that already, but for recordings of others who did not know how
    /// it was linked.
    fn linked(&self, _module: ModuleId, address: Svma) -> Svma {
        address
    }

    /// A file with the debug information of such a module, asked for when its own file does not name everything, or has no
    /// DWARF.
    fn open_debug(&self, _module: ModuleId) -> Option<Self::File> {
        None
    }

    /// The file that a module or its debug file shares DWARF with, by the path and the build id in its
    /// `.gnu_debugaltlink` (`dwz -m`). The path is relative to the linking file, or absolute. Both are what the file says.
    fn open_shared(&self, _module: ModuleId, _path: &[u8], _build_id: &[u8]) -> Option<Self::File> {
        None
    }

    /// A file that DWARF of a module was split into (`-gsplit-dwarf`), by the folder that the compiler ran in and the name
    /// it gave, which may have folders. Both are what the file says.
    fn open_split(&self, _module: ModuleId, _folder: &[u8], _name: &[u8]) -> Option<Self::File> {
        None
    }

    /// The one file that all those of a module were packed into (`.dwp`).
    fn open_package(&self, _module: ModuleId) -> Option<Self::File> {
        None
    }

    /// The PDB of a module that is a PE image, by what the image says of it. What its path leads to need not be the same.
    fn open_pdb(&self, _module: ModuleId, _id: &PdbId) -> Option<Self::File> {
        None
    }

    /// The text of `/proc/kallsyms`.
    fn kernel_symbols(&self) -> Option<Box<dyn BufRead>> {
        None
    }

    /// The kernel's ELF image with its DWARF (`vmlinux`), and how far the kernel lies above where it was linked, wrapping.
    fn kernel_image(&self) -> Option<(Self::File, u64)> {
        None
    }

    /// The ELF image of a module of kind [`ModuleKind::Vdso`].
    fn vdso(&self, _module: ModuleId) -> Option<&[u8]> {
        None
    }

    /// What is known of the addresses of a module of kind [`ModuleKind::Anonymous`] or [`ModuleKind::Unmapped`] before it is looked
    /// for elsewhere: what each was at the time of its samples.
    fn jit_names(&self, _module: ModuleId) -> Option<&JitNames> {
        None
    }

    /// What a process's runtime tells of the code that it made.
    fn perf_map(&self, _process: ProcessId) -> Option<PerfMap<Self::File>> {
        None
    }

    /// What kept it from finding files up to now, a line each.
    fn failures(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Names every frame of `machine` that a symbol can be found for.
pub fn symbolize(machine: &ExportMachine, files: &impl ModuleFiles, detail: Detail) -> Symbols {
    symbolize_rest(machine, files, detail, Symbols::unnamed(machine))
}

/// Names the frames that have no symbol in `symbols` yet, as they were recorded without names or by somebody who knew fewer.
pub fn symbolize_rest(
    machine: &ExportMachine,
    files: &impl ModuleFiles,
    detail: Detail,
    mut symbols: Symbols,
) -> Symbols {
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
    let wanted = Wanted { detail, deadline: Instant::now() + MOST_TIME };
    for places in places.chunk_by(|a, b| a.module == b.module) {
        name_module(machine, files, &wanted, places, &mut symbols);
    }
    symbols.name_the_rest(machine);
    symbols.set_failures(files.failures());
    symbols
}

/// The longest that the DWARF of all files may take: seconds are enough for a browser's.
const MOST_TIME: Duration = Duration::from_mins(1);

/// What is looked up, and until when.
struct Wanted {
    detail: Detail,
    deadline: Instant,
}

/// What an inlined function without a name is called.
const UNNAMED: &str = "[unnamed]";

/// A frame and where it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) module: ModuleId,
    pub(super) address: u64,
    pub(super) frame: FrameId,
}

fn name_module(
    machine: &ExportMachine,
    files: &impl ModuleFiles,
    wanted: &Wanted,
    places: &[Place],
    symbols: &mut Symbols,
) {
    let Some(&Place { module, .. }) = places.first() else { return };
    let mut addresses: Vec<u64> = places.iter().map(|place| place.address).collect();
    addresses.dedup();
    let mut answer = Answer::new(&addresses);
    let outcome = match machine.module(module).kind {
        ModuleKind::Kernel => kernel(machine, files, wanted, &mut answer),
        ModuleKind::KernelCode => {
            let name = answer.add_name(machine.string(machine.module(module).path).to_owned());
            (0..addresses.len()).for_each(|position| answer.set(position, name));
            Ok(())
        }
        ModuleKind::Vdso => files
            .vdso(module)
            .map_or(Err(SymbolError::Missing), |image| elf::look_up(&mut Cursor::new(image), &mut answer)),
        ModuleKind::File if wanted.detail == Detail::Addresses => Ok(()),
        ModuleKind::File => file(files, module, wanted, &mut answer),
        ModuleKind::Anonymous(process) | ModuleKind::Unmapped(process) => {
            jit::name(files, module, process, places, symbols).map_err(SymbolError::from)
        }
    };
    if let Err(error) = outcome {
        symbols.add_unreadable(Unreadable { module, error });
    }
    add(&answer, places, symbols);
}

/// Gives each frame what was found for its address.
fn add(answer: &Answer<'_>, places: &[Place], symbols: &mut Symbols) {
    let names = symbols.intern_all(answer.names().map(|linkage| (demangle(linkage), linkage)));
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
}

/// The kernel's own list says what it holds now; what was removed during the recording was there before.
fn kernel(
    machine: &ExportMachine,
    files: &impl ModuleFiles,
    wanted: &Wanted,
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
    let lines = if wanted.detail == Detail::Lines { kernel_lines(files, wanted, answer) } else { Ok(()) };
    listed.and(lines)
}

/// Lines of the kernel's own functions. Those of its modules and of BPF programs lie elsewhere; their names end in `[module]`.
fn kernel_lines(
    files: &impl ModuleFiles,
    wanted: &Wanted,
    answer: &mut Answer<'_>,
) -> Result<(), SymbolError> {
    let is_own = |&position: &usize| {
        let name = answer.wanted().get(position).and_then(|&address| answer.name_at(address));
        name.is_some_and(|name| !name.ends_with(']'))
    };
    let own: Vec<usize> = (0..answer.wanted().len()).filter(is_own).collect();
    let Some((image, moved)) = Some(&own).filter(|own| !own.is_empty()).and_then(|_| files.kernel_image())
    else {
        return Ok(());
    };
    let linked = own.iter().filter_map(|&position| answer.wanted().get(position)?.checked_sub(moved));
    let linked: Vec<u64> = linked.collect();
    // All lie above where the kernel begins, unless it was found in another place than it is.
    if linked.len() != own.len() {
        return Ok(());
    }
    let mut of_image = Answer::new(&linked);
    let looked_up =
        dwarf::look_up(files, ModuleId::KERNEL, Some(image), || None, wanted.deadline, &mut of_image);
    answer.take_lists(&of_image, &own);
    looked_up.map_err(SymbolError::from)
}

fn file<M: ModuleFiles>(
    files: &M,
    module: ModuleId,
    wanted: &Wanted,
    answer: &mut Answer<'_>,
) -> Result<(), SymbolError> {
    let mut own = files.open(module);
    if let Some(image) = &mut own
        && pe::is_image(image)
    {
        return pe_image(files, module, image, wanted.detail == Detail::Lines, answer);
    }
    let mut named = own.as_mut().map(|file| elf::look_up(file, answer));
    let mut debug = None;
    if !answer.is_complete() {
        debug = files.open_debug(module);
        if let Some(file) = &mut debug {
            named = Some(named.unwrap_or(Ok(())).and(elf::look_up(file, answer)));
        }
    }
    let named = named.unwrap_or(Err(SymbolError::Missing));
    if wanted.detail == Detail::Names {
        return named;
    }
    let open_debug = || debug.or_else(|| files.open_debug(module));
    let lines = dwarf::look_up(files, module, own, open_debug, wanted.deadline, answer);
    // A file whose symbols can't be read is told of once.
    named.and(lines.map_err(SymbolError::from))
}

/// A PE image has its exports in it, and all else in its PDB.
fn pe_image<M: ModuleFiles>(
    files: &M,
    module: ModuleId,
    image: &mut M::File,
    lines: bool,
    answer: &mut Answer<'_>,
) -> Result<(), SymbolError> {
    let exported = pe::look_up(image, answer);
    let Some(id) = pe::pdb_of(image)? else { return exported };
    let of_pdb = files.open_pdb(module, &id).map(|mut file| pdb::look_up(&mut file, &id, lines, answer));
    exported.and(of_pdb.transpose().map(drop).map_err(SymbolError::from))
}
