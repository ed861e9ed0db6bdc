//! What helps where the kernel refuses to open an event, to make a map or to take a program. In: an error. Out: words for people, by the system's
//! reason that is behind it. Source: `errno(3)`, `perf_event_open(2)`, `bpf(2)`.

use std::error::Error;
use std::io;

/// Where nothing is known of the reason.
const UNKNOWN: &str = "`collector doctor` tells what this machine lacks; where that is nothing, report it with what COLLECTOR_LOG=debug shows";

/// What helps.
pub(crate) fn remedy(error: &(dyn Error + 'static)) -> &'static str {
    let Some(number) = reason(error) else { return UNKNOWN };
    match number {
        libc::EPERM | libc::EACCES => {
            "run it with sudo, outside of user namespaces; `collector doctor` tells what else forbids it, as a kernel that is locked down"
        }
        libc::EMFILE => {
            "raise the limit of open files (`ulimit -n`, its hard one with `ulimit -Hn` as root), or name fewer events"
        }
        libc::ENFILE => "have fewer files open on the machine, or raise `fs.file-max` with sysctl",
        libc::ENOMEM => {
            "end what takes memory, or record less at once; before Linux 5.11 raise the limit of locked memory, too (`ulimit -l`)"
        }
        libc::EBUSY | libc::EEXIST | libc::EINTR => "another tool has it: end that, and try again",
        libc::ENODEV | libc::ENXIO => "the CPU may have gone offline: try again",
        libc::ENOSYS => "have a kernel or a sandbox that has the call",
        libc::EINVAL | libc::EOPNOTSUPP | libc::ENOENT => {
            "this kernel has none of that: leave it out, or use a newer kernel"
        }
        _ => UNKNOWN,
    }
}

/// The system's reason, where there is one.
pub(super) fn reason(error: &(dyn Error + 'static)) -> Option<i32> {
    chain(error).find_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error())
}

/// What an error says, and each that led to it, which some leave out.
#[cfg(any(feature = "ebpf", test))]
pub(super) fn whole(error: &(dyn Error + 'static)) -> String {
    let mut says: Vec<String> = Vec::new();
    for part in chain(error).map(ToString::to_string) {
        if !says.last().is_some_and(|last| last.contains(&part)) {
            says.push(part);
        }
    }
    says.join(": ")
}

fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'e (dyn Error + 'static) = *error;
        error.source()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a library has it that does not say why.
    #[derive(Debug, thiserror::Error)]
    #[error("`bpf_map_update_elem` failed")]
    struct Call(#[source] io::Error);

    #[test]
    fn the_systems_reason_is_found_and_said() {
        let error = Call(io::Error::from_raw_os_error(libc::EMFILE));
        assert_eq!(whole(&error), "`bpf_map_update_elem` failed: Too many open files (os error 24)");
        assert!(remedy(&error).contains("ulimit -n"));
        let wrapped = io::Error::other(Call(io::Error::from_raw_os_error(libc::ENOMEM)));
        assert_eq!(reason(&wrapped), Some(libc::ENOMEM));
        assert_eq!(whole(&wrapped), "`bpf_map_update_elem` failed: Cannot allocate memory (os error 12)");
        assert_eq!(remedy(&io::Error::other("odd")), UNKNOWN);
    }
}
