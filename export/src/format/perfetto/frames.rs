//! Frames of a recording in, frames of a trace out: the function that was called, and one more at the same address for each that was
//! inlined there.
//!
//! Their numbers are the same in every sequence, so that a sequence only has to know which of them it told. Addresses are as linked,
//! which is what `rel_pc` is in an ELF file and what symbols can be looked up by again; so are those of mappings, of which there is
//! one for all processes (`super::super::mappings` tells why).

use collector_common::record::{ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId, ModuleKind};

use super::proto::{self, Mapping, frame_kind};
use crate::format::Profile;
use crate::format::mappings::{Mappings, Place};
use crate::lists::Lists;
use crate::symbolize::NameId;

/// Numbers from here on are those of memory that was never seen to be mapped: trace processors up to 2025 refuse a stack with a
/// frame that is in no mapping.
const UNMAPPED: u64 = 1 << 32;

/// The frames of a recording.
pub(super) struct Frames<'a> {
    pub(super) profile: Profile<'a>,
    mappings: Mappings,
    /// By frame, the outermost function first.
    lists: Lists<proto::Frame>,
}

impl<'a> Frames<'a> {
    pub(super) fn of(profile: Profile<'a>) -> Self {
        let Profile { machine, symbols } = profile;
        let mut mappings = Mappings::of(machine);
        let mut lists = Lists::default();
        let mut iid = 0;
        for (frame, id) in machine.frames().iter().zip((0..).map(FrameId)) {
            let address = frame.has_address().then_some(frame.lookup_address().0);
            let mapping_id = match mappings.id(machine, frame) {
                0 => UNMAPPED + u64::from(frame.module.0),
                id => id,
            };
            let kind = kind(machine, frame);
            lists.push(symbols.functions(id).rev().map(|function| {
                iid += 1;
                let has_file = !symbols.function(function.file).is_empty();
                proto::Frame {
                    iid,
                    function_name_id: name_iid(function.name),
                    mapping_id,
                    rel_pc: address,
                    source_path_iid: if has_file { name_iid(function.file) } else { 0 },
                    line_number: function.line,
                    kind,
                }
            }));
        }
        Self { profile, mappings, lists }
    }

    /// What stands for a frame, the outermost function first.
    pub(super) fn get(&self, frame: FrameId) -> &[proto::Frame] {
        self.lists.get(frame.0 as usize)
    }

    /// The mapping of a number, and its module.
    pub(super) fn mapping(&self, iid: u64) -> (Mapping, ModuleId) {
        let place = match iid.checked_sub(UNMAPPED) {
            Some(module) => Place { module: ModuleId(module as u32), start: 0, limit: 0, offset: 0 },
            None => self.mappings.used()[iid as usize - 1],
        };
        let mapping = Mapping {
            iid,
            build_id: 0,
            start: place.start,
            end: place.limit,
            // As `profile_common.proto` has it: where a segment is linked for, less where it is in the file.
            load_bias: match self.profile.machine.module(place.module).kind {
                ModuleKind::File | ModuleKind::Vdso => place.start.wrapping_sub(place.offset),
                _ => 0,
            },
            path_string_ids: Vec::new(),
            exact_offset: place.offset,
        };
        (mapping, place.module)
    }

    /// What a module is called.
    pub(super) fn path(&self, module: &Module) -> &'a str {
        match module.kind {
            // What Perfetto's own profiler calls it (`src/profiling/perf/unwinding.cc`).
            ModuleKind::Kernel => "kernel",
            _ => self.profile.machine.string(module.path),
        }
    }
}

/// The number of a string of the symbols.
pub(super) fn name_iid(name: NameId) -> u64 {
    u64::from(name.0.0) + 1
}

fn kind(machine: &ExportMachine, frame: &Frame) -> i32 {
    match machine.module(frame.module).kind {
        _ if frame.flags.has(FrameFlags::CUT) => frame_kind::UNKNOWN,
        _ if frame.is_kernel() => frame_kind::KERNEL,
        ModuleKind::Anonymous(_) => frame_kind::JIT,
        ModuleKind::Unmapped(_) => frame_kind::UNKNOWN,
        _ => frame_kind::NATIVE,
    }
}
