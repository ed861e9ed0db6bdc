//! Which threads are sampled. The settings are constants to the verifier: a filter that is off costs nothing.

use aya_ebpf::helpers::bpf_get_current_comm;
use collector_common::wire::{COMM_LEN, Config, Target};

use crate::maps::{CGROUPS, PROCESSES, config};

/// Whether the current thread of process `pid` is to be sampled.
#[inline(always)]
pub(crate) fn wanted(pid: u32) -> bool {
    let targets = config(|c: &Config| &raw const c.targets);
    if targets & Target::PROCESSES != 0 && PROCESSES.get_ptr(pid).is_none() {
        return false;
    }
    if targets & Target::CGROUP != 0 && !CGROUPS.current_task_under_cgroup(0).unwrap_or(false) {
        return false;
    }
    if targets & Target::COMM != 0 && !name_matches() {
        return false;
    }
    true
}

#[inline(always)]
fn name_matches() -> bool {
    let Ok(comm) = bpf_get_current_comm() else { return false };
    let wanted = config(|c: &Config| &raw const c.comm);
    let mut index = 0;
    while index < COMM_LEN {
        if comm[index] != wanted[index] {
            return false;
        }
        if comm[index] == 0 {
            return true;
        }
        index += 1;
    }
    true
}
