//! `collector doctor` against what the machine says to others, and without what it looks for.

use std::fs;
use std::process::{Command, Output};

use crate::prerequisites::live_with;
use crate::recording::collector;
use crate::surroundings::{Nobody, Paranoid, unshared};

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The line of a check and those below it that tell what to do.
fn check(text: &str, name: &str) -> Vec<String> {
    let mut lines = text.lines().skip_while(|line| !line.get(5..).is_some_and(|rest| rest.starts_with(name)));
    let head = lines.next().unwrap_or_else(|| panic!("no {name} in\n{text}"));
    let more = lines.take_while(|line| line.starts_with("     "));
    std::iter::once(head).chain(more).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn what_it_finds_is_so() {
    let Some(_live) = live_with("what_it_finds_is_so", &["uname"]) else { return };
    let output = collector().arg("doctor").output().unwrap();
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.ends_with("recording works here\n"), "{text}");
    let release = Command::new("uname").arg("-r").output().unwrap().stdout;
    let release = String::from_utf8(release).unwrap();
    assert_eq!(check(&text, "kernel:"), [format!("ok   kernel: {}", release.trim())]);
    for works in ["kernel types (BTF)", "rights", "perf_event_paranoid", "eBPF programs"] {
        assert!(check(&text, works)[0].starts_with("ok"), "{text}");
    }
}

/// The rights that it names, sorted, and what it misses.
fn rights(text: &str) -> (Vec<String>, Vec<String>) {
    let line = &check(text, "rights")[0];
    let mut parts = line.split_once("rights: ").unwrap().1.split("; ");
    let mut names: Vec<String> = parts.next().unwrap().split(", ").map(str::to_owned).collect();
    names.sort_unstable();
    (names, parts.map(str::to_owned).collect())
}

#[test]
fn rights_are_those_of_the_process() {
    let Some(_live) = live_with("rights_are_those_of_the_process", &["setpriv"]) else { return };
    let (_paranoid, nobody) = (Paranoid::high(), Nobody::new());
    // What root has it takes from the process, whose bits are numbered in `linux/capability.h`.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let bits = status.lines().find_map(|line| line.strip_prefix("CapEff:\t")).unwrap();
    let bits = u64::from_str_radix(bits, 16).unwrap();
    let numbered = [
        (39, "CAP_BPF"),
        (40, "CAP_CHECKPOINT_RESTORE"),
        (1, "CAP_DAC_OVERRIDE"),
        (2, "CAP_DAC_READ_SEARCH"),
        (38, "CAP_PERFMON"),
        (21, "CAP_SYS_ADMIN"),
        (34, "CAP_SYSLOG"),
        (19, "CAP_SYS_PTRACE"),
    ];
    let mut has: Vec<_> =
        numbered.iter().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name).collect();
    has.sort_unstable();
    assert_eq!(rights(&text(&collector().arg("doctor").output().unwrap())).0, has);

    let readers = ["CAP_SYS_PTRACE", "CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE"];
    let readers = readers.into_iter().chain(["CAP_DAC_OVERRIDE or CAP_DAC_READ_SEARCH"]);
    let readers: Vec<String> = readers.map(|missing| format!("no {missing}")).collect();
    let loader = "no CAP_SYS_ADMIN or CAP_BPF".to_owned();
    for (given, mark, missing) in [
        (&["perfmon"][..], "some", [&[loader], readers.as_slice()].concat()),
        (&["bpf", "perfmon"], "some", readers),
        (&["bpf", "perfmon", "sys_ptrace", "checkpoint_restore", "dac_read_search", "syslog"], "ok", vec![]),
    ] {
        let output = nobody.collector(given, &["doctor"]);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(check(&text, "rights")[0].starts_with(mark), "{text}");
        let mut names: Vec<_> = given.iter().map(|name| format!("CAP_{}", name.to_uppercase())).collect();
        names.sort_unstable();
        assert_eq!(rights(&text), (names, missing));
        assert!(check(&text, "perf_event_paranoid")[0].starts_with("ok"), "CAP_PERFMON is not bound: {text}");
        let kallsyms = nobody.run(given, "head", &["-n", "1000", "/proc/kallsyms"]).stdout;
        let hidden =
            String::from_utf8(kallsyms).unwrap().lines().all(|line| line.starts_with("0000000000000000 "));
        assert_eq!(check(&text, "kernel symbols")[0].starts_with("some"), hidden, "{text}");
    }
}

#[test]
fn without_rights_it_says_what_gives_them() {
    let Some(_live) = live_with("without_rights_it_says_what_gives_them", &["setpriv"]) else { return };
    let _paranoid = Paranoid::high();
    let output = Nobody::new().collector(&[], &["doctor"]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.ends_with("recording works here\n"), "{text}");
    let own = "only your own processes can be recorded, with `-p PID` or `-- COMMAND`, and not the kernel";
    assert_eq!(check(&text, "rights"), ["some rights: none that recording uses", own, "sudo collector run"]);
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let paranoid = check(&text, "perf_event_paranoid");
    assert_eq!(
        paranoid[0],
        format!("some perf_event_paranoid: {}, which binds whoever has no CAP_PERFMON", level.trim())
    );
    assert_eq!(paranoid[1..], [own, "sudo collector run"]);
}

/// A kernel that has nothing of what is looked for, and forbids the rest.
const BARE: &str = r"
    mount -t tmpfs none /sys/kernel
    mkdir /sys/kernel/security
    echo 'none integrity [confidentiality]' > /sys/kernel/security/lockdown
    mount -t tmpfs none /proc/sys/kernel
    echo 2 > /proc/sys/kernel/kptr_restrict
    mount --bind /dev/null /proc/kallsyms
";

#[test]
fn each_gap_has_one_remedy() {
    let Some(_live) = live_with("each_gap_has_one_remedy", &["unshare", "mount"]) else { return };
    let output = unshared(&["--mount", "--pid", "--fork", "--mount-proc"], BARE, &["doctor"]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for (name, mark, remedy) in [
        ("kernel types (BTF)", "some", "CONFIG_DEBUG_INFO_BTF=y"),
        ("pid namespace", "some", "docker run --pid=host"),
        ("perf_event_paranoid", "NO", "CONFIG_PERF_EVENTS=y"),
        ("lockdown", "some", "lockdown=integrity"),
        ("kernel symbols", "some", "sudo sysctl kernel.kptr_restrict=1"),
        ("kernel image", "some", "/usr/lib/debug/boot/vmlinux-"),
    ] {
        let lines = check(&text, name);
        assert!(lines[0].starts_with(mark), "{text}");
        // What is missing then stands above what to do.
        assert_eq!(lines.len(), if mark == "NO" { 2 } else { 3 }, "{text}");
        assert!(lines.last().unwrap().contains(remedy), "{text}");
    }
    assert_eq!(check(&text, "tracefs"), ["ok   tracefs: not mounted, which need not be"]);
}
