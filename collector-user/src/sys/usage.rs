//! What this process itself has used: `getrusage(2)`, and `/proc/self/status` (`proc_pid_status(5)`).

use std::fs;
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
        peak_rss: peak_rss().unwrap_or((usage.ru_maxrss.cast_unsigned()).saturating_mul(1024)),
    }
}

/// The most memory that this program has had. That of `getrusage` is no less than what the process had that executed it: `exec_mmap` of the
/// kernel's `fs/exec.c` keeps it, and with `vfork` it is that of who started it.
fn peak_rss() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"))?;
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_used_counts_when_it_is_gone() {
        const BYTES: u64 = 96 << 20;
        drop(std::hint::black_box(vec![1_u8; BYTES as usize]));
        let peak = peak_rss().unwrap();
        assert!((BYTES..1 << 40).contains(&peak) && own_usage().peak_rss >= peak, "{peak}");
    }
}
