//! All recordings that can be read, and which of them a file is: that is told by its first bytes, whatever it is called.

use super::firefox::Firefox;
use super::folded::Folded;
use super::jfr::Jfr;
use super::nettrace::Nettrace;
use super::pprof::Pprof;
use super::{Begin, ImportFormat};

/// How many of a file's bytes tell what it is.
pub const BEGIN: usize = 1 << 14;

/// All readers. What has a signature comes before what is told by how it looks.
pub fn importers() -> &'static [&'static dyn ImportFormat] {
    static IMPORTERS: [&dyn ImportFormat; 5] = [&Nettrace, &Jfr, &Firefox, &Pprof, &Folded];
    &IMPORTERS
}

/// The reader of a file with these first bytes.
pub fn of(begin: &[u8]) -> Option<&'static dyn ImportFormat> {
    let begin = Begin::of(begin);
    importers().iter().find(|importer| importer.begins(&begin)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(begin: &[u8]) -> Option<&'static str> {
        of(begin).map(ImportFormat::name)
    }

    #[test]
    fn the_first_bytes_choose() {
        assert_eq!(name(b"Nettrace\0\0\0\0"), Some("nettrace"));
        assert_eq!(name(b"FLR\0"), Some("jfr"));
        assert_eq!(name(b" \n{\"meta\": {"), Some("firefox"));
        assert_eq!(name(b"main;f;g 12\n"), Some("folded"));
        assert_eq!(name(b"\nmain;f;g 12\nrest"), Some("folded"));
        // A sample type of two strings' numbers.
        assert_eq!(name(&[0x0a, 4, 8, 1, 16, 2, 0x12, 3]), Some("pprof"));
        for other in [&b""[..], b"PERFILE2", b"\x7fELF", b"[1,2]", b"hello\n", b"PK\x03\x04", &[0x1f, 0x8b]] {
            assert_eq!(name(other), None, "{other:?}");
        }
    }
}
