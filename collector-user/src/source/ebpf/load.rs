//! Chooses and loads the programs that this kernel can run.

use aya::programs::{PerfEvent, ProgramError, RawTracePoint, UProbe};
use aya::{Ebpf, EbpfLoader};
use collector_common::wire::{BlockOffsets, COMM_LEN, Config, PreemptCountOffsets, ReturnOffsets, Target};

use super::asked::Asked;
use super::btf::{BtfError, KernelTypes};
use super::error::LoadError;
use super::object::object;
use super::part::Part;
use super::preempt_count;
use super::sampler::max_stack_pages;
use crate::kernel::Release;
use crate::source::{Program, Settings};

/// Which of the programs a kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// Name of the sampling program.
    pub(super) program: &'static str,
    /// Name of the program at `sched_switch`.
    pub(super) switch: &'static str,
    /// Name of the program at `sched_waking`.
    pub(super) waking: &'static str,
    /// Name of the program at the exit of system calls.
    pub(super) call_end: &'static str,
    /// Name of the program at the return of allocators' functions.
    pub(super) gets: &'static str,
    /// Name of the program at the exit of system calls that give memory.
    pub(super) memory_grows: &'static str,
    /// Names of the programs at page faults without and with reading from a disk.
    pub(super) faults: [&'static str; 2],
    release: Release,
}

impl Level {
    fn of(release: Release) -> Result<Self, LoadError> {
        if release < Release::new(5, 8) {
            return Err(LoadError::Kernel(release));
        }
        let has_find_vma = release >= Release::WITH_FIND_VMA;
        let choose = |newer, older| if has_find_vma { newer } else { older };
        Ok(Self {
            program: choose("sample", "sample_without_find_vma"),
            switch: choose("switch", "switch_without_find_vma"),
            waking: choose("waking", "waking_without_find_vma"),
            call_end: choose("call_ends", "call_ends_without_find_vma"),
            gets: choose("gets", "gets_without_find_vma"),
            memory_grows: choose("memory_grows", "memory_grows_without_find_vma"),
            faults: [
                choose("minor_fault", "minor_fault_without_find_vma"),
                choose("major_fault", "major_fault_without_find_vma"),
            ],
            release,
        })
    }

    fn has_find_vma(self) -> bool {
        self.release >= Release::WITH_FIND_VMA
    }

    /// Whether programs at functions may say which returns they want to see.
    pub(super) fn has_uprobe_session(self) -> bool {
        self.release >= Release::new(6, 13)
    }

    /// Whether there are tracepoints of locks of the kernel.
    pub(super) fn tells_contention(self) -> bool {
        self.release >= Release::WITH_CONTENTION
    }

    /// Whether `sched_switch` tells why a thread stops running.
    fn tells_state(self) -> bool {
        self.release >= Release::new(5, 18)
    }

    fn has_task_pt_regs(self) -> bool {
        self.release >= Release::new(5, 15)
    }
}

/// The program that says whose hits of probes are recorded.
pub(super) const HITS: &str = "probe_is_wanted";

/// Whether the programs can be expected to run, by what can be told without loading them.
///
/// # Errors
/// What stands against it.
pub fn check() -> Result<(), LoadError> {
    check_all().map(|_| ())
}

fn check_all() -> Result<(&'static [u8], Level), LoadError> {
    let object = object().ok_or(LoadError::NoObject)?;
    if !crate::doctor::has_proc() {
        return Err(LoadError::NoProc);
    }
    if !crate::doctor::in_initial_pid_namespace() {
        return Err(LoadError::PidNamespace);
    }
    if !crate::doctor::may_record() {
        return Err(LoadError::NotPermitted);
    }
    Ok((object, Level::of(Release::of_this_kernel())?))
}

/// The object in the kernel, with those programs that are asked for.
pub(super) struct Loaded {
    pub(super) ebpf: Ebpf,
    /// Name of the sampling program.
    pub(super) program: &'static str,
    /// What else is recorded.
    pub(super) parts: Vec<Box<dyn Part>>,
}

/// Loads the object and those of its programs that are asked for into the kernel.
pub(super) fn load(
    settings: &Settings,
    asked: &Asked,
    rings: u32,
    high_water: u64,
) -> Result<Loaded, LoadError> {
    let (object, level) = check_all()?;
    if let Some(what) = asked.with_find_vma().filter(|_| !level.has_find_vma()) {
        return Err(LoadError::Newer { what, needed: Release::WITH_FIND_VMA, release: level.release });
    }
    let types = KernelTypes::of_this_kernel()?;
    let config = config(&types, settings, asked, level, high_water)?;
    let mut parts = asked.parts(settings, level);
    let globals: Vec<_> = parts.iter().map(|part| part.globals(&types)).collect::<Result<_, _>>()?;
    let log_level = log::max_level() as u8;
    let mut loader = EbpfLoader::new();
    loader
        .btf(None)
        .override_global("CONFIG", bytemuck::bytes_of(&config), true)
        .override_global(aya_log::LEVEL, &log_level, false)
        .map_max_entries("RINGS", rings)
        .map_max_entries("LIVES", SMALLEST_RING);
    for (name, value) in globals.iter().flatten() {
        loader.override_global(name, value.as_slice(), true);
    }
    for (map, entries) in parts.iter().flat_map(|part| part.map_sizes()) {
        loader.map_max_entries(map, entries);
    }
    let loaded = loader.load(object);
    let mut ebpf = loaded.map_err(|error| LoadError::step("the eBPF object could not be loaded", error))?;
    if asked.clock {
        let sample = program::<PerfEvent>(&mut ebpf, level.program)?;
        sample.load().map_err(|error| refused(level.program, error))?;
    }
    if asked.chooses_hits {
        program::<UProbe>(&mut ebpf, HITS)?.load().map_err(|error| refused(HITS, error))?;
    }
    for part in &mut parts {
        part.programs().load(&mut ebpf)?;
        part.loaded(&mut ebpf)?;
    }
    if settings.targets.follows_processes() {
        let lives = [("follow_fork", "sched_process_fork"), ("forget_process", "sched_process_free")];
        let command = settings.targets.command.map(|_| ("follow_command", "task_rename"));
        for (name, tracepoint) in lives.into_iter().chain(command) {
            let follow = program::<RawTracePoint>(&mut ebpf, name)?;
            follow.load().map_err(|error| refused(name, error))?;
            follow.attach(tracepoint).map_err(|error| {
                LoadError::step(format!("program {name} could not be attached to {tracepoint}"), error)
            })?;
        }
    }
    Ok(Loaded { ebpf, program: level.program, parts })
}

/// A program of the object by its name.
pub(super) fn program<'a, P>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P, LoadError>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program, Error = ProgramError>,
{
    let what = || format!("program {name}");
    let found = ebpf.program_mut(name).ok_or_else(|| LoadError::missing(what()))?;
    // It is there, and is another kind of program.
    found.try_into().map_err(|_: ProgramError| LoadError::missing(what()))
}

/// A program that the kernel did not take, with the last word of the verifier.
pub(super) fn refused(program: &str, error: ProgramError) -> LoadError {
    let ProgramError::LoadError { io_error, verifier_log } = error else {
        return LoadError::step(format!("program {program} could not be loaded"), error);
    };
    let log = verifier_log.to_string();
    log::debug!("verifier log of {program}: {log}");
    let verdict = log.lines().rev().map(str::trim).find(|line| {
        !line.is_empty()
            && !["processed", "verification time", "stack depth"].iter().any(|w| line.starts_with(w))
    });
    let verdict = verdict.map_or(String::new(), |verdict| format!(" ({verdict})"));
    LoadError::Refused { program: program.to_owned(), verdict, source: io_error }
}

fn config(
    types: &KernelTypes,
    settings: &Settings,
    asked: &Asked,
    level: Level,
    high_water: u64,
) -> Result<Config, LoadError> {
    let mut targets = 0;
    let mut comm = [0; COMM_LEN];
    if settings.targets.follows_processes() {
        targets |= Target::PROCESSES;
    }
    if settings.targets.cgroup.is_some() {
        targets |= Target::CGROUP;
    }
    if let Some(name) = &settings.targets.comm {
        targets |= Target::COMM;
        // The kernel keeps 15 bytes of a name and a NUL.
        let len = name.len().min(COMM_LEN - 1);
        comm[..len].copy_from_slice(&name.as_bytes()[..len]);
    }
    let (stack_registers, task_stack) = if level.has_task_pt_regs() {
        (0, 0)
    } else {
        (THREAD_SIZE - types.size("pt_regs")?, types.offset(&["task_struct", "stack"])?)
    };
    let task_state = if level.tells_state() {
        0
    } else {
        types.offset(&["task_struct", "__state"]).or_else(|_| types.offset(&["task_struct", "state"]))?
    };
    Ok(Config {
        targets,
        max_stack_pages: max_stack_pages(settings),
        high_water,
        clock_period: settings.period().0,
        off_cpu_period: settings.off_cpu_period.0.max(1),
        shortest_off_cpu: asked.shortest_off_cpu(&settings.shortest),
        shortest_lock_wait: settings.shortest.locks.0,
        allocation_period: settings.allocation_period.clamp(1, 1 << 40),
        mapped_period: settings.mapped_period.clamp(1, 1 << 40),
        times: asked.times,
        task_pid: types.offset(&["task_struct", "pid"])?,
        task_comm: types.offset(&["task_struct", "comm"])?,
        task_state,
        task_mm: types.offset(&["task_struct", "mm"])?,
        task_tgid: types.offset(&["task_struct", "tgid"])?,
        task_group_leader: types.offset(&["task_struct", "group_leader"])?,
        task_signal: types.offset(&["task_struct", "signal"])?,
        task_stack,
        // Of x86-64 alone; elsewhere a stack simply ends at its mapping's end.
        task_thread_pointer: types.offset(&["task_struct", "thread", "fsbase"]).unwrap_or(0),
        mm_start_stack: types.offset(&["mm_struct", "start_stack"])?,
        stack_registers,
        has_task_pt_regs: u32::from(level.has_task_pt_regs()),
        vma_end: types.offset(&["vm_area_struct", "vm_end"])?,
        vma_start: types.offset(&["vm_area_struct", "vm_start"])?,
        command: settings.targets.command.unwrap_or(0),
        comm,
        block: if asked.index(Program::BlockRequests).is_some() {
            block_offsets(types)?
        } else {
            BlockOffsets::default()
        },
        returns: return_offsets(types).unwrap_or_default(),
        preempt_count: if asked.times == 0 {
            PreemptCountOffsets::default()
        } else {
            preempt_count::offsets(types)
        },
    })
}

/// Where a request to a block device has what is told of it.
fn block_offsets(types: &KernelTypes) -> Result<BlockOffsets, BtfError> {
    Ok(BlockOffsets {
        queue: types.offset(&["request", "q"])?,
        flags: types.offset(&["request", "cmd_flags"])?,
        bytes: types.offset(&["request", "__data_len"])?,
        disk: types.offset(&["request_queue", "disk"])?,
        major: types.offset(&["gendisk", "major"])?,
        minor: types.offset(&["gendisk", "first_minor"])?,
    })
}

/// Where the kernel keeps the return addresses of calls whose returns it traps.
fn return_offsets(types: &KernelTypes) -> Result<ReturnOffsets, BtfError> {
    Ok(ReturnOffsets {
        probed: types.offset(&["task_struct", "utask"])?,
        innermost: types.offset(&["uprobe_task", "return_instances"])?,
        instruction: types.offset(&["uprobe_task", "vaddr"])?,
        executed_at: types.offset(&["uprobe_task", "xol_vaddr"])?,
        stack: types.offset(&["return_instance", "stack"])?,
        address: types.offset(&["return_instance", "orig_ret_vaddr"])?,
        next: types.offset(&["return_instance", "next"])?,
        area: types.offset(&["mm_struct", "uprobes_state", "xol_area"])?,
        trampoline: types.offset(&["xol_area", "vaddr"])?,
        reserved: 0,
    })
}

/// Bytes of a ring that nothing is written to: a page of the largest size that kernels have.
const SMALLEST_RING: u32 = 64 << 10;

/// Bytes of a kernel stack on x86-64 and, with 4 KiB pages, on aarch64: `THREAD_SIZE`.
const THREAD_SIZE: u32 = 16 << 10;
