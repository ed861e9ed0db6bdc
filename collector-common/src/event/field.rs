//! One field of a format, and the resolved reference by which its value is asked for.

use std::sync::atomic::{AtomicU64, Ordering};

use super::kind::{Extent, FieldKind, FloatWidth, Place, Width};
use crate::byte_order::ByteOrder;

/// A field as its source declares it.
#[derive(Clone, Debug)]
pub struct EventField {
    name: Box<str>,
    type_name: Box<str>,
    kind: FieldKind,
    extent: Extent,
    place: Place,
    kernel: Option<KernelStorage>,
}

/// What the Linux kernel takes a tracepoint's field for, by its format file. Its own filters compare that, and it may be
/// another number than a reader's: of an `int` argument of a system call the whole register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelStorage {
    /// In bytes.
    pub size: u32,
    /// Whether its highest bit is a sign.
    pub signed: bool,
}

impl EventField {
    /// A field; `type_name` is the type in the words of its source (`unsigned char`, `win:UInt32`), for people.
    pub fn new(
        name: impl Into<Box<str>>,
        type_name: impl Into<Box<str>>,
        kind: FieldKind,
        extent: Extent,
        place: Place,
    ) -> Self {
        Self { name: name.into(), type_name: type_name.into(), kind, extent, place, kernel: None }
    }

    /// The same, of a tracepoint: [`Event::kernel_filter`](super::Event::kernel_filter) compares such fields alone.
    #[must_use]
    pub fn in_kernel(self, storage: KernelStorage) -> Self {
        Self { kernel: Some(storage), ..self }
    }

    /// What the kernel takes it for, if it is of a tracepoint.
    pub fn kernel_storage(&self) -> Option<KernelStorage> {
        self.kernel
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its type in the words of its source.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// What one element is.
    pub fn kind(&self) -> &FieldKind {
        &self.kind
    }

    /// How many elements, and where they are.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Where it starts.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The same field of another format, which has all of this one's fields.
    pub(super) fn moved_to(&self, format: FormatId) -> Self {
        let extent = match self.extent {
            Extent::CountOf(counter) => Extent::CountOf(counter.moved_to(format)),
            extent => extent,
        };
        Self { extent, ..self.clone() }
    }

    /// Bytes that it takes in place, if all events have the same.
    pub fn fixed_size(&self) -> Option<u32> {
        match self.extent {
            Extent::One => self.kind.size(),
            Extent::Array(count) => self.kind.size()?.checked_mul(count),
            Extent::DataLoc | Extent::RelLoc => Some(Width::W32.bytes()),
            Extent::ZeroTerminated
            | Extent::LengthPrefixed(_)
            | Extent::CountPrefixed(_)
            | Extent::CountOf(_)
            | Extent::Rest => None,
        }
    }

    /// Whether the value is a list: neither one element nor text.
    pub fn is_array(&self) -> bool {
        self.extent != Extent::One && !self.kind.is_text()
    }

    /// How a value at a fixed place is loaded.
    pub(super) fn access(&self, order: ByteOrder) -> Access {
        if self.extent != Extent::One || order != ByteOrder::NATIVE {
            return Access::Walk;
        }
        match &self.kind {
            FieldKind::Unsigned(width) => Access::unsigned(*width),
            FieldKind::Pointer(width) => Access::unsigned(width.width()),
            FieldKind::Signed(Width::W8) => Access::I8,
            FieldKind::Signed(Width::W16) => Access::I16,
            FieldKind::Signed(Width::W32) => Access::I32,
            FieldKind::Signed(Width::W64) => Access::I64,
            FieldKind::Float(FloatWidth::W32) => Access::F32,
            FieldKind::Float(FloatWidth::W64) => Access::F64,
            _ => Access::Walk,
        }
    }
}

/// Stands for a field of one format. Resolved once with [`EventFormat::field_ref`], then used for each event: where
/// all before the field has a fixed size, a getter is a check of bounds and a load.
///
/// [`EventFormat::field_ref`]: super::EventFormat::field_ref
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventFieldRef {
    /// The format's identity and, below it, the [`Access`]: a getter checks both at once.
    key: u64,
    /// The place among the fields and, below it, in 32 bits, where the field starts if the access is a load. Two numbers
    /// of 64 bits travel in registers.
    place: u64,
}

impl EventFieldRef {
    pub(super) fn new(format: FormatId, access: Access, offset: u32, index: u16) -> Self {
        Self { key: format.with(access), place: u64::from(index) << 32 | u64::from(offset) }
    }

    fn moved_to(self, format: FormatId) -> Self {
        Self { key: format.0 | self.key & FormatId::ACCESS, ..self }
    }

    /// Its place in [`EventFormat::fields`](super::EventFormat::fields).
    pub(super) fn index(self) -> u16 {
        (self.place >> 32) as u16
    }

    /// Where it starts, if the access is a load.
    #[inline]
    pub(super) fn offset(self) -> u32 {
        self.place as u32
    }

    pub(super) fn is_of(self, format: FormatId) -> bool {
        self.key & !FormatId::ACCESS == format.0
    }

    /// Whether it is of this format and so accessed.
    #[inline]
    pub(super) fn is(self, format: FormatId, access: Access) -> bool {
        self.key == format.with(access)
    }
}

/// What tells a format from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FormatId(u64);

impl FormatId {
    /// Bits that an [`Access`] takes.
    const ACCESS: u64 = 0xff;

    /// One that no other format has; 2^56 of them take centuries.
    pub(super) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(Self::ACCESS + 1, Ordering::Relaxed))
    }

    #[inline]
    fn with(self, access: Access) -> u64 {
        self.0 | access as u64
    }
}

/// How a field's value is had: by one load at a known place, in the machine's byte order, or by way of its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Access {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    Walk,
}

impl Access {
    fn unsigned(width: Width) -> Self {
        match width {
            Width::W8 => Self::U8,
            Width::W16 => Self::U16,
            Width::W32 => Self::U32,
            Width::W64 => Self::U64,
        }
    }
}
