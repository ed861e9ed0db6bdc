//! Lines and source files of a thread's frames, which the crate has no place for: noted as its frames are made, and put into its JSON
//! ([`parts`](super::parts)).
//!
//! The crate numbers the frames of a thread as they come. A path has to be among the thread's strings, so that there is a frame for it,
//! which is on no stack: its function's name is the path.

use std::collections::BTreeMap;
use std::num::NonZero;

use fxprof_processed_profile::{FrameHandle, FrameInfo};

use super::frames::Told;
use crate::symbolize::NameId;
use crate::table::Table;

/// What is noted of a frame.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    line: Option<NonZero<u32>>,
    file: Source,
    /// The frame whose function it is of, if not of its own.
    named: Option<usize>,
}

/// The file of a frame, or of all frames of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Source {
    #[default]
    Untold,
    One(NameId),
    /// There are several, or some frames have none.
    NotOne,
}

impl Source {
    /// A function of a library has its file wherever that is told. Others are of all code that has functions of this name, so that a frame
    /// without a file may be of something else than those with one.
    fn of(told: &Told) -> Self {
        match &told.file {
            Some((file, _)) => Self::One(*file),
            None if told.is_in_library() => Self::Untold,
            None => Self::NotOne,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Untold, known) | (known, Self::Untold) => known,
            (Self::One(known), Self::One(file)) if known == file => self,
            _ => Self::NotOne,
        }
    }
}

/// Those of a thread.
#[derive(Debug, Default)]
pub(super) struct Lines {
    rows: Vec<Row>,
    numbers: Table<FrameHandle, usize>,
    /// Paths, and the numbers of what stands for them.
    files: BTreeMap<NameId, (FrameInfo, usize)>,
}

impl Lines {
    /// The number of a frame, which is the next one where it was not met before.
    fn number(&mut self, frame: FrameHandle) -> usize {
        let next = self.rows.len();
        let number = *self.numbers.entry(frame).or_insert(next);
        if number == next {
            self.rows.push(Row::default());
        }
        number
    }

    /// Takes a frame that is on a stack, with the one whose function it is of.
    pub(super) fn add(&mut self, frame: FrameHandle, named: Option<FrameHandle>, told: &Told) {
        let named = named.map(|named| self.number(named));
        let number = self.number(frame);
        if let Some((file, info)) = &told.file {
            self.files.entry(*file).or_insert_with(|| (info.clone(), usize::MAX));
        }
        let row = &mut self.rows[number];
        row.line = told.line.or(row.line);
        row.file = row.file.and(Source::of(told));
        row.named = named;
    }

    /// Adds frames for paths, when all others are there.
    pub(super) fn add_files(&mut self, mut frame: impl FnMut(FrameInfo) -> FrameHandle) {
        let mut files = std::mem::take(&mut self.files);
        for (info, number) in files.values_mut() {
            *number = self.number(frame(info.clone()));
        }
        self.files = files;
    }

    /// Whether there is nothing to tell.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.rows.iter().all(|row| row.line.is_none() && row.named.is_none())
    }

    /// The line of a frame.
    pub(super) fn line(&self, frame: usize) -> Option<u32> {
        self.rows.get(frame)?.line.map(NonZero::get)
    }

    /// The frame whose function a frame is of.
    pub(super) fn named(&self, frame: usize) -> Option<usize> {
        self.rows.get(frame)?.named
    }

    /// By function, the frame that is called after its file, of frames' functions as they are written. Of functions of one name in several
    /// files none is told.
    pub(super) fn files(&self, functions: &[u32]) -> Table<u32, usize> {
        let mut files: Table<u32, Source> = Table::default();
        for (row, function) in self.rows.iter().zip(functions) {
            let known = files.entry(*function).or_default();
            *known = known.and(row.file);
        }
        let number = |file| match file {
            Source::One(file) => self.files.get(&file).map(|(_, number)| *number),
            Source::Untold | Source::NotOne => None,
        };
        files.into_iter().filter_map(|(function, file)| Some((function, number(file)?))).collect()
    }
}
