//! What a chunk tells of the recording as a whole.

use std::collections::HashMap;

use collector_common::ids::BuildId;
use collector_common::intern::StringId;
use collector_common::record::Exit;

use super::events::{Chunk, Event, Value};
use super::roles::CPU_TIME_SAMPLE;
use super::texts::Texts;
use crate::import::digits::build_id;

/// The most lines of the account of a recording.
const MOST_NOTES: usize = 1000;

/// The most mappings: an event of one is smaller than what it becomes.
const MOST_MAPPINGS: u64 = 1 << 22;

/// How far two periods are from each other, in nanoseconds, which ticks make of one.
const MOST_ROUNDED: u64 = 1_000;

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
    pub(super) exit: Option<Exit>,
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

/// Where a file was mapped, as our own files tell it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping {
    /// Position among the processes.
    pub(super) process: usize,
    /// In ticks.
    pub(super) since: u64,
    pub(super) path: StringId,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) file_offset: u64,
    /// Address in the process minus address as linked, wrapping.
    pub(super) bias: u64,
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

/// Positions of processes that have something in common, each with the ticks since when it is of them, in their order.
type Lives = Vec<(u64, usize)>;

/// What is told.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// By type of event: how many nanoseconds a sample stands for.
    pub(super) periods: HashMap<u64, u64>,
    /// The same of async-profiler's wall clock.
    pub(super) wall_period: Option<u64>,
    /// How many samples have another period than the first of their type.
    pub(super) other_periods: u64,
    /// Samples that the virtual machine could not take, where it tells of any.
    pub(super) lost: Option<u64>,
    pub(super) recording: Option<Recording>,
    pub(super) notes: Vec<StringId>,
    pub(super) notes_left_out: u64,
    pub(super) processes: Vec<Process>,
    /// Those that were not taken yet.
    pub(super) programs: Vec<Program>,
    /// The same of mappings.
    pub(super) mappings: Vec<Mapping>,
    /// All that there were, and those that there was no room for.
    mapped: u64,
    pub(super) mappings_left_out: u64,
    /// Libraries of which it is not said in which process they are, as the JDK tells of them.
    pub(super) libraries: u64,
    /// Those of a pid, which may have been given again, and those of a pid and a name.
    lives: HashMap<(u32, Option<StringId>), Lives>,
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
                CPU_TIME_SAMPLE => {
                    let period = chunk.clock().nanoseconds(number("samplingPeriod"));
                    let first = *self.periods.entry(event.kind().id()).or_insert(period);
                    self.other_periods += u64::from(period.abs_diff(first) > MOST_ROUNDED);
                    self.events = before;
                }
                "jdk.CPUTimeSamplesLost" => {
                    self.lost = Some(self.lost.unwrap_or_default().saturating_add(number("lostSamples")));
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
                    self.library(&event, name);
                }
                "collector.Note" if self.notes.len() < MOST_NOTES => self.notes.push(text("text")),
                "collector.Note" => self.notes_left_out += 1,
                "collector.Process" => {
                    let process = Process::of(&event, texts);
                    for name in [None, Some(process.name)] {
                        let lives = self.lives.entry((process.pid, name)).or_default();
                        // As a file may tell of them in any order.
                        let since = lives.last().map_or(0, |&(last, _)| last.max(process.first_seen));
                        lives.push((since, self.processes.len()));
                    }
                    self.processes.push(process);
                }
                "collector.Program" => {
                    let (pid, since) = (number("processId") as u32, event.ticks());
                    if let Some(process) = self.life(pid, None, since) {
                        let name = text("name");
                        let (arguments, are_cut) = arguments(&event, &mut self.room);
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

impl Facts {
    /// The position of the process that a pid was of at a tick, of those of a name if there is one of it.
    pub(super) fn life(&self, pid: u32, name: Option<StringId>, ticks: u64) -> Option<usize> {
        let lives = self.lives.get(&(pid, name)).or_else(|| self.lives.get(&(pid, None)))?;
        let begun = lives.partition_point(|&(since, _)| since <= ticks);
        lives.get(begun.saturating_sub(1)).map(|&(_, position)| position)
    }

    /// Keeps a library's mapping if it says in which process, as ours do. Those that were written before the offset and the bias were told
    /// are taken to begin with their file.
    fn library(&mut self, event: &Event<'_>, path: StringId) {
        let number = |name| event.get(name).unsigned();
        let pid = number("processId").and_then(|pid| u32::try_from(pid).ok());
        let process = pid.and_then(|pid| self.life(pid, None, event.ticks()));
        let (Some(process), Some(start), Some(end)) = (process, number("baseAddress"), number("topAddress"))
        else {
            self.libraries += 1;
            return;
        };
        if self.mapped >= MOST_MAPPINGS {
            self.mappings_left_out += 1;
            return;
        }
        self.mapped += 1;
        let file_offset = number("fileOffset").unwrap_or_default();
        let bias = event.get("loadBias").integer().map_or(start, i64::cast_unsigned);
        self.mappings.push(Mapping { process, since: event.ticks(), path, start, end, file_offset, bias });
    }
}

impl Process {
    fn of(event: &Event<'_>, texts: &mut Texts) -> Self {
        let mut text = |name| texts.of(&event.fields(), name);
        let number = |name| event.get(name).unsigned().unwrap_or_default();
        let is = |name| event.get(name).integer() == Some(1);
        let id = |name| event.get(name).unsigned().and_then(|number| u32::try_from(number).ok());
        let code = event.get("exitStatus").integer().and_then(|code| u32::try_from(code).ok());
        let signal = event.get("exitSignal").integer().and_then(|signal| u8::try_from(signal).ok());
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
            exit: code.map(Exit::Code).or(signal.map(Exit::Signal)),
        }
    }
}

/// The arguments of a program, each with a NUL behind it, as far as there is room for them, and whether there were more. They are a text,
/// an array of strings as JSON has it, as we write them; or a list, as we did before.
fn arguments(event: &Event<'_>, room: &mut usize) -> (String, bool) {
    let are_cut = event.get("argumentsCut").integer() == Some(1);
    let mut all = String::new();
    // Not even looked at: it takes long where one text is that of many.
    if *room == 0 {
        return (all, true);
    }
    match event.get("arguments") {
        // Each argument takes more bytes in it than with a NUL behind it.
        Value::Text(text) => {
            let Some(left) = room.checked_sub(text.len()) else {
                *room = 0;
                return (all, true);
            };
            *room = left;
            for argument in serde_json::from_str::<Vec<String>>(&text).unwrap_or_default() {
                add_argument(&mut all, &argument);
            }
        }
        Value::List(list) => {
            for argument in list {
                let Some(argument) = argument.text() else { break };
                let Some(left) = room.checked_sub(argument.len() + 1) else {
                    *room = 0;
                    return (all, true);
                };
                *room = left;
                add_argument(&mut all, &argument);
            }
        }
        _ => {}
    }
    (all, are_cut)
}

/// No argument has a NUL; of one that says so, what is before it is one.
fn add_argument(all: &mut String, argument: &str) {
    all.push_str(argument.split('\0').next().unwrap_or_default());
    all.push('\0');
}

/// The JDK gives several lines, one of which is what `uname` says.
pub(super) fn kernel(told: &str) -> String {
    let uname = told.lines().find_map(|line| line.strip_prefix("uname:"));
    let words = uname.unwrap_or_else(|| told.lines().next().unwrap_or_default());
    words.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// Nanoseconds of a period, as `20 ms`; async-profiler has a mere number of them.
fn period(text: &str) -> Option<u64> {
    /// More digits than a number of 64 bits has, and a unit.
    const LONGEST: usize = 32;
    if text.len() > LONGEST {
        return None;
    }
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
