//! Opens the file behind a mapping, or at a path, without being led elsewhere by whoever chose that: as each system can.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{open, open_growing};
#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{open_chosen, open_regular};
#[cfg(target_os = "linux")]
pub(super) use linux::{open, open_growing, open_place};
#[cfg(target_os = "linux")]
pub(crate) use linux::{open_chosen, open_regular};
