//! Named mutexes: those of which the name is all that counts, and those that are held.

use std::marker::PhantomData;
use std::time::Duration;

use windows_sys::Win32::Foundation::{CloseHandle, HANDLE, WAIT_ABANDONED, WAIT_FAILED, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{CreateMutexW, ReleaseMutex, WaitForSingleObject};

use super::wide;
use crate::session::Win32Error;

/// A mutex that this process made.
#[derive(Debug)]
pub(in crate::session) struct Mutex(HANDLE);

// SAFETY: a handle is a number that any thread of the process may close; who waits for it, `Held`, stays on its thread.
unsafe impl Send for Mutex {}
// SAFETY: nothing can be done with a shared one.
unsafe impl Sync for Mutex {}

impl Drop for Mutex {
    fn drop(&mut self) {
        // SAFETY: the handle is open: it came from CreateMutexW and is closed here alone.
        unsafe { CloseHandle(self.0) };
    }
}

/// A mutex that this thread holds, which others wait for until it is dropped.
#[derive(Debug)]
pub(in crate::session) struct Held {
    mutex: Mutex,
    /// It is the thread's.
    _thread: PhantomData<*const ()>,
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and this thread holds the mutex: it can't have gone to another one.
        unsafe { ReleaseMutex(self.mutex.0) };
    }
}

/// A new mutex of this name; none where there is one.
pub(in crate::session) fn create_mutex(name: &str) -> Result<Option<Mutex>, Win32Error> {
    match open(name) {
        Ok((mutex, is_new)) => Ok(is_new.then_some(mutex)),
        // It is there, and an administrator's.
        Err(Win32Error::ACCESS_DENIED) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Holds the mutex of this name, which is made where there is none. [`Win32Error::TIMEOUT`] is that another one has not let it go by then.
pub(in crate::session) fn hold(name: &str, patience: Duration) -> Result<Held, Win32Error> {
    let (mutex, _) = open(name)?;
    // SAFETY: the handle is open as long as it is held.
    match unsafe { WaitForSingleObject(mutex.0, patience.as_millis() as u32) } {
        // Of the latter the thread has ended that held it.
        WAIT_OBJECT_0 | WAIT_ABANDONED => Ok(Held { mutex, _thread: PhantomData }),
        WAIT_FAILED => Err(Win32Error::last()),
        _ => Err(Win32Error::TIMEOUT),
    }
}

/// The mutex of this name, and whether there was none.
fn open(name: &str) -> Result<(Mutex, bool), Win32Error> {
    let name = wide(name);
    // SAFETY: the name ends with a zero and outlives the call; no attributes are given.
    let handle = unsafe { CreateMutexW(std::ptr::null(), 0, name.as_ptr()) };
    let last = Win32Error::last();
    if handle.is_null() { Err(last) } else { Ok((Mutex(handle), last != Win32Error::ALREADY_EXISTS)) }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_one_thread_holds_others_wait_for() {
        const NAME: &str = "Global\\collector-mutex-test";
        let held = hold(NAME, Duration::ZERO).unwrap();
        let elsewhere = || thread::spawn(|| hold(NAME, Duration::from_millis(20)).map(drop)).join().unwrap();
        assert_eq!(elsewhere(), Err(Win32Error::TIMEOUT));
        drop(held);
        assert_eq!(elsewhere(), Ok(()));
        // A thread that ends with it lets it go.
        thread::spawn(|| std::mem::forget(hold(NAME, Duration::ZERO).unwrap())).join().unwrap();
        assert_eq!(elsewhere(), Ok(()));
    }
}
