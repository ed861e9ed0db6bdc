//! Why a dump, or a part of it, can't be read, and what to do about it.

use std::io;

use export::import::ImportError;

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum DumpError {
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
    #[error("it does not begin as one")]
    OtherFile,
    #[error("{what} at byte {at} should have {bytes} bytes, and there are fewer")]
    Short { what: &'static str, at: u64, bytes: u64 },
    #[error("{what} at byte {at} should have {bytes} bytes, and it ends {missing} bytes too early")]
    Cut { what: &'static str, at: u64, bytes: u64, missing: u64 },
    #[error("{what} at byte {at} has {count} entries, and {most} are the most that is read")]
    TooMany { what: &'static str, at: u64, count: u64, most: u64 },
    #[error("{what} at byte {at} is one more of texts that are longer together than the file, and not read")]
    Repeated { what: &'static str, at: u64 },
    #[error("it lacks {0}")]
    Missing(&'static str),
    #[error(
        "it is a minidump of a system other than Windows (platform {0:#x}), as Breakpad and Crashpad write them there: its programs have \
         no unwind codes of Windows"
    )]
    OtherSystem(u32),
    #[error(
        "it is a minidump of processor architecture {0}: the registers of x86, x64 and ARM64 alone are known"
    )]
    OtherProcessor(u16),
}

impl From<DumpError> for ImportError {
    fn from(error: DumpError) -> Self {
        match error {
            DumpError::Io(error) => Self::Read(error),
            DumpError::Cut { .. } => Self::Cut(error.to_string()),
            DumpError::OtherSystem(_) => Self::Unsupported {
                what: error.to_string(),
                remedy: "read it with a debugger of that system, as LLDB or minidump-stackwalk",
            },
            DumpError::OtherProcessor(_) => {
                Self::Unsupported { what: error.to_string(), remedy: "read it with WinDbg" }
            }
            DumpError::Missing(_) => Self::Unsupported {
                what: error.to_string(),
                remedy: "write it again with threads and memory, as `procdump -ma PID` does",
            },
            other @ (DumpError::OtherFile
            | DumpError::Short { .. }
            | DumpError::TooMany { .. }
            | DumpError::Repeated { .. }) => Self::Malformed { format: "minidump", what: other.to_string() },
        }
    }
}
