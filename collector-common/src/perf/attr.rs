//! `struct perf_event_attr` of every version, in either byte order.
//!
//! The structure only ever grew, at its end; `size` says how far the writer knew it. As in the kernel
//! (`perf_copy_attr`), what a shorter one lacks is zero, and `size` 0 means the first version. What a longer one has
//! more is kept.

use thiserror::Error;

use super::bits::bit_set;
use super::fields::Fields;
use super::write::Writer;
use super::{BranchSampleType, ByteOrder, Bytes, ReadFormat, SampleType};

bit_set! {
    /// The flags of a `perf_event_attr`, each by its position in the C structure, whatever the byte order it came in.
    AttrFlags(u64) {
        /// Off until it is enabled.
        DISABLED = 0;
        /// Child tasks inherit it.
        INHERIT = 1;
        /// Always on the PMU.
        PINNED = 2;
        /// The only group on the PMU.
        EXCLUSIVE = 3;
        /// Does not count user space.
        EXCLUDE_USER = 4;
        /// Does not count the kernel.
        EXCLUDE_KERNEL = 5;
        /// Does not count the hypervisor.
        EXCLUDE_HV = 6;
        /// Does not count idle.
        EXCLUDE_IDLE = 7;
        /// Records of executable mappings.
        MMAP = 8;
        /// Records of names.
        COMM = 9;
        /// `sample_period` is a frequency.
        FREQ = 10;
        /// Counts per task.
        INHERIT_STAT = 11;
        /// Enabled by the next exec.
        ENABLE_ON_EXEC = 12;
        /// Records of forks and exits.
        TASK = 13;
        /// `wakeup_events` is bytes.
        WATERMARK = 14;
        /// Records of mappings that are not executable.
        MMAP_DATA = 17;
        /// Every record has a sample id.
        SAMPLE_ID_ALL = 18;
        /// Does not count in the host.
        EXCLUDE_HOST = 19;
        /// Does not count in guests.
        EXCLUDE_GUEST = 20;
        /// No kernel callchains.
        EXCLUDE_CALLCHAIN_KERNEL = 21;
        /// No user callchains.
        EXCLUDE_CALLCHAIN_USER = 22;
        /// Mappings come with an identity.
        MMAP2 = 23;
        /// Names that come with an exec say so.
        COMM_EXEC = 24;
        /// `clockid` is the clock.
        USE_CLOCKID = 25;
        /// Records of context switches.
        CONTEXT_SWITCH = 26;
        /// The ring is written backwards.
        WRITE_BACKWARD = 27;
        /// Records of namespaces.
        NAMESPACES = 28;
        /// Records of kernel symbols.
        KSYMBOL = 29;
        /// Records of BPF programs.
        BPF_EVENT = 30;
        /// Goes to the AUX area of the group's leader.
        AUX_OUTPUT = 31;
        /// Records of cgroups.
        CGROUP = 32;
        /// Records of changes of the kernel's code.
        TEXT_POKE = 33;
        /// Build ids instead of inodes.
        BUILD_ID = 34;
        /// Inherited by threads alone.
        INHERIT_THREAD = 35;
        /// Removed by exec.
        REMOVE_ON_EXEC = 36;
        /// Sends a signal.
        SIGTRAP = 37;
        /// User callchains are taken later (Linux 6.19).
        DEFER_CALLCHAIN = 38;
        /// The callchains taken later go to this event (Linux 6.19).
        DEFER_OUTPUT = 39;
    }
}

impl AttrFlags {
    const PRECISE_IP: u64 = 0b11 << 15;

    /// How close the address is to the event: 0 any skid, to 3 none.
    pub const fn precise_ip(self) -> u8 {
        (self.0 >> 15 & 3) as u8
    }

    /// With another [`Self::precise_ip`], of which the lowest two bits are taken.
    #[must_use]
    pub const fn with_precise_ip(self, precise: u8) -> Self {
        Self(self.0 & !Self::PRECISE_IP | (precise as u64 & 3) << 15)
    }

    /// In C, the first of a big-endian machine's bit-fields is in the highest bit, and a field of two bits has its
    /// higher one first.
    const fn from_field(field: u64, order: ByteOrder) -> Self {
        match order {
            ByteOrder::Little => Self(field),
            ByteOrder::Big => Self(field.reverse_bits()).with_precise_ip_swapped(),
        }
    }

    const fn to_field(self, order: ByteOrder) -> u64 {
        match order {
            ByteOrder::Little => self.0,
            ByteOrder::Big => self.with_precise_ip_swapped().0.reverse_bits(),
        }
    }

    const fn with_precise_ip_swapped(self) -> Self {
        let precise = self.precise_ip();
        self.with_precise_ip(precise >> 1 | precise << 1)
    }
}

/// Why the bytes are no `perf_event_attr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AttrError {
    /// Its size is less than that of the first version.
    #[error("perf_event_attr says that it has {0} bytes, fewer than any version")]
    Size(u32),
    /// There are fewer bytes than its size.
    #[error("perf_event_attr of {size} bytes is cut off at {len}")]
    CutOff {
        /// What it should have.
        size: u32,
        /// What there was.
        len: usize,
    },
}

/// A `perf_event_attr`. Where the kernel's has a union, the field has its first name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attr {
    /// `type`: which PMU, `PERF_TYPE_*` or a number of sysfs.
    pub kind: u32,
    /// Bytes it has where it was written.
    pub size: u32,
    /// Which of the PMU's events.
    pub config: u64,
    /// A period, or with [`AttrFlags::FREQ`] samples a second.
    pub sample_period: u64,
    /// The parts of a sample.
    pub sample_type: SampleType,
    /// What comes with a counter's value.
    pub read_format: ReadFormat,
    /// The flags.
    pub flags: AttrFlags,
    /// Wakes up after so many samples, or with [`AttrFlags::WATERMARK`] bytes.
    pub wakeup_events: u32,
    /// The kind of breakpoint.
    pub bp_type: u32,
    /// More of the configuration: `bp_addr`, `kprobe_func`, `uprobe_path`.
    pub config1: u64,
    /// More of the configuration: `bp_len`, `kprobe_addr`, `probe_offset`.
    pub config2: u64,
    /// Which branches (from VER2).
    pub branch_sample_type: BranchSampleType,
    /// Which user registers (from VER3).
    pub sample_regs_user: u64,
    /// Bytes of user stack.
    pub sample_stack_user: u32,
    /// The clock, with [`AttrFlags::USE_CLOCKID`].
    pub clockid: i32,
    /// Which registers at the interrupt (from VER4).
    pub sample_regs_intr: u64,
    /// Wakes up after so many bytes of the AUX area (from VER5).
    pub aux_watermark: u32,
    /// The most frames of a callchain.
    pub sample_max_stack: u16,
    /// Not in use.
    pub reserved_2: u16,
    /// Bytes of the AUX area in a sample (from VER6).
    pub aux_sample_size: u32,
    /// What to do with the AUX area at first and at each event.
    pub aux_action: u32,
    /// Passed on with the signal (from VER7).
    pub sig_data: u64,
    /// More of the configuration (from VER8).
    pub config3: u64,
    /// More of the configuration (from VER9).
    pub config4: u64,
    /// What comes behind the fields known here.
    pub rest: Vec<u8>,
}

impl Default for Attr {
    /// Of the newest version, all else zero.
    fn default() -> Self {
        let zero = Self::decode(&[0; Self::KNOWN_SIZE], ByteOrder::NATIVE);
        Self { size: Self::KNOWN_SIZE as u32, ..zero }
    }
}

impl Attr {
    /// `PERF_ATTR_SIZE_VER0`, of Linux 2.6.31.
    pub const FIRST_SIZE: usize = 64;
    /// `PERF_ATTR_SIZE_VER9`, of Linux 6.19.
    pub const KNOWN_SIZE: usize = 144;

    /// Reads one from the front of `bytes`; what is behind its size is left alone.
    ///
    /// # Errors
    /// When its size is impossible, or more than there is.
    pub fn parse<'a>(bytes: impl Into<Bytes<'a>>, order: ByteOrder) -> Result<Self, AttrError> {
        let bytes = bytes.into();
        let mut front = Fields::new(bytes, order);
        let cut_off = |size| AttrError::CutOff { size, len: bytes.len() };
        let first_version = Self::FIRST_SIZE as u32;
        let size = front.u64().and_then(|_| bytes.split_at_checked(4)).map(|(_, size)| size);
        let size = size.and_then(|size| Fields::new(size, order).u32()).ok_or(cut_off(first_version))?;
        let given = if size == 0 { first_version } else { size };
        if given < first_version {
            return Err(AttrError::Size(size));
        }
        let given = usize::try_from(given).map_err(|_| cut_off(size))?;
        let (own, _) = bytes.split_at_checked(given).ok_or(cut_off(size))?;
        let (known, rest) = own.split_at_checked(Self::KNOWN_SIZE).unwrap_or((own, Bytes::default()));
        let mut filled_up = [0; Self::KNOWN_SIZE];
        known.copy_to(&mut filled_up);
        Ok(Self { rest: rest.to_cow().into_owned(), ..Self::decode(&filled_up, order) })
    }

    fn decode(bytes: &[u8; Self::KNOWN_SIZE], order: ByteOrder) -> Self {
        let u64_at = |at: usize| order.u64(std::array::from_fn(|index| bytes[at + index]));
        let u32_at = |at: usize| order.u32(std::array::from_fn(|index| bytes[at + index]));
        let u16_at = |at: usize| order.u16(std::array::from_fn(|index| bytes[at + index]));
        Self {
            kind: u32_at(0),
            size: u32_at(4),
            config: u64_at(8),
            sample_period: u64_at(16),
            sample_type: SampleType(u64_at(24)),
            read_format: ReadFormat(u64_at(32)),
            flags: AttrFlags::from_field(u64_at(40), order),
            wakeup_events: u32_at(48),
            bp_type: u32_at(52),
            config1: u64_at(56),
            config2: u64_at(64),
            branch_sample_type: BranchSampleType(u64_at(72)),
            sample_regs_user: u64_at(80),
            sample_stack_user: u32_at(88),
            clockid: u32_at(92) as i32,
            sample_regs_intr: u64_at(96),
            aux_watermark: u32_at(104),
            sample_max_stack: u16_at(108),
            reserved_2: u16_at(110),
            aux_sample_size: u32_at(112),
            aux_action: u32_at(116),
            sig_data: u64_at(120),
            config3: u64_at(128),
            config4: u64_at(136),
            rest: Vec::new(),
        }
    }

    /// Writes it with as many bytes as its `size` says (those of the first version for 0), zeros in the place of what
    /// it does not have.
    pub fn write(&self, order: ByteOrder, out: &mut Vec<u8>) {
        let start = out.len();
        let mut writer = Writer::new(out, order);
        writer.u32(self.kind);
        writer.u32(self.size);
        writer.u64(self.config);
        writer.u64(self.sample_period);
        writer.u64(self.sample_type.0);
        writer.u64(self.read_format.0);
        writer.u64(self.flags.to_field(order));
        writer.u32(self.wakeup_events);
        writer.u32(self.bp_type);
        writer.u64(self.config1);
        writer.u64(self.config2);
        writer.u64(self.branch_sample_type.0);
        writer.u64(self.sample_regs_user);
        writer.u32(self.sample_stack_user);
        writer.u32(self.clockid as u32);
        writer.u64(self.sample_regs_intr);
        writer.u32(self.aux_watermark);
        writer.u16(self.sample_max_stack);
        writer.u16(self.reserved_2);
        writer.u32(self.aux_sample_size);
        writer.u32(self.aux_action);
        writer.u64(self.sig_data);
        writer.u64(self.config3);
        writer.u64(self.config4);
        writer.bytes(Bytes::from(&self.rest));
        // A size that was made up costs no memory: no attr is longer than a page (`perf_copy_attr`).
        let size = (self.size as usize).clamp(Self::FIRST_SIZE, self.rest.len() + Self::LARGEST);
        out.resize(start + size, 0);
    }

    const LARGEST: usize = 4096;
}
