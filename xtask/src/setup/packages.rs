//! Debian packages by `apt-get`.
//!
//! In: requirements that are not met. Out: their packages installed. The lists of packages are fetched only when
//! an installation fails without: on a fresh machine there are none, on a long-lived one they name versions that
//! are gone.

use std::fs;

use anyhow::{Context, Result};

use super::requirement::Requirement;
use crate::command;

/// Whether this is a Debian 12, whose package names we know, by os-release(5).
pub(super) fn can_install() -> bool {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    is_debian_12(&release) && command::find_program("apt-get").is_some()
}

fn is_debian_12(os_release: &str) -> bool {
    let field = |name: &str| {
        let value = os_release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value.map(|value| value.trim_matches('"').to_owned())
    };
    field("ID").as_deref() == Some("debian") && field("VERSION_ID").as_deref() == Some("12")
}

/// Installs the packages of `missing` and checks that they brought what was missing.
pub(super) fn install(missing: &[Requirement]) -> Result<()> {
    let mut packages: Vec<&str> =
        missing.iter().flat_map(|requirement| requirement.debian).copied().collect();
    packages.sort_unstable();
    packages.dedup();
    if apt_install(&packages).is_err() {
        command::run(apt_get()?.arg("update")).context("the lists of packages could not be fetched")?;
        apt_install(&packages)
            .with_context(|| format!("these packages could not be installed: {}", packages.join(" ")))?;
    }
    for requirement in missing {
        anyhow::ensure!(
            requirement.is_met(),
            "{} is still missing although {} is installed; look at what `apt-get` printed above",
            requirement.name,
            requirement.debian.join(" "),
        );
    }
    Ok(())
}

fn apt_install(packages: &[&str]) -> Result<()> {
    command::run(apt_get()?.args(["install", "--yes", "--no-install-recommends"]).args(packages))
}

/// `env` carries the variable through sudo, which drops those it does not know.
fn apt_get() -> Result<std::process::Command> {
    let mut apt_get = command::as_root("env")?;
    apt_get.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet"]);
    Ok(apt_get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_debian_12_is_debian_12() {
        assert!(is_debian_12("NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nID=debian\n"));
        assert!(!is_debian_12("VERSION_ID=\"13\"\nID=debian\n"));
        assert!(!is_debian_12("ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"12\"\n"));
        assert!(!is_debian_12(""));
    }
}
