//! What to sample, whichever source does it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use collector_common::ids::Nanos;

use super::request::Program;

/// Which threads are sampled; empty is the whole machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// Processes, with their threads and the children they make from now on.
    pub pids: BTreeSet<u32>,
    /// A process that is going to execute a program: that, with its threads and children.
    pub command: Option<u32>,
    /// A folder of the cgroup v2 hierarchy, with all below it.
    pub cgroup: Option<PathBuf>,
    /// A thread name, as the kernel keeps it: at most 15 bytes.
    pub comm: Option<String>,
    /// CPUs, by their numbers; none named is all of them.
    pub cpus: BTreeSet<u32>,
}

impl Targets {
    /// Whether what runs on a CPU is wanted.
    pub(crate) fn has_cpu(&self, cpu: u32) -> bool {
        self.cpus.is_empty() || self.cpus.contains(&cpu)
    }

    pub(crate) fn follows_processes(&self) -> bool {
        !self.pids.is_empty() || self.command.is_some()
    }
}

/// The shortest times that are recorded. They are no losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortest {
    /// Times off the CPU, of `off_cpu`.
    pub off_cpu: Nanos,
    /// Times off the CPU, of `wall_clock`.
    pub wall_clock: Nanos,
    /// Waits for locks of user code and of the kernel.
    pub locks: Nanos,
}

impl Shortest {
    /// Of a program that records times off the CPU.
    pub(crate) const fn of(&self, program: Program) -> Option<Nanos> {
        match program {
            Program::OffCpu => Some(self.off_cpu),
            Program::WallClock => Some(self.wall_clock),
            Program::Locks => Some(self.locks),
            _ => None,
        }
    }
}

/// How to sample.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether to sample what runs on the CPUs, by a clock. Without it, only the events of a session are recorded.
    pub clock: bool,
    /// Samples per second and CPU.
    pub frequency: u32,
    /// Which threads.
    pub targets: Targets,
    /// Largest copy of a user stack in bytes, rounded up to pages; at most 64 KiB.
    pub max_stack: usize,
    /// Bytes of each CPU's ring; rounded up to a power of two, at least a page. `None` chooses by the number of
    /// CPUs.
    pub ring_bytes: Option<u32>,
    /// Of time off the CPU there is one stack for about this much; what takes longer stands for itself.
    pub off_cpu_period: Nanos,
    /// Of memory that allocators give there is one stack for about this many bytes; at most 2^40. With 1 there is one for each
    /// block.
    pub allocation_period: u64,
    /// The same of memory that processes ask of the kernel.
    pub mapped_period: u64,
    /// What is shorter is left out.
    pub shortest: Shortest,
}

impl Default for Settings {
    /// 997 Hz (a prime, so that nothing periodic hides between the samples), the whole machine, 64 KiB of stack; time off the
    /// CPU by the millisecond, memory by 512 KiB.
    fn default() -> Self {
        Self {
            clock: true,
            frequency: 997,
            targets: Targets::default(),
            max_stack: 64 << 10,
            ring_bytes: None,
            off_cpu_period: Nanos(1_000_000),
            allocation_period: 512 << 10,
            mapped_period: 512 << 10,
            shortest: Shortest::default(),
        }
    }
}

impl Settings {
    /// What a sample stands for.
    pub fn period(&self) -> Nanos {
        Nanos(1_000_000_000 / u64::from(self.frequency.max(1)))
    }
}
