//! Probes that the kernel knows, each an event of its own in tracefs for as long as it is held.
//!
//! Their groups are called `collector_NAMESPACE_PID_N`: a pid says who made them in its own pid namespace alone, and all share
//! what the kernel knows. Those of a collector that was killed are removed by the next one of that namespace. The kernel removes
//! no probe that is in use: what records it must be closed first.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use collector_common::loss::LossCause;

use super::ProbeError;
use super::attach::USER;
use super::definition::{Location, calls_at_once, event_name, line};
use super::error::OF_THE_PLACE;
use super::misses::{Misses, name_of};
use super::spec::{Moment, Probe};
use crate::tracefs::Tracefs;

/// How the names of all groups begin.
const PREFIX: &str = "collector_";

/// The number of the next group.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A probe that exists. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Registered {
    /// Takes definitions and removals.
    control: File,
    /// For people: what has that file take a line.
    by_hand: ByHand,
    /// What it is called by who asked for it.
    probe: String,
    group: String,
    event: String,
    is_removed: bool,
    is_of_programs: bool,
    moment: Moment,
    /// How often the kernel had not told of a hit when the recording began.
    missed_before: u64,
    /// What was asked for and is not recorded, or what recording it does to the program.
    note: Option<String>,
}

impl Registered {
    /// Defines one event with all of `locations`, by the control file `file`, `uprobe_events` or `kprobe_events`.
    pub(super) fn new(
        tracefs: &Tracefs,
        file: &'static str,
        probe: &Probe,
        called: &str,
        locations: &[Location],
    ) -> Result<Self, ProbeError> {
        let failed = |source| ProbeError::Control { probe: probe.name.clone(), file, source };
        let control = tracefs.open_control(file).map_err(failed)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let group = format!("{PREFIX}{}_{}_{number}", pid_namespace(), process::id());
        // From the first location on there is something to be removed.
        let is_of_programs = file == USER;
        let mut registered = Self {
            control,
            by_hand: ByHand::new(tracefs, file),
            probe: probe.name.clone(),
            group,
            event: event_name(called),
            is_removed: false,
            is_of_programs,
            moment: probe.moment,
            missed_before: 0,
            note: None,
        };
        let calls = calls_at_once(probe.moment, !is_of_programs, locations.len());
        let line =
            |location: &Location| line(probe.moment, calls, &registered.group, &registered.event, location);
        let define = |location: &Location| registered.write(&line(location));
        let refused = define_each(locations, define).map_err(|(location, source)| ProbeError::Refused {
            probe: probe.name.clone(),
            told: told(tracefs, &registered.path()),
            definition: line(location).trim().to_owned(),
            source,
        })?;
        registered.note = left_out(&probe.name, locations.len(), &refused);
        if !is_of_programs && probe.moment == Moment::Return && calls.is_none() {
            registered.add_note(&missed_returns(&probe.name, locations.len()));
        }
        Ok(registered)
    }

    /// Places that the kernel does not let be probed, where there are others that it does, and what recording does to the program.
    pub(crate) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Has it told, too.
    pub(super) fn add_note(&mut self, note: &str) {
        self.note = Some(self.note.take().map_or(note.to_owned(), |before| format!("{before}; {note}")));
    }

    /// Whether it is in programs, and not in the kernel.
    pub(crate) fn is_of_programs(&self) -> bool {
        self.is_of_programs
    }

    /// The recording begins.
    pub(crate) fn begin(&mut self, misses: &Misses) {
        self.missed_before = misses.of(&self.path());
    }

    /// Hits since then of which the kernel did not tell, if there were any.
    pub(crate) fn missed(&self, misses: &Misses) -> Option<Missed> {
        let count = misses.of(&self.path()).checked_sub(self.missed_before)?;
        (count > 0).then(|| Missed { probe: self.probe.clone(), moment: self.moment, count })
    }

    /// As removals and definitions have it.
    fn path(&self) -> String {
        format!("{}/{}", self.group, self.event)
    }

    /// What the event is called in tracefs.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.group, self.event)
    }

    /// Has the kernel forget it. Where it does not, that is for people, and said once.
    pub(crate) fn remove(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.is_removed, true) {
            return None;
        }
        let (path, probe) = (self.path(), &self.probe);
        match self.write(&format!("-:{path}\n")) {
            // Nothing was defined.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(format!(
                "{probe}: its event {} stays in the kernel: {error}; when nobody uses it any more, remove it with {}, as the next recording of \
                 a probe does",
                self.name(),
                self.by_hand.removes(&path)
            )),
            Ok(()) => None,
        }
    }

    /// A definition is one write.
    fn write(&self, line: &str) -> io::Result<()> {
        match (&self.control).write(line.as_bytes())? {
            written if written == line.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}

/// Hits of a probe of which the kernel did not tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missed {
    probe: String,
    moment: Moment,
    pub(crate) count: u64,
}

impl Missed {
    /// Mostly: the kernel has one count for returns that it had no room for, and those of calls that came while their CPU was in a probe.
    pub(crate) fn cause(&self) -> LossCause {
        match self.moment {
            Moment::Entry => LossCause::NotRun,
            Moment::Return => LossCause::NoRoom,
        }
    }

    /// For people. Where `are_counted`, all of them would have been recorded.
    pub(crate) fn told(&self, are_counted: bool) -> String {
        let Self { probe, moment, count } = self;
        let why = match moment {
            Moment::Entry => {
                "calls were not recorded, as their CPU was in another probe: probe other functions"
            }
            Moment::Return => {
                "returns were not recorded, as more calls waited in the functions than the kernel keeps, or came while their CPU was in another \
                 probe: probe fewer functions, or some that return sooner"
            }
        };
        let whose = if are_counted { "" } else { "; those that were not asked for are among them" };
        format!("{probe}: {count} {why}{whose}")
    }
}

/// Defines an event's locations one by one, and gives those that can't be probed: the kernel refuses what its own probes run
/// through, what is marked `notrace`, and what is not at an instruction. Where all are refused, or something else is wrong, that
/// is the error, with the location.
fn define_each(
    locations: &[Location],
    mut define: impl FnMut(&Location) -> io::Result<()>,
) -> Result<Vec<&str>, (&Location, io::Error)> {
    let mut refused = Vec::new();
    let mut first = None;
    for location in locations {
        if let Err(error) = define(location) {
            if !error.raw_os_error().is_some_and(|number| OF_THE_PLACE.contains(&number)) {
                return Err((location, error));
            }
            refused.push(location.place.as_str());
            first.get_or_insert((location, error));
        }
    }
    match first {
        Some(first) if refused.len() == locations.len() => Err(first),
        _ => Ok(refused),
    }
}

/// For people; nothing where nothing was refused.
pub(super) fn left_out(probe: &str, all: usize, refused: &[&str]) -> Option<String> {
    /// As many are named.
    const MOST: usize = 8;
    let named: Vec<&str> = refused.iter().take(MOST).copied().collect();
    let more = match refused.len().checked_sub(MOST) {
        Some(more @ 1..) => format!(" and {more} more"),
        _ => String::new(),
    };
    let count = refused.len();
    (count > 0).then(|| {
        format!("{probe}: the kernel lets {count} of {all} places not be probed: {}{more}", named.join(", "))
    })
}

/// For people: what is not met of returns of functions for which [`calls_at_once`] is nothing, so that there is as much room as the kernel itself
/// sees to.
pub(super) fn missed_returns(probe: &str, functions: usize) -> String {
    format!(
        "{probe}: of {functions} functions at once the kernel keeps few calls each (two for each CPU, or ten): returns of others, while so many wait in them, \
         are not met"
    )
}

/// The number of this process's pid namespace (`pid_namespaces(7)`); 0 where `/proc` is not there to tell.
fn pid_namespace() -> u64 {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let number = link.to_str().and_then(|link| link.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok());
    number.unwrap_or(0)
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(stays) = self.remove() {
            log::warn!("{stays}");
        }
    }
}

/// For people: how a control file of tracefs is given a line.
#[derive(Debug)]
struct ByHand {
    path: PathBuf,
    is_mounted: bool,
}

impl ByHand {
    fn new(tracefs: &Tracefs, file: &str) -> Self {
        let is_mounted = tracefs.is_mounted();
        let root = if is_mounted { tracefs.root() } else { Path::new(Tracefs::MOUNTED[0]) };
        Self { path: root.join(file), is_mounted }
    }

    /// What removes the event `name`, `GROUP/EVENT`. It is added to the file: to write over that removes all probes.
    fn removes(&self, name: &str) -> String {
        let [folder, ..] = Tracefs::MOUNTED;
        let mount =
            if self.is_mounted { String::new() } else { format!("mount -t tracefs tracefs {folder}; ") };
        format!("`sudo sh -c \"{mount}echo '-:{name}' >> {}\"`", self.path.display())
    }
}

/// What the kernel says about the definition of `name` that it has refused; it tells from Linux 5.2 on.
fn told(tracefs: &Tracefs, name: &str) -> Option<String> {
    let log = tracefs.read("error_log").ok()?;
    let lines: Vec<&str> = log.lines().collect();
    let (said, _) = lines.windows(2).rev().filter_map(|pair| Some((*pair.first()?, *pair.get(1)?))).find(
        |(said, command)| said.contains("error: ") && command.contains("Command: ") && command.contains(name),
    )?;
    Some(said.split_once("error: ")?.1.trim().to_owned())
}

/// Removes what collectors have left that do not run any more.
pub(super) fn remove_left(tracefs: &Tracefs, file: &'static str) -> io::Result<()> {
    let mut names: Vec<String> = tracefs.read(file)?.lines().filter_map(left).collect();
    names.dedup();
    for name in names {
        let mut control = tracefs.open_control(file)?;
        // Another collector may have come first.
        if let Err(error) = control.write_all(format!("-:{name}\n").as_bytes()) {
            let by_hand = ByHand::new(tracefs, file).removes(&name);
            log::warn!(
                "the probe {name}, which an earlier collector has left, stays: {error}; remove it with {by_hand}"
            );
        }
    }
    Ok(())
}

/// `GROUP/EVENT` of a line, if its collector was of this pid namespace and does not run.
fn left(line: &str) -> Option<String> {
    let name = name_of(line)?;
    let mut numbers = name.strip_prefix(PREFIX)?.split('_');
    let namespace: u64 = numbers.next()?.parse().ok()?;
    let pid: u32 = numbers.next()?.parse().ok()?;
    numbers.next()?;
    // One that has ended and waits for its parent has no program any more.
    let runs = Path::new("/proc").join(pid.to_string()).join("exe").read_link().is_ok();
    (namespace == pid_namespace() && !runs).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_of_a_collector_that_does_not_run() {
        let namespace = pid_namespace();
        let own = format!("p:collector_{namespace}_{}_0/f /bin/x:0x10 a=%di:u64", process::id());
        assert_eq!(left(&own), None);
        // Above the largest pid that Linux gives.
        let gone = format!("collector_{namespace}_4194305_3/f");
        assert_eq!(left(&format!("r:{gone} /bin/x:0x10")).as_deref(), Some(gone.as_str()));
        let elsewhere = format!("p:collector_{}_4194305_3/f /bin/x:0x10", namespace + 1);
        for other in ["p:probe_x/f /bin/x:0x10", "p:collector_x_1_1/f /x:0", "", &gone, &elsewhere] {
            assert_eq!(left(other), None, "{other}");
        }
    }

    fn of_file(control: File, is_mounted: bool) -> Registered {
        let path = "/sys/kernel/tracing/uprobe_events".into();
        Registered {
            control,
            by_hand: ByHand { path, is_mounted },
            probe: "uprobe:/bin/x:f".to_owned(),
            group: "collector_1_2_0".to_owned(),
            event: "f".to_owned(),
            is_removed: false,
            is_of_programs: true,
            moment: Moment::Return,
            missed_before: 0,
            note: None,
        }
    }

    #[test]
    fn what_stays_in_the_kernel_is_told_with_what_removes_it() {
        // It has no room for anything.
        let full = || File::options().append(true).open("/dev/full").unwrap();
        let mut stays = of_file(full(), true);
        assert_eq!(
            stays.remove().as_deref(),
            Some(
                "uprobe:/bin/x:f: its event collector_1_2_0:f stays in the kernel: No space left on device (os error 28); when nobody uses it \
                 any more, remove it with `sudo sh -c \"echo '-:collector_1_2_0/f' >> /sys/kernel/tracing/uprobe_events\"`, as the next recording of \
                 a probe does"
            )
        );
        assert_eq!(stays.remove(), None, "it is said once");
        let says = of_file(full(), false).remove().unwrap();
        assert!(says.contains("sh -c \"mount -t tracefs tracefs /sys/kernel/tracing; echo '-:"), "{says}");
        let takes = File::options().append(true).open("/dev/null").unwrap();
        assert_eq!(of_file(takes, true).remove(), None);
    }

    #[test]
    fn what_was_missed_before_the_recording_is_none_of_it() {
        let misses = |count| Misses::of_one("collector_1_2_0/f", count);
        let mut probe = of_file(File::options().append(true).open("/dev/null").unwrap(), true);
        probe.begin(&misses(5));
        assert_eq!([5, 0].map(|count| probe.missed(&misses(count))), [None, None]);
        let missed = probe.missed(&misses(7)).unwrap();
        assert_eq!((missed.count, missed.cause()), (2, LossCause::NoRoom));
        let says = missed.told(true);
        assert!(
            says.starts_with("uprobe:/bin/x:f: 2 returns were not recorded") && says.ends_with("sooner"),
            "{says}"
        );
        let of_calls = Missed { moment: Moment::Entry, ..missed };
        let says = of_calls.told(false);
        assert!(
            says.contains("2 calls were not recorded") && says.ends_with("not asked for are among them"),
            "{says}"
        );
        assert_eq!(of_calls.cause(), LossCause::NotRun);
    }

    fn places(names: &[&str]) -> Vec<Location> {
        let location = |name: &&str| Location { place: (*name).to_owned(), fetched: Vec::new() };
        names.iter().map(location).collect()
    }

    #[test]
    fn what_can_not_be_probed_is_left_out_and_named() {
        let all = places(&["a", "notrace", "b", "blacklisted"]);
        let mut defined = Vec::new();
        let refused = define_each(&all, |location| match location.place.as_str() {
            "notrace" => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            "blacklisted" => Err(io::Error::from_raw_os_error(libc::EILSEQ)),
            place => {
                defined.push(place.to_owned());
                Ok(())
            }
        });
        let note = left_out("kprobe:*", all.len(), &refused.unwrap()).unwrap();
        assert_eq!(defined, ["a", "b"]);
        assert!(note.contains("2 of 4") && note.ends_with("notrace, blacklisted"), "{note}");
        let many: Vec<String> = (0..20).map(|number| format!("f{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let note = left_out("kprobe:*", 30, &many).unwrap();
        assert!(note.contains("20 of 30") && note.ends_with("f7 and 12 more"), "{note}");
        assert_eq!(left_out("kprobe:*", 3, &[]), None);
    }

    #[test]
    fn what_is_refused_altogether_fails() {
        let all = places(&["a", "b"]);
        let refuse = |number| define_each(&all, move |_| Err(io::Error::from_raw_os_error(number)));
        for number in [libc::EINVAL, libc::EPERM] {
            let (location, error) = refuse(number).unwrap_err();
            assert_eq!((location.place.as_str(), error.raw_os_error()), ("a", Some(number)));
        }
        let mut first = true;
        let denied = define_each(&all, |_| {
            let is_first = std::mem::replace(&mut first, false);
            if is_first { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EACCES)) }
        });
        assert_eq!(denied.unwrap_err().0.place, "b", "not a matter of the place");
    }
}
