//! `cargo xtask package`: what a release consists of, in `target/package`.
//!
//! In: the checkout. Out: `collector-<version>-<target>.tar.gz` with the binary and its papers, and a `.crate`
//! file for each published crate, that of `collector-user` with the compiled eBPF objects inside, so that neither
//! a download nor `cargo install` needs a BPF toolchain. Each crate is built from its `.crate` file alone before
//! it counts.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::build_ebpf::{self, Arch};
use crate::command;
use crate::install;
use crate::setup::{self, Verb};
use crate::toolchain;
use crate::workspace::{CRATES, Workspace};

/// The workspace's version, which this crate shares.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What lies beside the binary; every file called `LICENSE...` does too.
const PAPERS: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"];
/// What they refer to.
const DOCS: &str = "docs";
/// Where `collector-user` carries the objects; in no commit.
const CARRIED_OBJECTS: &str = "collector-user/bpf";

/// Makes and checks every part of a release.
pub(crate) fn package(workspace: &Workspace) -> Result<()> {
    setup::setup(workspace, Verb::Package)?;
    for arch in Arch::ALL {
        build_ebpf::build_ebpf(workspace, arch)?;
    }
    tarball(workspace)?;
    crates(workspace)
}

fn tarball(workspace: &Workspace) -> Result<()> {
    install::build_release(workspace)?;
    let name = format!("collector-{VERSION}-{}", host_target()?);
    let folder = workspace.target().join("package");
    let stage = folder.join(&name);
    if stage.exists() {
        fs::remove_dir_all(&stage).with_context(|| format!("{} can't be removed", stage.display()))?;
    }
    fs::create_dir_all(&stage).with_context(|| format!("{} can't be made", stage.display()))?;
    copy(&workspace.release_binary(), &stage.join("collector"))?;
    for paper in PAPERS.into_iter().map(String::from).chain(licences(workspace)?) {
        copy(&workspace.join(&paper), &stage.join(&paper))?;
    }
    command::run(Command::new("cp").arg("-r").args([workspace.join(DOCS), stage.join(DOCS)]))?;
    command::run(Command::new(stage.join("collector")).arg("--version"))?;

    let archive = folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-C"]).arg(&folder);
    command::run(tar.arg("-czf").arg(&archive).arg(&name))?;
    eprintln!("packaged {}", archive.display());
    Ok(())
}

fn licences(workspace: &Workspace) -> Result<Vec<String>> {
    let top = workspace.top();
    let mut names = Vec::new();
    for entry in fs::read_dir(top).with_context(|| format!("{} can't be read", top.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| name.starts_with("LICENSE"));
    ensure!(!names.is_empty(), "{} has no LICENSE file, and a release must", top.display());
    Ok(names)
}

/// As rustc names the machine, for example `x86_64-unknown-linux-gnu`.
fn host_target() -> Result<String> {
    let version = command::output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

/// Removes the source of a package that Cargo unpacked when it packed another version of it under this number.
fn remove_unpacked(package: &str) -> Result<()> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo"))).context("HOME is not set")?;
    let Ok(registries) = fs::read_dir(home.join("registry/src")) else { return Ok(()) };
    for registry in registries {
        let registry = registry?;
        // Those without a host lie in a folder.
        let unpacked = registry.path().join(format!("{package}-{VERSION}"));
        if registry.file_name().as_encoded_bytes().starts_with(b"-") && unpacked.exists() {
            fs::remove_dir_all(&unpacked)
                .with_context(|| format!("{} can't be removed", unpacked.display()))?;
        }
    }
    Ok(())
}

fn crates(workspace: &Workspace) -> Result<()> {
    carry_objects(workspace)?;
    let packages: Vec<String> =
        CRATES.iter().map(|folder| workspace.package(folder)).collect::<Result<_>>()?;
    let of_packages = |arguments: &[&str]| {
        let mut cargo = toolchain::own_cargo(workspace);
        cargo.args(arguments).args(packages.iter().flat_map(|package| ["--package", package]));
        command::run(&mut cargo)
    };
    // A crate is compiled as one of a registry's, which Cargo takes for unchanged as long as its version is.
    of_packages(&["clean"])?;
    for package in &packages {
        remove_unpacked(package)?;
    }
    of_packages(&["package", "--allow-dirty"])?;

    let file = workspace.target().join("package").join(format!("collector-user-{VERSION}.crate"));
    let content = command::output(Command::new("tar").arg("-tzf").arg(&file))?;
    for arch in Arch::ALL {
        for part in [build_ebpf::object(workspace, arch), build_ebpf::hash(workspace, arch)] {
            let name = Path::new("bpf").join(part.file_name().unwrap_or_default());
            if !content.lines().any(|line| Path::new(line).ends_with(&name)) {
                bail!("{} lacks {}; its manifest must include it", file.display(), name.display());
            }
        }
    }
    eprintln!("packaged {} crates, {} with the eBPF objects inside", CRATES.len(), file.display());
    Ok(())
}

/// Copies the objects and hashes into the crate's folder, after whatever an older build left there is gone.
fn carry_objects(workspace: &Workspace) -> Result<()> {
    let folder = workspace.join(CARRIED_OBJECTS);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("{} can't be removed", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("{} can't be made", folder.display()))?;
    for arch in Arch::ALL {
        for part in [build_ebpf::object(workspace, arch), build_ebpf::hash(workspace, arch)] {
            let name: PathBuf = part.file_name().unwrap_or_default().into();
            ensure!(part.is_file(), "{} is absent although it was just built", part.display());
            copy(&part, &folder.join(name))?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("{} can't be copied to {}", from.display(), to.display()))?;
    Ok(())
}
