//! What this machine allows, and for each gap the one command that closes it.

use std::fs;
use std::path::Path;

use crate::kernel::Release;

/// How a check went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Recording works, but with less than it could give.
    Limited {
        /// What is missing then.
        effect: &'static str,
        /// The command that closes the gap, or what must be done where no command does.
        fix: String,
    },
    /// Recording does not work.
    Bad {
        /// The command that closes the gap, or what must be done where no command does.
        fix: String,
    },
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// What was found.
    pub found: String,
    /// What that means.
    pub verdict: Verdict,
}

/// Runs all checks.
pub fn examine() -> Vec<Check> {
    vec![
        kernel(),
        btf(),
        rights(),
        pid_namespace(),
        perf_event_paranoid(),
        lockdown(),
        kernel_symbols(),
        tracefs(),
        programs(),
        toolchain(),
    ]
}

fn good(name: &'static str, found: impl Into<String>) -> Check {
    Check { name, found: found.into(), verdict: Verdict::Good }
}

fn bad(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Check {
    Check { name, found: found.into(), verdict: Verdict::Bad { fix: fix.into() } }
}

fn limited(
    name: &'static str,
    found: impl Into<String>,
    effect: &'static str,
    fix: impl Into<String>,
) -> Check {
    Check { name, found: found.into(), verdict: Verdict::Limited { effect, fix: fix.into() } }
}

fn kernel() -> Check {
    let release = Release::of_this_kernel();
    let found = rustix::system::uname().release().to_string_lossy().into_owned();
    if release < Release::new(5, 8) {
        bad("kernel", found, "update the kernel: eBPF ring buffers need Linux 5.8")
    } else if release < Release::new(5, 17) {
        let effect = "stacks of threads other than the main one are copied up to the first absent page";
        limited("kernel", found, effect, "update the kernel: bpf_find_vma needs Linux 5.17")
    } else {
        good("kernel", found)
    }
}

fn btf() -> Check {
    let path = "/sys/kernel/btf/vmlinux";
    match fs::metadata(path) {
        Ok(metadata) => good("kernel types (BTF)", format!("{path}, {} bytes", metadata.len())),
        Err(error) => bad(
            "kernel types (BTF)",
            format!("{path}: {error}"),
            "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y",
        ),
    }
}

/// `CAP_SYS_ADMIN`, or `CAP_BPF` with `CAP_PERFMON`, and what reads other processes' files.
fn rights() -> Check {
    const SYS_PTRACE: u64 = 1 << 19;
    const SYS_ADMIN: u64 = 1 << 21;
    const PERFMON: u64 = 1 << 38;
    const BPF: u64 = 1 << 39;
    let effective = capabilities().unwrap_or(0);
    let found = format!("effective capabilities {effective:#x}");
    let has = |mask| effective & mask == mask;
    if !has(SYS_ADMIN) && !has(BPF | PERFMON) {
        bad("rights", found, "sudo collector run")
    } else if !has(SYS_ADMIN | SYS_PTRACE) {
        let effect = "files of other users' processes can't be read: their stacks and names are incomplete";
        limited("rights", found, effect, "sudo collector run")
    } else {
        good("rights", found)
    }
}

fn capabilities() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Whether this process is in the machine's own pid namespace: eBPF programs see its pids.
pub(crate) fn in_initial_pid_namespace() -> bool {
    /// `PROC_PID_INIT_INO` of `include/linux/proc_ns.h`.
    const INITIAL: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == INITIAL)
}

fn pid_namespace() -> Check {
    if in_initial_pid_namespace() {
        good("pid namespace", "the machine's own")
    } else {
        let fix = "run it in the machine's pid namespace, as with `docker run --pid=host --privileged`";
        bad("pid namespace", "one of its own", fix)
    }
}

fn setting(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn perf_event_paranoid() -> Check {
    let name = "perf_event_paranoid";
    let privileged = rustix::process::geteuid().is_root();
    match setting("/proc/sys/kernel/perf_event_paranoid") {
        None => bad(name, "absent", "boot a kernel built with CONFIG_PERF_EVENTS=y"),
        Some(level) if level > 0 && !privileged => {
            bad(name, level.to_string(), "sudo sysctl kernel.perf_event_paranoid=-1")
        }
        Some(level) if level > 0 => good(name, format!("{level}; root is not bound by it")),
        Some(level) => good(name, level.to_string()),
    }
}

fn lockdown() -> Check {
    let path = "/sys/kernel/security/lockdown";
    let text = fs::read_to_string(path).unwrap_or_default();
    let mode = text.split('[').nth(1).and_then(|rest| rest.split(']').next());
    match mode {
        None => good("lockdown", "the kernel has none"),
        Some("none") => good("lockdown", "none"),
        Some("confidentiality") => bad(
            "lockdown",
            "confidentiality: eBPF may not read memory",
            "turn off Secure Boot, or boot with lockdown=integrity",
        ),
        Some(other) => good("lockdown", other),
    }
}

fn kernel_symbols() -> Check {
    let name = "kernel symbols";
    let effect = "kernel functions have no names";
    match setting("/proc/sys/kernel/kptr_restrict") {
        _ if !Path::new("/proc/kallsyms").exists() => {
            limited(name, "no /proc/kallsyms", effect, "boot a kernel built with CONFIG_KALLSYMS=y")
        }
        Some(2) => limited(name, "hidden by kptr_restrict=2", effect, "sudo sysctl kernel.kptr_restrict=1"),
        _ => good(name, "/proc/kallsyms"),
    }
}

fn tracefs() -> Check {
    let known = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    match known.iter().find(|path| Path::new(path).join("events").is_dir()) {
        Some(path) => good("tracefs", *path),
        None => limited(
            "tracefs",
            "not mounted",
            "tracepoints can't be listed; CPU profiles do not need them",
            "sudo mount -t tracefs tracefs /sys/kernel/tracing",
        ),
    }
}

fn programs() -> Check {
    #[cfg(feature = "ebpf")]
    let built_in = crate::source::ebpf::is_built_in();
    #[cfg(not(feature = "ebpf"))]
    let built_in = false;
    if built_in {
        good("eBPF programs", "built into this binary")
    } else {
        bad("eBPF programs", "not in this build", "cargo xtask build-ebpf && cargo xtask install")
    }
}

/// Needed to build the programs, not to record with a binary that has them.
fn toolchain() -> Check {
    let debian = Path::new("/usr/lib/rustlib/bpfel-unknown-none").is_dir();
    let rust_src = fs::read_dir(home().join(".rustup/toolchains")).is_ok_and(|toolchains| {
        toolchains.filter_map(Result::ok).any(|toolchain| {
            let name = toolchain.file_name();
            name.to_string_lossy().starts_with("nightly")
                && toolchain.path().join("lib/rustlib/src/rust/library/core").is_dir()
        })
    });
    if debian {
        good("BPF toolchain", "Debian's rustc-web")
    } else if rust_src {
        good("BPF toolchain", "rustup's nightly with rust-src")
    } else {
        let effect = "the eBPF programs can't be rebuilt; recording does not need it";
        limited("BPF toolchain", "none", effect, "cargo xtask setup")
    }
}

fn home() -> std::path::PathBuf {
    std::env::home_dir().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gap_names_its_remedy() {
        for check in examine() {
            assert!(!check.found.is_empty(), "{check:?}");
            match check.verdict {
                Verdict::Good => {}
                Verdict::Limited { fix, .. } | Verdict::Bad { fix } => assert!(!fix.is_empty()),
            }
        }
    }
}
