//! Which functions an unwind section describes: from `.eh_frame_hdr`'s sorted table where that can be trusted, else by
//! walking the section from entry to entry.
//!
//! `.eh_frame_hdr` is described by the Linux Standard Base, "Exception Frame Header". Linkers write one form of it
//! (32-bit entries relative to the section); any other form, a table that is cut off or out of order, or one whose
//! entries do not fit the FDEs they name, makes us walk.

use std::ops::Range;

use super::entries::covered_at;
use super::index::IndexEntry;
use super::sections::{EhFrameHdr, Parts};
use crate::Architecture;

/// `DW_EH_PE_udata4`, and `DW_EH_PE_datarel | DW_EH_PE_sdata4`.
const COUNT_UDATA4: u8 = 0x03;
const TABLE_DATAREL_SDATA4: u8 = 0x3b;
/// `version, eh_frame_ptr_enc, fde_count_enc, table_enc`, the 4-byte pointer, the count.
const HDR_SIZE: usize = 12;
/// How many of a table's entries are compared with the FDEs they name.
const SAMPLES: usize = 16;

/// All functions in the text of `parts`, in no order.
pub(crate) fn list<A: Architecture>(parts: &Parts) -> Vec<IndexEntry> {
    let frame = &parts.frame;
    let from_hdr = parts.hdr.as_ref().and_then(|hdr| hdr_entries::<A>(hdr, parts));
    let mut entries = from_hdr.unwrap_or_else(|| walk::<A>(0..frame.debug_start, parts));
    if frame.debug_start < frame.bytes.len() {
        entries.extend(walk::<A>(frame.debug_start..frame.bytes.len(), parts));
        // Where a function is in both, `.eh_frame` comes first.
        entries.sort_unstable();
        entries
            .dedup_by(|later, first| later.start == first.start && later.fde as usize >= frame.debug_start);
    }
    entries
}

fn le_u32(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// `None` if the table is not one to trust.
fn hdr_entries<A: Architecture>(hdr: &EhFrameHdr, parts: &Parts) -> Option<Vec<IndexEntry>> {
    let &[version, pointer_encoding, COUNT_UDATA4, TABLE_DATAREL_SDATA4, ..] = hdr.bytes.as_slice() else {
        return None;
    };
    let four_byte_pointer = matches!(pointer_encoding & 0x0f, 0x03 | 0x0b);
    let section = parts.frame.bases.eh_frame.section?;
    let count = le_u32(&hdr.bytes, 8)? as usize;
    let table = hdr.bytes.get(HDR_SIZE..HDR_SIZE.checked_add(count.checked_mul(8)?)?)?;
    if version != 1 || !four_byte_pointer || count == 0 {
        return None;
    }
    let mut entries = Vec::with_capacity(count);
    let mut previous = 0;
    for pair in table.chunks_exact(8) {
        let [start, fde] = [0, 4].map(|at| {
            let relative = le_u32(pair, at).unwrap_or_default() as i32;
            A::WORD.offset(hdr.address, relative.into())
        });
        let fde = fde.checked_sub(section).filter(|&fde| fde < parts.frame.debug_start as u64)?;
        if start < previous {
            return None;
        }
        previous = start;
        entries.extend(entry(start, fde, parts));
    }
    (!entries.is_empty() && samples_agree::<A>(&entries, parts)).then_some(entries)
}

/// An entry, if it lies in the text. Linkers leave FDEs of discarded functions behind, with address 0.
fn entry(start: u64, fde: u64, parts: &Parts) -> Option<IndexEntry> {
    let relative = u32::try_from(start.checked_sub(parts.text_start)?).ok()?;
    (relative < parts.text_size).then_some(IndexEntry { start: relative, fde: fde as u32 })
}

fn samples_agree<A: Architecture>(entries: &[IndexEntry], parts: &Parts) -> bool {
    let step = (entries.len() / SAMPLES).max(1);
    let mut last = None;
    entries.iter().step_by(step).chain(entries.last()).all(|entry| {
        let covered = covered_at::<A>(&parts.frame, entry.fde as usize, &mut last);
        covered.is_ok_and(|covered| covered.start == parts.text_start + u64::from(entry.start))
    })
}

/// Steps over the entries in `section`, a part of the sections' bytes, by their lengths. A zero length ends a part of it,
/// not necessarily all: linkers concatenate parts that have their own terminators.
fn walk<A: Architecture>(section: Range<usize>, parts: &Parts) -> Vec<IndexEntry> {
    let bytes = parts.frame.bytes.get(..section.end).unwrap_or_default();
    let mut entries = Vec::new();
    let mut last = None;
    let mut offset = section.start;
    while let Some(length) = le_u32(bytes, offset) {
        let here = offset;
        let body = match length {
            0 => {
                offset += 4;
                continue;
            }
            u32::MAX => {
                let Some(length) = bytes.get(here + 4..).and_then(|rest| rest.first_chunk::<8>()) else {
                    break;
                };
                (here + 12, u64::from_le_bytes(*length))
            }
            length => (here + 4, u64::from(length)),
        };
        let Some(next) = usize::try_from(body.1).ok().and_then(|length| body.0.checked_add(length)) else {
            break;
        };
        if next > bytes.len() {
            break;
        }
        offset = next;
        // A CIE, or an entry that makes no sense, is stepped over.
        if let Ok(covered) = covered_at::<A>(&parts.frame, here, &mut last)
            && !covered.is_empty()
        {
            entries.extend(entry(covered.start, here as u64, parts));
        }
    }
    entries
}
