//! Frames of a recording in, frames of Firefox Profiler out.
//!
//! Code of a file is an address in a library: relative to where the file's image starts, of the instruction that was running or
//! calling. Its name, where one is known, is a symbol of the library, so that the name can be looked up again by address and by
//! build id. The kernel is a library, too, so that its functions are none of a program's of the same name: of its addresses the lower 32 bits
//! are there, which is what fits. Other code has a name alone: what a JIT compiled is gone, and a function that was inlined has no symbol.
//!
//! What was inlined is of a subcategory that says so: the crate writes that no frame is (`inlineDepth`). What was found by guessing is, too: the
//! application shows a function in grey that has frames of several categories.
//!
//! The crate takes frames of one name for one, whatever their lines are. So those at another line than the first one have a name of
//! their own, `name:line`, which nobody sees: they are written as frames of the first one's function.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;

use collector_common::ids::BuildId;
use collector_common::record::{
    ExportMachine, Frame, FrameFlags, FrameId, ModuleId, ModuleKind, WITHOUT_ADDRESS,
};
use fxprof_processed_profile::debugid::DebugId;
use fxprof_processed_profile::{
    self as fxprof, CategoryColor, CategoryHandle, CategoryPairHandle, FrameInfo, LibraryHandle, LibraryInfo,
    Symbol, SymbolTable,
};

use crate::file_name::file_name;
use crate::format::Profile;
use crate::lists::Lists;
use crate::symbolize::{Language, NameId};
use crate::table::{KeySet, Table};

/// Where linkers put programs that can't be moved: at a multiple of this, and the code of the first segments not far behind.
const IMAGE_ALIGNMENT: u64 = 1 << 20;

/// The subcategories of functions that were inlined, and of frames that were found by guessing, which a reader may go by.
pub(crate) const INLINED: &str = "Inlined";
pub(crate) const GUESSED: &str = "Guessed";

/// What stands for a frame, or for a function that was inlined there.
pub(super) struct Told {
    pub(super) info: FrameInfo,
    /// One of the same function that goes by its name, if this does not.
    pub(super) named: Option<FrameInfo>,
    pub(super) line: Option<NonZero<u32>>,
    /// The path of the source file, by its name and as what stands for it.
    pub(super) file: Option<(NameId, FrameInfo)>,
}

impl Told {
    /// Whether its function is one of a library.
    pub(super) const fn is_in_library(&self) -> bool {
        !matches!(self.info.frame, fxprof::Frame::Label(_))
    }
}

/// What the frames of a recording are in a profile.
#[derive(Default)]
pub(super) struct Frames {
    /// By frame.
    lists: Lists<Told>,
}

impl Frames {
    /// Adds the libraries to `out`.
    pub(super) fn of(profile: Profile<'_>, libraries: &Libraries, out: &mut fxprof::Profile) -> Self {
        let Profile { machine, symbols } = profile;
        let categories = Categories::new(out);
        let handles = libraries.add_to(out);
        let mut this = Self::default();
        let mut first_lines: BTreeMap<FrameInfo, u32> = BTreeMap::new();
        for (frame, id) in machine.frames().iter().zip((0..).map(FrameId)) {
            let category = categories.of(machine, frame);
            let flags =
                if is_script(profile, id) { fxprof::FrameFlags::IS_JS } else { fxprof::FrameFlags::empty() };
            let address = libraries.address(frame, &handles);
            let told = symbols.functions(id).rev().enumerate().map(|(depth, function)| {
                let mut label = |text: &str| fxprof::Frame::Label(out.intern_string(text));
                let category_pair = if function.is_inlined { category.inlined } else { category.own };
                let name = symbols.function(function.name);
                let at = |frame| FrameInfo { frame, category_pair, flags };
                let path = symbols.function(function.file);
                let line = NonZero::new(function.line);
                let file = (!path.is_empty()).then(|| {
                    let category_pair = CategoryHandle::OTHER.into();
                    (function.file, FrameInfo { frame: label(path), category_pair, flags })
                });
                if let Some(address) = address.clone().filter(|_| depth == 0) {
                    return Told { info: at(address), named: None, line, file };
                }
                let info = at(label(name));
                let first = *first_lines.entry(info.clone()).or_insert(function.line);
                if first == function.line {
                    return Told { info, named: None, line, file };
                }
                let own = at(label(&format!("{name}:{}", function.line)));
                Told { info: own, named: Some(info), line, file }
            });
            this.lists.push(told.collect::<Vec<_>>());
        }
        this
    }

    /// How many positions there are.
    pub(super) fn len(&self) -> usize {
        self.lists.len().checked_sub(1).map_or(0, |last| self.lists.range(last).end)
    }

    /// What stands for a frame, outermost first: the function that was called, and those that were inlined there. With positions that
    /// no other frame has.
    pub(super) fn get(&self, frame: FrameId) -> impl Iterator<Item = (usize, &Told)> {
        let frame = frame.0 as usize;
        self.lists.range(frame).zip(self.lists.get(frame))
    }
}

/// Whether a frame is one of JavaScript.
pub(super) fn is_script(profile: Profile<'_>, frame: FrameId) -> bool {
    profile.symbols.language(frame) == Some(Language::JavaScript)
}

/// What frames are coloured by: those of functions that were called, and of inlined ones.
#[derive(Clone, Copy)]
struct Category {
    own: CategoryPairHandle,
    inlined: CategoryPairHandle,
}

impl Category {
    fn new(out: &mut fxprof::Profile, name: &str, color: CategoryColor) -> [Self; 2] {
        let own = out.add_category(name, color);
        let inlined = out.add_subcategory(own, INLINED);
        let guessed = out.add_subcategory(own, GUESSED);
        [Self { own: own.into(), inlined }, Self { own: guessed, inlined }]
    }
}

/// Each of frames that are certain, and of those that were found by guessing.
struct Categories {
    user: [Category; 2],
    kernel: Category,
    jit: [Category; 2],
}

impl Categories {
    fn new(out: &mut fxprof::Profile) -> Self {
        let user = Category::new(out, "User", CategoryColor::Yellow);
        let kernel = out.add_category("Kernel", CategoryColor::Orange);
        let kernel = Category { own: kernel.into(), inlined: out.add_subcategory(kernel, INLINED) };
        Self { user, kernel, jit: Category::new(out, "JIT", CategoryColor::Green) }
    }

    fn of(&self, machine: &ExportMachine, frame: &Frame) -> Category {
        let other = CategoryHandle::OTHER.into();
        let is_guessed = usize::from(frame.flags.has(FrameFlags::HEURISTIC));
        match machine.module(frame.module).kind {
            _ if frame.flags.has(FrameFlags::CUT) => Category { own: other, inlined: other },
            _ if frame.is_kernel() => self.kernel,
            ModuleKind::Anonymous(_) => self.jit[is_guessed],
            _ => self.user[is_guessed],
        }
    }
}

/// Modules that are libraries.
pub(super) struct Libraries {
    list: Vec<Library>,
    /// By module: a position in the list.
    of_modules: Table<ModuleId, usize>,
}

struct Library {
    info: LibraryInfo,
    symbols: Arc<SymbolTable>,
    /// Its image's first address, as linked.
    base: u64,
}

impl Library {
    /// The names of frames, which are sorted by address: neighbours of one name are one symbol, as far as it was seen. Code of a file that has
    /// no name goes by its address there; the kernel's by all of it.
    fn symbols(profile: Profile<'_>, base: u64, frames: impl Iterator<Item = FrameId>) -> SymbolTable {
        let Profile { machine, symbols } = profile;
        let mut table: Vec<Symbol> = Vec::new();
        let mut last = None;
        for id in frames {
            let frame = machine.frames().get(id);
            let Some(address) = relative(frame, base) else { continue };
            let is_named = symbols.is_resolved(id) || frame.module == ModuleId::KERNEL;
            let name = is_named.then(|| symbols.name_id(id));
            match (name, table.last_mut()) {
                (Some(_), Some(symbol)) if name == last => {
                    symbol.size = (address - symbol.address).checked_add(1);
                }
                (Some(name), _) => {
                    table.push(Symbol { address, size: Some(1), name: symbols.function(name).to_owned() });
                }
                (None, _) => {}
            }
            last = name;
        }
        SymbolTable::new(table)
    }
}

impl Libraries {
    pub(super) fn of(profile: Profile<'_>) -> Self {
        let machine = profile.machine;
        let mut bases = fixed_bases(machine);
        bases.extend(kernel_base(machine).map(|base| (ModuleId::KERNEL, base)));
        let frames = machine.frames().iter().zip(0..);
        let mut frames: Vec<(ModuleId, u64, FrameId)> = frames
            .filter(|(frame, _)| is_library(machine, frame))
            .map(|(frame, id)| (frame.module, frame.lookup_address().0, FrameId(id)))
            .collect();
        frames.sort_unstable();
        let (mut list, mut of_modules, mut known) = (Vec::new(), Table::default(), KeySet::default());
        for of_module in frames.chunk_by(|a, b| a.0 == b.0) {
            let module_id = of_module[0].0;
            let module = machine.module(module_id);
            // Of two files at one path that can't be told apart the second has names alone.
            if !known.insert((module.path, module.build_id)) {
                continue;
            }
            let info = library_info(machine.string(module.path), module.build_id.as_ref());
            let base = bases.get(&module_id).copied().unwrap_or(0);
            let symbols = Library::symbols(profile, base, of_module.iter().map(|&(_, _, id)| id));
            of_modules.insert(module_id, list.len());
            list.push(Library { info, symbols: Arc::new(symbols), base });
        }
        Self { list, of_modules }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    fn add_to(&self, out: &mut fxprof::Profile) -> Vec<LibraryHandle> {
        let add = |library: &Library| {
            let handle = out.add_lib(library.info.clone());
            out.set_lib_symbol_table(handle, Arc::clone(&library.symbols));
            handle
        };
        self.list.iter().map(add).collect()
    }

    /// Which of them a frame is in by its address.
    pub(super) fn position(&self, frame: &Frame) -> Option<usize> {
        self.place(frame).map(|(position, _)| position)
    }

    fn address(&self, frame: &Frame, handles: &[LibraryHandle]) -> Option<fxprof::Frame> {
        let (position, relative) = self.place(frame)?;
        let &handle = handles.get(position)?;
        Some(fxprof::Frame::RelativeAddressFromAdjustedReturnAddress(handle, relative))
    }

    fn place(&self, frame: &Frame) -> Option<(usize, u32)> {
        let is_code = frame.has_address() && !frame.flags.has(FrameFlags::CUT);
        let &position = self.of_modules.get(&frame.module).filter(|_| is_code)?;
        Some((position, relative(frame, self.list.get(position)?.base)?))
    }
}

fn relative(frame: &Frame, base: u64) -> Option<u32> {
    u32::try_from(frame.lookup_address().0.checked_sub(base)?).ok()
}

fn is_library(machine: &ExportMachine, frame: &Frame) -> bool {
    let kind = machine.module(frame.module).kind;
    let is_code = frame.has_address() && !frame.flags.has(FrameFlags::CUT);
    matches!(kind, ModuleKind::Kernel | ModuleKind::File | ModuleKind::Vdso) && is_code
}

/// Where those 4 GiB begin that have most of the kernel's frames. On x86-64 all of its code is in the last ones.
fn kernel_base(machine: &ExportMachine) -> Option<u64> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for frame in machine.frames().iter() {
        if frame.module == ModuleId::KERNEL && is_library(machine, frame) {
            *counts.entry(frame.lookup_address().0 & !u64::from(u32::MAX)).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(base, _)| base)
}

/// By module that was mapped at the very addresses that it is linked for: where its image starts. Others are linked for 0.
fn fixed_bases(machine: &ExportMachine) -> Table<ModuleId, u64> {
    let mut bases: Table<ModuleId, u64> = Table::default();
    for mapping in machine.mappings().iter().filter(|mapping| mapping.bias == 0) {
        if WITHOUT_ADDRESS.contains(&mapping.start.0) {
            continue;
        }
        let start = mapping.start.0.saturating_sub(mapping.file_offset.0);
        let base = start - start % IMAGE_ALIGNMENT;
        bases.entry(mapping.module).and_modify(|known| *known = base.min(*known)).or_insert(base);
    }
    bases
}

fn library_info(path: &str, build_id: Option<&BuildId>) -> LibraryInfo {
    let name = file_name(path);
    LibraryInfo {
        name: name.to_owned(),
        debug_name: name.to_owned(),
        path: path.to_owned(),
        debug_path: path.to_owned(),
        debug_id: build_id.map(debug_id).unwrap_or_default(),
        code_id: build_id.map(ToString::to_string),
        arch: None,
        symbol_table: None,
    }
}

/// As Breakpad makes it: a GUID of the first 16 bytes, which are filled up with zeros.
fn debug_id(build_id: &BuildId) -> DebugId {
    let mut guid = [0; 16];
    for (to, from) in guid.iter_mut().zip(build_id.as_bytes()) {
        *to = *from;
    }
    DebugId::from_guid_age(&guid, 0).unwrap_or_default()
}
