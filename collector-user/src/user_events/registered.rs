//! Events of this program's own that the kernel has.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::declaration::Declaration;
use super::error::{UserEventError, WriteError};
use super::keeper::Keeper;
use super::payload::{FieldValue, Fields};
use crate::sys::user_event::Registered;
use crate::tracefs::Tracefs;

/// Where programs register events: a file of tracefs, and a thread of this process that sleeps meanwhile.
///
/// Minimum kernel: 6.4.
#[derive(Debug)]
pub struct UserEvents {
    /// `user_events_data`
    path: PathBuf,
    /// Keeps the mount that the path leads to, where it is this process's own.
    _mount: Option<Tracefs>,
    keeper: Arc<Keeper>,
}

impl UserEvents {
    /// Looks for tracefs' file. Where that is not mounted, it is mounted in this process's hands alone, as [`Tracefs::open`] does.
    ///
    /// # Errors
    /// When the kernel has no such events, or the rights are missing.
    pub fn open() -> Result<Self, UserEventError> {
        const NAME: &str = "user_events_data";
        // It may be let to more users than all of tracefs is.
        let known = Tracefs::MOUNTED.iter().map(|root| Path::new(root).join(NAME));
        let is_none = |path: &PathBuf| matches!(open_data(path), Err(UserEventError::NotInKernel));
        let known = known.into_iter().find(|path| !is_none(path));
        let (path, mount) = if let Some(path) = known {
            (path, None)
        } else {
            let tracefs = Tracefs::open()?;
            (tracefs.root().join(NAME), Some(tracefs))
        };
        open_data(&path)?;
        let keeper = Keeper::start().map_err(|source| UserEventError::Thread { source })?;
        Ok(Self { path, _mount: mount, keeper: Arc::new(keeper) })
    }

    /// Has the kernel make a tracepoint `user_events:NAME`, or take this program as one more that writes to it, where another one has
    /// registered it with the same fields.
    ///
    /// It is there until the [`UserEvent`] is dropped, and for as long as others have it or record it. A process that is forked
    /// registers its own: there the bit of [`UserEvent::is_enabled`] stays as it was.
    ///
    /// # Errors
    /// When it can't be declared, or the kernel refuses.
    pub fn register(&self, declaration: &Declaration) -> Result<UserEvent, UserEventError> {
        let text = declaration.text()?;
        let fields = Fields::new(declaration.name(), declaration.layouts()?);
        let event = || declaration.name().to_owned();
        // Names and types have no NUL in them.
        let in_c = CString::new(text.as_str()).unwrap_or_default();
        let file = open_data(&self.path)?;
        let registered = self.keeper.register(file, in_c).map_err(|source| match source.raw_os_error() {
            Some(libc::EADDRINUSE) => UserEventError::OtherFields { event: event() },
            Some(libc::EMFILE) => UserEventError::TooMany { event: event() },
            None => UserEventError::Thread { source },
            Some(_) => UserEventError::Refused { event: event(), declaration: text.clone(), source },
        })?;
        Ok(UserEvent { fields, registered: Some(registered), keeper: Arc::clone(&self.keeper) })
    }
}

/// A tracepoint of this program's own. Any thread may write to it.
///
/// Minimum kernel: 6.4.
#[derive(Debug)]
pub struct UserEvent {
    fields: Fields,
    /// Gone while it is dropped.
    registered: Option<Registered>,
    keeper: Arc<Keeper>,
}

impl UserEvent {
    /// Its name, without the category `user_events`.
    pub fn name(&self) -> &str {
        self.fields.event()
    }

    /// Whether somebody records it: a load of a word in which the kernel sets a bit. What is to be told only then is best made
    /// only then.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.registered.as_ref().is_some_and(Registered::is_enabled)
    }

    /// Hands an occurrence, with a value for each field in their order, to all who record it; the kernel adds time, thread, CPU
    /// and stack. Gives whether somebody records it: where nobody does, nothing is done, and the values are not looked at.
    ///
    /// It costs one system call (`writev`), and no allocation where all values take up to 512 bytes.
    ///
    /// # Errors
    /// When values do not fit their fields, or the kernel does not take them.
    pub fn write(&self, values: &[FieldValue<'_>]) -> Result<bool, WriteError> {
        let Some(registered) = self.registered.as_ref().filter(|registered| registered.is_enabled()) else {
            return Ok(false);
        };
        let written = self.fields.write(values, |payload| registered.write(payload))?;
        written.map_err(|source| WriteError::System { event: self.name().to_owned(), source })
    }
}

impl Drop for UserEvent {
    fn drop(&mut self) {
        if let Some(registered) = self.registered.take() {
            self.keeper.end(registered);
        }
    }
}

/// Opens `user_events_data` for one event: the kernel keeps those of a file until that is closed.
fn open_data(path: &Path) -> Result<File, UserEventError> {
    let opened = OpenOptions::new().write(true).open(path);
    opened.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => UserEventError::NotInKernel,
        io::ErrorKind::PermissionDenied => UserEventError::NotPermitted { path: path.to_owned() },
        _ => UserEventError::File { path: path.to_owned(), source },
    })
}
