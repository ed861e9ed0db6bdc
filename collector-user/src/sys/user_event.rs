//! An event of this program's own that the kernel knows. Source of the semantics: `Documentation/trace/user_events.rst`,
//! `include/uapi/linux/user_events.h` and `kernel/trace/trace_events_user.c` of Linux.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd as _;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::{Errno, writev};
use rustix::ioctl::opcode;

/// `struct user_reg`
#[repr(C, packed)]
struct Registration {
    size: u32,
    enable_bit: u8,
    /// Bytes of the word with the bit.
    enable_size: u8,
    flags: u16,
    /// Where that is.
    enable_addr: u64,
    /// Where the declaration is, which ends with a NUL.
    name_args: u64,
    /// Which of the file's events it is, as the kernel says.
    write_index: u32,
}

/// `struct user_unreg`
#[repr(C, packed)]
struct End {
    size: u32,
    disable_bit: u8,
    reserved: [u8; 3],
    disable_addr: u64,
}

const _: () = assert!(size_of::<Registration>() == 28 && size_of::<End>() == 16);

/// `DIAG_IOCSREG`: the size in it is that of a pointer.
const REGISTER: u32 = opcode::read_write::<*mut Registration>(b'*', 0);

/// `DIAG_IOCSUNREG`
const UNREGISTER: u32 = opcode::write::<*mut End>(b'*', 2);

/// The bit of the word.
const BIT: u8 = 0;

/// A registered event. Dropped without [`Registered::end`] it leaves its word to the kernel. Minimum kernel: 6.4.
#[derive(Debug)]
pub(crate) struct Registered {
    /// The kernel keeps the event while it is open.
    file: File,
    /// Which of the file's events it is.
    index: u32,
    /// Where the kernel says whether somebody records it.
    word: ManuallyDrop<Box<AtomicU32>>,
}

impl Registered {
    /// Registers what is declared. `file` is an open `user_events_data` of tracefs.
    pub(crate) fn new(file: File, declaration: &CStr) -> io::Result<Self> {
        let word = ManuallyDrop::new(Box::new(AtomicU32::new(0)));
        let mut registration = Registration {
            size: size_of::<Registration>() as u32,
            enable_bit: BIT,
            enable_size: size_of::<AtomicU32>() as u8,
            flags: 0,
            enable_addr: address(&word),
            name_args: declaration.as_ptr().expose_provenance() as u64,
            write_index: 0,
        };
        // SAFETY: the kernel reads the structure of the size it says and the text up to its NUL, and writes the index into the
        // structure; both are valid for the call. From then on it sets and clears a bit of the word, atomically. The word is on
        // the heap, is nothing but atomic, and is freed only by `end`.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), REGISTER.into(), &raw mut registration) };
        if done < 0 {
            let error = io::Error::last_os_error();
            // The kernel does not know of it.
            drop(ManuallyDrop::into_inner(word));
            return Err(error);
        }
        Ok(Self { file, index: registration.write_index, word })
    }

    /// Whether somebody records it: a load of the word.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.word.load(Ordering::Relaxed) & (1 << BIT) != 0
    }

    /// Hands an occurrence to who records it. Gives whether somebody does.
    pub(crate) fn write(&self, payload: &[u8]) -> io::Result<bool> {
        let index = self.index.to_ne_bytes();
        match writev(&self.file, &[IoSlice::new(&index), IoSlice::new(payload)]) {
            Ok(_) => Ok(true),
            // Nobody does any more.
            Err(Errno::BADF) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Has the kernel forget it, and frees the word where that is done. It is done by the thread that registered it, and by those
    /// that were made by that one since: to others the kernel says that there is none, and goes on.
    pub(crate) fn end(self) {
        let mut end = End {
            size: size_of::<End>() as u32,
            disable_bit: BIT,
            reserved: [0; 3],
            disable_addr: address(&self.word),
        };
        // SAFETY: the kernel reads the structure of the size it says, which is valid for the call, and clears the bit of the word.
        let done = unsafe { libc::ioctl(self.file.as_raw_fd(), UNREGISTER.into(), &raw mut end) };
        if done == 0 {
            drop(ManuallyDrop::into_inner(self.word));
        }
    }
}

/// Where the kernel finds the word.
fn address(word: &AtomicU32) -> u64 {
    ptr::from_ref(word).expose_provenance() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_numbers_of_the_header() {
        // `_IOWR('*', 0, struct user_reg *)` and `_IOW('*', 2, struct user_unreg *)`, on machines of 64 bits.
        assert_eq!([REGISTER, UNREGISTER], [0xc008_2a00, 0x4008_2a02]);
    }
}
