//! What a Linux machine allows.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use rustix::thread::{CapabilitySet, capabilities};

use super::{Check, bad, good, limited};
use crate::kernel::Release;
use crate::modules::vmlinux;
use crate::tracefs::{Tracefs, TracefsError};

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
        kernel_image(),
        tracefs(),
        user_events(),
        programs(),
        toolchain(),
    ]
}

/// What it means that programs can't be loaded.
const NO_PROGRAMS: &str = "plain perf events record instead of eBPF programs: at a higher cost";

fn kernel() -> Check {
    let release = Release::of_this_kernel();
    let found = rustix::system::uname().release().to_string_lossy().into_owned();
    if release < Release::new(4, 1) {
        bad("kernel", found, "update the kernel: recording needs Linux 4.1")
    } else if release < Release::new(5, 8) {
        limited("kernel", found, NO_PROGRAMS, "update the kernel: eBPF ring buffers need Linux 5.8")
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
        Err(error) => {
            let fix = boot_with("CONFIG_DEBUG_INFO_BTF");
            limited("kernel types (BTF)", format!("{path}: {error}"), NO_PROGRAMS, fix)
        }
    }
}

/// How to come to a kernel that was built with an option, which Debian's are.
fn boot_with(option: &str) -> String {
    let debian = is_debian();
    let package = match env::consts::ARCH {
        "x86_64" if debian => "linux-image-amd64",
        "aarch64" if debian => "linux-image-arm64",
        _ => return format!("boot a kernel built with {option}=y"),
    };
    format!("sudo apt-get install {package} && sudo reboot  # Debian's kernel has {option}=y")
}

fn is_debian() -> bool {
    fs::read_to_string("/etc/os-release").is_ok_and(|text| text.lines().any(|line| line == "ID=debian"))
}

/// Of the rights that Linux divides root's into, those that recording uses.
const USED: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::CHECKPOINT_RESTORE)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::SYSLOG);

/// The rights that this process has.
fn held() -> CapabilitySet {
    capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective)
}

/// What loads the programs and opens the events: one right of each set.
const TO_RECORD: [CapabilitySet; 2] = [
    CapabilitySet::BPF.union(CapabilitySet::SYS_ADMIN),
    CapabilitySet::PERFMON.union(CapabilitySet::SYS_ADMIN),
];

/// What opens the files that others have mapped, which are named in `/proc/PID/map_files` and may lie in folders that are
/// closed to others: one right of each set.
const TO_READ: [CapabilitySet; 3] = [
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::CHECKPOINT_RESTORE.union(CapabilitySet::SYS_ADMIN),
    CapabilitySet::DAC_READ_SEARCH.union(CapabilitySet::DAC_OVERRIDE),
];

/// The sets of which `held` has none.
fn lacking(held: CapabilitySet, wanted: &[CapabilitySet]) -> Vec<CapabilitySet> {
    wanted.iter().copied().filter(|&set| !held.intersects(set)).collect()
}

/// Whether this process may load the programs and open the events.
pub(crate) fn may_record() -> bool {
    lacking(held(), &TO_RECORD).is_empty() && !in_user_namespace()
}

/// Whether this process is in a user namespace of its own: its rights are none over the machine.
fn in_user_namespace() -> bool {
    /// `PROC_USER_INIT_INO` of `include/linux/proc_ns.h`.
    const INITIAL: &str = "user:[4026531837]";
    fs::read_link("/proc/self/ns/user").is_ok_and(|link| link.as_os_str() != INITIAL)
}

/// `CAP_BPF, CAP_SYSLOG`
fn names(rights: CapabilitySet, between: &str) -> String {
    rights.iter_names().map(|(name, _)| format!("CAP_{name}")).collect::<Vec<_>>().join(between)
}

/// What it means to have no rights.
const OWN_PROCESSES: &str =
    "only your own processes can be recorded, with `-p PID` or `-- COMMAND`, and not the kernel";

fn rights() -> Check {
    let used = held() & USED;
    let [to_record, to_read] = [&TO_RECORD[..], &TO_READ].map(|wanted| lacking(held(), wanted));
    let mut found = names(used, ", ");
    if used.is_empty() {
        found.push_str("none that recording uses");
    } else {
        for lacked in to_record.iter().chain(&to_read) {
            let _ = write!(found, "; no {}", names(*lacked, " or "));
        }
    }
    if in_user_namespace() {
        found.push_str("; in a user namespace, where they are none over the machine");
        let fix = "run it as root outside of it: a container needs `--privileged --userns=host`";
        limited("rights", found, OWN_PROCESSES, fix)
    } else if !may_record() {
        let effect = if may_observe() { NO_PROGRAMS } else { OWN_PROCESSES };
        limited("rights", found, effect, "sudo collector run")
    } else if !to_read.is_empty() {
        let effect = "files of other users' processes can't be read: their stacks and names are incomplete";
        limited("rights", found, effect, "sudo collector run")
    } else {
        good("rights", found)
    }
}

/// Whether this process is in the machine's own pid namespace: eBPF programs see its pids.
pub(crate) fn in_initial_pid_namespace() -> bool {
    /// `PROC_PID_INIT_INO` of `include/linux/proc_ns.h`.
    const INITIAL: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == INITIAL)
}

/// Whether `/proc` is there.
pub(crate) fn has_proc() -> bool {
    Path::new("/proc/self/ns").is_dir()
}

fn pid_namespace() -> Check {
    if !has_proc() {
        bad("pid namespace", "/proc is not mounted", "sudo mount -t proc proc /proc")
    } else if in_initial_pid_namespace() {
        good("pid namespace", "the machine's own")
    } else {
        let fix = "run it in the machine's pid namespace, as with `docker run --pid=host --privileged`";
        limited(
            "pid namespace",
            "one of its own",
            "only its processes can be recorded, by plain perf events",
            fix,
        )
    }
}

fn setting(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// `kernel.perf_event_paranoid`; `None` for a kernel without perf events.
pub(crate) fn perf_event_level() -> Option<i64> {
    setting("/proc/sys/kernel/perf_event_paranoid")
}

/// `kernel.perf_event_mlock_kb`.
pub(crate) fn locked_kib_by_cpu() -> Option<i64> {
    setting("/proc/sys/kernel/perf_event_mlock_kb")
}

/// `kernel.perf_event_max_sample_rate`.
pub(crate) fn most_samples_a_second() -> Option<i64> {
    setting("/proc/sys/kernel/perf_event_max_sample_rate")
}

/// Whether this process has the rights over perf events that no setting takes away.
pub(crate) fn may_observe() -> bool {
    held().intersects(TO_RECORD[1]) && !in_user_namespace()
}

/// Whether this process may lock as much memory as it wants.
pub(crate) fn may_lock() -> bool {
    held().intersects(CapabilitySet::IPC_LOCK) && !in_user_namespace()
}

fn perf_event_paranoid() -> Check {
    let name = "perf_event_paranoid";
    let privileged = may_observe();
    match perf_event_level() {
        None => bad(name, "absent", boot_with("CONFIG_PERF_EVENTS")),
        Some(level) if level > 0 && !privileged => {
            // Set to -1 it would allow the events, but not the programs.
            let (found, fix) =
                (format!("{level}, which binds whoever has no CAP_PERFMON"), "sudo collector run");
            // Some distributions have a level that forbids all.
            if level > 2 { bad(name, found, fix) } else { limited(name, found, OWN_PROCESSES, fix) }
        }
        Some(level) if level > 0 => good(name, format!("{level}, which does not bind these rights")),
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
        Some("confidentiality") => limited(
            "lockdown",
            "confidentiality: eBPF may not read memory",
            NO_PROGRAMS,
            "turn off Secure Boot, or boot with lockdown=integrity",
        ),
        Some(other) => good("lockdown", other),
    }
}

fn kernel_symbols() -> Check {
    let (name, path) = ("kernel symbols", "/proc/kallsyms");
    let effect = "kernel functions have no names";
    let Ok(file) = File::open(path) else {
        return limited(name, format!("no {path}"), effect, boot_with("CONFIG_KALLSYMS"));
    };
    if has_addresses(BufReader::new(file)) {
        good(name, path)
    } else if setting("/proc/sys/kernel/kptr_restrict") == Some(2) {
        limited(name, "hidden by kptr_restrict=2", effect, "sudo sysctl kernel.kptr_restrict=1")
    } else {
        limited(name, "hidden from these rights", effect, "sudo collector run")
    }
}

/// The image tells more of the kernel's functions than their names, once it is known how far from there the kernel runs.
fn kernel_image() -> Check {
    let name = "kernel image";
    match vmlinux::find() {
        Some((_, 0)) => good(name, "a vmlinux of this kernel, which runs where that was linked: no KASLR"),
        Some((_, moved)) => good(name, format!("a vmlinux of this kernel, moved by {moved:#x} (KASLR)")),
        None => {
            let release = rustix::system::uname().release().to_string_lossy().into_owned();
            let place = format!("/usr/lib/debug/boot/vmlinux-{release}");
            // As Debian calls its kernels.
            let is_packaged =
                is_debian() && ["-amd64", "-arm64"].iter().any(|ending| release.ends_with(ending));
            let fix = if is_packaged {
                format!("sudo apt-get install linux-image-{release}-dbg  # or {place}")
            } else {
                format!("sudo cp vmlinux {place}  # of the build of this kernel")
            };
            let effect = "kernel functions have no source lines, and those inlined into them no names";
            limited(name, "no vmlinux of this kernel, or addresses are hidden", effect, fix)
        }
    }
}

/// Whether text such as `ffffffff81000000 T _stext` tells addresses; where they are hidden, all are 0.
fn has_addresses(kallsyms: impl BufRead) -> bool {
    // The first of a processor's own variables is at 0; that a thousand are is no accident.
    let lines = kallsyms.lines().map_while(Result::ok).take(1000);
    lines.filter_map(|line| u64::from_str_radix(line.split(' ').next()?, 16).ok()).any(|address| address != 0)
}

fn tracefs() -> Check {
    let effect = "tracepoints and probes can't be recorded; CPU profiles do not need them";
    match Tracefs::open() {
        Ok(tracefs) if tracefs.is_mounted() => good("tracefs", "mounted"),
        Ok(_) => good("tracefs", "not mounted, which need not be"),
        Err(TracefsError::NotPermitted) => limited("tracefs", "root's to see", effect, "sudo collector run"),
        Err(error) => {
            let fix = "sudo mount -t tracefs tracefs /sys/kernel/tracing";
            limited("tracefs", error.to_string(), effect, fix)
        }
    }
}

/// Few kernels are built with them, and nothing but them is missing then.
fn user_events() -> Check {
    let name = "user events";
    match Tracefs::open().map(|tracefs| tracefs.has_user_events()) {
        Ok(true) => good(name, "programs can register their own, as user_events:NAME"),
        Ok(false) => good(name, "the kernel has none (CONFIG_USER_EVENTS), which -e user_events:NAME needs"),
        Err(_) => good(name, "not known, as tracepoints can't be seen"),
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
        let fix = "cargo xtask build-ebpf && cargo xtask install";
        limited("eBPF programs", "not in this build", NO_PROGRAMS, fix)
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
    env::home_dir().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn rights_add_up() {
        use CapabilitySet as Set;
        let reader = Set::SYS_PTRACE | Set::CHECKPOINT_RESTORE | Set::DAC_READ_SEARCH;
        assert_eq!(lacking(reader, &TO_READ), []);
        assert_eq!(lacking(Set::SYS_PTRACE | Set::SYS_ADMIN | Set::DAC_OVERRIDE, &TO_READ), []);
        for one in [Set::SYS_PTRACE, Set::CHECKPOINT_RESTORE, Set::DAC_READ_SEARCH] {
            assert!(matches!(*lacking(reader - one, &TO_READ), [lacked] if lacked.contains(one)), "{one:?}");
        }
        assert_eq!(lacking(Set::SYS_ADMIN, &TO_RECORD), []);
        assert_eq!(names(lacking(Set::BPF, &TO_RECORD)[0], " or "), "CAP_SYS_ADMIN or CAP_PERFMON");
    }

    #[test]
    fn addresses_are_hidden_as_zeros() {
        assert!(has_addresses(&b"0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\n"[..]));
        assert!(!has_addresses(&b"0000000000000000 A fixed_percpu_data\n0000000000000000 T _stext\n"[..]));
        assert!(!has_addresses(&b""[..]));
    }

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
