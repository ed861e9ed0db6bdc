//! What several events tell together: [`NtPaths`], which drive a device's path is on; [`Lives`], which processes and images there were
//! from when to when; [`Stacks`], events with the return addresses that other events have.

mod ids;
mod lives;
mod paths;
mod stack_of;
mod stacks;

pub use ids::{ImageIds, PdbId};
pub use lives::{ImageLife, LifeLimits, Lives, ProcessLife};
pub use paths::NtPaths;
pub use stack_of::{OwnStack, StackAt};
pub use stacks::{Half, Joined, Side, StackId, StackLimits, StackLosses, Stacks};

#[cfg(test)]
mod tests;
