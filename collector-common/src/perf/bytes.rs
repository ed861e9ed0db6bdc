//! Bytes in one or two pieces: a record may begin at the end of a ring and go on at its start.

use std::borrow::Cow;
use std::fmt;

/// Borrowed bytes in at most two pieces. Comparison is by content: where the seam lies makes no difference.
#[derive(Clone, Copy, Default)]
pub struct Bytes<'a> {
    pub(super) first: &'a [u8],
    pub(super) second: &'a [u8],
}

impl<'a> Bytes<'a> {
    /// Of a ring's two pieces, in the order they are read.
    pub const fn wrapped(first: &'a [u8], second: &'a [u8]) -> Self {
        Self { first, second }
    }

    /// How many bytes there are.
    pub const fn len(&self) -> usize {
        self.first.len() + self.second.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.first.is_empty() && self.second.is_empty()
    }

    /// The byte at `index`.
    pub fn get(&self, index: usize) -> Option<u8> {
        let in_second = || self.second.get(index - self.first.len());
        self.first.get(index).or_else(in_second).copied()
    }

    /// The first `at` bytes, and the others; `None` if there are fewer.
    pub fn split_at_checked(&self, at: usize) -> Option<(Self, Self)> {
        if let Some((head, tail)) = self.first.split_at_checked(at) {
            return Some((Self::from(head), Self::wrapped(tail, self.second)));
        }
        let (head, tail) = self.second.split_at_checked(at - self.first.len())?;
        Some((Self::wrapped(self.first, head), Self::from(tail)))
    }

    /// The two pieces; either may be empty.
    pub const fn pieces(&self) -> [&'a [u8]; 2] {
        [self.first, self.second]
    }

    /// The bytes as one slice, if they are in one piece.
    pub const fn as_slice(&self) -> Option<&'a [u8]> {
        if self.second.is_empty() {
            Some(self.first)
        } else if self.first.is_empty() {
            Some(self.second)
        } else {
            None
        }
    }

    /// The bytes as one slice, copied if they are in two pieces.
    pub fn to_cow(&self) -> Cow<'a, [u8]> {
        self.as_slice().map_or_else(|| Cow::Owned(self.pieces().concat()), Cow::Borrowed)
    }

    /// Copies as many bytes as fit; the number copied.
    pub fn copy_to(&self, target: &mut [u8]) -> usize {
        let mut done = 0;
        for piece in self.pieces() {
            let room = target.get_mut(done..).unwrap_or_default();
            let len = piece.len().min(room.len());
            room[..len].copy_from_slice(&piece[..len]);
            done += len;
        }
        done
    }

    /// Byte by byte.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<'a> {
        self.first.iter().chain(self.second).copied()
    }

    /// What comes before the first NUL; all if there is none.
    #[must_use]
    pub fn until_nul(&self) -> Self {
        let nul = |piece: &[u8]| piece.iter().position(|&byte| byte == 0);
        if let Some(end) = nul(self.first) {
            return Self::from(&self.first[..end]);
        }
        let end = nul(self.second).unwrap_or(self.second.len());
        Self::wrapped(self.first, &self.second[..end])
    }
}

impl<'a> From<&'a [u8]> for Bytes<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self { first: bytes, second: &[] }
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Bytes<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::from(bytes.as_slice())
    }
}

impl<'a> From<&'a Vec<u8>> for Bytes<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::from(bytes.as_slice())
    }
}

impl PartialEq for Bytes<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.as_slice(), other.as_slice()) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => self.len() == other.len() && self.iter().eq(other.iter()),
        }
    }
}

impl Eq for Bytes<'_> {}

impl PartialEq<[u8]> for Bytes<'_> {
    fn eq(&self, other: &[u8]) -> bool {
        *self == Bytes::from(other)
    }
}

impl PartialEq<&[u8]> for Bytes<'_> {
    fn eq(&self, other: &&[u8]) -> bool {
        *self == Bytes::from(*other)
    }
}

impl fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.to_cow().escape_ascii())
    }
}

/// Text in a field of bytes: the field, of which the text is what comes before the first NUL.
///
/// The kernel ends text with a NUL and fills the field with NULs to a multiple of 8.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    field: Bytes<'a>,
    is_whole: bool,
}

impl<'a> Text<'a> {
    /// Text to be written, with a NUL behind it and the field filled up.
    pub fn new(text: impl Into<Bytes<'a>>) -> Self {
        Self { field: text.into(), is_whole: false }
    }

    /// A field as it was found; it is written as it is.
    pub fn from_field(field: Bytes<'a>) -> Self {
        Self { field, is_whole: true }
    }

    /// The text.
    pub fn bytes(&self) -> Bytes<'a> {
        self.field.until_nul()
    }

    /// The text for people to read, with a mark in the place of what is not UTF-8.
    pub fn to_string_lossy(&self) -> Cow<'a, str> {
        match self.bytes().to_cow() {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The field, and whether it is to be written as it is.
    pub(super) fn field(&self) -> (Bytes<'a>, bool) {
        (self.field, self.is_whole)
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Text<'_> {}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}
