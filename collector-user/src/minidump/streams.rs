//! The header, the directory and the streams of a dump in, what they tell out.
//!
//! Without its system and its threads a dump is none. Of anything else that can't be read the rest is kept, and a line tells why it is not
//! there. No list is read beyond a number of entries, so that a count of the file's costs no more than the file has.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use collector_common::intern::Seeded;
use collector_common::record::Pdb;

use super::context::{Context, Processor, READ};
use super::error::DumpError;
use super::memory::Stretch;
use super::source::{Places as _, Source, u16_at, u32_at, u64_at};
use crate::longest_name::{LONGEST_NAME, name};
use crate::modules::pdb_of_record;

/// What a dump begins with.
pub(super) const SIGNATURE: &[u8; 4] = b"MDMP";

/// `MINIDUMP_HEADER`.
const HEADER: u64 = 32;

/// Types of streams (`MINIDUMP_STREAM_TYPE`).
mod kind {
    pub(super) const THREADS: u32 = 3;
    pub(super) const MODULES: u32 = 4;
    pub(super) const MEMORY: u32 = 5;
    pub(super) const EXCEPTION: u32 = 6;
    pub(super) const SYSTEM: u32 = 7;
    pub(super) const MEMORY_64: u32 = 9;
    pub(super) const MISC: u32 = 15;
    pub(super) const THREAD_NAMES: u32 = 24;
}

/// The most entries of lists.
const MOST_STREAMS: u64 = 1 << 12;
const MOST_THREADS: u64 = 1 << 16;
const MOST_MODULES: u64 = 1 << 16;
const MOST_STRETCHES: u64 = 1 << 21;

/// What a system of the NT family has in `PlatformId`.
const PLATFORM_NT: u32 = 2;

/// What `VS_FIXEDFILEINFO` begins with.
const VERSION_SIGNATURE: u32 = 0xfeef_04bd;

/// A stream, or what else a structure refers to.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    size: u64,
}

impl Place {
    /// `MINIDUMP_LOCATION_DESCRIPTOR`.
    fn at(bytes: &[u8], at: usize) -> Option<Self> {
        Some(Self { size: u32_at(bytes, at)?.into(), offset: u32_at(bytes, at + 4)?.into() })
    }
}

/// What the dump tells of the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct System {
    pub(super) processor: Processor,
    pub(super) cpus: u8,
    /// Major, minor, build.
    pub(super) version: [u32; 3],
}

/// A thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) tid: u32,
    /// In common with others of its number: a dump may have as many of one as it likes.
    pub(super) name: Option<Arc<str>>,
    /// None where the dump has no registers, as of the thread that wrote it.
    pub(super) context: Option<Context>,
    /// What it was stopped by: a code and an address.
    pub(super) exception: Option<(u32, u64)>,
}

/// An image.
#[derive(Clone, Debug)]
pub(super) struct Module {
    pub(super) base: u64,
    /// Bytes in memory, and the date in its header: what tells it from others of its name.
    pub(super) size: u32,
    pub(super) date: u32,
    pub(super) path: Box<str>,
    pub(super) version: Option<String>,
    pub(super) pdb: Option<Pdb>,
}

/// All that is read of a dump.
#[derive(Debug)]
pub(super) struct Streams {
    /// Seconds since 1970; 0 where that is not told.
    pub(super) time: u32,
    pub(super) system: System,
    pub(super) pid: Option<u32>,
    pub(super) threads: Vec<Thread>,
    pub(super) modules: Vec<Module>,
    pub(super) memory: Vec<Stretch>,
    /// What could not be read, a line each.
    pub(super) left_out: Vec<String>,
}

impl Streams {
    pub(super) fn read(source: &Source<'_>) -> Result<Self, DumpError> {
        let header = source.bytes(0, HEADER, "the header")?;
        if !header.starts_with(SIGNATURE) {
            return Err(DumpError::OtherFile);
        }
        let word = |at| u64::from(u32_at(&header, at).unwrap_or_default());
        let streams = directory(source, word(8), word(12))?;
        let reader = Reader { source, streams, text_left: Cell::new(source.length()) };
        let system = reader.system()?;
        let mut left_out = Vec::new();
        let mut memory = Vec::new();
        let mut threads = reader.threads(system.processor, &mut memory, &mut left_out)?;
        keep(reader.listed_memory(&mut memory), &mut left_out);
        keep(reader.all_memory(&mut memory), &mut left_out);
        keep(reader.thread_names(&mut threads), &mut left_out);
        keep(reader.exception(system.processor, &mut threads, &mut left_out), &mut left_out);
        let mut modules = keep(reader.modules(&mut left_out), &mut left_out).unwrap_or_default();
        if system.processor == Processor::X86 {
            // Writers may have extended them by their sign.
            let exceptions = threads.iter_mut().filter_map(|thread| Some(&mut thread.exception.as_mut()?.1));
            let of_modules = modules.iter_mut().map(|module| &mut module.base);
            let of_memory = memory.iter_mut().map(|stretch| &mut stretch.start);
            exceptions.chain(of_modules).chain(of_memory).for_each(|address| *address &= u64::from(u32::MAX));
        }
        let pid = keep(reader.pid(), &mut left_out).flatten();
        let time = u32_at(&header, 20).unwrap_or_default();
        match source.failure() {
            Some(error) => Err(error.into()),
            None => Ok(Self { time, system, pid, threads, modules, memory, left_out }),
        }
    }
}

/// Keeps what was read, or a line that tells why it is not there.
fn keep<T>(read: Result<T, DumpError>, left_out: &mut Vec<String>) -> Option<T> {
    read.map_err(|error| left_out.push(error.to_string())).ok()
}

/// Where the streams are, by type; of two of one type the first.
fn directory(source: &Source<'_>, count: u64, at: u64) -> Result<BTreeMap<u32, Place>, DumpError> {
    const ENTRY: u64 = 12;
    let what = "the list of streams";
    check(what, at, count, MOST_STREAMS)?;
    let bytes = source.bytes(at, count * ENTRY, what)?;
    let mut streams = BTreeMap::new();
    for entry in bytes.chunks_exact(ENTRY as usize) {
        if let (Some(kind), Some(place)) = (u32_at(entry, 0), Place::at(entry, 4)) {
            streams.entry(kind).or_insert(place);
        }
    }
    Ok(streams)
}

fn check(what: &'static str, at: u64, count: u64, most: u64) -> Result<(), DumpError> {
    if count > most { Err(DumpError::TooMany { what, at, count, most }) } else { Ok(()) }
}

/// A dump whose directory was read.
struct Reader<'s, 'f> {
    source: &'s Source<'f>,
    streams: BTreeMap<u32, Place>,
    /// Bytes of names and records that are still read: each lies in the file once, unless it is there to take memory.
    text_left: Cell<u64>,
}

/// A list of entries of one size.
struct List {
    bytes: Vec<u8>,
    entry: usize,
}

impl List {
    fn entries(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.entry)
    }
}

impl Reader<'_, '_> {
    /// So many bytes of a stream that is one structure, or as many as it has; none where there is no such stream.
    fn structure(&self, kind: u32, most: u64, what: &'static str) -> Result<Option<Vec<u8>>, DumpError> {
        let read = |place: &Place| self.source.bytes(place.offset, place.size.min(most), what);
        self.streams.get(&kind).map(read).transpose()
    }

    /// A stream that is a count and so many entries; empty where there is no such stream.
    fn list(&self, kind: u32, entry: u64, most: u64, what: &'static str) -> Result<List, DumpError> {
        let Some(place) = self.streams.get(&kind) else {
            return Ok(List { bytes: Vec::new(), entry: entry as usize });
        };
        let count = self.source.bytes(place.offset, 4, what)?;
        let count = u32_at(&count, 0).unwrap_or_default().into();
        check(what, place.offset, count, most)?;
        // Some writers have the entries begin at a multiple of 8.
        let is_padded = place.size == 8 + count * entry;
        let at = place.offset + if is_padded { 8 } else { 4 };
        Ok(List { bytes: self.source.bytes(at, count * entry, what)?, entry: entry as usize })
    }

    /// So many bytes that nothing else lies in.
    fn once(&self, at: u64, bytes: u64, what: &'static str) -> Result<Vec<u8>, DumpError> {
        let left = self.text_left.get().checked_sub(bytes).ok_or(DumpError::Repeated { what, at })?;
        self.text_left.set(left);
        self.source.bytes(at, bytes, what)
    }

    /// `MINIDUMP_STRING`: bytes, then UTF-16. Of longer ones the beginning is kept.
    fn text(&self, offset: u64, what: &'static str) -> Result<String, DumpError> {
        let length = self.source.bytes(offset, 4, what)?;
        let length = u64::from(u32_at(&length, 0).unwrap_or_default()).min(LONGEST_NAME as u64);
        let bytes = self.once(offset + 4, length, what)?;
        let units: Vec<u16> = bytes.chunks_exact(2).filter_map(|unit| u16_at(unit, 0)).collect();
        Ok(name(&String::from_utf16_lossy(&units)).to_owned())
    }

    /// `MINIDUMP_SYSTEM_INFO`.
    fn system(&self) -> Result<System, DumpError> {
        let what = "the description of the system";
        let bytes = self.structure(kind::SYSTEM, 56, what)?.ok_or(DumpError::Missing(what))?;
        let place = self.streams.get(&kind::SYSTEM).map_or(0, |place| place.offset);
        let short = || DumpError::Short { what, at: place, bytes: 24 };
        let word = |at| u32_at(&bytes, at).ok_or_else(short);
        let platform = word(20)?;
        if platform != PLATFORM_NT {
            return Err(DumpError::OtherSystem(platform));
        }
        let architecture = u16_at(&bytes, 0).ok_or_else(short)?;
        let processor = Processor::of(architecture).ok_or(DumpError::OtherProcessor(architecture))?;
        let cpus = bytes.get(6).copied().ok_or_else(short)?;
        Ok(System { processor, cpus, version: [word(8)?, word(12)?, word(16)?] })
    }

    /// `MINIDUMP_THREAD_LIST`; their stacks are added to `memory`.
    fn threads(
        &self,
        processor: Processor,
        memory: &mut Vec<Stretch>,
        left_out: &mut Vec<String>,
    ) -> Result<Vec<Thread>, DumpError> {
        let what = "the list of threads";
        if !self.streams.contains_key(&kind::THREADS) {
            return Err(DumpError::Missing(what));
        }
        let list = self.list(kind::THREADS, 48, MOST_THREADS, what)?;
        let mut threads = Vec::new();
        let mut unread = Unread::default();
        for entry in list.entries() {
            let stack = || {
                let place = Place::at(entry, 32)?;
                // Where all memory is in the dump, it is there alone.
                let is_here = place.offset > 0 && place.size > 0;
                Some(Stretch { start: u64_at(entry, 24)?, size: place.size, offset: place.offset })
                    .filter(|_| is_here)
            };
            memory.extend(stack());
            let place = Place::at(entry, 40).filter(|place| place.size > 0);
            let context = place.map(|place| self.context(processor, place)).transpose();
            let context = context.unwrap_or_else(|error| unread.count(&error)).flatten();
            let tid = u32_at(entry, 0).unwrap_or_default();
            threads.push(Thread { tid, name: None, context, exception: None });
        }
        left_out.extend(unread.line("registers of threads"));
        Ok(threads)
    }

    fn context(&self, processor: Processor, place: Place) -> Result<Option<Context>, DumpError> {
        let bytes = self.source.bytes(place.offset, place.size.min(READ.into()), "the registers")?;
        Ok(Context::read(processor, &bytes))
    }

    /// `MINIDUMP_MEMORY_LIST`.
    fn listed_memory(&self, memory: &mut Vec<Stretch>) -> Result<(), DumpError> {
        let list = self.list(kind::MEMORY, 16, MOST_STRETCHES, "the list of memory")?;
        memory.extend(list.entries().filter_map(|entry| {
            let place = Place::at(entry, 8)?;
            Some(Stretch { start: u64_at(entry, 0)?, size: place.size, offset: place.offset })
        }));
        Ok(())
    }

    /// `MINIDUMP_MEMORY64_LIST`: all of it lies one behind the other.
    fn all_memory(&self, memory: &mut Vec<Stretch>) -> Result<(), DumpError> {
        const ENTRY: u64 = 16;
        let what = "the list of all memory";
        let Some(place) = self.streams.get(&kind::MEMORY_64) else { return Ok(()) };
        let header = self.source.bytes(place.offset, 16, what)?;
        let (count, first) = (u64_at(&header, 0).unwrap_or_default(), u64_at(&header, 8).unwrap_or_default());
        check(what, place.offset, count, MOST_STRETCHES)?;
        let bytes = self.source.bytes(place.offset + 16, count * ENTRY, what)?;
        let mut offset = first;
        for entry in bytes.chunks_exact(ENTRY as usize) {
            let (Some(start), Some(size)) = (u64_at(entry, 0), u64_at(entry, 8)) else { continue };
            memory.push(Stretch { start, size, offset });
            offset = offset.saturating_add(size);
        }
        Ok(())
    }

    /// `MINIDUMP_THREAD_NAME_LIST`.
    fn thread_names(&self, threads: &mut [Thread]) -> Result<(), DumpError> {
        let list = self.list(kind::THREAD_NAMES, 12, MOST_THREADS, "the list of names of threads")?;
        let mut names: HashMap<u32, Arc<str>, Seeded> = HashMap::default();
        let mut failed = None;
        for entry in list.entries() {
            let (Some(tid), Some(at)) = (u32_at(entry, 0), u64_at(entry, 4)) else { continue };
            match self.text(at, "the name of a thread") {
                Ok(name) => drop(names.entry(tid).or_insert(name.into())),
                Err(error) => failed = Some(error),
            }
        }
        for thread in threads {
            let name = names.get(&thread.tid).filter(|name| !name.is_empty());
            thread.name = name.cloned();
        }
        failed.map_or(Ok(()), Err)
    }

    /// `MINIDUMP_EXCEPTION_STREAM`: the registers of its thread are those from when it happened.
    fn exception(
        &self,
        processor: Processor,
        threads: &mut [Thread],
        left_out: &mut Vec<String>,
    ) -> Result<(), DumpError> {
        let what = "the exception";
        let Some(bytes) = self.structure(kind::EXCEPTION, 168, what)? else { return Ok(()) };
        let at = self.streams.get(&kind::EXCEPTION).map_or(0, |place| place.offset);
        let fields = (u32_at(&bytes, 0), u32_at(&bytes, 8), u64_at(&bytes, 24), Place::at(&bytes, 160));
        let (Some(tid), Some(code), Some(address), Some(context)) = fields else {
            return Err(DumpError::Short { what, at, bytes: 168 });
        };
        let Some(thread) = threads.iter_mut().find(|thread| thread.tid == tid) else {
            left_out.push(format!("the exception {code:#x} is of thread {tid}, which is not there"));
            return Ok(());
        };
        thread.exception = Some((code, address));
        if context.size > 0 {
            thread.context = self.context(processor, context)?.or(thread.context);
        }
        Ok(())
    }

    /// `MINIDUMP_MODULE_LIST`.
    fn modules(&self, left_out: &mut Vec<String>) -> Result<Vec<Module>, DumpError> {
        let list = self.list(kind::MODULES, 108, MOST_MODULES, "the list of modules")?;
        let mut modules = Vec::new();
        let mut unread = Unread::default();
        for entry in list.entries() {
            let fields = (u64_at(entry, 0), u32_at(entry, 8), u32_at(entry, 16), u32_at(entry, 20));
            let (Some(base), Some(size), Some(date), Some(name)) = fields else { continue };
            let path = self.text(name.into(), "the name of a module");
            let path = path.unwrap_or_else(|error| unread.count(&error));
            let record = Place::at(entry, 76).filter(|place| place.size > 0);
            let pdb = record.map(|place| self.pdb(place)).transpose();
            let pdb = pdb.unwrap_or_else(|error| unread.count(&error)).flatten();
            let version = version(entry);
            modules.push(Module { base, size, date, path: path.into(), version, pdb });
        }
        left_out.extend(unread.line("names and records of modules"));
        Ok(modules)
    }

    fn pdb(&self, place: Place) -> Result<Option<Pdb>, DumpError> {
        let most = LONGEST_NAME as u64;
        let mut bytes = self.once(place.offset, place.size.min(most), "the record of a PDB")?;
        // Its path ends with a NUL; of one that is too long, with the last byte that is kept.
        bytes.push(0);
        Ok(pdb_of_record(&bytes))
    }

    /// `MINIDUMP_MISC_INFO`.
    fn pid(&self) -> Result<Option<u32>, DumpError> {
        const PROCESS_ID: u32 = 1;
        let bytes = self.structure(kind::MISC, 24, "the facts of the process")?.unwrap_or_default();
        let is_told = u32_at(&bytes, 4).is_some_and(|flags| flags & PROCESS_ID != 0);
        Ok(u32_at(&bytes, 8).filter(|_| is_told))
    }
}

/// Parts of a list that could not be read.
#[derive(Debug, Default)]
struct Unread {
    count: u64,
    first: Option<String>,
}

impl Unread {
    fn count<T: Default>(&mut self, error: &DumpError) -> T {
        self.count += 1;
        self.first.get_or_insert_with(|| error.to_string());
        T::default()
    }

    fn line(&self, what: &str) -> Option<String> {
        Some(format!(
            "{what} that could not be read: {}, the first because {}",
            self.count,
            self.first.as_ref()?
        ))
    }
}

/// The file version in `VS_FIXEDFILEINFO`.
fn version(entry: &[u8]) -> Option<String> {
    let info = entry.get(24..)?;
    let [signature, high, low] = [0, 8, 12].map(|at| u32_at(info, at));
    let (high, low) = (high?, low?);
    (signature? == VERSION_SIGNATURE)
        .then(|| format!("{}.{}.{}.{}", high >> 16, high & 0xffff, low >> 16, low & 0xffff))
}
