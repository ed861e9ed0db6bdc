//! Where samples go that are too many for memory: a file without a name (on Windows with one), which is gone when nobody has it open any
//! more, however that comes about. Why it is so is told in `docs/adr/0016-samples-in-a-file.md`.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use collector_common::record::{ExportMachine, Samples, SpillFile};

/// Has samples written into a temporary file as soon as they take more than so many bytes of memory.
///
/// It is made in `TMPDIR`, where that is set, and else in `/var/tmp`: `/tmp` is memory on many systems. On Windows, which has neither, it is
/// where `TEMP` says.
pub fn spill_samples(machine: &mut ExportMachine, bytes: u64) {
    spill(machine.samples_mut(), bytes);
}

/// The same of samples that are of no machine yet.
pub(crate) fn spill(samples: &mut Samples, bytes: u64) {
    samples.spill_beyond(bytes, || Ok(Box::new(open()?) as Box<dyn SpillFile>));
}

/// What a user should know of it, a line each.
pub fn warnings(machine: &ExportMachine) -> impl Iterator<Item = String> {
    let samples = machine.samples();
    let unwritten = samples.unwritten().map(|(_, cause)| {
        format!("samples could not be put into a temporary file and stayed in memory: {cause}; TMPDIR names another folder for it")
    });
    let refused = (samples.refused() > 0)
        .then(|| format!("{} samples are missing: a recording has 4 billion at most", samples.refused()));
    unwritten.into_iter().chain(refused)
}

fn open() -> io::Result<File> {
    open_in(&temporary_folder())
}

/// A file as samples go into.
///
/// # Errors
/// When it can't be made.
pub fn temporary_file() -> io::Result<File> {
    tempfile::tempfile_in(temporary_folder())
}

/// Where such files are.
pub fn temporary_folder() -> PathBuf {
    folder(env::var_os("TMPDIR"), Path::new("/var/tmp"))
}

fn open_in(folder: &Path) -> io::Result<File> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
    tempfile::tempfile_in(folder).map_err(named)
}

/// The one that is asked for, or the one on a disk. Where there is none, as in small containers, it is where others have their temporary
/// files.
fn folder(asked_for: Option<OsString>, on_disk: &Path) -> PathBuf {
    match asked_for.filter(|folder| !folder.is_empty()) {
        Some(folder) => folder.into(),
        None if on_disk.is_dir() => on_disk.to_owned(),
        None => env::temp_dir(),
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use collector_common::ids::Nanos;
    use collector_common::record::Sample;

    use super::*;

    fn fill(machine: &mut ExportMachine) {
        for time in 0..20_000 {
            machine.add_sample(&Sample { time: Nanos(time << 20), value: 1, ..Sample::default() });
        }
    }

    #[test]
    fn the_file_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = open_in(folder.path()).unwrap();
        file.write_all(&[1; 100]).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn it_is_where_it_is_asked_for_or_on_a_disk() {
        let disk = tempfile::tempdir().unwrap();
        assert_eq!(folder(Some("/x".into()), disk.path()), Path::new("/x"));
        assert_eq!(folder(Some("".into()), disk.path()), disk.path());
        assert_eq!(folder(None, Path::new("/no/such")), env::temp_dir());
    }

    #[test]
    fn a_full_disk_is_told_and_nothing_is_lost() {
        let mut machine = ExportMachine::default();
        let full =
            || Ok(Box::new(File::options().read(true).write(true).open("/dev/full")?) as Box<dyn SpillFile>);
        machine.samples_mut().spill_beyond(0, full);
        fill(&mut machine);
        let told: Vec<_> = warnings(&machine).collect();
        assert!(told.len() == 1 && told[0].contains("No space left on device"), "{told:?}");
        assert_eq!(machine.samples().times().map(|time| time.0).sum::<u64>(), (0..20_000).sum::<u64>() << 20);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let mut machine = ExportMachine::default();
        let nowhere = || Ok(Box::new(open_in(Path::new("/no/such/folder"))?) as Box<dyn SpillFile>);
        machine.samples_mut().spill_beyond(0, nowhere);
        fill(&mut machine);
        let told: Vec<_> = warnings(&machine).collect();
        assert!(told.len() == 1 && told[0].contains("/no/such/folder: No such file"), "{told:?}");
        assert_eq!(machine.samples().len(), 20_000);
    }

    #[test]
    fn what_is_beyond_the_limit_is_in_the_file() {
        let mut machine = ExportMachine::default();
        spill_samples(&mut machine, 20_000);
        fill(&mut machine);
        assert!(machine.samples().bytes_in_file() > 40_000, "{}", machine.samples().bytes_in_file());
        assert!(machine.samples().times().eq((0..20_000).map(|time| Nanos(time << 20))));
        assert_eq!(warnings(&machine).count(), 0);
    }
}
