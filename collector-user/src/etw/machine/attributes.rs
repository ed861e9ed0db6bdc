//! Attributes that have numbers in place of what is known at the end alone in, what these stand for out: paths of files, places of system
//! calls, names of threads.

use std::collections::HashMap;

use collector_common::ids::{Nanos, Tid};
use collector_common::intern::StringId;
use collector_common::record::{AttributeListId, AttributeValue, ExportMachine};

use super::{Build, World};
use crate::etw::files::FileUse;
use crate::etw::measured;

/// As much of an image's name as stands before the place of each system call.
const LONGEST_IMAGE: usize = 64;

/// What lists became.
#[derive(Default)]
pub(super) struct Attributes {
    /// By what the waker is called, of those that have one.
    known: HashMap<(AttributeListId, Option<StringId>), AttributeListId>,
    wakers: HashMap<AttributeListId, Option<Tid>>,
    /// Paths of files, which may be long and of many lists.
    paths: HashMap<u32, Option<StringId>>,
}

impl World {
    /// Attributes of what was at a time, without those of files and threads of which nothing was told.
    pub(super) fn attributes(
        &mut self,
        all: &mut Build,
        list: AttributeListId,
        at: Nanos,
    ) -> AttributeListId {
        if list == AttributeListId::NONE {
            return list;
        }
        let waker = self.said.wakers.entry(list).or_insert_with(|| waker(&all.machine, list));
        let waker = waker.and_then(|tid| self.called_then(all, tid, at));
        if let Some(known) = self.said.known.get(&(list, waker)) {
            return *known;
        }
        let mut said = all.machine.attributes().get(list).to_vec();
        said.retain_mut(|(key, value)| {
            let AttributeValue::Number(number) = *value else { return true };
            let text = match all.machine.string(*key) {
                measured::PATH => {
                    let Build { machine, files, paths, .. } = &mut *all;
                    let mut path_of = |id| {
                        let path = files.path(FileUse(id)).map(|path| paths.to_dos(path));
                        path.map(|path| machine.intern_string(&path))
                    };
                    let id = u32::try_from(number).ok();
                    id.and_then(|id| *self.said.paths.entry(id).or_insert_with(|| path_of(id)))
                }
                measured::CALL => {
                    let call = self.called_at(all, number.cast_unsigned());
                    Some(all.machine.intern_string(&call))
                }
                measured::WAKER => waker,
                _ => return true,
            };
            text.map(|text| *value = text.into()).is_some()
        });
        let known = all.machine.attributes_mut().intern(&said);
        self.said.known.insert((list, waker), known);
        known
    }

    /// What a thread is called at a time, by itself or as its process; none where nothing was told of it.
    fn called_then(&mut self, all: &mut Build, tid: Tid, at: Nanos) -> Option<StringId> {
        let Build { machine, threads, .. } = all;
        let life = threads.at(tid, at)?;
        if !life.name.is_empty() {
            return Some(machine.intern_string(life.name));
        }
        let process = self.processes.at(machine, life.pid, at).process;
        Some(machine.process(process).name)
    }

    /// What is at an address of the kernel, as `ntoskrnl.exe+0x1230`; the address itself where no image is there.
    fn called_at(&self, all: &Build, address: u64) -> String {
        let image = self.places.at(None, address).image.and_then(|image| self.images.get(image as usize));
        let Some((module, base, _)) = image else { return format!("{address:#x}") };
        let path = all.machine.string(all.machine.module(*module).path);
        let name = path.rsplit(['\\', '/']).next().unwrap_or(path);
        let name = &name[..name.floor_char_boundary(LONGEST_IMAGE)];
        format!("{name}+{:#x}", address.wrapping_sub(*base))
    }
}

/// The thread that a list names as a waker by its number.
fn waker(machine: &ExportMachine, list: AttributeListId) -> Option<Tid> {
    machine.attributes().get(list).iter().find_map(|(key, value)| match value {
        AttributeValue::Number(tid) if machine.string(*key) == measured::WAKER => {
            u32::try_from(*tid).ok().map(Tid)
        }
        _ => None,
    })
}
