//! Unwind sections as they are found, in a file or in a caller's hands: addresses and bytes.

use std::ops::Range;

use gimli::BaseAddresses;

/// A section's address and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// Of its first byte.
    pub address: u64,
    /// All of it.
    pub bytes: &'a [u8],
}

/// Code that is of no ELF file, or of one that the caller reads, and its unwind sections.
///
/// All addresses are of one kind: those in the process (its mapping's bias is then 0), or any others that differ from
/// those by the bias.
#[derive(Clone, Debug, Default)]
pub struct UnwindSections<'a> {
    /// The code's addresses: less than 4 GiB.
    pub text: Range<u64>,
    /// `.eh_frame`. Pointers in it may be relative to its address and to the text's.
    pub eh_frame: Option<Section<'a>>,
    /// `.eh_frame_hdr`, which saves the search for functions in a large `.eh_frame`.
    pub eh_frame_hdr: Option<Section<'a>>,
    /// `.debug_frame`, unpacked.
    pub debug_frame: Option<&'a [u8]>,
}

/// `.eh_frame`, its `.eh_frame_hdr`, and what else their pointers may be relative to.
#[derive(Debug)]
pub(super) struct EhFrame<'a> {
    pub(super) frame: Section<'a>,
    pub(super) hdr: Option<Section<'a>>,
    /// The address of `.text`.
    pub(super) text: Option<u64>,
    /// The address of `.got`.
    pub(super) got: Option<u64>,
}

impl EhFrame<'_> {
    /// What its pointers are relative to when all addresses are moved by `shift`.
    pub(super) fn bases(&self, shift: u64) -> BaseAddresses {
        let moved = |address: u64| address.wrapping_add(shift);
        let mut bases = BaseAddresses::default().set_eh_frame(moved(self.frame.address));
        if let Some(hdr) = self.hdr {
            bases = bases.set_eh_frame_hdr(moved(hdr.address));
        }
        if let Some(text) = self.text {
            bases = bases.set_text(moved(text));
        }
        if let Some(got) = self.got {
            bases = bases.set_got(moved(got));
        }
        bases
    }
}
