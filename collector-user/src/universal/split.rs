//! Files by the names of processes: `work.folded` becomes `work.nginx.folded`, `work.redis.folded` and so on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use collector_common::record::{ExportMachine, ProcessId, TimelineOwner};
use export::format::{Holds, Part as Held};

/// Characters of a process's name that are kept in that of a file, at most: the kernel's own limit.
const LONGEST: usize = 15;

/// A name of processes, and what their files are called after.
pub(super) struct Part {
    pub(super) comm: String,
    label: String,
}

/// The names of all processes that have samples, or events and spans of which a format holds any: so that nothing that is in a file of all
/// processes is in none. No two files are called alike, whatever the file system takes for different.
pub(super) fn parts(machine: &ExportMachine, holds: Holds) -> Vec<Part> {
    let process = |thread| machine.thread(thread).process;
    let mut present: BTreeSet<ProcessId> =
        machine.samples().iter().map(|sample| process(sample.thread)).collect();
    if holds.has(Held::Events) {
        present.extend(machine.event_records().iter().map(|(_, record, _)| process(record.thread)));
    }
    if holds.has(Held::Spans) {
        let timelines = machine.spans().iter().filter_map(|span| machine.timeline_of(span));
        present.extend(timelines.filter_map(|timeline| match timeline.owner {
            TimelineOwner::Recording => None,
            TimelineOwner::Process(process) => Some(process),
            TimelineOwner::Thread(thread) => Some(process(thread)),
        }));
    }
    let by_name = machine.split_by_comm();
    let named = by_name.into_iter().filter(|(_, processes)| processes.iter().any(|it| present.contains(it)));
    let mut taken = BTreeSet::new();
    let part = |(comm, _): (&str, _)| {
        let plain = plain(comm);
        let mut numbers = (2..).map(|number| format!("{plain}-{number}"));
        let mut label = plain.clone();
        while !taken.insert(label.to_lowercase()) {
            label = numbers.next().unwrap_or_default();
        }
        Part { comm: comm.to_owned(), label }
    };
    named.map(part).collect()
}

impl Part {
    /// Where it is written, beside `path`, of a format with this ending.
    pub(super) fn path(&self, path: &Path, ending: &str) -> PathBuf {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (stem, ending) = match name.strip_suffix(ending) {
            Some(stem) if !stem.is_empty() => (stem, ending),
            _ => (&*name, ""),
        };
        path.with_file_name(format!("{stem}.{}{ending}", self.label))
    }
}

/// A name without what leads elsewhere or means something to a shell.
fn plain(comm: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '+') { c } else { '_' };
    let name: String = comm.chars().take(LONGEST).map(plain).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use collector_common::ids::{Nanos, Pid, Tid};
    use collector_common::intern::StringId;
    use collector_common::record::{AttributeListId, EventFacts, EventKind, EventRecord, Sample, Unit};

    use super::*;

    #[test]
    fn each_name_has_a_file_of_its_own() {
        let mut machine = ExportMachine::default();
        let kind = machine.add_kind("cpu", Unit::Count, 1);
        for (pid, name) in (1..).zip(["a b", "a_b", "A b", "../x", "", "same", "same", "idle"]) {
            let process = machine.add_process(Pid(pid), name, None, Nanos(0));
            let thread = machine.intern_thread(process, Tid(pid), StringId::EMPTY);
            if name != "idle" {
                machine.add_sample(&Sample { thread, kind, value: 1, ..Sample::default() });
            }
        }
        let parts = parts(&machine, Holds::everything());
        let paths: Vec<_> = parts.iter().map(|part| part.path(Path::new("/out/x.pb.gz"), ".pb.gz")).collect();
        let expected = ["unnamed", "___x", "A_b", "a_b-2", "a_b-3", "same"];
        let expected = expected.map(|label| PathBuf::from(format!("/out/x.{label}.pb.gz")));
        assert_eq!(paths, expected);
        assert_eq!(parts[0].path(Path::new("plain"), ".csv"), Path::new("plain.unnamed"));
    }

    /// Each has something of one sort alone.
    #[test]
    fn what_a_format_holds_is_in_a_file() {
        let mut machine = ExportMachine::default();
        machine.event_records_mut().set_limit(1 << 20);
        let cpu = machine.add_kind("cpu", Unit::Count, 1);
        let [sampled, told, server, worker, _idle] = ["sampled", "told", "server", "worker", "idle"]
            .map(|name| machine.add_process(Pid(name.len() as u32), name, None, Nanos(0)));
        let [sampled, told, worker] =
            [sampled, told, worker].map(|it| machine.intern_thread(it, Tid(1), StringId::EMPTY));
        machine.add_sample(&Sample { thread: sampled, kind: cpu, value: 1, ..Sample::default() });
        let name = machine.intern_string("sched:sched_switch");
        let kind = EventKind {
            name,
            provider: StringId::EMPTY,
            short_name: StringId::EMPTY,
            id: 1,
            facts: EventFacts::default(),
            format: Arc::default(),
            samples: None,
        };
        let kind = machine.add_event_kind(kind).unwrap();
        machine.add_event_record(&EventRecord { thread: told, kind, ..EventRecord::default() }, b"").unwrap();
        for owner in [TimelineOwner::Process(server), TimelineOwner::Thread(worker), TimelineOwner::Recording]
        {
            let timeline = machine.add_timeline("work", owner);
            machine.begin_span(timeline, "a", Nanos(1), AttributeListId::NONE);
        }
        let named = |holds| parts(&machine, holds).into_iter().map(|part| part.comm).collect::<Vec<_>>();
        let nothing = Holds::nothing();
        assert_eq!(named(nothing), ["sampled"]);
        assert_eq!(named(nothing.with(&[Held::Events])), ["sampled", "told"]);
        assert_eq!(named(nothing.with(&[Held::Spans])), ["sampled", "server", "worker"]);
    }
}
