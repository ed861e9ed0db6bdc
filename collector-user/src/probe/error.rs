//! Why a probe can't be had.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

use thiserror::Error;

use super::attach::MOST_LOCATIONS;
use crate::source::remedy::remedy;
use crate::tracefs::TracefsError;

/// What the kernel says about a place, and not about the machine or the user.
pub(super) const OF_THE_PLACE: [i32; 5] =
    [libc::EINVAL, libc::EILSEQ, libc::ENOENT, libc::EOPNOTSUPP, libc::EADDRNOTAVAIL];

/// What is looked for in a file.
pub(super) const FUNCTION: &str = "function";
pub(super) const MARKER: &str = "marker";

/// Why a probe can't be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// It begins with none of the words for probes.
    #[error("`{probe}` is no probe: one begins with uprobe:, uretprobe:, usdt:, kprobe: or kretprobe:")]
    Kind {
        /// As it was given.
        probe: String,
    },
    /// It is not written as its kind is.
    #[error("{probe}: {problem}; the form is {form}")]
    Form {
        /// As it was given.
        probe: String,
        /// What is wrong.
        problem: String,
        /// How it is written.
        form: &'static str,
    },
    /// The file can't be read.
    #[error("{probe}: {} can't be read: {source}; name the file of a program or library", path.display())]
    File {
        /// The probe.
        probe: String,
        /// Its file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is not one of code.
    #[error(
        "{probe}: {} is no program or library: {problem}; name an ELF file, of a script its interpreter",
        path.display()
    )]
    NotElf {
        /// The probe.
        probe: String,
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The file begins as one of code does, and is not whole.
    #[error("{probe}: {} is cut short or damaged: {problem}; name a whole file", path.display())]
    Damaged {
        /// The probe.
        probe: String,
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The file says of more than is read of one.
    #[error(
        "{probe}: {} has more symbols and notes than the {most_mib} MiB that are read of a file, or than it has room for on its \
         disk: run one that `strip` has made smaller, and name an address, as 0x1234",
        path.display()
    )]
    TooLarge {
        /// The probe.
        probe: String,
        /// Its file.
        path: PathBuf,
        /// As much is read.
        most_mib: u64,
    },
    /// Arguments of other machines' programs can't be fetched.
    #[error(
        "{probe}: arguments of programs of another architecture, or of 32 bits, can't be fetched: leave them out"
    )]
    OtherMachine {
        /// The probe.
        probe: String,
    },
    /// No function or marker is called so.
    #[error("{probe}: {within} has no {what} called `{name}`{}", hint(what, near, *known))]
    Unknown {
        /// The probe.
        probe: String,
        /// The file, or the kernel.
        within: String,
        /// Function or marker.
        what: &'static str,
        /// The name as given.
        name: String,
        /// Names that are like it.
        near: Vec<String>,
        /// How many there are.
        known: usize,
    },
    /// A return is probed where no function begins.
    #[error(
        "{probe}: no function of {} begins at {place:#x} by its symbols or its unwind information, and what lies on the stack elsewhere \
         is no return address, which the kernel would take it for: name a function, or probe the place itself by uprobe:",
        path.display()
    )]
    NoBeginning {
        /// The probe.
        probe: String,
        /// The file.
        path: PathBuf,
        /// The address, as linked.
        place: u64,
    },
    /// The name stands for the choice between several implementations.
    #[error(
        "{probe}: `{name}` is chosen among implementations when the program starts (an ifunc): probe those{}",
        such_as(implementations)
    )]
    Resolver {
        /// The probe.
        probe: String,
        /// The name as given.
        name: String,
        /// Names that are like those of its implementations.
        implementations: Vec<String>,
    },
    /// Names take too long to be made readable.
    #[error(
        "{probe}: whether `{name}` means a function of {within} takes too long to find out, as its names take long to be made readable: name \
         one as the linker does (`nm -D {within}`)"
    )]
    Unreadable {
        /// The probe.
        probe: String,
        /// The name as given.
        name: String,
        /// The file.
        within: String,
    },
    /// Several functions have the name.
    #[error("{probe}: several functions are called `{name}`: name one of {}", names.join(" or "))]
    Ambiguous {
        /// The probe.
        probe: String,
        /// The name as given.
        name: String,
        /// What they are called in full.
        names: Vec<String>,
    },
    /// The place is not in the file's code.
    #[error("{probe}: {address:#x} is not in the code of {within}; {remedy}")]
    NoCode {
        /// The probe.
        probe: String,
        /// The file.
        within: String,
        /// The address, as linked.
        address: u64,
        /// What helps.
        remedy: &'static str,
    },
    /// A probe would overwrite a part of an instruction there.
    #[error(
        "{probe}: {place:#x} is inside of an instruction, which a probe would break: instructions begin {} bytes before and {} bytes \
         behind it, at {:#x} and {:#x}",
        place - instruction.start, instruction.end - place, instruction.start, instruction.end
    )]
    InsideInstruction {
        /// The probe.
        probe: String,
        /// The address, as linked.
        place: u64,
        /// That of the instruction and the next one.
        instruction: Range<u64>,
    },
    /// The kernel could not tell which memory says whether the marker is on.
    #[error(
        "{probe}: the kernel can't switch the marker on: two segments of {} share the page that its semaphore is in; link \
         the file with `-z separate-loadable-segments`",
        path.display()
    )]
    SharedSemaphore {
        /// The probe.
        probe: String,
        /// Its file.
        path: PathBuf,
    },
    /// The pattern is too wide.
    #[error(
        "{probe}: {count} places match, and a probe has at most {MOST_LOCATIONS}: use a narrower pattern"
    )]
    TooMany {
        /// The probe.
        probe: String,
        /// How many there are.
        count: usize,
    },
    /// An argument is in no register.
    #[error("{probe}: argument `{name}` can't be fetched: {problem}")]
    Argument {
        /// The probe.
        probe: String,
        /// What it is called.
        name: String,
        /// Why, and what helps.
        problem: String,
    },
    /// The kernel has no probes of this kind.
    #[error("{probe}: this kernel has no {what}: it was built without {option}; {remedy}")]
    NoProbes {
        /// The probe.
        probe: String,
        /// What is missing.
        what: &'static str,
        /// The option of its configuration.
        option: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
    /// The kernel's file of such probes can't be used.
    #[error(
        "{probe}: {file}, by which the kernel is told of probes, can't be used: {source}; {}",
        remedy(source)
    )]
    Control {
        /// The probe.
        probe: String,
        /// The file, in tracefs.
        file: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The kernel refuses it.
    #[error(
        "{probe}: the kernel refuses `{definition}`: {}{source}; {}",
        told.as_ref().map_or(String::new(), |told| format!("{told}: ")),
        remedy_of_place(source)
    )]
    Refused {
        /// The probe.
        probe: String,
        /// What it was told.
        definition: String,
        /// What it says about it.
        told: Option<String>,
        /// The system's reason.
        source: io::Error,
    },
    /// The event can't be read.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
}

impl ProbeError {
    /// Whether what was asked for is wrong, and not the machine.
    pub fn is_of_the_request(&self) -> bool {
        !matches!(
            self,
            Self::NoProbes { .. } | Self::Control { .. } | Self::Refused { .. } | Self::Tracefs(_)
        )
    }
}

/// What helps where the kernel refuses a probe: the reason may lie in the place.
fn remedy_of_place(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::ENOENT | libc::ESTALE) => {
            "the file is gone, as with its container: name one that is there"
        }
        Some(number) if OF_THE_PLACE.contains(&number) => {
            "name another function or place: what the kernel's own probes run through, and some instructions, can't be probed"
        }
        Some(libc::EIO) => {
            "its file system has no pages to put a probe into: copy the file to a disk, and run and name the copy"
        }
        _ => remedy(source),
    }
}

fn hint(what: &str, near: &[String], known: usize) -> String {
    match (near, known) {
        ([], 0) if what == MARKER => ", nor any other: it was built without markers (USDT)".to_owned(),
        ([], 0) => {
            ", as it names none at all: install its debug package, or name an address, as 0x1234".to_owned()
        }
        ([], known) if what == MARKER => format!(" among {known}, which `readelf -n` lists"),
        ([], known) => format!(" among {known}, which `nm` and `nm -D` list"),
        (near, _) => format!(": did you mean {}?", near.join(" or ")),
    }
}

fn such_as(names: &[String]) -> String {
    if names.is_empty() {
        ", which its symbols or those of its debug package name".to_owned()
    } else {
        format!(", as {}", names.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_refuses_has_a_remedy() {
        let system = io::Error::from_raw_os_error;
        let refused = |number| ProbeError::Refused {
            probe: "uprobe:/bin/x:f".to_owned(),
            definition: "p:g/f /bin/x:0x10".to_owned(),
            told: None,
            source: system(number),
        };
        for (number, helps) in [
            (libc::EPERM, "`collector doctor` tells what else forbids it, as a kernel that is locked down"),
            (libc::ENOENT, "the file is gone, as with its container"),
            (libc::EINVAL, "name another function or place"),
            (libc::EIO, "copy the file to a disk"),
            (libc::ENOMEM, "end what takes memory"),
        ] {
            let says = refused(number).to_string();
            assert!(says.starts_with("uprobe:/bin/x:f: ") && says.contains(helps), "{says}");
        }
        let probe = "kprobe:f".to_owned();
        let says =
            ProbeError::Control { probe, file: "kprobe_events", source: system(libc::EPERM) }.to_string();
        assert!(says.contains("Operation not permitted") && says.contains("run it with sudo"), "{says}");
    }
}
