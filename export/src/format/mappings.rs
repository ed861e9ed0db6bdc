//! What was mapped, in addresses as linked.
//!
//! Two processes map one file at different addresses, so the addresses of a profile of a whole machine can't be
//! those of a process. Here a mapping is a segment of a file at the addresses it was linked for, with the file
//! offset it was mapped from, and a location's address is the linked one: `start - offset` is the same as in the
//! file's program header, so that a reader that looks into the file finds the code at that address. Mappings of
//! different files may cover the same addresses; each location says which one it is in.
//!
//! The kernel's mapping is the upper half of the addresses, where each 64-bit kernel lives. An address in a file
//! for which no mapping was recorded gets one that has no range, and code that has no address the first one of its file.

use crate::table::Table;
use collector_common::record::{ExportMachine, Frame, ModuleId, ModuleKind, WITHOUT_ADDRESS};

/// A mapping to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) module: ModuleId,
    pub(super) start: u64,
    pub(super) limit: u64,
    pub(super) offset: u64,
}

/// All mappings of a machine, and those used.
#[derive(Debug)]
pub(super) struct Mappings {
    /// Sorted; each once.
    places: Vec<Place>,
    used: Vec<Place>,
    ids: Table<Place, u64>,
}

/// How many mappings of one module that start below an address are looked at.
const MAX_OVERLAP: usize = 16;

const KERNEL: Place = Place { module: ModuleId::KERNEL, start: 1 << 63, limit: u64::MAX, offset: 0 };

impl Mappings {
    pub(super) fn of(machine: &ExportMachine) -> Self {
        let mut places: Vec<Place> = machine
            .mappings()
            .iter()
            .map(|mapping| Place {
                module: mapping.module,
                start: mapping.start.0.wrapping_sub(mapping.bias),
                limit: mapping.end.0.wrapping_sub(mapping.bias),
                offset: mapping.file_offset.0,
            })
            .filter(|place| place.start < place.limit && place.module != ModuleId::KERNEL)
            .filter(|place| !WITHOUT_ADDRESS.contains(&place.start))
            .chain([KERNEL])
            .collect();
        places.sort_unstable();
        places.dedup();
        Self { places, used: Vec::new(), ids: Table::default() }
    }

    /// The id (from 1) of the mapping that holds a frame; 0 for memory that is no module's.
    pub(super) fn id(&mut self, machine: &ExportMachine, frame: &Frame) -> u64 {
        let module = match machine.module(frame.module).kind {
            ModuleKind::Unmapped(_) => return 0,
            ModuleKind::KernelCode => ModuleId::KERNEL,
            _ => frame.module,
        };
        let place =
            if frame.has_address() { self.at(module, frame.lookup_address().0) } else { self.first(module) };
        let place = place.unwrap_or(Place { module, start: 0, limit: 0, offset: 0 });
        let next = self.used.len() as u64 + 1;
        let id = *self.ids.entry(place).or_insert(next);
        if id == next {
            self.used.push(place);
        }
        id
    }

    fn at(&self, module: ModuleId, address: u64) -> Option<Place> {
        let after = self.places.partition_point(|place| (place.module, place.start) <= (module, address));
        let mut near = self.places[..after].iter().rev();
        let mut near = near.by_ref().take_while(|place| place.module == module).take(MAX_OVERLAP);
        near.find(|place| address < place.limit).copied()
    }

    fn first(&self, module: ModuleId) -> Option<Place> {
        let from = self.places.partition_point(|place| place.module < module);
        self.places.get(from).filter(|place| place.module == module).copied()
    }

    /// The mappings that have an id, in its order.
    pub(super) fn used(&self) -> &[Place] {
        &self.used
    }
}
