//! Offsets of kernel structure members, read from the kernel's own type information
//! (`/sys/kernel/btf/vmlinux`).
//!
//! Reads the few structures that are needed in one pass over the type section, without building a type graph:
//! a tenth of the time a full parse takes. Layout: `include/uapi/linux/btf.h`.

use std::path::Path;

use thiserror::Error;

/// Where the kernel shows its types.
const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

const KIND_INT: u32 = 1;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_ENUM: u32 = 6;
const KIND_FUNC_PROTO: u32 = 13;
const KIND_VAR: u32 = 14;
const KIND_DATASEC: u32 = 15;
const KIND_DECL_TAG: u32 = 17;
const KIND_ENUM64: u32 = 19;

/// Anonymous structures are searched this deep.
const MAX_DEPTH: u32 = 8;

/// Why an offset is not known.
#[derive(Debug, Error)]
pub enum BtfError {
    /// The file is not there or cannot be read.
    #[error("{path} cannot be read ({source}){}", remedy(source))]
    Read {
        /// The file.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The bytes are not BTF.
    #[error(
        "the kernel's type information (/sys/kernel/btf/vmlinux) is malformed: boot another kernel, and report this one"
    )]
    Malformed,
    /// The kernel has no such structure or member.
    #[error(
        "the kernel's type information (/sys/kernel/btf/vmlinux) has no {0}: boot another kernel, and report this one"
    )]
    Missing(String),
}

/// What helps where the file can't be read.
fn remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            ": boot a kernel built with CONFIG_DEBUG_INFO_BTF=y, and have /sys mounted"
        }
        std::io::ErrorKind::PermissionDenied => ": run it with sudo",
        _ => ": have /sys mounted, and boot a kernel built with CONFIG_DEBUG_INFO_BTF=y",
    }
}

/// The kernel's type information.
pub struct KernelTypes {
    bytes: Vec<u8>,
    /// Where the string section starts and ends in `bytes`.
    strings: std::ops::Range<usize>,
    /// Position of each type in `bytes`; type ids start at 1.
    positions: Vec<u32>,
}

/// A type's fixed part: `struct btf_type`.
#[derive(Clone, Copy)]
struct Type {
    name: u32,
    info: u32,
    /// The size, or for a type that refers to another that one's id: a union in the kernel's header.
    size: u32,
}

impl Type {
    fn kind(self) -> u32 {
        self.info >> 24 & 0x1f
    }

    fn members(self) -> u32 {
        self.info & 0xffff
    }

    /// Whether member offsets carry bit-field sizes in their top byte.
    fn has_bitfields(self) -> bool {
        self.info >> 31 != 0
    }

    /// Bytes that follow the fixed part.
    fn extra(self) -> usize {
        let members = self.members() as usize;
        match self.kind() {
            KIND_INT | KIND_VAR | KIND_DECL_TAG => 4,
            KIND_ARRAY => 12,
            KIND_STRUCT | KIND_UNION | KIND_DATASEC | KIND_ENUM64 => members * 12,
            KIND_ENUM | KIND_FUNC_PROTO => members * 8,
            _ => 0,
        }
    }
}

impl KernelTypes {
    /// Reads the running kernel's.
    pub fn of_this_kernel() -> Result<Self, BtfError> {
        Self::read(Path::new(VMLINUX))
    }

    fn read(path: &Path) -> Result<Self, BtfError> {
        let bytes = std::fs::read(path)
            .map_err(|source| BtfError::Read { path: path.display().to_string(), source })?;
        Self::parse(bytes)
    }

    fn parse(bytes: Vec<u8>) -> Result<Self, BtfError> {
        const MAGIC: u32 = 0xeb9f;
        let word = |at: usize| word(&bytes, at).ok_or(BtfError::Malformed);
        if word(0)? & 0xffff != MAGIC {
            return Err(BtfError::Malformed);
        }
        let header = word(4)? as usize;
        let section = |at: usize| -> Result<std::ops::Range<usize>, BtfError> {
            let start = header.checked_add(word(at)? as usize).ok_or(BtfError::Malformed)?;
            let end = start.checked_add(word(at + 4)? as usize).ok_or(BtfError::Malformed)?;
            if end <= bytes.len() { Ok(start..end) } else { Err(BtfError::Malformed) }
        };
        let (types, strings) = (section(8)?, section(16)?);
        let mut positions = Vec::with_capacity(types.len() / 24);
        let mut at = types.start;
        while at < types.end {
            positions.push(at as u32);
            let fixed = fixed_part(&bytes, at).ok_or(BtfError::Malformed)?;
            at += 12 + fixed.extra();
        }
        Ok(Self { bytes, strings, positions })
    }

    /// The offset in bytes of a member, given as a path: `["task_struct", "thread", "fsbase"]`. Members of
    /// anonymous structures count as the enclosing one's.
    pub fn offset(&self, path: &[&str]) -> Result<u32, BtfError> {
        let missing = || BtfError::Missing(path.join("."));
        let (structure, members) = path.split_first().ok_or_else(missing)?;
        let mut ty = self.structure(structure).ok_or_else(missing)?;
        let mut bits = 0;
        for member in members {
            let (offset, of) = self.member(ty, member, 0).ok_or_else(missing)?;
            bits += offset;
            ty = of;
        }
        Ok(bits / 8)
    }

    /// The size in bytes of a structure.
    pub fn size(&self, structure: &str) -> Result<u32, BtfError> {
        let id = self.structure(structure).ok_or_else(|| BtfError::Missing(structure.to_owned()))?;
        self.ty(id).map(|(_, ty)| ty.size).ok_or(BtfError::Malformed)
    }

    /// The offset in bytes of a variable of each CPU, in what each CPU has of them.
    pub fn per_cpu(&self, variable: &str) -> Result<u32, BtfError> {
        /// The section of the kernel's image with all of them.
        const SECTION: &str = ".data..percpu";
        let ids = 1..=self.positions.len() as u32;
        let section = ids
            .filter_map(|id| self.ty(id))
            .find(|(_, ty)| ty.kind() == KIND_DATASEC && self.string_is(ty.name, SECTION));
        let found = section.and_then(|(at, section)| {
            (0..section.members() as usize).find_map(|index| {
                let entry = at + 12 + index * 12;
                let (_, of) = self.ty(word(&self.bytes, entry)?)?;
                self.string_is(of.name, variable).then(|| word(&self.bytes, entry + 4))?
            })
        });
        found.ok_or_else(|| BtfError::Missing(variable.to_owned()))
    }

    /// The id of a structure by its name.
    fn structure(&self, name: &str) -> Option<u32> {
        (1..=self.positions.len() as u32).find(|&id| {
            self.ty(id).is_some_and(|(_, ty)| ty.kind() == KIND_STRUCT && self.string_is(ty.name, name))
        })
    }

    /// Bit offset and type of a member.
    fn member(&self, structure: u32, name: &str, depth: u32) -> Option<(u32, u32)> {
        let (at, ty) = self.ty(self.resolve(structure))?;
        if depth > MAX_DEPTH || !matches!(ty.kind(), KIND_STRUCT | KIND_UNION) {
            return None;
        }
        (0..ty.members() as usize).find_map(|index| {
            let member = at + 12 + index * 12;
            let (label, of) = (word(&self.bytes, member)?, word(&self.bytes, member + 4)?);
            let mut offset = word(&self.bytes, member + 8)?;
            if ty.has_bitfields() {
                offset &= 0x00ff_ffff;
            }
            if self.string_is(label, name) {
                return Some((offset, of));
            }
            if self.string_is(label, "") {
                let (inner, of) = self.member(of, name, depth + 1)?;
                return Some((offset + inner, of));
            }
            None
        })
    }

    /// The type behind `const`, `volatile`, `restrict`, `typedef` and type tags.
    fn resolve(&self, mut id: u32) -> u32 {
        for _ in 0..MAX_DEPTH {
            match self.ty(id) {
                Some((_, ty)) if matches!(ty.kind(), 8..=11 | 18) => id = ty.size,
                _ => break,
            }
        }
        id
    }

    fn ty(&self, id: u32) -> Option<(usize, Type)> {
        let at = *self.positions.get(id.checked_sub(1)? as usize)? as usize;
        Some((at, fixed_part(&self.bytes, at)?))
    }

    fn string_is(&self, offset: u32, text: &str) -> bool {
        let start = self.strings.start + offset as usize;
        let end = start + text.len();
        end < self.strings.end && &self.bytes[start..end] == text.as_bytes() && self.bytes[end] == 0
    }
}

fn fixed_part(bytes: &[u8], at: usize) -> Option<Type> {
    Some(Type { name: word(bytes, at)?, info: word(bytes, at + 4)?, size: word(bytes, at + 8)? })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_and_cut_files_are_errors() {
        assert!(KernelTypes::parse(vec![0x5a; 4096]).is_err());
        let Ok(whole) = std::fs::read(VMLINUX) else {
            assert_ne!(std::env::var("COLLECTOR_LIVE").as_deref(), Ok("require"), "no {VMLINUX}");
            eprintln!("SKIPPED: no {VMLINUX} on this machine");
            return;
        };
        assert!(KernelTypes::parse(whole[..whole.len() / 2].to_vec()).is_err());
        let types = KernelTypes::parse(whole).unwrap();
        // `vm_start` is the first member of `vm_area_struct` in every kernel so far, `vm_end` the second, both
        // in an anonymous structure in an anonymous union.
        assert_eq!(types.offset(&["vm_area_struct", "vm_start"]).unwrap(), 0);
        assert_eq!(types.offset(&["vm_area_struct", "vm_end"]).unwrap(), 8);
        assert!(matches!(types.offset(&["task_struct", "no_such_member"]), Err(BtfError::Missing(_))));
        assert!(matches!(types.per_cpu("no_such_variable"), Err(BtfError::Missing(_))));
    }
}
