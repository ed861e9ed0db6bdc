//! Modules of a dump in, their images out: where each lies, its unwind table, its code, and its file, by which functions are named.
//!
//! An image is looked for by [`ImagePlaces`]. Where there is none, its memory is taken, if the dump has that.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use collector_common::intern::Seeded;
use collector_common::record::{ExportMachine, ImageKey, ModuleDetails, ModuleId};
use export::symbolize::{
    AheadMapId, CodeSection, ModuleFiles, Naming, PdbId, Symbols, code_of_image, symbolize_rest,
};

use super::in_memory;
use super::memory::Memory;
use super::streams::Module;
use crate::image_places::ImagePlaces;
use crate::modules::{ImageFile, Table, of_loaded, open_chosen};
use crate::symbol_path::{SymbolPlaces, ahead_map_of, pdb_of};
use crate::this_machine::read_at;

/// Images that are looked for at most. One is opened twice while functions are named, and a process has 1024 files at first.
const MOST_OPEN: usize = 384;

/// An image.
#[derive(Debug)]
struct Image {
    /// In the recording.
    module: ModuleId,
    base: u64,
    path: Box<str>,
    key: ImageKey,
    found: OnceCell<Option<Found>>,
}

/// What was found of one.
#[derive(Debug)]
struct Found {
    file: Arc<File>,
    /// Where the file is; none of a copy of memory.
    folder: Option<PathBuf>,
    code: Vec<CodeSection>,
    table: OnceCell<Option<Table>>,
}

impl Found {
    fn of(mut file: File, folder: Option<PathBuf>) -> Self {
        let code = code_of_image(&mut file).unwrap_or_default();
        Self { file: Arc::new(file), folder, code, table: OnceCell::new() }
    }

    fn table(&self) -> Option<&Table> {
        let read = || {
            let image = ImageFile::of(Arc::clone(&self.file))?;
            let table = Table::of_image(|| image.clone());
            table.inspect_err(|error| log::info!("an image has no unwind rules: {error}")).ok()
        };
        self.table.get_or_init(read).as_ref()
    }

    /// Fills `buffer` with code; says how many bytes of it there are.
    fn code(&self, address: u64, buffer: &mut [u8]) -> usize {
        let within = |section: &&CodeSection| {
            address.checked_sub(section.address).is_some_and(|within| within < section.file_size)
        };
        let Some(section) = self.code.iter().find(within) else { return 0 };
        let within = address - section.address;
        let left = usize::try_from(section.file_size - within).unwrap_or(usize::MAX).min(buffer.len());
        let Some(buffer) = buffer.get_mut(..left) else { return 0 };
        read_at(&self.file, buffer, section.file_offset.saturating_add(within)).unwrap_or(0)
    }
}

/// Where an image lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lying {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The address of its first byte, which another image may have.
    pub(super) base: u64,
    image: usize,
}

/// The images of a dump.
#[derive(Debug)]
pub(super) struct Images {
    all: Vec<Image>,
    by_module: HashMap<ModuleId, usize, Seeded>,
    /// By where they begin; none overlaps another.
    lying: Vec<Lying>,
    places: ImagePlaces,
    opened: Cell<usize>,
    /// Bytes of memory that may still be copied.
    budget: Cell<u64>,
    /// Why one could not be copied.
    failure: OnceCell<String>,
}

impl Images {
    /// Of modules, each with its number in the recording.
    pub(super) fn new(modules: Vec<(Module, ModuleId)>, folder: Option<&Path>, budget: u64) -> Self {
        // By the path in small letters.
        let mut known: HashMap<(Box<str>, ImageKey), usize, Seeded> = HashMap::default();
        let mut everywhere = Vec::with_capacity(modules.len());
        let (mut all, mut by_module) = (Vec::new(), HashMap::default());
        for (Module { base, size, date, path, .. }, module) in modules {
            let key = ImageKey { date, size };
            let image = *known.entry((path.to_lowercase().into(), key)).or_insert_with(|| {
                all.push(Image { module, base, path, key, found: OnceCell::new() });
                all.len() - 1
            });
            by_module.insert(module, image);
            everywhere.push(Lying { start: base, end: base.saturating_add(size.into()), base, image });
        }
        everywhere.sort_by_key(|lying: &Lying| lying.start);
        let (mut end, mut lying) = (0, Vec::with_capacity(everywhere.len()));
        for it in everywhere {
            let start = it.start.max(end);
            if start < it.end {
                lying.push(Lying { start, ..it });
                end = it.end;
            }
        }
        let (opened, budget, failure) = (Cell::new(0), Cell::new(budget), OnceCell::new());
        Self { all, by_module, lying, places: ImagePlaces::new(folder), opened, budget, failure }
    }

    /// The image that an address is in.
    pub(super) fn at(&self, address: u64) -> Option<Lying> {
        let behind = self.lying.partition_point(|lying| lying.start <= address);
        let lying = *self.lying.get(behind.checked_sub(1)?)?;
        (address < lying.end).then_some(lying)
    }

    /// The address behind the last image.
    pub(super) fn end(&self) -> u64 {
        self.lying.last().map_or(0, |lying| lying.end)
    }

    pub(super) fn module(&self, lying: Lying) -> Option<ModuleId> {
        self.all.get(lying.image).map(|image| image.module)
    }

    fn found(&self, lying: Lying, memory: &Memory<'_>) -> Option<&Found> {
        let image = self.all.get(lying.image)?;
        let look = || {
            self.opened.set(self.opened.get() + 1);
            if self.opened.get() > MOST_OPEN {
                return None;
            }
            let in_memory = || {
                let mut budget = self.budget.get();
                let copied = in_memory::copy(memory, image.base, image.key.size.into(), &mut budget);
                self.budget.set(budget);
                let file = copied?.inspect_err(|error| drop(self.failure.set(error.to_string())));
                Some(Found::of(file.ok()?, None))
            };
            let found = self.places.find(&image.path, image.key.into());
            let found = found.map(|(file, path)| Found::of(file, path.parent().map(Path::to_owned)));
            found.or_else(in_memory)
        };
        image.found.get_or_init(look).as_ref()
    }

    /// Looks for an image, so that it is known when it is asked for without the dump.
    pub(super) fn look_for(&self, lying: Lying, memory: &Memory<'_>) {
        self.found(lying, memory);
    }

    /// The code of an image that an address is in; all of the image, where it is not here to tell what of it is code.
    pub(super) fn code_around(&self, lying: Lying, address: u64, memory: &Memory<'_>) -> Option<Range<u64>> {
        let Some(found) = self.found(lying, memory).filter(|found| !found.code.is_empty()) else {
            return Some(lying.start..lying.end);
        };
        let range = |code: &CodeSection| {
            let start = lying.base.saturating_add(code.address);
            start.max(lying.start)..start.saturating_add(code.file_size).min(lying.end)
        };
        found.code.iter().map(range).find(|code| code.contains(&address))
    }

    pub(super) fn table(&self, lying: Lying, memory: &Memory<'_>) -> Option<&Table> {
        self.found(lying, memory)?.table()
    }

    /// Fills `buffer` with the code at an address in an image; says how many bytes of it there are.
    pub(super) fn code(&self, lying: Lying, address: u64, buffer: &mut [u8], memory: &Memory<'_>) -> usize {
        self.found(lying, memory).map_or(0, |found| found.code(address - lying.base, buffer))
    }

    /// What the files say of themselves that were found, by module.
    pub(super) fn details(&self) -> impl Iterator<Item = (ModuleId, ModuleDetails)> {
        self.all.iter().filter_map(|image| {
            let found = image.found.get()?.as_ref()?;
            Some((image.module, of_loaded(&found.file, image.key.into())?))
        })
    }

    /// The paths of those of some modules that were looked for and are nowhere.
    pub(super) fn absent(&self, modules: &BTreeSet<ModuleId>) -> impl Iterator<Item = &str> {
        let is_absent = |image: &&Image| {
            modules.contains(&image.module) && image.found.get().is_some_and(Option::is_none)
        };
        self.all.iter().filter(is_absent).map(|image| &*image.path)
    }

    /// What of looking for images failed, or was left.
    pub(super) fn failures(&self) -> impl Iterator<Item = String> {
        let copied = self.failure.get().map(|error| {
            format!(
                "an image could not be copied out of the dump's memory, so that it counts as not here: {error}; files for that are in \
                 TMPDIR, or /var/tmp"
            )
        });
        let beyond = self.opened.get().checked_sub(MOST_OPEN).filter(|beyond| *beyond > 0);
        let beyond = beyond.map(|beyond| {
            format!("images that were not looked for, as {MOST_OPEN} are the most that are opened: {beyond}")
        });
        copied.into_iter().chain(beyond)
    }

    pub(super) fn into_files(self) -> DumpFiles {
        DumpFiles { images: self.all, by_module: self.by_module, places: self.places }
    }
}

/// The files of a dump's images, by which its functions are named.
#[derive(Debug)]
pub struct DumpFiles {
    images: Vec<Image>,
    by_module: HashMap<ModuleId, usize, Seeded>,
    places: ImagePlaces,
}

impl DumpFiles {
    /// Names the frames of the dump's recording that have no name in `symbols`.
    pub fn name(&self, machine: &ExportMachine, symbols: Symbols, naming: impl Into<Naming>) -> Symbols {
        symbolize_rest(machine, &Files { files: self, machine }, naming, symbols)
    }

    fn found(&self, module: ModuleId) -> Option<&Found> {
        self.images.get(*self.by_module.get(&module)?)?.found.get()?.as_ref()
    }
}

/// The same, with what the recording tells of them.
struct Files<'a> {
    files: &'a DumpFiles,
    machine: &'a ExportMachine,
}

impl Files<'_> {
    /// What belongs to an image: as symbol servers have it, beside the dump, beside the image, or in a folder that is named.
    fn open_place(&self, module: ModuleId, places: Option<SymbolPlaces>) -> Option<File> {
        let SymbolPlaces { name, stored, plain } = places?;
        let of_image = self.files.found(module).and_then(|found| found.folder.as_deref());
        let beside = self.files.places.folder.as_deref().into_iter().chain(of_image);
        let beside: Vec<PathBuf> = beside.map(|folder| folder.join(&name)).collect();
        stored.into_iter().chain(beside).chain(plain).find_map(|path| open_chosen(&path))
    }
}

impl ModuleFiles for Files<'_> {
    type File = File;

    fn open(&self, module: ModuleId) -> Option<File> {
        self.files.found(module)?.file.try_clone().ok()
    }

    fn pdb_of(&self, module: ModuleId) -> Option<PdbId> {
        pdb_of(self.machine, module)
    }

    fn open_pdb(&self, module: ModuleId, id: &PdbId) -> Option<File> {
        self.open_place(module, SymbolPlaces::of(id, &self.files.places.symbol_path))
    }

    fn ahead_map_of(&self, module: ModuleId) -> Option<AheadMapId> {
        ahead_map_of(self.machine, module)
    }

    fn open_ahead_map(&self, module: ModuleId, id: &AheadMapId) -> Option<File> {
        self.open_place(module, SymbolPlaces::of_map(id, &self.files.places.symbol_path))
    }
}
