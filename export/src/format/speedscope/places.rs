//! Functions in, where each of them is in its source out: the file of its first frame that has one, and the first line there that a frame
//! is at. A frame of speedscope has one place, and a function that is a frame for each of its lines would not be added up.

use std::num::NonZeroU32;

use collector_common::record::FrameId;

use crate::format::Profile;
use crate::functions::Functions;
use crate::symbolize::NameId;

/// Where a function is: an empty name of a file, and no numbers, where that is not known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SourcePlace {
    pub(super) file: NameId,
    /// The least line, and of its columns the least.
    line: Option<(NonZeroU32, u32)>,
}

impl SourcePlace {
    pub(super) fn line(self) -> Option<u32> {
        self.line.map(|(line, _)| line.get())
    }

    pub(super) fn column(self) -> Option<u32> {
        self.line.map(|(_, column)| column).filter(|column| *column > 0)
    }
}

/// By function.
pub(super) fn places(profile: Profile<'_>, functions: &Functions) -> Vec<SourcePlace> {
    let Profile { machine, symbols } = profile;
    let mut places = vec![SourcePlace::default(); functions.list().len()];
    for frame in (0..).take(machine.frames().len()).map(FrameId) {
        for (function, at) in functions.of_frame(frame).zip(symbols.functions(frame)) {
            let Some(place) = places.get_mut(function as usize) else { continue };
            if place.file == NameId::default() {
                place.file = at.file;
            }
            let line = NonZeroU32::new(at.line).map(|line| (line, at.column));
            if let Some(line) = line.filter(|_| at.file == place.file) {
                place.line = Some(place.line.map_or(line, |known| known.min(line)));
            }
        }
    }
    places
}
