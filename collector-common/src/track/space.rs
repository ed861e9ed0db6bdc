//! The executable mappings of one process image over time.

use std::num::NonZeroU64;
use std::sync::Arc;

use super::mappings::{Covered, Mappings};
use crate::ids::{Avma, FileOffset, Nanos};
use crate::record::ModuleId;

/// A mapping of executable memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedModule {
    /// First address.
    pub start: Avma,
    /// First address after it.
    pub end: Avma,
    /// Where in the file it starts.
    pub file_offset: FileOffset,
    /// Address in the process minus address as linked, wrapping.
    pub bias: u64,
    /// What is mapped.
    pub module: ModuleId,
    /// When it was made; 0 for what was there before the recording.
    pub since: Nanos,
}

impl MappedModule {
    /// Whether `address` lies in the mapping.
    pub fn contains(&self, address: Avma) -> bool {
        self.start <= address && address < self.end
    }

    /// The part of it that lies before an address.
    pub(super) fn before(self, address: Avma) -> Option<Self> {
        (self.start < address).then_some(Self { end: self.end.min(address), ..self })
    }

    /// The part of it that lies from an address on.
    pub(super) fn from(self, address: Avma) -> Option<Self> {
        let start = self.start.max(address);
        let file_offset = FileOffset(self.file_offset.0.wrapping_add(start.0 - self.start.0));
        (start < self.end).then_some(Self { start, file_offset, ..self })
    }
}

/// What was mapped and is no more, and until when it was.
#[derive(Clone, Debug)]
struct Replaced {
    mapped: Covered,
    until: Nanos,
}

/// The mappings of one process between two executions of a program. A child shares its parent's list until
/// one of them changes it.
#[derive(Clone, Debug, Default)]
pub struct Space {
    live: Arc<Mappings>,
    /// Mappings that others were laid over, in the order that happened.
    replaced: Vec<Replaced>,
    /// When `live` last changed, and its number since then.
    changed: Nanos,
    generation: Option<NonZeroU64>,
}

impl Space {
    /// The mapping that held `address` at `time`.
    pub fn mapping_at(&self, address: Avma, time: Nanos) -> Option<&MappedModule> {
        let live = self.live.at(address);
        match live {
            Some(mapping) if mapping.since <= time => Some(mapping),
            _ => self.replaced_at(address, time).or(live),
        }
    }

    fn replaced_at(&self, address: Avma, time: Nanos) -> Option<&MappedModule> {
        let candidates = self.replaced.iter().rev().filter(|old| time < old.until);
        candidates.filter_map(|old| old.mapped.at(address)).find(|mapping| mapping.since <= time)
    }

    /// A number that no other state of any space has, while it answers for the present mappings alone; `None`
    /// for a time before their last change. What was looked up under a number stays true under it.
    pub fn generation_at(&self, time: Nanos) -> Option<NonZeroU64> {
        self.generation.filter(|_| self.changed <= time)
    }

    /// Adds a mapping; what it covers of others is replaced. `generation` was never used before.
    /// `false` when just that is mapped there already: a JIT makes its memory executable again and again.
    pub(super) fn map(&mut self, mapping: MappedModule, generation: NonZeroU64) -> bool {
        let same = |old: &MappedModule| MappedModule { since: old.since, ..mapping } == *old;
        if mapping.start >= mapping.end || self.live.at(mapping.start).is_some_and(same) {
            return false;
        }
        self.changed = self.changed.max(mapping.since);
        self.generation = Some(generation);
        let replaced = &mut self.replaced;
        Arc::make_mut(&mut self.live).lay(mapping, |mapped| {
            let was_at_once = matches!(&mapped, Covered::One(old) if old.since >= mapping.since);
            if !was_at_once {
                replaced.push(Replaced { mapped, until: mapping.since });
            }
        });
        true
    }

    /// Whether a query for an earlier time may need more than the present mappings.
    pub(super) fn has_history(&self) -> bool {
        !self.replaced.is_empty()
    }

    /// The same mappings for a child.
    pub(super) fn fork(&self) -> Self {
        Self {
            live: Arc::clone(&self.live),
            replaced: Vec::new(),
            changed: self.changed,
            generation: self.generation,
        }
    }

    /// Drops what ended before `watermark`.
    pub(super) fn prune(&mut self, watermark: Nanos) {
        self.replaced.retain(|old| old.until > watermark);
    }

    /// Whether nothing is mapped.
    pub(super) fn is_empty(&self) -> bool {
        self.mappings().next().is_none()
    }

    /// The present mapping with the highest addresses.
    pub fn highest(&self) -> Option<&MappedModule> {
        self.live.last()
    }

    /// The present mappings, sorted by address.
    pub fn mappings(&self) -> impl Iterator<Item = &MappedModule> {
        self.live.iter()
    }
}
