//! What keeps a program attached at many places.

use std::os::fd::OwnedFd;
use std::thread::{Builder, scope};

/// Links of a program. To let go of one takes the kernel tens of milliseconds, until nobody is in it, most of which several share.
#[derive(Debug, Default)]
pub(super) struct Links(pub(super) Vec<OwnedFd>);

impl Drop for Links {
    fn drop(&mut self) {
        const AT_ONCE: usize = 16;
        let share = self.0.len().div_ceil(AT_ONCE).max(1);
        let mut links = std::mem::take(&mut self.0).into_iter();
        scope(|scope| {
            for _ in 0..AT_ONCE {
                let shared: Vec<OwnedFd> = links.by_ref().take(share).collect();
                if !shared.is_empty() {
                    // Where there is no room for a thread, they are let go of here.
                    let _ = Builder::new().spawn_scoped(scope, || drop(shared));
                }
            }
        });
    }
}
