//! A recording in, names of its images' functions out, from PDBs and maps of what .NET compiled ahead that are here. On Linux all
//! other files have names, too: `modules::name_from_files`.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;

use collector_common::record::{ExportMachine, ModuleId};
use export::symbolize::{AheadMapId, ModuleFiles, Naming, PdbId, Symbols, symbolize_rest};

use crate::symbol_path::{SymbolPlaces, VARIABLE, ahead_map_of, pdb_of};

/// Names the frames that have no name in `symbols`, as far as their PDBs or maps are in the folders of `_NT_SYMBOL_PATH`, or beside
/// the images.
pub fn name_from_pdbs(machine: &ExportMachine, symbols: Symbols, naming: impl Into<Naming>) -> Symbols {
    let symbol_path = env::var_os(VARIABLE).unwrap_or_default();
    symbolize_rest(machine, &Pdbs { machine, symbol_path }, naming, symbols)
}

struct Pdbs<'a> {
    machine: &'a ExportMachine,
    symbol_path: OsString,
}

impl Pdbs<'_> {
    fn find(&self, module: ModuleId, places: SymbolPlaces) -> Option<File> {
        let image = Path::new(self.machine.string(self.machine.module(module).path));
        places.open_beside(image.parent().filter(|folder| folder.is_absolute()))
    }
}

impl ModuleFiles for Pdbs<'_> {
    type File = File;

    /// An image at the same path may be another one.
    fn open(&self, _: ModuleId) -> Option<File> {
        None
    }

    fn pdb_of(&self, module: ModuleId) -> Option<PdbId> {
        pdb_of(self.machine, module)
    }

    fn open_pdb(&self, module: ModuleId, id: &PdbId) -> Option<File> {
        self.find(module, SymbolPlaces::of(id, &self.symbol_path)?)
    }

    fn ahead_map_of(&self, module: ModuleId) -> Option<AheadMapId> {
        ahead_map_of(self.machine, module)
    }

    fn open_ahead_map(&self, module: ModuleId, id: &AheadMapId) -> Option<File> {
        self.find(module, SymbolPlaces::of_map(id, &self.symbol_path)?)
    }
}
