//! Why the programs do not run, with what helps.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::btf::BtfError;
use crate::kernel::Release;
use crate::source::remedy::{remedy, whole};

/// Why the programs do not run.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The binary was built without the programs.
    #[error("this build has no eBPF programs in it: run `cargo xtask build-ebpf` and build again")]
    NoObject,
    /// The kernel's types are not known.
    #[error(transparent)]
    Btf(#[from] BtfError),
    /// The kernel is too old.
    #[error("Linux {0} is too old: update the kernel, recording through eBPF needs 5.8")]
    Kernel(Release),
    /// What is asked for is there in newer kernels alone.
    #[error("{what} need Linux {needed}, and this is {release}: update the kernel")]
    Newer {
        /// What is asked for.
        what: &'static str,
        /// The first one.
        needed: Release,
        /// This kernel's.
        release: Release,
    },
    /// The rights are missing.
    #[error("recording needs root, or CAP_BPF and CAP_PERFMON: run it with sudo, outside of user namespaces")]
    NotPermitted,
    /// There is no `/proc`.
    #[error("/proc is not mounted: run `sudo mount -t proc proc /proc`")]
    NoProc,
    /// A pid namespace other than the initial one.
    #[error(
        "in a pid namespace of its own: run it where the machine's own pids are seen, as with docker's `--pid=host`"
    )]
    PidNamespace,
    /// The binary was built with programs of another version.
    #[error("the eBPF object of this build has no {what}: run `cargo xtask build-ebpf` and build again")]
    NotInObject {
        /// What is missing.
        what: String,
    },
    /// The kernel did not take a program.
    #[error("the kernel refused program {program}{verdict}: {source}; {}", remedy_of_program(source))]
    Refused {
        /// Its name.
        program: String,
        /// The last word of the verifier, in parentheses.
        verdict: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Something of the eBPF machinery failed.
    #[error("{what}: {}; {}", whole(&**source), remedy(&**source))]
    Step {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The cgroup to record cannot be opened.
    #[error("{} is no cgroup to record: {source}; name a folder of the cgroup v2 hierarchy, as below /sys/fs/cgroup", path.display())]
    Cgroup {
        /// The path as given.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl LoadError {
    /// Whether it lies in the machine or the build, and not in what is to be recorded.
    pub fn is_of_this_machine(&self) -> bool {
        !matches!(self, Self::Cgroup { .. } | Self::NoProc | Self::Newer { .. })
    }

    /// The object has no program or map of that name.
    pub(super) fn missing(what: impl Into<String>) -> Self {
        Self::NotInObject { what: what.into() }
    }

    /// A step that failed.
    pub(super) fn step(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Step { what: what.into(), source: source.into() }
    }
}

/// What helps where a program is refused: the verifier refuses some with the numbers of missing rights.
fn remedy_of_program(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::ENOMEM | libc::EMFILE | libc::ENFILE) => remedy(source),
        _ => "use another kernel, and report this one with what COLLECTOR_LOG=debug shows",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What helps, in the words of each error.
    fn helps(error: &LoadError) -> &'static str {
        match error {
            LoadError::NoObject | LoadError::NotInObject { .. } => {
                "run `cargo xtask build-ebpf` and build again"
            }
            LoadError::Btf(BtfError::Read { .. }) => "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y",
            LoadError::Btf(BtfError::Malformed | BtfError::Missing(_)) => "boot another kernel",
            LoadError::Kernel(_) | LoadError::Newer { .. } => "update the kernel",
            LoadError::NotPermitted => "run it with sudo",
            LoadError::NoProc => "sudo mount -t proc proc /proc",
            LoadError::PidNamespace => "run it where the machine's own pids are seen",
            LoadError::Refused { .. } => "use another kernel",
            LoadError::Step { .. } => "raise the limit of open files",
            LoadError::Cgroup { .. } => "name a folder of the cgroup v2 hierarchy",
        }
    }

    fn system(number: i32) -> io::Error {
        io::Error::from_raw_os_error(number)
    }

    #[test]
    fn each_error_says_what_helps_in_one_line() {
        let btf =
            |number| BtfError::Read { path: "/sys/kernel/btf/vmlinux".to_owned(), source: system(number) };
        let release = Release::new(5, 10);
        let refused =
            |source| LoadError::Refused { program: "sample".to_owned(), verdict: " (R1)".to_owned(), source };
        let all = [
            LoadError::NoObject,
            LoadError::missing("map RINGS"),
            btf(libc::ENOENT).into(),
            btf(libc::EIO).into(),
            BtfError::Malformed.into(),
            BtfError::Missing("task_struct.pid".to_owned()).into(),
            LoadError::Kernel(release),
            LoadError::Newer { what: "times", needed: Release::new(5, 17), release },
            LoadError::NotPermitted,
            LoadError::NoProc,
            LoadError::PidNamespace,
            // The verifier's way to say no, which is no matter of rights.
            refused(system(libc::EACCES)),
            LoadError::step("the ring of CPU 3 could not be made", system(libc::EMFILE)),
            LoadError::Cgroup { path: "/x".into(), source: system(libc::ENOENT) },
        ];
        for error in all {
            let says = error.to_string();
            assert!(says.contains(helps(&error)) && !says.contains('\n'), "{says}");
        }
        let says = refused(system(libc::EPERM)).to_string();
        assert!(
            says.contains("sample (R1): Operation not permitted") && says.contains("with sudo"),
            "{says}"
        );
    }
}
