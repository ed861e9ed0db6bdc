//! What `/proc/PID` says of where a process lives, whose it is and what it runs: `status`, `cgroup` and `cmdline` of `proc(5)`; and
//! what users are called, of `passwd(5)`.

use std::fs::File;
use std::io::{self, Read as _};

use collector_common::ids::{Pid, Uid};

/// Bytes of a process's arguments that are read.
pub const MOST_ARGUMENTS: usize = 2048;

/// Bytes of any of the files that are read: paths of cgroups are not longer than `PATH_MAX`, in some twelve lines.
const MOST: u64 = 64 << 10;

/// Bytes of the list of users that are read.
const MOST_OF_USERS: u64 = 1 << 20;

/// Where a process lives, and whose it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Whose rights it has (the effective uid).
    pub user: Option<Uid>,
    /// Its pid in the innermost of its pid namespaces.
    pub namespace_pid: Option<Pid>,
    /// The path of its cgroup.
    pub cgroup: Option<String>,
}

/// The surroundings of a process.
pub fn surroundings(pid: Pid) -> io::Result<Surroundings> {
    let status = read(&format!("/proc/{pid}/status"), MOST)?;
    let (user, namespace_pid) = parse_status(&status);
    let cgroup = read(&format!("/proc/{pid}/cgroup"), MOST)?;
    Ok(Surroundings { user, namespace_pid, cgroup: parse_cgroups(&cgroup).map(str::to_owned) })
}

/// The arguments of a process, each with a NUL behind it, and whether there are more than [`MOST_ARGUMENTS`] bytes. A kernel thread
/// has none, nor has what is just being executed.
pub fn arguments(pid: Pid) -> io::Result<(Vec<u8>, bool)> {
    let mut arguments = vec![0; MOST_ARGUMENTS + 1];
    // In one call: where the process ends between two, the second says that there is no more.
    let len = File::open(format!("/proc/{pid}/cmdline"))?.read(&mut arguments)?;
    arguments.truncate(len);
    let are_cut = arguments.len() > MOST_ARGUMENTS;
    arguments.truncate(MOST_ARGUMENTS);
    Ok((arguments, are_cut))
}

/// Calls `visit` with each user of this machine that is known by name.
pub fn users(mut visit: impl FnMut(Uid, &str)) {
    let list = read("/etc/passwd", MOST_OF_USERS).unwrap_or_default();
    list.lines().filter_map(parse_user).for_each(|(user, name)| visit(user, name));
}

fn read(path: &str, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// `Uid: REAL EFFECTIVE SAVED FILE-SYSTEM`, and `NSpid: OUTERMOST ... INNERMOST`.
fn parse_status(status: &str) -> (Option<Uid>, Option<Pid>) {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let user = field("Uid:").and_then(|ids| ids.split_ascii_whitespace().nth(1)?.parse().ok());
    let pid = field("NSpid:").and_then(|pids| pids.split_ascii_whitespace().next_back()?.parse().ok());
    (user.map(Uid), pid.map(Pid))
}

/// The path of a process's cgroup, of lines `HIERARCHY:CONTROLLERS:PATH`: that of version 2, which has no controllers, unless it is the
/// root, as it is where those of version 1 are used beside it; of these the deepest.
fn parse_cgroups(cgroups: &str) -> Option<&str> {
    let mut paths = cgroups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.split_once(':')
    });
    let unified = paths.clone().find(|(controllers, _)| controllers.is_empty()).map(|(_, path)| path);
    let is_root = |path: &&str| matches!(*path, "" | "/");
    let depth = |path: &str| path.split('/').count();
    let deepest = || paths.by_ref().map(|(_, path)| path).rev().max_by_key(|path| depth(path));
    unified.filter(|path| !is_root(path)).or_else(deepest).or(unified)
}

/// `NAME:PASSWORD:UID:...`
fn parse_user(line: &str) -> Option<(Uid, &str)> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    Some((Uid(fields.nth(1)?.parse().ok()?), name))
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_status_says() {
        let status = "Name:\tUid: 5\nTgid:\t123\nUid:\t1000\t1001\t1002\t1003\nNSpid:\t123\t7\t1\n";
        assert_eq!(parse_status(status), (Some(Uid(1001)), Some(Pid(1))));
        assert_eq!(parse_status("Name:\tx\nUid:\tx\nNSpid:\n"), (None, None));
    }

    #[test]
    fn the_cgroup_is_the_one_that_tells_most() {
        for (text, expected) in [
            ("0::/system.slice/a:b.service\n", Some("/system.slice/a:b.service")),
            ("0::/\n", Some("/")),
            ("12:memory:/docker/x\n1:name=systemd:/docker/x\n0::/\n", Some("/docker/x")),
            ("3:cpu,cpuacct:/\n2:memory:/docker/x\n0::/\n", Some("/docker/x")),
            ("3:cpu,cpuacct:/\n1:name=systemd:/a\n0::/init.scope\n", Some("/init.scope")),
            ("3:cpu,cpuacct:/\n", Some("/")),
            ("noise\n7\n", None),
            ("", None),
        ] {
            assert_eq!(parse_cgroups(text), expected, "{text}");
        }
    }

    #[test]
    fn users_have_a_name_and_a_number() {
        assert_eq!(parse_user("nobody:x:65534:65534::/:/bin/false"), Some((Uid(65534), "nobody")));
        for line in ["", "x", "x:y", "x:y:z", ":x:0"] {
            assert_eq!(parse_user(line), None, "{line}");
        }
        let mut root = None;
        users(|user, name| root = root.take().or((user == Uid(0)).then(|| name.to_owned())));
        assert_eq!(root.as_deref(), Some("root"));
    }

    #[test]
    fn this_process_is_somewhere() {
        let pid = Pid(std::process::id());
        let here = surroundings(pid).unwrap();
        assert_eq!(here.user, Some(Uid(rustix::process::geteuid().as_raw())));
        assert!(here.namespace_pid.is_some() && here.cgroup.unwrap().starts_with('/'));
        let (told, are_cut) = arguments(pid).unwrap();
        let own: Vec<String> = std::env::args().collect();
        assert!(
            !are_cut
                && told == own.iter().flat_map(|it| [it.as_bytes(), b"\0"].concat()).collect::<Vec<u8>>()
        );
    }

    proptest! {
        #[test]
        fn noise_tells_nothing_or_something(text in "(Uid:|NSpid:|[0-9:/\t \n]){0,60}") {
            let _ = (parse_status(&text), parse_cgroups(&text), parse_user(&text));
        }
    }
}
