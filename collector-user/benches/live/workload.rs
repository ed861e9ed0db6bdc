//! Two programs that keep two CPUs busy.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

/// Programs that run at a time.
pub(crate) const PROGRAMS: usize = 2;

/// A folder with the compiled program, for outputs too.
pub(crate) struct Workload {
    folder: TempDir,
}

impl Workload {
    pub(crate) fn compile() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/programs/busy.c");
        let status = Command::new("gcc")
            .args(["-O2", "-fomit-frame-pointer", source, "-o"])
            .arg(folder.path().join("busy"))
            .status()
            .context("gcc can't be started")?;
        ensure!(status.success(), "gcc failed on {source}");
        Ok(Self { folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The running programs; dropped, they are ended.
pub(crate) struct Busy(Vec<Child>);

impl Busy {
    pub(crate) fn start(workload: &Workload, seconds: f64, stack_kib: u32) -> Result<Self> {
        let start = || {
            Command::new(workload.file("busy"))
                .args([seconds.to_string(), stack_kib.to_string()])
                .stdout(Stdio::piped())
                .spawn()
        };
        let children: std::io::Result<_> = (0..PROGRAMS).map(|_| start()).collect();
        Ok(Self(children?))
    }

    /// Waits for their end: how many rounds they made together.
    pub(crate) fn rounds(mut self) -> Result<f64> {
        let mut rounds = 0.0;
        for child in &mut self.0 {
            let mut text = String::new();
            child.stdout.take().context("no stdout")?.read_to_string(&mut text)?;
            rounds += text.trim().parse::<f64>()?;
        }
        Ok(rounds)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended already can't be ended again.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
