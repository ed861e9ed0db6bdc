//! Files that are often taken for recordings and are none that is read. In: the first bytes of one. Out: what it is, and what to do instead.

/// What a file is that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// What it is, behind "it is".
    pub(crate) what: &'static str,
    /// What to do instead.
    pub(crate) remedy: &'static str,
}

/// For what shows a recording, and does not have it any more.
pub(crate) const CONVERT_ITS_ORIGIN: &str =
    "convert the recording that it was made of, which `collector run -o FILE.perf.data` keeps";

/// What is packed, by the bytes that it begins with.
const PACKED: [(&[u8], &str, &str); 6] = [
    (b"PK\x03\x04", "a zip archive", "unpack it first, and name a file in it"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "unpack it first: `zstd -d FILE`"),
    (b"\xfd7zXZ\0", "compressed by xz", "unpack it first: `xz -d FILE`"),
    (b"BZh", "compressed by bzip2", "unpack it first: `bzip2 -d FILE`"),
    (b"\x04\x22\x4d\x18", "compressed by lz4", "unpack it first: `lz4 -d FILE`"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first, and name a file in it"),
];

/// What is told by the bytes that it begins with.
const MARKED: [(&[u8], &str, &str); 10] = [
    (
        b"PAR1",
        "a table of Parquet, which is written and not read",
        "ask a database such as DuckDB, or convert the recording that it was made of",
    ),
    (b"PAGEDU", "a dump of Windows' kernel", "write a minidump of a process: `procdump -ma PID`"),
    (
        b"Microsoft C/C++ MSF 7.00",
        "a PDB, which has names for a recording",
        "name the recording; PDBs are found beside images and in the folders of _NT_SYMBOL_PATH",
    ),
    (b"MZ", "a program or a library of Windows", "name a recording of it"),
    (
        b"DTiJ",
        "a jitdump, which has names for a recording",
        "name the recording: a jitdump is found where it was when that was made",
    ),
    (
        b"JAVA PROFILE ",
        "a heap dump of a Java virtual machine, which has no stacks of samples",
        "record allocations as JFR, or open it in Eclipse Memory Analyzer",
    ),
    (
        b"\x14\0\0\0!FastSerialization.1",
        "a trace of .NET Core 2 (.netperf)",
        "record it with .NET Core 3.1 or newer",
    ),
    (
        b"go 1.",
        "an execution trace of Go",
        "look at it with `go tool trace`, or record a profile with runtime/pprof",
    ),
    (b"gmon", "a profile of gprof, which has no stacks", "look at it with `gprof`, or record the program"),
    (
        b"# callgrind format",
        "a profile of Callgrind, which has no stacks",
        "open it in KCachegrind, or record the program",
    ),
];

/// What JSON has near its beginning.
const JSON: [(&str, &str, &str); 4] = [
    ("speedscope.app", "a profile of speedscope, which is written and not read", "open it at speedscope.app"),
    ("\"traceEvents\"", "a trace of Chrome", "open it at ui.perfetto.dev"),
    (
        "\"type\":\"recording\"",
        "JSON lines, which are written and not read",
        "ask jq or a database such as DuckDB, or convert the recording that they were made of",
    ),
    ("\"nodes\"", "a profile of V8, or a heap snapshot", "open it in Chrome's DevTools or at speedscope.app"),
];

/// What begins with these bytes, as far as that is known. What is in gzip is told by what it is uncompressed.
pub(crate) fn known(begin: &[u8]) -> Option<Known> {
    let known = |what, remedy| Some(Known { what, remedy });
    let marked = PACKED.iter().chain(&MARKED).find(|(mark, ..)| begin.starts_with(mark));
    if let Some(&(_, what, remedy)) = marked {
        return known(what, remedy);
    }
    if begin.starts_with(b"\x7fELF") {
        return if is_core(begin) {
            known(
                "a core dump of a process",
                "look at it with a debugger, or record the program while it runs",
            )
        } else {
            known("a program or a library", "name a recording of it")
        };
    }
    if begin.len() >= ZEROS && begin.iter().all(|byte| *byte == 0) {
        return known(
            "zeros as far as was looked, as of a copy that was not finished or a disk that was full",
            "copy it again, or record it again",
        );
    }
    let text = String::from_utf8_lossy(begin);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with(['{', '[']) {
        let found = JSON.iter().find(|(mark, ..)| text.contains(mark));
        let (what, remedy) = found.map_or(
            (
                "JSON of another kind than Firefox Profiler's",
                "export what is in it in a format that is read, as pprof",
            ),
            |&(_, what, remedy)| (what, remedy),
        );
        return known(what, remedy);
    }
    let is_page = |mark: &str| text.get(..mark.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(mark));
    if text.starts_with("<svg") || text.starts_with("<?xml") && text.contains("<svg") {
        return known("a picture (SVG), which is written and not read", CONVERT_ITS_ORIGIN);
    }
    if is_page("<!doctype html") || is_page("<html") {
        return known("a page (HTML), which is written and not read", CONVERT_ITS_ORIGIN);
    }
    None
}

/// So many bytes of nothing are no beginning of anything.
const ZEROS: usize = 64;

/// By `e_type` of its header, in its byte order: `ET_CORE`.
fn is_core(begin: &[u8]) -> bool {
    const ET_CORE: u16 = 4;
    let number = begin.get(16..18).and_then(|bytes| bytes.first_chunk().copied());
    let number = match begin.get(5) {
        Some(2) => number.map(u16::from_be_bytes),
        _ => number.map(u16::from_le_bytes),
    };
    number == Some(ET_CORE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(begin: &[u8]) -> &'static str {
        known(begin).map_or("", |known| known.what)
    }

    #[test]
    fn what_is_often_given_is_known() {
        assert!(what(b"\xef\xbb\xbf\n<!DOCTYPE HTML><title>").contains("HTML"));
        assert!(what(b"<?xml version=\"1.0\"?>\n<svg ").contains("SVG"));
        assert!(
            what(b"{\"version\":\"0\",\"$schema\":\"https://www.speedscope.app/x\"}").contains("speedscope")
        );
        assert!(what(b"[1]").contains("JSON of another kind"));
        let elf = |order: u8, kind: [u8; 2]| [b"\x7fELF\x02", &[order][..], &[0; 10], &kind].concat();
        assert_eq!(what(&elf(1, [4, 0])), "a core dump of a process");
        assert_eq!(what(&elf(2, [0, 4])), "a core dump of a process");
        assert_eq!(what(&elf(1, [3, 0])), "a program or a library");
        assert_eq!(what(b"\x7fELF"), "a program or a library");
        assert!(what(&[0; 64]).contains("zeros"));
        for unknown in [&b""[..], &[0; 63], b"hello", b"<?xml?><a/>", &[0xff; 100]] {
            assert_eq!(known(unknown), None, "{unknown:?}");
        }
    }
}
