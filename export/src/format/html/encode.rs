//! The profile of the HTML page: an [`ExportMachine`](collector_common::record::ExportMachine) and its names in,
//! the columns below out. `viewer/decode.js` reads them; a change here is a change there.
//!
//! Every number is an unsigned LEB128 (see `columns.rs`). `[n]` is a column of `n` numbers. `string` is a
//! position in the strings. Times are microseconds.
//!
//! ```text
//! magic      the bytes "CLP4"
//! strings    n, byte length [n], then the UTF-8 bytes of all
//! system     host string, kernel string, architecture string, command string, account string (lines), CPUs,
//!            Unix time of time 0 in milliseconds, duration
//! kinds      n, name string [n], unit [n] (0 count, 1 nanoseconds, 2 bytes), period [n]; the one to be looked at first is first
//! modules    n, path string [n]
//! functions  n, name string [n], module + 1 or 0 for none [n], category [n] (`tables::Category`),
//!            source file string [n], first [n] and last line [n] of it that was seen or 0 for none
//! frames     n, function [n], 1 if found by a heuristic plus 2 if inlined [n]
//! nodes      n, depth [n], frame [n]
//! processes  n, pid [n], name string [n], facts string [n] (lines)
//! threads    n, process [n], tid [n], name string [n]
//! samples    n, time since the sample before [n], thread [n], node [n], CPU [n],
//!            kind [n] if there is more than one kind,
//!            1 and zigzag value [n], or 0 if every value is 1,
//!            1 and form [n] (`form::Form`), or 0 and the form that all have
//! ```
//!
//! Nodes are the prefix tree of all stacks, depth first: the parent of a node is the nearest one before it with
//! a smaller depth. Node 0 is above all; below it stand processes by name, below those the frames from the root
//! on. A sample's node is its leaf. Samples are in the order of time; processes and threads are those of samples.

use std::collections::HashMap;
use std::io::{self, Write};

use collector_common::ids::Nanos;
use collector_common::intern::{StackId, StringId};
use collector_common::record::{ExportMachine, ProcessId, Sample, SampleKind, ThreadId, Unit};

use super::columns::Columns;
use super::form::Form;
use super::tables::{Tables, ViewFrame};
use crate::format::Profile;
use crate::format::account::account;
use crate::format::facts::facts;
use crate::prefix_tree::{Paths, PrefixTree};

const MAGIC: &[u8; 4] = b"CLP4";

/// All kinds with their numbers, the one that is to be looked at first before the others.
fn kinds(machine: &ExportMachine) -> Vec<(usize, &SampleKind)> {
    let shown = machine.shown_kind().map(|kind| usize::from(kind.0));
    let mut kinds: Vec<_> = machine.kinds().iter().enumerate().collect();
    kinds.sort_by_key(|&(id, _)| Some(id) != shown);
    kinds
}

/// Writes `profile` in the layout of this module.
pub(super) fn encode(profile: Profile<'_>, out: impl Write) -> io::Result<()> {
    let machine = profile.machine;
    let mut tables = Tables::new(profile);
    let people = People::of(machine);
    let order = by_time(machine);
    let span = Span::of(machine, &order);
    let stacks = Stacks::of(machine, &mut tables);

    let system = machine.system();
    let account = account(machine).join("\n");
    let texts = [&system.host, &system.kernel, &system.architecture, &system.command, &account]
        .map(|text| u64::from(tables.string(text)));
    let kinds = kinds(machine);
    let kinds: Vec<_> =
        kinds.iter().map(|&(id, kind)| (id, tables.string(machine.string(kind.name)), kind)).collect();
    let process_names: Vec<u32> = people
        .processes
        .iter()
        .map(|&process| tables.string(machine.string(machine.process(process).name)))
        .collect();
    let process_facts: Vec<u32> =
        people.processes.iter().map(|&process| tables.string(&facts(machine, process).join("\n"))).collect();
    let thread_names: Vec<u32> = people
        .threads
        .iter()
        .map(|&thread| tables.string(machine.string(machine.thread(thread).name)))
        .collect();

    let mut columns = Columns::new(out);
    columns.bytes(MAGIC)?;
    columns.number(tables.strings().len() as u64)?;
    columns.column(tables.strings().iter().map(|string| string.len() as u64))?;
    tables.strings().iter().try_for_each(|string| columns.bytes(string.as_bytes()))?;

    columns.column(texts)?;
    columns.column([u64::from(system.cpus), span.start_unix_ms, span.duration_us])?;

    columns.number(kinds.len() as u64)?;
    columns.column(kinds.iter().map(|&(_, name, _)| u64::from(name)))?;
    columns.column(kinds.iter().map(|(_, _, kind)| unit(kind.unit)))?;
    columns.column(kinds.iter().map(|(_, _, kind)| kind.period))?;

    columns.number(tables.modules().len() as u64)?;
    columns.column(tables.modules().iter().map(|&path| u64::from(path)))?;

    let functions = tables.functions();
    columns.number(functions.len() as u64)?;
    columns.column(functions.iter().map(|function| u64::from(function.name)))?;
    columns.column(functions.iter().map(|function| u64::from(function.module)))?;
    columns.column(functions.iter().map(|function| function.category as u64))?;

    let sources = tables.sources();
    columns.column(sources.iter().map(|source| u64::from(source.file)))?;
    columns.column(sources.iter().map(|source| u64::from(source.lines.0)))?;
    columns.column(sources.iter().map(|source| u64::from(source.lines.1)))?;

    columns.number(tables.frames().len() as u64)?;
    columns.column(tables.frames().iter().map(|frame| u64::from(frame.function)))?;
    let marks = |frame: &ViewFrame| u64::from(frame.heuristic) + 2 * u64::from(frame.inlined);
    columns.column(tables.frames().iter().map(marks))?;

    columns.number(stacks.tree.frames.len() as u64)?;
    columns.column(stacks.tree.depths.iter().copied().map(u64::from))?;
    columns.column(stacks.tree.frames.iter().copied().map(u64::from))?;

    columns.number(people.processes.len() as u64)?;
    columns.column(people.processes.iter().map(|&process| u64::from(machine.process(process).pid.0)))?;
    columns.column(process_names.into_iter().map(u64::from))?;
    columns.column(process_facts.into_iter().map(u64::from))?;

    columns.number(people.threads.len() as u64)?;
    columns.column(people.threads.iter().map(|&thread| people.process(machine, thread)))?;
    columns.column(people.threads.iter().map(|&thread| u64::from(machine.thread(thread).tid.0)))?;
    columns.column(thread_names.into_iter().map(u64::from))?;

    let samples = || order.iter().filter_map(|&index| machine.samples().get(index as usize));
    columns.number(order.len() as u64)?;
    let mut last = 0;
    columns.column(samples().map(|sample| {
        let time = span.since_start(sample.time);
        time - std::mem::replace(&mut last, time)
    }))?;
    columns.column(samples().map(|sample| people.thread(sample.thread)))?;
    columns.column(samples().map(|sample| stacks.node(machine, &sample)))?;
    columns.column(samples().map(|sample| u64::from(sample.cpu)))?;
    if kinds.len() > 1 {
        let mut positions = vec![0; kinds.len()];
        kinds.iter().zip(0..).for_each(|(&(id, ..), position)| positions[id] = position);
        let position =
            |sample: Sample| positions.get(usize::from(sample.kind.0)).copied().unwrap_or_default();
        columns.column(samples().map(position))?;
    }
    let weighted = samples().any(|sample| sample.value != 1);
    columns.number(u64::from(weighted))?;
    if weighted {
        samples().try_for_each(|sample| columns.signed(sample.value))?;
    }
    let form = |sample: &Sample| Form::of(machine, sample);
    let first = samples().next().map_or(Form::Moment, |sample| form(&sample));
    let differ = samples().any(|sample| form(&sample) != first);
    columns.number(u64::from(differ))?;
    if differ {
        columns.column(samples().map(|sample| form(&sample) as u64))?;
    } else {
        columns.number(first as u64)?;
    }
    columns.into_inner().flush()
}

const fn unit(unit: Unit) -> u64 {
    match unit {
        Unit::Count => 0,
        Unit::Nanoseconds => 1,
        Unit::Bytes => 2,
    }
}

/// Positions of the samples in the order of time.
fn by_time(machine: &ExportMachine) -> Vec<u32> {
    let mut order: Vec<(Nanos, u32)> =
        machine.samples().iter().enumerate().map(|(index, sample)| (sample.time, index as u32)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, index)| index).collect()
}

/// The time that the page shows.
struct Span {
    start: Nanos,
    start_unix_ms: u64,
    duration_us: u64,
}

impl Span {
    /// From the recording's start to its end, widened to hold every sample. A start that is not known is the
    /// first sample's time.
    fn of(machine: &ExportMachine, order: &[u32]) -> Self {
        let system = machine.system();
        let time = |index: Option<&u32>| {
            index.and_then(|&index| machine.samples().get(index as usize)).map(|sample| sample.time)
        };
        let first = time(order.first()).unwrap_or(system.start);
        let start = if system.start == Nanos(0) { first } else { first.min(system.start) };
        let end = time(order.last()).unwrap_or(start).max(system.end).max(start);
        Self {
            start,
            // What is before 1970 has no place.
            start_unix_ms: system
                .clocks
                .unix_at(start)
                .map_or(0, |unix| (unix / 1_000_000).try_into().unwrap_or(0)),
            duration_us: (end.0 - start.0) / 1_000,
        }
    }

    fn since_start(&self, time: Nanos) -> u64 {
        time.0.saturating_sub(self.start.0) / 1_000
    }
}

/// Processes and threads that have samples, in the order of their ids.
struct People {
    processes: Vec<ProcessId>,
    threads: Vec<ThreadId>,
}

impl People {
    fn of(machine: &ExportMachine) -> Self {
        let mut seen = vec![false; machine.threads().len()];
        for sample in machine.samples().iter() {
            seen[sample.thread.0 as usize] = true;
        }
        let threads: Vec<ThreadId> =
            (0..seen.len()).filter(|&index| seen[index]).map(|index| ThreadId(index as u32)).collect();
        let mut processes: Vec<ProcessId> =
            threads.iter().map(|&thread| machine.thread(thread).process).collect();
        processes.sort_unstable();
        processes.dedup();
        Self { processes, threads }
    }

    fn thread(&self, thread: ThreadId) -> u64 {
        self.threads.partition_point(|&other| other < thread) as u64
    }

    fn process(&self, machine: &ExportMachine, thread: ThreadId) -> u64 {
        let process = machine.thread(thread).process;
        self.processes.partition_point(|&other| other < process) as u64
    }
}

/// The prefix tree and where samples stand in it.
struct Stacks {
    tree: PrefixTree,
    paths: HashMap<(StringId, StackId), u32>,
}

impl Stacks {
    fn of(machine: &ExportMachine, tables: &mut Tables<'_>) -> Self {
        let mut list = Paths::default();
        // The node above all is there without samples, too.
        list.push([0]);
        let mut paths = HashMap::new();
        for sample in machine.samples().iter() {
            let key = Self::key(machine, &sample);
            paths.entry(key).or_insert_with(|| {
                let process = tables.process(key.0);
                let mut path = vec![0, process];
                for &frame in machine.stacks().get(sample.stack).iter().rev() {
                    path.extend_from_slice(tables.frame(frame));
                }
                list.push(path) as u32
            });
        }
        Self { tree: PrefixTree::new(&list), paths }
    }

    fn key(machine: &ExportMachine, sample: &Sample) -> (StringId, StackId) {
        let process = machine.process(machine.thread(sample.thread).process);
        (process.name, sample.stack)
    }

    fn node(&self, machine: &ExportMachine, sample: &Sample) -> u64 {
        let path = self.paths.get(&Self::key(machine, sample)).copied().unwrap_or_default();
        u64::from(self.tree.ends[path as usize])
    }
}

#[cfg(test)]
mod tests {
    use collector_common::ids::{Pid, Tid};
    use collector_common::record::{AttributeListId, ClockAnchor, ESTIMATED, SampleKindId};

    use super::*;
    use crate::symbolize::Symbols;

    /// The span of a machine that was recorded from `start` to `end` with samples at `times`, in milliseconds.
    fn span(start: u64, end: u64, times: &[u64]) -> (u64, u64, u64) {
        let mut machine = ExportMachine::default();
        let system = machine.system_mut();
        (system.start, system.end) = (Nanos(start * 1_000_000), Nanos(end * 1_000_000));
        system.clocks.start =
            Some(ClockAnchor { monotonic: system.start, realtime: 5_000_000_000, boottime: None });
        let process = machine.add_process(Pid(1), "p", None, Nanos(0));
        let thread = machine.intern_thread(process, Tid(1), StringId::EMPTY);
        for time in times {
            machine.add_sample(&Sample {
                time: Nanos(time * 1_000_000),
                thread,
                stack: StackId::EMPTY,
                cpu: 0,
                kind: SampleKindId(0),
                value: 1,
                attributes: AttributeListId::NONE,
            });
        }
        let span = Span::of(&machine, &by_time(&machine));
        (span.start.0 / 1_000_000, span.start_unix_ms, span.duration_us)
    }

    #[test]
    fn the_span_is_that_of_the_recording() {
        assert_eq!(span(100, 400, &[300, 200]), (100, 5_000, 300_000));
        assert_eq!(span(100, 400, &[]), (100, 5_000, 300_000));
        assert_eq!(span(0, 0, &[]), (0, 5_000, 0));
    }

    #[test]
    fn no_sample_is_outside_the_span() {
        assert_eq!(span(100, 400, &[450, 60]), (60, 4_960, 390_000));
        assert_eq!(span(0, 0, &[900, 700]), (700, 5_700, 200_000));
    }

    #[test]
    fn numbers_of_the_embedding_program_are_told() {
        let mut machine = ExportMachine::default();
        machine.system_mut().account = vec!["3 lost".to_owned()];
        machine.add_custom_metric("queue", 7.5, "requests");
        let mut bytes = Vec::new();
        encode(Profile { machine: &machine, symbols: &Symbols::unresolved(&machine) }, &mut bytes).unwrap();
        let account = b"3 lost\nqueue: 7.5 requests";
        assert!(bytes.windows(account.len()).any(|part| part == account));
    }

    #[test]
    fn the_kind_to_be_looked_at_first_is_first() {
        let mut machine = ExportMachine::default();
        let [rare, main, absent] =
            ["rare", "main", "absent"].map(|name| machine.add_kind(name, Unit::Count, 1));
        let first = |machine: &ExportMachine| -> Vec<String> {
            kinds(machine).iter().map(|(_, kind)| machine.string(kind.name).to_owned()).collect()
        };
        assert_eq!(first(&machine), ["rare", "main", "absent"]);
        let process = machine.add_process(Pid(1), "p", None, Nanos(0));
        let thread = machine.intern_thread(process, Tid(1), StringId::EMPTY);
        for kind in [rare, main] {
            machine.add_sample(&Sample { thread, kind, value: 1, ..Sample::default() });
        }
        machine.set_main_kind(main);
        assert_eq!(first(&machine), ["main", "rare", "absent"]);
        let mut bytes = Vec::new();
        encode(Profile { machine: &machine, symbols: &Symbols::unresolved(&machine) }, &mut bytes).unwrap();
        // Samples are of the second kind and of the first one; all values are 1, and all forms one.
        assert!(bytes.ends_with(&[1, 0, 0, 0, 0]), "{bytes:?}");
        machine.set_main_kind(absent);
        assert_eq!(first(&machine), ["rare", "main", "absent"], "there is nothing to be looked at");
    }

    /// The last bytes of a recording of samples of `kind`, each with a value and whether it is estimated.
    fn forms(kind: &str, unit: Unit, period: u64, samples: &[(i64, bool)]) -> Vec<u8> {
        let mut machine = ExportMachine::default();
        let process = machine.add_process(Pid(1), "p", None, Nanos(0));
        let thread = machine.intern_thread(process, Tid(1), StringId::EMPTY);
        let kind = machine.add_kind(kind, unit, period);
        let pair = [ESTIMATED, "yes"].map(|text| machine.intern_string(text));
        let estimated = machine.attributes_mut().intern(&[(pair[0], pair[1])]);
        for &(value, is_estimated) in samples {
            let attributes = if is_estimated { estimated } else { AttributeListId::NONE };
            machine.add_sample(&Sample { thread, kind, value, attributes, ..Sample::default() });
        }
        let mut bytes = Vec::new();
        encode(Profile { machine: &machine, symbols: &Symbols::unresolved(&machine) }, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn estimates_are_told_from_durations() {
        let ends =
            |bytes: Vec<u8>, end: &[u8]| assert!(bytes.ends_with(end), "{:?}", &bytes[bytes.len() - 9..]);
        // Zigzag: 7, -2 and 7 are 14, 3 and 14.
        let off = [(7, false), (-2, true), (7, false)];
        ends(forms("off_cpu", Unit::Nanoseconds, 1, &off), &[1, 14, 3, 14, 1, 2, 5, 2]);
        ends(forms("off_cpu", Unit::Nanoseconds, 1, &off[..1]), &[1, 14, 0, 2]);
        ends(forms("lock", Unit::Nanoseconds, 1, &off[1..2]), &[1, 3, 0, 5]);
        ends(forms("cpu", Unit::Count, 1_000_000, &[(1, false), (1, false)]), &[0, 0, 1]);
        ends(forms("cpu", Unit::Count, 1_000_000, &[]), &[0, 0, 0]);
    }
}
