//! A path in, the file's own name and its folder out: of Unix, or of Windows, where backslashes stand between folders.

/// The folder and the name; without a folder where the path has none.
pub(crate) fn split(path: &str) -> (Option<&str>, &str) {
    let at = if is_of_windows(path) { path.rfind(['\\', '/']) } else { path.rfind('/') };
    match at {
        Some(at) => (Some(&path[..at]), &path[at + 1..]),
        None => (None, path),
    }
}

/// The name alone.
pub(crate) fn file_name(path: &str) -> &str {
    split(path).1
}

/// Whether a path is one of Windows: it begins with a drive (`C:\`), another machine (`\\host`), or a device
/// (`\Device\HarddiskVolume1`). A file of Unix may have backslashes in its name, but its path begins otherwise.
pub fn is_of_windows(path: &str) -> bool {
    match path.as_bytes() {
        [b'\\', ..] => true,
        [drive, b':', b'\\' | b'/', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_as_their_system_does() {
        for (path, folder, name) in [
            ("/usr/lib/libc.so.6", Some("/usr/lib"), "libc.so.6"),
            ("/a/b\\c", Some("/a"), "b\\c"),
            ("name", None, "name"),
            (r"C:\Windows\System32\ntdll.dll", Some(r"C:\Windows\System32"), "ntdll.dll"),
            (r"\Device\HarddiskVolume1\x.sys", Some(r"\Device\HarddiskVolume1"), "x.sys"),
            (r"\\host\share\é.exe", Some(r"\\host\share"), "é.exe"),
            ("c:/mixed\\x.dll", Some("c:/mixed"), "x.dll"),
        ] {
            assert_eq!(split(path), (folder, name));
        }
    }
}
