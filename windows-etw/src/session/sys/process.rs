//! Other processes: whether they are there, whether they have ended, and when those that are made here begin to run.

use std::io;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::os::windows::process::CommandExt as _;
use std::process::{Child, Command};

use collector_common::ids::Pid;
use windows_sys::Win32::Foundation::{ERROR_INVALID_PARAMETER, INVALID_HANDLE_VALUE, WAIT_OBJECT_0};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::Threading::{
    CREATE_SUSPENDED, OpenProcess, OpenThread, PROCESS_SYNCHRONIZE, ResumeThread, THREAD_SUSPEND_RESUME,
    WaitForSingleObject,
};

/// What numbers of processes are multiples of.
const MULTIPLE: u32 = 4;

/// A process that was there when it was looked for. As long as this is held, no other one has its number.
#[derive(Debug)]
pub struct OtherProcess {
    /// `None` for one that nobody may open, as protected ones are.
    handle: Option<OwnedHandle>,
}

impl OtherProcess {
    /// The process of this number; `None` where there is none.
    pub fn find(pid: Pid) -> Option<Self> {
        // Windows gives multiples of it alone, and finds the process below where another number is asked for.
        if !pid.0.is_multiple_of(MULTIPLE) {
            return None;
        }
        // SAFETY: it takes numbers alone.
        let handle = unsafe { OpenProcess(PROCESS_SYNCHRONIZE, 0, pid.0) };
        if handle.is_null() {
            let error = io::Error::last_os_error();
            let is_absent = error.raw_os_error() == Some(ERROR_INVALID_PARAMETER.cast_signed());
            return (!is_absent).then_some(Self { handle: None });
        }
        // SAFETY: it was opened just now, and nobody else has it.
        let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
        // Somebody may hold what is left of one that has ended.
        let found = Self { handle: Some(handle) };
        (!found.has_ended()).then_some(found)
    }

    /// Whether it has ended; of one that nobody may open this is never known.
    pub fn has_ended(&self) -> bool {
        // SAFETY: the handle is open as long as it is held.
        let is_over = |handle: &OwnedHandle| unsafe { WaitForSingleObject(handle.as_raw_handle(), 0) };
        self.handle.as_ref().is_some_and(|handle| is_over(handle) == WAIT_OBJECT_0)
    }
}

/// A process that was made, and of which nothing runs yet. One that is dropped before it does is ended.
#[derive(Debug)]
pub struct Suspended {
    /// There until it runs.
    child: Option<Child>,
}

impl Suspended {
    /// Makes it.
    ///
    /// # Errors
    /// Those of [`Command::spawn`].
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        command.creation_flags(CREATE_SUSPENDED).spawn().map(|child| Self { child: Some(child) })
    }

    /// Its number.
    pub fn pid(&self) -> Pid {
        Pid(self.child.as_ref().map_or(0, Child::id))
    }

    /// Has it run. The standard library does not give its thread away, so that is looked for.
    ///
    /// # Errors
    /// When Windows does not find its thread, or does not let it run.
    pub fn run(mut self) -> io::Result<Child> {
        for thread in threads(self.pid())? {
            // SAFETY: it takes numbers alone.
            let handle = unsafe { OpenThread(THREAD_SUSPEND_RESUME, 0, thread) };
            if handle.is_null() {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: it was opened just now, and nobody else has it.
            let thread = unsafe { OwnedHandle::from_raw_handle(handle) };
            // SAFETY: the handle is open as long as it is held.
            if unsafe { ResumeThread(thread.as_raw_handle()) } == u32::MAX {
                return Err(io::Error::last_os_error());
            }
        }
        self.child.take().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // There is nobody to tell an error to.
            let _ = child.kill();
        }
    }
}

/// The threads of a process; there is at least one.
fn threads(pid: Pid) -> io::Result<Vec<u32>> {
    // SAFETY: it takes numbers alone.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was made just now, and nobody else has it.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    let mut entry = THREADENTRY32 { dwSize: size_of::<THREADENTRY32>() as u32, ..THREADENTRY32::default() };
    let mut threads = Vec::new();
    // SAFETY: the handle is open as long as it is held; the entry is as large as it says, and outlives the call.
    let mut is_there = unsafe { Thread32First(snapshot.as_raw_handle(), &raw mut entry) };
    while is_there != 0 {
        if entry.th32OwnerProcessID == pid.0 {
            threads.push(entry.th32ThreadID);
        }
        // SAFETY: as above.
        is_there = unsafe { Thread32Next(snapshot.as_raw_handle(), &raw mut entry) };
    }
    if threads.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(threads) }
}

#[cfg(test)]
mod tests {
    use std::process::{self, Stdio};

    use super::*;

    #[test]
    fn a_suspended_process_runs_when_it_is_let_and_ends_when_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ran.txt");
        let command = || {
            let mut command = Command::new("cmd.exe");
            command.args(["/c", "echo ran> ran.txt"]).current_dir(folder.path());
            command
        };
        let suspended = Suspended::spawn(&mut command()).unwrap();
        let found = OtherProcess::find(suspended.pid()).unwrap();
        drop(suspended);
        // It ends soon.
        while !found.has_ended() {
            std::thread::yield_now();
        }
        assert!(!file.exists(), "it ran");
        let suspended = Suspended::spawn(&mut command()).unwrap();
        assert!(!OtherProcess::find(suspended.pid()).unwrap().has_ended());
        assert!(suspended.run().unwrap().wait().unwrap().success());
        assert!(file.exists());
        assert!(threads(Pid(0xffff_fffc)).is_err());
    }

    #[test]
    fn a_process_is_there_until_it_ends() {
        assert!(!OtherProcess::find(Pid(process::id())).unwrap().has_ended());
        for off in 1..4 {
            assert!(OtherProcess::find(Pid(process::id() + off)).is_none(), "{off}");
        }
        let mut child =
            Command::new("cmd.exe").args(["/c", "set /p x="]).stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid(child.id());
        let found = OtherProcess::find(pid).unwrap();
        assert!(!found.has_ended());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(found.has_ended());
        assert!(OtherProcess::find(pid).is_none());
        assert!(OtherProcess::find(Pid(0xffff_fffc)).is_none());
    }
}
