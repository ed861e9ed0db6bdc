//! Where the files beside a program are: below the root that its process has, which is a container's own, and then below ours.
//!
//! A root is held from when the first file was mapped by a process that has it, as the files that were mapped are. Paths lead
//! nowhere out of it, whatever links are in it (`RESOLVE_IN_ROOT` of openat2(2), Linux 5.6).

use std::cell::OnceCell;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use collector_common::ids::{Pid, Tid};
use rustc_hash::FxHashMap;
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};

use crate::modules::open::{open_place, open_regular};
use crate::procfs;

/// Roots that are held at most. Files below others are looked for below ours alone.
const MOST_HELD: usize = 512;

/// A root of processes; without one, ours.
#[derive(Clone, Debug, Default)]
pub(in crate::modules) struct Root(Option<Arc<File>>);

impl Root {
    /// Opens a regular file that has bytes, by a path that begins at this root.
    pub(in crate::modules) fn open(&self, path: &Path) -> Option<File> {
        let Some(root) = &self.0 else { return open_regular(path) };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let stays = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        open_place(&openat2(root, path, flags, Mode::empty(), stays).ok()?.into(), 1)
    }

    /// The same by a path that the user has chosen.
    pub(in crate::modules) fn open_chosen(&self, path: &Path) -> Option<File> {
        self.open(path)
    }

    /// Whether who writes there may be somebody who has no say elsewhere.
    pub(in crate::modules) fn is_other(&self) -> bool {
        self.0.is_some()
    }

    /// This one first, and then ours.
    pub(in crate::modules) fn and_ours(&self) -> impl Iterator<Item = Self> {
        let ours = self.is_other().then(Self::default);
        [self.clone()].into_iter().chain(ours)
    }
}

/// What tells roots apart: the mount namespace, and the folder.
type Key = (u64, u64, u64);

/// Roots of processes that are held.
#[derive(Debug, Default)]
pub(in crate::modules) struct Roots {
    held: FxHashMap<Key, Root>,
    own: OnceCell<Option<Key>>,
}

impl Roots {
    /// The root of a process, or of one of its threads that has not ended; ours where it is gone.
    pub(in crate::modules) fn of(&mut self, pid: Pid, thread: Tid) -> Root {
        procfs::folders(pid, thread).find_map(|folder| self.of_folder(&folder)).unwrap_or_default()
    }

    fn of_folder(&mut self, folder: &str) -> Option<Root> {
        let key = key(folder)?;
        if *self.own.get_or_init(|| self::key("/proc/self")) == Some(key) {
            return Some(Root::default());
        }
        if let Some(root) = self.held.get(&key) {
            return Some(root.clone());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let place = (self.held.len() < MOST_HELD)
            .then(|| open(format!("{folder}/root"), flags, Mode::empty()).ok())
            .flatten()?;
        let root = Root(Some(Arc::new(place.into())));
        self.held.insert(key, root.clone());
        Some(root)
    }
}

fn key(folder: &str) -> Option<Key> {
    let namespace = fs::metadata(format!("{folder}/ns/mnt")).ok()?;
    let root = fs::metadata(format!("{folder}/root/")).ok()?;
    Some((namespace.ino(), root.dev(), root.ino()))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_leads_out_of_a_root() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir(at("inner")).unwrap();
        fs::write(at("outside"), "outside").unwrap();
        fs::write(at("inner/file"), "inside").unwrap();
        symlink("/file", at("inner/absolute")).unwrap();
        symlink("../../../../file", at("inner/upwards")).unwrap();
        symlink("../outside", at("inner/out")).unwrap();
        symlink(at("outside"), at("inner/away")).unwrap();
        let root = Root(Some(Arc::new(File::open(at("inner")).unwrap())));
        let read = |path: &str| {
            let mut text = String::new();
            root.open(Path::new(path))?.read_to_string(&mut text).unwrap();
            Some(text)
        };
        for path in ["/file", "/absolute", "/upwards"] {
            assert_eq!(read(path).as_deref(), Some("inside"), "{path}");
        }
        let away = at("outside");
        for path in ["/out", "/away", "/../outside", "/", "/none", away.to_str().unwrap()] {
            assert_eq!(read(path), None, "{path}");
        }
    }

    #[test]
    fn our_own_root_is_not_held() {
        let mut roots = Roots::default();
        let own = Pid(std::process::id());
        assert!(!roots.of(own, Tid(own.0)).is_other());
        assert!(!roots.of(Pid(u32::MAX), Tid(u32::MAX)).is_other(), "nobody can tell");
        assert!(roots.held.is_empty());
    }
}
