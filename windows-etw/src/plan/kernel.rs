//! What the kernel's own provider tells, and which of its events have stacks.
//!
//! Flags: `EVENT_TRACE_FLAG_*` of `evntrace.h`. Classes and opcodes: the MOF classes of the NT Kernel Logger, as Microsoft
//! documents them (`CSwitch`, `PerfInfo`, `FileIo` and so on).

use std::fmt;
use std::ops::BitOr;

use collector_common::event::Guid;

/// Kinds of events of the kernel (`EVENT_TRACE_PROPERTIES.EnableFlags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u32);

impl Flags {
    /// Starts and ends of processes, and those that ran before and after.
    pub const PROCESS: Self = Self(0x1);
    /// The same of threads.
    pub const THREAD: Self = Self(0x2);
    /// Images that are loaded, were loaded before, and are unloaded.
    pub const IMAGE_LOAD: Self = Self(0x4);
    /// What a process used, when it ends.
    pub const PROCESS_COUNTERS: Self = Self(0x8);
    /// Every switch of a CPU from thread to thread.
    pub const CSWITCH: Self = Self(0x10);
    /// System calls.
    pub const SYSTEMCALL: Self = Self(0x80);
    /// Requests that disks completed.
    pub const DISK_IO: Self = Self(0x100);
    /// Names of files that other events have as numbers.
    pub const DISK_FILE_IO: Self = Self(0x200);
    /// Requests to disks, as they are made.
    pub const DISK_IO_INIT: Self = Self(0x400);
    /// Threads that are made ready to run, and by whom.
    pub const DISPATCHER: Self = Self(0x800);
    /// Page faults of all kinds.
    pub const MEMORY_PAGE_FAULTS: Self = Self(0x1000);
    /// Page faults that waited for a disk, with the time that took.
    pub const MEMORY_HARD_FAULTS: Self = Self(0x2000);
    /// `VirtualAlloc` and `VirtualFree`.
    pub const VIRTUAL_ALLOC: Self = Self(0x4000);
    /// What TCP and UDP send and receive.
    pub const NETWORK_TCPIP: Self = Self(0x1_0000);
    /// CPU samples.
    pub const PROFILE: Self = Self(0x100_0000);
    /// Ends of operations on files.
    pub const FILE_IO: Self = Self(0x200_0000);
    /// Operations on files, as they begin.
    pub const FILE_IO_INIT: Self = Self(0x400_0000);

    /// Of these what names and bounds others: processes with what they used, threads, images, and names of files, which are told when it ends.
    #[must_use]
    pub const fn lives(self) -> Self {
        let lives = Self::PROCESS.0 | Self::THREAD.0 | Self::IMAGE_LOAD.0;
        Self(self.0 & (lives | Self::PROCESS_COUNTERS.0 | Self::DISK_FILE_IO.0))
    }

    /// Whether nothing is asked for.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `other` is asked for.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Each flag by the name that the header has for it.
const NAMES: [(Flags, &str); 17] = [
    (Flags::PROCESS, "PROCESS"),
    (Flags::THREAD, "THREAD"),
    (Flags::IMAGE_LOAD, "IMAGE_LOAD"),
    (Flags::PROCESS_COUNTERS, "PROCESS_COUNTERS"),
    (Flags::CSWITCH, "CSWITCH"),
    (Flags::SYSTEMCALL, "SYSTEMCALL"),
    (Flags::DISK_IO, "DISK_IO"),
    (Flags::DISK_FILE_IO, "DISK_FILE_IO"),
    (Flags::DISK_IO_INIT, "DISK_IO_INIT"),
    (Flags::DISPATCHER, "DISPATCHER"),
    (Flags::MEMORY_PAGE_FAULTS, "MEMORY_PAGE_FAULTS"),
    (Flags::MEMORY_HARD_FAULTS, "MEMORY_HARD_FAULTS"),
    (Flags::VIRTUAL_ALLOC, "VIRTUAL_ALLOC"),
    (Flags::NETWORK_TCPIP, "NETWORK_TCPIP"),
    (Flags::PROFILE, "PROFILE"),
    (Flags::FILE_IO, "FILE_IO"),
    (Flags::FILE_IO_INIT, "FILE_IO_INIT"),
];

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:#010x}", self.0)?;
        for (_, name) in NAMES.iter().filter(|(flag, _)| self.has(*flag)) {
            write!(out, " {name}")?;
        }
        Ok(())
    }
}

/// An event of the kernel by its class and opcode (`CLASSIC_EVENT_ID`), for which a stack is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelEvent {
    /// The class.
    pub class: Guid,
    /// Which event of it.
    pub opcode: u8,
    /// What it is called.
    pub name: &'static str,
}

const DISK_IO: Guid = guid(0x3d6f_a8d4_fe05_11d0_9dda_00c0_4fd7_ba7c);
const FILE_IO: Guid = guid(0x90cb_dc39_4a3e_11d1_84f4_0000_f804_64e3);
const PAGE_FAULT: Guid = guid(0x3d6f_a8d3_fe05_11d0_9dda_00c0_4fd7_ba7c);
const PERF_INFO: Guid = guid(0xce1d_bfb4_137e_4da6_87b0_3f59_aa10_2cbc);
const THREAD: Guid = guid(0x3d6f_a8d1_fe05_11d0_9dda_00c0_4fd7_ba7c);

/// A GUID from the digits of its text.
pub(super) const fn guid(digits: u128) -> Guid {
    Guid(digits.to_be_bytes())
}

macro_rules! events {
    ($($constant:ident $class:ident $opcode:literal $name:literal;)*) => {
        impl KernelEvent {
            $(#[doc = concat!("`", $name, "`, opcode ", $opcode, ".")]
            pub const $constant: Self = Self { class: $class, opcode: $opcode, name: $name };)*
        }
    };
}

events! {
    SAMPLED_PROFILE PERF_INFO 46 "PerfInfo/SampledProfile";
    SYSTEM_CALL_EXIT PERF_INFO 52 "PerfInfo/SysClExit";
    CSWITCH THREAD 36 "Thread/CSwitch";
    TRANSITION_FAULT PAGE_FAULT 10 "PageFault/TransitionFault";
    DEMAND_ZERO_FAULT PAGE_FAULT 11 "PageFault/DemandZeroFault";
    COPY_ON_WRITE PAGE_FAULT 12 "PageFault/CopyOnWrite";
    GUARD_PAGE_FAULT PAGE_FAULT 13 "PageFault/GuardPageFault";
    HARD_PAGE_FAULT PAGE_FAULT 14 "PageFault/HardPageFault";
    HARD_FAULT PAGE_FAULT 32 "PageFault/HardFault";
    VIRTUAL_ALLOC PAGE_FAULT 98 "PageFault/VirtualAlloc";
    VIRTUAL_FREE PAGE_FAULT 99 "PageFault/VirtualFree";
    DISK_READ_INIT DISK_IO 12 "DiskIo/ReadInit";
    DISK_WRITE_INIT DISK_IO 13 "DiskIo/WriteInit";
    DISK_FLUSH_INIT DISK_IO 15 "DiskIo/FlushInit";
    FILE_CREATE FILE_IO 64 "FileIo/Create";
    FILE_READ FILE_IO 67 "FileIo/Read";
    FILE_WRITE FILE_IO 68 "FileIo/Write";
    FILE_FLUSH FILE_IO 73 "FileIo/Flush";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{SCENARIOS, Scope};

    #[test]
    fn lives_are_of_every_scenario_and_have_no_samples() {
        let lives = Flags::PROCESS | Flags::THREAD | Flags::IMAGE_LOAD;
        for scenario in &SCENARIOS {
            let plan = scenario.plan(&Scope { frequency_hz: 997, pids: vec![] });
            let left = plan.system.flags.lives();
            assert!(left.has(lives) && plan.system.flags.has(left), "{}: {left}", scenario.name);
            for told in [Flags::PROFILE, Flags::CSWITCH, Flags::SYSTEMCALL, Flags::VIRTUAL_ALLOC] {
                assert!(!left.has(told), "{}: {left}", scenario.name);
            }
        }
        assert!(Flags::default().lives().is_empty());
    }
}
