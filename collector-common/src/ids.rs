//! Newtypes that keep processes, threads, times and addresses apart.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    };
}

number!(
    /// A process id (thread group id) as the recording side's pid namespace numbers it.
    Pid(u32)
);
number!(
    /// A thread id in the same namespace as [`Pid`].
    Tid(u32)
);
number!(
    /// A user's id as the recording side's user namespace numbers it.
    Uid(u32)
);
number!(
    /// Nanoseconds of `CLOCK_MONOTONIC`, or a duration in nanoseconds.
    Nanos(u64)
);
number!(
    /// An address in a process (or in the kernel) as it runs: "actual virtual memory address".
    Avma(u64)
);
number!(
    /// An address as the linker saw it: "stated virtual memory address". For anonymous memory it equals the
    /// address in the process.
    Svma(u64)
);
number!(
    /// A byte position in a file.
    FileOffset(u64)
);

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An ELF build id: the descriptor of the note `NT_GNU_BUILD_ID`, 1 to 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId {
    bytes: [u8; Self::MAX],
    len: u8,
}

impl BuildId {
    /// The kernel reports at most this many bytes (`BUILD_ID_SIZE_MAX`).
    pub const MAX: usize = 20;

    /// `None` for an empty id; a longer one is cut to [`Self::MAX`] bytes, as the kernel does.
    pub fn new(id: &[u8]) -> Option<Self> {
        let len = id.len().min(Self::MAX);
        let mut bytes = [0; Self::MAX];
        bytes[..len].copy_from_slice(&id[..len]);
        (len > 0).then_some(Self { bytes, len: len as u8 })
    }

    /// The id's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}
