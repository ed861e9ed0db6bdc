//! What can't be read. In: a path with what the system says, or with first bytes that no reader is for. Out: why that is, and what to do about it.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::Path;

use collector_common::remedy::{CUT, of_reading};
use export::format::for_path;
use export::import::{BEGIN, Begin, ImportError, ImportFormat};

use crate::imported::{reader_for, readers};
use crate::known::{CONVERT_ITS_ORIGIN, known};
use crate::raw;

/// Which command reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// `collector convert`, which unwinds stacks, too.
    Convert,
    /// `collector report`.
    Report,
}

/// What a perf.data begins with, in either byte order.
const PERF_DATA: [&[u8; 8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// What one of the first version begins with.
const OLD_PERF_DATA: &[u8; 8] = b"PERFFILE";

/// Bytes that tell a perf.data.
const HEADER: usize = 16;

/// What can't be opened, or read at all.
pub(crate) fn unopened(path: &Path, error: &io::Error, by: By) -> anyhow::Error {
    let name = if path.as_os_str() == "-" { "stdin".into() } else { path.display().to_string() };
    if path.is_dir() {
        return anyhow::anyhow!(
            "{name} can't be read: it is a folder; name a file in it, or have `collector convert` make one of a folder of `perf record --threads`"
        );
    }
    let remedy = of_reading(error);
    if error.kind() == io::ErrorKind::NotFound {
        return anyhow::anyhow!("{name} can't be read: {error}; {remedy}: {}", readable(by));
    }
    anyhow::anyhow!("{name} can't be read: {error}; {remedy}")
}

/// Why no reader is for a file.
pub(crate) fn unreadable_file(file: &mut File, path: &Path, by: By) -> anyhow::Error {
    let mut begin = Vec::new();
    let read = file.rewind().and_then(|()| file.take(BEGIN as u64).read_to_end(&mut begin));
    match read.and_then(|_| file.rewind()) {
        Ok(()) => why(&begin, path, Some(file), by),
        Err(error) => ImportError::from(error).into(),
    }
}

/// The same of a stream with these first bytes.
pub(crate) fn unreadable(begin: &[u8], path: &Path, by: By) -> anyhow::Error {
    why(begin, path, None, by)
}

fn why(begin: &[u8], path: &Path, file: Option<&mut File>, by: By) -> anyhow::Error {
    if begin.is_empty() {
        return ImportError::Empty.into();
    }
    if let Some(told) = told_of_perf_data(begin, path, by).or_else(|| told_of_cut(begin)) {
        return anyhow::anyhow!(told);
    }
    let of_ending = of_ending(path);
    let first = Begin::of(begin);
    let is_packed = first.plain != first.bytes;
    if is_packed && first.plain.is_empty() {
        return anyhow::anyhow!(
            "it is compressed by gzip, and cut short or damaged in its first bytes; {CUT}"
        );
    }
    if is_packed && let Some(within) = name_of(&first.plain) {
        return anyhow::anyhow!("it is {within} that is compressed by gzip; unpack it first: `gzip -d FILE`");
    }
    if let Some(known) = known(&first.plain) {
        let packed = if is_packed { ", compressed by gzip" } else { "" };
        let other = of_ending.map_or(String::new(), |reader| {
            format!(", though its ending is that of {}", reader.description())
        });
        return anyhow::anyhow!("it is {}{packed}{other}; {}", known.what, known.remedy);
    }
    let reader = of_ending.and_then(|reader| Some((reader, reader.import(file?).err()?)));
    if let Some((reader, error)) = reader {
        let other = reader.description();
        return anyhow::Error::new(error)
            .context(format!("its ending is that of {other}, as which it can't be read"));
    }
    if let Some(format) = for_path(path).filter(|_| of_ending.is_none()) {
        let name = format.name();
        return anyhow::anyhow!(
            "its ending is that of {name}, which is written and not read; {CONVERT_ITS_ORIGIN}"
        );
    }
    let shown: Vec<String> = first.plain.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
    anyhow::anyhow!(
        "it begins with the bytes {}, and is nothing that can be read; name a file of these: {}",
        shown.join(" "),
        readable(by)
    )
}

/// So many bytes of what is unknown are shown.
const SHOWN: usize = 8;

/// Of a perf.data that is too short, or that `report` is given.
fn told_of_perf_data(begin: &[u8], path: &Path, by: By) -> Option<String> {
    let marks = || PERF_DATA.iter().chain([&OLD_PERF_DATA]);
    if marks().any(|mark| begin.starts_with(&mark[..]) && begin.len() < HEADER) {
        let length = begin.len();
        return Some(format!(
            "it is a perf.data that is cut short: it ends at byte {length}, in its header; {CUT}"
        ));
    }
    if by == By::Convert || !marks().any(|mark| begin.starts_with(&mark[..])) {
        return None;
    }
    let path = if path.as_os_str() == "-" { "FILE".into() } else { path.display().to_string() };
    Some(format!(
        "it is a perf.data, whose stacks have no names yet; have `collector convert {path} -o FILE.pb.gz` make a profile of it"
    ))
}

/// Of what ends within its signature.
fn told_of_cut(begin: &[u8]) -> Option<String> {
    let raw = (raw::NAME, &PERF_DATA[0][..]);
    let all = readers().map(|reader| (reader.description(), reader.signature())).chain([raw]);
    let (name, mark) =
        all.into_iter().find(|(_, mark)| begin.len() < mark.len() && mark.starts_with(begin))?;
    let (length, all) = (begin.len(), mark.len());
    Some(format!("it is cut short: it has {length} of the {all} bytes that {name} begins with; {CUT}"))
}

/// What begins so that is read, of which a reader says nothing where it is compressed.
fn name_of(plain: &[u8]) -> Option<&'static str> {
    let is_raw = PERF_DATA.iter().any(|mark| plain.starts_with(&mark[..]));
    if is_raw { Some(raw::NAME) } else { reader_for(plain, Path::new("")).map(ImportFormat::description) }
}

/// The reader of files with the ending that this one has.
pub(crate) fn of_ending(path: &Path) -> Option<&'static dyn ImportFormat> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let has = |ending: &str| name.len() > ending.len() && name.ends_with(ending);
    if has(raw::ENDING) {
        return None;
    }
    readers().find(|reader| reader.endings().split(' ').any(has))
}

/// What is read, with usual endings and how it begins.
fn readable(by: By) -> String {
    let raw = (by == By::Convert).then_some((raw::NAME, raw::ENDING, "`PERFILE2`"));
    let others = readers().map(|reader| (reader.description(), reader.endings(), reader.mark()));
    let all = raw.into_iter().chain(others);
    let all: Vec<String> = all.map(|(what, endings, mark)| format!("{what} ({endings}; {mark})")).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::list;

    fn told(begin: &[u8], name: &str, by: By) -> String {
        format!("{:#}", unreadable(begin, Path::new(name), by))
    }

    #[test]
    fn endings_and_marks_are_named_of_what_is_unknown() {
        for by in [By::Convert, By::Report] {
            let told = told(b"\x01\x02\xffhello", "x.bin", by);
            assert!(told.contains("begins with the bytes 01 02 ff 68 65 6c 6c 6f, and is nothing"), "{told}");
            for reader in readers() {
                assert!(told.contains(&format!("{} ({};", reader.description(), reader.endings())), "{told}");
                assert!(!reader.mark().is_empty());
                let is_its_row = |line: &&str| line.split(' ').next() == Some(reader.name());
                let row = list().lines().rev().find(is_its_row).map(str::to_owned).unwrap();
                assert!(row.contains(reader.endings()), "{row}");
            }
            assert_eq!(told.contains("perf.data (.perf.data; `PERFILE2`)"), by == By::Convert, "{told}");
        }
    }

    #[test]
    fn signatures_and_endings_are_each_of_one_reader() {
        for reader in readers() {
            let first = reader.endings().split(' ').next().unwrap();
            let of = of_ending(Path::new(&format!("/a/B{}", first.to_uppercase())));
            assert_eq!(of.map(ImportFormat::name), Some(reader.name()));
            let signature = reader.signature();
            if let Some((_, cut)) = signature.split_last() {
                assert!(reader.begins(&Begin::of(signature)) && !reader.begins(&Begin::of(cut)));
                let told = told(cut, "x", By::Convert);
                assert!(told.contains("is cut short") && told.contains(reader.description()), "{told}");
            }
        }
        assert!(of_ending(Path::new("x.perf.data")).is_none() && of_ending(Path::new(".jfr")).is_none());
    }

    #[test]
    fn a_perf_data_is_told_whatever_is_asked_for() {
        let cut = told(b"PERFILE2\x68\0", "perf.data", By::Convert);
        assert!(cut.contains("cut short: it ends at byte 10"), "{cut}");
        let whole = told(b"2ELIFREP\0\0\0\0\0\0\0\x10", "a b", By::Report);
        assert!(whole.contains("`collector convert a b -o FILE.pb.gz`"), "{whole}");
    }
}
