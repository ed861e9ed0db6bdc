//! The functions of an image by number, and the rows of each when it is asked for.

use std::fmt::Debug;
use std::ops::Range;

use super::{Image, PeMachine, PlacedRow};
use crate::{Architecture, UnreadSection};

/// An entry of the exception directory.
pub(crate) trait Entry: Copy + Debug + Send + Sync {
    /// In bytes.
    const SIZE: usize;

    fn parse(bytes: &[u8]) -> Option<Self>;

    /// The RVA of its first byte of code.
    fn begin(self) -> u32;

    /// Whether it is of code in `text`.
    fn is_in(self, text: &Range<u32>) -> bool;
}

/// The entries of an image that lie in its text, sorted, no two with the same beginning.
#[derive(Debug)]
pub(crate) struct Functions<E> {
    entries: Box<[E]>,
}

impl<E: Entry> Functions<E> {
    pub(crate) fn list(image: &Image) -> Result<Self, UnreadSection> {
        let mut entries: Vec<E> = Vec::new();
        image.entries(E::SIZE, |bytes| {
            entries.extend(E::parse(bytes).filter(|entry| entry.is_in(&image.text)));
        })?;
        entries.sort_by_key(|entry| entry.begin());
        entries.dedup_by_key(|entry| entry.begin());
        Ok(Functions { entries: entries.into() })
    }

    pub(crate) fn all(&self) -> &[E] {
        &self.entries
    }

    pub(crate) fn get(&self, number: usize) -> Option<E> {
        self.entries.get(number).copied()
    }

    /// The last one that begins at or before an RVA.
    pub(crate) fn last_before(&self, rva: u32) -> Option<E> {
        let behind = self.entries.partition_point(|entry| entry.begin() <= rva);
        self.get(behind.checked_sub(1)?)
    }
}

/// What a table compiles a function with that is not compiled yet.
pub(crate) trait Compile<A: Architecture>: Debug + Send + Sync {
    /// Gives the rows of a function in ascending order, and returns its size in bytes.
    fn compile(&self, number: usize, rows: &mut Vec<PlacedRow<A>>) -> u32;

    fn bytes_held(&self) -> usize;
}

/// An image of which functions are compiled one by one.
#[derive(Debug)]
pub(crate) struct ImageFunctions<A: PeMachine> {
    pub(crate) image: Image,
    pub(crate) functions: Functions<A::Entry>,
}

impl<A: PeMachine> Compile<A> for ImageFunctions<A> {
    fn compile(&self, number: usize, rows: &mut Vec<PlacedRow<A>>) -> u32 {
        A::compile(&self.image, &self.functions, number, rows)
    }

    fn bytes_held(&self) -> usize {
        size_of_val(self.functions.all())
    }
}
