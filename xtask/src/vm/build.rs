//! Kernels that are built of Debian's sources, with options of our own.
//!
//! In: a kernel whose package is `linux-source-`. Out: the folder with its image, below `target/vm`. It is built once for a
//! list of options, which takes half an hour on two CPUs; the sources are gone afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};

use super::archive;
use super::kernel::Kernel;
use crate::command;
use crate::setup;

/// All else is as `allnoconfig` has it.
const OPTIONS: &str = include_str!("user-events.config");

/// The folder with the image of `kernel`, below `folder`.
pub(super) fn build(kernel: Kernel, folder: &Path) -> Result<PathBuf> {
    let built = folder.join("built");
    if fs::read_to_string(built.join("config")).is_ok_and(|options| options == OPTIONS) {
        return Ok(built);
    }
    setup::kernel_build()?;
    let (tree, package) = (folder.join("tree"), archive::fetch(kernel, folder)?);
    for left in [&built, &tree] {
        if left.exists() {
            fs::remove_dir_all(left).with_context(|| format!("{} can't be removed", left.display()))?;
        }
        fs::create_dir_all(left).with_context(|| format!("{} can't be made", left.display()))?;
    }
    command::run(
        Command::new("tar")
            .args(["--extract", "--strip-components=1", "--directory"])
            .arg(&tree)
            .arg("--file")
            .arg(sources(&package)?),
    )?;
    let asked = folder.join("config");
    fs::write(&asked, OPTIONS).context("the kernel's options can't be written")?;
    command::run(make(&tree).arg("allnoconfig").env("KCONFIG_ALLCONFIG", &asked))?;
    let config = fs::read_to_string(tree.join(".config")).context("the kernel has no configuration")?;
    let missing = missing(&config);
    ensure!(missing.is_empty(), "this kernel does not have, or not alone, {}", missing.join(", "));
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    command::run(make(&tree).arg(format!("--jobs={jobs}")).arg("bzImage"))?;
    fs::copy(tree.join("arch/x86/boot/bzImage"), built.join("vmlinuz")).context("the kernel has no image")?;
    for done in [&tree, &package] {
        fs::remove_dir_all(done).with_context(|| format!("{} can't be removed", done.display()))?;
    }
    // The last of it: what has this is whole.
    fs::write(built.join("config"), OPTIONS).context("the kernel's options can't be noted")?;
    Ok(built)
}

fn make(tree: &Path) -> Command {
    let mut make = Command::new("make");
    make.arg("--silent").arg("--directory").arg(tree);
    make
}

/// The archive in Debian's package.
fn sources(package: &Path) -> Result<PathBuf> {
    let folder = package.join("usr/src");
    let files = fs::read_dir(&folder).with_context(|| format!("{} can't be read", folder.display()))?;
    let mut files = files.filter_map(Result::ok).map(|entry| entry.path());
    let found = files.find(|file| file.to_string_lossy().ends_with(".tar.xz"));
    found.with_context(|| format!("{} has no sources in it", folder.display()))
}

/// Options that did not come to be: one that needs another one is dropped without a word.
fn missing(config: &str) -> Vec<&str> {
    let is_there = |option: &&str| config.lines().any(|line| line == *option);
    OPTIONS.lines().filter(|line| line.starts_with("CONFIG_")).filter(|option| !is_there(option)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_was_dropped_is_told() {
        assert!(missing(OPTIONS).is_empty());
        let config = OPTIONS.replace("CONFIG_USER_EVENTS=y", "# CONFIG_USER_EVENTS is not set");
        assert_eq!(missing(&config), ["CONFIG_USER_EVENTS=y"]);
    }
}
