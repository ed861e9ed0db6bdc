//! What a table reads of an image, and when; and what becomes of it where that fails.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use object::{Object, ObjectSection};

use super::{CLANG, GCC, LLD, Run, Space, Step, are_installed, run_clang, run_gcc, walked};
use crate::pe::PeMachine;
use crate::x86_64::X86_64;
use crate::{ImageBytes, TableError, UnwindTable};

/// An image that counts what is read of its text, and fails from a file offset on, and from a moment on.
pub(super) struct Watched {
    bytes: Vec<u8>,
    /// By file offset.
    text: Range<u64>,
    read_of_text: AtomicU64,
    /// By file offset: none of these can be read.
    unreadable: Range<u64>,
    /// How many more reads succeed.
    reads_left: AtomicU64,
}

impl Watched {
    pub(super) fn new(bytes: &[u8], unreadable: Range<u64>) -> Arc<Self> {
        let (at, size) = section(bytes, ".text");
        Arc::new(Watched {
            bytes: bytes.to_vec(),
            text: at..at + size,
            read_of_text: AtomicU64::new(0),
            unreadable,
            reads_left: AtomicU64::new(u64::MAX),
        })
    }

    pub(super) fn read_of_text(&self) -> u64 {
        self.read_of_text.load(Ordering::Relaxed)
    }
}

/// What a table is given, which drops it at last.
pub(super) struct Shared(pub(super) Arc<Watched>);

impl ImageBytes for Shared {
    fn size(&self) -> u64 {
        self.0.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let Shared(image) = self;
        let overlap = |range: &Range<u64>| {
            let end = range.end.min(offset + buffer.len() as u64);
            end.saturating_sub(range.start.max(offset))
        };
        let left =
            image.reads_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        image.read_of_text.fetch_add(overlap(&image.text), Ordering::Relaxed);
        let readable = match (left, overlap(&image.unreadable)) {
            (Err(_), _) => 0,
            (_, 0) => buffer.len(),
            _ => image.unreadable.start.saturating_sub(offset) as usize,
        };
        image.bytes.read_at(offset, &mut buffer[..readable])
    }
}

fn section(image: &[u8], name: &str) -> (u64, u64) {
    let file = object::File::parse(image).unwrap();
    file.section_by_name(name).unwrap().file_range().unwrap()
}

/// The functions of an image for x64 by its `.pdata`.
fn functions(image: &[u8]) -> Vec<Range<u64>> {
    let file = object::File::parse(image).unwrap();
    let entries = file.section_by_name(".pdata").unwrap();
    let address = |word: &[u8]| {
        file.relative_address_base() + u64::from(u32::from_le_bytes(*word.first_chunk().unwrap()))
    };
    let entries = entries.data().unwrap().chunks_exact(12).map(|entry| address(entry)..address(&entry[4..]));
    entries.filter(|entry| entry.start < entry.end).collect()
}

/// How many stops of a run are walked rightly.
fn right<A: PeMachine>(table: &UnwindTable<A>, steps: &[Step<A>]) -> usize {
    let space = Space::new(table);
    steps.iter().filter(|step| walked(&space, step).is_ok()).count()
}

fn runs() -> Vec<Run<X86_64>> {
    let gcc = are_installed(&[GCC]).then(|| run_gcc(&["-O2", "-fomit-frame-pointer"]));
    let clang = are_installed(&[CLANG, LLD]).then(|| run_clang(&["-O1", "-fwinx64-eh-unwindv2=disabled"]));
    gcc.into_iter().chain(clang).collect()
}

#[test]
fn a_functions_code_is_read_when_it_is_asked_for() {
    for Run { image, steps } in runs() {
        let functions = functions(&image);
        let watched = Watched::new(&image, 0..0);
        let table = UnwindTable::<X86_64>::from_pe(Shared(Arc::clone(&watched))).unwrap();
        assert_eq!((watched.read_of_text(), table.size_report().functions), (0, functions.len()));
        let mut read = 0;
        for step in &steps {
            let ip = step.registers.ip();
            let before = (watched.read_of_text(), table.size_report().functions_compiled);
            let Some(function) = functions.iter().find(|function| function.contains(&ip)) else { continue };
            assert!(table.rule_id(ip).is_some());
            let more = (watched.read_of_text() - before.0, table.size_report().functions_compiled - before.1);
            // Epilogues of version 2 are told without code.
            let expected = [(0, 0), (0, 1), (function.end - function.start, 1)];
            assert!(expected.contains(&more), "{more:?} for {function:x?}");
            read += usize::from(more.0 > 0);
        }
        assert!((5..=table.size_report().functions_compiled).contains(&read), "{read}");
        table.compile_all();
        let code: u64 = functions.iter().map(|function| function.end - function.start).sum();
        assert!((code / 2..=code).contains(&watched.read_of_text()), "each function once");
        assert_eq!(Arc::strong_count(&watched), 1, "what is compiled needs no image");
        assert_eq!(right(&table, &steps), steps.len());
    }
}

#[test]
fn without_code_there_are_no_epilogues() {
    for Run { image, steps } in runs() {
        let (at, size) = section(&image, ".text");
        let watched = Watched::new(&image, at..at + size);
        let table = UnwindTable::<X86_64>::from_pe(Shared(watched)).unwrap();
        let right = right(&table, &steps);
        assert!(right * 10 > steps.len() * 8 && right < steps.len(), "{right} of {}", steps.len());
    }
}

#[test]
fn what_was_read_before_an_image_failed_is_kept() {
    for Run { image, steps } in runs() {
        let watched = Watched::new(&image, 0..0);
        let table = UnwindTable::<X86_64>::from_pe(Shared(Arc::clone(&watched))).unwrap();
        let (first, rest) = steps.split_at(steps.len() / 4);
        assert_eq!(right(&table, first), first.len());
        watched.reads_left.store(0, Ordering::Relaxed);
        assert_eq!(right(&table, first), first.len());
        assert!(right(&table, rest) < rest.len());
    }
}

#[test]
fn an_image_that_fails_at_any_read() {
    for Run { image, steps } in runs() {
        let mut before = 0;
        for reads in 0.. {
            let watched = Watched::new(&image, 0..0);
            watched.reads_left.store(reads, Ordering::Relaxed);
            match UnwindTable::<X86_64>::from_pe(Shared(Arc::clone(&watched))) {
                Err(TableError::NotPe(_) | TableError::Unread(_)) => continue,
                table => {
                    let right = right(&table.unwrap(), &steps);
                    // Code may have been read, but not whether a jump in it leads to another part of its function.
                    assert!(right + 2 >= before, "{right} by {reads} reads, {before} by one less");
                    before = right;
                }
            }
            if watched.reads_left.load(Ordering::Relaxed) > 0 {
                break;
            }
        }
        assert_eq!(before, steps.len());
    }
}

#[test]
fn an_image_that_was_cut_since() {
    for Run { image, steps } in runs() {
        let size = image.len() as u64;
        for end in (0..size).step_by(97) {
            if let Ok(table) = UnwindTable::<X86_64>::from_pe(Shared(Watched::new(&image, end..size))) {
                right(&table, &steps);
                table.compile_all();
            }
        }
    }
}

/// Functions that are not listed are no leaves.
#[test]
fn an_image_that_ends_within_its_directory() {
    for Run { image, .. } in runs() {
        let (at, size) = section(&image, ".pdata");
        let table = |end: u64| UnwindTable::<X86_64>::from_pe(image[..end as usize].to_vec());
        for end in [at, at + 12, at + size - 1] {
            assert!(matches!(table(end), Err(TableError::Unread(_))), "{end}");
        }
        assert!(table(at + size).is_ok());
    }
}
