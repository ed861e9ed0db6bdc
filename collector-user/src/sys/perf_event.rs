//! A `perf_event_open` descriptor. Source of the semantics: `perf_event_open(2)`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys::{bindings::perf_event_attr, ioctls};

/// An open event. Closing it ends it.
#[derive(Debug)]
pub(crate) struct PerfEvent {
    fd: OwnedFd,
}

impl PerfEvent {
    /// Opens an event for all threads on `cpu`. `attr` must have its `size` set.
    pub(crate) fn open_on_cpu(attr: &perf_event_attr, cpu: u32) -> io::Result<Self> {
        /// `PERF_FLAG_FD_CLOEXEC`
        const CLOSE_ON_EXEC: std::ffi::c_ulong = 8;
        let mut attr = *attr;
        // SAFETY: `attr` is a valid structure of the size it says; the kernel writes to it only on E2BIG.
        let fd = unsafe {
            perf_event_open_sys::perf_event_open(&raw mut attr, -1, cpu.cast_signed(), -1, CLOSE_ON_EXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call gave a new descriptor that nothing else owns.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Starts counting.
    pub(crate) fn enable(&self) -> io::Result<()> {
        // SAFETY: an ioctl without a pointer argument on a descriptor we own.
        check(unsafe { ioctls::ENABLE(self.fd.as_raw_fd(), 0) })
    }

    /// Stops counting; what was counted stays.
    pub(crate) fn disable(&self) -> io::Result<()> {
        // SAFETY: as above.
        check(unsafe { ioctls::DISABLE(self.fd.as_raw_fd(), 0) })
    }

    /// Runs a BPF program at each overflow, for as long as the event is open.
    pub(crate) fn set_bpf(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let program = program.as_raw_fd().cast_unsigned();
        // SAFETY: as above; the argument is a descriptor number, checked by the kernel.
        check(unsafe { ioctls::SET_BPF(self.fd.as_raw_fd(), program) })
    }

    /// The count: for a clock event nanoseconds.
    pub(crate) fn count(&self) -> io::Result<u64> {
        let mut value = [0_u8; 8];
        rustix::io::read(&self.fd, &mut value)?;
        Ok(u64::from_ne_bytes(value))
    }
}

impl AsFd for PerfEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
