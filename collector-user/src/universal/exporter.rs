//! The recording's thread, and what is done with what it brings.

use std::any::Any;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use collector_common::record::{EventRecords, ExportMachine, Sample};
use export::format::{self, Contents, ExportFormat, Profile};
use export::symbolize::Symbols;

use super::error::Incomplete;
use super::output::{Output, format_of};
use super::split::{Part, parts};
use super::system::{self, Recording, Stop};
use super::{ExportError, ExportSettings};
use crate::hooks::{SampleView, Verdict};
use crate::output::{OutputFile, Places};

/// What the thread is called that records.
pub const RECORDER: &str = "collector";

type SentHook = Box<dyn FnMut(&mut SampleView<'_>, &mut Sample) -> Verdict + Send>;
type ParsedHook = Box<dyn FnMut(&mut ExportMachine)>;
type ExportHook = Box<dyn FnMut(Profile<'_>) -> anyhow::Result<()>>;

/// Records from [`Self::start_collection`] to [`Self::stop_and_export`], and can do so again: hooks hold for every collection. One
/// that is dropped while it records writes nothing.
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
    stop: Stop,
    thread: JoinHandle<Result<Recording, ExportError>>,
    /// Gives the hooks on samples back when the thread is done with them.
    hooks: mpsc::Receiver<Vec<SentHook>>,
    /// Those of the settings, then those of the embedding program's own formats.
    outputs: Vec<Output>,
}

/// What a collection brought.
pub struct Exported {
    /// The records, with the account of what was lost.
    pub recording: Recording,
    /// Names for its frames.
    pub symbols: Symbols,
    /// The files that were written, where links lead to.
    pub written: Vec<PathBuf>,
    /// What receivers took, and what was said meanwhile, a line each.
    pub sent: Vec<String>,
    /// What of the recording an output has no place for, a line each.
    pub left_out: Vec<String>,
}

impl fmt::Debug for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let samples = self.recording.machine.samples().len();
        f.debug_struct("Exported")
            .field("samples", &samples)
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
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

    /// Sees each sample of every collection that is started from now on before it is kept, on the recording's thread. One that panics
    /// ends the recording, and [`Self::stop_and_export`] tells so; in the next collection it is called again.
    pub fn on_sample(
        &mut self,
        hook: impl FnMut(&mut SampleView<'_>, &mut Sample) -> Verdict + Send + 'static,
    ) -> &mut Self {
        self.sample_hooks.push(Box::new(hook));
        self
    }

    /// Sees what every collection recorded before anything is named or written, and may change it.
    pub fn on_parsed(&mut self, hook: impl FnMut(&mut ExportMachine) + 'static) -> &mut Self {
        self.parsed_hooks.push(Box::new(hook));
        self
    }

    /// Sees the profile of every collection with its names, before files are written.
    pub fn on_export(&mut self, hook: impl FnMut(Profile<'_>) -> anyhow::Result<()> + 'static) -> &mut Self {
        self.export_hooks.push(Box::new(hook));
        self
    }

    /// As [`Self::on_parsed`], for what is put together at once.
    #[must_use]
    pub fn with_parsed_hook(mut self, hook: impl FnMut(&mut ExportMachine) + 'static) -> Self {
        self.on_parsed(hook);
        self
    }

    /// As [`Self::on_export`], for what is put together at once.
    #[must_use]
    pub fn with_export_hook(mut self, hook: impl FnMut(Profile<'_>) -> anyhow::Result<()> + 'static) -> Self {
        self.on_export(hook);
        self
    }

    /// Writes a file in a format of the embedding program's own.
    #[must_use]
    pub fn with_format(mut self, path: impl Into<PathBuf>, format: Box<dyn ExportFormat>) -> Self {
        self.formats.push((path.into(), format));
        self
    }

    /// Starts recording; when it returns, all that was asked for is recorded. After an error it can be tried again, with the same
    /// hooks.
    ///
    /// # Errors
    /// When an output has no format or can't be written, what is asked for can't be recorded here, or a hook on samples panics.
    pub fn start_collection(&mut self) -> Result<(), ExportError> {
        if self.collection.is_some() {
            return Err(ExportError::Started);
        }
        if self.settings.comm.as_deref() == Some("") {
            return Err(ExportError::EmptyComm);
        }
        self.settings.check()?;
        let outputs = self.open_outputs()?;
        let (settings, event_bytes) = (self.settings.clone(), self.event_bytes());
        let (stop, stopped) = system::stop().map_err(ExportError::Thread)?;
        let (ready, started) = mpsc::channel();
        let (back, hooks) = mpsc::channel();
        let mut lent = Lent { hooks: std::mem::take(&mut self.sample_hooks), back };
        let hook = Box::new(move |view: &mut SampleView<'_>, sample: &mut Sample| lent.see(view, sample));
        let record = move || system::record(&settings, event_bytes, hook, &stopped, ready);
        let thread = thread::Builder::new().name(RECORDER.to_owned()).spawn(record);
        let thread = match thread {
            Ok(thread) => thread,
            Err(error) => {
                self.take_back(&hooks);
                return Err(ExportError::Thread(error));
            }
        };
        let collection = Collection { stop, thread, hooks, outputs };
        if started.recv().is_ok() {
            self.collection = Some(collection);
            return Ok(());
        }
        // It ended before it was ready.
        self.end(collection).map(drop)
    }

    /// Stops recording, and hands what was recorded to the hooks and into the files.
    ///
    /// # Errors
    /// When nothing is being recorded, the recording failed, or a hook on samples panicked: nothing is written then. With
    /// [`ExportError::Incomplete`] an export hook failed or an output could not be written: all others were called and written,
    /// and the error has the recording.
    pub fn stop_and_export(&mut self) -> Result<Exported, ExportError> {
        let collection = self.collection.take().ok_or(ExportError::NotStarted)?;
        let (mut recording, outputs) = self.end(collection)?;
        for hook in &mut self.parsed_hooks {
            hook(&mut recording.machine);
        }
        let symbols = recording.symbolize_to(self.settings.naming);
        let profile = Profile { machine: &recording.machine, symbols: &symbols };
        let mut failures = Vec::new();
        for hook in &mut self.export_hooks {
            failures.extend(hook(profile).map_err(ExportError::Hook).err());
        }
        let (mut written, mut sent, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        let contents = Contents::of(profile);
        let formats = self.settings.outputs.iter().map(|path| format_of(path));
        let formats = formats.chain(self.formats.iter().map(|(_, format)| Some(&**format)));
        for (output, format) in outputs.into_iter().zip(formats) {
            let path = output.name();
            let Some(format) = format else {
                failures.push(ExportError::Format(path));
                continue;
            };
            left_out.extend(contents.left_out(format).map(|it| format!("{}: {it}", path.display())));
            let profile = Profile { machine: &recording.machine, symbols: &symbols };
            let output = match output {
                Output::File(output) => output,
                Output::Receiver(receiver) => {
                    match receiver.send(profile) {
                        Ok(lines) => sent.extend(lines),
                        Err(failure) => failures.push(failure),
                    }
                    continue;
                }
            };
            if !self.settings.splits_by_comm {
                let filled = output.fill(|out| format.export(profile, out));
                note(filled, path, &mut written, &mut failures);
                continue;
            }
            // It was to make sure that something can be written there.
            drop(output);
            for part in parts(&recording.machine, format.holds()) {
                let place = part.path(&path, format.ending());
                let filled = write_part(&mut recording.machine, &symbols, &part, &place, format);
                note(filled, place, &mut written, &mut failures);
            }
        }
        let exported = Exported { recording, symbols, written, sent, left_out };
        if failures.is_empty() {
            return Ok(exported);
        }
        Err(ExportError::Incomplete(Box::new(Incomplete::new(failures, exported))))
    }

    /// Opens all outputs, so that what can't be written is told before anything is recorded.
    fn open_outputs(&self) -> Result<Vec<Output>, ExportError> {
        if let Some(path) = self.settings.outputs.iter().find(|path| format_of(path).is_none()) {
            return Err(ExportError::Format(path.clone()));
        }
        let mut places = Places::default();
        let open = |(path, may_be_url): (&PathBuf, bool)| {
            let output = Output::open(path, may_be_url)?;
            places.take(&output.name()).then_some(output).ok_or_else(|| ExportError::Twice(path.clone()))
        };
        let by_name = self.settings.outputs.iter().map(|path| (path, true));
        by_name.chain(self.formats.iter().map(|(path, _)| (path, false))).map(open).collect()
    }

    /// What raw events may take of memory for all outputs: nothing where none holds them.
    fn event_bytes(&self) -> u64 {
        let by_ending = self.settings.outputs.iter().filter_map(|path| format_of(path));
        let holds = by_ending.map(ExportFormat::holds);
        let own = self.formats.iter().map(|(_, format)| format.holds());
        if holds.chain(own).any(|holds| holds.has(format::Part::Events)) { EventRecords::LIMIT } else { 0 }
    }

    /// Ends a collection, and takes its hooks back.
    fn end(&mut self, collection: Collection) -> Result<(Recording, Vec<Output>), ExportError> {
        let Collection { stop, thread, hooks, outputs } = collection;
        drop(stop);
        let ended = thread.join();
        self.take_back(&hooks);
        let recording = ended.unwrap_or_else(|panic| Err(ExportError::Panicked(told(&*panic))))?;
        Ok((recording, outputs))
    }

    /// Takes lent hooks back, before those that were added since.
    fn take_back(&mut self, hooks: &mpsc::Receiver<Vec<SentHook>>) {
        let mut hooks = hooks.try_recv().unwrap_or_default();
        hooks.append(&mut self.sample_hooks);
        self.sample_hooks = hooks;
    }
}

impl Drop for UniversalExporter {
    fn drop(&mut self) {
        if let Some(collection) = self.collection.take() {
            // What it recorded is wanted no more; what it had open is closed when this returns.
            drop(self.end(collection));
        }
    }
}

/// Writes what was recorded of processes of one name.
fn write_part(
    machine: &mut ExportMachine,
    symbols: &Symbols,
    part: &Part,
    path: &Path,
    format: &dyn ExportFormat,
) -> io::Result<PathBuf> {
    let output = OutputFile::open(path)?;
    let is_of_part =
        |machine: &ExportMachine, process| machine.string(machine.process(process).name) == part.comm;
    machine.with_processes(is_of_part, |machine| {
        output.fill(|out| format.export(Profile { machine, symbols }, out))
    })
}

/// Notes a file that was written, or that could not be.
fn note(
    filled: io::Result<PathBuf>,
    path: PathBuf,
    written: &mut Vec<PathBuf>,
    failures: &mut Vec<ExportError>,
) {
    match filled {
        Ok(path) => written.push(path),
        Err(source) => failures.push(ExportError::Output { path, source }),
    }
}

/// Hooks on samples that are lent to a session. However that ends, they go back.
struct Lent {
    hooks: Vec<SentHook>,
    back: mpsc::Sender<Vec<SentHook>>,
}

impl Lent {
    fn see(&mut self, view: &mut SampleView<'_>, sample: &mut Sample) -> Verdict {
        let is_kept = self.hooks.iter_mut().all(|hook| hook(view, sample) == Verdict::Keep);
        if is_kept { Verdict::Keep } else { Verdict::Drop }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // Nobody takes them where the exporter is gone.
        let _ = self.back.send(std::mem::take(&mut self.hooks));
    }
}

/// What a panic said.
fn told(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it did not say why".to_owned())
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    use std::fs;
    #[cfg(target_os = "linux")]
    use std::os::unix::fs::symlink;

    #[cfg(target_os = "linux")]
    use export::format::Holds;

    use super::*;

    fn started(settings: ExportSettings) -> Result<(), ExportError> {
        UniversalExporter::new(settings).start_collection()
    }

    #[test]
    fn what_is_wrong_with_settings_is_told_at_the_start() {
        let settings = ExportSettings::default;
        assert!(matches!(started(settings().with_scenario("none")), Err(ExportError::Scenario(_))));
        assert!(matches!(started(settings().with_output("x.none")), Err(ExportError::Format(_))));
        let path = "/no/such/folder/x.html";
        let told = started(settings().with_output(path)).unwrap_err();
        assert!(matches!(&told, ExportError::Output { .. }) && told.to_string().contains(path), "{told}");
        let none = UniversalExporter::new(settings()).stop_and_export();
        assert!(matches!(none, Err(ExportError::NotStarted)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn one_file_is_one_output() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["x.html", "link.html"].map(|name| folder.path().join(name));
        symlink(&path, &link).unwrap();
        let twice = ExportSettings::default().with_output(&path).with_output(&link);
        assert!(matches!(started(twice), Err(ExportError::Twice(told)) if told == link));
        let html = format::by_name("html").unwrap();
        let mut own = UniversalExporter::new(ExportSettings::default().with_output(&path))
            .with_format(&path, Box::new(Same(html)));
        assert!(matches!(own.start_collection(), Err(ExportError::Twice(_))));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// A format of the embedding program's own that is another one.
    #[cfg(target_os = "linux")]
    struct Same(&'static dyn ExportFormat);

    #[cfg(target_os = "linux")]
    impl ExportFormat for Same {
        fn name(&self) -> &'static str {
            self.0.name()
        }

        fn ending(&self) -> &'static str {
            self.0.ending()
        }

        fn description(&self) -> &'static str {
            self.0.description()
        }

        fn holds(&self) -> Holds {
            self.0.holds()
        }

        fn write(&self, profile: Profile<'_>, out: &mut dyn io::Write) -> io::Result<()> {
            self.0.write(profile, out)
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_start_that_fails_keeps_the_hooks() {
        // Above the largest pid that Linux gives.
        let mut exporter = UniversalExporter::new(ExportSettings::default().with_pid(4_194_305));
        exporter.on_sample(|_, _| Verdict::Keep);
        assert!(matches!(exporter.start_collection(), Err(ExportError::Session(_))));
        assert_eq!(exporter.sample_hooks.len(), 1);
    }

    #[test]
    fn a_panic_is_an_error_and_gives_hooks_back() {
        let mut exporter = UniversalExporter::new(ExportSettings::default());
        let (stop, _) = system::stop().unwrap();
        let (back, hooks) = mpsc::channel();
        let lent = Lent { hooks: vec![Box::new(|_, _| Verdict::Drop)], back };
        let thread = thread::spawn(move || {
            let _lent = lent;
            panic!("of {} things", 2)
        });
        exporter.on_sample(|_, _| Verdict::Keep);
        let ended = exporter.end(Collection { stop, thread, hooks, outputs: Vec::new() });
        assert!(matches!(ended, Err(ExportError::Panicked(told)) if told == "of 2 things"));
        assert_eq!(exporter.sample_hooks.len(), 2);
    }
}
