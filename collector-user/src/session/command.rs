//! The command that is recorded: started stopped, released when all is attached.

use std::env;
use std::ffi::OsString;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::process::ExitStatus;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::SessionError;
use crate::sys::spawn::{InvokingUser, WaitingCommand};

/// A command under recording.
#[derive(Debug)]
pub struct Command {
    /// The program, and its arguments.
    words: Vec<OsString>,
    state: State,
    pid: u32,
    /// Becomes readable when the command ends.
    end: OwnedFd,
}

#[derive(Debug)]
enum State {
    Waiting(WaitingCommand),
    Running(std::process::Child),
    /// It could not be executed; the error was given.
    Failed,
}

impl Command {
    /// Forks the command; it does not run yet. Under sudo it will run as the user who called sudo.
    ///
    /// # Errors
    /// When no process can be made.
    pub fn start(line: &[OsString]) -> Result<Self, SessionError> {
        let (program, args) = line.split_first().ok_or(SessionError::Command {
            program: OsString::from("--"),
            source: std::io::Error::new(std::io::ErrorKind::InvalidInput, "no command is named"),
        })?;
        let failed = |source| SessionError::Command { program: program.clone(), source };
        let user = invoking_user().map_err(failed)?;
        let waiting = WaitingCommand::start(program, args, user.as_ref()).map_err(failed)?;
        let pid = waiting.pid();
        let end = Pid::from_raw(pid.cast_signed())
            .ok_or(rustix::io::Errno::SRCH)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()))
            .map_err(|error| failed(error.into()))?;
        Ok(Self { words: line.to_vec(), state: State::Waiting(waiting), pid, end })
    }

    /// The command as it was given, for people.
    pub fn line(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    /// The same, as it is executed.
    pub(super) fn words(&self) -> &[OsString] {
        &self.words
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it run.
    ///
    /// # Errors
    /// When the program cannot be executed.
    pub fn release(&mut self) -> Result<(), SessionError> {
        if let State::Waiting(waiting) = std::mem::replace(&mut self.state, State::Failed) {
            let program = self.words.first().cloned().unwrap_or_default();
            let failed = |source| SessionError::Command { program: program.clone(), source };
            self.state = State::Running(waiting.release().map_err(failed)?);
        }
        Ok(())
    }

    /// Becomes readable when the command has ended.
    pub(super) fn end(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }

    /// How it ended, or `None` while it runs.
    pub fn try_status(&mut self) -> Option<ExitStatus> {
        match &mut self.state {
            State::Running(child) => child.try_wait().ok().flatten(),
            State::Waiting(_) | State::Failed => None,
        }
    }
}

/// Who called sudo, if this runs under it.
fn invoking_user() -> std::io::Result<Option<InvokingUser>> {
    if !rustix::process::geteuid().is_root() || env::var_os("SUDO_UID").is_none() {
        return Ok(None);
    }
    let number = |name| env::var(name).ok()?.parse().ok();
    let user = number("SUDO_UID").zip(number("SUDO_GID")).zip(env::var_os("SUDO_USER"));
    // To run the command as root instead would be more than it was asked for.
    let ((uid, gid), name) = user.ok_or_else(|| {
        std::io::Error::other(
            "SUDO_UID, SUDO_GID and SUDO_USER do not name a user; set all three, as sudo does, or none",
        )
    })?;
    Ok(Some(InvokingUser { uid, gid, name }))
}
