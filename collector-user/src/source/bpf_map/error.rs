//! Why the records of a map can't be had.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::source::perf::PerfError;

/// Why the records of a map can't be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BpfMapError {
    /// It is not written as maps are.
    #[error(
        "{map}: {problem}; the form is bpf:/PATH(NAME:TYPE, ...), with bpf:id:NUMBER or bpf:fd:NUMBER for the path"
    )]
    Form {
        /// As it was given.
        map: String,
        /// What is wrong.
        problem: String,
    },
    /// Nothing is pinned at the path.
    #[error("{map}: nothing is pinned there{}", hint(near, *is_mounted))]
    Absent {
        /// The map.
        map: String,
        /// Paths that are like it.
        near: Vec<String>,
        /// Whether a BPF file system is where the path leads to.
        is_mounted: bool,
    },
    /// The path is of something that is in no BPF file system.
    #[error("bpf:{} is nothing of BPF's: name the path at which a map is pinned, in a file system of type bpf", path.display())]
    NotPinned {
        /// The path.
        path: PathBuf,
    },
    /// No map has the number.
    #[error("{map}: no map has this number; {}", listed(loaded))]
    NoSuchId {
        /// The map.
        map: String,
        /// Maps that give records, as they are named.
        loaded: Vec<String>,
    },
    /// This process has no such descriptor.
    #[error(
        "{map}: collector was started without this descriptor: hand it over, as a program that loads BPF does to one that it executes"
    )]
    NoSuchDescriptor {
        /// The map.
        map: String,
    },
    /// The rights are missing.
    #[error("{map}: {needed} is needed to open it ({source}): run it with sudo")]
    NotPermitted {
        /// The map.
        map: String,
        /// The right.
        needed: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// It is another object.
    #[error("{map} is {what}, not a map: name a map of type ringbuf or perf_event_array; {}", listed(loaded))]
    NotAMap {
        /// The map.
        map: String,
        /// What it is.
        what: &'static str,
        /// Maps that give records, as they are named.
        loaded: Vec<String>,
    },
    /// It is a map that nothing is read from so.
    #[error(
        "{map} is a map of type {kind}, which gives no records: name one of type ringbuf or perf_event_array; {}",
        listed(loaded)
    )]
    Kind {
        /// The map.
        map: String,
        /// Its type, as `bpftool` calls it.
        kind: String,
        /// Maps that give records, as they are named.
        loaded: Vec<String>,
    },
    /// It is a ring that is written over.
    #[error(
        "{map} is a ring whose oldest records are written over (BPF_F_RB_OVERWRITE), which can't be read while that happens: \
         have its program make it without that flag"
    )]
    Overwritten {
        /// The map.
        map: String,
    },
    /// Two events are of one map.
    #[error(
        "{map} is recorded already: name a map once, and have its event's filter let through what both were to"
    )]
    Twice {
        /// The map.
        map: String,
    },
    /// The system refuses for a reason of its own.
    #[error("{map}: {what}: {source}")]
    System {
        /// The map.
        map: String,
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The events that a perf event array hands its records to can't be opened.
    #[error("{map}: {source}")]
    Perf {
        /// The map.
        map: String,
        /// Why.
        source: PerfError,
    },
}

impl BpfMapError {
    /// Whether what was asked for is wrong, and not the machine.
    pub fn is_of_the_request(&self) -> bool {
        !matches!(self, Self::NotPermitted { .. } | Self::System { .. } | Self::Perf { .. })
    }
}

/// Which maps there are.
fn listed(loaded: &[String]) -> String {
    const MOST: usize = 5;
    match loaded {
        [] => "none is loaded that may be seen here: start its program".to_owned(),
        all if all.len() <= MOST => format!("there are {}", all.join(", ")),
        all => format!(
            "there are {} and {} more, which `bpftool map` lists",
            all.get(..MOST).unwrap_or_default().join(", "),
            all.len() - MOST
        ),
    }
}

fn hint(near: &[String], is_mounted: bool) -> String {
    match near {
        [] if is_mounted => {
            ", nor anything that is called alike: start its program, or name it by its number in `bpftool map`, as bpf:id:7"
                .to_owned()
        }
        [] => ", as no BPF file system is: name it by its number in `bpftool map`, as bpf:id:7, or run it in the mount \
               namespace of its program"
            .to_owned(),
        near => format!(": did you mean {}?", near.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_number_is_told_with_the_maps_that_there_are() {
        let told = |count: u32| {
            let loaded = (1..=count).map(|id| format!("bpf:id:{id} (ringbuf)")).collect();
            BpfMapError::NoSuchId { map: "bpf:id:99".to_owned(), loaded }.to_string()
        };
        let beginning = "bpf:id:99: no map has this number; ";
        assert_eq!(told(0), format!("{beginning}none is loaded that may be seen here: start its program"));
        assert_eq!(told(2), format!("{beginning}there are bpf:id:1 (ringbuf), bpf:id:2 (ringbuf)"));
        assert!(told(7).ends_with("bpf:id:5 (ringbuf) and 2 more, which `bpftool map` lists"), "{}", told(7));
    }
}
