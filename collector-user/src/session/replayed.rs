//! A session that is told what another one was, by its journal.

use std::env;
use std::io::Read;
use std::time::SystemTime;

use collector_common::ids::{Nanos, Pid};
use collector_common::record::{Samples, SystemInfo};

use super::dispatch::Dispatch;
use super::ending::{Recorded, put_together};
use super::error::SessionError;
use super::run::Session;
use super::settings::SessionSettings;
#[cfg(feature = "debuginfod")]
use crate::debuginfod::Servers;
use crate::event_clock::EventTimes;
use crate::journal::{Item, Journal, JournalError, JournalSource, OF_PERF, Start};
use crate::modules::{Believed, RecordedFiles};
use crate::recorder::{Kept, Recorder};
use crate::recording::Recording;
use crate::replay::{KernelBuild, KernelPlace};
use crate::source::sideband::LAYOUT;
use crate::source::{Hook, Source as _};
use crate::spill::spill_samples;
use crate::this_machine::{has_name, is_kernel, kernel_symbols, user};

impl Session {
    /// Makes a recording of a journal, as the session did that wrote it, without the kernel and the processes that it is of. `settings`
    /// are [`Journal::settings`], with closures, filters, hooks on samples and limits of memory of the caller's.
    ///
    /// # Errors
    /// When the journal is damaged or ends in the middle, when the settings' events are others than it has, or when it does not tell what
    /// their clock for closures showed.
    pub fn replay<R: Read>(
        journal: Journal<R>,
        settings: SessionSettings,
    ) -> Result<Recording, SessionError> {
        let (start, mut source) = journal.into_source();
        let SessionSettings {
            events,
            event_clock,
            sample_hooks,
            event_bytes,
            events_passed_over,
            sample_bytes,
            ..
        } = settings;
        check(&start, &events)?;
        let Start { system, sampling, names_threads, kernel, .. } = start;
        let build = KernelBuild {
            id: None,
            release: system.kernel.rsplit(' ').next(),
            architecture: Some(&system.architecture),
        };
        let own_symbols = kernel_symbols().filter(|_| build.may_run_here());
        let mut recorder = Recorder::of_journal(files(&system));
        *recorder.machine_mut().system_mut() = system;
        if let Some(command) = sampling.targets.command {
            recorder.set_waiting(Pid(command));
        }
        if names_threads {
            recorder.name_threads(sampling.targets.comm.as_deref());
        }
        recorder.add_sample_hooks(sample_hooks);
        recorder.set_event_times(EventTimes::in_clock(event_clock));
        spill_samples(recorder.machine_mut(), sample_bytes.unwrap_or(Samples::LIMIT));
        let clock = sampling.clock.then(|| sampling.period());
        let kept = Kept { bytes: event_bytes, passed_over: &events_passed_over };
        let dispatch = Dispatch::new(clock, &sampling, events, kept, &mut recorder);
        let kernel = kernel.map(|(symbol, address)| KernelPlace { symbol: symbol.into(), address });
        let recorded = Recorded {
            recorder,
            dispatch,
            capture: None,
            backend: source.name(),
            frequency: sampling.frequency,
            kernel_symbols: kernel.and_then(|kernel| kernel.find(own_symbols)),
        };
        run(recorded, &mut source)
    }
}

/// Whether the settings' events are those that there are records of.
fn check(start: &Start, events: &[Hook]) -> Result<(), JournalError> {
    let are_same = start.events.len() == events.len()
        && start.events.iter().zip(events).all(|(recorded, hook)| recorded.is_of(hook));
    if are_same {
        return Ok(());
    }
    Err(JournalError::Events {
        recorded: start.events.iter().map(|event| event.name.clone()).collect(),
        named: events.iter().map(|hook| hook.event.name().to_owned()).collect(),
    })
}

/// Where its files are looked for. All that had a build id have one in the journal; what they were without one, no date tells.
fn files(system: &SystemInfo) -> RecordedFiles {
    let release = system.kernel.rsplit(' ').next();
    let mut files = RecordedFiles::new(SystemTime::now(), is_kernel(release, Some(&system.architecture)));
    if has_name(Some(&system.host)) {
        let caller = env::var("SUDO_UID").ok().and_then(|user| user.parse().ok());
        let users = [user(), caller].into_iter().flatten().collect();
        files.believe(Believed { users, started: None }, true);
    }
    #[cfg(feature = "debuginfod")]
    files.ask_servers(Servers::of_environment());
    files
}

/// Does what the session did.
fn run<R: Read>(mut recorded: Recorded, source: &mut JournalSource<R>) -> Result<Recording, SessionError> {
    let Recorded { recorder, dispatch, .. } = &mut recorded;
    // It is in what was told.
    let clock = || Nanos(0);
    let mut is_in_answers = false;
    loop {
        let item = source.item()?;
        let was_in_answers = std::mem::replace(&mut is_in_answers, matches!(item, Item::Answers(_)));
        match item {
            Item::Answers(notes) => {
                if !was_in_answers {
                    recorder.forget_told();
                }
                recorder.tell(notes).ok_or_else(|| source.damaged("list of answers"))?;
            }
            Item::File(file) => {
                if let Some(files) = recorder.modules_mut().recorded_mut() {
                    files.set_found(&file);
                }
            }
            Item::Scan => {
                recorder.scan(clock).map_err(|_| source.damaged("list of processes"))?;
            }
            Item::Sideband(record, time) => match record.parse(&LAYOUT) {
                Ok(parsed) => recorder.apply(&parsed, time),
                Err(_) => return Err(source.damaged(OF_PERF).into()),
            },
            Item::Look => recorder.look_at_processes(clock),
            Item::Clocks(reading) => recorder.event_times_mut().take(reading),
            Item::Records => {
                let times = recorder.event_times_mut();
                if !times.are_known() {
                    return Err(JournalError::NoClock { clock: times.clock() }.into());
                }
                source.drain(Nanos(u64::MAX), &mut |record| {
                    dispatch.take(recorder, record);
                });
            }
            Item::Round(until) => {
                // Nobody is to be told of them.
                dispatch.end_round(recorder, until);
                recorder.take_ended_processes(until);
                recorder.take_left_mappings();
                recorder.take_outer_places();
                recorder.prune(until);
            }
            Item::Rescan(now) => recorder.rescan(now),
            Item::End => break,
        }
    }
    recorder.name_users();
    let failed = SessionError::system("the counters of what was lost can't be read");
    let account = source.close(recorder.ledger_mut()).map_err(failed)?;
    let ending = source.ending().unwrap_or_default();
    recorded.backend = backend(&ending.backend);
    Ok(put_together(recorded, account, ending))
}

/// What recorded, by its name.
fn backend(name: &str) -> &'static str {
    ["ebpf", "perf"].into_iter().find(|known| *known == name).unwrap_or("journal")
}
