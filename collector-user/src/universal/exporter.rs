//! The recording's thread, and what is done with what it brings.

use std::fs::Permissions;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use collector_common::record::{ExportMachine, Sample};
use export::format::{ExportFormat, Profile, for_path};
use export::symbolize::Symbols;

use super::{ExportError, ExportSettings};
use crate::recorder::{SampleHook, Verdict};
use crate::session::{Recording, Session, SessionSettings};

type SentHook = Box<dyn FnMut(&mut ExportMachine, &mut Sample) -> Verdict + Send>;
type ParsedHook = Box<dyn FnOnce(&mut ExportMachine)>;
type ExportHook = Box<dyn FnMut(Profile<'_>) -> anyhow::Result<()>>;

/// Records from [`Self::start_collection`] to [`Self::stop_and_export`], and can do so again.
pub struct UniversalExporter {
    settings: ExportSettings,
    sample_hooks: Vec<SentHook>,
    parsed_hooks: Vec<ParsedHook>,
    export_hooks: Vec<ExportHook>,
    formats: Vec<(PathBuf, Box<dyn ExportFormat>)>,
    collection: Option<Collection>,
}

/// A recording that goes on.
struct Collection {
    /// Closing it ends the recording.
    stop: UnixStream,
    thread: JoinHandle<Result<Recording, ExportError>>,
}

/// What a collection brought.
pub struct Exported {
    /// The records, with the account of what was lost.
    pub recording: Recording,
    /// Names for its frames.
    pub symbols: Symbols,
    /// The files that were written.
    pub written: Vec<PathBuf>,
}

impl UniversalExporter {
    /// Nothing is recorded yet.
    pub fn new(settings: ExportSettings) -> Self {
        Self {
            settings,
            sample_hooks: Vec::new(),
            parsed_hooks: Vec::new(),
            export_hooks: Vec::new(),
            formats: Vec::new(),
            collection: None,
        }
    }

    /// Sees each sample of the next collection before it is kept, on the recording's thread.
    pub fn on_sample(
        &mut self,
        hook: impl FnMut(&mut ExportMachine, &mut Sample) -> Verdict + Send + 'static,
    ) -> &mut Self {
        self.sample_hooks.push(Box::new(hook));
        self
    }

    /// Sees what the next collection recorded before anything is named or written, and may change it.
    pub fn on_parsed(&mut self, hook: impl FnOnce(&mut ExportMachine) + 'static) -> &mut Self {
        self.parsed_hooks.push(Box::new(hook));
        self
    }

    /// Sees the profile of each collection with its names, before files are written.
    pub fn on_export(&mut self, hook: impl FnMut(Profile<'_>) -> anyhow::Result<()> + 'static) -> &mut Self {
        self.export_hooks.push(Box::new(hook));
        self
    }

    /// Writes a file in a format of the embedding program's own.
    #[must_use]
    pub fn with_format(mut self, path: impl Into<PathBuf>, format: Box<dyn ExportFormat>) -> Self {
        self.formats.push((path.into(), format));
        self
    }

    /// Starts recording; when it returns, all that was asked for is recorded.
    ///
    /// # Errors
    /// When an output has no format, or what is asked for can't be recorded here.
    pub fn start_collection(&mut self) -> Result<(), ExportError> {
        if self.collection.is_some() {
            return Err(ExportError::Started);
        }
        if let Some(path) = self.settings.outputs.iter().find(|path| for_path(path).is_none()) {
            return Err(ExportError::Format(path.clone()));
        }
        // A name that is none is told here, before the hooks are given away.
        self.settings.session()?;
        let (settings, hooks) = (self.settings.clone(), std::mem::take(&mut self.sample_hooks));
        let (stop, stopped) = UnixStream::pair().map_err(ExportError::Thread)?;
        let (ready, started) = mpsc::channel();
        let record = move || record(&settings, hooks, &stopped, ready);
        let thread = thread::Builder::new().name("collector".to_owned()).spawn(record);
        let thread = thread.map_err(ExportError::Thread)?;
        if started.recv().is_err() {
            // It ended before it was ready.
            return ended(thread).map(|_recording| ());
        }
        self.collection = Some(Collection { stop, thread });
        Ok(())
    }

    /// Stops recording, and hands what was recorded to the hooks and into the files.
    ///
    /// # Errors
    /// When nothing is being recorded, an output can't be written, or a hook fails: what was recorded is lost then.
    pub fn stop_and_export(&mut self) -> Result<Exported, ExportError> {
        let Collection { stop, thread } = self.collection.take().ok_or(ExportError::NotStarted)?;
        drop(stop);
        let mut recording = ended(thread)?;
        for hook in self.parsed_hooks.drain(..) {
            hook(&mut recording.machine);
        }
        let symbols = recording.symbolize();
        let profile = Profile { machine: &recording.machine, symbols: &symbols };
        for hook in &mut self.export_hooks {
            hook(profile).map_err(ExportError::Hook)?;
        }
        let mut written = Vec::new();
        for path in &self.settings.outputs {
            let format = for_path(path).ok_or_else(|| ExportError::Format(path.clone()))?;
            written.push(write(path, format, profile)?);
        }
        for (path, format) in &self.formats {
            written.push(write(path, &**format, profile)?);
        }
        Ok(Exported { recording, symbols, written })
    }
}

impl Drop for UniversalExporter {
    fn drop(&mut self) {
        if let Some(Collection { stop, thread }) = self.collection.take() {
            drop(stop);
            // What it recorded is wanted no more; what it had open is closed when this returns.
            let _ = thread.join();
        }
    }
}

/// Records until the other end of `stopped` is closed; `ready` is told when all is being recorded.
fn record(
    settings: &ExportSettings,
    hooks: Vec<SentHook>,
    stopped: &UnixStream,
    ready: mpsc::Sender<()>,
) -> Result<Recording, ExportError> {
    let sample_hooks = hooks.into_iter().map(|hook| hook as SampleHook).collect();
    let mut session = Session::start(SessionSettings { sample_hooks, ..settings.session()? }, None)?;
    // Nobody listens where the exporter is dropped meanwhile.
    let _ = ready.send(());
    drop(ready);
    session.run(stopped.as_fd(), |_progress| {})?;
    Ok(session.finish()?)
}

fn ended(thread: JoinHandle<Result<Recording, ExportError>>) -> Result<Recording, ExportError> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Writes a file, which is there when it is whole.
fn write(path: &Path, format: &dyn ExportFormat, profile: Profile<'_>) -> Result<PathBuf, ExportError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        // As any new file; the user's mask takes off what it does.
        let mode = Permissions::from_mode(0o666);
        let mut file =
            tempfile::Builder::new().prefix(".collector-").permissions(mode).tempfile_in(folder)?;
        let mut out = BufWriter::with_capacity(256 << 10, file.as_file_mut());
        format.write(profile, &mut out)?;
        out.flush()?;
        drop(out);
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|source| ExportError::Output { path: path.to_owned(), source })?;
    Ok(path.to_owned())
}
