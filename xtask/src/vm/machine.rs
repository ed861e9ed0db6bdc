//! A machine that runs one command on a kernel of the matrix, and is gone.
//!
//! In: an extracted kernel, the checkout, a command. Out: what the command prints, on our stdout, and its exit status.
//!
//! QEMU emulates two CPUs, for there need not be hardware to run the kernel on. The host's root folder is the machine's, by
//! 9P and read-only, so that compilers, debuggers and what was built are all there; `/tmp`, `/run`, `/var/tmp`, `/root` and
//! `target/tmp` are folders in memory. What the kernel says goes to `console` beside the kernel.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::initramfs;
use crate::command;
use crate::workspace::Workspace;

/// Of the machine.
const MEMORY: &str = "3G";

/// Runs `line`, of a shell, on the kernel in `package`; `folder` keeps the machine's files. Fails where the command does.
pub(super) fn run(
    workspace: &Workspace,
    folder: &Path,
    package: &Path,
    line: &str,
    limit: Duration,
) -> Result<()> {
    let (share, initramfs, console) =
        (folder.join("share"), folder.join("initramfs"), folder.join("console"));
    fs::create_dir_all(&share).with_context(|| format!("{} can't be made", share.display()))?;
    // The machine's folder in memory is mounted over it.
    fs::create_dir_all(workspace.join("target/tmp")).context("target/tmp can't be made")?;
    let status = share.join("status");
    let _ = fs::remove_file(&status);
    let write = |file: &Path, content: &[u8]| {
        fs::write(file, content).with_context(|| format!("{} can't be written", file.display()))
    };
    write(&share.join("guest"), guest(workspace, line).as_bytes())?;
    write(&initramfs, &initramfs::pack(package)?)?;

    let mut qemu = command::as_root("qemu-system-x86_64")?;
    qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", MEMORY]);
    qemu.args(["-nodefaults", "-display", "none", "-no-reboot"]);
    qemu.arg("-kernel").arg(initramfs::image(package)?).arg("-initrd").arg(&initramfs);
    // On a busy host an emulated timer is late, which the kernel would take for a broken one.
    let checkout = workspace.top().display();
    qemu.arg("-append").arg(format!(
        "console=ttyS0 loglevel=4 panic=-1 no_timer_check checkout={}",
        checkout.to_string().trim_start_matches('/')
    ));
    qemu.arg("-serial").arg(format!("file:{}", console.display())).args(["-serial", "stdio"]);
    share_folder(&mut qemu, "root", Path::new("/"), ",readonly=on,multidevs=remap");
    share_folder(&mut qemu, "checkout", workspace.top(), ",readonly=on,multidevs=remap");
    share_folder(&mut qemu, "vm", &share, "");
    qemu.stdin(Stdio::null());
    let machine = qemu.spawn().context("`qemu-system-x86_64` can't be started")?;
    wait(machine, limit)?;

    let Ok(told) = fs::read_to_string(&status) else {
        let said = String::from_utf8_lossy(&fs::read(&console).unwrap_or_default()).into_owned();
        bail!("the machine stopped before the command ended; it said at last:\n{}", last_lines(&said));
    };
    match told.trim() {
        "0" => Ok(()),
        other => bail!("the command failed: exit status {other}"),
    }
}

/// What the machine does once its files are there.
fn guest(workspace: &Workspace, line: &str) -> String {
    format!(
        "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root\n\
         exec </dev/null >/dev/ttyS1 2>&1\n\
         ulimit -n 1048576\n\
         (cd {} && {line})\n\
         echo $? >/run/vm/status\n\
         sync\n\
         echo o >/proc/sysrq-trigger\n\
         sleep 60\n",
        quoted(&workspace.top().display().to_string()),
    )
}

fn share_folder(qemu: &mut Command, name: &str, folder: &Path, options: &str) {
    // A comma separates QEMU's options; two are one.
    let path = folder.display().to_string().replace(',', ",,");
    qemu.arg("-fsdev").arg(format!("local,id={name},path={path},security_model=none{options}"));
    qemu.arg("-device").arg(format!("virtio-9p-pci,fsdev={name},mount_tag={name}"));
}

/// Waits for the machine's end, and brings it about where that takes too long.
fn wait(mut machine: Child, limit: Duration) -> Result<()> {
    let start = Instant::now();
    while machine.try_wait().context("the machine can't be waited for")?.is_none() {
        if start.elapsed() > limit {
            machine.kill().and_then(|()| machine.wait()).context("the machine can't be stopped")?;
            bail!(
                "the command had not ended after {} minutes; --minutes gives it more",
                limit.as_secs() / 60
            );
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
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
    fn a_shell_reads_a_quoted_word_as_it_was() {
        for word in ["plain", "two words", "it's", "$HOME `x` \"y\" \\", ""] {
            let echoed =
                command::output(Command::new("sh").args(["-c", &format!("printf %s {}", quoted(word))]));
            assert_eq!(echoed.unwrap(), word);
        }
    }
}
