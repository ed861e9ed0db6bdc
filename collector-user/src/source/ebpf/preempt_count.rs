//! Where the kernel counts what a CPU is in, interrupts among that (`preempt_count()` of `include/linux/preempt.h`): by its BTF, or
//! by the addresses of its variables in `/proc/kallsyms` (`CONFIG_KALLSYMS_ALL`), as `pahole` before 1.22 wrote no variables.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};

use collector_common::wire::PreemptCountOffsets;

use super::btf::KernelTypes;
use crate::kernel::KALLSYMS;

/// The variable that each CPU has with the count, and the member of it.
const COUNTS: [(&str, Option<&str>); 2] = [
    ("__preempt_count", None),
    // From Linux 6.2 to 6.14.
    ("pcpu_hot", Some("preempt_count")),
];

/// Each CPU's `struct rq`.
const RUN_QUEUE: &str = "runqueues";

/// Bytes of a line that are looked at. The kernel's names have at most 512 (`KSYM_NAME_LEN`).
const MAX_LINE: usize = 4 << 10;

/// Where it is; zero where that is not known.
pub(super) fn offsets(types: &KernelTypes) -> PreemptCountOffsets {
    // Of aarch64.
    if let Ok(count) = types.offset(&["task_struct", "thread_info", "preempt_count"]) {
        return PreemptCountOffsets { count: count.cast_signed(), ..PreemptCountOffsets::default() };
    }
    of_cpus(types).unwrap_or_default()
}

/// Of x86-64.
fn of_cpus(types: &KernelTypes) -> Option<PreemptCountOffsets> {
    let task_queue = types.offset(&["task_struct", "se", "cfs_rq"]).ok()?;
    let queue_cpu = types.offset(&["cfs_rq", "rq"]).ok()?;
    let by_types = |name: &str| types.per_cpu(name).ok().map(u64::from);
    let count = from_run_queue(types, by_types).or_else(|| {
        let symbols = File::open(KALLSYMS).map(|file| addresses(BufReader::new(file))).ok()?;
        from_run_queue(types, |name| symbols.iter().find(|(found, _)| *found == name).map(|(_, at)| *at))
    })?;
    Some(PreemptCountOffsets { count, task_queue, queue_cpu, reserved: 0 })
}

/// How far the count is from the `struct rq`, where `place` is where variables lie in what each CPU has of them.
fn from_run_queue(types: &KernelTypes, place: impl Fn(&str) -> Option<u64>) -> Option<i32> {
    let count = COUNTS.iter().find_map(|&(variable, member)| {
        let in_it = member.map_or(Some(0), |member| types.offset(&[variable, member]).ok())?;
        Some(place(variable)?.wrapping_add(u64::from(in_it)))
    });
    i32::try_from(count?.wrapping_sub(place(RUN_QUEUE)?).cast_signed()).ok()
}

/// Addresses of those variables that the text of `/proc/kallsyms` has; they are 0 where the kernel hides them. See `export`'s
/// `symbolize::kernel` for its form.
fn addresses(mut text: impl BufRead) -> Vec<(&'static str, u64)> {
    let mut found = Vec::new();
    let mut line = String::new();
    loop {
        line.clear();
        match text.by_ref().take(MAX_LINE as u64).read_line(&mut line) {
            Ok(0) | Err(_) => return found,
            Ok(_) => {}
        }
        let mut words = line.split_whitespace();
        let (Some(address), Some(_), Some(name), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let known =
            COUNTS.iter().map(|(variable, _)| *variable).chain([RUN_QUEUE]).find(|known| *known == name);
        let address = u64::from_str_radix(address, 16);
        found.extend(known.zip(address.ok()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_cpus_are_found_among_others() {
        let text = "0000000000020000 A __preempt_count\n0000000000033cc0 A runqueues\nffffffff81000000 T _text\n\
                    ffffffffc0000000 d runqueues\t[module]\nnonsense\n";
        let expected = [("__preempt_count", 0x2_0000), ("runqueues", 0x3_3cc0)];
        assert_eq!(addresses(text.as_bytes()), expected);
    }

    #[test]
    fn this_kernel_has_the_count_where_its_run_queues_are_known() {
        let Ok(types) = KernelTypes::of_this_kernel() else {
            assert_ne!(std::env::var("COLLECTOR_LIVE").as_deref(), Ok("require"), "no types");
            eprintln!("SKIPPED: the kernel's types can't be read on this machine");
            return;
        };
        let offsets = offsets(&types);
        if types.per_cpu(RUN_QUEUE).is_ok() {
            assert!(offsets.count != 0, "{offsets:?}");
        }
        // Addresses that are hidden tell nothing.
        assert_eq!(from_run_queue(&types, |_| Some(0)), Some(0));
        assert_eq!(from_run_queue(&types, |name| (name == RUN_QUEUE).then_some(0x100)), None);
        let place = |name: &str| Some(if name == RUN_QUEUE { 0x3_3cc0 } else { 0x2_0000 });
        assert_eq!(from_run_queue(&types, place), Some(0x2_0000 - 0x3_3cc0));
    }
}
