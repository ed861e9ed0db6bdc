//! Lines of `/proc/PID/maps`:
//! `7f0a1c000000-7f0a1c021000 r-xp 00002000 fe:01 1234    /usr/lib/libc.so.6`.

use std::borrow::Cow;

use collector_common::ids::{Avma, FileOffset};

/// What file a mapping shows, as the kernel numbers it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Device major number.
    pub major: u32,
    /// Device minor number.
    pub minor: u32,
    /// Inode number; 0 for memory without a file.
    pub inode: u64,
    /// Inode generation; 0 where it is not told.
    pub generation: u64,
}

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapsEntry<'a> {
    /// First address.
    pub start: Avma,
    /// First address after it.
    pub end: Avma,
    /// Whether it can be read.
    pub readable: bool,
    /// Whether it can be executed.
    pub executable: bool,
    /// Where in the file it starts.
    pub file_offset: FileOffset,
    /// Device and inode; the generation is not told here and 0.
    pub identity: Identity,
    /// The path without ` (deleted)`, a name in brackets, or nothing. A newline in it, written `\012` in the
    /// file, is one again.
    pub path: Cow<'a, [u8]>,
}

/// Parses a line without its newline; `None` if it is not of that form.
pub fn parse_maps_line(line: &[u8]) -> Option<MapsEntry<'_>> {
    let mut rest = line;
    let mut field = || {
        let start = rest.iter().position(|&byte| byte != b' ')?;
        let tail = &rest[start..];
        let len = tail.iter().position(|&byte| byte == b' ').unwrap_or(tail.len());
        let (head, after) = tail.split_at(len);
        rest = after;
        std::str::from_utf8(head).ok()
    };
    let (range, protection, offset, device, inode) = (field()?, field()?, field()?, field()?, field()?);
    let (start, end) = range.split_once('-')?;
    let (major, minor) = device.split_once(':')?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let path = rest.iter().position(|&byte| byte != b' ').map_or(&[][..], |start| &rest[start..]);
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    Some(MapsEntry {
        start: Avma(hex(start)?),
        end: Avma(hex(end)?),
        readable: protection.starts_with('r'),
        executable: protection.as_bytes().get(2) == Some(&b'x'),
        file_offset: FileOffset(hex(offset)?),
        identity: Identity {
            major: u32::try_from(hex(major)?).ok()?,
            minor: u32::try_from(hex(minor)?).ok()?,
            inode: inode.parse().ok()?,
            generation: 0,
        },
        path: unescape(path),
    })
}

/// Turns `\012` into a newline, the only byte the kernel escapes.
fn unescape(path: &[u8]) -> Cow<'_, [u8]> {
    const ESCAPED: &[u8] = b"\\012";
    if !path.windows(ESCAPED.len()).any(|window| window == ESCAPED) {
        return Cow::Borrowed(path);
    }
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, tail)) = rest.split_first() {
        if let Some(tail) = rest.strip_prefix(ESCAPED) {
            plain.push(b'\n');
            rest = tail;
        } else {
            plain.push(byte);
            rest = tail;
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path_of(line: &str) -> String {
        String::from_utf8(parse_maps_line(line.as_bytes()).unwrap().path.into_owned()).unwrap()
    }

    #[test]
    fn paths_come_as_they_were() {
        let head = "7f0a1c000000-7f0a1c021000 r-xp 00002000 fe:01 1234";
        let entry = parse_maps_line(head.as_bytes()).unwrap();
        assert_eq!((entry.start, entry.end), (Avma(0x7f0a_1c00_0000), Avma(0x7f0a_1c02_1000)));
        assert!(entry.readable && entry.executable);
        assert_eq!(entry.file_offset, FileOffset(0x2000));
        assert_eq!(entry.identity, Identity { major: 0xfe, minor: 1, inode: 1234, generation: 0 });
        assert_eq!(path_of(head), "");
        assert_eq!(path_of(&format!("{head}                      /a b/c")), "/a b/c");
        assert_eq!(path_of(&format!("{head} /tmp/x\\012y")), "/tmp/x\ny");
        assert_eq!(path_of(&format!("{head} /tmp/gone (deleted)")), "/tmp/gone");
        assert_eq!(path_of(&format!("{head} [anon:my heap]")), "[anon:my heap]");
    }

    proptest! {
        #[test]
        fn noise_is_refused_or_read(line in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = parse_maps_line(&line);
        }
    }
}
