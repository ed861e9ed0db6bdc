//! The type of a record, and the bits of its header.

use crate::perf::bits::bit_set;

/// A record's type, `PERF_RECORD_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordKind(pub u32);

#[expect(missing_docs, reason = "the names are Linux's; `Record` says what each of the kernel's is")]
impl RecordKind {
    pub const MMAP: Self = Self(1);
    pub const LOST: Self = Self(2);
    pub const COMM: Self = Self(3);
    pub const EXIT: Self = Self(4);
    pub const THROTTLE: Self = Self(5);
    pub const UNTHROTTLE: Self = Self(6);
    pub const FORK: Self = Self(7);
    pub const READ: Self = Self(8);
    pub const SAMPLE: Self = Self(9);
    pub const MMAP2: Self = Self(10);
    pub const AUX: Self = Self(11);
    pub const ITRACE_START: Self = Self(12);
    pub const LOST_SAMPLES: Self = Self(13);
    pub const SWITCH: Self = Self(14);
    pub const SWITCH_CPU_WIDE: Self = Self(15);
    pub const NAMESPACES: Self = Self(16);
    pub const KSYMBOL: Self = Self(17);
    pub const BPF_EVENT: Self = Self(18);
    pub const CGROUP: Self = Self(19);
    pub const TEXT_POKE: Self = Self(20);
    pub const AUX_OUTPUT_HW_ID: Self = Self(21);
    pub const CALLCHAIN_DEFERRED: Self = Self(22);

    // `enum perf_user_event_type` of `tools/lib/perf/include/perf/event.h`: `perf` writes these into its files.
    pub const HEADER_ATTR: Self = Self(64);
    pub const HEADER_EVENT_TYPE: Self = Self(65);
    pub const HEADER_TRACING_DATA: Self = Self(66);
    pub const HEADER_BUILD_ID: Self = Self(67);
    pub const FINISHED_ROUND: Self = Self(68);
    pub const ID_INDEX: Self = Self(69);
    pub const AUXTRACE_INFO: Self = Self(70);
    pub const AUXTRACE: Self = Self(71);
    pub const AUXTRACE_ERROR: Self = Self(72);
    pub const THREAD_MAP: Self = Self(73);
    pub const CPU_MAP: Self = Self(74);
    pub const STAT_CONFIG: Self = Self(75);
    pub const STAT: Self = Self(76);
    pub const STAT_ROUND: Self = Self(77);
    pub const EVENT_UPDATE: Self = Self(78);
    pub const TIME_CONV: Self = Self(79);
    pub const HEADER_FEATURE: Self = Self(80);
    pub const COMPRESSED: Self = Self(81);
    pub const FINISHED_INIT: Self = Self(82);
    pub const COMPRESSED2: Self = Self(83);
    pub const BPF_METADATA: Self = Self(84);
    pub const SCHEDSTAT_CPU: Self = Self(85);
    pub const SCHEDSTAT_DOMAIN: Self = Self(86);
}

impl RecordKind {
    /// `PERF_RECORD_USER_TYPE_START`: the first type that the kernel leaves to profilers.
    const FIRST_OF_USERS: u32 = 64;

    /// Whether the kernel writes it; else a profiler did, into a file.
    pub const fn is_of_kernel(self) -> bool {
        self.0 < Self::FIRST_OF_USERS
    }

    /// Whether it is one of [`super::Record`]'s.
    pub(super) const fn is_known(self) -> bool {
        Self::MMAP.0 <= self.0 && self.0 <= Self::CALLCHAIN_DEFERRED.0
    }

    /// Whether a record may have more bytes than were written of it: see [`super::kernel_code`].
    pub(in crate::perf) const fn may_be_too_long(self) -> bool {
        matches!(self, Self::KSYMBOL | Self::BPF_EVENT | Self::TEXT_POKE)
    }
}

/// In which mode the CPU was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CpuMode {
    /// The kernel does not say.
    Unknown,
    /// The kernel.
    Kernel,
    /// A process.
    User,
    /// The hypervisor.
    Hypervisor,
    /// A guest's kernel.
    GuestKernel,
    /// A guest's process.
    GuestUser,
    /// A number without a meaning, 6 or 7.
    Reserved(u8),
}

bit_set! {
    /// The `misc` bits of a record's header, `PERF_RECORD_MISC_*`. Some mean different things in different records.
    Misc(u16) {
        /// Of synthesized mappings: reading `/proc/PID/maps` took too long.
        PROC_MAP_PARSE_TIMEOUT = 12;
        /// Of [`super::Mmap`]: the mapping is not executable.
        MMAP_DATA = 13;
        /// Of [`super::Comm`]: the name is that of a program that was executed.
        COMM_EXEC = 13;
        /// Of forks that were synthesized by a profiler.
        FORK_EXEC = 13;
        /// Of [`super::Switch`]: the thread lost the CPU.
        SWITCH_OUT = 13;
        /// Of samples: the address is the exact one.
        EXACT_IP = 14;
        /// Of [`super::Switch`] with [`Self::SWITCH_OUT`]: the thread could have gone on.
        SWITCH_OUT_PREEMPT = 14;
        /// Of [`super::Mmap2`]: there is a build id. See there when it holds.
        MMAP_BUILD_ID = 14;
        /// Not in use.
        EXT_RESERVED = 15;
    }
}

impl Misc {
    /// [`CpuMode::Kernel`], and nothing else.
    pub const KERNEL: Self = Self(1);
    /// [`CpuMode::User`], and nothing else.
    pub const USER: Self = Self(2);

    /// In which mode the CPU was; of mappings, whose memory it is.
    pub const fn cpu_mode(self) -> CpuMode {
        match self.0 & 7 {
            0 => CpuMode::Unknown,
            1 => CpuMode::Kernel,
            2 => CpuMode::User,
            3 => CpuMode::Hypervisor,
            4 => CpuMode::GuestKernel,
            5 => CpuMode::GuestUser,
            reserved => CpuMode::Reserved(reserved as u8),
        }
    }
}
