//! The BPF programs that were loaded while a file was recorded, and their types: the sections
//! [`Feature::BPF_PROG_INFO`] and [`Feature::BPF_BTF`] (Linux 5.1).
//!
//! ```text
//! count u32   count x { info_len u32   data_len u32   arrays u64   info_len bytes   data_len bytes }
//! count u32   count x { id u32   len u32   len bytes }
//! ```
//!
//! Source: `write_bpf_prog_info` and `write_bpf_btf` of `tools/perf/util/header.c`, `struct perf_bpil` of `bpf-utils.h`,
//! `struct bpf_prog_info` of `include/uapi/linux/bpf.h`.

use super::section::list;
use super::{Feature, Features};
use crate::perf::Bytes;
use crate::perf::fields::Fields;

/// A BPF program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BpfProgram {
    /// Its kind, `BPF_PROG_TYPE_*`.
    pub kind: u32,
    /// The number that it had.
    pub id: u32,
    /// A hash of its instructions.
    pub tag: [u8; 8],
    /// Its name, 15 bytes at most; empty if it has none (before Linux 4.15).
    pub name: String,
    /// `struct bpf_prog_info`, as long as `perf` knew it. In the place of an address is where in [`Self::data`] that
    /// array is.
    pub info: Vec<u8>,
    /// Which arrays are in [`Self::data`]: a bit for each, `PERF_BPIL_*`.
    pub arrays: u64,
    /// The arrays: machine code, addresses and lengths of the functions, lines.
    pub data: Vec<u8>,
}

/// Types of BPF programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BpfTypes {
    /// The number that they had.
    pub id: u32,
    /// The types, in the format BTF.
    pub btf: Vec<u8>,
}

impl Features {
    /// The BPF programs that were loaded.
    pub fn bpf_programs(&self) -> Option<Vec<BpfProgram>> {
        self.decode(Feature::BPF_PROG_INFO, |fields| {
            let count = fields.u32()?;
            list(fields, u64::from(count), program)
        })
    }

    /// The types of the BPF programs.
    pub fn bpf_types(&self) -> Option<Vec<BpfTypes>> {
        self.decode(Feature::BPF_BTF, |fields| {
            let count = fields.u32()?;
            list(fields, u64::from(count), |fields| {
                let (id, len) = (fields.u32()?, fields.u32()?);
                Some(BpfTypes { id, btf: copied(fields, len)? })
            })
        })
    }
}

fn program(fields: &mut Fields<'_>) -> Option<BpfProgram> {
    /// What is between tag and name: lengths and addresses of the code, time, user, and maps.
    const BEFORE_NAME: usize = 48;
    const NAME: usize = 16;
    let (info_len, data_len, arrays) = (fields.u32()?, fields.u32()?, fields.u64()?);
    let (info, data) = (copied(fields, info_len)?, copied(fields, data_len)?);
    let mut front = Fields::new(Bytes::from(&info), fields.order);
    let (kind, id, tag) = (front.u32()?, front.u32()?, front.array()?);
    let name = front.bytes(BEFORE_NAME).and_then(|_| front.bytes(NAME)).unwrap_or_default();
    let name = String::from_utf8_lossy(&name.until_nul().to_cow()).into_owned();
    Some(BpfProgram { kind, id, tag, name, info, arrays, data })
}

fn copied(fields: &mut Fields<'_>, len: u32) -> Option<Vec<u8>> {
    Some(fields.bytes_of(len.into())?.to_cow().into_owned())
}
