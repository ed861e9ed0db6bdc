//! The commands that a person runs on a system whose packages we don't install ourselves.
//!
//! In: requirements that are not met, and the system's package manager. Out: command lines, one for all packages
//! together and one for each thing that comes another way.

use super::requirement::{Elsewhere, Requirement};
use crate::command;

/// A package manager whose names we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manager {
    AptGet,
    Dnf,
    Pacman,
    /// One that we don't: what it is to install is said by what it is.
    Unknown,
}

impl Manager {
    /// The one that is on PATH.
    pub(super) fn detect() -> Self {
        let known = [("apt-get", Self::AptGet), ("dnf", Self::Dnf), ("pacman", Self::Pacman)];
        let found = known.into_iter().find(|(program, _)| command::find_program(program).is_some());
        found.map_or(Self::Unknown, |(_, manager)| manager)
    }

    fn install(self) -> &'static str {
        match self {
            Self::AptGet => "sudo apt-get install",
            Self::Dnf => "sudo dnf install",
            Self::Pacman => "sudo pacman -S --needed",
            Self::Unknown => "# install with the system's package manager:",
        }
    }
}

/// What to type, each line once.
pub(super) fn commands(missing: &[Requirement], manager: Manager) -> Vec<String> {
    let mut packages: Vec<&str> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    for requirement in missing {
        match (requirement.elsewhere, manager) {
            (Elsewhere::Command(line), _) => lines.push(line.to_owned()),
            (Elsewhere::Package { .. }, Manager::AptGet) => packages.extend(requirement.debian),
            (Elsewhere::Package { dnf, .. }, Manager::Dnf) => packages.push(dnf),
            (Elsewhere::Package { pacman, .. }, Manager::Pacman) => packages.push(pacman),
            (Elsewhere::Package { .. }, Manager::Unknown) => packages.push(requirement.name),
        }
    }
    packages.sort_unstable();
    packages.dedup();
    lines.sort();
    lines.dedup();
    if !packages.is_empty() {
        let separator = if manager == Manager::Unknown { ", " } else { " " };
        lines.insert(0, format!("{} {}", manager.install(), packages.join(separator)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::{Need, requirement};
    use super::*;

    #[test]
    fn packages_are_one_command_and_each_other_line_is_there_once() {
        let mut all = requirement::of(Need::Bpf);
        all.extend(requirement::of(Need::Windows));
        assert_eq!(
            commands(&all, Manager::Dnf),
            [
                "sudo dnf install gcc llvm-devel mingw64-gcc",
                "rustup target add x86_64-pc-windows-gnu",
                "rustup toolchain install nightly --component rust-src",
            ]
        );
        assert!(commands(&all, Manager::AptGet)[0].contains(" gcc-mingw-w64-x86-64 "));
        assert!(commands(&all, Manager::Unknown)[0].contains("a C compiler, "));
    }

    #[test]
    fn nothing_missing_is_nothing_to_type() {
        assert!(commands(&[], Manager::Pacman).is_empty());
    }
}
