//! The table of a PE image: the same rows and rules as of an ELF file. Nothing of the code is kept, by which epilogues are told: a
//! function's is read when it is compiled.

use std::sync::RwLock;

use super::compile::Scratch;
use super::index::{FdeIndex, IndexEntry};
use super::rows::RowStore;
use super::rules::RuleStore;
use super::sections::FrameSections;
use super::unwind_table::{Compiled, UnwindTable, next_id};
use crate::TableError;
use crate::pe::{Entry as _, Functions, Image, ImageBytes, ImageFunctions, PeMachine};

/// What expressions would be read from: a PE image has none.
const NO_EXPRESSIONS: &[u8] = &[];

#[expect(private_bounds, reason = "what makes an architecture is this crate's own matter")]
impl<A: PeMachine> UnwindTable<A> {
    /// The table of a PE32+ file of the architecture: a Windows program, library or driver as it lies on disk.
    ///
    /// Reads headers and `.pdata`, in time linear to the number of functions, and keeps the latter and `image`. A function's unwind
    /// information is read when the function is first asked for, and its code where its epilogues are told by their instructions.
    /// Where `image` fails by then (a file that was cut), or has fewer bytes than it says, it is compiled without: a function whose
    /// code is missing has no epilogues, one without unwind information has no rules. [`TableError::Unread`] where not all of `.pdata` is
    /// there: functions that are not listed would count as leaves. [`Self::compile_all`] reads all, and then
    /// drops `image`.
    ///
    /// An address as linked is the image's preferred base (`ImageBase`) plus an RVA, so [`crate::Mapping::bias`] is where the
    /// image was loaded minus where it preferred to be. Code without an entry in `.pdata` is a leaf function's, by the
    /// definition in Microsoft's "x64 exception handling" and "ARM64 exception handling": it changes neither the stack
    /// pointer nor what it must keep.
    pub fn from_pe(image: impl ImageBytes) -> Result<Self, TableError> {
        let image = Image::read(Box::new(image), A::PE_MACHINE)?;
        let base = image.base;
        Self::of_image(image, base)
    }

    /// The same table for a caller that knows where images are loaded, and not where they preferred to be: an address as linked
    /// is an RVA, so [`crate::Mapping::bias`] is the address of the image's first byte.
    pub fn from_pe_by_rva(image: impl ImageBytes) -> Result<Self, TableError> {
        Self::of_image(Image::read(Box::new(image), A::PE_MACHINE)?, 0)
    }

    fn of_image(image: Image, base: u64) -> Result<Self, TableError> {
        let mut rules = RuleStore::new();
        let (row, traits) = A::at_entry();
        let leaf = rules.intern(&row, traits, NO_EXPRESSIONS);
        let text = image.text.clone();
        let functions = Functions::<A::Entry>::list(&image)?;
        // They are sorted, so the index has them in the same order.
        let entry = |(number, function): (usize, &A::Entry)| IndexEntry {
            start: function.begin() - text.start,
            fde: number as u32,
        };
        let (index, numbers) = FdeIndex::new(functions.all().iter().enumerate().map(entry).collect());
        let scratch = Scratch::new(NO_EXPRESSIONS.len());
        let compiled = Compiled::new(rules, RowStore::new(numbers), scratch)
            .with_image(Box::new(ImageFunctions { image, functions }));
        Ok(UnwindTable {
            id: next_id()?,
            text_start: base.wrapping_add(text.start.into()),
            text_size: text.end - text.start,
            entry: 0,
            frame: FrameSections::default(),
            index,
            compiled: RwLock::new(compiled),
            leaf: Some(leaf),
            unread: None,
        })
    }
}
