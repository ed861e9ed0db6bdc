//! Open maps, by a path, a number or a descriptor.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::{fs, io};

use collector_common::event::near;
use rustix::fs::statfs;

use super::error::BpfMapError;
use super::info::{self, Info};
use super::ring::Ring;
use super::slots::Slots;
use crate::source::{EventIndex, Hook, Settings, Source};
use crate::sys::bpf;

/// Something like `f_type` of a BPF file system: `BPF_FS_MAGIC` in `include/uapi/linux/magic.h`.
const BPF_FS: u64 = 0xcafe_4a11;

/// What gives a map's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// Its own ring (`BPF_MAP_TYPE_RINGBUF`). Minimum kernel: 5.8.
    Ring,
    /// A perf event for each CPU, by descriptors that are put into it (`BPF_MAP_TYPE_PERF_EVENT_ARRAY`). Minimum kernel: 4.4.
    PerfEvents,
}

/// A map of somebody's programs, opened.
#[derive(Debug)]
pub struct BpfMap {
    pub(super) name: String,
    pub(super) fd: OwnedFd,
    kind: MapKind,
    /// Of a ring bytes, else slots.
    pub(super) entries: u32,
    /// Descriptors of ours have to be taken out of it one by one.
    pub(super) keeps_elements: bool,
    /// Its number; 0 where the kernel does not tell.
    pub(super) id: u32,
    note: String,
}

impl BpfMap {
    /// The map that is pinned at a path in a BPF file system.
    ///
    /// # Errors
    /// When there is none, it is of another type, or the rights are missing (`CAP_BPF`, or the path's own).
    pub fn pinned(path: &Path) -> Result<Self, BpfMapError> {
        let name = format!("bpf:{}", path.display());
        let text = CString::new(path.as_os_str().as_bytes());
        let opened = text.map_err(io::Error::from).and_then(|path| bpf::pinned(&path));
        match opened {
            Ok(fd) => Self::of(name, fd, false),
            Err(source) => Err(why_not_at(path, name, source)),
        }
    }

    /// The map with a number. Minimum kernel: 4.13.
    ///
    /// # Errors
    /// When there is none, it is of another type, or the rights are missing (`CAP_SYS_ADMIN`).
    pub fn by_id(id: u32) -> Result<Self, BpfMapError> {
        let map = format!("bpf:id:{id}");
        match bpf::map_by_id(id) {
            Ok(fd) => Self::of(map, fd, false),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                Err(BpfMapError::NoSuchId { map, loaded: info::loaded() })
            }
            Err(source) => Err(refused(map, "CAP_SYS_ADMIN", source)),
        }
    }

    /// The map that a descriptor of this process is of, which it was started with. It stays open, and may be closed from then on.
    ///
    /// # Errors
    /// When there is none, or it is of something else.
    pub fn by_descriptor(number: u32) -> Result<Self, BpfMapError> {
        let map = format!("bpf:fd:{number}");
        match bpf::duplicate(number) {
            Ok(fd) => Self::of(map, fd, true),
            Err(_) => Err(BpfMapError::NoSuchDescriptor { map }),
        }
    }

    /// The map that a descriptor is of, which an embedder's own loader has, or has been sent.
    ///
    /// # Errors
    /// When it is none, or of another type.
    pub fn from_fd(fd: OwnedFd) -> Result<Self, BpfMapError> {
        Self::of(format!("bpf:fd:{}", fd.as_raw_fd()), fd, true)
    }

    /// What gives its records.
    pub fn kind(&self) -> MapKind {
        self.kind
    }

    /// What taking its records does to others who read it, for people.
    pub fn note(&self) -> &str {
        &self.note
    }

    /// `shared` is a descriptor that others may have a copy of.
    fn of(name: String, fd: OwnedFd, shared: bool) -> Result<Self, BpfMapError> {
        let info = Info::read(&fd).map_err(|source| BpfMapError::System {
            map: name.clone(),
            what: "the kernel does not tell what it is",
            source,
        })?;
        let Some(info) = info else {
            let link = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap_or_default();
            let what = object(&link.to_string_lossy());
            return Err(BpfMapError::NotAMap { map: name, what, loaded: info::loaded() });
        };
        let kind = match info.kind() {
            Some(MapKind::Ring) if info.overwrites() => return Err(BpfMapError::Overwritten { map: name }),
            Some(kind) => kind,
            None => {
                let (kind, loaded) = (info.type_name(), info::loaded());
                return Err(BpfMapError::Kind { map: name, kind, loaded });
            }
        };
        // What goes into the map through a descriptor that others have, too, would stay there were we killed. The map is there as long
        // as it is open, and with it its number.
        let own = if shared && info.id != 0 { bpf::map_by_id(info.id).ok() } else { None };
        let keeps_elements = info.keeps_elements() || (shared && own.is_none());
        let fd = own.unwrap_or(fd);
        let note = match kind {
            MapKind::Ring => format!("{name}: what is recorded of a ring map, no other reader of it gets"),
            MapKind::PerfEvents => {
                format!("{name}: the recording takes the map's slots: who had them gets nothing from now on")
            }
        };
        Ok(Self { fd, kind, entries: info.entries, keeps_elements, id: info.id, note, name })
    }

    /// What reads it, for an event of a session.
    fn source(
        self,
        (hook, index): (&Hook, EventIndex),
        settings: &Settings,
        cpus: &[u32],
    ) -> Result<Box<dyn Source>, BpfMapError> {
        Ok(match self.kind {
            MapKind::Ring => Box::new(Ring::open(self, hook.event.format(), index)?),
            MapKind::PerfEvents => Box::new(Slots::open(self, hook, index, settings, cpus)?),
        })
    }
}

/// Sources for the events whose records are in maps.
pub(crate) fn open_sources(
    hooks: &mut [Hook],
    settings: &Settings,
    cpus: &[u32],
) -> Result<Vec<Box<dyn Source>>, BpfMapError> {
    let mut known = BTreeSet::new();
    let mut sources = Vec::new();
    for (hook, index) in hooks.iter_mut().zip((0..).map(EventIndex::of_hook)) {
        let Some(map) = hook.map.take() else { continue };
        if map.id != 0 && !known.insert(map.id) {
            return Err(BpfMapError::Twice { map: map.name });
        }
        sources.push(map.source((hook, index), settings, cpus)?);
    }
    Ok(sources)
}

/// What a descriptor is that is no map's, by what its link in `/proc` says.
fn object(link: &str) -> &'static str {
    match link {
        "anon_inode:bpf-prog" => "a program",
        "anon_inode:bpf_link" | "anon_inode:[bpf_link]" | "anon_inode:bpf-link" => "a link of a program",
        "anon_inode:btf" => "a description of types (BTF)",
        _ => "another object",
    }
}

fn refused(map: String, needed: &'static str, source: io::Error) -> BpfMapError {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => BpfMapError::NotPermitted { map, needed, source },
        _ => BpfMapError::System { map, what: "the map can't be opened", source },
    }
}

/// Why there is no map at a path.
fn why_not_at(path: &Path, map: String, source: io::Error) -> BpfMapError {
    let is_of_bpf = |path: &Path| statfs(path).is_ok_and(|system| system.f_type as u64 == BPF_FS);
    if let Ok(metadata) = fs::symlink_metadata(path) {
        if !is_of_bpf(path) || metadata.is_dir() {
            return BpfMapError::NotPinned { path: path.to_owned() };
        }
    } else if source.raw_os_error() == Some(libc::ENOENT) {
        let folder = path.parent().unwrap_or(path);
        let is_mounted = folder.ancestors().find(|folder| folder.exists()).is_some_and(is_of_bpf);
        return BpfMapError::Absent { map, near: names_like(path), is_mounted };
    }
    refused(map, "root, or CAP_BPF and the right to read and write the path,", source)
}

/// Paths in the same folder that are like one.
fn names_like(path: &Path) -> Vec<String> {
    /// Whoever pins more is not searched through.
    const MOST_NAMES: usize = 4096;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let entries = fs::read_dir(folder).into_iter().flatten().take(MOST_NAMES).filter_map(Result::ok);
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let near = near(name, names.iter().map(String::as_str));
    near.into_iter().map(|name| format!("bpf:{}", folder.join(name).display())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_of_something_else() {
        let file = fs::File::open("/dev/null").unwrap();
        let error = BpfMap::from_fd(file.into()).unwrap_err();
        assert!(matches!(error, BpfMapError::NotAMap { .. }), "{error}");
    }

    #[test]
    fn a_file_is_nothing_of_bpfs() {
        let error = BpfMap::pinned(Path::new("/dev/null")).unwrap_err();
        assert!(matches!(error, BpfMapError::NotPinned { .. }), "{error}");
        let error = BpfMap::pinned(Path::new("/dev/absent/map")).unwrap_err();
        assert!(
            error.is_of_the_request() && error.to_string().contains("as no BPF file system is"),
            "{error}"
        );
    }
}
