//! A named mutex, of which the name is all that counts.

use windows_sys::Win32::Foundation::{CloseHandle, HANDLE};
use windows_sys::Win32::System::Threading::CreateMutexW;

use super::wide;
use crate::session::Win32Error;

/// A mutex that this process made.
#[derive(Debug)]
pub(in crate::session) struct Mutex(HANDLE);

// SAFETY: a handle is a number that any thread of the process may close; this one is never waited on.
unsafe impl Send for Mutex {}
// SAFETY: nothing can be done with a shared one.
unsafe impl Sync for Mutex {}

impl Drop for Mutex {
    fn drop(&mut self) {
        // SAFETY: the handle is open: it came from CreateMutexW and is closed here alone.
        unsafe { CloseHandle(self.0) };
    }
}

/// A new mutex of this name; none where there is one.
pub(in crate::session) fn create_mutex(name: &str) -> Result<Option<Mutex>, Win32Error> {
    let name = wide(name);
    // SAFETY: the name ends with a zero and outlives the call; no attributes are given.
    let handle = unsafe { CreateMutexW(std::ptr::null(), 0, name.as_ptr()) };
    let last = Win32Error::last();
    if handle.is_null() {
        // It is there, and an administrator's.
        return if last == Win32Error::ACCESS_DENIED { Ok(None) } else { Err(last) };
    }
    let mutex = Mutex(handle);
    Ok((last != Win32Error::ALREADY_EXISTS).then_some(mutex))
}
