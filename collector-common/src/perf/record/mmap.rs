//! Mappings: `PERF_RECORD_MMAP` and `PERF_RECORD_MMAP2`.

use super::Body;
use crate::ids::{Avma, BuildId, FileOffset, Pid, Tid};
use crate::perf::fields::Fields;
use crate::perf::write::{WriteError, Writer};
use crate::perf::{Misc, ParseConfig, Text};

/// `PERF_RECORD_MMAP`: a mapping was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap<'a> {
    /// The process; `u32::MAX` for the kernel's own.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// First address.
    pub start: Avma,
    /// Bytes.
    pub len: u64,
    /// Where in the file it starts.
    pub file_offset: FileOffset,
    /// Path as the process saw it, or a name such as `[vdso]` or `//anon`.
    pub path: Text<'a>,
}

impl<'a> Body<'a> for Mmap<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        Some(Self {
            pid: fields.pid()?,
            tid: fields.tid()?,
            start: fields.address()?,
            len: fields.u64()?,
            file_offset: fields.file_offset()?,
            path: Text::from_field(fields.remaining()),
        })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.pid(self.pid);
        writer.tid(self.tid);
        writer.address(self.start);
        writer.u64(self.len);
        writer.file_offset(self.file_offset);
        writer.text(self.path);
        Ok(())
    }
}

/// What file a mapping shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappedFile {
    /// As the kernel numbers it.
    Inode {
        /// Device major number.
        major: u32,
        /// Device minor number.
        minor: u32,
        /// Inode number; 0 for memory without a file.
        inode: u64,
        /// Inode generation.
        generation: u64,
    },
    /// By its build id (Linux 5.12); `None` if the record gives its length as 0.
    BuildId(Option<BuildId>),
}

impl MappedFile {
    fn read(fields: &mut Fields<'_>, is_build_id: bool) -> Option<Self> {
        if !is_build_id {
            let (major, minor) = (fields.u32()?, fields.u32()?);
            return Some(Self::Inode { major, minor, inode: fields.u64()?, generation: fields.u64()? });
        }
        let len = usize::from(fields.u8()?);
        let _reserved: [u8; 3] = fields.array()?;
        let bytes: [u8; BuildId::MAX] = fields.array()?;
        Some(Self::BuildId(BuildId::new(bytes.get(..len).unwrap_or(&bytes))))
    }

    fn write(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Inode { major, minor, inode, generation } => {
                writer.u32(*major);
                writer.u32(*minor);
                writer.u64(*inode);
                writer.u64(*generation);
            }
            Self::BuildId(id) => {
                let id = id.as_ref().map_or(&[][..], BuildId::as_bytes);
                writer.u8(id.len() as u8);
                writer.zeros(3);
                writer.bytes(id.into());
                writer.zeros(BuildId::MAX - id.len());
            }
        }
    }
}

/// `PERF_RECORD_MMAP2`: a mapping was made; with more of it than [`Mmap`] has.
///
/// [`Misc::MMAP_BUILD_ID`] says that [`Self::file`] is a build id, but only for events that asked for build ids: the
/// kernel leaves the bit set in what it writes to the events after such a one, which get an inode
/// (`perf_event_mmap_output` of `kernel/events/core.c`). So a build id is read with [`ParseConfig::build_id`] alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap2<'a> {
    /// The process; `u32::MAX` for the kernel's own.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// First address.
    pub start: Avma,
    /// Bytes.
    pub len: u64,
    /// Where in the file it starts.
    pub file_offset: FileOffset,
    /// The file.
    pub file: MappedFile,
    /// `PROT_*` bits.
    pub protection: u32,
    /// `MAP_*` bits.
    pub flags: u32,
    /// Path as the process saw it, or a name such as `[vdso]` or `//anon`.
    pub path: Text<'a>,
}

impl Mmap2<'_> {
    /// Whether the memory can be executed (`PROT_EXEC`).
    pub const fn is_executable(&self) -> bool {
        self.protection & 4 != 0
    }
}

impl<'a> Body<'a> for Mmap2<'a> {
    fn read(fields: &mut Fields<'a>, misc: Misc, config: &ParseConfig) -> Option<Self> {
        Some(Self {
            pid: fields.pid()?,
            tid: fields.tid()?,
            start: fields.address()?,
            len: fields.u64()?,
            file_offset: fields.file_offset()?,
            file: MappedFile::read(fields, config.build_id && misc.contains(Misc::MMAP_BUILD_ID))?,
            protection: fields.u32()?,
            flags: fields.u32()?,
            path: Text::from_field(fields.remaining()),
        })
    }

    fn write(&self, writer: &mut Writer<'_>, config: &ParseConfig) -> Result<(), WriteError> {
        if matches!(self.file, MappedFile::BuildId(_)) && !config.build_id {
            return Err(WriteError::BuildId);
        }
        writer.pid(self.pid);
        writer.tid(self.tid);
        writer.address(self.start);
        writer.u64(self.len);
        writer.file_offset(self.file_offset);
        self.file.write(writer);
        writer.u32(self.protection);
        writer.u32(self.flags);
        writer.text(self.path);
        Ok(())
    }

    /// The bit that says which of the two [`Self::file`] is.
    fn misc(&self, misc: Misc, config: &ParseConfig) -> Misc {
        match self.file {
            MappedFile::BuildId(_) => misc | Misc::MMAP_BUILD_ID,
            MappedFile::Inode { .. } if config.build_id => misc.without(Misc::MMAP_BUILD_ID),
            MappedFile::Inode { .. } => misc,
        }
    }
}
