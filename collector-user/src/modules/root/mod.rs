//! Where the files beside a program are: below the root that its process has, as each system can.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{Root, Roots};
#[cfg(target_os = "linux")]
pub(super) use linux::{Root, Roots};
