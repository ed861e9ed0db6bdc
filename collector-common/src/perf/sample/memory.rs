//! What is known of a memory access or of a transaction: numbers with parts.

/// What an access cost. Which of the views holds is decided by the `sample_type`: with `WEIGHT` the whole number,
/// with `WEIGHT_STRUCT` the three parts (`union perf_sample_weight`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Weight(pub u64);

impl Weight {
    /// The lower 32 bits: on x86 the latency.
    pub const fn var1(self) -> u32 {
        self.0 as u32
    }

    /// The next 16 bits: on x86 the latency of the instruction.
    pub const fn var2(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// The highest 16 bits.
    pub const fn var3(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

/// Where data came from: `union perf_mem_data_src`, sets of `PERF_MEM_*` bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DataSource(pub u64);

impl DataSource {
    const fn field(self, at: u32, width: u32) -> u16 {
        (self.0 >> at & ((1 << width) - 1)) as u16
    }

    /// Load, store, prefetch, exec.
    pub const fn operation(self) -> u16 {
        self.field(0, 5)
    }

    /// The level of the memory hierarchy, as a set; newer processors use [`Self::level_number`].
    pub const fn level(self) -> u16 {
        self.field(5, 14)
    }

    /// Snooping.
    pub const fn snoop(self) -> u16 {
        self.field(19, 5)
    }

    /// Locked or not.
    pub const fn lock(self) -> u16 {
        self.field(24, 2)
    }

    /// The translation buffer.
    pub const fn tlb(self) -> u16 {
        self.field(26, 7)
    }

    /// The level as a number.
    pub const fn level_number(self) -> u16 {
        self.field(33, 4)
    }

    /// Whether it was on another node.
    pub const fn is_remote(self) -> bool {
        self.field(37, 1) != 0
    }

    /// More of the snooping.
    pub const fn snoop_more(self) -> u16 {
        self.field(38, 2)
    }

    /// Why the access was blocked.
    pub const fn blocked(self) -> u16 {
        self.field(40, 3)
    }

    /// How far away it was.
    pub const fn hops(self) -> u16 {
        self.field(43, 3)
    }
}

/// Why a transaction was aborted: `PERF_TXN_*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Transaction(pub u64);

impl Transaction {
    /// The kind and the reason, as a set.
    pub const fn flags(self) -> u32 {
        self.0 as u32
    }

    /// What the program gave as its reason.
    pub const fn abort_code(self) -> u32 {
        (self.0 >> 32) as u32
    }
}
