//! The unwind table of a file, whichever of the architectures it is of that are recorded.

use std::cell::OnceCell;

use object::LittleEndian;
use object::elf::{EM_AARCH64, FileHeader64};
use object::read::elf::FileHeader as _;
use object::read::{FileKind, ReadRef};
use unwinder::aarch64::Aarch64;
use unwinder::x86::X86;
use unwinder::x86_64::X86_64;
use unwinder::{Architecture, TableError, UnreadSection, UnwindTable};

use super::image_file::ImageFile;

/// An unwind table.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one a file, and nearly all are of the larger kind")]
pub enum Table {
    /// Of an ELF file or a PE image for x86-64.
    X86_64(UnwindTable<X86_64>),
    /// Of one for 32-bit x86, which Linux runs beside the others.
    X86(UnwindTable<X86>),
    /// Of one for aarch64, of a recording that was made there.
    Aarch64(UnwindTable<Aarch64>),
}

/// An architecture whose processes are recorded.
pub trait Recorded: Architecture {
    /// The table, if it is of this architecture.
    fn of(table: &Table) -> Option<&UnwindTable<Self>>;
}

impl Recorded for X86_64 {
    fn of(table: &Table) -> Option<&UnwindTable<Self>> {
        match table {
            Table::X86_64(table) => Some(table),
            Table::X86(_) | Table::Aarch64(_) => None,
        }
    }
}

impl Recorded for X86 {
    fn of(table: &Table) -> Option<&UnwindTable<Self>> {
        match table {
            Table::X86(table) => Some(table),
            Table::X86_64(_) | Table::Aarch64(_) => None,
        }
    }
}

impl Recorded for Aarch64 {
    fn of(table: &Table) -> Option<&UnwindTable<Self>> {
        match table {
            Table::Aarch64(table) => Some(table),
            Table::X86_64(_) | Table::X86(_) => None,
        }
    }
}

impl Table {
    /// The table of an ELF file or a PE image; `debug` is asked for an ELF file's debug file where that is needed, `image` for what an
    /// image's table reads on in. An error for what is neither, one of another architecture, or one without rules.
    pub(super) fn read<'d, 'e, R: ReadRef<'d>, D: ReadRef<'e>>(
        data: R,
        debug: impl FnOnce() -> Option<D>,
        image: impl Fn() -> ImageFile,
    ) -> Result<Self, TableError> {
        match FileKind::parse(data)? {
            FileKind::Pe64 => Self::of_image(image),
            kind => Self::of_elf(kind, data, debug),
        }
    }

    /// That of a PE image. Addresses are relative to it, as its [`Segment`](super::Segment)s are.
    pub(crate) fn of_image(image: impl Fn() -> ImageFile) -> Result<Self, TableError> {
        match UnwindTable::from_pe_by_rva(image()) {
            Err(TableError::OtherPeMachine { .. }) => {
                UnwindTable::from_pe_by_rva(image()).map(Table::Aarch64)
            }
            table => table.map(Table::X86_64),
        }
    }

    fn of_elf<'d, 'e, R: ReadRef<'d>, D: ReadRef<'e>>(
        kind: FileKind,
        data: R,
        debug: impl FnOnce() -> Option<D>,
    ) -> Result<Self, TableError> {
        match kind {
            FileKind::Elf32 => UnwindTable::from_elf_with_debug(data, debug).map(Table::X86),
            _ if is_aarch64(data) => UnwindTable::from_elf_with_debug(data, debug).map(Table::Aarch64),
            _ => UnwindTable::from_elf_with_debug(data, debug).map(Table::X86_64),
        }
    }

    /// The section of the file that it was made without, and why.
    pub(super) fn unread(&self) -> Option<&UnreadSection> {
        match self {
            Table::X86_64(table) => table.unread(),
            Table::X86(table) => table.unread(),
            Table::Aarch64(table) => table.unread(),
        }
    }

    /// That of an ELF image in memory, which is known by now.
    pub(super) fn known(image: Option<&[u8]>) -> OnceCell<Option<Self>> {
        let table = |image| Self::of_elf(FileKind::parse(image).ok()?, image, || None::<&[u8]>).ok();
        OnceCell::from(image.and_then(table))
    }
}

fn is_aarch64<'data, R: ReadRef<'data>>(data: R) -> bool {
    let header = FileHeader64::<LittleEndian>::parse(data);
    header.is_ok_and(|header| header.e_machine(LittleEndian) == EM_AARCH64)
}
