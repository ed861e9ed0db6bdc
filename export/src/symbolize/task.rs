//! The addresses that are wanted of one module in, with what says more about them; what its files tell of these out.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Seek};
use std::time::Instant;

use collector_common::record::ModuleId;

use super::answer::Answer;
use super::demangle::{Demangler, NameForm};
use super::dwarf;
use super::elf::{self, SymbolError};
use super::files::{KernelModule, ModuleFiles};
use super::kernel::kernel_names;
use super::pdb;
use super::pe::{self, AheadMapId, ahead};
use super::resolve::Detail;

/// What is looked up, and until when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) detail: Detail,
    pub(super) form: NameForm,
    /// The end of the time for DWARF.
    pub(super) deadline: Instant,
}

/// Where a module's names are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Kernel,
    Vdso,
    File,
}

/// A module to be looked up.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) module: ModuleId,
    pub(super) source: Source,
    /// Sorted, each once.
    pub(super) addresses: Vec<u64>,
    /// What is known of some, by their position: it counts before what the files say.
    pub(super) known: Vec<(usize, String)>,
}

/// What was found of a module.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) answer: Answer<'a>,
    /// How its names read, where that is not as the file has them.
    pub(super) readable: Vec<Option<String>>,
    pub(super) outcome: Result<(), SymbolError>,
}

impl Task {
    pub(super) fn look_up(&self, files: &impl ModuleFiles, wanted: &Wanted) -> Found<'_> {
        let mut answer = Answer::new(&self.addresses);
        let outcome = match self.source {
            Source::Kernel => self.kernel(files, wanted, &mut answer),
            Source::Vdso => files.vdso(self.module).map_or(Err(SymbolError::Missing), |image| {
                elf::look_up(&mut Cursor::new(image), &mut answer)
            }),
            Source::File => file(files, self.module, wanted, &mut answer),
        };
        answer.settle();
        let (readable, as_written) = readable(&answer, wanted.form);
        let outcome = outcome.and(answer.had_room(as_written));
        Found { answer, readable, outcome }
    }

    /// The kernel's own list says what it holds now; what was removed during the recording was there before.
    fn kernel(
        &self,
        files: &impl ModuleFiles,
        wanted: &Wanted,
        answer: &mut Answer<'_>,
    ) -> Result<(), SymbolError> {
        let listed = match files.kernel_symbols() {
            Some(mut text) => kernel_names(&mut text, answer).map_err(SymbolError::from),
            None => Err(SymbolError::Missing),
        };
        for (position, name) in &self.known {
            let name = answer.add_name(name.clone());
            answer.set(*position, name);
        }
        if wanted.detail != Detail::Lines {
            return listed;
        }
        let lines = kernel_lines(files, wanted, answer);
        listed.and(lines).and(lines_of_modules(files, wanted, answer))
    }
}

/// How all names read, where that is not as the file has them, and how many there was no time or room for.
fn readable(answer: &Answer<'_>, form: NameForm) -> (Vec<Option<String>>, u64) {
    let mut demangler = Demangler::new(form);
    let names = answer.names().enumerate().map(|(position, linkage)| {
        if answer.is_dot_net(position) {
            return Some(ahead::readable(linkage));
        }
        let name = demangler.name(linkage);
        (name != linkage).then(|| name.into_owned())
    });
    (names.collect(), demangler.as_written())
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

/// Lines of the functions of the kernel's modules, which `name [module]` is said of.
fn lines_of_modules(
    files: &impl ModuleFiles,
    wanted: &Wanted,
    answer: &mut Answer<'_>,
) -> Result<(), SymbolError> {
    let mut of_modules: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (position, &address) in answer.wanted().iter().enumerate() {
        let named = answer.name_at(address).and_then(|name| name.strip_suffix(']')?.rsplit_once(" ["));
        if let Some((_, module)) = named {
            of_modules.entry(module.to_owned()).or_default().push(position);
        }
    }
    let mut outcome = Ok(());
    for (module, positions) in of_modules {
        let Some(KernelModule { file, sections }) = files.kernel_module(&module) else { continue };
        let addresses: Vec<u64> =
            positions.iter().filter_map(|&position| answer.wanted().get(position).copied()).collect();
        let mut of_file = Answer::new(&addresses);
        let looked_up = dwarf::look_up_placed(files, file, &sections, wanted.deadline, &mut of_file);
        answer.take_lists(&of_file, &positions);
        outcome = outcome.and(looked_up.map_err(SymbolError::from));
    }
    outcome
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
    if own.is_none()
        && let Some(id) = files.ahead_map_of(module)
        && let Some(mut map) = files.open_ahead_map(module, &id)
    {
        return compiled_ahead(&mut map, &id, answer);
    }
    if own.is_none()
        && let Some(id) = files.pdb_of(module)
    {
        let mut pdb = files.open_pdb(module, &id).ok_or(SymbolError::Missing)?;
        return Ok(pdb::look_up(&mut pdb, &id, wanted.detail == Detail::Lines, answer)?);
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

/// Names methods that .NET compiled ahead.
fn compiled_ahead(
    map: &mut (impl Read + Seek),
    id: &AheadMapId,
    answer: &mut Answer<'_>,
) -> Result<(), SymbolError> {
    let before = answer.len();
    let outcome = ahead::look_up(map, id, answer);
    answer.mark_dot_net(before);
    Ok(outcome?)
}

/// A PE image has its exports in it, and all else in its PDB; what .NET compiled ahead has its names in a map.
fn pe_image<M: ModuleFiles>(
    files: &M,
    module: ModuleId,
    image: &mut M::File,
    lines: bool,
    answer: &mut Answer<'_>,
) -> Result<(), SymbolError> {
    let id = pe::ahead_map_of(image);
    let map = id.as_ref().ok().and_then(|id| id.as_ref());
    let map = map.and_then(|id| Some((files.open_ahead_map(module, id)?, id)));
    let mapped = map.map_or(Ok(()), |(mut map, id)| compiled_ahead(&mut map, id, answer));
    let exported = mapped.and(pe::look_up(image, answer)).and(id.map(drop));
    let of_pdb = pe::pdb_of(image).and_then(|id| {
        let found = id.and_then(|id| Some((files.open_pdb(module, &id)?, id)));
        Ok(found.map_or(Ok(()), |(mut file, id)| pdb::look_up(&mut file, &id, lines, answer))?)
    });
    exported.and(of_pdb)
}
