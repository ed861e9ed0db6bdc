//! The table of a PE image: the same rows and rules as of an ELF file, compiled at once. An epilogue is told by its
//! instructions, so compiling later would mean to keep the code until then, which is far more than its rows.

use std::sync::RwLock;

use object::ReadRef;

use super::compile::Scratch;
use super::index::{FdeIndex, IndexEntry};
use super::rows::RowStore;
use super::rules::RuleStore;
use super::sections::FrameSections;
use super::unwind_table::{Compiled, UnwindTable, add_row, next_id};
use crate::TableError;
use crate::pe::{Image, PeMachine};

/// What expressions would be read from: a PE image has none.
const NO_EXPRESSIONS: &[u8] = &[];

#[expect(private_bounds, reason = "what makes an architecture is this crate's own matter")]
impl<A: PeMachine> UnwindTable<A> {
    /// The table of a PE32+ file of the architecture: a Windows program, library or driver as it lies on disk.
    ///
    /// Reads `.pdata`, the unwind information it names, and the code of functions whose epilogues are told by their
    /// instructions; nothing of `data` is kept. All functions are compiled here, in time linear to the size of the text.
    ///
    /// An address as linked is the image's preferred base (`ImageBase`) plus an RVA, so [`crate::Mapping::bias`] is where the
    /// image was loaded minus where it preferred to be. Code without an entry in `.pdata` is a leaf function's, by the
    /// definition in Microsoft's "x64 exception handling" and "ARM64 exception handling": it changes neither the stack
    /// pointer nor what it must keep.
    pub fn from_pe<'d, R: ReadRef<'d>>(data: R) -> Result<Self, TableError> {
        let image = Image::read(data, A::PE_MACHINE)?;
        Self::of_image(&image, image.base)
    }

    /// The same table for a caller that knows where images are loaded, and not where they preferred to be: an address as linked
    /// is an RVA, so [`crate::Mapping::bias`] is the address of the image's first byte.
    pub fn from_pe_by_rva<'d, R: ReadRef<'d>>(data: R) -> Result<Self, TableError> {
        Self::of_image(&Image::read(data, A::PE_MACHINE)?, 0)
    }

    fn of_image(image: &Image<'_>, base: u64) -> Result<Self, TableError> {
        let mut rules = RuleStore::new();
        let (row, traits) = A::at_entry();
        let leaf = rules.intern(&row, traits, NO_EXPRESSIONS);
        let (mut entries, mut functions, mut all_rows) = (Vec::new(), Vec::new(), Vec::new());
        let mut rows = Vec::new();
        A::compile(image, |function| {
            rows.clear();
            for (offset, row, traits) in function.rows {
                add_row(&mut rows, *offset, rules.intern(row, *traits, NO_EXPRESSIONS));
            }
            let first = all_rows.len();
            all_rows.extend_from_slice(&rows);
            entries
                .push(IndexEntry { start: function.start - image.text.start, fde: functions.len() as u32 });
            functions.push((function.size, first..all_rows.len()));
        });
        let (index, order) = FdeIndex::new(entries);
        let mut store = RowStore::new(order.clone());
        for (position, &function) in order.iter().enumerate() {
            if let Some((size, range)) = functions.get(function as usize) {
                store.insert(position, *size, all_rows.get(range.clone()).unwrap_or_default());
            }
        }
        store.shrink();
        Ok(UnwindTable {
            id: next_id()?,
            text_start: base.wrapping_add(image.text.start.into()),
            text_size: image.text.end - image.text.start,
            entry: 0,
            frame: FrameSections::default(),
            index,
            compiled: RwLock::new(Compiled::new(rules, store, Scratch::new(NO_EXPRESSIONS.len()))),
            leaf: Some(leaf),
            unread: None,
        })
    }
}
