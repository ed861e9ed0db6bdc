//! The cache that is shared with elfutils' client (`debuginfod/debuginfod-client.c`): `BUILDID/debuginfo` and
//! `BUILDID/executable`. An empty file says that no server had it when the file was written, and is believed for as many
//! seconds as `cache_miss_s` says. Files that nobody reads any more are removed by elfutils' client.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use collector_common::ids::BuildId;
use tempfile::NamedTempFile;

/// For how long it is believed that no server has a file, unless `cache_miss_s` says.
const MISS: Duration = Duration::from_mins(10);

/// What a server has of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Artifact {
    /// Its symbols and its DWARF.
    DebugInfo,
    /// What is executed.
    Executable,
}

impl Artifact {
    /// What it is called in addresses and in the cache.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::DebugInfo => "debuginfo",
            Self::Executable => "executable",
        }
    }
}

/// What the cache knows of a file.
#[derive(Debug)]
pub(super) enum Known {
    /// It is here.
    Here(File),
    /// No server had it a short time ago.
    Nowhere,
    /// Nothing.
    Unknown,
}

/// The folder with all of them.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    root: PathBuf,
}

impl Cache {
    pub(super) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    fn folder(&self, id: BuildId) -> PathBuf {
        self.root.join(id.to_string())
    }

    /// What is known of a file.
    pub(super) fn look_up(&self, id: BuildId, artifact: Artifact) -> Known {
        let path = self.folder(id).join(artifact.name());
        let Ok(metadata) = path.symlink_metadata() else { return Known::Unknown };
        if !metadata.is_file() {
            return Known::Unknown;
        }
        if metadata.len() > 0 {
            return File::open(path).map_or(Known::Unknown, Known::Here);
        }
        let age = metadata.modified().ok().and_then(|then| SystemTime::now().duration_since(then).ok());
        if age.is_some_and(|age| age <= self.miss()) { Known::Nowhere } else { Known::Unknown }
    }

    fn miss(&self) -> Duration {
        let text = fs::read_to_string(self.root.join("cache_miss_s")).ok();
        text.and_then(|text| text.trim().parse().ok()).map_or(MISS, Duration::from_secs)
    }

    /// A file that is filled before it becomes one of the cache.
    pub(super) fn new_file(&self, id: BuildId) -> io::Result<NamedTempFile> {
        let folder = self.folder(id);
        fs::create_dir_all(&folder)?;
        NamedTempFile::new_in(folder)
    }

    /// Puts a file into its place.
    pub(super) fn keep(&self, file: NamedTempFile, id: BuildId, artifact: Artifact) -> io::Result<File> {
        Ok(file.persist(self.folder(id).join(artifact.name()))?)
    }

    /// Notes that no server has a file.
    pub(super) fn note_nowhere(&self, id: BuildId, artifact: Artifact) -> io::Result<()> {
        let file = self.new_file(id)?;
        self.keep(file, id, artifact).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn what_no_server_had_is_asked_for_again_after_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("made/when/needed");
        let cache = Cache::at(root.clone());
        let id = BuildId::new(&[0xab, 0x01]).unwrap();
        let known = || cache.look_up(id, Artifact::DebugInfo);
        assert!(matches!(known(), Known::Unknown));
        cache.note_nowhere(id, Artifact::DebugInfo).unwrap();
        assert!(matches!(known(), Known::Nowhere));
        assert!(matches!(cache.look_up(id, Artifact::Executable), Known::Unknown));
        let path = root.join("ab01/debuginfo");
        let note = File::options().write(true).open(&path).unwrap();
        note.set_modified(SystemTime::now() - Duration::from_secs(500)).unwrap();
        drop(note);
        assert!(matches!(known(), Known::Nowhere));
        fs::write(root.join("cache_miss_s"), "400\n").unwrap();
        assert!(matches!(known(), Known::Unknown));
        let mut file = cache.new_file(id).unwrap();
        file.write_all(b"debug").unwrap();
        cache.keep(file, id, Artifact::DebugInfo).unwrap();
        let Known::Here(mut file) = known() else { panic!("it was kept") };
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "debug");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left");
    }
}
