//! Units whose functions lie in files of their own: `.dwo` files, or all of them in one `.dwp` (DWARF 5, 7.3.2 and 7.3.5).

use std::cell::{Cell, OnceCell, RefCell};
use std::io::{Read, Seek};
use std::rc::Rc;
use std::sync::Arc;

use addr2line::SplitDwarfLoad;
use collector_common::record::ModuleId;
use gimli::{Dwarf, DwarfPackage, Reader as _, SectionId};

use super::LineError;
use super::file::{DebugFile, Kind};
use super::meter::Meter;
use super::reader::Bytes;
use crate::symbolize::files::ModuleFiles;

/// Files that are read for one module.
const MAX_FILES: usize = 1 << 12;

/// What the one file of all of them is called to the user.
const PACKAGE: &[u8] = b"its .dwp";

/// All sections of a file.
pub(super) fn dwarf<F: Read + Seek>(file: &DebugFile<F>) -> Dwarf<Bytes<'_, F>> {
    let loaded =
        Dwarf::load(|section: SectionId| Ok::<_, std::convert::Infallible>(Bytes::of(file, section)));
    match loaded {
        Ok(dwarf) => dwarf,
        Err(never) => match never {},
    }
}

/// The files that a module's DWARF is split into.
pub(super) struct SplitFiles<'f, M: ModuleFiles> {
    files: &'f M,
    module: ModuleId,
    meter: Rc<Meter>,
    package: OnceCell<Option<DebugFile<M::File>>>,
    opened: Box<[OnceCell<DebugFile<M::File>>]>,
    next: Cell<usize>,
    missing: RefCell<Option<(usize, String)>>,
    /// Why the first could not be read, of those that are there.
    unreadable: RefCell<Option<LineError>>,
}

impl<'f, M: ModuleFiles> SplitFiles<'f, M> {
    pub(super) fn new(files: &'f M, module: ModuleId, meter: &Rc<Meter>) -> Self {
        Self {
            files,
            module,
            meter: Rc::clone(meter),
            package: OnceCell::new(),
            opened: std::iter::repeat_with(OnceCell::new).take(MAX_FILES).collect(),
            next: Cell::new(0),
            missing: RefCell::new(None),
            unreadable: RefCell::new(None),
        }
    }

    /// Why not all could be looked up.
    pub(super) fn missing(&self) -> Result<(), LineError> {
        if let Some(error) = self.unreadable.take() {
            return Err(error);
        }
        match self.missing.take() {
            Some((count, example)) => Err(LineError::SplitMissing { count, example }),
            None => Ok(()),
        }
    }

    /// The functions of a unit that `addr2line` asks for.
    pub(super) fn load<'a>(
        &'a self,
        wanted: &SplitDwarfLoad<Bytes<'a, M::File>>,
    ) -> Option<Arc<Dwarf<Bytes<'a, M::File>>>> {
        let found = self.in_package(wanted).or_else(|| self.in_file(wanted));
        if found.is_none() {
            let name = wanted.path.as_ref().and_then(|path| Some(path.to_string_lossy().ok()?.into_owned()));
            let mut missing = self.missing.borrow_mut();
            let (count, _) = missing.get_or_insert_with(|| (0, name.unwrap_or_default()));
            *count += 1;
        }
        found.map(Arc::new)
    }

    fn in_package<'a>(
        &'a self,
        wanted: &SplitDwarfLoad<Bytes<'a, M::File>>,
    ) -> Option<Dwarf<Bytes<'a, M::File>>> {
        let open = || {
            let file = self.files.open_package(self.module)?;
            self.noted(PACKAGE, DebugFile::open(file, Kind::Package, &self.meter))
        };
        let file = self.package.get_or_init(open).as_ref()?;
        let mut empty = Bytes::of(file, SectionId::DebugInfo);
        empty.empty();
        let load = |section: SectionId| Ok::<_, gimli::Error>(Bytes::of(file, section));
        let found = DwarfPackage::load(load, empty)
            .and_then(|package| package.find_cu(wanted.dwo_id, &wanted.parent))
            .map_err(LineError::Malformed);
        self.noted(PACKAGE, found)?
    }

    fn in_file<'a>(
        &'a self,
        wanted: &SplitDwarfLoad<Bytes<'a, M::File>>,
    ) -> Option<Dwarf<Bytes<'a, M::File>>> {
        let name = wanted.path.as_ref()?.to_slice().ok()?;
        let folder = wanted.comp_dir.as_ref().map(gimli::Reader::to_slice).transpose().ok()?;
        let Some(slot) = self.opened.get(self.next.get()) else {
            self.unreadable.borrow_mut().get_or_insert(LineError::TooManyFiles { limit: MAX_FILES });
            return None;
        };
        let file = self.files.open_split(self.module, folder.as_deref().unwrap_or_default(), &name)?;
        let opened = DebugFile::open(file, Kind::Split, &self.meter).and_then(|file| {
            // A process can't have many files open, and each of these is small.
            file.close().map_err(LineError::Malformed)?;
            self.next.set(self.next.get() + 1);
            let mut dwarf = dwarf(slot.get_or_init(|| file));
            dwarf.make_dwo(&wanted.parent);
            let first = dwarf.units().next().map_err(LineError::Malformed)?;
            let first = first.map(|first| dwarf.unit(first)).transpose().map_err(LineError::Malformed)?;
            // Compiled anew, it is the file of another program.
            Ok(first.is_some_and(|first| first.dwo_id == Some(wanted.dwo_id)).then_some(dwarf))
        });
        self.noted(&name, opened)?
    }

    /// Keeps why a file could not be read. What stops all reading is told by the meter.
    fn noted<T>(&self, name: &[u8], result: Result<T, LineError>) -> Option<T> {
        let part = |error| {
            let path = String::from_utf8_lossy(name).into_owned();
            LineError::Part { path, error: Box::new(error) }
        };
        let note = |error| {
            self.unreadable.borrow_mut().get_or_insert_with(|| part(error));
        };
        result.map_err(note).ok()
    }
}
