//! A machine that runs one command on a kernel of the matrix, and is gone.
//!
//! In: an extracted kernel, the checkout, a command. Out: what the command prints, on our stdout, and its exit status.
//!
//! QEMU emulates two CPUs, for there need not be hardware to run the kernel on. The host's root folder is the machine's, by
//! 9P and read-only, so that compilers, debuggers and what was built are all there; `/tmp`, `/run`, `/var/tmp`, `/root` and
//! `target/tmp` are folders in memory. What the kernel says goes to `console` beside the kernel.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::initramfs;
use crate::command;
use crate::test::Totals;
use crate::workspace::Workspace;

/// Exit status of timeout(1) that ended what it ran, and where that took a second signal.
const OVERDUE: [i32; 2] = [124, 128 + 9];

/// Of the machine.
const MEMORY: &str = "3G";

/// What is to be run.
pub(super) struct Job<'a> {
    /// Of a shell.
    pub(super) line: &'a str,
    /// How long it may take.
    pub(super) limit: Duration,
    /// The option that the kernel is known to lack.
    pub(super) lacks: Option<&'a str>,
}

/// Runs the job on the kernel in `package`; `folder` keeps the machine's files. Fails where the command does, and where a live test
/// says that the kernel lacks what it is about, unless that is known.
pub(super) fn run(workspace: &Workspace, folder: &Path, package: &Path, job: &Job<'_>) -> Result<()> {
    let &Job { line, limit, lacks } = job;
    let checkout = parameter(workspace.top())?;
    let (share, initramfs, console) =
        (folder.join("share"), folder.join("initramfs"), folder.join("console"));
    fs::create_dir_all(&share).with_context(|| format!("{} can't be made", share.display()))?;
    // The machine's folder in memory is mounted over it.
    fs::create_dir_all(workspace.join("target/tmp")).context("target/tmp can't be made")?;
    let (status, said) = (share.join("status"), share.join("said"));
    for file in [&status, &said] {
        let _ = fs::remove_file(file);
    }
    let write = |file: &Path, content: &[u8]| {
        fs::write(file, content).with_context(|| format!("{} can't be written", file.display()))
    };
    write(&share.join("guest"), guest(workspace, line).as_bytes())?;
    write(&initramfs, &initramfs::pack(package)?)?;

    // On root's side: whoever is not root can't end what runs as root.
    let mut qemu = command::as_root("timeout")?;
    qemu.args(options(limit)).arg("qemu-system-x86_64");
    qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", MEMORY]);
    qemu.args(["-nodefaults", "-display", "none", "-no-reboot"]);
    qemu.arg("-kernel").arg(initramfs::image(package)?).arg("-initrd").arg(&initramfs);
    // On a busy host an emulated timer is late, which the kernel would take for a broken one.
    qemu.arg("-append").arg(format!("console=ttyS0 loglevel=4 panic=-1 no_timer_check checkout={checkout}"));
    qemu.arg("-serial").arg(format!("file:{}", console.display())).args(["-serial", "stdio"]);
    share_folder(&mut qemu, "root", Path::new("/"), ",readonly=on,multidevs=remap");
    share_folder(&mut qemu, "checkout", workspace.top(), ",readonly=on,multidevs=remap");
    share_folder(&mut qemu, "vm", &share, "");
    qemu.stdin(Stdio::null());
    if overdue(&mut qemu)? {
        bail!("the command had not ended after {} minutes; --minutes gives it more", limit.as_secs() / 60);
    }

    let Ok(told) = fs::read_to_string(&status) else {
        let said = String::from_utf8_lossy(&fs::read(&console).unwrap_or_default()).into_owned();
        bail!("the machine stopped before the command ended; it said at last:\n{}", last_lines(&said));
    };
    match told.trim() {
        "0" => all_ran(&fs::read(&said).context("what the command printed can't be read")?, lacks),
        other => bail!("the command failed: exit status {other}"),
    }
}

/// Those of timeout(1).
fn options(limit: Duration) -> [String; 3] {
    // It takes zero for no limit.
    let seconds = limit.as_secs().max(1);
    ["--foreground".to_owned(), "--kill-after=10".to_owned(), seconds.to_string()]
}

/// Runs the command, which timeout(1) is, and tells whether that ended it.
fn overdue(timeout: &mut Command) -> Result<bool> {
    let ended = timeout.status().context("the machine can't be started")?;
    Ok(ended.code().is_some_and(|code| OVERDUE.contains(&code)))
}

/// That no test found the kernel without what it is about: the kernels have all of that but `lacks`.
fn all_ran(said: &[u8], lacks: Option<&str>) -> Result<()> {
    let said = String::from_utf8_lossy(said);
    let is_known = |line: &&str| lacks.is_some_and(|option| line.contains(option));
    let absent: Vec<&str> =
        said.lines().filter_map(Totals::absent_in).filter(|line| !is_known(line)).collect();
    ensure!(absent.is_empty(), "tests did not run:\n{}", absent.join("\n"));
    Ok(())
}

/// A path as a parameter of the kernel's command line, from the root folder on. The kernel splits that line at spaces.
fn parameter(path: &Path) -> Result<&str> {
    let path = path.to_str().filter(|path| !path.contains(|c: char| c.is_whitespace() || c == '"'));
    let path =
        path.context("the checkout's path has a space or a quotation mark in it; move it elsewhere")?;
    Ok(path.trim_start_matches('/'))
}

/// What the machine does once its files are there.
fn guest(workspace: &Workspace, line: &str) -> String {
    format!(
        "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root\n\
         exec </dev/null >/dev/ttyS1 2>&1\n\
         ulimit -n 1048576\n\
         {}\n\
         sync\n\
         echo o >/proc/sysrq-trigger\n\
         sleep 60\n",
        kept(&format!("cd {} && {line}", quoted(&workspace.top().display().to_string())), "/run/vm"),
    )
}

/// `line`, of a shell, with what it prints also in the file `said` of a `folder`, and its exit status in `status`.
fn kept(line: &str, folder: &str) -> String {
    format!("{{ ({line}); echo $? >{folder}/status; }} | tee {folder}/said")
}

fn share_folder(qemu: &mut Command, name: &str, folder: &Path, options: &str) {
    // A comma separates QEMU's options; two are one.
    let path = folder.display().to_string().replace(',', ",,");
    qemu.arg("-fsdev").arg(format!("local,id={name},path={path},security_model=none{options}"));
    qemu.arg("-device").arg(format!("virtio-9p-pci,fsdev={name},mount_tag={name}"));
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// A word of a shell's.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_the_kernel_would_split_is_refused() {
        assert_eq!(parameter(Path::new("/srv/it's")).unwrap(), "srv/it's");
        for path in ["/srv/two words", "/srv/\"it\"", "/srv\n"] {
            assert!(parameter(Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn a_test_of_what_the_kernel_lacks_fails_the_run() {
        assert!(all_ran(b"test live::a ... ok\r\n", None).is_ok());
        // Behind its name where tests run one after the other.
        let error =
            all_ran(b"test live::a ... NOT ON THIS KERNEL live::a: no kprobes\r\nok\r\n", Some("CONFIG_X"))
                .unwrap_err();
        assert!(error.to_string().ends_with("\nNOT ON THIS KERNEL live::a: no kprobes"), "{error}");
        let known = b"NOT ON THIS KERNEL live::a: it was built without CONFIG_X\nok\n";
        assert!(all_ran(known, Some("CONFIG_X")).is_ok() && all_ran(known, None).is_err());
    }

    #[test]
    fn what_a_command_prints_does_not_hide_how_it_ended() {
        let folder = std::env::temp_dir().join(format!("xtask-{}-kept", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let line = kept("cd / && echo said; exit 3", &quoted(&folder.display().to_string()));
        assert_eq!(command::output(Command::new("sh").args(["-c", &line])).unwrap(), "said\n");
        let told = ["status", "said"].map(|file| fs::read_to_string(folder.join(file)).unwrap());
        assert_eq!(told, ["3\n", "said\n"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_machine_ends_when_its_time_is_over() {
        let is_overdue = |line: &str| {
            let mut timeout = Command::new("timeout");
            overdue(timeout.args(options(Duration::from_secs(1))).args(["sh", "-c", line])).unwrap()
        };
        assert!(is_overdue("sleep 30"));
        assert!(!is_overdue("exit 1"));
    }

    #[test]
    fn a_shell_reads_a_quoted_word_as_it_was() {
        for word in ["plain", "two words", "it's", "$HOME `x` \"y\" \\", ""] {
            let echoed =
                command::output(Command::new("sh").args(["-c", &format!("printf %s {}", quoted(word))]));
            assert_eq!(echoed.unwrap(), word);
        }
    }
}
