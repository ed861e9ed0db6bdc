//! What the kernel tells of a map's descriptor: its type, size, flags and number, by `bpf_map_show_fdinfo` in `kernel/bpf/syscall.c`.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::{fs, io};

use super::map::MapKind;
use crate::sys::bpf;

/// Types of maps by their numbers, as `bpftool` calls them: `enum bpf_map_type` in `include/uapi/linux/bpf.h`.
const TYPES: [&str; 34] = [
    "unspec",
    "hash",
    "array",
    "prog_array",
    "perf_event_array",
    "percpu_hash",
    "percpu_array",
    "stack_trace",
    "cgroup_array",
    "lru_hash",
    "lru_percpu_hash",
    "lpm_trie",
    "array_of_maps",
    "hash_of_maps",
    "devmap",
    "sockmap",
    "cpumap",
    "xskmap",
    "sockhash",
    "cgroup_storage",
    "reuseport_sockarray",
    "percpu_cgroup_storage",
    "queue",
    "stack",
    "sk_storage",
    "devmap_hash",
    "struct_ops",
    "ringbuf",
    "inode_storage",
    "task_storage",
    "bloom_filter",
    "user_ringbuf",
    "cgrp_storage",
    "arena",
];

/// `BPF_F_PRESERVE_ELEMS`: what a descriptor put into the map stays when it is closed.
const KEEPS_ELEMENTS: u32 = 1 << 11;

/// `BPF_F_RB_OVERWRITE`
const OVERWRITES: u32 = 1 << 19;

/// What is known of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Info {
    map_type: u32,
    flags: u32,
    /// Of a ring bytes, else slots.
    pub(super) entries: u32,
    /// Its number; 0 where the kernel does not tell.
    pub(super) id: u32,
}

impl Info {
    /// `None` of what is no map.
    pub(super) fn read(fd: &OwnedFd) -> io::Result<Option<Self>> {
        Ok(Self::parse(&fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()))?))
    }

    fn parse(told: &str) -> Option<Self> {
        let number = |key: &str| number_of(told, key);
        Some(Self {
            map_type: number("map_type")?,
            flags: number("map_flags").unwrap_or(0),
            entries: number("max_entries").unwrap_or(0),
            id: number("map_id").unwrap_or(0),
        })
    }

    /// What gives its records, if it has any.
    pub(super) fn kind(self) -> Option<MapKind> {
        match TYPES.get(self.map_type as usize) {
            Some(&"ringbuf") => Some(MapKind::Ring),
            Some(&"perf_event_array") => Some(MapKind::PerfEvents),
            _ => None,
        }
    }

    /// Its type as `bpftool` calls it.
    pub(super) fn type_name(self) -> String {
        let name = TYPES.get(self.map_type as usize);
        name.map_or_else(|| format!("number {}", self.map_type), |name| (*name).to_owned())
    }

    /// Whether a ring's oldest records are written over.
    pub(super) fn overwrites(self) -> bool {
        self.flags & OVERWRITES != 0
    }

    /// Whether what a descriptor put into it stays when that is closed.
    pub(super) fn keeps_elements(self) -> bool {
        self.flags & KEEPS_ELEMENTS != 0
    }
}

/// A number of `fdinfo`, decimal or with `0x`.
fn number_of(told: &str, key: &str) -> Option<u32> {
    let value = told.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?.trim();
    match value.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

/// Maps that give records, of all that are loaded, as they are written in an event, the newest first: what someone may have meant who
/// named another. Nothing without `CAP_SYS_ADMIN`, and before Linux 4.13.
pub(super) fn loaded() -> Vec<String> {
    /// Of a machine with more, the first are looked at.
    const MOST_MAPS: usize = 4096;
    let ids = std::iter::successors(bpf::map_after(0).ok(), |id| bpf::map_after(*id).ok());
    // One may be gone when it is looked at.
    let mut named: Vec<String> = ids
        .take(MOST_MAPS)
        .filter_map(|id| {
            let fd = bpf::map_by_id(id).ok()?;
            let info = Info::read(&fd).ok()??;
            info.kind()?;
            let name = bpf::map_name(&fd).unwrap_or_default();
            Some(match String::from_utf8_lossy(&name) {
                name if name.is_empty() => format!("bpf:id:{id} ({})", info.type_name()),
                name => format!("bpf:id:{id} ({} {name})", info.type_name()),
            })
        })
        .collect();
    named.reverse();
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        // Of Linux 6.18.
        let told = "pos:\t0\nflags:\t02000002\nmnt_id:\t17\nino:\t67\nmap_type:\t27\nkey_size:\t0\nvalue_size:\t0\n\
                    max_entries:\t4096\nmap_flags:\t0x80000\nmap_extra:\t0x0\nmemlock:\t16704\nmap_id:\t12\nfrozen:\t0\n";
        let info = Info::parse(told).unwrap();
        assert_eq!(info, Info { map_type: 27, flags: OVERWRITES, entries: 4096, id: 12 });
        assert!(info.overwrites() && !info.keeps_elements() && info.kind() == Some(MapKind::Ring));
        assert_eq!(Info::parse("pos:\t0\nmap:\t27\n"), None);
    }

    #[test]
    fn types_have_the_kernels_numbers() {
        let named = |map_type| Info { map_type, flags: 0, entries: 0, id: 0 }.type_name();
        for (number, name) in [(4, "perf_event_array"), (27, "ringbuf"), (31, "user_ringbuf"), (33, "arena")]
        {
            assert_eq!(named(number), name);
        }
        assert_eq!(named(34), "number 34");
    }
}
