//! Builds of this workspace, each from nothing, in a folder of their own.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpgid};

use crate::cpu::cpu_us;

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// What is built again and again: all crates with their tests, with as many jobs as there are CPUs.
const ALL: &str = "cargo test --no-run --workspace --offline --locked --quiet --target-dir";

/// What is built once: optimised, of some 20 s on 2 CPUs, without a C compiler.
const SOME: &str = "cargo build --release --package collector-unwinder --package collector-export --offline --locked --quiet --target-dir";

/// Builds of everything, one after the other, until this is dropped.
pub(crate) struct Builds {
    shell: Child,
    /// The shell ends its process group, which all compilers are in, when this is closed: also when this bench is
    /// ended before its time.
    lifeline: Option<ChildStdin>,
}

impl Builds {
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        // So that those who lose their parent are ours to wait for.
        set_child_subreaper(Some(getpid()))?;
        let script = format!(
            "{{ read; kill -KILL 0; }} <&0 & cd '{WORKSPACE}' && while rm -rf \"$0\" && {ALL} \"$0\"; do :; done"
        );
        let mut bash = Command::new("bash");
        bash.args(["-c", &script]).arg(folder.join("builds")).process_group(0);
        bash.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut shell = bash.spawn().context("bash can't be started")?;
        let lifeline = shell.stdin.take();
        Ok(Self { shell, lifeline })
    }

    /// Fails when they have ended by themselves, as a build does that fails.
    pub(crate) fn still_run(&mut self) -> Result<()> {
        let ended = self.shell.try_wait()?;
        ensure!(ended.is_none(), "`{ALL}` failed, so there was no build to record; its errors are above");
        Ok(())
    }
}

impl Drop for Builds {
    fn drop(&mut self) {
        self.lifeline = None;
        // Until there is no process of the group any more.
        while waitpgid(Pid::from_child(&self.shell), WaitOptions::empty()).is_ok() {}
    }
}

/// What one build took.
pub(crate) struct Took {
    pub(crate) wall_us: f64,
    pub(crate) cpu_us: f64,
}

/// Builds a part of the workspace.
pub(crate) fn one(folder: &Path) -> Result<Took> {
    let target = folder.join("one");
    if target.exists() {
        std::fs::remove_dir_all(&target)?;
    }
    let started = Instant::now();
    let cpu_us = cpu_us(&format!("cd '{WORKSPACE}' && {SOME} '{}'", target.display()))?;
    Ok(Took { wall_us: started.elapsed().as_secs_f64() * 1e6, cpu_us })
}
