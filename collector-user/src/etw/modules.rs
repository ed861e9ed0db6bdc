//! Images in, modules of a machine out: files by what tells them apart, and memory of processes that is in none.

use std::collections::HashMap;

use collector_common::event::Guid;
use collector_common::intern::{Seeded, StringId};
use collector_common::record::{
    ExportMachine, ImageHeader, ImageKey, Module, ModuleDetails, ModuleId, ModuleKind, Pdb, ProcessId,
    Signature,
};
use windows_etw::decode::kernel::KernelEvent;
use windows_etw::decode::state::{ImageLife, PdbId};

use super::name;

/// Versions of files that are kept.
const MOST: usize = 1 << 16;

/// What two images have in common that are one file. Paths are so whatever their case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct File {
    path: String,
    size: u64,
    told: Option<ImageHeader>,
    pdb: Option<(Guid, u32)>,
}

/// All modules of a machine.
#[derive(Debug, Default)]
pub(super) struct Modules {
    /// Versions of files.
    versions: HashMap<ImageKey, Box<str>>,
    files: HashMap<File, ModuleId>,
    /// By process, path and use of their addresses.
    made: HashMap<(ProcessId, StringId, u32), ModuleId, Seeded>,
    unmapped: HashMap<ProcessId, ModuleId, Seeded>,
}

impl Modules {
    /// Takes an event; those that tell nothing of files are passed over.
    pub(super) fn take(&mut self, event: &KernelEvent<'_>) {
        if let KernelEvent::FileVersion(file) = event {
            let key = ImageKey { date: file.timestamp, size: file.size };
            let version = file.binary_version.to_string();
            if !version.is_empty() && (self.versions.len() < MOST || self.versions.contains_key(&key)) {
                self.versions.insert(key, name(&version).into());
            }
        }
    }

    /// The module of an image that is at this path.
    pub(super) fn image(&mut self, machine: &mut ExportMachine, image: &ImageLife, path: &str) -> ModuleId {
        let (pdb, told) = (image.ids.pdb.as_ref(), header(image));
        let file = File {
            path: path.to_lowercase(),
            size: image.size,
            told,
            pdb: pdb.map(|pdb| (pdb.signature, pdb.age)),
        };
        if let Some(known) = self.files.get(&file) {
            return *known;
        }
        let module = add(machine, ModuleKind::File, path);
        let version = match told {
            Some(ImageHeader::Dated(key)) => self.versions.get(&key).map(ToString::to_string),
            _ => None,
        };
        let details =
            ModuleDetails { version, pdb: pdb.map(stored), image: told, ..ModuleDetails::default() };
        if details != ModuleDetails::default() {
            machine.set_details(module, details);
        }
        self.files.insert(file, module);
        module
    }

    /// The module of code that was made at run time, from the file of this path, if any. Addresses that are used again are of another one.
    pub(super) fn made(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        path: StringId,
        usage: u32,
    ) -> ModuleId {
        let kind = ModuleKind::Anonymous(process);
        let add = || machine.add_module(Module { kind, path, build_id: None });
        *self.made.entry((process, path, usage)).or_insert_with(add)
    }

    /// The module of what lies nowhere that is known.
    pub(super) fn unmapped(&mut self, machine: &mut ExportMachine, process: ProcessId) -> ModuleId {
        let add = || add(machine, ModuleKind::Unmapped(process), "[unmapped]");
        *self.unmapped.entry(process).or_insert_with(add)
    }
}

/// What a trace tells of an image's header; versions of events up to 1 tell its size alone. None of one that is too large for a header.
pub(super) fn header(image: &ImageLife) -> Option<ImageHeader> {
    let size = u32::try_from(image.size).ok()?;
    let checksum = image.checksum.filter(|checksum| *checksum > 0);
    Some(match (image.timestamp, checksum) {
        (Some(date), _) => ImageHeader::Dated(ImageKey { date, size }),
        (None, Some(checksum)) => ImageHeader::Summed { checksum, size },
        (None, None) => ImageHeader::Sized(size),
    })
}

fn add(machine: &mut ExportMachine, kind: ModuleKind, path: &str) -> ModuleId {
    let path = machine.intern_string(name(path));
    machine.add_module(Module { kind, path, build_id: None })
}

fn stored(pdb: &PdbId) -> Pdb {
    let Guid(mut guid) = pdb.signature;
    guid[..4].reverse();
    guid[4..6].reverse();
    guid[6..8].reverse();
    Pdb { path: name(&pdb.path).to_owned(), signature: Signature(guid), age: pdb.age }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_the_guid() {
        let digits = 0xec83_d8df_5559_46e0_b123_0123_4567_89ab_u128;
        let pdb = PdbId { signature: Guid(digits.to_be_bytes()), age: 2, path: "wntdll.pdb".into() };
        assert_eq!(stored(&pdb).signature.to_string(), format!("{digits:X}"));
        assert!(pdb.signature.to_string().starts_with("ec83d8df-5559-46e0-b1"));
    }
}
