//! A `perf_event_open` descriptor. Source of the semantics: `perf_event_open(2)`.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys::{bindings::perf_event_attr, ioctls};

/// An open event. Closing it ends it.
#[derive(Debug)]
pub(crate) struct PerfEvent {
    fd: OwnedFd,
}

/// For whom an event counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whom<'a> {
    /// All that run on the CPU.
    Anyone,
    /// A thread.
    Thread(u32),
    /// The processes of a cgroup, by its folder.
    Cgroup(BorrowedFd<'a>),
}

impl PerfEvent {
    /// Opens an event on `cpu`. `attr` must have its `size` set.
    pub(crate) fn open(attr: &perf_event_attr, whom: Whom<'_>, cpu: u32) -> io::Result<Self> {
        /// `PERF_FLAG_FD_CLOEXEC`
        const CLOSE_ON_EXEC: std::ffi::c_ulong = 8;
        /// `PERF_FLAG_PID_CGROUP`
        const OF_CGROUP: std::ffi::c_ulong = 4;
        let (pid, flags) = match whom {
            Whom::Anyone => (-1, 0),
            Whom::Thread(tid) => (tid.cast_signed(), 0),
            Whom::Cgroup(folder) => (folder.as_raw_fd(), OF_CGROUP),
        };
        let mut attr = *attr;
        // SAFETY: `attr` is a valid structure of the size it says; the kernel writes to it only on E2BIG.
        let fd = unsafe {
            let attr = &raw mut attr;
            perf_event_open_sys::perf_event_open(attr, pid, cpu.cast_signed(), -1, flags | CLOSE_ON_EXEC)
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

    /// Runs a BPF program at each overflow, or when a probe is hit, for as long as the event is open.
    pub(crate) fn set_bpf(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let program = program.as_raw_fd().cast_unsigned();
        // SAFETY: as above; the argument is a descriptor number, checked by the kernel.
        check(unsafe { ioctls::SET_BPF(self.fd.as_raw_fd(), program) })
    }

    /// Records those occurrences of a tracepoint alone that a filter in the kernel's language lets through; others are not
    /// counted. Of one that is inherited, all that inherit it.
    pub(crate) fn set_filter(&self, filter: &CStr) -> io::Result<()> {
        // SAFETY: as above; the kernel reads text up to its NUL, which is there, and writes nothing.
        check(unsafe { ioctls::SET_FILTER(self.fd.as_raw_fd(), filter.as_ptr().cast_mut()) })
    }

    /// Sends its records to the ring of another event, of the same CPU and clock.
    pub(crate) fn write_to(&self, other: &Self) -> io::Result<()> {
        // SAFETY: as above; the argument is a descriptor number, checked by the kernel.
        check(unsafe { ioctls::SET_OUTPUT(self.fd.as_raw_fd(), other.fd.as_raw_fd()) })
    }

    /// The number by which its records name it.
    pub(crate) fn id(&self) -> io::Result<u64> {
        let mut id = 0;
        // SAFETY: the kernel writes a number of this size to the pointer, which is valid for the call.
        check(unsafe { ioctls::ID(self.fd.as_raw_fd(), &raw mut id) })?;
        Ok(id)
    }

    /// The count: for a clock event nanoseconds. Of one that is inherited, with all that inherited it.
    pub(crate) fn count(&self) -> io::Result<u64> {
        self.read::<1>().map(|[count]| count)
    }

    /// Reads `N` numbers, as its read format orders them.
    pub(crate) fn read<const N: usize>(&self) -> io::Result<[u64; N]> {
        let mut values = [0; N];
        let bytes = bytemuck::bytes_of_mut(&mut values);
        let wanted = bytes.len();
        if rustix::io::read(&self.fd, bytes)? != wanted {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(values)
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
