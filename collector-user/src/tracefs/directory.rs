//! The file system of tracepoints.

use std::fs;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use collector_common::event::{Event, near};
use collector_common::glob::{is_glob, matches_glob};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::error::TracefsError;
use super::format::parse_format;

/// The categories of events that programs register themselves. Those of the second have names of their program's choice with a dot
/// and a number behind them, one for each list of fields.
const USER_EVENTS: [&str; 2] = ["user_events", "user_events_multi"];

/// As much is read at once: some files (`show_header_file` in `kernel/trace/trace_events.c`) answer the first read alone.
const PIECE: usize = 16 << 10;

/// An open tracefs.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    /// Keeps a mount of its own, which no path but that through this descriptor leads to.
    mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Where it is mounted, if it is.
    pub(crate) const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

    /// Opens it where it is mounted. Where it is not, it is mounted nowhere but in this process's hands, which needs
    /// `CAP_SYS_ADMIN` and Linux 5.2: the machine is left as it was.
    ///
    /// # Errors
    /// When it is neither mounted nor can it be.
    pub fn open() -> Result<Self, TracefsError> {
        for path in Self::MOUNTED {
            match fs::read_dir(Path::new(path).join("events")) {
                Ok(_) => return Ok(Self { root: path.into(), mount: None }),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(TracefsError::NotPermitted);
                }
                Err(_) => {}
            }
        }
        let mount = detached().map_err(|error| match error {
            rustix::io::Errno::PERM => TracefsError::NotPermitted,
            error => TracefsError::Absent { source: error.into() },
        })?;
        let root = format!("/proc/self/fd/{}", mount.as_raw_fd()).into();
        Ok(Self { root, mount: Some(mount) })
    }

    /// Whether it is mounted where all can see it.
    pub fn is_mounted(&self) -> bool {
        self.mount.is_none()
    }

    /// Its folder. Where it [is mounted](Self::is_mounted) nowhere, the path is good in this process for as long as this is held.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The names of all tracepoints, as `sched:sched_switch`, sorted.
    ///
    /// # Errors
    /// When they can't be listed.
    pub fn events(&self) -> Result<Vec<String>, TracefsError> {
        let mut names = Vec::new();
        for category in self.folders(Path::new("events"))? {
            let below = Path::new("events").join(&category);
            for name in self.folders(&below)? {
                if self.has_number(&below.join(&name)) {
                    names.push(format!("{category}:{name}"));
                }
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The names of those that a pattern matches, as `sched:*`: `*` is any text, `?` any one byte. `None` for a name that is no
    /// pattern. `ftrace:function`, which is each call of each function and which the kernel refuses with stacks, is not among them.
    ///
    /// # Errors
    /// When they can't be listed.
    pub fn matching(&self, pattern: &str) -> Result<Option<Vec<String>>, TracefsError> {
        if !is_glob(pattern) {
            return Ok(None);
        }
        let mut names = self.events()?;
        names.retain(|name| matches_glob(pattern, name) && name != "ftrace:function");
        Ok(Some(names))
    }

    /// A tracepoint by its name, `CATEGORY:NAME`.
    ///
    /// # Errors
    /// When there is none, or its format can't be understood.
    pub fn event(&self, name: &str) -> Result<Event, TracefsError> {
        let text = self.format(name)?;
        let (id, format) =
            parse_format(&text).map_err(|problem| TracefsError::Format { name: name.to_owned(), problem })?;
        let mut event = Event::new(id, name);
        *event.format_mut() = format;
        Ok(event)
    }

    /// Whether a tracepoint that is there can be recorded. Of category `ftrace` most can't: they are what tracers of the kernel's own write
    /// into tracefs's file `trace`, as `hwlat`, and their formats are told for who reads that. [`Self::events`] leaves them out.
    pub fn is_recordable(&self, name: &str) -> bool {
        name.split_once(':')
            .is_some_and(|(category, event)| self.has_number(&Path::new("events").join(category).join(event)))
    }

    /// A tracepoint's format file.
    ///
    /// # Errors
    /// When there is no such tracepoint.
    pub fn format(&self, name: &str) -> Result<String, TracefsError> {
        let is_name = |part: &&str| !part.is_empty() && !part.contains('/') && !part.starts_with('.');
        let parts = name.split_once(':').filter(|(category, event)| is_name(category) && is_name(event));
        let Some((category, event)) = parts else {
            return Err(TracefsError::NoName { name: name.to_owned() });
        };
        let path = Path::new("events").join(category).join(event).join("format");
        match fs::read_to_string(self.path(&path)) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let known = self.events().unwrap_or_default();
                let near = near(name, known.iter().map(String::as_str)).into_iter().map(str::to_owned);
                let (name, near) = (name.to_owned(), near.collect());
                Err(match category {
                    category if !USER_EVENTS.contains(&category) => TracefsError::Unknown { name, near },
                    _ if self.has_user_events() => TracefsError::NotRegistered { name, near },
                    _ => TracefsError::NoUserEvents { name },
                })
            }
            Err(source) => Err(TracefsError::File { path, source }),
        }
    }

    /// Whether programs can register events of their own, which are tracepoints of the category `user_events` while they do:
    /// `Documentation/trace/user_events.rst`. Minimum kernel: 6.4, built with `CONFIG_USER_EVENTS`.
    pub fn has_user_events(&self) -> bool {
        self.path(Path::new("user_events_data")).exists()
    }

    /// Opens a control file, as `uprobe_events`. What it holds stays: the kernel takes a truncation for a removal of all.
    pub(crate) fn open_control(&self, name: &str) -> io::Result<fs::File> {
        fs::OpenOptions::new().append(true).open(self.path(Path::new(name)))
    }

    /// What a control file tells.
    pub(crate) fn read(&self, name: &str) -> io::Result<String> {
        let mut file = fs::File::open(self.path(Path::new(name)))?;
        let (mut text, mut piece) = (Vec::new(), vec![0; PIECE]);
        loop {
            match file.read(&mut piece)? {
                0 => break,
                read => text.extend_from_slice(piece.get(..read).unwrap_or_default()),
            }
        }
        String::from_utf8(text).map_err(io::Error::other)
    }

    fn folders(&self, below: &Path) -> Result<Vec<String>, TracefsError> {
        let failed = |source| TracefsError::File { path: below.to_owned(), source };
        let entries = fs::read_dir(self.path(below)).map_err(failed)?;
        let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        let folders = entries.filter_map(Result::ok).filter(is_folder);
        Ok(folders.filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }

    /// Whether an event's folder has the number that perf events take. The kernel makes the file for what can be registered alone:
    /// `class->reg` in `kernel/trace/trace_events.c`.
    fn has_number(&self, folder: &Path) -> bool {
        self.path(&folder.join("id")).exists()
    }

    fn path(&self, below: &Path) -> PathBuf {
        self.root.join(below)
    }
}

fn detached() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}
