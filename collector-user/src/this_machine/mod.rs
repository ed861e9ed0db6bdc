//! What this machine tells of a recording that may have been made on it: its kernel and that one's names and images, its users, and what this
//! process has used. Recordings of Linux are read on every system; elsewhere they are another machine's.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{
    has_name, is_kernel, is_local, kernel_build_id, kernel_image, kernel_module, kernel_symbols, occupied,
    own_usage, owner, read_at, read_exact_at, user,
};
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    has_name, is_kernel, is_local, kernel_build_id, kernel_image, kernel_module, kernel_symbols, occupied,
    own_usage, owner, read_at, read_exact_at, user,
};
