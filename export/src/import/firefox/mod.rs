//! A profile of Firefox Profiler in (its processed format, which samply writes too), a machine out.
//!
//! - `text`: the text, thread by thread. `json`: what is read of it; `columns`: its tables' columns, of numbers and strings.
//! - `code`: frames and stacks. `events`: markers that become samples. `threads`: the whole, thread by thread.
//!
//! Versions 47 to 75 are read: of the tables, those that were a thread's became all threads' with 56 to 60, and their columns changed
//! with 58, 66, 70, 71 and 75 (the web application's `processed-profile-versioning`). What a browser itself hands over is another
//! format, which the web application makes this one of.
//!
//! A profile is read as a stream: first what is no thread's, and then each thread. What is held are columns of numbers, and the strings, of
//! one thread and of what is all threads'.

mod code;
mod columns;
mod events;
mod json;
mod text;
mod threads;

use std::io::{self, SeekFrom};

use collector_common::record::ExportMachine;
use collector_common::remedy::NEWER;
use serde_json::error::Category;

use super::interface::not_empty;
use super::{Begin, ImportError, ImportFormat, Imported, Input};
use json::HeadMeta;

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

    fn endings(&self) -> &'static str {
        ".json.gz .json"
    }

    fn signature(&self) -> &'static [u8] {
        b""
    }

    fn mark(&self) -> &'static str {
        "`{` and the key `meta`, perhaps in gzip"
    }

    fn begins(&self, begin: &Begin<'_>) -> bool {
        let has = |key: &[u8]| begin.plain.windows(key.len()).any(|bytes| bytes == key);
        begin.plain.trim_ascii_start().starts_with(b"{")
            && (has(b"\"meta\"") || has(b"\"shared\"") || has(b"\"libs\""))
            // Speedscope's files have what their frames share, too.
            && !has(b"\"$schema\"")
    }

    fn most_bytes(&self) -> u64 {
        text::MOST_BYTES
    }

    fn import_into(
        &self,
        machine: ExportMachine,
        input: &mut dyn Input,
        _: u64,
    ) -> Result<Imported, ImportError> {
        not_empty(input)?;
        let start = input.stream_position()?;
        check(&text::head(&mut *input)?)?;
        input.seek(SeekFrom::Start(start))?;
        let file = text::whole(&mut *input)?;
        input.seek(SeekFrom::Start(start))?;
        threads::read(machine, &file, input)
    }
}

fn check(meta: &HeadMeta) -> Result<(), ImportError> {
    match meta.preprocessed_profile_version {
        Some(version) if VERSIONS.contains(&version) => Ok(()),
        Some(version) => Err(ImportError::Unsupported {
            what: format!(
                "it is of version {version} of Firefox Profiler's format, of which {} to {} are read",
                VERSIONS.start(),
                VERSIONS.end()
            ),
            remedy: if version > *VERSIONS.end() {
                NEWER
            } else {
                "open it in profiler.firefox.com and save it there, which makes it a newer one"
            },
        }),
        None => Err(ImportError::Unsupported {
            what: "it is a profile as the browser itself hands it over".to_owned(),
            remedy: "open it in profiler.firefox.com and save it there, which makes it one that is read",
        }),
    }
}

fn malformed(what: String) -> ImportError {
    ImportError::Malformed { format: "profile of Firefox Profiler", what }
}

impl From<serde_json::Error> for ImportError {
    fn from(error: serde_json::Error) -> Self {
        match error.classify() {
            Category::Io => io::Error::from(error).into(),
            Category::Eof => Self::Cut(error.to_string()),
            Category::Syntax | Category::Data => malformed(error.to_string()),
        }
    }
}
