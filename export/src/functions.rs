//! The distinct functions that a machine's frames are in, by name and module: several at a frame where some were inlined.

use collector_common::record::{Frame, FrameId, ModuleId};
use rustc_hash::FxHashMap;

use crate::format::Profile;
use crate::symbolize::NameId;

/// Functions, and which of them each frame is in.
#[derive(Debug)]
pub(crate) struct Functions {
    list: Vec<(NameId, ModuleId)>,
    /// By frame: the end of its functions in `of_frames`.
    ends: Vec<usize>,
    /// Positions in `list`, innermost first.
    of_frames: Vec<u32>,
}

impl Functions {
    /// Those of the frames that count.
    pub(crate) fn of(profile: Profile<'_>, counts: impl Fn(&Frame) -> bool) -> Self {
        let mut this = Self { list: Vec::new(), ends: Vec::new(), of_frames: Vec::new() };
        let mut index: FxHashMap<(NameId, ModuleId), u32> = FxHashMap::default();
        for (id, frame) in (0..).zip(profile.machine.frames().iter()) {
            let counts = counts(frame);
            for function in profile.symbols.functions(FrameId(id)).filter(|_| counts) {
                let function = (function.name, frame.module);
                this.of_frames.push(*index.entry(function).or_insert_with(|| {
                    this.list.push(function);
                    this.list.len() as u32 - 1
                }));
            }
            this.ends.push(this.of_frames.len());
        }
        this
    }

    /// All functions.
    pub(crate) fn list(&self) -> &[(NameId, ModuleId)] {
        &self.list
    }

    /// Positions in the list of a frame's functions, innermost first.
    pub(crate) fn of_frame(&self, frame: FrameId) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let frame = frame.0 as usize;
        let start =
            frame.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        let end = self.ends.get(frame).copied().unwrap_or_default();
        self.of_frames.get(start..end).unwrap_or_default().iter().copied()
    }

    /// The name of a function and the path of its module.
    pub(crate) fn named<'a>(&self, profile: Profile<'a>, function: u32) -> (&'a str, &'a str) {
        let Some(&(name, module)) = self.list.get(function as usize) else { return Default::default() };
        let path = profile.machine.string(profile.machine.module(module).path);
        (profile.symbols.function(name), path)
    }
}
