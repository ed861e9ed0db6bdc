//! The executable mappings of one process image over time.

use std::num::NonZeroU64;
use std::sync::Arc;

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
}

/// A mapping that is no more, and until when it was.
#[derive(Clone, Copy, Debug)]
struct Replaced {
    mapping: MappedModule,
    until: Nanos,
}

/// The mappings of one process between two executions of a program. A child shares its parent's list until
/// one of them changes it.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// Sorted by address, without overlap.
    live: Arc<Vec<MappedModule>>,
    /// Mappings that others were laid over, in the order that happened.
    replaced: Vec<Replaced>,
    /// When `live` last changed, and its number since then.
    changed: Nanos,
    generation: Option<NonZeroU64>,
}

impl Space {
    /// The mapping that held `address` at `time`.
    pub fn mapping_at(&self, address: Avma, time: Nanos) -> Option<&MappedModule> {
        let after = self.live.partition_point(|mapping| mapping.start <= address);
        let live = after.checked_sub(1).map(|index| &self.live[index]).filter(|m| m.contains(address));
        match live {
            Some(mapping) if mapping.since <= time => Some(mapping),
            _ => self.replaced_at(address, time).or(live),
        }
    }

    fn replaced_at(&self, address: Avma, time: Nanos) -> Option<&MappedModule> {
        let mut candidates = self.replaced.iter().rev();
        let held =
            |old: &&Replaced| old.mapping.contains(address) && old.mapping.since <= time && time < old.until;
        candidates.find(held).map(|old| &old.mapping)
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
        let at = self.live.partition_point(|old| old.start < mapping.start);
        if mapping.start >= mapping.end || self.live.get(at).is_some_and(same) {
            return false;
        }
        self.changed = self.changed.max(mapping.since);
        self.generation = Some(generation);
        let live = Arc::make_mut(&mut self.live);
        let first = live.partition_point(|old| old.end <= mapping.start);
        let last = live.partition_point(|old| old.start < mapping.end);
        let mut pieces = Vec::with_capacity(3);
        for old in &live[first..last.max(first)] {
            if old.since < mapping.since {
                self.replaced.push(Replaced { mapping: *old, until: mapping.since });
            }
            if old.start < mapping.start {
                pieces.push(MappedModule { end: mapping.start, ..*old });
            }
            if old.end > mapping.end {
                let skipped = mapping.end.0 - old.start.0;
                let file_offset = FileOffset(old.file_offset.0.wrapping_add(skipped));
                pieces.push(MappedModule { start: mapping.end, file_offset, ..*old });
            }
        }
        pieces.push(mapping);
        pieces.sort_unstable_by_key(|piece| piece.start);
        live.splice(first..last.max(first), pieces);
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

    /// The present mappings, sorted by address.
    pub fn mappings(&self) -> &[MappedModule] {
        &self.live
    }
}
