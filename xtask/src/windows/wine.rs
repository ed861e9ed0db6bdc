//! Wine, which runs programs for Windows here.
//!
//! In: Wine, and the compiler for Windows. Out: `target/wine`, with a configuration that no other program has, and the one library
//! that Wine lacks. Its functions of ETW do nothing or end the program, so what needs events can't be tried here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::command;
use crate::toolchain::{self, CrossTarget};
use crate::workspace::Workspace;

/// Where Debian's package `wine64` puts it; others put it on PATH.
pub(crate) const DEBIAN_WINE: &str = "/usr/lib/wine/wine64";
const LIBRARY: &str = "bcryptprimitives.dll";

/// A Wine that is ready.
pub(super) struct Wine {
    program: PathBuf,
    folder: PathBuf,
}

/// Debian's Wine, else one on PATH.
pub(crate) fn program() -> Option<PathBuf> {
    let debian = Path::new(DEBIAN_WINE);
    let on_path = || command::find_program("wine64").or_else(|| command::find_program("wine"));
    if debian.exists() { Some(debian.to_path_buf()) } else { on_path() }
}

impl Wine {
    /// Compiles what Wine lacks, where that is not done yet.
    pub(super) fn ready(workspace: &Workspace, target: &CrossTarget) -> Result<Self> {
        let program = program().context("there is no Wine; run `cargo xtask setup --for windows`")?;
        let folder = workspace.join("target/wine");
        fs::create_dir_all(&folder).with_context(|| format!("{} can't be made", folder.display()))?;
        let source = workspace.join("xtask/fixtures/wine/bcryptprimitives.c");
        let library = folder.join(LIBRARY);
        if !is_newer(&library, &source) {
            let mut compiler = toolchain::undisturbed(target.linker);
            compiler.args(["-O1", "-shared", "-o"]).arg(&library).arg(&source).arg("-ladvapi32");
            command::run(&mut compiler)?;
        }
        Ok(Self { program, folder })
    }

    /// Has what `command` starts find Wine's configuration and library. `COLLECTOR_WINE` tells tests where they run.
    pub(super) fn around(&self, command: &mut Command) {
        let windows_path = format!("Z:{}", self.folder.display().to_string().replace('/', "\\"));
        command.env("WINEPREFIX", self.folder.join("prefix")).env("WINEPATH", windows_path);
        command.env("WINEDEBUG", "-all").env("COLLECTOR_WINE", "1");
    }

    /// Has cargo run programs for `target` by it.
    pub(super) fn runner(&self, cargo: &mut Command, target: &CrossTarget) {
        cargo.env(target.variable("RUNNER"), &self.program);
        self.around(cargo);
    }

    /// `program`, to be run.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(program).current_dir(&self.folder);
        self.around(&mut command);
        command
    }

    /// Keeps Wine's server until what comes out is dropped, so that no program meets one that begins, or one that ends, as it does some seconds
    /// after the last program.
    pub(super) fn keep_server(&self) -> Result<Waiting> {
        let mut command = self.command(Path::new("cmd.exe"));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Waiting(command.spawn().context("Wine can't be started")?))
    }

    /// Where programs run.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// A program of Wine's that waits for commands.
pub(super) struct Waiting(Child);

impl Drop for Waiting {
    fn drop(&mut self) {
        // Where it can't be ended, it ends with this process, from which its commands would come.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

fn is_newer(file: &Path, than: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    modified(file).zip(modified(than)).is_some_and(|(file, than)| file >= than)
}
