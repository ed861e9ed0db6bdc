//! The files that Windows itself writes while it records: in a folder of their own beside the outputs, until they are read. Then they are
//! removed, or are what an output `x.etl` is.

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};

use collector_user::etw::{RecordedPart, TraceFolder, Written, open_written};
use collector_user::output::{Places, is_url};
use windows_etw::part::Part;
use windows_etw::session::Stopped;

use crate::target::{Target, unwritable};
use crate::{Usage, say};

/// The format's name on the command line.
pub(crate) const NAME: &str = "etl";
/// The ending of its files.
pub(crate) const ENDING: &str = ".etl";
/// What it is, for people.
pub(crate) const DESCRIPTION: &str =
    "events as Windows writes them, for `collector convert`, PerfView and Windows Performance Analyzer";

/// Whether an output is what Windows writes.
pub(crate) fn is_trace(path: &Path, format: Option<&str>) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    format.map_or(name.len() > ENDING.len() && name.ends_with(ENDING), |format| format == NAME)
}

/// The files of a recording. Those that are not put into place are removed when it is dropped, unless they were to be read, and [`Self::done`] did not
/// come: then they are all that there is of the recording.
pub(crate) struct TraceFiles {
    folder: TraceFolder,
    /// Where they are to be; that of the first part.
    into: Option<PathBuf>,
    /// Whether they are kept in the folder.
    is_wanted: bool,
}

impl TraceFiles {
    /// Makes the folder: beside the `.etl` that is asked for, else beside the first of `others` that is a file, else in the current folder where there
    /// are none, and where temporary files are.
    pub(crate) fn new(traces: &[&Path], others: &[&Path], taken: &mut Places) -> anyhow::Result<Self> {
        let into = match traces {
            [] => None,
            [path] => {
                let Target::File(file) = Target::open(path, taken)? else {
                    let shown = path.display();
                    return Err(
                        Usage(format!("{shown}: Windows writes .etl files itself: name a file")).into()
                    );
                };
                refuse_parts(file.place())?;
                Some(file.place().to_owned())
            }
            [_, second, ..] => {
                let shown = second.display();
                return Err(Usage(format!(
                    "{shown} is a second .etl: Windows writes one, which can be copied"
                ))
                .into());
            }
        };
        let beside = into
            .as_deref()
            .or_else(|| others.iter().copied().find(|path| path.as_os_str() != "-" && !is_url(path)));
        let folder = match beside.map(Path::parent) {
            Some(Some(folder)) if !folder.as_os_str().is_empty() => folder.to_owned(),
            Some(_) => PathBuf::from("."),
            // As the outputs that nobody named.
            None if others.is_empty() => PathBuf::from("."),
            None => env::temp_dir(),
        };
        let folder =
            TraceFolder::make_in(&folder).map_err(|error| unwritable(&folder.join("x.etl"), &error))?;
        Ok(Self { folder, into, is_wanted: false })
    }

    /// Where the first part is written to.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path()
    }

    /// Removes what recordings that were killed have left in the same folder. When their sessions were taken over, and no sooner: Windows writes
    /// into it until then.
    pub(crate) fn remove_abandoned(&self) {
        for folder in self.folder.remove_abandoned() {
            say(&format!("removed {}, which a recording that was killed has left", folder.display()));
        }
    }

    /// Puts those into place that are asked for, and opens all that can be read, that with the clock first.
    pub(crate) fn open(&mut self, stopped: &Stopped) -> anyhow::Result<Vec<RecordedPart<File>>> {
        let goes_on = |part| stopped.goes_on(part);
        let parts = || stopped.losses.iter().map(|(part, _)| *part);
        let is_left = parts().any(goes_on);
        if is_left {
            say(&format!("warning: {}", self.folder.leave()));
        }
        self.is_wanted = !is_left && self.into.is_none();
        let Written { parts, unread } = self.open_in_place(stopped, parts(), goes_on)?;
        for line in &unread {
            say(&format!("warning: {line}"));
        }
        Ok(parts)
    }

    fn open_in_place(
        &mut self,
        stopped: &Stopped,
        parts: impl Iterator<Item = Part>,
        goes_on: impl Fn(Part) -> bool,
    ) -> anyhow::Result<Written> {
        let Some(into) = &self.into else { return Ok(open_written(stopped, &self.path(), Path::exists)?) };
        let places = self.folder.put(parts, goes_on, into)?;
        for place in &places {
            say(&format!("wrote {}", place.display()));
        }
        // What is at a place from before is none of this recording.
        Ok(open_written(stopped, into, |place| places.iter().any(|own| own == place))?)
    }

    /// What was recorded is in its outputs.
    pub(crate) fn done(mut self) {
        self.is_wanted = false;
    }
}

impl Drop for TraceFiles {
    fn drop(&mut self) {
        if self.is_wanted
            && let Some(kept) = self.folder.keep_written()
        {
            say(&format!("what was recorded is kept as {}, which `collector convert` reads", kept.display()));
        }
    }
}

/// Parts of an older recording were named by nobody, so they are not replaced, and would be taken for those of the new one.
fn refuse_parts(place: &Path) -> Result<(), Usage> {
    Part::beside(place).first().map_or(Ok(()), |part| {
        let (part, place) = (part.display(), place.display());
        Err(Usage(format!(
            "{part} is there already, and would be a part of {place}: move it elsewhere, or name another file"
        )))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use windows_etw::session::Losses;

    use super::*;

    /// A trace of Windows; none, which is said, where it is not there.
    fn bytes() -> Option<Vec<u8>> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/etl/Process.etl");
        let bytes = fs::read(&path).ok();
        if bytes.is_none() {
            eprintln!("NOT BESIDE THE CHECKOUT: {}", path.display());
        }
        bytes
    }

    fn stopped() -> Stopped {
        let losses = |events| Losses { events, file_buffers: events + 1, live_buffers: 0 };
        let losses = vec![(Part::Heap, losses(7)), (Part::Main, losses(3))];
        Stopped { losses, ..Stopped::default() }
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_files_are_put_into_place_the_one_with_the_clock_first() {
        let Some(bytes) = bytes() else { return };
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x.etl");
        fs::write(&place, "old").unwrap();
        let mut files = TraceFiles::new(&[&place], &[], &mut Places::default()).unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"old");
        for part in [Part::Main, Part::Heap] {
            fs::write(part.file(&files.path()), &bytes).unwrap();
        }
        let parts = files.open(&stopped()).unwrap();
        let lost = parts.iter().map(|part| (part.lost.events, part.lost.buffers));
        assert_eq!(lost.collect::<Vec<_>>(), [(3, 4), (7, 8)]);
        drop((parts, files));
        assert_eq!(names(folder.path()), ["x.etl", "x.heap.etl"]);
        assert_eq!(fs::read(&place).unwrap(), bytes);
    }

    #[test]
    fn parts_that_nobody_named_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [place, part] = ["x.etl", "x.kernel.etl"].map(|name| folder.path().join(name));
        fs::write(&part, "old").unwrap();
        let refused = TraceFiles::new(&[&place], &[], &mut Places::default()).err().unwrap();
        assert!(refused.is::<Usage>() && refused.to_string().contains("x.kernel.etl"), "{refused}");
        assert_eq!(names(folder.path()), ["x.kernel.etl"]);
    }

    #[test]
    fn a_part_that_can_not_be_read_is_missing_and_the_rest_is_there() {
        let Some(bytes) = bytes() else { return };
        let folder = tempfile::tempdir().unwrap();
        let [place, other] = ["x.etl", "x.html"].map(|name| folder.path().join(name));
        // It is not there, has nothing, or is no trace.
        for heap in [None, Some(&b""[..]), Some(b"no trace")] {
            for into in [&[][..], &[place.as_path()]] {
                let others = [Path::new("-"), &other];
                let mut files = TraceFiles::new(into, &others, &mut Places::default()).unwrap();
                assert!(files.path().starts_with(folder.path()));
                fs::write(files.path(), &bytes).unwrap();
                if let Some(heap) = heap {
                    fs::write(Part::Heap.file(&files.path()), heap).unwrap();
                }
                let lost: Vec<u64> =
                    files.open(&stopped()).unwrap().iter().map(|part| part.lost.events).collect();
                assert_eq!(lost, [3]);
                files.done();
                for name in names(folder.path()) {
                    assert!(!into.is_empty() && ["x.etl", "x.heap.etl"].contains(&&*name), "{name}");
                    fs::remove_file(folder.path().join(name)).unwrap();
                }
            }
        }
    }

    #[test]
    fn what_can_not_be_read_or_written_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("x.html");
        let new = || TraceFiles::new(&[], &[&other], &mut Places::default()).unwrap();
        let mut files = new();
        let error = files.open(&stopped()).err().unwrap().to_string();
        assert!(error.starts_with("Windows wrote no trace"), "{error}");
        drop(files);
        assert!(names(folder.path()).is_empty(), "there is nothing to keep");
        drop(new());
        assert!(names(folder.path()).is_empty(), "nothing was recorded");

        let mut files = new();
        let kept = files.path();
        fs::write(&kept, b"no trace").unwrap();
        assert!(files.open(&stopped()).is_err());
        drop(files);
        assert_eq!(fs::read(&kept).unwrap(), b"no trace");
        fs::remove_dir_all(kept.parent().unwrap()).unwrap();

        let Some(bytes) = bytes() else { return };
        let mut files = new();
        let kept = files.path();
        fs::write(&kept, &bytes).unwrap();
        drop(files.open(&stopped()).unwrap());
        // An output failed.
        drop(files);
        assert_eq!(fs::read(&kept).unwrap(), bytes);
    }

    #[test]
    fn traces_are_told_by_their_ending_and_are_one() {
        let is = |path: &str, format| is_trace(Path::new(path), format);
        assert!(is("a.ETL", None) && is("a", Some("etl")) && !is("a.etl", Some("html")) && !is(".etl", None));
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["a.etl", "b.etl"].map(|name| folder.path().join(name));
        let mut taken = Places::default();
        assert!(TraceFiles::new(&[&one, &other], &[], &mut taken).err().unwrap().is::<Usage>());
        assert!(TraceFiles::new(&[Path::new("-")], &[], &mut taken).err().unwrap().is::<Usage>());
        let absent = folder.path().join("absent").join("x.html");
        assert!(TraceFiles::new(&[], &[&absent], &mut taken).is_err());
    }
}
