//! Reads `/proc/PID`.

use std::fs;
use std::io::{self, BufRead as _, BufReader};

#[cfg(target_os = "linux")]
use collector_common::ids::Nanos;
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

/// What `/proc/PID/status` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStatus {
    /// The user that files it makes are owned by.
    pub user: u32,
    /// Its pid as it knows it, in the innermost of its pid namespaces.
    pub innermost_pid: Pid,
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

/// Whose process it is that a folder of `/proc` tells of, and what it calls itself.
pub fn status(folder: &str) -> io::Result<ProcessStatus> {
    let path = format!("{folder}/status");
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, format!("{path} is malformed"));
    parse_status(&String::from_utf8_lossy(&fs::read(&path)?)).ok_or_else(malformed)
}

/// `Uid:` has the real, the effective and the saved user, and that of files; `NSpid:` a pid for each namespace, the innermost last.
/// Before Linux 4.1 the latter is not there.
fn parse_status(text: &str) -> Option<ProcessStatus> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name))?.strip_prefix(':');
    let user = field("Uid")?.split_ascii_whitespace().nth(3)?.parse().ok()?;
    let pid = field("NSpid").or_else(|| field("Tgid"))?.split_ascii_whitespace().last()?;
    Some(ProcessStatus { user, innermost_pid: Pid(pid.parse().ok()?) })
}

/// When a process was started, since boot (`CLOCK_BOOTTIME`), to a hundredth of a second.
#[cfg(target_os = "linux")]
pub fn started(pid: Pid) -> io::Result<Nanos> {
    let path = format!("/proc/{pid}/stat");
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, format!("{path} is malformed"));
    let ticks = parse_start(&fs::read(&path)?).ok_or_else(malformed)?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Ok(Nanos((u128::from(ticks) * 1_000_000_000 / u128::from(per_second)) as u64))
}

/// Field 22, in clock ticks.
#[cfg(target_os = "linux")]
fn parse_start(stat: &[u8]) -> Option<u64> {
    let close = stat.iter().rposition(|&byte| byte == b')')?;
    std::str::from_utf8(stat.get(close + 1..)?).ok()?.split_ascii_whitespace().nth(19)?.parse().ok()
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

#[cfg(target_os = "linux")]
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
    fn a_status_tells_the_user_of_files_and_the_innermost_pid() {
        let text = "Name:\tnode\nTgid:\t120\nUid:\t1\t2\t3\t4\nNSpid:\t120\t33\t7\nFDSize:\t64\n";
        let expected = ProcessStatus { user: 4, innermost_pid: Pid(7) };
        assert_eq!(parse_status(text), Some(expected));
        let without = text.replace("NSpid", "Other");
        assert_eq!(parse_status(&without), Some(ProcessStatus { innermost_pid: Pid(120), ..expected }));
        assert_eq!(parse_status("Uid:\t1\n"), None);
    }

    #[test]
    fn a_process_was_started_before_now() {
        let before = crate::clock::anchor().boottime.unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let started = started(Pid(child.id())).unwrap();
        let after = crate::clock::anchor().boottime.unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // It is told in hundredths of a second, rounded down.
        assert!(before.0 <= started.0 + 10_000_000 && started <= after, "{before:?} {started:?} {after:?}");
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
