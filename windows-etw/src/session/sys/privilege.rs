//! Privileges, which an administrator has, but which are off until they are asked for.

use windows_sys::Win32::Foundation::{CloseHandle, HANDLE, LUID};
use windows_sys::Win32::Security::{
    AdjustTokenPrivileges, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW, SE_PRIVILEGE_ENABLED,
    TOKEN_ADJUST_PRIVILEGES, TOKEN_PRIVILEGES, TOKEN_QUERY,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use super::wide;
use crate::session::{SessionError, Win32Error};

struct Token(HANDLE);

impl Drop for Token {
    fn drop(&mut self) {
        // SAFETY: the handle is open: it came from OpenProcessToken and is closed here alone.
        unsafe { CloseHandle(self.0) };
    }
}

/// Turns `SeSystemProfilePrivilege` on for this process.
pub(in crate::session) fn turn_on_profile_privilege() -> Result<(), SessionError> {
    const NAME: &str = "SeSystemProfilePrivilege";
    let failed = |call| SessionError::of(call, NAME, Win32Error::last());
    let mut token = Token(std::ptr::null_mut());
    let access = TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY;
    // SAFETY: the pseudo handle of this process is always valid; the token's handle is written to a variable that outlives the call.
    let opened = unsafe { OpenProcessToken(GetCurrentProcess(), access, &raw mut token.0) };
    if opened == 0 {
        let error = failed("OpenProcessToken");
        // There is nothing to close.
        std::mem::forget(token);
        return Err(error);
    }
    let (name, mut id) = (wide(NAME), LUID::default());
    // SAFETY: the name ends with a zero; the result is written to a variable that outlives the call.
    if unsafe { LookupPrivilegeValueW(std::ptr::null(), name.as_ptr(), &raw mut id) } == 0 {
        return Err(failed("LookupPrivilegeValueW"));
    }
    let privilege = LUID_AND_ATTRIBUTES { Luid: id, Attributes: SE_PRIVILEGE_ENABLED };
    let wanted = TOKEN_PRIVILEGES { PrivilegeCount: 1, Privileges: [privilege] };
    let nowhere = std::ptr::null_mut();
    // SAFETY: the token is open with the access that this takes; what is wanted has the one privilege that it counts; the state
    // before is not asked for.
    let adjusted =
        unsafe { AdjustTokenPrivileges(token.0, 0, &raw const wanted, 0, nowhere, std::ptr::null_mut()) };
    match Win32Error::last() {
        // It succeeds, and says so, too, where the token has not what is wanted.
        Win32Error::NOT_ALL_ASSIGNED => Err(SessionError::NoProfilePrivilege),
        _ if adjusted == 0 => Err(failed("AdjustTokenPrivileges")),
        _ => Ok(()),
    }
}
