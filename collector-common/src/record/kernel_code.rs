//! Code that the kernel held for a part of the recording only: BPF programs and trampolines.
//!
//! When names are looked up, after the recording, the kernel itself no longer names what has been removed; and where
//! it lay, other code may lie. Code that was added while it was recorded is a module of its own
//! ([`ModuleKind::KernelCode`](super::ModuleKind::KernelCode)), so its frames are never mixed with those of what lay
//! there before. Code that was there before the recording, and was heard of when it was removed, is kept here.

use crate::ids::Svma;
use crate::intern::StringId;

/// Code at a range of kernel addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelCode {
    /// First address.
    pub start: Svma,
    /// First address after it.
    pub end: Svma,
    /// Its symbol, as `bpf_prog_6deef7357e7b4530_name`.
    pub name: StringId,
}

/// Code that was there from the start and was removed: pieces that do not overlap, found by address.
#[derive(Clone, Debug, Default)]
pub struct RemovedCodes {
    /// Sorted by address.
    codes: Vec<KernelCode>,
}

impl RemovedCodes {
    /// Adds a piece. An empty one has no address that it could name; one that overlaps another that was removed
    /// before was not there from the start.
    pub(super) fn add(&mut self, code: KernelCode) {
        let after = self.codes.partition_point(|other| other.end <= code.start);
        let is_free = self.codes.get(after).is_none_or(|other| code.end <= other.start);
        if code.start < code.end && is_free {
            self.codes.insert(after, code);
        }
    }

    /// The symbol of what lay at `address` when the recording started.
    pub fn at(&self, address: Svma) -> Option<StringId> {
        let code = self.codes.get(self.codes.partition_point(|code| code.end <= address))?;
        (code.start <= address).then_some(code.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_was_removed_lay_there_at_the_start() {
        let mut codes = RemovedCodes::default();
        for (start, end, name) in
            [(100, 200, 1), (300, 310, 2), (305, 400, 3), (199, 201, 4), (7, 7, 5), (8, 6, 6)]
        {
            codes.add(KernelCode { start: Svma(start), end: Svma(end), name: StringId(name) });
        }
        let at = |address| codes.at(Svma(address));
        assert_eq!([at(99), at(200), at(7), at(310), at(400)], [None; 5]);
        assert_eq!([at(100), at(199)], [Some(StringId(1)); 2]);
        assert_eq!([at(300), at(309)], [Some(StringId(2)); 2]);
    }
}
