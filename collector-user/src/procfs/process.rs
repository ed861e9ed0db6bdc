//! Reads `/proc/PID`.

use std::fs;
use std::io::{self, BufRead as _, BufReader};

use collector_common::ids::{Pid, Tid};

use super::maps::{MapsEntry, parse_maps_line};

/// What `/proc/PID/stat` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSummary {
    /// The main thread's name.
    pub name: String,
    /// The parent's pid.
    pub parent: Pid,
    /// Number of threads, with a main thread that has ended before others.
    pub threads: u32,
    /// The main thread has ended.
    pub is_zombie: bool,
}

/// The folders in `/proc` that tell of a process, that of one of its threads first: when the main thread ends before others,
/// what is below the pid has no memory, mappings and root any more.
pub fn folders(pid: Pid, thread: Tid) -> impl Iterator<Item = String> {
    let main = (thread.0 != pid.0).then(|| format!("/proc/{pid}"));
    std::iter::once(format!("/proc/{thread}")).chain(main)
}

/// All pids there are. Processes may end and start meanwhile.
pub fn pids() -> io::Result<Vec<Pid>> {
    let names = fs::read_dir("/proc")?.filter_map(|entry| Some(entry.ok()?.file_name()));
    Ok(names.filter_map(|name| name.to_str()?.parse().ok().map(Pid)).collect())
}

/// The summary of a process.
pub fn summary(pid: Pid) -> io::Result<ProcessSummary> {
    let stat = fs::read(format!("/proc/{pid}/stat"))?;
    parse_stat(&stat)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/stat is malformed")))
}

/// The process that a thread belongs to; `None` where there is no such thread.
pub fn process_of(thread: Tid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    Some(Pid(status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()?))
}

/// `PID (NAME) STATE PPID ...`; the name may hold spaces and parentheses. Threads are field 20.
fn parse_stat(stat: &[u8]) -> Option<ProcessSummary> {
    let open = stat.iter().position(|&byte| byte == b'(')?;
    let close = stat.iter().rposition(|&byte| byte == b')')?;
    let name = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
    let mut fields = std::str::from_utf8(stat.get(close + 1..)?).ok()?.split_ascii_whitespace();
    let is_zombie = ["Z", "X"].contains(&fields.next()?);
    let parent = Pid(fields.next()?.parse().ok()?);
    let threads = fields.nth(15)?.parse().ok()?;
    Some(ProcessSummary { name, parent, threads, is_zombie })
}

/// The threads of a process that have not ended; of one that ends meanwhile, none.
pub fn threads(pid: Pid, summary: &ProcessSummary) -> Vec<Tid> {
    let main = Tid(pid.0);
    if summary.threads == 1 {
        return if summary.is_zombie { Vec::new() } else { vec![main] };
    }
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let threads = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().map(Tid));
    threads.filter(|thread| !summary.is_zombie || *thread != main).collect()
}

/// Calls `visit` with each executable mapping of the process of a thread: see [`mappings`].
pub fn executable_mappings(thread: Tid, mut visit: impl FnMut(&MapsEntry<'_>)) -> io::Result<()> {
    mappings(thread, |entry| {
        if entry.executable {
            visit(entry);
        }
    })
}

/// Calls `visit` with each mapping of the process of a thread, lowest address first. The thread must not have ended: a
/// process goes on without its main thread, but has no mappings by that name any more. Kernel threads have none.
pub fn mappings(thread: Tid, mut visit: impl FnMut(&MapsEntry<'_>)) -> io::Result<()> {
    let mut maps = BufReader::with_capacity(64 << 10, fs::File::open(format!("/proc/{thread}/maps"))?);
    let mut line = Vec::new();
    while maps.read_until(b'\n', &mut line)? > 0 {
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if let Some(entry) = parse_maps_line(text) {
            visit(&entry);
        }
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_anything() {
        let stat = b"7 (a) b (c) S 3 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 12 0 99 100";
        let expected =
            ProcessSummary { name: "a) b (c".to_owned(), parent: Pid(3), threads: 12, is_zombie: false };
        assert_eq!(parse_stat(stat), Some(expected));
        assert_eq!(parse_stat(b"7 (a"), None);
        assert_eq!(parse_stat(b""), None);
    }

    #[test]
    fn this_process_is_there() {
        let pid = Pid(std::process::id());
        assert!(pids().unwrap().contains(&pid));
        let mut executable = Vec::new();
        executable_mappings(Tid(pid.0), |entry| executable.push(entry.path.to_vec())).unwrap();
        let own = std::env::current_exe().unwrap();
        assert!(executable.iter().any(|path| path == own.as_os_str().as_encoded_bytes()));
        assert!(executable.iter().any(|path| path == b"[vdso]"));
    }
}
