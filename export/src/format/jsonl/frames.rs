//! Stacks as lists of names, innermost first. What each frame adds is made once.

use collector_common::record::FrameId;

use super::text::string;
use crate::format::Profile;

/// By frame: the names of its functions as elements of a list.
pub(super) struct Frames(Vec<Box<str>>);

impl Frames {
    pub(super) fn of(profile: Profile<'_>) -> Self {
        let frames = profile.machine.frames().iter().zip(0..);
        Self(frames.map(|(frame, id)| elements(profile, FrameId(id), frame.is_kernel())).collect())
    }

    /// Adds a stack as a list.
    pub(super) fn list(&self, out: &mut String, stack: &[FrameId]) {
        out.push('[');
        let frames = stack.iter().filter_map(|frame| self.0.get(frame.0 as usize));
        for (elements, at) in frames.filter(|elements| !elements.is_empty()).zip(0..) {
            if at > 0 {
                out.push(',');
            }
            out.push_str(elements);
        }
        out.push(']');
    }
}

fn elements(profile: Profile<'_>, frame: FrameId, is_kernel: bool) -> Box<str> {
    let mut out = String::new();
    for function in profile.symbols.functions(frame) {
        let mark = match (function.is_inlined, is_kernel) {
            (true, _) => "_[i]",
            (false, true) => "_[k]",
            (false, false) => "",
        };
        if !out.is_empty() {
            out.push(',');
        }
        string(&mut out, &format!("{}{mark}", profile.symbols.function(function.name)));
    }
    out.into()
}
