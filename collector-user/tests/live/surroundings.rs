//! Surroundings that do not allow it: no rights, no kernel types, and a file system that fills up.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::prerequisites::live_with;
use crate::programs::folder;
use crate::recording::read;

/// `nobody` on all distributions.
const NOBODY: &str = "65534";

/// A user without rights, with a copy of the collector where every user can come to, unlike the build's folders.
pub(crate) struct Nobody {
    folder: TempDir,
}

impl Nobody {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let binary = folder.path().join("collector");
        fs::copy(env!("CARGO_BIN_EXE_collector"), &binary).unwrap();
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    /// Its folder, in which it may write.
    fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a program there with these of root's rights, named as in `bpf`.
    pub(crate) fn run(&self, rights: &[&str], program: &str, args: &[&str]) -> Output {
        let rights: Vec<String> = rights.iter().map(|right| format!("+{right}")).collect();
        let rights = if rights.is_empty() { "-all".to_owned() } else { rights.join(",") };
        Command::new("setpriv")
            .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
            .args(["--inh-caps", &rights, "--ambient-caps", &rights])
            .arg(program)
            .args(args)
            .current_dir(self.folder())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Runs the collector with these rights.
    pub(crate) fn collector(&self, rights: &[&str], args: &[&str]) -> Output {
        self.run(rights, "./collector", args)
    }
}

/// The kernel's `perf_event_paranoid`, raised for a test and put back after it.
pub(crate) struct Paranoid {
    before: Option<String>,
}

impl Paranoid {
    const PATH: &str = "/proc/sys/kernel/perf_event_paranoid";

    /// At 2, the kernel's default. Debian's own is 3, with which nobody records without rights.
    pub(crate) fn high() -> Self {
        let level = fs::read_to_string(Self::PATH).unwrap();
        let differs = level.trim() != "2";
        if differs {
            fs::write(Self::PATH, "2").unwrap();
        }
        Self { before: differs.then_some(level) }
    }
}

impl Drop for Paranoid {
    fn drop(&mut self) {
        if let Some(level) = &self.before {
            fs::write(Self::PATH, level).unwrap();
        }
    }
}

/// Runs the collector in namespaces of its own (options of `unshare`), after a script that changes what it sees there.
pub(crate) fn unshared(options: &[&str], script: &str, args: &[&str]) -> Output {
    Command::new("unshare")
        .args(options)
        .args(["sh", "-euc", &format!("{script}\nexec \"$@\""), "sh"])
        .arg(env!("CARGO_BIN_EXE_collector"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// It failed, and said so in one line with `what` in it.
fn assert_refused(output: &Output, what: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.lines().count() == 1 && stderr.contains(what), "{stderr}");
}

/// It recorded without programs, and said why.
fn assert_recorded_by_perf_events(output: &Output) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("plain perf events record, at a higher cost"), "{stderr}");
    assert!(!stderr.contains("came online"), "{stderr}");
}

#[test]
fn what_happens_in_the_kernel_is_told_to_be_missing() {
    let Some(_live) = live_with("what_happens_in_the_kernel_is_told_to_be_missing", &["setpriv"]) else {
        return;
    };
    let (_paranoid, nobody) = (Paranoid::high(), Nobody::new());
    let record = |event| {
        nobody.collector(&[], &["run", "--backend", "perf", "-e", event, "-o", "x.folded", "--", "true"])
    };
    for event in ["context-switches", "cpu-migrations"] {
        assert_refused(&record(event), &format!("{event} happen in the kernel"));
    }
    let output = record("page-faults");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("what happens in the kernel is left out"), "{stderr}");
}

#[test]
fn without_rights() {
    let Some(_live) = live_with("without_rights", &["setpriv"]) else { return };
    let (_paranoid, nobody) = (Paranoid::high(), Nobody::new());
    // Neither the events nor, with the events alone, the programs.
    for (rights, backend) in [(&[][..], "auto"), (&["perfmon"], "ebpf"), (&["bpf"], "auto")] {
        let output = nobody.collector(rights, &["run", "--backend", backend, "-d", "1s", "-o", "x.folded"]);
        assert_refused(&output, "run it with sudo");
    }
    assert_eq!(fs::read_dir(nobody.folder()).unwrap().count(), 1, "the binary alone");
    let output = nobody.collector(&["perfmon"], &["run", "-d", "1s", "-o", "x.folded"]);
    assert_recorded_by_perf_events(&output);
}

#[test]
fn two_rights_are_enough() {
    let Some(_live) = live_with("two_rights_are_enough", &["setpriv"]) else { return };
    let (_paranoid, nobody) = (Paranoid::high(), Nobody::new());
    let script = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done";
    let args = ["run", "-o", "recorded.folded", "--stats", "stats.json", "--", "sh", "-c", script];
    let output = nobody.collector(&["bpf", "perfmon"], &args);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let recorded = read(nobody.folder(), stderr);
    assert!(recorded.samples_of("sh") > 0, "{}", recorded.stderr);
}

#[test]
fn a_folder_of_someone_else() {
    let Some(_live) = live_with("a_folder_of_someone_else", &["setpriv"]) else { return };
    let (nobody, roots) = (Nobody::new(), TempDir::new().unwrap());
    fs::set_permissions(roots.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let file = roots.path().join("x.folded");
    let output = nobody.collector(&[], &["run", "-d", "1s", "-o", file.to_str().unwrap()]);
    assert_refused(&output, "x.folded can't be written: Permission denied");
    assert!(String::from_utf8(output.stderr).unwrap().contains("choose a folder"));
}

#[test]
fn without_btf() {
    let Some(_live) = live_with("without_btf", &["unshare", "mount"]) else { return };
    let folder = folder();
    let file = folder.path().join("x.folded");
    let args = ["run", "-d", "2s", "-o", file.to_str().unwrap()];
    let output = |args: &[&str]| unshared(&["--mount"], "mount -t tmpfs none /sys/kernel/btf", args);
    let needs_btf = "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y";
    assert_refused(&output(&[&args[..], &["--backend", "ebpf"]].concat()), needs_btf);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "no file is left");
    assert_recorded_by_perf_events(&output(&args));
}

/// A shell that works for as long as what it starts next, or a minute.
const BURN: &str = "(i=0; while [ $i -lt 10000000 ]; do i=$((i + 1)); done) &";

#[test]
fn in_a_pid_namespace() {
    let Some(_live) = live_with("in_a_pid_namespace", &["unshare"]) else { return };
    let folder = folder();
    let file = folder.path().join("x.folded");
    let args = ["run", "-d", "1s", "-o", file.to_str().unwrap()];
    let inside = |args: &[&str]| unshared(&["--pid", "--fork", "--mount-proc"], BURN, args);
    assert_refused(&inside(&[&args[..], &["--backend", "ebpf"]].concat()), "--pid=host");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "no file is left");
    let mut outside = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let output = inside(&args);
    outside.kill().unwrap();
    outside.wait().unwrap();
    assert_recorded_by_perf_events(&output);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("outside of this pid namespace"), "{stderr}");
    let recorded = fs::read_to_string(&file).unwrap();
    let is_inside = |line: &str| line.starts_with("sh;") || line.starts_with("collector");
    assert!(recorded.lines().any(|line| line.starts_with("sh;")), "{recorded}");
    assert!(recorded.lines().all(is_inside), "{recorded}");
}

#[test]
fn in_a_user_namespace() {
    let Some(_live) = live_with("in_a_user_namespace", &["unshare"]) else { return };
    let options = ["--user", "--map-root-user"];
    assert_refused(
        &unshared(&options, "", &["run", "-d", "1s", "-o", "-", "--format", "folded"]),
        "user namespace",
    );
    let own = ["run", "-o", "-", "--format", "folded", "--", "true"];
    assert_recorded_by_perf_events(&unshared(&options, "", &own));
    let doctor = unshared(&options, "", &["doctor"]);
    let text = String::from_utf8(doctor.stdout).unwrap();
    assert_eq!(doctor.status.code(), Some(0), "{text}");
    assert!(text.contains("in a user namespace"), "{text}");
    assert!(text.contains("some perf_event_paranoid"), "no rights over the machine: {text}");
}

#[test]
fn without_proc() {
    let Some(_live) = live_with("without_proc", &["unshare", "umount"]) else { return };
    let args = ["run", "-d", "1s", "-o", "-", "--format", "folded"];
    assert_refused(&unshared(&["--mount"], "umount -l /proc", &args), "mount -t proc");
}

/// Runs the collector with a limit of the shell's.
fn limited(limit: &str, folder: &Path, args: &[&str]) -> Output {
    Command::new("bash")
        .args(["-euc", &format!("ulimit {limit}\nexec \"$@\""), "bash"])
        .arg(env!("CARGO_BIN_EXE_collector"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn with_few_open_files() {
    let Some(_live) = live_with("with_few_open_files", &["bash"]) else { return };
    for limit in ["-n 16", "-n 40"] {
        let output = limited(limit, folder().path(), &["run", "-d", "1s", "-o", "x.folded"]);
        assert_refused(&output, "raise the limit (`ulimit -n`)");
    }
}

#[test]
fn with_small_files() {
    let Some(_live) = live_with("with_small_files", &["bash"]) else { return };
    let folder = folder();
    // The page is some 100 KB, whatever is in it; the limit is in units of 1 KB.
    let args = [
        "run",
        "-o",
        "x.html",
        "-o",
        "x.folded",
        "--",
        "sh",
        "-c",
        "while :; do :; done & sleep 0.2; kill $!",
    ];
    let output = limited("-f 40", folder.path(), &args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("x.html can't be written: File too large"), "{stderr}");
    assert!(fs::read_to_string(folder.path().join("x.folded")).unwrap().contains("sh;"));
}

/// `$1` a folder for a small file system, `$2` a folder with room, `$3` the collector.
const FULL: &str = r#"
    mount -t tmpfs -o size=16k none "$1"
    status=0
    "$3" run -o "$1/full.html" -o "$2/fine.folded" -o "$1/fuller.html" --stats "$2/stats.json" -- sh -c \
        'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done' || status=$?
    ls -A "$1"
    exit "$status"
"#;

#[test]
fn a_file_system_that_fills_up() {
    let Some(_live) = live_with("a_file_system_that_fills_up", &["unshare", "mount"]) else { return };
    let (small, roomy) = (folder(), folder());
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-euc", FULL, "sh"])
        .args([small.path(), roomy.path()])
        .arg(env!("CARGO_BIN_EXE_collector"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let mut told: Vec<&str> = stderr.lines().filter(|line| line.starts_with("collector: ")).collect();
    told.sort_unstable();
    assert_eq!(told.len(), 2, "{stderr}");
    for (line, name) in told.iter().zip(["/full.html can't", "/fuller.html can't"]) {
        assert!(line.contains(name) && line.contains("No space left"), "{stderr}");
    }
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "no half file is left");
    // What could be written was.
    assert!(fs::read_to_string(roomy.path().join("fine.folded")).unwrap().starts_with("sh;"));
    assert!(roomy.path().join("stats.json").exists());
}
