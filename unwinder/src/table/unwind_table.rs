//! One file's unwind rules: made once, shared by all processes and threads, compiled by function when asked for often enough.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use object::ReadRef;

use super::code_sections::UnwindSections;
use super::compile::{self, Scratch};
use super::index::FdeIndex;
use super::rows::{Found, RowStart, RowStore};
use super::rules::{RuleId, RuleStore, RuleView, Traits};
use super::sections::{self, FrameSections, Parts};
use super::{functions, object_file, row::Row};
use crate::cache::CacheKey;
use crate::pe::Compile;
use crate::rule::{Rule, RuleOf};
use crate::x86_64::X86_64;
use crate::{Architecture, TableError, UnreadSection};

/// Overlapping FDEs (an empty one, one inside of another) that are tried for an address.
const MAX_CANDIDATES: usize = 4;

/// The unwind rules of one ELF or PE file.
///
/// `Send + Sync`; put it in an `Arc`. A function's rules are compiled when it is asked for them again and again; until then
/// they are computed one by one.
#[derive(Debug)]
pub struct UnwindTable<A: Architecture = X86_64> {
    pub(super) id: u32,
    pub(super) text_start: u64,
    pub(super) text_size: u32,
    pub(super) entry: u64,
    pub(super) frame: FrameSections,
    pub(super) index: FdeIndex,
    pub(super) compiled: RwLock<Compiled<A>>,
    /// The rule of code that no function covers; ELF files have none.
    pub(super) leaf: Option<RuleId>,
    pub(super) unread: Option<UnreadSection>,
}

#[derive(Debug)]
pub(super) struct Compiled<A: Architecture> {
    rules: RuleStore<A>,
    rows: RowStore,
    scratch: Scratch<A>,
    /// The rows of the function that is being compiled.
    pending: Vec<RowStart<u32>>,
    /// What functions of a PE image are compiled from, while there are such.
    image: Option<Box<dyn Compile<A>>>,
}

enum Lookup<A: Architecture> {
    Known(Option<(RuleId, RuleOf<A>)>),
    NotCompiled { fde: u32 },
}

/// What one row of a function tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Glance<R> {
    Rule(R),
    /// The function does not have the offset.
    Outside,
    /// The rule is one in full, which a table has to keep, or there is something wrong with the FDE.
    NotEnough,
}

impl<A: Architecture> Compiled<A> {
    pub(super) fn new(rules: RuleStore<A>, rows: RowStore, scratch: Scratch<A>) -> Self {
        Compiled { rules, rows, scratch, pending: Vec::with_capacity(64), image: None }
    }

    pub(super) fn with_image(self, image: Box<dyn Compile<A>>) -> Self {
        Compiled { image: Some(image), ..self }
    }

    fn find(&self, function: usize, offset: u32) -> Lookup<A> {
        match self.rows.find(function, offset) {
            Found::Rule(id) => Lookup::Known(Some((id, self.rules.quick(id)))),
            Found::Outside => Lookup::Known(None),
            Found::NotCompiled { fde } => Lookup::NotCompiled { fde },
        }
    }
}

/// What a table holds, in bytes and counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeReport {
    /// Bytes of the file's text: from the first executable byte to the last.
    pub text_bytes: usize,
    /// Bytes of the unwind section, kept for compilation and for expressions; of an image, what is kept of `.pdata`.
    pub section_bytes: usize,
    /// Bytes of the index from address to function.
    pub index_bytes: usize,
    /// Bytes of compiled rows and what leads to them.
    pub row_bytes: usize,
    /// Bytes of interned rules.
    pub rule_bytes: usize,
    /// Functions (FDEs) in the index.
    pub functions: usize,
    /// Functions compiled so far.
    pub functions_compiled: usize,
    /// Rows compiled so far.
    pub rows: usize,
    /// Distinct rules so far.
    pub rules: usize,
}

impl SizeReport {
    /// All bytes held.
    pub fn total_bytes(&self) -> usize {
        self.section_bytes + self.index_bytes + self.row_bytes + self.rule_bytes
    }

    /// Bytes of what is made of the sections, which are the file's own: index, rows, rules.
    pub fn table_bytes(&self) -> usize {
        self.index_bytes + self.row_bytes + self.rule_bytes
    }

    /// [`Self::table_bytes`] for each function (FDE); 0 where there is none.
    pub fn bytes_per_function(&self) -> f64 {
        ratio(self.table_bytes(), self.functions)
    }

    /// [`Self::table_bytes`] for each 1,000,000 bytes of text; 0 where there is none.
    pub fn bytes_per_text_megabyte(&self) -> f64 {
        ratio(self.table_bytes(), self.text_bytes) * 1e6
    }
}

fn ratio(bytes: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { bytes as f64 / of as f64 }
}

impl<A: Architecture> UnwindTable<A> {
    /// The table of an ELF file (or the vDSO's bytes): of the architecture, 64-bit and little-endian, any of
    /// executable, shared object, PIE, static.
    ///
    /// Copies out only the unwind sections; `data` is not kept. Uses `.eh_frame`, and `.debug_frame` (which may be
    /// compressed) for functions that `.eh_frame` does not have. Where neither describes more than a small part of the
    /// text, those of the file in `.gnu_debugdata` are taken, if there is one.
    pub fn from_elf<'d, R: ReadRef<'d>>(data: R) -> Result<Self, TableError> {
        Self::from_elf_with_debug(data, || None::<R>)
    }

    /// [`Self::from_elf`] of a file whose rules may be in a separate debug file: `.debug_frame`, or an `.eh_frame` that
    /// the file itself does not have.
    ///
    /// `debug` is asked for that file if most of the text has no rules without it. That it belongs to `data` is for the
    /// caller to know, by build id or by checksum; one that is no ELF file of the architecture counts as none.
    /// Addresses are those of `data`, which may have been prelinked since the debug file was made.
    pub fn from_elf_with_debug<'d, 'e, R, D>(
        data: R,
        debug: impl FnOnce() -> Option<D>,
    ) -> Result<Self, TableError>
    where
        R: ReadRef<'d>,
        D: ReadRef<'e>,
    {
        Self::new(sections::read::<A, R, D>(data, debug)?)
    }

    /// The table of a relocatable object (`ET_REL`), which code is loaded from without a link: by a JIT compiler, or by the
    /// kernel as a module. `.eh_frame` and `.debug_frame` are used.
    ///
    /// `place` gives the address where an executable section was loaded, by its number in the file and its name
    /// (names need not be unique), or `None` for one that was not; for a module of Linux these are in
    /// `/sys/module/NAME/sections`. The table's addresses are those. [`TableError::NotRelocatable`] for other files.
    ///
    /// Kernel modules as they are installed have no such section: those of Debian 12 for amd64 (Linux 6.1, 6.12) have ORC
    /// instead, which the kernel alone reads, those for arm64 (6.12) have frame pointers. The modules in Debian's `-dbg`
    /// packages have `.debug_frame`.
    pub fn from_object<'d, R: ReadRef<'d>>(
        data: R,
        place: impl FnMut(usize, &str) -> Option<u64>,
    ) -> Result<Self, TableError> {
        Self::new(object_file::read::<A, R>(data, place)?)
    }

    /// The table of code whose unwind sections the caller has: a JIT compiler's, as the record
    /// `JIT_CODE_UNWINDING_INFO` of a jitdump file holds them or as the process registered them.
    ///
    /// Copies out what it needs; `sections` is not kept. Uses all sections that are there, as [`Self::from_elf`] does.
    ///
    /// ```
    /// use unwinder::{Section, TableError, UnwindSections, UnwindTable};
    ///
    /// // In jitdump files of V8, .eh_frame_hdr comes last, and in memory .eh_frame follows the code, aligned.
    /// fn of_jitdump(code: u64, size: u64, unwinding: &[u8], hdr_size: usize) -> Result<UnwindTable, TableError> {
    ///     let (frame, hdr) = unwinding.split_at(unwinding.len() - hdr_size);
    ///     let eh_frame = Section { address: (code + size).next_multiple_of(8), bytes: frame };
    ///     let eh_frame_hdr = Section { address: eh_frame.address + frame.len() as u64, bytes: hdr };
    ///     UnwindTable::from_sections(&UnwindSections {
    ///         text: code..code + size,
    ///         eh_frame: Some(eh_frame),
    ///         eh_frame_hdr: Some(eh_frame_hdr),
    ///         debug_frame: None,
    ///     })
    /// }
    /// ```
    pub fn from_sections(sections: &UnwindSections<'_>) -> Result<Self, TableError> {
        Self::new(sections::copy(sections, None)?)
    }

    fn new(parts: Parts) -> Result<Self, TableError> {
        let (index, fdes) = FdeIndex::new(functions::list::<A>(&parts));
        let scratch = Scratch::new(parts.frame.bytes.len());
        Ok(UnwindTable {
            id: next_id()?,
            text_start: parts.text_start,
            text_size: parts.text_size,
            entry: parts.entry,
            frame: parts.frame,
            index,
            compiled: RwLock::new(Compiled::new(RuleStore::new(), RowStore::new(fdes), scratch)),
            leaf: None,
            unread: parts.unread,
        })
    }

    /// A section that the file has but that could not be read, the first if there are several: the table was made without it,
    /// and code that it alone has rules for is walked as code that has none.
    pub fn unread(&self) -> Option<&UnreadSection> {
        self.unread.as_ref()
    }

    /// What the table holds at present.
    pub fn size_report(&self) -> SizeReport {
        let compiled = self.read();
        SizeReport {
            text_bytes: self.text_size as usize,
            section_bytes: self.frame.bytes.len()
                + compiled.image.as_ref().map_or(0, |image| image.bytes_held()),
            index_bytes: self.index.bytes_held(),
            row_bytes: compiled.rows.bytes_held(),
            rule_bytes: compiled.rules.bytes_held(),
            functions: self.index.len(),
            functions_compiled: compiled.rows.functions(),
            rows: compiled.rows.rows(),
            rules: compiled.rules.len(),
        }
    }

    /// Compiles every function now, for callers that would rather wait once than at each first address. A PE image is not needed
    /// any longer then, and is dropped.
    pub fn compile_all(&self) {
        for function in 0..self.index.len() {
            self.in_function(function, 0);
        }
        let mut compiled = self.compiled.write().unwrap_or_else(PoisonError::into_inner);
        compiled.rows.shrink();
        compiled.image = None;
    }

    /// Whether an address as linked, for which there is no rule, is in the code that the kernel or the dynamic linker starts
    /// the file at. It is short: it hands the stack's start to the C library, which does not return. Where it has rules, what
    /// has none is behind it.
    pub(crate) fn is_entry(&self, svma: u64) -> bool {
        const ENTRY_SIZE: u64 = 64;
        self.entry != 0 && svma.wrapping_sub(self.entry) < ENTRY_SIZE && self.locate(self.entry).is_none()
    }

    /// The text's first address as linked, its size, and the cache's key for that first address.
    pub(crate) fn text(&self) -> (u64, u32, CacheKey) {
        (self.text_start, self.text_size, CacheKey::of_text(self.id, 0))
    }

    /// The quick rule at an address as linked.
    pub(crate) fn rule(&self, svma: u64) -> RuleOf<A> {
        let rule_in = |function, offset| self.rule_in(function, offset);
        self.found(svma, rule_in).or_else(|| self.leaf().map(|(_, quick)| quick)).unwrap_or(Rule::Missing)
    }

    /// The id of the rule at an address as linked, for [`Self::with_rule`].
    pub(crate) fn rule_id(&self, svma: u64) -> Option<RuleId> {
        self.locate(svma).map(|(id, _)| id)
    }

    /// How far an address as linked is into the function that has a rule for it.
    pub(crate) fn offset_in_function(&self, svma: u64) -> Option<u32> {
        self.found(svma, |function, offset| self.in_function(function, offset).map(|_| offset))
    }

    /// Hands the rule in full to `use_rule`; `None` for an id that is not one of this table's.
    pub(crate) fn with_rule<T>(&self, id: RuleId, use_rule: impl FnOnce(&RuleView<'_>) -> T) -> Option<T> {
        self.read().rules.view(id, &self.frame.bytes).map(|view| use_rule(&view))
    }

    fn read(&self) -> RwLockReadGuard<'_, Compiled<A>> {
        // The stores only grow, and a reader bounds-checks all that leads into them.
        self.compiled.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn locate(&self, svma: u64) -> Option<(RuleId, RuleOf<A>)> {
        let in_function = |function, offset| self.in_function(function, offset);
        self.found(svma, in_function).or_else(|| self.leaf())
    }

    fn leaf(&self) -> Option<(RuleId, RuleOf<A>)> {
        self.leaf.map(|id| (id, self.read().rules.quick(id)))
    }

    /// What `look` finds in a function that starts at or before an address as linked, and the offset of the address in it.
    fn found<T>(&self, svma: u64, look: impl Fn(usize, u32) -> Option<T>) -> Option<T> {
        let relative = u32::try_from(svma.checked_sub(self.text_start)?).ok()?;
        let nearest = self.index.find(relative)?;
        (0..=nearest).rev().take(MAX_CANDIDATES).find_map(|function| {
            let offset = relative - self.index.start(function)?;
            look(function, offset)
        })
    }

    /// The quick rule at `offset` into `function`. Most functions are met at few addresses, so their programs are run only
    /// that far at first, and nothing is kept; a function that is met again and again is compiled.
    fn rule_in(&self, function: usize, offset: u32) -> Option<RuleOf<A>> {
        let compiled = self.read();
        let fde = match compiled.find(function, offset) {
            Lookup::Known(known) => return known.map(|(_, quick)| quick),
            Lookup::NotCompiled { fde } => fde,
        };
        drop(compiled);
        let mut compiled = self.compiled.write().unwrap_or_else(PoisonError::into_inner);
        // A function of an image is compiled as a whole.
        if compiled.image.is_none() && !compiled.rows.is_needed_again(function) {
            match self.glance(function, fde, offset, &mut compiled.scratch) {
                Glance::Rule(rule) => return Some(rule),
                Glance::Outside => return None,
                Glance::NotEnough => {}
            }
        }
        drop(compiled);
        self.in_function(function, offset).map(|(_, quick)| quick)
    }

    /// The quick rule at `offset` into `function`, whose FDE is at `fde`, without keeping anything.
    pub(super) fn glance(
        &self,
        function: usize,
        fde: u32,
        offset: u32,
        scratch: &mut Scratch<A>,
    ) -> Glance<RuleOf<A>> {
        let mut rule = None;
        let use_row = |traits, row: &Row<A>| rule = Some(quick_rule(row, traits, &self.frame.bytes));
        let covered = compile::run_to(&self.frame, fde, scratch, offset, use_row);
        let start = self.index.start(function).map(|start| self.text_start + u64::from(start));
        match (covered, rule) {
            (Ok(covered), rule) if Some(covered.start) == start => match rule {
                Some(Rule::General(_) | Rule::NeedsAll(_)) => Glance::NotEnough,
                Some(rule) => Glance::Rule(rule),
                None => Glance::Outside,
            },
            _ => Glance::NotEnough,
        }
    }

    /// The rule at `offset` into `function`, which is compiled if need be.
    fn in_function(&self, function: usize, offset: u32) -> Option<(RuleId, RuleOf<A>)> {
        let compiled = self.read();
        if let Lookup::Known(known) = compiled.find(function, offset) {
            return known;
        }
        drop(compiled);
        let mut compiled = self.compiled.write().unwrap_or_else(PoisonError::into_inner);
        if let Lookup::NotCompiled { fde } = compiled.find(function, offset) {
            self.compile(function, fde, &mut compiled);
        }
        match compiled.find(function, offset) {
            Lookup::Known(known) => known,
            Lookup::NotCompiled { .. } => None,
        }
    }

    fn compile(&self, function: usize, fde: u32, compiled: &mut Compiled<A>) {
        let Compiled { rules, rows, scratch, pending, image } = compiled;
        pending.clear();
        if let Some(image) = image {
            let mut placed = Vec::new();
            let size = image.compile(fde as usize, &mut placed);
            for (offset, row, traits) in &placed {
                add_row(pending, *offset, rules.intern(row, *traits, &self.frame.bytes));
            }
            rows.insert(function, size, pending);
            return;
        }
        let emit = |holds: Range<u64>, traits, row: &Row<A>| {
            // A function of 4 GiB is a broken one: its tail has no rows.
            let Ok(offset) = u32::try_from(holds.start) else { return };
            add_row(pending, offset, rules.intern(row, traits, &self.frame.bytes));
        };
        let covered = compile::run(&self.frame, fde, scratch, emit);
        let start = self.index.start(function).map(|start| self.text_start + u64::from(start));
        match covered {
            Ok(covered) if Some(covered.start) == start => {
                let length = u32::try_from(covered.end.saturating_sub(covered.start)).unwrap_or(u32::MAX);
                rows.insert(function, length, pending);
            }
            // An FDE that can't be parsed, or another than the index says.
            _ => rows.insert(function, 0, &[]),
        }
    }
}

/// What a walk does for a row; a rule that is named has no name yet.
fn quick_rule<A: Architecture>(row: &Row<A>, traits: Traits, section: &[u8]) -> RuleOf<A> {
    let view = RuleView { cfa: row.cfa, traits, saved: row.all(), has_all: true, section };
    Rule::of::<A>(RuleId(u32::MAX), &view)
}

/// Adds a row, unless the one before has the same rule.
pub(super) fn add_row(rows: &mut Vec<RowStart<u32>>, offset: u32, rule: RuleId) {
    if rows.last().is_none_or(|last| last.rule != rule.0) {
        rows.push(RowStart { offset, rule: rule.0 });
    }
}

pub(super) fn next_id() -> Result<u32, TableError> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let following = |id| (id < CacheKey::LAST_TABLE).then(|| id + 1);
    let next = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, following);
    next.map_err(|_| TableError::TooManyTables)
}
