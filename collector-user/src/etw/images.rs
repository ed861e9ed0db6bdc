//! A recording that was made here a moment ago in, names of its images' functions out: from the images, and from PDBs and maps of what .NET
//! compiled ahead, beside them and in the folders of `_NT_SYMBOL_PATH`.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;

use collector_common::record::{ExportMachine, ModuleId, ModuleKind};
use export::symbolize::{AheadMapId, ModuleFiles, Naming, PdbId, Symbols, symbolize_rest};

use crate::image_places::open_at;
use crate::symbol_path::{SymbolPlaces, VARIABLE, ahead_map_of, pdb_of};
use crate::this_machine::is_local;

/// Names the frames that have no name in `symbols`. What Windows writes does not tell which PDB is an image's: the images do, which are where
/// they were when they were recorded, and have in their headers what was recorded of these. Of recordings of other machines or times that is not so.
pub fn name_from_images(machine: &ExportMachine, symbols: Symbols, naming: impl Into<Naming>) -> Symbols {
    let symbol_path = env::var_os(VARIABLE).unwrap_or_default();
    symbolize_rest(machine, &Images { machine, symbol_path }, naming, symbols)
}

struct Images<'a> {
    machine: &'a ExportMachine,
    symbol_path: OsString,
}

impl Images<'_> {
    fn path(&self, module: ModuleId) -> Option<&Path> {
        let module = self.machine.module(module);
        let path = Path::new(self.machine.string(module.path));
        (module.kind == ModuleKind::File && path.is_absolute() && is_local(path)).then_some(path)
    }
}

impl ModuleFiles for Images<'_> {
    type File = File;

    fn open(&self, module: ModuleId) -> Option<File> {
        open_at(self.path(module)?, self.machine.details(module)?.image?)
    }

    fn pdb_of(&self, module: ModuleId) -> Option<PdbId> {
        pdb_of(self.machine, module)
    }

    fn open_pdb(&self, module: ModuleId, id: &PdbId) -> Option<File> {
        SymbolPlaces::of(id, &self.symbol_path)?.open_beside(self.path(module).and_then(Path::parent))
    }

    fn ahead_map_of(&self, module: ModuleId) -> Option<AheadMapId> {
        ahead_map_of(self.machine, module)
    }

    fn open_ahead_map(&self, module: ModuleId, id: &AheadMapId) -> Option<File> {
        SymbolPlaces::of_map(id, &self.symbol_path)?.open_beside(self.path(module).and_then(Path::parent))
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use collector_common::ids::Svma;
    use collector_common::record::{Frame, FrameFlags, ImageKey, Module, ModuleDetails};
    use export::symbolize::Detail;
    use object::{Object as _, ObjectSymbol as _};

    use super::*;

    #[test]
    fn functions_are_named_by_the_images_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let source = "__declspec(dllexport) int twice(int x) { return x + x; }";
        fs::write(folder.join("source.c"), source).unwrap();
        let built = Command::new("x86_64-w64-mingw32-gcc")
            .args(["-shared", "-o", "twice.dll", "source.c"])
            .current_dir(folder)
            .status();
        assert!(built.unwrap().success());
        let path = folder.join("twice.dll");
        // The address as another reader has it.
        let bytes = fs::read(&path).unwrap();
        let image = object::File::parse(&*bytes).unwrap();
        let twice = image.symbols().find(|it| it.name() == Ok("twice")).unwrap();
        let address = Svma(twice.address() - image.relative_address_base());

        let mut machine = ExportMachine::default();
        // "PE Format": `TimeDateStamp` 8 behind the signature, `SizeOfImage` 56 in the optional header at 24.
        let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        let header = word(0x3c) as usize;
        let own = ImageKey { date: word(header + 8), size: word(header + 24 + 56) };
        let mut frame = |path: &Path, image: Option<ImageKey>| {
            let path = machine.intern_string(path.to_str().unwrap());
            let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
            let image = image.map(Into::into);
            machine.set_details(module, ModuleDetails { image, ..ModuleDetails::default() });
            machine.intern_frame(Frame { module, address, flags: FrameFlags::default() })
        };
        let here = frame(&path, Some(own));
        let gone = frame(&folder.join("gone.dll"), Some(own));
        let relative = frame(Path::new("twice.dll"), Some(own));
        let replaced = frame(&path, Some(ImageKey { date: own.date ^ 1, ..own }));
        let untold = frame(&path, None);
        let symbols = name_from_images(&machine, Symbols::unresolved(&machine), Detail::Names);
        let name = |frame| symbols.is_resolved(frame).then(|| symbols.function(symbols.name_id(frame)));
        let names = [here, gone, relative, replaced, untold].map(name);
        assert_eq!(names, [Some("twice"), None, None, None, None]);
    }
}
