//! Probes that the kernel knows, each an event of its own in tracefs for as long as it is held.
//!
//! Their groups are called `collector_PID_N`. Those of a collector that was killed are removed by the next one. The kernel
//! removes no probe that is in use: what records it must be closed first.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use super::ProbeError;
use super::definition::{Location, event_name, line};
use super::spec::Probe;
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
    group: String,
    event: String,
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
        let failed =
            |source| ProbeError::Tracefs(crate::tracefs::TracefsError::File { path: file.into(), source });
        let control = tracefs.open_control(file).map_err(failed)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let group = format!("{PREFIX}{}_{number}", process::id());
        // From the first location on there is something to be removed.
        let registered = Self { control, group, event: event_name(called) };
        for location in locations {
            let line = line(probe.moment, &registered.group, &registered.event, location);
            registered.write(&line).map_err(|source| ProbeError::Refused {
                probe: probe.name.clone(),
                told: told(tracefs, &format!("{}/{}", registered.group, registered.event)),
                definition: line.trim().to_owned(),
                source,
            })?;
        }
        Ok(registered)
    }

    /// What the event is called in tracefs.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.group, self.event)
    }

    /// A definition is one write.
    fn write(&self, line: &str) -> io::Result<()> {
        match (&self.control).write(line.as_bytes())? {
            written if written == line.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let Self { group, event, .. } = &*self;
        match self.write(&format!("-:{group}/{event}\n")) {
            // Nothing was defined.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                log::warn!("the probe {group}:{event} stays until the next recording of one: {error}");
            }
            Ok(()) => {}
        }
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
            log::warn!("the probe {name}, which an earlier collector has left, can't be removed: {error}");
        }
    }
    Ok(())
}

/// `GROUP/EVENT` of a line, if its collector does not run.
fn left(line: &str) -> Option<String> {
    let name = line.split_once(':')?.1.split(' ').next()?;
    let pid = name.strip_prefix(PREFIX)?.split('_').next()?;
    let pid: u32 = pid.parse().ok()?;
    // One that has ended and waits for its parent has no program any more.
    let runs = Path::new("/proc").join(pid.to_string()).join("exe").read_link().is_ok();
    (!runs).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_of_a_collector_that_does_not_run() {
        let own = format!("p:collector_{}_0/f /bin/x:0x10 a=%di:u64", process::id());
        assert_eq!(left(&own), None);
        // Above the largest pid that Linux gives.
        let gone = "r:collector_4194305_3/f /bin/x:0x10";
        assert_eq!(left(gone).as_deref(), Some("collector_4194305_3/f"));
        for other in ["p:probe_x/f /bin/x:0x10", "p:collector_x_1/f /x:0", "", "collector_4194305_3/f"] {
            assert_eq!(left(other), None, "{other}");
        }
    }
}
