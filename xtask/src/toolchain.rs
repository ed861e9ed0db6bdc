//! Which compilers this machine has, and cargo commands that use them undisturbed.
//!
//! In: what is installed. Out: a `Command` for cargo whose environment names exactly one toolchain. This program
//! is itself started by a cargo, which passes its own toolchain on in variables; a child that compiles by another
//! one must not see them, nor flags that a person set for the stable compiler.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use crate::workspace::Workspace;

/// Debian's compiler: package `rustc-web`.
pub(crate) const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
/// Debian's cargo, package `cargo-web`: of the same version, so that `-Z build-std` fits the library's sources.
pub(crate) const DEBIAN_CARGO: &str = "/usr/bin/cargo";
/// Debian's clippy, package `rust-web-clippy`.
pub(crate) const DEBIAN_CLIPPY: &str = "/usr/bin/cargo-clippy";
/// What `libstd-rust-web-dev-bpf` installs: `core` compiled for BPF.
pub(crate) const DEBIAN_BPF_CORE: &str = "/usr/lib/rustlib/bpfel-unknown-none/lib";
/// What `rust-web-src` installs, where the compiler of the same package set looks for it.
pub(crate) const DEBIAN_STD_SOURCE: &str = "/usr/lib/rustlib/src/rust/library/std/Cargo.toml";

/// Variables that choose a compiler or its flags. Those of registries and of the network stay.
const CHOOSE_COMPILER: [&str; 16] = [
    "CARGO",
    "CARGO_BUILD_RUSTC",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTDOCFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "LD_LIBRARY_PATH",
    "RUSTC",
    "RUSTC_BOOTSTRAP",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
    "RUST_RECURSION_COUNT",
];

/// Prefixes of variables that describe the package which the outer cargo runs, or where and how it builds.
const DESCRIBE_BUILD: [&str; 5] =
    ["CARGO_BIN_", "CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_PROFILE_", "CARGO_TARGET_"];

/// Cargo on the workspace's own crates by the toolchain that runs us, into the workspace's `target/`.
pub(crate) fn own_cargo(workspace: &Workspace) -> Command {
    let mut cargo = Command::new("cargo");
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if DESCRIBE_BUILD.iter().any(|prefix| name.starts_with(prefix)) {
            cargo.env_remove(&*name);
        }
    }
    cargo.current_dir(workspace.top()).env("CARGO_TARGET_DIR", workspace.target());
    cargo
}

/// A `program` of some toolchain that sees nothing of the toolchain that runs us.
pub(crate) fn undisturbed(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        let describes = DESCRIBE_BUILD.iter().any(|prefix| name.starts_with(prefix));
        if describes || CHOOSE_COMPILER.contains(&&*name) {
            command.env_remove(&*name);
        }
    }
    command
}

/// A way to compile for `bpfel-unknown-none`, with the linker that goes with it.
#[derive(Debug)]
pub(crate) enum BpfToolchain {
    /// Debian's packages: a stable compiler that is told to be a nightly, and a prebuilt `core`.
    Debian { linker: PathBuf },
    /// Rustup's nightly with `rust-src`; `core` is built on the way.
    Nightly { linker: PathBuf },
}

impl BpfToolchain {
    pub(crate) const TARGET: &str = "bpfel-unknown-none";

    /// The toolchain that is there, Debian's first.
    pub(crate) fn detect(workspace: &Workspace) -> Option<Self> {
        let linker = linker(workspace)?;
        if debian_bpf_compiler() {
            return Some(Self::Debian { linker });
        }
        nightly_with_source().then_some(Self::Nightly { linker })
    }

    pub(crate) fn linker(&self) -> &Path {
        match self {
            Self::Debian { linker } | Self::Nightly { linker } => linker,
        }
    }

    /// `cargo build` for BPF.
    pub(crate) fn cargo_build(&self) -> Command {
        self.cargo("cargo", "build")
    }

    /// `cargo clippy` for BPF. Debian's is named in full, for cargo prefers the one beside rustup.
    pub(crate) fn cargo_clippy(&self) -> Command {
        self.cargo(DEBIAN_CLIPPY, "clippy")
    }

    fn cargo(&self, debian_program: &str, verb: &str) -> Command {
        let mut cargo = match self {
            Self::Debian { .. } => {
                let mut cargo = undisturbed(debian_program);
                cargo.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1").arg(verb);
                cargo
            }
            Self::Nightly { .. } => {
                let mut cargo = undisturbed("rustup");
                cargo.args(["run", "nightly", "cargo", verb, "-Z", "build-std=core"]);
                cargo
            }
        };
        cargo.args(["--release", "--target", Self::TARGET]);
        cargo
    }
}

/// Debian's compiler with `core` for BPF.
pub(crate) fn debian_bpf_compiler() -> bool {
    Path::new(DEBIAN_RUSTC).exists() && Path::new(DEBIAN_BPF_CORE).is_dir()
}

fn nightly_with_source() -> bool {
    let mut rustc = undisturbed("rustup");
    rustc.args(["run", "nightly", "rustc", "--print", "sysroot"]);
    command::output(&mut rustc).is_ok_and(|sysroot| {
        Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/core/Cargo.toml").is_file()
    })
}

/// The checkout's own bpf-linker, else the one on PATH.
fn linker(workspace: &Workspace) -> Option<PathBuf> {
    let own = workspace.bpf_linker();
    if own.is_file() { Some(own) } else { command::find_program("bpf-linker") }
}

/// A platform that we compile for beside this machine's own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CrossTarget {
    pub(crate) triple: &'static str,
    /// The C compiler that links for it.
    pub(crate) linker: &'static str,
}

impl CrossTarget {
    pub(crate) const WINDOWS: CrossTarget =
        CrossTarget { triple: "x86_64-pc-windows-gnu", linker: "x86_64-w64-mingw32-gcc" };
    pub(crate) const AARCH64: CrossTarget =
        CrossTarget { triple: "aarch64-unknown-linux-gnu", linker: "aarch64-linux-gnu-gcc" };

    /// The variable of cargo that sets `what` for this target alone.
    pub(crate) fn variable(&self, what: &str) -> String {
        format!("CARGO_TARGET_{}_{what}", self.triple.replace('-', "_").to_uppercase())
    }
}

/// A way to compile for a [`CrossTarget`].
#[derive(Debug)]
pub(crate) enum CrossToolchain {
    /// Debian's packages: the standard library is built from `rust-web-src`.
    Debian(CrossTarget),
    /// Rustup's prebuilt standard library.
    Rustup(CrossTarget),
}

impl CrossToolchain {
    /// The toolchain that is there, Debian's first.
    pub(crate) fn detect(target: CrossTarget) -> Option<Self> {
        command::find_program(target.linker)?;
        if debian_source_and_cargo() {
            return Some(Self::Debian(target));
        }
        rustup_has(&target).then_some(Self::Rustup(target))
    }

    /// `cargo clippy` for the target. Debian's is told which cargo is of its version.
    pub(crate) fn cargo_clippy(&self, crates: &str) -> Command {
        match self {
            Self::Debian(_) => {
                let mut clippy = self.cargo_of(DEBIAN_CLIPPY, "clippy", crates);
                clippy.env("CARGO", DEBIAN_CARGO);
                clippy
            }
            Self::Rustup(_) => self.cargo("clippy", crates),
        }
    }

    /// `cargo <verb>` for the target, with `crates` of the standard library where that must be built.
    pub(crate) fn cargo(&self, verb: &str, crates: &str) -> Command {
        self.cargo_of(DEBIAN_CARGO, verb, crates)
    }

    fn cargo_of(&self, debian_program: &str, verb: &str, crates: &str) -> Command {
        let (mut cargo, target) = match self {
            Self::Debian(target) => {
                let mut cargo = undisturbed(debian_program);
                cargo.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
                cargo.args([verb, "-Z"]).arg(format!("build-std={crates}"));
                (cargo, target)
            }
            Self::Rustup(target) => {
                let mut cargo = undisturbed("cargo");
                cargo.arg(verb);
                (cargo, target)
            }
        };
        cargo.args(["--target", target.triple]).env(target.variable("LINKER"), target.linker);
        cargo
    }
}

fn debian_source_and_cargo() -> bool {
    [DEBIAN_RUSTC, DEBIAN_CARGO, DEBIAN_STD_SOURCE].iter().all(|file| Path::new(file).exists())
}

fn rustup_has(target: &CrossTarget) -> bool {
    let mut rustc = undisturbed("rustc");
    rustc.args(["--print", "target-libdir", "--target", target.triple]);
    command::output(&mut rustc).is_ok_and(|folder| Path::new(folder.trim()).is_dir())
}
