//! Memory of a process that was not copied with the sample, read when that is unwound, up to a round later: the part of a
//! large stack beyond the copy, that of a stack beyond the mapping where the copy ended, pages that were absent from it, and
//! code that has no unwind information, as it is then or was when it was last read.
//!
//! A function whose frame lies more than the largest copy (64 KiB) above the stack pointer has long been running and
//! will mostly run on, so its frame is the same a few milliseconds later. It need not be: a late word is believed
//! if the words that the outermost known frame was found by (its return address, and a register that is saved beside) are
//! what is in memory right before its page is read, and right behind that ([`snapshots`](super::snapshots)). So it is with pages that
//! were absent, as those swapped out. It is a good sign and no proof: what called the same function, which has the same two words in its
//! frame then as before, may be another one by now, the more so behind smaller copies, as they are made where a ring is nearly full.
//! Frames that were guessed lead nowhere by themselves: the words of the frame before them count.
//!
//! Where there are no such words nothing is read late: of an absent page with the stack pointer on it, as
//! while the kernel copies it after a fork, and beyond the copy of a function that runs with a larger frame of its own than is copied. Frames
//! found with late memory are marked as heuristic all the same, and a walk that fails with it ends as one that ran out of stack.
//!
//! A sample may have the lines of the stack beyond its copy that the thread's samples before needed ([`OuterLines`]): they are as
//! they were then, and count as copied. So a thread's first samples are read late, and those after its outer frames have changed.
//!
//! Calls whose returns are trapped are those of the sample: what was in the place of the kernel's address then is so for late
//! words, too, of calls that have not returned since.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::sync::Arc;

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::wire::{OuterLines, OuterPlaces, PAGE_SIZE, SampleFlags, SampleHeader, TrappedReturns};
use rustc_hash::FxHashMap;
use unwinder::{CopiedStack, StackMemory, StackReadError};

use super::outside::{Outside, Question, Subject};
use super::snapshots::{Leading, Page, Snapshots, Used, Word, digest, look, page_and_offset};
use super::stretch::Stretches;
use crate::procfs;
use crate::records::SourceRecord;
use crate::this_machine::read_exact_at;

/// Pages of code kept in one round.
const MAX_PAGES: usize = 256;

/// Pages of code kept for when their processes have ended: 4 MiB.
const MAX_CODE_PAGES: usize = 1024;

/// Words that one walk may read late: two for each frame of the deepest stack.
const MAX_READS: u32 = 2048;

/// Whose memory it is: a process's, asked for by one of its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pid: Pid,
    thread: Tid,
}

impl Owner {
    /// The thread that was sampled.
    pub(super) fn of(header: &SampleHeader) -> Self {
        Self { pid: Pid(header.pid), thread: Tid(header.tid) }
    }

    /// Both in one, as it is asked for.
    fn number(self) -> u64 {
        u64::from(self.pid.0) << 32 | u64::from(self.thread.0)
    }
}

/// Pages of other processes' memory as they were in this round, and their code as it was last.
#[derive(Debug, Default)]
pub(super) struct LateMemory {
    /// Whether the processes are gone, as those of a recording that was made earlier.
    is_gone: bool,
    /// Who is asked for it.
    pub(super) outside: Outside,
    /// The memory asked for last.
    open: Option<(Owner, File)>,
    /// Of code, by pid and address; `None` for a page that could not be read.
    pages: FxHashMap<(Pid, u64), Option<Page>>,
    /// Of stacks.
    snapshots: Snapshots,
    /// Code as it was when it was last read: a process's last samples are unwound when it may have ended, and code that a JIT compiler
    /// has made is in no file. One that runs is asked itself, whatever program had its pid before.
    code: FxHashMap<(Pid, u64), Page>,
    stretches: Stretches,
}

impl LateMemory {
    /// That of processes that are gone.
    pub(super) fn gone() -> Self {
        Self { is_gone: true, ..Self::default() }
    }

    /// That which is asked for of somebody else than the machine.
    pub(super) fn of(outside: Outside) -> Self {
        Self { outside, ..Self::default() }
    }

    /// The round up to `watermark` is over: the next one reads anew.
    pub(super) fn end_round(&mut self, watermark: Nanos) {
        self.open = None;
        self.pages.clear();
        self.snapshots.end_round();
        self.stretches.end_round(watermark);
    }

    /// The end of the memory that can be read where a sample has its stack end.
    fn end_of_stack(&mut self, sample: &SampleHeader) -> u64 {
        if self.is_gone { sample.stack_end } else { self.stretches.end(sample, &mut self.outside) }
    }

    /// A word of a stack, if those that lead there are in memory before it is read and behind that.
    fn word<const N: usize>(
        &mut self,
        used: &mut Used,
        owner: Owner,
        address: u64,
        leading: Leading,
    ) -> Option<[u8; N]> {
        if self.is_gone {
            return None;
        }
        let (start, offset) = page_and_offset(address);
        let known = self.snapshots.page(owner.pid, start, leading);
        let page = if let Some(page) = known {
            Arc::clone(page)
        } else {
            self.snapshots.begin_look(used, owner.pid, start).then_some(())?;
            let at = start | digest(leading);
            let question = Question { at, ..Question::new(Subject::StackPage, owner.number()) };
            let Self { outside, open, snapshots, .. } = self;
            let looked = outside.ask(question, || {
                let memory = memory_of(open, owner)?;
                look(start, leading, |address, bytes| read_exact_at(memory, bytes, address).ok())
            });
            snapshots.keep(used, (owner.pid, start, leading), looked)?
        };
        page.get(offset..)?.first_chunk().copied()
    }

    /// Fills `buffer` with the code that lies at `address`, or lay there before the process ended, and says how many bytes could be had.
    pub(super) fn code(&mut self, owner: Owner, address: u64, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let (start, offset) = page_and_offset(address.wrapping_add(filled as u64));
            let Some(page) = self.code_page(owner, start) else { break };
            let bytes = &page[offset..];
            let len = bytes.len().min(rest.len());
            rest[..len].copy_from_slice(&bytes[..len]);
            filled += len;
        }
        filled
    }

    fn code_page(&mut self, owner: Owner, start: u64) -> Option<Page> {
        let key = (owner.pid, start);
        let Some(page) = self.page(owner, start).cloned() else {
            return self.code.get(&key).cloned();
        };
        if self.code.len() >= MAX_CODE_PAGES {
            self.code.clear();
        }
        self.code.insert(key, Page::clone(&page));
        Some(page)
    }

    /// The page that starts there, as it is in this round.
    fn page(&mut self, owner: Owner, start: u64) -> Option<&Page> {
        if !self.pages.contains_key(&(owner.pid, start)) {
            if self.pages.len() >= MAX_PAGES {
                self.pages.clear();
            }
            let page = self.read(owner, start);
            self.pages.insert((owner.pid, start), page);
        }
        self.pages.get(&(owner.pid, start))?.as_ref()
    }

    fn read(&mut self, owner: Owner, start: u64) -> Option<Page> {
        if self.is_gone {
            return None;
        }
        let Self { outside, open, .. } = self;
        let question = Question { at: start, ..Question::new(Subject::Page, owner.number()) };
        outside.ask(question, || {
            let mut page = [0; PAGE_SIZE];
            read_exact_at(memory_of(open, owner)?, &mut page, start).ok()?;
            Some(Arc::new(page))
        })
    }
}

/// The memory of a process, which stays open for the next question about the same one.
fn memory_of(open: &mut Option<(Owner, File)>, owner: Owner) -> Option<&File> {
    if open.as_ref().is_none_or(|(open, _)| *open != owner) {
        let mut folders = procfs::folders(owner.pid, owner.thread);
        let memory = folders.find_map(|folder| File::open(format!("{folder}/mem")).ok())?;
        *open = Some((owner, memory));
    }
    open.as_ref().map(|(_, memory)| memory)
}

/// A copied stack that goes on in the process's memory.
pub(super) struct LateStack<'a> {
    copied: CopiedStack<'a>,
    returns: Option<&'a TrappedReturns>,
    outer: Option<&'a OuterLines>,
    header: &'a SampleHeader,
    /// Addresses up to this one may be read late; 0 for a stack that was copied whole.
    end: Cell<u64>,
    /// Whether the walk led beyond the mapping where the kernel had the stack end.
    left_mapping: Cell<bool>,
    memory: &'a RefCell<LateMemory>,
    reads: Cell<u32>,
    used: Cell<Used>,
    /// Whether anything of it may be read late.
    may_be_late: bool,
    /// The words read last.
    read_last: Cell<[Word; 2]>,
    /// Those that the outermost known frame was found by.
    leading: Cell<[Word; 2]>,
    /// Lines beyond the copy that were read last, and how many were read.
    beyond: Cell<([u64; OuterLines::MOST], usize)>,
}

impl<'a> LateStack<'a> {
    pub(super) fn new(
        copied: CopiedStack<'a>,
        record: &SourceRecord<'a>,
        memory: &'a RefCell<LateMemory>,
    ) -> Self {
        let SourceRecord { header, returns, outer, .. } = *record;
        let has = |flag| header.flags().has(flag);
        let end = if has(SampleFlags::STACK_CUT) { header.stack_end } else { 0 };
        let may_be_late = has(SampleFlags::STACK_CUT) || has(SampleFlags::MAPPING_END) || header.absent != 0;
        Self {
            copied,
            returns,
            outer,
            header,
            end: Cell::new(end),
            left_mapping: Cell::new(false),
            memory,
            reads: Cell::new(0),
            used: Cell::default(),
            may_be_late,
            read_last: Cell::default(),
            leading: Cell::default(),
            beyond: Cell::default(),
        }
    }

    /// A frame was found by rules with what was read last.
    #[inline]
    pub(super) fn found_frame(&self) {
        if self.may_be_late {
            self.leading.set(self.read_last.get());
        }
    }

    fn owner(&self) -> Owner {
        Owner::of(self.header)
    }

    /// Whether a word that is not in the copy for this reason may be asked for.
    fn goes_on(&self, address: u64, missing: StackReadError) -> bool {
        let [_, last] = self.leading.get();
        last.address != 0
            && match missing {
                StackReadError::Beyond => self.goes_on_to(address),
                // What is absent behind an unknown end need not be the stack's.
                StackReadError::Absent => !self.header.flags().has(SampleFlags::BOUND_UNKNOWN),
                StackReadError::Below => false,
            }
    }

    /// Whether what lies at an address beyond the copy may be of the stack.
    fn goes_on_to(&self, address: u64) -> bool {
        let header = self.header;
        if address >= header.stack_end
            && header.flags().has(SampleFlags::MAPPING_END)
            && !self.left_mapping.replace(true)
        {
            self.end.set(self.memory.borrow_mut().end_of_stack(header));
        }
        address < self.end.get()
    }

    /// A word of memory, if those of the outermost known frame were there when it was read.
    fn late<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let [first, last] = self.leading.get();
        let leading = [if first.address == 0 { last } else { first }, last];
        let mut used = self.used.get();
        let word = self.memory.borrow_mut().word(&mut used, self.owner(), address, leading);
        self.used.set(used);
        word
    }

    /// Whether anything but the copy was used.
    pub(super) fn was_read_late(&self) -> bool {
        self.reads.get() > 0
    }

    /// Whether the walk led beyond the mapping where the kernel had the stack end.
    pub(super) fn has_left_mapping(&self) -> bool {
        self.left_mapping.get()
    }

    /// Where further samples of the thread find what this one had to be read late for.
    pub(super) fn outer_places(&self) -> Option<OuterPlaces> {
        let (lines, read) = self.beyond.get();
        // Of others the kernel copies none: where their mapping goes on is asked for anew.
        let is_cut = self.header.flags().has(SampleFlags::STACK_CUT);
        let first = *lines.first().filter(|_| is_cut && self.was_read_late() && read > 0)?;
        let lines = std::array::from_fn(|line| if line < read { lines[line] } else { first });
        Some(OuterPlaces { stack_end: self.header.stack_end, pid: self.header.pid, reserved: 0, lines })
    }

    /// A word of a stack beyond its copy was read.
    fn note_beyond(&self, address: u64) {
        let (mut lines, read) = self.beyond.get();
        let line = address - address % OuterLines::LINE as u64;
        if !lines.contains(&line) {
            // The walk goes outwards: of too many those are kept that lie there.
            lines[read % OuterLines::MOST] = line;
            self.beyond.set((lines, read + 1));
        }
    }

    /// A word beyond the copy, as it was when the sample was taken.
    fn outer<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        self.outer?.word(address)
    }
}

impl LateStack<'_> {
    /// What `copied` is of the word at `address`, or if that is not in the copy, the word of `N` bytes in memory.
    #[inline]
    fn read<const N: usize, T: Copy + Into<u64>>(
        &self,
        address: u64,
        copied: Result<T, StackReadError>,
        of_bytes: impl FnOnce([u8; N]) -> T,
    ) -> Result<T, StackReadError> {
        match copied {
            Ok(value) => {
                self.note::<N>(address, value);
                Ok(value)
            }
            Err(missing) => {
                let bytes = if let Some(bytes) = self.outer(address) {
                    bytes
                } else if self.reads.get() < MAX_READS && self.goes_on(address, missing) {
                    let late = self.late(address).ok_or(missing)?;
                    self.reads.set(self.reads.get() + 1);
                    late
                } else {
                    return Err(missing);
                };
                if missing == StackReadError::Beyond {
                    self.note_beyond(address);
                }
                let value = of_bytes(bytes);
                self.note::<N>(address, value);
                Ok(value)
            }
        }
    }

    #[inline]
    fn note<const N: usize>(&self, address: u64, value: impl Into<u64>) {
        if self.may_be_late {
            let [_, last] = self.read_last.get();
            self.read_last.set([last, Word { address, value: value.into(), is_long: N == 8 }]);
        }
    }

    /// What lay at an address of the stack before returns were trapped.
    #[inline]
    fn original(&self, address: u64, value: u64) -> u64 {
        self.returns.map_or(value, |returns| returns.original(address, value))
    }
}

impl StackMemory for LateStack<'_> {
    #[inline]
    fn read_u64(&self, address: u64) -> Result<u64, StackReadError> {
        let read = self.read(address, self.copied.read_u64(address), u64::from_le_bytes);
        read.map(|value| self.original(address, value))
    }

    #[inline]
    fn read_u32(&self, address: u64) -> Result<u32, StackReadError> {
        let read = self.read(address, self.copied.read_u32(address), u32::from_le_bytes);
        read.map(|value| self.original(address, value.into()) as u32)
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::source::EventIndex;

    fn bare(header: &SampleHeader) -> SourceRecord<'_> {
        SourceRecord::bare(EventIndex::CLOCK, header)
    }

    /// Of this process, with a cut stack of 1024 words.
    fn cut(start: u64) -> SampleHeader {
        let mut header: SampleHeader = bytemuck::Zeroable::zeroed();
        (header.pid, header.tid) = (std::process::id(), std::process::id());
        (header.stack_end, header.flags) = (start + 1024 * 8, SampleFlags::STACK_CUT);
        header
    }

    #[test]
    fn a_stack_that_was_cut_goes_on_in_memory() {
        let words: Vec<u64> = (0..1024).map(|word| word * 3).collect();
        let start = words.as_ptr() as u64;
        let bytes: Vec<u8> = words[..16].iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut header: SampleHeader = bytemuck::Zeroable::zeroed();
        header.pid = std::process::id();
        header.tid = header.pid;
        header.stack_end = start + 1024 * 8;
        let memory = RefCell::default();
        let changed = {
            let mut other = bytes.clone();
            other[15 * 8] ^= 1;
            other
        };

        let whole = LateStack::new(CopiedStack::new(start, &bytes, 0), &bare(&header), &memory);
        assert_eq!(whole.read_u64(start + 16 * 8), Err(StackReadError::Beyond), "not cut: there is no more");

        // The kernel took some mapping's end for the stack's; it lies in the middle of memory.
        let cut_short = SampleHeader {
            tid: header.pid,
            stack_end: start + 16 * 8,
            flags: SampleFlags::MAPPING_END,
            ..header
        };
        let cut_short = LateStack::new(CopiedStack::new(start, &bytes, 0), &bare(&cut_short), &memory);
        assert_eq!(cut_short.read_u64(start + 15 * 8), Ok(45));
        cut_short.found_frame();
        assert!(!cut_short.has_left_mapping());
        assert_eq!(cut_short.read_u64(start + 1000 * 8), Ok(3000));
        assert!(cut_short.has_left_mapping() && cut_short.was_read_late());
        assert_eq!(cut_short.read_u64(u64::MAX - 7), Err(StackReadError::Beyond));

        header.flags = SampleFlags::STACK_CUT;
        let cut = LateStack::new(CopiedStack::new(start, &bytes, 0), &bare(&header), &memory);
        assert_eq!(cut.read_u64(start + 15 * 8), Ok(45));
        assert_eq!(cut.read_u64(start + 1000 * 8), Err(StackReadError::Beyond), "no frame was found by that");
        assert_eq!(cut.read_u64(start + 15 * 8), Ok(45));
        cut.found_frame();
        assert!(!cut.was_read_late());
        assert_eq!(cut.read_u64(start + 1000 * 8), Ok(3000));
        assert!(cut.was_read_late());
        assert_eq!(cut.read_u64(start + 1024 * 8), Err(StackReadError::Beyond));

        let cut = LateStack::new(CopiedStack::new(start, &bytes, 0), &bare(&header), &memory);
        assert_eq!(cut.read_u32(start + 15 * 8), Ok(45));
        cut.found_frame();
        assert_eq!(cut.read_u32(start + 1000 * 8), Ok(3000));
        assert!(cut.was_read_late());

        let returned = LateStack::new(CopiedStack::new(start, &changed, 0), &bare(&header), &memory);
        assert_eq!(returned.read_u64(start + 15 * 8), Ok(44));
        returned.found_frame();
        assert_eq!(
            returned.read_u64(start + 1000 * 8),
            Err(StackReadError::Beyond),
            "another function's frame by now"
        );

        (header.pid, header.tid) = (0, 0);
        let gone = LateStack::new(CopiedStack::new(start, &bytes, 0), &bare(&header), &memory);
        assert_eq!(gone.read_u64(start + 15 * 8), Ok(45));
        gone.found_frame();
        assert_eq!(gone.read_u64(start + 1000 * 8), Err(StackReadError::Beyond));
    }

    #[test]
    fn lines_of_a_sample_are_as_they_were_then() {
        let words: Vec<u64> = (0..1024).map(|word| word * 3).collect();
        let start = words.as_ptr() as u64;
        let bytes: Vec<u8> = words[..16].iter().flat_map(|word| word.to_le_bytes()).collect();
        let header = cut(start);
        let memory = RefCell::default();
        let at = |word: u64| start + word * 8;
        let line_of = |address: u64| address - address % OuterLines::LINE as u64;

        let late = LateStack::new(CopiedStack::new(start, &bytes, 0), &bare(&header), &memory);
        assert_eq!(late.read_u64(at(15)), Ok(45));
        late.found_frame();
        assert_eq!(late.outer_places(), None, "all of it was copied");
        assert_eq!(late.read_u64(at(1000)), Ok(3000));
        let places = late.outer_places().unwrap();
        assert_eq!(places.lines, [line_of(at(1000)); OuterLines::MOST]);
        assert_eq!((places.pid, places.stack_end), (header.pid, header.stack_end));

        // The lines of a sample whose thread had others there when it was taken than it has by now.
        let mut lines: OuterLines = bytemuck::Zeroable::zeroed();
        (lines.lines[0], lines.bytes[0]) = (line_of(at(1000)), [1; OuterLines::LINE]);
        let record = SourceRecord { outer: Some(&lines), ..bare(&header) };
        let exact = LateStack::new(CopiedStack::new(start, &bytes, 0), &record, &memory);
        assert_eq!(exact.read_u64(at(15)), Ok(45));
        exact.found_frame();
        assert_eq!(exact.read_u64(at(1000)), Ok(0x0101_0101_0101_0101));
        exact.found_frame();
        assert!(!exact.was_read_late());
        assert_eq!(exact.outer_places(), None, "there is no more to know");
        assert_eq!(exact.read_u64(at(500)), Err(StackReadError::Beyond), "what led there is not there now");

        // Of more lines than there is room for the outermost ones are known.
        let deep = LateStack::new(CopiedStack::new(start, &bytes, 0), &bare(&header), &memory);
        assert_eq!(deep.read_u64(at(15)), Ok(45));
        deep.found_frame();
        let read: Vec<u64> = (16..1024).step_by(8).map(at).collect();
        assert!(read.iter().all(|&address| deep.read_u64(address).is_ok()));
        let mut known = deep.outer_places().unwrap().lines;
        known.sort_unstable();
        let outermost: Vec<u64> =
            read[read.len() - OuterLines::MOST..].iter().map(|&address| line_of(address)).collect();
        assert_eq!(known.as_slice(), outermost);
    }

    #[test]
    fn trapped_returns_are_replaced_in_late_memory_too() {
        const TRAMPOLINE: u64 = 0x7fff_ffff_e000;
        let mut words = vec![TRAMPOLINE; 1024];
        (words[1], words[1001]) = (5, 6);
        let start = words.as_ptr() as u64;
        let bytes: Vec<u8> = words[..16].iter().flat_map(|word| word.to_le_bytes()).collect();
        let header = cut(start);
        let mut returns: TrappedReturns = bytemuck::Zeroable::zeroed();
        (returns.trampoline, returns.count) = (TRAMPOLINE, 3);
        for (call, word) in returns.calls.iter_mut().zip([0, 1000, 1001]) {
            (call.stack, call.address) = (start + word * 8, 0x4000 + word);
        }
        let memory = RefCell::default();
        let record = SourceRecord { returns: Some(&returns), ..bare(&header) };
        let stack = LateStack::new(CopiedStack::new(start, &bytes, 0), &record, &memory);
        // The word that leads out of the copy is a replaced one: it is unchanged all the same.
        assert_eq!(stack.read_u64(start), Ok(0x4000));
        stack.found_frame();
        assert_eq!(stack.read_u64(start + 1000 * 8), Ok(0x4000 + 1000));
        assert_eq!(stack.read_u64(start + 1001 * 8), Ok(6), "the call has returned since");
        assert_eq!(stack.read_u64(start + 1002 * 8), Ok(TRAMPOLINE), "trapped since");
        assert!(stack.was_read_late());
    }

    #[test]
    fn code_is_kept_when_its_process_has_ended() {
        // What it prints it prints when its code is mapped, which it is not yet as soon as it is executed.
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let pid = Pid(child.id());
        let owner = Owner { pid, thread: Tid(child.id()) };
        let maps = fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap();
        let code = maps.lines().find(|line| line.contains(" r-xp ")).unwrap();
        let start = u64::from_str_radix(code.split_once('-').unwrap().0, 16).unwrap();
        let mut memory = LateMemory::default();
        let (mut running, mut ended) = ([0; 64], [0; 64]);
        let read = memory.code(owner, start + 0x20, &mut running);
        child.kill().unwrap();
        child.wait().unwrap();
        memory.end_round(Nanos(1));
        assert_eq!((read, memory.code(owner, start + 0x20, &mut ended)), (64, 64));
        assert_eq!(running, ended);
        assert_ne!(running, [0; 64]);
        assert_eq!(memory.code(owner, start + PAGE_SIZE as u64, &mut ended), 0, "never read");
        assert!(memory.page(owner, page_and_offset(start).0).is_none());
    }

    #[test]
    fn an_absent_page_is_read_where_what_led_to_it_is_unchanged() {
        let words: Vec<u64> = (0..4096).collect();
        let page = (words.as_ptr() as u64).next_multiple_of(PAGE_SIZE as u64);
        let value = |address: u64| (address - words.as_ptr() as u64) / 8;
        let bytes: Vec<u8> = (value(page)..)
            .take(1024)
            .flat_map(|word| if word < value(page) + 512 { word } else { 0 }.to_le_bytes())
            .collect();
        let mut header: SampleHeader = bytemuck::Zeroable::zeroed();
        header.pid = std::process::id();
        header.tid = header.pid;
        header.absent = 0b10;
        let memory = RefCell::default();
        let second = page + PAGE_SIZE as u64;
        let copied = CopiedStack::new(page, &bytes, 0b10);

        let stack = LateStack::new(copied, &bare(&header), &memory);
        assert_eq!(stack.read_u64(second + 8), Err(StackReadError::Absent), "nothing led there");
        assert_eq!(stack.read_u64(page + 8), Ok(value(page + 8)));
        stack.found_frame();
        assert_eq!(stack.read_u64(second + 8), Ok(value(second + 8)));
        assert!(stack.was_read_late());

        header.flags = SampleFlags::BOUND_UNKNOWN;
        let unbounded = LateStack::new(copied, &bare(&header), &memory);
        assert_eq!(unbounded.read_u64(page + 8), Ok(value(page + 8)));
        unbounded.found_frame();
        assert_eq!(unbounded.read_u64(second + 8), Err(StackReadError::Absent), "it may be no stack");
    }
}
