//! The files that Windows itself writes while it records: in a folder of their own beside the outputs, until they are read. Then they are
//! removed, or are what an output `x.etl` is.

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};

use collector_user::etw::{RecordedPart, TraceFolder, WrittenError, open_written};
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

/// The files of a recording. Those that are not put into place are removed when it is dropped.
pub(crate) struct TraceFiles {
    folder: TraceFolder,
    /// Where they are to be; that of the first part.
    into: Option<PathBuf>,
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
        Ok(Self { folder, into })
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

    /// Puts those into place that are asked for, and opens them all, that with the clock first.
    pub(crate) fn open(&mut self, stopped: &Stopped) -> anyhow::Result<Vec<RecordedPart<File>>> {
        let goes_on = |part| stopped.goes_on(part);
        let parts = || stopped.losses.iter().map(|(part, _)| *part);
        if parts().any(goes_on) {
            say(&format!("warning: {}", self.folder.leave()));
        }
        let Some(into) = &self.into else { return Ok(open_written(stopped, &self.path())?) };
        let places = self.folder.put(parts(), goes_on, into)?;
        for place in &places {
            say(&format!("wrote {}", place.display()));
        }
        // What is at the place from before is none of this recording.
        if places.len() < stopped.losses.len() {
            return Err(WrittenError::Absent.into());
        }
        Ok(open_written(stopped, into)?)
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
    fn without_an_output_nothing_is_left() {
        let Some(bytes) = bytes() else { return };
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("x.html");
        let mut files = TraceFiles::new(&[], &[Path::new("-"), &other], &mut Places::default()).unwrap();
        assert!(files.path().starts_with(folder.path()));
        fs::write(files.path(), &bytes).unwrap();
        let error = files.open(&stopped()).err().unwrap().to_string();
        assert!(error.starts_with("Windows wrote no trace"), "{error}");
        fs::write(Part::Heap.file(&files.path()), b"no trace").unwrap();
        assert!(files.open(&stopped()).is_err());
        drop(files);
        assert!(names(folder.path()).is_empty());
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
