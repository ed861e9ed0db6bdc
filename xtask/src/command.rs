//! Child processes with clear errors.
//!
//! In: a `Command`. Out: its success, its output, or an error that names the command line, what became of it and
//! where it ran. Also the question who we are, because half of the tasks need root for one step.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Error, Result, bail};

/// Runs `command` with this terminal, after showing its command line on stderr.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", line(command));
    let status = command.status().with_context(|| cannot_start(command))?;
    if !status.success() {
        bail!("`{}` failed: {status}", line(command));
    }
    Ok(())
}

/// Runs `command` quietly and returns what it printed on stdout.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| cannot_start(command))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed: {}\n{}", line(command), output.status, stderr.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Becomes `command`: signals reach it and its exit code is ours. Returns only when it can't be started.
pub(crate) fn become_it(command: &mut Command) -> Error {
    eprintln!("$ {}", line(command));
    Error::new(command.exec()).context(cannot_start(command))
}

/// `program`, through sudo when we are not root.
pub(crate) fn as_root(program: impl AsRef<OsStr>) -> Result<Command> {
    if is_root()? {
        return Ok(Command::new(program));
    }
    let program = program.as_ref();
    let Some(sudo) = find_program("sudo") else {
        bail!("`{}` must run as root and there is no sudo on PATH; run this task as root", program.display());
    };
    let mut command = Command::new(sudo);
    command.arg(program);
    Ok(command)
}

/// Whether the effective user is root, by the owner of our own `/proc` folder (proc(5)).
pub(crate) fn is_root() -> Result<bool> {
    Ok(fs::metadata("/proc/self").context("/proc is not mounted, so the user can't be told")?.uid() == 0)
}

/// The first file called `name` on PATH.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The command line as one would type it, without quoting.
pub(crate) fn line(command: &Command) -> String {
    let mut words = vec![short(command.get_program())];
    words.extend(command.get_args().map(short));
    words.join(" ")
}

/// A word of a command line; a path below the working folder is shown relative to it.
fn short(word: &OsStr) -> String {
    let here = env::current_dir().unwrap_or_default();
    Path::new(word).strip_prefix(&here).unwrap_or(Path::new(word)).display().to_string()
}

fn cannot_start(command: &Command) -> String {
    let program = command.get_program().display();
    match command.get_current_dir() {
        Some(folder) => format!("`{program}` can't be started in {}", folder.display()),
        None => format!("`{program}` can't be started"),
    }
}
