//! Records by a plan, and tells what came: `etw_record SCENARIO SECONDS [FILE.etl] [PID]...`, or `etw_record plan SCENARIO [PID]...`,
//! which works on every system. `SCENARIO` may be an event such as `etw:Microsoft-Windows-Kernel-Process`, and several with `+`.
//! In front of it `as NAME` names the sessions, `late` takes no event until the time is over, and `both` has the events of a file told, too.
//!
//! Out: lines of a word and its value, for people and for `docs/windows-check.ps1`.

use std::process::ExitCode;

use collector_common::ids::Pid;
use windows_etw::plan::{EventSpec, Plan, Scenario, Scope};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (how, args) = how(&args);
    let done = match args {
        ["plan", names, pids @ ..] => plan(names, pids).map(|plan| print!("{plan}")),
        [names, seconds, rest @ ..] => {
            let (file, pids) = match rest {
                [file, pids @ ..] if file.parse::<u32>().is_err() => (Some(*file), pids),
                pids => (None, pids),
            };
            plan(names, pids).and_then(|plan| record(&plan, seconds.parse()?, file, how))
        }
        _ => {
            Err("usage: etw_record [as NAME] [late] [both] SCENARIO SECONDS [FILE.etl] [PID]... or etw_record plan SCENARIO [PID]..."
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

/// How it is recorded.
#[derive(Clone, Copy, Default)]
#[cfg_attr(not(windows), expect(dead_code, reason = "nothing is recorded elsewhere"))]
struct How<'a> {
    /// What sessions are called.
    name: Option<&'a str>,
    /// Whether events are taken when the time is over, which not all can wait for.
    is_late: bool,
    /// Whether events go into a file and come here as well.
    is_both: bool,
}

/// What is said of it, and what is behind that.
fn how<'a, 's>(args: &'a [&'s str]) -> (How<'s>, &'a [&'s str]) {
    match args {
        ["as", name, rest @ ..] => {
            let (how, rest) = how(rest);
            (How { name: Some(name), ..how }, rest)
        }
        ["late", rest @ ..] => {
            let (how, rest) = how(rest);
            (How { is_late: true, ..how }, rest)
        }
        ["both", rest @ ..] => {
            let (how, rest) = how(rest);
            (How { is_both: true, ..how }, rest)
        }
        rest => (How::default(), rest),
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

fn record(plan: &Plan, seconds: u64, file: Option<&str>, how: How<'_>) -> Result<(), Failure> {
    platform::record(plan, seconds, file, how)
}

#[cfg(not(windows))]
mod platform {
    use collector_common::event::Guid;
    use windows_etw::plan::Plan;

    use super::{Failure, How};

    pub(super) fn look_up(_: &str) -> Option<Guid> {
        None
    }

    pub(super) fn record(_: &Plan, _: u64, _: Option<&str>, _: How<'_>) -> Result<(), Failure> {
        Err("sessions of ETW are on Windows; here `etw_record plan SCENARIO` tells what one would be asked for".into())
    }
}

#[cfg(windows)]
mod platform {
    use std::cell::Cell;
    use std::collections::{BTreeMap, HashSet, VecDeque};
    use std::rc::Rc;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::{Duration, Instant};

    use collector_common::event::Guid;
    use collector_common::ids::{Nanos, Tid};
    use windows_etw::decode::described::Schemas;
    use windows_etw::decode::kernel::KernelEvent;
    use windows_etw::dispatch::{Dispatch, Which};
    use windows_etw::part::Part;
    use windows_etw::plan::Plan;
    use windows_etw::session::{Live, Sessions, Settings, Target, console, providers};

    use super::{Failure, How};

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
        /// Samples of CPUs that had something to do: the others have no stacks.
        samples_busy: u64,
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
        /// Processes from before, by a closure.
        processes: u64,
        /// What went wrong with that.
        errors: u64,
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
            // What a stack is of is told by its time, also where it has a key in place of its addresses.
            let of = match KernelEvent::decode(record) {
                Ok(Some(KernelEvent::Stack(stack))) => Some(stack.event_ticks),
                Ok(Some(KernelEvent::StackKeyKernel(key) | KernelEvent::StackKeyUser(key))) => {
                    Some(key.event_ticks)
                }
                Ok(Some(KernelEvent::Sample(sample))) => {
                    self.samples_busy += u64::from(sample.tid != Tid(0));
                    None
                }
                _ => None,
            };
            if let Some(of) = of {
                self.stacks += 1;
                self.matched += u64::from(i64::try_from(of).is_ok_and(|of| self.times.contains(&of)));
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
    struct Counting {
        part: Part,
        seen: Seen,
        dispatch: Dispatch,
        processes: Rc<Cell<u64>>,
        sender: Sender<(Part, Seen)>,
    }

    impl Counting {
        fn new(part: Part, sender: Sender<(Part, Seen)>) -> Self {
            let (mut dispatch, processes) = (Dispatch::new(Schemas::default()), Rc::new(Cell::new(0)));
            let count = Rc::clone(&processes);
            dispatch.on(Which::Name("Windows Kernel/Process/DCStart".into()), move |event| {
                let count = Rc::clone(&count);
                let image = event.format().field_ref("ImageFileName");
                let image = image.ok_or_else(|| anyhow::anyhow!("it has no name"))?;
                event.add_closure(move |data| {
                    data.try_get_text(image)?;
                    count.set(count.get() + 1);
                    Ok(())
                });
                Ok(())
            });
            Self { part, seen: Seen::default(), dispatch, processes, sender }
        }

        fn add(&mut self, live: &Live<'_>) {
            self.seen.add(live);
            self.dispatch.take(&live.record, Nanos(0));
        }
    }

    impl Drop for Counting {
        fn drop(&mut self) {
            let (processes, errors) = (self.processes.get(), self.dispatch.errors().total());
            let seen = Seen { processes, errors, ..std::mem::take(&mut self.seen) };
            // There is nobody left to be told where this fails.
            let _ = self.sender.send((self.part, seen));
        }
    }

    pub(super) fn record(plan: &Plan, seconds: u64, file: Option<&str>, how: How<'_>) -> Result<(), Failure> {
        console::watch(|| {})?;
        let target = match file {
            None => Target::Live,
            Some(file) if how.is_both => Target::LiveAndFile(file.into()),
            Some(file) => Target::File(file.into()),
        };
        let mut settings = Settings { target, ..Settings::default() };
        if let Some(name) = how.name {
            name.clone_into(&mut settings.name);
        }
        let end = Instant::now() + Duration::from_secs(seconds);
        let (sender, receiver): (_, Receiver<(Part, Seen)>) = channel();
        let sessions = Sessions::start(plan, &settings, |part| {
            let sender = sender.clone();
            Box::new(move || {
                let mut counting = Counting::new(part, sender);
                Box::new(move |live| {
                    if how.is_late {
                        std::thread::sleep(end.saturating_duration_since(Instant::now()));
                    }
                    counting.add(live);
                })
            })
        })?;
        drop(sender);
        if let Some(restored) = sessions.restored() {
            println!("restored {restored}");
        }
        if let Some(interval) = sessions.interval() {
            println!("interval_100ns {}", interval.units());
        }
        while Instant::now() < end && !console::is_asked_to_end() && !sessions.has_ended() {
            std::thread::sleep(Duration::from_millis(50));
        }
        let stopped = sessions.stop().whole()?;
        println!("events {}", stopped.events);
        for unanswered in &stopped.unanswered {
            println!("unanswered {unanswered}");
        }
        for (part, losses) in &stopped.losses {
            println!("lost {part:?} {} {} {}", losses.events, losses.file_buffers, losses.live_buffers);
        }
        for (part, seen) in receiver {
            println!("described {part:?} {}", seen.described);
            println!("extended_stacks {part:?} {}", seen.with_stacks);
            println!("disordered {part:?} {}", seen.disordered);
            println!("samples_busy {part:?} {}", seen.samples_busy);
            println!("stacks {part:?} {}", seen.stacks);
            println!("stacks_matched {part:?} {}", seen.matched);
            println!("closures {part:?} {}", seen.processes);
            println!("closure_errors {part:?} {}", seen.errors);
            for ((provider, id, opcode), count) in &seen.events {
                println!("event {provider} {id} {opcode} {count}");
            }
        }
        Ok(())
    }
}
