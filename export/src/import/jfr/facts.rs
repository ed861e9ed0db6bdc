//! What a chunk tells of the recording as a whole.

use std::collections::HashMap;

use collector_common::ids::BuildId;
use collector_common::intern::StringId;

use super::events::{Chunk, Event, Value};
use super::texts::Texts;
use crate::import::digits::build_id;

/// The most lines of the account of a recording.
const MOST_NOTES: usize = 1000;

/// A process, as our own files tell of it. Times are in ticks.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) name: StringId,
    pub(super) parent: u32,
    pub(super) first_seen: u64,
    pub(super) start: Option<u64>,
    pub(super) end: Option<u64>,
    pub(super) user: Option<u32>,
    pub(super) user_name: StringId,
    pub(super) namespace_pid: Option<u32>,
    pub(super) cgroup: StringId,
}

/// A program that a process executed.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Position among the processes.
    pub(super) process: usize,
    /// In ticks.
    pub(super) since: u64,
    pub(super) name: StringId,
    /// Each with a NUL behind it.
    pub(super) arguments: String,
    pub(super) are_cut: bool,
}

/// What our own files tell of the host.
#[derive(Clone, Debug, Default)]
pub(super) struct Recording {
    pub(super) start: u64,
    pub(super) duration: u64,
    pub(super) host: StringId,
    pub(super) kernel: StringId,
    pub(super) architecture: StringId,
    pub(super) cpus: u32,
    pub(super) command: StringId,
    pub(super) lost: Option<u64>,
}

/// What is told.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// By type of event: how many nanoseconds a sample stands for.
    pub(super) periods: HashMap<u64, u64>,
    /// The same of async-profiler's wall clock.
    pub(super) wall_period: Option<u64>,
    pub(super) recording: Option<Recording>,
    pub(super) notes: Vec<StringId>,
    pub(super) processes: Vec<Process>,
    /// Those that were not taken yet.
    pub(super) programs: Vec<Program>,
    /// Positions of processes, by pid: of one that was given again the last.
    last: HashMap<u32, usize>,
    /// Bytes of arguments that there is room for: as many as the file has, as those are not constants in it.
    room: usize,
    /// Of the virtual machine.
    pub(super) pid: Option<u32>,
    pub(super) command: StringId,
    pub(super) system: StringId,
    pub(super) cpus: u32,
    /// Build ids by path, as our own files tell them.
    pub(super) build_ids: HashMap<StringId, BuildId>,
    /// Events that are here.
    pub(super) events: u64,
}

impl Facts {
    /// Adds what a chunk tells.
    pub(super) fn take(&mut self, chunk: &Chunk, texts: &mut Texts) {
        self.room = self.room.saturating_add(chunk.len());
        for event in chunk.events() {
            let before = self.events;
            self.events += 1;
            let mut text = |name| texts.of(&event.fields(), name);
            let number = |name| event.get(name).unsigned().unwrap_or_default();
            match event.name() {
                "jdk.ActiveSetting" => {
                    let [name, value] = ["name", "value"].map(text);
                    match (texts.get(name), period(texts.get(value))) {
                        ("period" | "interval", Some(period)) => {
                            self.periods.insert(number("id"), period);
                        }
                        ("wall", Some(period)) => self.wall_period = Some(period),
                        _ => {}
                    }
                }
                "jdk.JVMInformation" => {
                    self.pid = u32::try_from(number("pid")).ok().filter(|pid| *pid != 0);
                    self.command = text("javaArguments");
                }
                "jdk.OSInformation" => self.system = text("osVersion"),
                "jdk.CPUInformation" => self.cpus = number("hwThreads") as u32,
                "jdk.NativeLibrary" => {
                    let [name, digits] = ["name", "buildId"].map(text);
                    self.build_ids.extend(build_id(texts.get(digits)).map(|build_id| (name, build_id)));
                }
                "collector.Note" if self.notes.len() < MOST_NOTES => self.notes.push(text("text")),
                "collector.Process" => {
                    let process = Process::of(&event, texts);
                    self.last.insert(process.pid, self.processes.len());
                    self.processes.push(process);
                }
                "collector.Program" => {
                    if let Some(&process) = self.last.get(&(number("processId") as u32)) {
                        let name = text("name");
                        let (arguments, are_cut) = arguments(&event, &mut self.room);
                        let since = event.ticks();
                        self.programs.push(Program { process, since, name, arguments, are_cut });
                    }
                }
                "collector.Recording" => {
                    self.recording = Some(Recording {
                        start: event.ticks(),
                        duration: number("duration"),
                        host: text("host"),
                        kernel: text("kernel"),
                        architecture: text("architecture"),
                        cpus: number("cpus") as u32,
                        command: text("command"),
                        lost: event.get("lostSamples").unsigned(),
                    });
                }
                "jdk.ActiveRecording" => {}
                _ => self.events = before,
            }
        }
    }
}

impl Process {
    fn of(event: &Event<'_>, texts: &mut Texts) -> Self {
        let mut text = |name| texts.of(&event.fields(), name);
        let number = |name| event.get(name).unsigned().unwrap_or_default();
        let is = |name| event.get(name).integer() == Some(1);
        let id = |name| event.get(name).unsigned().and_then(|number| u32::try_from(number).ok());
        let start = event.ticks();
        Self {
            pid: number("processId") as u32,
            name: text("name"),
            parent: number("parentId") as u32,
            first_seen: start,
            start: is("startSeen").then_some(start),
            end: is("endSeen").then(|| start.saturating_add(number("duration"))),
            user: id("userId"),
            user_name: text("userName"),
            namespace_pid: id("namespaceProcessId").filter(|pid| *pid > 0),
            cgroup: text("cgroup"),
        }
    }
}

/// The arguments of a program, as far as there is room for them, and whether there were more.
fn arguments(event: &Event<'_>, room: &mut usize) -> (String, bool) {
    let mut are_cut = event.get("argumentsCut").integer() == Some(1);
    let mut all = String::new();
    let Value::List(list) = event.get("arguments") else { return (all, are_cut) };
    for argument in list {
        let Some(argument) = argument.text() else { break };
        let Some(left) = room.checked_sub(argument.len() + 1) else {
            are_cut = true;
            break;
        };
        *room = left;
        all.push_str(&argument);
        all.push('\0');
    }
    (all, are_cut)
}

/// The JDK gives several lines, one of which is what `uname` says.
pub(super) fn kernel(told: &str) -> String {
    let uname = told.lines().find_map(|line| line.strip_prefix("uname:"));
    let words = uname.unwrap_or_else(|| told.lines().next().unwrap_or_default());
    words.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// Nanoseconds of a period, as `20 ms`; async-profiler has a mere number of them.
fn period(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, "ns"));
    let factor = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor).filter(|period| *period > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_those_of_both_writers() {
        assert_eq!(period("20 ms"), Some(20_000_000));
        assert_eq!(period("1003009 ns"), Some(1_003_009));
        assert_eq!(period("100000000"), Some(100_000_000));
        assert_eq!(
            [period("everyChunk"), period("0 ns"), period("5 m"), period("99999999999999 s")],
            [None; 4]
        );
    }

    #[test]
    fn the_kernel_is_what_uname_says() {
        let told = "PRETTY_NAME=\"Debian\"\nuname: Linux 6.18.0 #1 SMP x86_64\nlibc: glibc 2.36";
        assert_eq!(kernel(told), "Linux 6.18.0");
        assert_eq!(kernel("Linux 6.1.0-x"), "Linux 6.1.0-x");
        assert_eq!(kernel(""), "");
    }
}
