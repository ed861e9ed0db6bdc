//! What this process itself has used (`GetProcessTimes`, `GetProcessMemoryInfo`).

use std::time::Duration;

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetProcessTimes};

/// CPU time and memory of this process so far. What Windows does not tell is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnUsage {
    /// Time in user code.
    pub user: Duration,
    /// Time in the kernel.
    pub system: Duration,
    /// Peak resident memory (working set) in bytes.
    pub peak_rss: u64,
}

/// That of this process.
pub fn own_usage() -> OwnUsage {
    let [mut made, mut ended, mut system, mut user] = [FILETIME::default(); 4];
    let size = size_of::<PROCESS_MEMORY_COUNTERS>() as u32;
    let mut memory = PROCESS_MEMORY_COUNTERS { cb: size, ..PROCESS_MEMORY_COUNTERS::default() };
    // SAFETY: the pseudo handle of this process is always valid; times and counters are written to variables that outlive the calls,
    // and those have the size that is given.
    unsafe {
        let process = GetCurrentProcess();
        GetProcessTimes(process, &raw mut made, &raw mut ended, &raw mut system, &raw mut user);
        K32GetProcessMemoryInfo(process, &raw mut memory, size);
    }
    OwnUsage { user: duration(user), system: duration(system), peak_rss: memory.PeakWorkingSetSize as u64 }
}

/// Of units of 100 ns.
fn duration(time: FILETIME) -> Duration {
    let units = u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    Duration::from_nanos(units.saturating_mul(100))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn what_is_used_is_told() {
        let before = own_usage();
        let block = vec![1_u8; 64 << 20];
        let begun = Instant::now();
        let mut sum = 0_u64;
        while begun.elapsed() < Duration::from_millis(200) {
            sum += block.iter().step_by(4096).map(|byte| u64::from(*byte)).sum::<u64>();
        }
        let after = own_usage();
        assert!(sum > 0 && after.peak_rss >= 64 << 20, "{after:?}");
        let cpu = (after.user + after.system).saturating_sub(before.user + before.system);
        assert!(cpu > Duration::from_millis(20) && cpu < Duration::from_mins(1), "{cpu:?}");
    }

    #[test]
    fn times_are_units_of_100_ns() {
        let time = FILETIME { dwLowDateTime: 5, dwHighDateTime: 1 };
        assert_eq!(duration(time), Duration::from_nanos((0x1_0000_0000 + 5) * 100));
    }
}
