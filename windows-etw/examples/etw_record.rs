//! Records by a plan, and tells what came: `etw_record SCENARIO SECONDS [FILE.etl] [PID]...`, or `etw_record plan SCENARIO [PID]...`,
//! which works on every system. `SCENARIO` may be an event such as `etw:Microsoft-Windows-Kernel-Process`, and several with `+`.
//!
//! Out: lines of a word and its value, for people and for `docs/windows-check.ps1`.

use std::process::ExitCode;

use collector_common::ids::Pid;
use windows_etw::plan::{EventSpec, Plan, Scenario, Scope};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["plan", names, pids @ ..] => plan(names, pids).map(|plan| print!("{plan}")),
        [names, seconds, rest @ ..] => {
            let (file, pids) = match rest {
                [file, pids @ ..] if file.parse::<u32>().is_err() => (Some(*file), pids),
                pids => (None, pids),
            };
            plan(names, pids).and_then(|plan| record(&plan, seconds.parse()?, file))
        }
        _ => {
            Err("usage: etw_record SCENARIO SECONDS [FILE.etl] [PID]... or etw_record plan SCENARIO [PID]..."
                .into())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("etw_record: {error}");
            ExitCode::FAILURE
        }
    }
}

fn plan(names: &str, pids: &[&str]) -> Result<Plan, Failure> {
    let pids: Result<Vec<Pid>, _> = pids.iter().map(|pid| pid.parse().map(Pid)).collect();
    let scope = Scope { frequency_hz: 997, pids: pids? };
    let mut whole: Option<Plan> = None;
    for name in names.split('+') {
        let plan = match Scenario::by_name(name) {
            Some(scenario) => scenario.plan(&scope),
            None => EventSpec::parse(name, platform::look_up)?.plan(&scope),
        };
        match &mut whole {
            Some(whole) => whole.add(plan)?,
            None => whole = Some(plan),
        }
    }
    whole.ok_or_else(|| "no scenario".into())
}

fn record(plan: &Plan, seconds: u64, file: Option<&str>) -> Result<(), Failure> {
    platform::record(plan, seconds, file)
}

#[cfg(not(windows))]
mod platform {
    use collector_common::event::Guid;
    use windows_etw::plan::Plan;

    use super::Failure;

    pub(super) fn look_up(_: &str) -> Option<Guid> {
        None
    }

    pub(super) fn record(_: &Plan, _: u64, _: Option<&str>) -> Result<(), Failure> {
        Err("sessions of ETW are on Windows; here `etw_record plan SCENARIO` tells what one would be asked for".into())
    }
}

#[cfg(windows)]
mod platform {
    use std::collections::{BTreeMap, HashSet, VecDeque};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::{Duration, Instant};

    use collector_common::event::Guid;
    use windows_etw::part::Part;
    use windows_etw::plan::Plan;
    use windows_etw::session::{Live, Sessions, Settings, Target, console, providers};

    use super::Failure;

    /// `StackWalk`: i64 the time of the event that it belongs to, u32 process, u32 thread, addresses.
    const STACK_WALK: &str = "def2fe46-7bd6-4b80-bd94-f57fe20d0ce3";
    const STACK: u8 = 32;
    /// Events whose stacks may be to come.
    const REMEMBERED: usize = 65_536;

    pub(super) fn look_up(name: &str) -> Option<Guid> {
        let known = providers().ok()?;
        known.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, guid)| guid)
    }

    /// What came.
    #[derive(Default)]
    struct Seen {
        events: BTreeMap<(Guid, u16, u8), u64>,
        with_stacks: u64,
        described: u64,
        /// Events earlier than one before them.
        disordered: u64,
        stacks: u64,
        /// Of these, those of an event that was seen at their time.
        matched: u64,
        last: i64,
        times: HashSet<i64>,
        oldest: VecDeque<i64>,
    }

    impl Seen {
        fn add(&mut self, live: &Live<'_>) {
            let record = &live.record;
            let key = (record.provider, record.descriptor.id, record.descriptor.opcode);
            let count = self.events.entry(key).or_default();
            *count += 1;
            if *count == 1 && live.description().is_ok() {
                self.described += 1;
            }
            self.with_stacks += u64::from(record.extended.stack.is_some());
            self.disordered += u64::from(record.ticks < self.last);
            self.last = record.ticks;
            if record.provider.to_string() == STACK_WALK && record.descriptor.opcode == STACK {
                self.stacks += 1;
                let time = record.payload.first_chunk().map(|time| i64::from_le_bytes(*time));
                self.matched += u64::from(time.is_some_and(|time| self.times.contains(&time)));
                return;
            }
            if self.oldest.len() == REMEMBERED {
                self.oldest.pop_front().map(|oldest| self.times.remove(&oldest));
            }
            self.times.insert(record.ticks);
            self.oldest.push_back(record.ticks);
        }
    }

    /// Counts, and sends what it has when it is dropped: when the session's thread ends.
    struct Counting(Part, Seen, Sender<(Part, Seen)>);

    impl Drop for Counting {
        fn drop(&mut self) {
            // There is nobody left to be told where this fails.
            let _ = self.2.send((self.0, std::mem::take(&mut self.1)));
        }
    }

    pub(super) fn record(plan: &Plan, seconds: u64, file: Option<&str>) -> Result<(), Failure> {
        console::watch()?;
        let target = file.map_or(Target::Live, |file| Target::File(file.into()));
        let settings = Settings { target, ..Settings::default() };
        let (sender, receiver): (_, Receiver<(Part, Seen)>) = channel();
        let sessions = Sessions::start(plan, &settings, |part| {
            let mut counting = Counting(part, Seen::default(), sender.clone());
            Box::new(move |live| counting.1.add(live))
        })?;
        drop(sender);
        if let Some(interval) = sessions.interval() {
            println!("interval_100ns {}", interval.units());
        }
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end && !console::is_asked_to_end() && !sessions.has_ended() {
            std::thread::sleep(Duration::from_millis(50));
        }
        let stopped = sessions.stop()?;
        println!("events {}", stopped.events);
        for (part, losses) in &stopped.losses {
            println!("lost {part:?} {} {} {}", losses.events, losses.file_buffers, losses.live_buffers);
        }
        for (part, seen) in receiver {
            println!("described {part:?} {}", seen.described);
            println!("extended_stacks {part:?} {}", seen.with_stacks);
            println!("disordered {part:?} {}", seen.disordered);
            println!("stacks {part:?} {}", seen.stacks);
            println!("stacks_matched {part:?} {}", seen.matched);
            for ((provider, id, opcode), count) in &seen.events {
                println!("event {provider} {id} {opcode} {count}");
            }
        }
        Ok(())
    }
}
