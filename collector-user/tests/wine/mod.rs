//! Wine, for tests that run programs for Windows: where it is, and a configuration of the tests' own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::prerequisites::{find, skip};

/// What compiles programs for Windows.
pub(crate) const COMPILER: &str = "x86_64-w64-mingw32-gcc";

/// Debian's, whose folder is not on PATH.
const DEBIAN_WINE: &str = "/usr/lib/wine/wine64";

/// The configuration is made once.
static SET_UP: Mutex<()> = Mutex::new(());

/// Wine, with a configuration of the tests' own.
pub(crate) struct Wine {
    pub(crate) program: PathBuf,
    pub(crate) prefix: PathBuf,
}

impl Wine {
    /// `None` where it is not installed, which has been said then.
    pub(crate) fn find(test: &str) -> Option<Self> {
        let debian = Some(PathBuf::from(DEBIAN_WINE)).filter(|program| program.is_file());
        let Some(program) = debian.or_else(|| find("wine64")).or_else(|| find("wine")) else {
            skip(test, "Wine for 64-bit programs is not installed");
            return None;
        };
        let wine = Self { program, prefix: Path::new(env!("CARGO_TARGET_TMPDIR")).join("wine") };
        let _one_at_a_time = SET_UP.lock().unwrap_or_else(PoisonError::into_inner);
        // The first time it makes its configuration, which takes longer than the test.
        let mut command = Command::new(&wine.program);
        wine.around(command.args(["cmd", "/c", "exit"]));
        assert!(command.stdin(Stdio::null()).status().unwrap().success());
        Some(wine)
    }

    /// Has a command run with that configuration.
    pub(crate) fn around(&self, command: &mut Command) {
        command
            .env("WINEPREFIX", &self.prefix)
            .env("WINEDEBUG", "-all")
            .env("WINEDLLOVERRIDES", "mscoree,mshtml=");
    }
}
