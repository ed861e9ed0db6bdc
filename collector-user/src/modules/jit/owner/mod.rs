//! Which files are believed to be a process's own account of its code: as each system tells.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::Believed;
#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{HERE, identity, open_folder, open_plain, started};
#[cfg(target_os = "linux")]
pub(crate) use linux::Believed;
#[cfg(target_os = "linux")]
pub(super) use linux::{HERE, identity, open_folder, open_plain, started};
