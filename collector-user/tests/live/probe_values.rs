//! What is seen of probes. In: a probe, and a program that runs into it as often as it is told. Out: what its fields had each time.

use std::fs;
use std::path::Path;

use collector_common::event::{EventData, EventFieldRef};
use collector_common::sharing::Writable;
use collector_user::probe::Probe;
use collector_user::session::{Backend, SessionSettings};
use collector_user::source::{Hook, Settings};
use collector_user::tracefs::Tracefs;

use crate::scenarios;

/// How often the program is to do what it does.
pub(crate) const TIMES: usize = 100;

/// Tracefs' file of probes of programs.
pub(crate) const OF_PROGRAMS: &str = "uprobe_events";
/// Its file of probes of the kernel's functions.
pub(crate) const OF_THE_KERNEL: &str = "kprobe_events";

/// Probes that the kernel knows of, by the file that tells them; `None` where it can have none.
pub(crate) fn registered(file: &str) -> Option<Vec<String>> {
    let text = fs::read_to_string(Tracefs::open().unwrap().root().join(file)).ok()?;
    Some(text.lines().map(str::to_owned).collect())
}

/// The probe's events.
pub(crate) fn attach(probe: &str) -> Vec<Hook> {
    let probe = Probe::parse(probe).unwrap_or_else(|error| panic!("{error}"));
    probe.attach(&Tracefs::open().unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

/// Settings of a session of events alone.
pub(crate) fn of_events(backend: Backend, events: Vec<Hook>) -> SessionSettings {
    let sampling = Settings { clock: false, ..Settings::default() };
    SessionSettings { sampling, events, backend, ..SessionSettings::default() }
}

/// The program, and [`TIMES`].
pub(crate) fn command(program: &Path) -> [std::ffi::OsString; 2] {
    [program.into(), TIMES.to_string().into()]
}

/// What `read` makes of each occurrence of a probe that is one event, while the program runs. `file` is that of probes of its kind.
pub(crate) fn values<T: std::fmt::Debug + 'static>(
    backend: Backend,
    file: &str,
    probe: &str,
    program: &Path,
    fields: &[&str],
    read: impl Fn(&EventData<'_>, &[EventFieldRef]) -> anyhow::Result<T> + 'static,
) -> Vec<T> {
    let registered = || registered(file).unwrap();
    let before = registered();
    let hooks = attach(probe);
    assert_eq!(hooks.len(), 1, "{probe}");
    assert!(registered().len() > before.len());
    let seen = values_of(backend, hooks, program, fields, read);
    assert_eq!(registered(), before, "nothing is left behind");
    seen
}

/// The same of the one event of `hooks`, however it came about.
pub(crate) fn values_of<T: std::fmt::Debug + 'static>(
    backend: Backend,
    mut hooks: Vec<Hook>,
    program: &Path,
    fields: &[&str],
    read: impl Fn(&EventData<'_>, &[EventFieldRef]) -> anyhow::Result<T> + 'static,
) -> Vec<T> {
    let event = &mut hooks[0].event;
    let name = event.name().to_owned();
    let refs: Vec<_> = fields.iter().map(|name| event.format().field_ref(name).unwrap()).collect();
    let seen = Writable::new(Vec::new());
    let seeing = seen.clone();
    event.add_closure(move |data| {
        let value = read(data, &refs)?;
        Ok(seeing.write(|seen| seen.push(value))?)
    });
    let recording = scenarios::record(of_events(backend, hooks), &command(program));
    assert_eq!(recording.ledger.total_lost(), 0);
    // That closures failed, or the kernel missed hits, is told with the event's name. What a busy machine lets the recorder miss of
    // others, as their mappings, is no matter here.
    let of_event: Vec<_> = recording.warnings.iter().filter(|warning| warning.contains(&name)).collect();
    assert!(of_event.is_empty(), "{of_event:?}");
    seen.into_inner().unwrap()
}
