//! Security identifiers: whom Windows takes a user for (`SID` of `winnt.h`).

use std::fmt;

use super::kind::PointerWidth;

/// A security identifier as it lies in an event. Printed as Windows does: `S-1-5-21-…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sid<'a>(&'a [u8]);

impl<'a> Sid<'a> {
    /// What `bytes` start with: a revision, a count, 6 bytes of an authority, and so many little-endian 32-bit numbers.
    /// None if they are too few.
    pub fn from_start(bytes: &'a [u8]) -> Option<Self> {
        let [_, count, ..] = bytes else { return None };
        bytes.get(..8 + 4 * usize::from(*count)).map(Self)
    }

    /// One element of a field, and the bytes that it takes: an empty one where there is none.
    pub(super) fn element(before: Option<PointerWidth>, bytes: &'a [u8]) -> Option<(Self, usize)> {
        let Some(before) = before else {
            let sid = Self::from_start(bytes)?;
            return Some((sid, sid.0.len()));
        };
        if bytes.first_chunk() == Some(&[0; 4]) {
            return Some((Self(&[]), 4));
        }
        let before = 2 * before.width().bytes() as usize;
        let sid = Self::from_start(bytes.get(before..)?)?;
        Some((sid, before + sid.0.len()))
    }

    /// Its bytes; there are none where the event tells of no user.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl fmt::Display for Sid<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(([revision, _, authority @ ..], numbers)) = self.0.split_first_chunk::<8>() else {
            return Ok(());
        };
        let authority = authority.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        write!(out, "S-{revision}-{authority}")?;
        for number in numbers.as_chunks().0 {
            write!(out, "-{}", u32::from_le_bytes(*number))?;
        }
        Ok(())
    }
}
