//! What this process itself has used: `getrusage(2)`.

use std::time::Duration;

use crate::stats::Usage;

/// The figures of this process.
pub(crate) fn own_usage() -> Usage {
    // SAFETY: all-zero bytes are a valid `rusage`, and the call fills in the one it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let duration = |time: libc::timeval| {
        Duration::new(time.tv_sec.cast_unsigned(), (time.tv_usec as u32).saturating_mul(1000))
    };
    Usage {
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        peak_rss: (usage.ru_maxrss.cast_unsigned()).saturating_mul(1024),
    }
}
