//! Stacks, names and attributes in, their numbers out, and what has to be told with the next packet of the sequence: each thing once.
//!
//! What a sequence told already is a number for each distinct thing, whatever the number of samples.

use std::mem;

use collector_common::intern::{StackId, StringId};
use collector_common::record::{AttributeListId, AttributeValue};

use super::frames::{Frames, name_iid};
use super::proto::{Callstack, DebugAnnotation, Frame, InternedData, InternedName, InternedString};
use crate::symbolize::NameId;
use crate::table::KeySet;

/// What a sequence told, and what it has to tell.
#[derive(Debug, Default)]
pub(super) struct Interned {
    told: Told,
    data: InternedData,
}

/// Numbers by what they are of.
#[derive(Debug, Default)]
struct Told {
    stacks: KeySet<u64>,
    frames: KeySet<u64>,
    functions: KeySet<u64>,
    sources: KeySet<u64>,
    mappings: KeySet<u64>,
    event_names: KeySet<u64>,
    annotation_names: KeySet<u64>,
    annotation_values: KeySet<u64>,
}

impl Interned {
    /// What goes with the next packet.
    pub(super) fn take(&mut self) -> InternedData {
        mem::take(&mut self.data)
    }

    /// The number of a stack; 0 for one without frames, which a trace can't have.
    pub(super) fn stack(&mut self, frames: &Frames<'_>, stack: StackId) -> u64 {
        if stack == StackId::EMPTY {
            return 0;
        }
        let iid = u64::from(stack.0) + 1;
        if self.told.stacks.insert(iid) {
            let mut frame_ids = Vec::new();
            for &frame in frames.profile.machine.stacks().get(stack).iter().rev() {
                for frame in frames.get(frame) {
                    frame_ids.push(frame.iid);
                    self.frame(frames, frame);
                }
            }
            self.data.callstacks.push(Callstack { iid, frame_ids });
        }
        iid
    }

    fn frame(&mut self, frames: &Frames<'_>, frame: &Frame) {
        if !self.told.frames.insert(frame.iid) {
            return;
        }
        let symbols = frames.profile.symbols;
        let name_of = |iid: u64| symbols.function(NameId(StringId(iid as u32 - 1))).as_bytes().to_vec();
        let [function, source] = [frame.function_name_id, frame.source_path_iid];
        debug_assert_eq!(name_iid(NameId(StringId(function as u32 - 1))), function);
        if self.told.functions.insert(function) {
            self.data.function_names.push(InternedString { iid: function, str: name_of(function) });
        }
        if source != 0 && self.told.sources.insert(source) {
            self.data.source_paths.push(InternedString { iid: source, str: name_of(source) });
        }
        if self.told.mappings.insert(frame.mapping_id) {
            self.mapping(frames, frame.mapping_id);
        }
        self.data.frames.push(*frame);
    }

    /// Each mapping has a path and a build id of its own: there are few.
    fn mapping(&mut self, frames: &Frames<'_>, iid: u64) {
        let (mut mapping, module) = frames.mapping(iid);
        let module = frames.profile.machine.module(module);
        let path = frames.path(module).as_bytes().to_vec();
        self.data.mapping_paths.push(InternedString { iid, str: path });
        mapping.path_string_ids.push(iid);
        if let Some(build_id) = module.build_id {
            self.data.build_ids.push(InternedString { iid, str: build_id.as_bytes().to_vec() });
            mapping.build_id = iid;
        }
        self.data.mappings.push(mapping);
    }

    /// The number of what events are called.
    pub(super) fn event_name(&mut self, frames: &Frames<'_>, name: StringId) -> u64 {
        let iid = u64::from(name.0) + 1;
        if self.told.event_names.insert(iid) {
            let name = frames.profile.machine.string(name).to_owned();
            self.data.event_names.push(InternedName { iid, name });
        }
        iid
    }

    /// A list of attributes.
    pub(super) fn attributes(&mut self, frames: &Frames<'_>, list: AttributeListId) -> Vec<DebugAnnotation> {
        let list = frames.profile.machine.attributes().get(list);
        list.iter().map(|&(name, value)| self.attribute(frames, name, value)).collect()
    }

    fn attribute(&mut self, frames: &Frames<'_>, name: StringId, value: AttributeValue) -> DebugAnnotation {
        let machine = frames.profile.machine;
        let name_iid = u64::from(name.0) + 1;
        if self.told.annotation_names.insert(name_iid) {
            let name = machine.string(name).to_owned();
            self.data.debug_annotation_names.push(InternedName { iid: name_iid, name });
        }
        let text = match value {
            AttributeValue::Label(text) => text,
            AttributeValue::Number(number) => {
                return DebugAnnotation { name_iid, int_value: Some(number), ..DebugAnnotation::default() };
            }
        };
        let iid = u64::from(text.0) + 1;
        if self.told.annotation_values.insert(iid) {
            let str = machine.string(text).as_bytes().to_vec();
            self.data.debug_annotation_string_values.push(InternedString { iid, str });
        }
        DebugAnnotation { name_iid, string_value_iid: Some(iid), ..DebugAnnotation::default() }
    }
}
