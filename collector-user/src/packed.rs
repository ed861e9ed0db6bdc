//! Values as a journal has them: numbers little-endian, what has a length behind it as 32 bits, an option and a choice as a byte before
//! what they hold. What is read may be anybody's: nothing is set aside for a length that is told, and what does not fit is `None`.

use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Tid, Uid};

/// What is left of packed bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unpacker<'a> {
    rest: &'a [u8],
}

impl<'a> Unpacker<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// So many bytes, if there are.
    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(head)
    }

    /// Bytes with their length before them.
    pub(crate) fn counted(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(u32::unpack(self)?).ok()?;
        self.bytes(len)
    }

    /// All that is left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// A value that is all that is left.
    pub(crate) fn whole<T: Packed>(mut self) -> Option<T> {
        T::unpack(&mut self).filter(|_| self.rest.is_empty())
    }
}

/// A value that can be packed. None takes no bytes at all.
pub(crate) trait Packed: Sized {
    /// Adds it to `out`.
    fn pack(&self, out: &mut Vec<u8>);

    /// Takes it from there.
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self>;
}

/// Adds bytes with their length before them. Of more than 4 GiB, which nothing here has, those beyond are left out.
pub(crate) fn pack_counted(bytes: &[u8], out: &mut Vec<u8>) {
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    len.pack(out);
    out.extend_from_slice(&bytes[..bytes.len().min(len as usize)]);
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Packed for $number {
            fn pack(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
                let bytes = from.bytes(size_of::<Self>())?;
                Some(Self::from_le_bytes(bytes.try_into().ok()?))
            }
        })*
    };
}

numbers!(u8, u16, u32, u64, i32);

/// Has structs packed field by field, in this order.
macro_rules! packed {
    ($($name:ty { $($field:tt),* $(,)? })*) => {
        $(impl $crate::packed::Packed for $name {
            fn pack(&self, out: &mut Vec<u8>) {
                $($crate::packed::Packed::pack(&self.$field, out);)*
            }

            fn unpack(from: &mut $crate::packed::Unpacker<'_>) -> Option<Self> {
                Some(Self { $($field: $crate::packed::Packed::unpack(from)?),* })
            }
        })*
    };
}

pub(crate) use packed;

packed! {
    Avma { 0 }
    FileOffset { 0 }
    Nanos { 0 }
    Pid { 0 }
    Tid { 0 }
    Uid { 0 }
}

impl Packed for bool {
    fn pack(&self, out: &mut Vec<u8>) {
        u8::from(*self).pack(out);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        match u8::unpack(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Packed for String {
    fn pack(&self, out: &mut Vec<u8>) {
        pack_counted(self.as_bytes(), out);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        Some(std::str::from_utf8(from.counted()?).ok()?.to_owned())
    }
}

impl Packed for Box<[u8]> {
    fn pack(&self, out: &mut Vec<u8>) {
        pack_counted(self, out);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        Some(from.counted()?.into())
    }
}

impl<T: Packed> Packed for Option<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.is_some().pack(out);
        if let Some(value) = self {
            value.pack(out);
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        if bool::unpack(from)? { T::unpack(from).map(Some) } else { Some(None) }
    }
}

impl<T: Packed> Packed for Vec<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        let len = u32::try_from(self.len()).unwrap_or(u32::MAX);
        len.pack(out);
        self.iter().take(len as usize).for_each(|value| value.pack(out));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        let len = u32::unpack(from)?;
        let mut all = Self::new();
        for _ in 0..len {
            all.push(T::unpack(from)?);
        }
        Some(all)
    }
}

impl<A: Packed, B: Packed> Packed for (A, B) {
    fn pack(&self, out: &mut Vec<u8>) {
        self.0.pack(out);
        self.1.pack(out);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        Some((A::unpack(from)?, B::unpack(from)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packed<T: Packed>(value: &T) -> Vec<u8> {
        let mut out = Vec::new();
        value.pack(&mut out);
        out
    }

    type Value = Vec<(Option<String>, (u64, Vec<(bool, i32)>))>;

    #[test]
    fn a_length_is_no_promise() {
        assert_eq!(Unpacker::new(&[255, 255, 255, 255, 1, 2]).whole::<Vec<u16>>(), None);
        assert_eq!(Unpacker::new(&[255, 255, 255, 255]).whole::<String>(), None);
        assert_eq!(Unpacker::new(&[2, 0, 0, 0, 1]).whole::<Box<[u8]>>(), None);
        assert_eq!(Unpacker::new(&[2]).whole::<bool>(), None, "neither");
        assert_eq!(Unpacker::new(&[1, 0, 0]).whole::<u16>(), None, "more than that");
        assert_eq!(packed(&Nanos(0x102)), [2, 1, 0, 0, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(value: Value, end: prop::sample::Index) {
            let bytes = packed(&value);
            prop_assert_eq!(Unpacker::new(&bytes).whole::<Value>(), Some(value));
            let cut = &bytes[..end.index(bytes.len())];
            prop_assert_eq!(Unpacker::new(cut).whole::<Value>(), None);
        }

        #[test]
        fn noise_is_no_value_or_one(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Some(value) = Unpacker::new(&bytes).whole::<Value>() {
                prop_assert_eq!(packed(&value), bytes);
            }
        }
    }
}
