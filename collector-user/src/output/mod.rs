//! Files that appear when they are whole: what is made before a recording starts, so that a folder that can't be written is told at
//! once, and put into place when it is over.
//!
//! ```
//! use collector_user::output::OutputFile;
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("names");
//!
//! let file = OutputFile::open(&path)?;
//! assert!(!path.exists());
//! file.fill(|out| out.write_all(b"all of them"))?;
//! assert_eq!(std::fs::read(&path)?, b"all of them");
//! # Ok::<(), std::io::Error>(())
//! ```

mod file;
#[cfg(not(target_os = "linux"))]
mod named;
mod place;
#[cfg(target_os = "linux")]
mod temporary;
mod url;

pub use file::OutputFile;
#[cfg(target_os = "linux")]
pub use place::Descriptor;
pub use place::{Place, Places};
pub use url::is_url;
