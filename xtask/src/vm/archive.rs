//! Kernels from Debian's archive.
//!
//! In: a kernel of the matrix. Out: the folder that its packages were extracted to, below `target/vm`; nothing is installed.
//! The archive is the one that this machine's own apt is set to, with lists of packages of our own, since the kernels are of
//! suites that the machine need not have. What was fetched once stays until its folder is removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::kernel::Kernel;
use crate::command;

/// The keys of Debian's archive, of its package `debian-archive-keyring`.
pub(crate) const ARCHIVE_KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The folder with `kernel`, below `folder`.
pub(super) fn fetch(kernel: Kernel, folder: &Path) -> Result<PathBuf> {
    let extracted = folder.join("kernel");
    if extracted.is_dir() {
        return Ok(extracted);
    }
    let apt = Apt::new(kernel.suite(), folder)?;
    let partial = folder.join("kernel.partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).context("what is left of an earlier attempt can't be removed")?;
    }
    fs::create_dir_all(&partial).with_context(|| format!("{} can't be made", partial.display()))?;
    command::run(apt.command("apt-get").args(["--quiet", "update"]))
        .with_context(|| format!("the packages of Debian's suite {} are not to be had", kernel.suite()))?;
    for (begin, end) in kernel.packages() {
        let list = command::output(apt.command("apt-cache").args(["pkgnames", begin]))?;
        let package = newest(&list, begin, end)
            .with_context(|| format!("Debian's suite {} has no package {begin}...{end}", kernel.suite()))?;
        let mut download = apt.command("apt-get");
        command::run(download.args(["--quiet", "download", package]).current_dir(&partial))?;
    }
    let files = fs::read_dir(&partial)?.collect::<Result<Vec<_>, _>>()?;
    for file in files {
        command::run(Command::new("dpkg-deb").arg("--extract").arg(file.path()).arg(&partial))?;
        fs::remove_file(file.path())?;
    }
    fs::rename(&partial, &extracted).context("the extracted kernel can't be put into place")?;
    Ok(extracted)
}

/// The package of the highest version among `names`: those that have nothing but a version between `begin` and `end`.
fn newest<'a>(names: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let versions = names.lines().filter_map(|name| {
        let version = name.strip_prefix(begin)?.strip_suffix(end)?;
        let numbers = version.split(['.', '-', '+']).filter(|part| !part.starts_with("deb"));
        Some((numbers.map(str::parse).collect::<Result<Vec<u32>, _>>().ok()?, name))
    });
    versions.max().map(|(_, name)| name)
}

/// Apt with one suite, and with its files in a folder of ours.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    fn new(suite: &str, folder: &Path) -> Result<Self> {
        let folder = folder.join("apt");
        for name in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(name))
                .with_context(|| format!("{} can't be made", folder.display()))?;
        }
        let line = format!("deb [signed-by={ARCHIVE_KEYS}] {} {suite} main\n", archive()?);
        fs::write(folder.join("sources.list"), line).context("a list of sources can't be written")?;
        Ok(Self { folder })
    }

    fn command(&self, program: &str) -> Command {
        let mut apt = Command::new(program);
        for (setting, file) in [
            ("Dir::Etc::SourceList", "sources.list"),
            ("Dir::State::Lists", "lists"),
            ("Dir::Cache", "cache"),
        ] {
            apt.arg("-o").arg(format!("{setting}={}", self.folder.join(file).display()));
        }
        // Root gives its downloads to a user of apt's own, who may not reach this folder.
        for setting in ["Dir::Etc::SourceParts=-", "APT::Sandbox::User=root", "Acquire::Languages=none"] {
            apt.args(["-o", setting]);
        }
        apt
    }
}

/// Where this machine has Debian's packages from: that of a suite itself, and not of what is updated beside it.
fn archive() -> Result<String> {
    let mut targets = Command::new("apt-get");
    targets.args([
        "indextargets",
        "--format",
        "$(RELEASE) $(REPO_URI)",
        "Created-By: Packages",
        "Origin: Debian",
    ]);
    let targets = command::output(&mut targets)?;
    let base =
        targets.lines().filter_map(|line| line.split_once(' ')).find(|(suite, _)| !suite.contains('-'));
    let (_, uri) = base.context("this machine's apt knows no archive of Debian: kernels come from there")?;
    Ok(uri.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_go_by_their_numbers_and_flavours_are_left_out() {
        let names = "linux-image-6.1.0-9-amd64-unsigned\nlinux-image-6.1.0-50-amd64-unsigned\n\
            linux-image-6.1.0-60-cloud-amd64-unsigned\nlinux-image-6.1.0-70-amd64\n";
        let found = newest(names, "linux-image-6.1.", "-amd64-unsigned");
        assert_eq!(found, Some("linux-image-6.1.0-50-amd64-unsigned"));
        let names = "linux-binary-7.2.9+deb14-amd64\nlinux-binary-7.2.13+deb14-amd64\nlinux-binary-7.3.1+deb14-rt-amd64\n";
        assert_eq!(newest(names, "linux-binary-", "-amd64"), Some("linux-binary-7.2.13+deb14-amd64"));
        assert_eq!(newest("", "linux-binary-", "-amd64"), None);
    }
}
