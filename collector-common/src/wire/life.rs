//! What happens to processes: that they are made, execute a program, and end. Records in a ring of their own, in the order in
//! which it happened.

use bytemuck::{Pod, Zeroable};

use super::COMM_LEN;

/// Bytes of arguments that a record of [`Life::EXECUTED`] has room for, behind the [`Life`].
pub const ARGUMENTS: usize = 2048;

/// One record. One of [`Life::EXECUTED`] is followed by [`ARGUMENTS`] bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Life {
    /// [`super::VERSION`].
    pub version: u16,
    /// [`Life::FORKED`] and so on.
    pub kind: u16,
    /// Of [`Life::ENDED`]: what `wait(2)` says; else 0.
    pub status: u32,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub time: u64,
    /// When the process was made, by the kernel's own note, which no execution changes: it tells processes with one pid apart.
    pub started: u64,
    /// The process.
    pub pid: u32,
    /// The process that made it; of [`Life::EXECUTED`] and [`Life::ENDED`] the one that has it for a child.
    pub parent: u32,
    /// Bytes of arguments that follow, each argument with a NUL behind it.
    pub argument_bytes: u32,
    /// 1 where there are more arguments.
    pub is_cut: u32,
    /// Name of the process, NUL-padded.
    pub comm: [u8; COMM_LEN],
    /// That of its parent.
    pub parent_comm: [u8; COMM_LEN],
}

impl Life {
    /// The process was made.
    pub const FORKED: u16 = 1;
    /// It executes another program from now on.
    pub const EXECUTED: u16 = 2;
    /// Its last thread ends.
    pub const ENDED: u16 = 3;
}

const _: () = assert!(size_of::<Life>() == 72);

/// Offsets into kernel structures that the programs at the tracepoints of processes need, from the kernel's BTF.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct LifeOffsets {
    /// Of `task_struct::start_time`.
    pub task_start_time: u32,
    /// Of `task_struct::real_parent`.
    pub task_real_parent: u32,
    /// Of `task_struct::exit_code`.
    pub task_exit_code: u32,
    /// Of `signal_struct::live`, the number of threads that do not end yet.
    pub signal_live: u32,
    /// Of `signal_struct::flags`.
    pub signal_flags: u32,
    /// Of `signal_struct::group_exit_code`.
    pub signal_group_exit_code: u32,
    /// Of `mm_struct::arg_start`.
    pub mm_arg_start: u32,
    /// Of `mm_struct::arg_end`.
    pub mm_arg_end: u32,
}

impl LifeOffsets {
    /// Not known yet.
    pub const NONE: Self = Self {
        task_start_time: 0,
        task_real_parent: 0,
        task_exit_code: 0,
        signal_live: 0,
        signal_flags: 0,
        signal_group_exit_code: 0,
        mm_arg_start: 0,
        mm_arg_end: 0,
    };
}
