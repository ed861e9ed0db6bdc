//! Where things lie in the checkout.
//!
//! In: the folder that cargo names when it runs this program. Out: paths, all absolute. Every file that a task
//! makes goes below `target/`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Folders of the crates that are published, each after those it depends on.
pub(crate) const CRATES: [&str; 5] =
    ["collector-common", "unwinder", "export", "windows-etw", "collector-user"];

/// A checkout.
pub(crate) struct Workspace {
    top: PathBuf,
}

impl Workspace {
    /// The checkout that this program belongs to. Cargo tells by `CARGO_MANIFEST_DIR` at run time, so a checkout
    /// that was moved together with its `target/` still finds itself.
    pub(crate) fn locate() -> Result<Self> {
        let own = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let top = own.as_deref().and_then(Path::parent).context(
            "CARGO_MANIFEST_DIR is not set, so the checkout can't be found; start the tasks by `cargo xtask`",
        )?;
        Ok(Self { top: top.to_path_buf() })
    }

    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    pub(crate) fn join(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.top.join(relative)
    }

    /// The name of the package in `folder`, from its manifest.
    pub(crate) fn package(&self, folder: &str) -> Result<String> {
        let manifest = self.top.join(folder).join("Cargo.toml");
        let text =
            fs::read_to_string(&manifest).with_context(|| format!("{} can't be read", manifest.display()))?;
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        Ok(name.with_context(|| format!("{} names no package", manifest.display()))?.to_owned())
    }

    /// The folder of the eBPF programs, a workspace of its own.
    pub(crate) fn ebpf(&self) -> PathBuf {
        self.join("collector-ebpf")
    }

    pub(crate) fn target(&self) -> PathBuf {
        self.join("target")
    }

    /// Root of `cargo install` for the tools that builds need; programs are in its `bin/`.
    pub(crate) fn tools(&self) -> PathBuf {
        self.join("target/tools")
    }

    pub(crate) fn bpf_linker(&self) -> PathBuf {
        self.join("target/tools/bin/bpf-linker")
    }

    /// Compiled eBPF objects and their source hashes.
    pub(crate) fn bpf_objects(&self) -> PathBuf {
        self.join("target/bpf")
    }

    /// Folder with the packages that browser tests import.
    pub(crate) fn node(&self) -> PathBuf {
        self.join("target/node")
    }

    /// Folder with .NET's runtimes and what runs in them.
    pub(crate) fn dotnet(&self) -> PathBuf {
        self.join("target/dotnet")
    }

    /// Folder with the Python packages that tests import.
    pub(crate) fn python(&self) -> PathBuf {
        self.join("target/python")
    }

    /// The optimised `collector` binary.
    pub(crate) fn release_binary(&self) -> PathBuf {
        self.join("target/release/collector")
    }
}
