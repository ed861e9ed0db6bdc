//! The events of a recording, and which of them a record is from.

use hashbrown::HashMap;

use super::section::Section;
use super::{GroupDescription, branch_counters};
use crate::perf::fields::Fields;
use crate::perf::{Attr, AttrError, ByteOrder, Bytes, ParseConfig, RawRecord, RecordKind};

/// An event of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEvent {
    /// Its attributes.
    pub attr: Attr,
    /// How its records are laid out.
    pub config: ParseConfig,
    /// Its ids: one for each CPU or thread that it was opened for.
    pub ids: Vec<u64>,
    /// What `perf` calls it, if the file says.
    pub name: Option<String>,
}

/// The events, found by their ids.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) all: Vec<FileEvent>,
    by_id: HashMap<u64, usize>,
}

impl Events {
    pub(super) fn add(&mut self, attr: Attr, ids: Vec<u64>, order: ByteOrder) {
        let index = self.all.len();
        // As in perf, what an id was first said to be is what it stays.
        for id in &ids {
            self.by_id.entry(*id).or_insert(index);
        }
        let config = ParseConfig::from(&attr, order);
        self.all.push(FileEvent { attr, config, ids, name: None });
    }

    /// Which event a record is from. All events of a recording have the id at the same place, or there is only one.
    /// What `perf` itself wrote in the name of the kernel has no id; it is laid out as for the first event. As in perf, a sample of an
    /// id that no event has is of none.
    pub(super) fn of(&self, raw: &RawRecord<'_>) -> Option<usize> {
        if !raw.kind.is_of_kernel() || self.all.is_empty() {
            return None;
        }
        if self.all.len() == 1 {
            return Some(0);
        }
        match self.id_of(raw) {
            Some(id) if raw.kind == RecordKind::SAMPLE => self.by_id.get(&id).copied(),
            Some(id) => Some(self.by_id.get(&id).copied().unwrap_or(0)),
            None => Some(0),
        }
    }

    /// Whether `perf` itself wrote a record in the name of the kernel.
    pub(super) fn is_of_perf(&self, raw: &RawRecord<'_>) -> bool {
        self.all.len() > 1 && self.id_of(raw).is_none()
    }

    fn id_of(&self, raw: &RawRecord<'_>) -> Option<u64> {
        self.all.first()?.config.event_id(raw).filter(|&id| id != 0)
    }

    /// An entry of a file's list of events: a `perf_event_attr`, and where the event's ids are.
    pub(super) fn entry(bytes: &[u8], order: ByteOrder) -> Result<(Attr, Section), AttrError> {
        let own = bytes.len().saturating_sub(Section::SIZE as usize);
        let cut_off = AttrError::CutOff { size: Attr::FIRST_SIZE as u32, len: own };
        let (attr, ids) = bytes.split_at_checked(own).ok_or(cut_off)?;
        let ids = Section::read(&mut Fields::new(Bytes::from(ids), order)).ok_or(cut_off)?;
        Ok((Attr::parse(attr, order)?, ids))
    }

    /// Takes in which events are of one group, as far as it decides how their records are laid out.
    pub(super) fn set_groups(&mut self, groups: &[GroupDescription]) {
        branch_counters::group(&mut self.all, groups);
    }

    /// Gives names to events, by their ids or else by their places.
    pub(super) fn set_name(&mut self, place: usize, ids: &[u64], name: &str) {
        let index = ids.iter().find_map(|id| self.by_id.get(id)).copied().unwrap_or(place);
        if let Some(event) = self.all.get_mut(index) {
            event.name = Some(name.to_owned());
        }
    }
}
