//! What kernel this is, and on which CPUs.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::time::Duration;

/// Where the running kernel tells its functions' names and addresses.
pub(crate) const KALLSYMS: &str = "/proc/kallsyms";

/// A kernel's version: major and minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    major: u32,
    minor: u32,
}

impl Release {
    /// The first one with tracepoints of its own locks that are waited for, `lock:contention_begin` and `contention_end`.
    #[cfg(feature = "ebpf")]
    pub(crate) const WITH_CONTENTION: Self = Self::new(5, 19);

    /// The first one whose programs are attached to many of its functions at once.
    #[cfg(feature = "ebpf")]
    pub(crate) const WITH_KPROBE_MULTI: Self = Self::new(5, 18);

    /// The first one that meets the returns of all calls of functions with programs attached at once, as what is called is noted by thread.
    #[cfg(feature = "ebpf")]
    pub(crate) const WITH_ALL_RETURNS: Self = Self::new(6, 14);

    /// The first one that counts how often a program at a tracepoint is left out, as one runs on that CPU already.
    #[cfg(feature = "ebpf")]
    pub(crate) const WITH_TRACEPOINT_MISSES: Self = Self::new(6, 7);

    /// The first one with the helper `bpf_find_vma`.
    #[cfg(feature = "ebpf")]
    pub(crate) const WITH_FIND_VMA: Self = Self::new(5, 17);

    /// A version.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// The running kernel's, as `uname` tells it.
    pub fn of_this_kernel() -> Self {
        Self::parse(&rustix::system::uname().release().to_string_lossy())
    }

    /// From text such as `6.18.44-fc`; what is not a number counts as 0.
    fn parse(text: &str) -> Self {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
        Self { major: numbers.next().unwrap_or(0), minor: numbers.next().unwrap_or(0) }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The CPUs that are online. They need not be numbered without gaps.
pub fn online_cpus() -> io::Result<Vec<u32>> {
    cpu_list("/sys/devices/system/cpu/online")
}

/// The CPUs that may ever be online on this machine.
pub fn possible_cpus() -> io::Result<Vec<u32>> {
    cpu_list("/sys/devices/system/cpu/possible")
}

fn cpu_list(path: &str) -> io::Result<Vec<u32>> {
    let text = std::fs::read_to_string(path)?;
    parse_cpu_list(text.trim()).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{path} is not a list of CPUs: {text:?}"))
    })
}

/// How long each CPU has been idle since the machine was booted, by CPU number; in steps of the clock tick
/// (`USER_HZ`, 10 ms).
pub fn idle_times() -> io::Result<BTreeMap<u32, Duration>> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let tick = Duration::from_secs(1) / (rustix::param::clock_ticks_per_second().max(1) as u32);
    Ok(text.lines().filter_map(|line| parse_idle_time(line, tick)).collect())
}

/// Parses a line of `/proc/stat`: `cpu3 user nice system idle iowait ...`. Waiting for I/O is idle, too.
fn parse_idle_time(line: &str, tick: Duration) -> Option<(u32, Duration)> {
    let rest = line.strip_prefix("cpu").filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut fields = rest.split_ascii_whitespace();
    let cpu = fields.next()?.parse().ok()?;
    let mut fields = fields.skip(3).map(|field| field.parse::<u64>().unwrap_or(0));
    let ticks = fields.next()?.saturating_add(fields.next()?);
    Some((cpu, tick.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))))
}

/// Parses a list such as `0-3,8`. CPU numbers above 65,535 are refused.
fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        cpus.extend((first..=last).map(u32::from));
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_order_by_number() {
        assert_eq!(Release::parse("6.18.44-fc-v595"), Release::new(6, 18));
        assert!(Release::parse("5.8.0") < Release::parse("5.15.0-generic"));
        assert_eq!(Release::parse("nonsense"), Release::new(0, 0));
    }

    #[test]
    fn idle_time_is_told_by_cpu() {
        let tick = Duration::from_millis(10);
        let idle = parse_idle_time("cpu12 1 2 3 400 50 6 7 8 0 0", tick);
        assert_eq!(idle, Some((12, Duration::from_millis(4500))));
        assert_eq!(parse_idle_time("cpu  1 2 3 400 50 6 7 8 0 0", tick), None, "the sum of all");
        assert_eq!(parse_idle_time("intr 1 2 3", tick), None);
        assert!(!idle_times().unwrap().is_empty());
    }

    #[test]
    fn cpu_lists_have_gaps() {
        assert_eq!(parse_cpu_list("0-2,5,8-9").as_deref(), Some(&[0, 1, 2, 5, 8, 9][..]));
        assert_eq!(parse_cpu_list("0").as_deref(), Some(&[0][..]));
        assert_eq!(parse_cpu_list("0-99999999"), None);
        assert_eq!(parse_cpu_list(""), None);
    }
}
