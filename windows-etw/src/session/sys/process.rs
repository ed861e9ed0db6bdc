//! Other processes: whether they are there, and whether they have ended.

use std::io;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};

use collector_common::ids::Pid;
use windows_sys::Win32::Foundation::{ERROR_INVALID_PARAMETER, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_SYNCHRONIZE, WaitForSingleObject};

/// A process that was there when it was looked for. As long as this is held, no other one has its number.
#[derive(Debug)]
pub struct OtherProcess {
    /// `None` for one that nobody may open, as protected ones are.
    handle: Option<OwnedHandle>,
}

impl OtherProcess {
    /// The process of this number; `None` where there is none.
    pub fn find(pid: Pid) -> Option<Self> {
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

#[cfg(test)]
mod tests {
    use std::process::{self, Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_there_until_it_ends() {
        assert!(!OtherProcess::find(Pid(process::id())).unwrap().has_ended());
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
