//! A profile of Firefox Profiler in (its processed format, which samply writes too), a machine out.
//!
//! - `json`: what is read of the text; `columns`: its tables' columns, of numbers and strings.
//! - `code`: frames and stacks. `events`: markers that become samples. `threads`: the whole, thread by thread.
//!
//! Versions 47 to 75 are read: of the tables, those that were a thread's became all threads' with 56 to 60, and their columns changed
//! with 58, 66, 70, 71 and 75 (the web application's `processed-profile-versioning`). What a browser itself hands over is another
//! format, which the web application makes this one of.
//!
//! A profile is read as a stream: what is held are columns of numbers, and the strings.

mod code;
mod columns;
mod events;
mod json;
mod threads;

use std::io::SeekFrom;

use super::unpack::unpacked;
use super::{Begin, ImportError, ImportFormat, Imported, Input};
use json::{File, Head};

/// The most bytes, uncompressed.
const MOST_BYTES: u64 = 256 << 20;

const VERSIONS: std::ops::RangeInclusive<u32> = 47..=75;

/// The reader of Firefox Profiler's profiles.
#[derive(Clone, Copy, Debug)]
pub struct Firefox;

impl ImportFormat for Firefox {
    fn name(&self) -> &'static str {
        "firefox"
    }

    fn description(&self) -> &'static str {
        "Firefox Profiler"
    }

    fn begins(&self, begin: &Begin<'_>) -> bool {
        let has = |key: &[u8]| begin.plain.windows(key.len()).any(|bytes| bytes == key);
        begin.plain.trim_ascii_start().starts_with(b"{")
            && (has(b"\"meta\"") || has(b"\"shared\"") || has(b"\"libs\""))
    }

    fn import(&self, input: &mut dyn Input) -> Result<Imported, ImportError> {
        let start = input.stream_position()?;
        let head: Head = serde_json::from_reader(unpacked(&mut *input, MOST_BYTES)?)?;
        check(&head)?;
        input.seek(SeekFrom::Start(start))?;
        let file: File = serde_json::from_reader(unpacked(input, MOST_BYTES)?)?;
        threads::read(&file)
    }
}

fn check(head: &Head) -> Result<(), ImportError> {
    match head.meta.preprocessed_profile_version {
        Some(version) if VERSIONS.contains(&version) => Ok(()),
        Some(version) => Err(ImportError::Unsupported(format!(
            "it is of version {version} of Firefox Profiler's format, of which {} to {} are read; open it in \
             profiler.firefox.com and save it there, which may make it a newer one",
            VERSIONS.start(),
            VERSIONS.end()
        ))),
        None => Err(ImportError::Unsupported(
            "it is a profile as the browser itself hands it over; open it in profiler.firefox.com and save it there, \
             which makes it one that is read"
                .to_owned(),
        )),
    }
}

fn malformed(what: String) -> ImportError {
    ImportError::Malformed { format: "profile of Firefox Profiler", what }
}

impl From<serde_json::Error> for ImportError {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() { Self::Read(error.into()) } else { malformed(error.to_string()) }
    }
}
