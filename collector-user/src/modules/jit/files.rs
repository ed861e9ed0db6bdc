//! What was found of each process with code that has no file.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::intern::StackId;
use collector_common::record::{ExportMachine, ModuleId, ModuleKind, ProcessId, Renumbered};
use export::symbolize::{JitDump, JitNames, PerfMap};
use rustc_hash::{FxHashMap, FxHashSet};

use super::owner::{Believed, HERE, identity, open_folder, open_plain, started};
use super::settle::settle;
use crate::modules::open;
use crate::modules::store::MappedFile;
use crate::procfs;

/// Where runtimes write perf maps.
const FOLDER: &str = "/tmp";

/// Files and folders that are held at most. What more there is has no names.
const MOST_HELD: usize = 512;

/// Names of code that has no file, and where they may be.
#[derive(Debug, Default)]
pub(crate) struct JitFiles {
    /// Whose files are believed, of a recording that was made earlier; `None` while it is made.
    recorded: Option<Believed>,
    /// Whether no file of this machine can be one of the recorded processes.
    is_of_other_machine: bool,
    /// Whether times of samples can't be compared with those of dumps.
    is_of_other_clock: bool,
    processes: FxHashMap<ProcessId, Runtime>,
    /// Folders of other roots and mounts than ours, by device and inode.
    folders: FxHashMap<(u64, u64), Arc<File>>,
    /// Files that are held.
    held: usize,
    /// What dumps told, by module.
    names: FxHashMap<ModuleId, JitNames>,
}

/// A process that has code without a file.
#[derive(Debug)]
struct Runtime {
    pid: Pid,
    /// What it calls itself.
    inner: Pid,
    believed: Believed,
    /// Where it writes, if that is not [`FOLDER`].
    folder: Option<Arc<File>>,
    map: Option<File>,
    dumps: Vec<File>,
    has_ended: bool,
    /// Whether it has executed another program since.
    is_stale: bool,
}

impl JitFiles {
    /// Of a recording that was made earlier on this machine. Where its times are another clock's than dumps have, the last of
    /// several codes at one address is meant.
    pub(in crate::modules) fn of_recording(believed: Believed, has_system_clock: bool) -> Self {
        Self { recorded: Some(believed), is_of_other_clock: !has_system_clock, ..Self::default() }
    }

    /// Of one that was made on another machine: nothing is looked for.
    pub(in crate::modules) fn gone() -> Self {
        Self { recorded: Some(Believed::default()), is_of_other_machine: true, ..Self::default() }
    }

    /// A process has code without a file. What goes with the process is noted now.
    pub(in crate::modules) fn code_mapped(&mut self, process: ProcessId, pid: Pid, thread: Tid) {
        if self.processes.get(&process).is_some_and(|known| !known.is_stale) {
            return;
        }
        let Some(mut runtime) = self.look_at(pid, thread) else { return };
        if let Some(known) = self.processes.remove(&process) {
            runtime.believed.users.extend(known.believed.users);
            runtime.dumps = known.dumps;
        }
        self.processes.insert(process, runtime);
    }

    /// `None` where it has ended.
    fn look_at(&mut self, pid: Pid, thread: Tid) -> Option<Runtime> {
        let (map, dumps, has_ended, is_stale) = (None, Vec::new(), false, false);
        if let Some(believed) = self.recorded.clone() {
            return Some(Runtime {
                pid,
                inner: pid,
                believed,
                folder: None,
                map,
                dumps,
                has_ended,
                is_stale,
            });
        }
        let status = procfs::folders(pid, thread).find_map(|folder| procfs::status(&folder).ok())?;
        let believed = Believed { users: vec![status.user], started: started(pid) };
        let folder = procfs::folders(pid, thread).find_map(|of| self.folder_of(&of));
        Some(Runtime { pid, inner: status.innermost_pid, believed, folder, map, dumps, has_ended, is_stale })
    }

    /// The folder that a process has at [`FOLDER`], unless it is ours, or can't be known.
    fn folder_of(&mut self, of: &str) -> Option<Arc<File>> {
        let own = open_folder(HERE, FOLDER, true).as_ref().and_then(identity);
        let root = open_folder(HERE, &format!("{of}/root"), true)?;
        // A link in another root can't be followed from here.
        let folder = open_folder(&root, FOLDER.trim_start_matches('/'), false)?;
        let key = identity(&folder).filter(|&key| Some(key) != own)?;
        if let Some(known) = self.folders.get(&key) {
            return Some(Arc::clone(known));
        }
        let folder = (self.folders.len() < MOST_HELD).then(|| Arc::new(folder))?;
        self.folders.insert(key, Arc::clone(&folder));
        Some(folder)
    }

    /// A process has a file mapped to be executed, which may be the sign that it writes a dump.
    pub(in crate::modules) fn file_mapped(&mut self, process: ProcessId, pid: Pid, mapped: &MappedFile<'_>) {
        if !is_dump(mapped.path) || self.is_of_other_machine || self.held >= MOST_HELD {
            return;
        }
        self.code_mapped(process, pid, mapped.thread);
        let Some(runtime) = self.processes.get_mut(&process) else { return };
        let file = match self.recorded {
            Some(_) => std::str::from_utf8(mapped.path).ok().and_then(|path| open_plain(HERE, path)),
            None => open::open_growing(pid, mapped),
        };
        let is_known = |file: &File| runtime.dumps.iter().any(|known| identity(known) == identity(file));
        if let Some(file) = file.filter(|file| !is_known(file)) {
            runtime.dumps.push(file);
            self.held += 1;
        }
    }

    /// A process executed another program: it may be another user's, in another root, when it maps code again.
    pub(crate) fn executed(&mut self, process: ProcessId) {
        if let Some(runtime) = self.processes.get_mut(&process) {
            runtime.is_stale = true;
        }
    }

    /// A process has ended: what it wrote is whole, and may be removed at any moment.
    pub(crate) fn ended(&mut self, process: ProcessId) {
        if let Some(runtime) = self.processes.get_mut(&process) {
            runtime.has_ended = true;
        }
        self.open_map(process);
    }

    fn open_map(&mut self, process: ProcessId) {
        let Some(runtime) = self.processes.get_mut(&process) else { return };
        if self.is_of_other_machine || (runtime.map.is_none() && self.held >= MOST_HELD) {
            return;
        }
        if let Some(map) = runtime.find_map() {
            self.held += usize::from(runtime.map.is_none());
            runtime.map = Some(map);
        }
    }

    /// The recording has ended: finds the files of all processes with code that was sampled, and tells apart what the dumps tell.
    pub(crate) fn finish(&mut self, machine: &mut ExportMachine) {
        let mut of_process: FxHashMap<ProcessId, FxHashSet<ModuleId>> = FxHashMap::default();
        for frame in machine.frames().iter() {
            if let ModuleKind::Anonymous(process) | ModuleKind::Unmapped(process) =
                machine.module(frame.module).kind
            {
                of_process.entry(process).or_default().insert(frame.module);
            }
        }
        let mut sampled: Vec<ProcessId> = of_process.keys().copied().collect();
        sampled.sort_unstable();
        for process in sampled {
            let Some(runtime) = self.processes.get_mut(&process) else { continue };
            let started = machine.process(process).start;
            if runtime.believed.started.is_none() && started > Nanos(0) {
                let unix = machine.system().clocks.unix_at(started).and_then(|unix| u64::try_from(unix).ok());
                runtime.believed.started = unix.map(|unix| UNIX_EPOCH + Duration::from_nanos(unix));
            }
            let end = machine.system().clocks.unix_at(machine.system().end);
            let end = end.and_then(|unix| u64::try_from(unix).ok());
            // Where nobody knows the time of day, it has ended by now.
            let now = || Some(SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_nanos() as u64);
            runtime.look_again(end.or_else(now), self.recorded.is_some());
            let dumps = std::mem::take(&mut runtime.dumps);
            let believed = dumps.into_iter().filter(|dump| runtime.believed.has(dump));
            let dumps: Vec<File> = believed.collect();
            let pid = runtime.pid;
            self.open_map(process);
            if let Some(modules) = of_process.get(&process).filter(|_| !dumps.is_empty()) {
                let open =
                    |wanted: &[u64]| dumps.into_iter().filter_map(|dump| read(dump, wanted, pid)).collect();
                self.names.extend(settle(machine, modules, !self.is_of_other_clock, open));
            }
        }
    }

    /// Processes have other numbers, and of those that were left out no code has a name.
    pub(crate) fn renumber(&mut self, renumbered: &Renumbered) {
        let processes = std::mem::take(&mut self.processes).into_iter();
        self.processes =
            processes.filter_map(|(process, runtime)| Some((renumbered.of(process)?, runtime))).collect();
    }

    /// What to tell of code that was made at run time and sampled, and that nobody tells the names of.
    pub(crate) fn warning(&self, machine: &ExportMachine) -> Option<String> {
        /// Fewer samples, or a smaller part of all, is no loss worth a line.
        const LEAST: u64 = 10;
        const LEAST_PART: u64 = 100;
        let mut of_stacks: FxHashMap<StackId, Option<ProcessId>> = FxHashMap::default();
        let (mut samples, mut processes) = (0, BTreeSet::new());
        for sample in machine.samples().iter() {
            let unnamed =
                of_stacks.entry(sample.stack).or_insert_with(|| self.unnamed(machine, sample.stack));
            if let Some(process) = *unnamed {
                samples += 1;
                processes.insert(machine.string(machine.process(process).name));
            }
        }
        let names = processes.iter().take(3).copied().collect::<Vec<_>>().join(", ");
        (samples >= LEAST && samples * LEAST_PART >= machine.samples().len() as u64).then(|| {
            format!(
                "{samples} samples are in code without names that was made at run time ({names}): `node --perf-basic-prof`, `java \
                 -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit`, `python3 -X perf` and DOTNET_PerfMapEnabled=1 tell them"
            )
        })
    }

    /// The process in whose code a stack's innermost function is, if nothing tells of it.
    fn unnamed(&self, machine: &ExportMachine, stack: StackId) -> Option<ProcessId> {
        let mut frames = machine.stacks().get(stack).iter().map(|&frame| machine.frames().get(frame));
        let frame = frames.find(|frame| !frame.is_kernel())?;
        let module = machine.module(frame.module);
        let ModuleKind::Anonymous(process) = module.kind else { return None };
        let is_known = self.names.contains_key(&frame.module)
            || self.processes.get(&process).is_some_and(|runtime| runtime.map.is_some());
        // The kernel has memory in processes for its own, which is called otherwise.
        (!is_known && machine.string(module.path) == "[anon]").then_some(process)
    }

    /// What is known of the addresses of a module.
    pub(crate) fn names(&self, module: ModuleId) -> Option<&JitNames> {
        self.names.get(&module)
    }

    /// A process's perf map.
    pub(crate) fn perf_map(&self, process: ProcessId) -> Option<PerfMap<File>> {
        let runtime = self.processes.get(&process)?;
        let file = runtime.map.as_ref()?.try_clone().ok()?;
        Some(PerfMap { file, is_growing: !runtime.has_ended })
    }
}

impl Runtime {
    /// The process may have given up rights since; and one of a recording that was made earlier may be there still, and tell whose
    /// it is, if it is not one that was started after the recording's `end`.
    fn look_again(&mut self, end: Option<u64>, is_recorded: bool) {
        if is_recorded {
            let end = end.map(|end| UNIX_EPOCH + Duration::from_nanos(end));
            self.has_ended = started(self.pid).zip(end).is_none_or(|(started, end)| started > end);
        }
        if let Ok(status) = procfs::status(&format!("/proc/{}", self.pid)) {
            self.believed.users.extend((!self.has_ended).then_some(status.user));
        }
    }

    /// Its perf map, if there is one that is believed: in its own folder by its own pid, or where tools outside of a container leave
    /// it, by the pid that it has there.
    fn find_map(&self) -> Option<File> {
        let own_folder = || open_folder(HERE, FOLDER, true);
        let inside = match &self.folder {
            Some(folder) => open_plain(folder, &name(self.inner)),
            None => open_plain(own_folder()?, &name(self.inner)),
        };
        let is_elsewhere = self.folder.is_some() || self.inner != self.pid;
        let outside = || is_elsewhere.then(|| open_plain(own_folder()?, &name(self.pid))).flatten();
        inside.filter(|map| self.believed.has(map)).or_else(|| outside().filter(|map| self.believed.has(map)))
    }
}

/// What a dump says of addresses.
fn read(dump: File, wanted: &[u64], pid: Pid) -> Option<JitDump<File>> {
    let read = JitDump::read(dump, wanted);
    match &read {
        Ok(dump) => {
            if let Some(damage) = dump.damage() {
                log::warn!("the jitdump of process {pid} is read up to where it is damaged: {damage}");
            }
        }
        Err(error) => log::warn!("the jitdump of process {pid} names nothing: {error}"),
    }
    read.ok()
}

fn name(pid: Pid) -> String {
    format!("perf-{pid}.map")
}

/// `/any/jit-123.dump`
fn is_dump(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let number = name.strip_prefix(b"jit-").and_then(|rest| rest.strip_suffix(b".dump"));
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}
