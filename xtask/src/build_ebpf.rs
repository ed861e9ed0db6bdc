//! `cargo xtask build-ebpf`: compiles the eBPF programs.
//!
//! In: `collector-ebpf/` and the wire types of `collector-common`. Out: `target/bpf/collector-<arch>.bpf.o` and
//! `target/bpf/collector-<arch>.bpf.hash`, which `collector-user`'s build script embeds and compares. Nothing is
//! compiled when the object is of the present sources.
//!
//! The object is for the eBPF machine in either case; `<arch>` is the machine whose `pt_regs` the programs read,
//! which the aya crates select by `cfg(bpf_target_arch)`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::bpf_hash;
use crate::command;
use crate::setup::{self, Verb};
use crate::toolchain::BpfToolchain;
use crate::workspace::Workspace;

/// Between the flags in `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: &str = "\u{1f}";

/// A machine whose registers and stacks the programs can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arch {
    #[value(name = "x86_64")]
    X86_64,
    Aarch64,
}

impl Arch {
    pub(crate) const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// The machine we run on.
    pub(crate) fn host() -> Result<Self> {
        let name = std::env::consts::ARCH;
        let known = Self::ALL.into_iter().find(|arch| arch.name() == name);
        known.with_context(|| format!("no eBPF programs for {name}; name another machine with --arch"))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }
}

/// Where the object of `arch` goes.
pub(crate) fn object(workspace: &Workspace, arch: Arch) -> PathBuf {
    workspace.bpf_objects().join(format!("collector-{}.bpf.o", arch.name()))
}

/// Where the hash of the sources of `object` goes.
pub(crate) fn hash(workspace: &Workspace, arch: Arch) -> PathBuf {
    workspace.bpf_objects().join(format!("collector-{}.bpf.hash", arch.name()))
}

/// Compiles the programs for `arch` unless their object is up to date.
pub(crate) fn build_ebpf(workspace: &Workspace, arch: Arch) -> Result<()> {
    setup::setup(workspace, Verb::BuildEbpf)?;
    let sources = bpf_hash::source_hash(workspace.top()).context("the eBPF sources can't be read")?;
    let (object, hash) = (object(workspace, arch), hash(workspace, arch));
    if object.is_file() && fs::read_to_string(&hash).is_ok_and(|old| old.trim() == sources) {
        return Ok(());
    }
    let toolchain = toolchain(workspace)?;
    let target_dir = target_dir(workspace, arch);
    let mut cargo = toolchain.cargo_build();
    cargo.arg("--target-dir").arg(&target_dir).current_dir(workspace.ebpf());
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(&toolchain, arch));
    command::run(&mut cargo)?;

    let built = target_dir.join(BpfToolchain::TARGET).join("release/collector");
    fs::create_dir_all(workspace.bpf_objects()).context("target/bpf can't be made")?;
    let _ = fs::remove_file(&hash);
    fs::copy(&built, &object)
        .with_context(|| format!("{} can't be copied to {}", built.display(), object.display()))?;
    fs::write(&hash, format!("{sources}\n"))
        .with_context(|| format!("{} can't be written", hash.display()))?;
    eprintln!("{} is of sources {sources}", object.display());
    Ok(())
}

/// Lints the programs for `arch` by the rules of the workspace, on the target they run on.
pub(crate) fn lint(workspace: &Workspace, arch: Arch) -> Result<()> {
    let toolchain = toolchain(workspace)?;
    let mut cargo = toolchain.cargo_clippy();
    cargo.arg("--target-dir").arg(target_dir(workspace, arch)).current_dir(workspace.ebpf());
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(&toolchain, arch));
    command::run(cargo.args(["--", "-D", "warnings"]))
}

/// A folder for each machine, for a change of flags makes cargo compile everything again.
fn target_dir(workspace: &Workspace, arch: Arch) -> PathBuf {
    workspace.target().join("bpf-build").join(arch.name())
}

fn toolchain(workspace: &Workspace) -> Result<BpfToolchain> {
    let Some(toolchain) = BpfToolchain::detect(workspace) else {
        bail!("no toolchain compiles for BPF here; run `cargo xtask setup --for build-ebpf`");
    };
    Ok(toolchain)
}

/// The second version of the instructions has comparisons with constants in both directions (Linux 4.14). Those of the first
/// have the constant in a register, and older verifiers, that of Linux 6.1 among them, then follow branches that are never
/// taken. BTF needs debug info: without it the verifier refuses callbacks, and maps can't name their types.
fn flags(toolchain: &BpfToolchain, arch: Arch) -> String {
    let linker = format!("-Clinker={}", toolchain.linker().display());
    let arch = format!("--cfg=bpf_target_arch=\"{}\"", arch.name());
    [&linker, &arch, "-Cdebuginfo=2", "-Clink-arg=--btf", "-Ctarget-cpu=v2", "-Cpanic=abort"].join(SEPARATOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A checkout with two source files, removed at the end.
    struct Sources(PathBuf);

    impl Sources {
        fn new(name: &str) -> Self {
            let top = std::env::temp_dir().join(format!("xtask-{}-{name}", std::process::id()));
            fs::create_dir_all(top.join("collector-ebpf/src")).unwrap();
            fs::create_dir_all(top.join("collector-common/src/wire")).unwrap();
            let sources = Self(top);
            sources.write("collector-ebpf/src/main.rs", "fn main() {}");
            sources.write("collector-common/src/wire/mod.rs", "struct Header;");
            sources
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.0.join(path), text).unwrap();
        }

        fn hash(&self) -> String {
            bpf_hash::source_hash(&self.0).unwrap()
        }
    }

    impl Drop for Sources {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_same_sources_have_the_same_hash_wherever_they_lie() {
        assert_eq!(Sources::new("one").hash(), Sources::new("other").hash());
    }

    #[test]
    fn a_changed_added_or_renamed_source_changes_the_hash() {
        let sources = Sources::new("changes");
        let mut seen = vec![sources.hash()];
        sources.write("collector-ebpf/src/main.rs", "fn main() { }");
        seen.push(sources.hash());
        sources.write("collector-ebpf/Cargo.lock", "");
        seen.push(sources.hash());
        let folder = sources.0.join("collector-common/src/wire");
        fs::rename(folder.join("mod.rs"), folder.join("header.rs")).unwrap();
        seen.push(sources.hash());
        let distinct: std::collections::BTreeSet<&String> = seen.iter().collect();
        assert_eq!(distinct.len(), seen.len(), "{seen:?}");
    }

    #[test]
    fn a_file_that_is_no_input_changes_nothing() {
        let sources = Sources::new("others");
        let before = sources.hash();
        sources.write("collector-common/src/ids.rs", "struct Pid;");
        assert_eq!(sources.hash(), before);
    }
}
