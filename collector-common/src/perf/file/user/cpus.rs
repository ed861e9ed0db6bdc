//! The CPUs that are recorded, in any of the ways to write them (Linux 4.5).
//!
//! ```text
//! type u16 = 0   count u16                     count CPUs of 16 bits; 0xffff is any
//! type u16 = 1   count u16   4 u16             count words of 32 bits, with a bit for each CPU
//! type u16 = 1   count u16   8 u16   0 u32     count words of 64 bits
//! type u16 = 2   any u8   0 u8   first u16   last u16          (Linux 6.0)
//! ```

use std::fmt;

use super::UserBody;
use crate::perf::fields::Fields;
use crate::perf::write::Writer;
use crate::perf::{ByteOrder, Bytes, Misc};

/// A list of numbers of 16, 32 or 64 bits, decoded as they are asked for.
#[derive(Clone, Copy)]
pub struct Numbers<'a> {
    bytes: Bytes<'a>,
    order: ByteOrder,
    /// Bytes of a number.
    size: usize,
}

impl<'a> Numbers<'a> {
    pub(super) fn read(fields: &mut Fields<'a>, size: usize, count: usize) -> Option<Self> {
        Some(Self { bytes: fields.bytes(count.checked_mul(size)?)?, order: fields.order, size })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        for number in self.iter() {
            match self.size {
                2 => writer.u16(number as u16),
                4 => writer.u32(number as u32),
                _ => writer.u64(number),
            }
        }
    }

    /// Bytes of a number: 2, 4 or 8.
    pub const fn size(&self) -> usize {
        self.size
    }

    /// How many numbers there are.
    pub const fn len(&self) -> usize {
        self.bytes.len() / self.size
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// From the first to the last.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<'a> {
        let (mut fields, size) = (Fields::new(self.bytes, self.order), self.size);
        std::iter::from_fn(move || match size {
            2 => fields.u16().map(u64::from),
            4 => fields.u32().map(u64::from),
            _ => fields.u64(),
        })
    }
}

impl PartialEq for Numbers<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.size == other.size && self.iter().eq(other.iter())
    }
}

impl Eq for Numbers<'_> {}

impl fmt::Debug for Numbers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// `PERF_RECORD_CPU_MAP`, and in other records `struct perf_record_cpu_map_data`: a set of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuMap<'a> {
    /// One after the other, 16 bits each.
    List(Numbers<'a>),
    /// A bit for each, in words of 32 or of 64 bits.
    Mask(Numbers<'a>),
    /// All from one to another.
    Range {
        /// Whether it has what stands for any CPU.
        has_any: bool,
        /// The first one.
        first: u16,
        /// The last one, which is in it.
        last: u16,
    },
}

impl<'a> CpuMap<'a> {
    /// What in a list stands for any CPU.
    const ANY: u64 = 0xffff;

    /// The CPUs, without what stands for any.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<'a> {
        let (list, mask, range) = match *self {
            Self::List(list) => (Some(list), None, None),
            Self::Mask(mask) => (None, Some(mask), None),
            Self::Range { first, last, .. } => (None, None, Some(u32::from(first)..=u32::from(last))),
        };
        let of_list = list.into_iter().flat_map(|list| list.iter()).filter(|cpu| *cpu != Self::ANY);
        let of_mask = mask.into_iter().flat_map(|mask| {
            let bits = mask.size as u32 * 8;
            let words = (0_u32..).step_by(bits as usize).zip(mask.iter());
            words.flat_map(move |(first, word)| {
                (0..bits).filter(move |bit| word >> bit & 1 != 0).map(move |bit| first + bit)
            })
        });
        of_list.map(|cpu| cpu as u32).chain(of_mask).chain(range.into_iter().flatten())
    }

    /// Whether it has what stands for any CPU: the events are those of threads, wherever they run.
    pub fn has_any(&self) -> bool {
        match self {
            Self::List(list) => list.iter().any(|cpu| cpu == Self::ANY),
            Self::Mask(_) => false,
            Self::Range { has_any, .. } => *has_any,
        }
    }
}

impl<'a> UserBody<'a> for CpuMap<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        match fields.u16()? {
            0 => {
                let count = fields.u16()?;
                Numbers::read(fields, 2, count.into()).map(Self::List)
            }
            1 => {
                let (count, size) = (fields.u16()?, fields.u16()?);
                match size {
                    4 => {}
                    8 => fields.bytes(4).map(|_padding| ())?,
                    _ => return None,
                }
                Numbers::read(fields, size.into(), count.into()).map(Self::Mask)
            }
            2 => {
                let [any, _padding] = fields.array()?;
                Some(Self::Range { has_any: any != 0, first: fields.u16()?, last: fields.u16()? })
            }
            _ => None,
        }
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        match self {
            Self::List(list) => {
                writer.u16(0);
                writer.u16(list.len() as u16);
                list.write(writer);
            }
            Self::Mask(mask) => {
                writer.u16(1);
                writer.u16(mask.len() as u16);
                writer.u16(mask.size as u16);
                writer.zeros(if mask.size == 8 { 4 } else { 0 });
                mask.write(writer);
            }
            Self::Range { has_any, first, last } => {
                writer.u16(2);
                writer.u8((*has_any).into());
                writer.u8(0);
                writer.u16(*first);
                writer.u16(*last);
            }
        }
    }
}
