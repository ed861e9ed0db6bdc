//! The entries of an unwind section: common information (CIE) and, for each function, a frame description (FDE).
//!
//! Source: DWARF 5, section 6.4.1; for `.eh_frame` the Linux Standard Base 5.0, "Exception Frames", and for its pointer
//! encodings "DWARF Exception Header Encoding" there; `B` and `G` of the augmentation are of the `AArch64` ABI.

use std::ops::Range;

use super::bytes::Bytes;
use super::compile::Malformed;
use super::row::Row;
use super::rules::Traits;
use super::sections::{FrameFormat, FrameSections};
use crate::Architecture;
use crate::word::Word;

/// Letters of an augmentation. There are not as many that have a meaning; and a CIE is parsed again for an FDE when others
/// were in between, so a long one would be read as often as there are FDEs.
const MAX_AUGMENTATION: usize = 16;

/// What FDEs have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cie<A: Architecture> {
    pub(super) code_factor: u64,
    pub(super) data_factor: i64,
    pub(super) traits: Traits,
    /// `DW_EH_PE_*` of the addresses in its FDEs.
    pub(super) pointers: u8,
    /// Whether FDEs have augmentation data, too.
    augmented: bool,
    /// The row that its instructions leave.
    pub(super) initial: Row<A>,
}

/// A function and the place of its instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fde<'a> {
    pub(super) start: u64,
    /// Behind its last address.
    pub(super) end: u64,
    pub(super) instructions: Bytes<'a>,
}

/// An entry's header: its bytes, and what its second word says.
struct Entry<'a> {
    body: Bytes<'a>,
    /// Where the second word is, and its value.
    id_at: usize,
    id: u64,
    is_wide: bool,
    format: FrameFormat,
}

impl<'a> Entry<'a> {
    fn at(section: &'a FrameSections, offset: usize) -> Option<Self> {
        let bytes = &section.bytes;
        let (format, section_end) = section.section_at(offset);
        let mut head = Bytes::new(bytes, offset, section_end);
        let length = head.u32()?;
        let is_wide = length == u32::MAX;
        let length = if is_wide { head.u64()? } else { length.into() };
        let id_at = head.position();
        let end = id_at.checked_add(usize::try_from(length).ok()?).filter(|&end| end <= section_end)?;
        let mut body = Bytes::new(bytes, id_at, end);
        // In `.eh_frame` it has four bytes whatever the length has.
        let id = match format {
            FrameFormat::DebugFrame if is_wide => body.u64()?,
            _ => body.u32()?.into(),
        };
        Some(Entry { body, id_at, id, is_wide, format })
    }

    fn is_cie(&self) -> bool {
        match (self.format, self.is_wide) {
            (FrameFormat::EhFrame, _) => self.id == 0,
            (FrameFormat::DebugFrame, false) => self.id == u32::MAX.into(),
            (FrameFormat::DebugFrame, true) => self.id == u64::MAX,
        }
    }
}

/// The offset of the CIE of the FDE at `offset`, and the FDE's bytes behind that.
pub(super) fn fde_at(section: &FrameSections, offset: usize) -> Result<(usize, Bytes<'_>), Malformed> {
    let entry = Entry::at(section, offset).ok_or(Malformed)?;
    if entry.is_cie() {
        return Err(Malformed);
    }
    let id = usize::try_from(entry.id).map_err(|_| Malformed)?;
    let cie = match entry.format {
        FrameFormat::EhFrame => entry.id_at.checked_sub(id),
        FrameFormat::DebugFrame => section.debug_start.checked_add(id),
    };
    Ok((cie.ok_or(Malformed)?, entry.body))
}

/// The addresses that the FDE at `offset` covers. `last` holds the CIE of the one before, which most share.
pub(super) fn covered_at<A: Architecture>(
    section: &FrameSections,
    offset: usize,
    last: &mut Option<(usize, Cie<A>)>,
) -> Result<Range<u64>, Malformed> {
    let (cie_offset, body) = fde_at(section, offset)?;
    let cie = match last.take() {
        Some((known, cie)) if known == cie_offset => cie,
        _ => Cie::parse(section, cie_offset)?.0,
    };
    let fde = Fde::parse(section, &cie, body)?;
    *last = Some((cie_offset, cie));
    Ok(fde.start..fde.end)
}

impl<'a> Fde<'a> {
    /// Parses what `fde_at` gave.
    pub(super) fn parse<A: Architecture>(
        section: &'a FrameSections,
        cie: &Cie<A>,
        mut body: Bytes<'a>,
    ) -> Result<Self, Malformed> {
        let start = pointer(section, &mut body, cie.pointers, A::WORD).ok_or(Malformed)?;
        let length = number(&mut body, cie.pointers, A::WORD).ok_or(Malformed)?;
        if cie.augmented {
            body.unsigned().and_then(|len| body.skip(len)).ok_or(Malformed)?;
        }
        Ok(Fde { start, end: start.checked_add(length).ok_or(Malformed)?, instructions: body })
    }
}

impl<A: Architecture> Cie<A> {
    /// The CIE at `offset`, still without its initial row, and its instructions.
    pub(super) fn parse(section: &FrameSections, offset: usize) -> Result<(Self, Bytes<'_>), Malformed> {
        let entry = Entry::at(section, offset).ok_or(Malformed)?;
        if !entry.is_cie() {
            return Err(Malformed);
        }
        let mut body = entry.body;
        Self::parse_body(section, &mut body).map(|cie| (cie, body)).ok_or(Malformed)
    }

    fn parse_body(section: &FrameSections, body: &mut Bytes<'_>) -> Option<Self> {
        let version = body.u8()?;
        let augmentation = body.text(MAX_AUGMENTATION)?;
        if !matches!(version, 1 | 3 | 4) {
            return None;
        }
        // The size of addresses, no segment selectors.
        if version == 4 && (u64::from(body.u8()?), body.u8()?) != (A::WORD.bytes(), 0) {
            return None;
        }
        if augmentation == b"eh" {
            // GCC 2's pointer to exception data.
            body.skip(A::WORD.bytes())?;
        }
        let (code_factor, data_factor) = (body.unsigned()?, body.signed()?);
        let return_address = if version == 1 { body.u8()?.into() } else { body.unsigned()? };
        let return_address = u8::try_from(return_address).ok()?;
        if usize::from(return_address) >= A::REGISTER_COUNT {
            return None;
        }
        let mut cie = Cie {
            code_factor,
            data_factor,
            traits: Traits { return_address, signal: false, signed: false },
            pointers: ABSOLUTE,
            augmented: false,
            initial: Row::EMPTY,
        };
        match augmentation {
            [] | b"eh" => {}
            [b'z', letters @ ..] => {
                cie.augmented = true;
                let len = body.unsigned()?;
                let mut data = *body;
                body.skip(len)?;
                cie.augment(section, letters, &mut data)?;
            }
            _ => return None,
        }
        Some(cie)
    }

    fn augment(&mut self, section: &FrameSections, letters: &[u8], data: &mut Bytes<'_>) -> Option<()> {
        for (at, letter) in letters.iter().enumerate() {
            match letter {
                // Where language-specific data and personality are matters to exceptions, not to a walk.
                b'L' => drop(data.u8()?),
                b'P' => {
                    let encoding = data.u8()?;
                    pointer(section, data, encoding & !INDIRECT, A::WORD)?;
                }
                b'R' => self.pointers = data.u8()?,
                b'S' => self.traits.signal = true,
                // Signed with the B key; memory tags.
                b'B' | b'G' => {}
                // What it means is not known, nor how much data it has: what comes behind can't be read. An address's form
                // must be; the rest says nothing that a walk can't do without.
                _ => return letters.iter().skip(at).all(|letter| *letter != b'R').then_some(()),
            }
        }
        Some(())
    }
}

const ABSOLUTE: u8 = 0;
const INDIRECT: u8 = 0x80;

/// A number in one of the forms of `DW_EH_PE_*`, sign-extended.
fn number(bytes: &mut Bytes<'_>, encoding: u8, word: Word) -> Option<u64> {
    Some(match encoding & 0x0f {
        0x0 => bytes.word(word)?,
        0x4 | 0xc => bytes.u64()?,
        0x1 => bytes.unsigned()?,
        0x2 => bytes.u16()?.into(),
        0x3 => bytes.u32()?.into(),
        0x9 => bytes.signed()?.cast_unsigned(),
        0xa => i64::from(bytes.u16()?.cast_signed()).cast_unsigned(),
        0xb => i64::from(bytes.u32()?.cast_signed()).cast_unsigned(),
        _ => return None,
    })
}

/// An address, as linked. Where it is indirect, nobody knows it without the process's memory.
pub(super) fn pointer(
    section: &FrameSections,
    bytes: &mut Bytes<'_>,
    encoding: u8,
    word: Word,
) -> Option<u64> {
    const ALIGNED: u8 = 0x50;
    let bases = &section.bases.eh_frame;
    let base = match encoding & 0xf0 {
        0x00 => section.shift_at(bytes.position()),
        0x10 => bases.section?.wrapping_add(bytes.position() as u64),
        0x20 => bases.text?,
        0x30 => bases.data?,
        ALIGNED => {
            let address = bases.section?.wrapping_add(bytes.position() as u64);
            bytes.skip(address.wrapping_neg() % word.bytes())?;
            let shift = section.shift_at(bytes.position());
            return bytes.word(word).map(|address| word.wrap(address.wrapping_add(shift)));
        }
        _ => return None,
    };
    Some(word.wrap(base.wrapping_add(number(bytes, encoding, word)?)))
}

#[cfg(test)]
mod tests {
    use super::{Cie, FrameSections};
    use crate::x86_64::X86_64;

    /// The form of addresses and the instructions of a CIE of version 1 with this augmentation and its data.
    fn parsed(augmentation: &str, data: &[u8]) -> Option<(u8, usize)> {
        let head = [&[0, 0, 0, 0, 1], augmentation.as_bytes(), &[0, 1, 0x78, 16, data.len() as u8]].concat();
        let body = [&head, data, &[0x0c, 7, 8, 0x90, 1]].concat();
        let bytes = [&(body.len() as u32).to_le_bytes(), body.as_slice()].concat();
        let debug_start = bytes.len();
        let section = FrameSections { bytes: bytes.into(), debug_start, ..FrameSections::default() };
        let (cie, instructions) = Cie::<X86_64>::parse(&section, 0).ok()?;
        Some((cie.pointers, instructions.remaining()))
    }

    #[test]
    fn letters_of_times_to_come_are_passed_over() {
        assert_eq!(parsed("zR", &[0x1b]), Some((0x1b, 5)));
        assert_eq!(parsed("zRSB", &[0x1b]), Some((0x1b, 5)));
        for letters in ["zRx", "zRxS", "zRxyL"] {
            assert_eq!(parsed(letters, &[0x1b, 1, 2, 3]), Some((0x1b, 5)), "{letters}");
        }
        // Where the form of addresses is cannot be told.
        assert_eq!(parsed("zxR", &[0x1b, 0x1b]), None);
        // Nor where instructions begin, without the data's size.
        assert_eq!(parsed("xR", &[0x1b]), None);
    }
}
