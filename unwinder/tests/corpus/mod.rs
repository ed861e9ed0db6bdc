//! Real stacks for tests and benches: programs in `tests/programs` are compiled here and now; what they print (see
//! `capture.h`) comes out as [`Captured`] stacks and the [`Space`] they were taken in.

#![allow(dead_code, reason = "each of the binaries that include this module uses a part of it")]

pub(crate) mod saved;

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use object::{Object, ObjectSegment};
use tempfile::TempDir;
use unwinder::x86_64::X86_64;
use unwinder::{AddressSpace, CopiedStack, Mapping, Registers, UnwindTable};

pub(crate) use platform::Platform;
pub(crate) use stacks::Stacks;

mod platform;
mod stacks;

/// A stack as a program captured it of itself.
#[derive(Debug)]
pub(crate) struct Captured<A: Platform = X86_64> {
    pub(crate) name: String,
    pub(crate) registers: Registers<A>,
    pub(crate) base: u64,
    pub(crate) bytes: Vec<u8>,
    /// Stacks elsewhere that a signal interrupted, with their addresses.
    others: Vec<(u64, Vec<u8>)>,
    /// Every frame's address, innermost first, as glibc's `backtrace()` found them.
    pub(crate) chain: Vec<u64>,
}

impl<A: Platform> Captured<A> {
    /// The stack that the registers are of alone, as recorders copy it.
    pub(crate) fn copy(&self) -> CopiedStack<'_> {
        CopiedStack::new(self.base, &self.bytes, 0)
    }

    pub(crate) fn stack(&self) -> Stacks<'_> {
        Stacks::new(self.copy(), &self.others)
    }
}

/// An executable mapping and the bytes of the ELF file behind it; none and no table for code that is of no file.
#[derive(Debug)]
pub(crate) struct Module<A: Platform = X86_64> {
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) bias: u64,
    pub(crate) elf: Arc<Vec<u8>>,
    /// Of the mapping's first byte in `elf`.
    offset: u64,
    pub(crate) table: Option<Arc<UnwindTable<A>>>,
}

impl<A: Platform> Module<A> {
    /// The file's bytes from `address` on.
    fn code(&self, address: u64) -> Option<&[u8]> {
        let bytes = self.elf.get(usize::try_from(self.offset.checked_add(address - self.start)?).ok()?..)?;
        Some(bytes).filter(|rest| !rest.is_empty())
    }
}

/// A process' executable mappings, sorted.
#[derive(Debug)]
pub(crate) struct Space<A: Platform = X86_64> {
    pub(crate) modules: Vec<Module<A>>,
    /// Code that is of no file, in pieces that do not overlap.
    pages: Arc<BTreeMap<u64, Vec<u8>>>,
    generation: Option<NonZeroU64>,
}

impl<A: Platform> AddressSpace<A> for Space<A> {
    fn lookup(&self, address: u64) -> Option<Mapping<'_, A>> {
        let behind = self.modules.partition_point(|module| module.start <= address);
        let module = self.modules.get(behind.checked_sub(1)?)?;
        (address < module.end).then_some(Mapping {
            start: module.start,
            end: module.end,
            bias: module.bias,
            table: module.table.as_deref(),
        })
    }

    fn code(&self, address: u64, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let Some(bytes) = self.bytes_at(address.wrapping_add(filled as u64)) else { break };
            let length = bytes.len().min(rest.len());
            rest[..length].copy_from_slice(&bytes[..length]);
            filled += length;
        }
        filled
    }

    fn generation(&self) -> Option<NonZeroU64> {
        self.generation
    }
}

impl<A: Platform> Run<A> {
    /// The module of the program itself.
    pub(crate) fn program(&mut self) -> &mut Module<A> {
        let found = self.space.modules.iter_mut().find(|module| module.name.ends_with("/program"));
        found.expect("a program is mapped in its own process")
    }
}

impl<A: Platform> Space<A> {
    fn new(modules: Vec<Module<A>>, pages: Arc<BTreeMap<u64, Vec<u8>>>) -> Self {
        static GENERATIONS: AtomicU64 = AtomicU64::new(1);
        let generation = NonZeroU64::new(GENERATIONS.fetch_add(1, Ordering::Relaxed));
        Space { modules, pages, generation }
    }

    fn bytes_at(&self, address: u64) -> Option<&[u8]> {
        let piece = self.pages.range(..=address).next_back();
        if let Some(bytes) = piece.and_then(|(start, page)| page.get((address - start) as usize..))
            && !bytes.is_empty()
        {
            return Some(bytes);
        }
        let module = self.modules.iter().find(|module| (module.start..module.end).contains(&address))?;
        module.code(address)
    }

    /// The same mappings with tables that have compiled nothing yet.
    pub(crate) fn fresh(&self) -> Self {
        let table = |module: &Module<A>| {
            let table = module.table.as_ref().map(|_| UnwindTable::from_elf(module.elf.as_slice()).unwrap());
            table.map(Arc::new)
        };
        self.with_tables(table)
    }

    /// The same mappings without unwind information of the files that `without` names.
    pub(crate) fn stripped(&self, without: impl Fn(&Module<A>) -> bool) -> Self {
        self.with_tables(|module| module.table.clone().filter(|_| !without(module)))
    }

    fn with_tables(&self, table: impl Fn(&Module<A>) -> Option<Arc<UnwindTable<A>>>) -> Self {
        let fresh = |module: &Module<A>| Module {
            name: module.name.clone(),
            elf: Arc::clone(&module.elf),
            table: table(module),
            ..*module
        };
        Space::new(self.modules.iter().map(fresh).collect(), Arc::clone(&self.pages))
    }
}

/// What one run of a program printed.
#[derive(Debug)]
pub(crate) struct Run<A: Platform = X86_64> {
    pub(crate) stacks: Vec<Captured<A>>,
    pub(crate) space: Space<A>,
}

impl<A: Platform> Run<A> {
    pub(crate) fn stack(&self, name: &str) -> &Captured<A> {
        let found = self.stacks.iter().find(|stack| stack.name == name);
        found.unwrap_or_else(|| panic!("the program captured no stack {name}"))
    }
}

const FLAGS: [&str; 6] = ["-O2", "-fomit-frame-pointer", "-pthread", "-g", "-w", "-o"];

/// [`run_on`] x86-64.
pub(crate) fn run(source: &str, flags: &[&str]) -> Option<Run> {
    run_on(source, flags)
}

/// Compiles `tests/programs/<source>` with `flags` and runs it; `None`, and a line that says so, where no compiler
/// is installed or it lacks what the flags ask for (static libraries), or where its programs don't run.
pub(crate) fn run_on<A: Platform>(source: &str, flags: &[&str]) -> Option<Run<A>> {
    let (_folder, binary) = compile::<A>(source, flags)?;
    let output = match A::command(&binary).env_clear().output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: this machine runs no program that {}gcc makes: {error}", A::PREFIX);
            return None;
        }
    };
    assert!(output.status.success(), "{source}: {}", output.status);
    Some(parse(&output.stdout))
}

/// The compiled file, in a folder that is deleted when it is dropped.
pub(crate) fn compile<A: Platform>(source: &str, flags: &[&str]) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let binary = folder.path().join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let cpp = source.extension().is_some_and(|extension| extension == "cc");
    let compiler = if cpp { "g++" } else { "gcc" };
    let is_static = flags.iter().any(|flag| flag.starts_with("-static"));
    let dynamic = if is_static { &[] } else { A::DYNAMIC };
    let compile = |source: &Path| {
        A::tool(compiler).args(dynamic).args(FLAGS).arg(&binary).arg(source).args(flags).status()
    };

    let empty = folder.path().join(if cpp { "empty.cc" } else { "empty.c" });
    std::fs::write(&empty, "int main(void) { return 0; }").unwrap();
    if !compile(&empty).is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: {}{compiler} {flags:?} can't build anything here", A::PREFIX);
        return None;
    }
    assert!(compile(&source).unwrap().success(), "{}", source.display());
    Some((folder, binary))
}

/// Stacks inside of the machine's Python interpreter, which calls into a shared object of ours.
pub(crate) fn run_python() -> Option<Run> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let library = folder.path().join("hook.so");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let source = programs.join("python_hook.c");
    let compiled =
        Command::new("gcc").args(["-shared", "-fPIC"]).args(FLAGS).args([&library, &source]).status();
    let output = Command::new("python3").arg(programs.join("python_hook.py")).arg(&library).output();
    let (Ok(compiled), Ok(output)) = (compiled, output) else {
        eprintln!("SKIPPED: gcc and python3 are not both on this machine");
        return None;
    };
    assert!(compiled.success() && output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(parse(&output.stdout))
}

pub(crate) struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    pub(crate) fn word(&mut self) -> u64 {
        u64::from_le_bytes(*self.bytes(8).first_chunk().unwrap())
    }

    fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }

    fn sized(&mut self) -> &'a [u8] {
        let length = self.word();
        self.bytes(length as usize)
    }
}

fn parse<A: Platform>(output: &[u8]) -> Run<A> {
    let mut words = Words(output);
    let (mut stacks, mut pages, mut maps, mut vdso) = (Vec::new(), BTreeMap::new(), "", Vec::new());
    while !words.0.is_empty() {
        match u8::try_from(words.word()) {
            Ok(b'S') => stacks.push(captured(&mut words)),
            Ok(b'C') => {
                pages.insert(words.word(), words.sized().to_vec());
            }
            Ok(b'V') => vdso = words.sized().to_vec(),
            Ok(b'M') => maps = std::str::from_utf8(words.sized()).unwrap(),
            other => panic!("unknown record {other:?}"),
        }
    }
    Run { stacks, space: Space::new(modules(maps, &vdso), Arc::new(pages)) }
}

fn captured<A: Platform>(words: &mut Words<'_>) -> Captured<A> {
    let name = std::str::from_utf8(words.bytes(32)).unwrap().trim_end_matches('\0').to_owned();
    let registers = A::registers(words);
    let base = words.word();
    let bytes = words.sized().to_vec();
    let length = words.word();
    let others = Vec::new();
    Captured { name, registers, base, bytes, others, chain: (0..length).map(|_| words.word()).collect() }
}

fn modules<A: Platform>(maps: &str, vdso: &[u8]) -> Vec<Module<A>> {
    let mut files = HashMap::<PathBuf, (Arc<Vec<u8>>, Arc<UnwindTable<A>>)>::new();
    let mut modules = Vec::new();
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let (Some(range), Some(mode), Some(offset)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let Some(name) = fields.nth(2).filter(|_| mode.contains('x')) else { continue };
        // `[vsyscall]`, and `[uprobes]` where somebody probes a program of the machine.
        if name.starts_with('[') && name != "[vdso]" {
            continue;
        }
        let (start, end) = range.split_once('-').unwrap();
        let [start, end, offset] = [start, end, offset].map(|hex| u64::from_str_radix(hex, 16).unwrap());
        let (elf, table) = files.entry(name.into()).or_insert_with(|| {
            let bytes = if name == "[vdso]" { vdso.to_vec() } else { std::fs::read(name).unwrap() };
            let table =
                UnwindTable::from_elf(bytes.as_slice()).unwrap_or_else(|error| panic!("{name}: {error}"));
            (Arc::new(bytes), Arc::new(table))
        });
        let bias = start.wrapping_sub(svma_of_offset(elf, offset));
        let (elf, table) = (Arc::clone(elf), Arc::clone(table));
        modules.push(Module { name: name.to_owned(), start, end, bias, elf, offset, table: Some(table) });
    }
    modules.sort_by_key(|module| module.start);
    modules
}

/// The virtual address as linked of a mapping's first byte.
fn svma_of_offset(elf: &[u8], offset: u64) -> u64 {
    let file = object::File::parse(elf).unwrap();
    // Two segments may share a page of the file; the mappings here are executable.
    let segment = file.segments().find(|segment| {
        let (start, size) = segment.file_range();
        segment.permissions().executable() && (start & !0xfff..start + size).contains(&offset)
    });
    let segment = segment.expect("a segment for the mapping's offset");
    segment.address().wrapping_add(offset).wrapping_sub(segment.file_range().0)
}
