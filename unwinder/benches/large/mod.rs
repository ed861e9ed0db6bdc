//! Files that are larger than any of this machine: the code and the unwind information of several of its files in one, each
//! elsewhere than in its own. So functions and rules are what compilers make, and gimli's reading of those files is the truth of
//! this one.
//!
//! ```text
//!  text   | of the first |   | of the second |                               | of the third |   ...
//!                                             .eh_frame of all  .eh_frame_hdr
//! ```

#[path = "../../tests/fuzzing/image.rs"]
#[allow(dead_code, reason = "made for tests, which use all of it")]
mod image;

use std::num::NonZeroU64;
use std::ops::Range;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EndianSlice, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindSection,
};
use object::{Object, ObjectSection};
use unwinder::x86_64::Registers;
use unwinder::{AddressSpace, Mapping, StackMemory, StackReadError, UnwindTable, Unwinder};

use image::Machine;

/// What FDEs have their addresses in: `DW_EH_PE_pcrel | DW_EH_PE_sdata4`.
const POINTERS: u8 = 0x1b;
const PAGE: u64 = 4096;

pub(crate) struct Large {
    /// The files, and by how much their addresses are more here.
    originals: Vec<(Vec<u8>, u64)>,
    text: Range<u64>,
    pub(crate) bytes: Vec<u8>,
}

/// The parts of a file.
struct Parts<'a> {
    text: Range<u64>,
    code: &'a [u8],
    frames: &'a [u8],
    frames_at: u64,
}

impl<'a> Parts<'a> {
    fn of(file: &object::File<'a>) -> Option<Self> {
        let parts = Self::found(file)?;
        let (frames, bases) = parts.frames();
        let mut entries = frames.entries(&bases);
        while let Some(entry) = entries.next().ok()? {
            if let CieOrFde::Cie(cie) = entry
                && cie.fde_address_encoding().is_none_or(|encoding| encoding.0 != POINTERS)
            {
                return None;
            }
        }
        Some(parts)
    }

    fn found(file: &object::File<'a>) -> Option<Self> {
        let text = file.section_by_name(".text")?;
        let frames = file.section_by_name(".eh_frame")?;
        Some(Parts {
            text: text.address()..text.address() + text.size(),
            code: text.data().ok()?,
            frames: frames.data().ok()?,
            frames_at: frames.address(),
        })
    }

    fn frames(&self) -> (EhFrame<EndianSlice<'a, LittleEndian>>, BaseAddresses) {
        let bases = BaseAddresses::default().set_eh_frame(self.frames_at).set_text(self.text.start);
        (EhFrame::new(self.frames, LittleEndian), bases)
    }

    /// An address in the middle of the function at `start`, whose entry is at `at`, and where its return address is then; `None` if
    /// that goes by other registers than `rsp` and `rbp`, or the function has no length.
    fn return_address(&self, at: usize, start: u64) -> Option<(u64, u64)> {
        const IP: Register = Register(16);
        let (frames, bases) = self.frames();
        let fde = frames.fde_from_offset(&bases, at.into(), EhFrame::cie_from_offset).unwrap();
        let address = start + fde.len() / 2;
        let mut context = UnwindContext::new();
        let row = fde.unwind_info_for_address(&frames, &bases, &mut context, address).ok()?;
        let &CfaRule::RegisterAndOffset { register: Register(register @ (6 | 7)), offset } = row.cfa() else {
            return None;
        };
        let Some(RegisterRule::Offset(below)) = row.register(IP) else { return None };
        Some((address, registers()[usize::from(register)].wrapping_add_signed(offset + below)))
    }

    /// Where the entries of functions in the text are, and the address that each has; and where the last of all entries ends.
    fn functions(&self) -> (Vec<(usize, u64)>, usize) {
        let word = |at: usize| self.frames.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        let (mut functions, mut at) = (Vec::new(), 0);
        while let Some(length) = word(at).filter(|&length| length != 0) {
            assert_ne!(length, u32::MAX, "entries of more than 4 GiB");
            if word(at + 4) != Some(0) {
                let distance = i64::from(word(at + 8).unwrap().cast_signed());
                let address = (self.frames_at + at as u64 + 8).wrapping_add_signed(distance);
                functions.extend(self.text.contains(&address).then_some((at, address)));
            }
            at += 4 + length as usize;
        }
        (functions, at)
    }
}

impl Large {
    /// One of the largest libraries in `folder`, as many as have so many bytes of code together: the code of each behind that of the
    /// one before, or else at equal distances within `span`. `None` where there are not that many.
    pub(crate) fn of_largest(folder: &str, wanted: u64, span: Option<u64>) -> Option<Self> {
        let mut sized: Vec<_> = std::fs::read_dir(folder)
            .ok()?
            .filter_map(|entry| {
                let entry = entry.ok().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))?;
                Some((entry.metadata().ok()?.len(), entry.path()))
            })
            .collect();
        sized.sort_unstable_by(|one, other| other.cmp(one));
        let (mut files, mut code) = (Vec::new(), 0);
        for (_, path) in sized {
            let bytes = std::fs::read(&path).ok()?;
            let file = object::File::parse(bytes.as_slice()).ok();
            let Some(size) = file.and_then(|file| Parts::of(&file).map(|parts| parts.code.len())) else {
                continue;
            };
            println!("{:24} has {:.1} MB of {}", "", size as f64 / 1e6, path.display());
            code += size as u64;
            files.push(bytes);
            if code >= wanted {
                return Self::of(files, span);
            }
        }
        None
    }

    fn of(files: Vec<Vec<u8>>, span: Option<u64>) -> Option<Self> {
        let parsed: Option<Vec<_>> =
            files.iter().map(|file| object::File::parse(file.as_slice()).ok()).collect();
        let parsed = parsed?;
        let parts: Option<Vec<Parts<'_>>> = parsed.iter().map(Parts::of).collect();
        let parts = parts?;
        let apart = span.map(|span| span / files.len() as u64);
        let (mut texts, mut next) = (Vec::new(), PAGE);
        for parts in &parts {
            let size = parts.text.end - parts.text.start;
            texts.push(next..next + size);
            next += apart.unwrap_or(size).next_multiple_of(PAGE);
        }
        // Within 2 GiB of all code.
        let mut ends = texts.iter().map(|text| text.end);
        let frames_at =
            if apart.is_some() { ends.min_by_key(|end| end.abs_diff(next / 2)) } else { ends.next_back() };
        let frames_at = frames_at?.next_multiple_of(PAGE);
        let (mut moved, mut table, mut shifts) = (Vec::new(), Vec::new(), Vec::new());
        for (parts, text) in parts.iter().zip(&texts) {
            let shift = text.start.wrapping_sub(parts.text.start);
            let (start, (functions, length)) = (moved.len(), parts.functions());
            moved.extend_from_slice(&parts.frames[..length]);
            for (at, address) in functions {
                let (entry, address) = (frames_at + (start + at) as u64, address.wrapping_add(shift));
                let distance = i32::try_from(address.wrapping_sub(entry + 8).cast_signed()).unwrap();
                moved[start + at + 8..][..4].copy_from_slice(&distance.to_le_bytes());
                table.push((address, entry));
            }
            shifts.push(shift);
        }
        moved.extend([0; 4]);
        let table_at = frames_at + moved.len() as u64;
        let header = search_table(table_at, frames_at, table);

        let mut sections = vec![(".eh_frame", frames_at, &moved[..]), (".eh_frame_hdr", table_at, &header)];
        sections.extend(parts.iter().zip(&texts).map(|(parts, text)| (".text", text.start, parts.code)));
        let bytes = image::with_texts(Machine::X86_64, &texts, &sections);
        let text = PAGE..texts.last()?.end;
        Some(Large { originals: files.into_iter().zip(shifts).collect(), text, bytes })
    }

    /// Of the rules of some functions of each file, how many lead to where those lead that gimli reads in the file, and how many
    /// there are.
    pub(crate) fn right(&self, table: &UnwindTable) -> (usize, usize) {
        const SAMPLES: usize = 400;
        let space = OneFile { table, text: self.text.clone() };
        let (mut right, mut all) = (0, 0);
        for (file, shift) in &self.originals {
            let file = object::File::parse(file.as_slice()).unwrap();
            let parts = Parts::of(&file).unwrap();
            let functions = parts.functions().0;
            for &(at, start) in functions.iter().step_by((functions.len() / SAMPLES).max(1)) {
                let Some((address, slot)) = parts.return_address(at, start) else { continue };
                let registers = Registers::new(address.wrapping_add(*shift), registers());
                let mut frames = Vec::new();
                Unwinder::new().unwind(&space, &registers, &Marked, |frame| frames.push(frame.address));
                all += 1;
                right += usize::from(frames.get(1) == Some(&Marked::word(slot)));
            }
        }
        (right, all)
    }
}

/// `.eh_frame_hdr`, as linkers make it (Linux Standard Base, "Exception Frame Header").
fn search_table(table_at: u64, frames_at: u64, mut table: Vec<(u64, u64)>) -> Vec<u8> {
    let relative = |address: u64, to: u64| i32::try_from(address.wrapping_sub(to).cast_signed()).unwrap();
    table.sort_unstable();
    let mut header = vec![1, POINTERS, 0x03, 0x3b];
    header.extend(relative(frames_at, table_at + 4).to_le_bytes());
    header.extend(u32::try_from(table.len()).unwrap().to_le_bytes());
    for (address, entry) in table {
        header.extend([address, entry].into_iter().flat_map(|value| relative(value, table_at).to_le_bytes()));
    }
    header
}

struct OneFile<'a> {
    table: &'a UnwindTable,
    text: Range<u64>,
}

impl AddressSpace for OneFile<'_> {
    fn lookup(&self, address: u64) -> Option<Mapping<'_>> {
        let Range { start, end } = self.text;
        self.text.contains(&address).then_some(Mapping { start, end, bias: 0, table: Some(self.table) })
    }

    fn generation(&self) -> Option<NonZeroU64> {
        None
    }
}

/// A stack on which each word tells its address, and is in no file.
struct Marked;

impl Marked {
    fn word(address: u64) -> u64 {
        address | 0x1111 << 32
    }
}

impl StackMemory for Marked {
    fn read_u64(&self, address: u64) -> Result<u64, StackReadError> {
        Ok(Self::word(address))
    }
}

/// By DWARF number: `rbp` is 6, `rsp` 7.
fn registers() -> [u64; 16] {
    let mut general = [0; 16];
    (general[6], general[7]) = (0x7800_0000, 0x7000_0000);
    general
}
