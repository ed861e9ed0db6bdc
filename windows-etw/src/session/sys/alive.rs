//! The processes that are there.

use std::io;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};

use collector_common::ids::Pid;
use windows_sys::Win32::Foundation::{FILETIME, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::Threading::{
    GetProcessTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION,
};

use crate::plan::AliveProcess;

/// All of them but those that have ended meanwhile, and those of which Windows does not tell when they were made, which are its own.
///
/// # Errors
/// When Windows does not tell.
pub fn alive() -> io::Result<Vec<AliveProcess>> {
    // SAFETY: it takes numbers alone.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was made just now, and nobody else has it.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    let mut entry =
        PROCESSENTRY32W { dwSize: size_of::<PROCESSENTRY32W>() as u32, ..PROCESSENTRY32W::default() };
    let mut processes = Vec::new();
    // SAFETY: the handle is open as long as it is held; the entry is as large as it says, and outlives the call.
    let mut is_there = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut entry) };
    while is_there != 0 {
        let (pid, parent) = (Pid(entry.th32ProcessID), Pid(entry.th32ParentProcessID));
        processes.extend(made(pid).map(|made| AliveProcess { pid, parent, made }));
        // SAFETY: as above.
        is_there = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut entry) };
    }
    Ok(processes)
}

/// When a process was made.
fn made(pid: Pid) -> Option<u64> {
    // SAFETY: it takes numbers alone.
    let handle = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, pid.0) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: it was opened just now, and nobody else has it.
    let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
    let [mut made, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the handle is open as long as it is held; the four are variables that outlive the call.
    let told = unsafe {
        GetProcessTimes(handle.as_raw_handle(), &raw mut made, &raw mut ended, &raw mut kernel, &raw mut user)
    };
    (told != 0).then(|| u64::from(made.dwHighDateTime) << 32 | u64::from(made.dwLowDateTime))
}

#[cfg(test)]
mod tests {
    use std::process::{self, Command, Stdio};

    use super::*;
    use crate::plan::Family;

    #[test]
    fn a_child_is_of_the_family_of_its_maker() {
        let own = Pid(process::id());
        let mut child =
            Command::new("cmd.exe").args(["/c", "set /p x="]).stdin(Stdio::piped()).spawn().unwrap();
        let processes = alive().unwrap();
        let of = |pid: Pid| processes.iter().find(|process| process.pid == pid).copied().unwrap();
        let (maker, made) = (of(own), of(Pid(child.id())));
        assert_eq!(made.parent, own);
        assert!(made.made >= maker.made);
        let since = made.made + 1;
        let of = |root| Family::new(&processes, &[root], since).of(&processes);
        assert!(of(own).is_superset(&[own, made.pid].into()));
        assert!(!of(made.pid).contains(&own));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!alive().unwrap().iter().any(|process| process.pid == made.pid));
    }
}
