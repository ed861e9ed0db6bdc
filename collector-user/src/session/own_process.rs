//! What this process asks for itself while it records: descriptors, and to be run in time.

use rustix::process::{Resource, getpriority_process, getrlimit, setpriority_process, setrlimit};

use super::error::SessionError;

/// The nice value of the thread that drains the rings, while it does: it must come in time on a machine with hundreds of
/// runnable threads, and it uses little. A recorded command is forked before and does not inherit it.
const HIGHEST_PRIORITY: i32 = -20;

/// Executed files are kept open, beside what each CPU and each event on it needs.
pub(super) fn raise_open_file_limit(cpus: usize, events: usize) -> Result<(), SessionError> {
    const NEEDED: usize = 64;
    const NEEDED_PER_CPU: usize = 4;
    /// A counter, and what tells that the CPU went away.
    const NEEDED_PER_EVENT: usize = 2;
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it fails, the limit stays and fewer files are kept open.
    let _ = setrlimit(Resource::Nofile, limit);
    let needed = (NEEDED + cpus * (NEEDED_PER_CPU + events * NEEDED_PER_EVENT)) as u64;
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < needed => Err(SessionError::OpenFiles { limit, needed }),
        _ => Ok(()),
    }
}

/// The thread's nice value before the recording, if it was changed; it is that again in the end.
pub(super) struct Priority(Option<i32>);

impl Priority {
    /// The highest priority, where that is permitted.
    pub(super) fn highest() -> Self {
        let before = getpriority_process(None).ok();
        Self(before.filter(|_| setpriority_process(None, HIGHEST_PRIORITY).is_ok()))
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            // Lowering one's priority is always permitted.
            let _ = setpriority_process(None, before);
        }
    }
}
