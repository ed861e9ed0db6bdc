//! What helps with a file that can't be read. In: what is wrong with it. Out: words for people, which the errors of all readers have in common.

use std::io::{self, ErrorKind};

/// It has no byte.
pub const EMPTY: &str =
    "copy it again, or record it again and let what records end by itself: some recorders write only then";

/// It ends too early.
pub const CUT: &str = "copy it again if the original is longer; else record it again, and stop what records rather than killing it";

/// It has other bytes than it should.
pub const DAMAGED: &str = "copy it again, byte for byte; where the original is the same, record it again";

/// It has more than is read.
pub const TOO_LARGE: &str = "record for less time, or less at once";

/// It is of a version that came after this program.
pub const NEWER: &str = "have it written in a version that is read, or take a newer collector";

/// What helps where a file can't be opened, read or unpacked, by the system's or the library's reason.
pub fn of_reading(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "name a recording that is there",
        ErrorKind::PermissionDenied => {
            "have its owner let you read it, read it with the rights of an administrator, or name another file"
        }
        ErrorKind::IsADirectory => "name a file in it",
        ErrorKind::UnexpectedEof => CUT,
        ErrorKind::InvalidData | ErrorKind::InvalidInput => DAMAGED,
        _ => {
            "copy it to another disk and read it there; where it can't be copied, the system's log says what fails"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_remedies() {
        let of = |kind: ErrorKind| of_reading(&kind.into());
        assert!(of(ErrorKind::NotFound).contains("that is there"));
        assert!(of(ErrorKind::PermissionDenied).contains("let you read it"));
        assert_eq!(of(ErrorKind::UnexpectedEof), CUT);
        assert_eq!(of(ErrorKind::InvalidData), DAMAGED);
        assert!(of(ErrorKind::Other).contains("another disk"));
    }
}
