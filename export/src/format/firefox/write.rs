//! A [`Profile`] in, a compressed processed profile out.
//!
//! Times are from the first thing that is told of, which has its time of day. A process's threads have its start and end: their
//! own are not recorded. A main thread is called after its process, as the format has it; another has the last of its names,
//! with a marker wherever it was sampled under a new one. The attributes and the CPU of samples in the call tree have no place.
//! Addresses of allocations are not recorded, so that there are none.
//!
//! The account of losses, and what else is told of the recording as a whole, are markers at its start; what is told of a process beside
//! its name are markers at the start of its first thread.
//!
//! Spans are markers that last as long, in a row for each timeline: of their thread, of the first one of their process, or of the first of
//! all. A thread that has nothing else is there, too.
//!
//! What is shown lasts from the first sample to the last. The first thread has two more, without a stack and a weight, so that
//! this is all of the recording's time, and there is a thread even if nothing was recorded, without which nothing is shown. Where a thread did
//! not run, or wait, between two of its samples, there are such samples as well: each sample is shown until the next.
//!
//! The format has a tree of calls for each thread, and the crate holds all of a profile until it is written. So there is a profile for
//! some threads after the other, which knows the others by name, and of which only these threads are written.

use std::io::{self, BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Deserialize;

use super::parts::Parts;
use super::plan::Plan;
use super::threads::Threads;
use crate::format::{ExportFormat, Holds, Part, Profile};

/// Bytes that are collected before they are compressed.
const PIECE: usize = 64 << 10;

/// Steps of stacks that threads of one profile have, of which the last one may have more.
const STEPS: usize = 1 << 20;

/// The format of Firefox Profiler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Firefox;

impl ExportFormat for Firefox {
    fn name(&self) -> &'static str {
        "firefox"
    }

    fn ending(&self) -> &'static str {
        ".firefox.json.gz"
    }

    fn description(&self) -> &'static str {
        "threads with samples, allocations and markers in time, for Firefox Profiler"
    }

    fn holds(&self) -> Holds {
        Holds::everything()
            .without(&[
                Part::EarlyTimes,
                Part::Unsampled,
                Part::Programs,
                Part::Parents,
                Part::FileDetails,
                Part::Mappings,
                Part::FrameRules,
                Part::System,
                Part::Events,
                Part::Tables,
            ])
            .with_some(&[Part::Cpus, Part::Attributes, Part::Estimates])
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(PIECE, GzEncoder::new(out, Compression::new(LEVEL)));
        let plan = Plan::of(profile);
        // What each profile knows of all threads and frames is to be less than what it is made for.
        let steps = STEPS.max(4 * (plan.threads.len() + profile.machine.frames().len()));
        write(&plan, steps, &mut out)?;
        let compressed = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        compressed.finish()?.flush()
    }
}

/// How hard is tried to compress well.
const LEVEL: u32 = 2;

/// Writes profiles of threads until their stacks have so many steps.
fn write(plan: &Plan<'_>, steps: usize, out: &mut impl Write) -> io::Result<()> {
    let whole = plan.whole()?;
    let has_clock = plan.has_clock();
    Parts { profile: &whole, has_clock }.write_before_threads(out)?;
    let order = order(plan)?;
    let mut next = 0;
    let mut is_first = true;
    while next < order.len() {
        let mut threads = Threads::of(plan);
        let since = next;
        while next < order.len() && threads.steps() < steps {
            if let Some(thread) = order[next] {
                threads.fill(thread);
            }
            next += 1;
        }
        let is_written = |position| (since..next).contains(&position) && order[position].is_some();
        let (profile, lines) = threads.into_profile();
        let lines = |position: usize| lines.get((*order.get(position)?)?);
        let parts = Parts { profile: &profile, has_clock };
        parts.write_threads(is_written, &lines, &mut is_first, out)?;
    }
    Parts { profile: &whole, has_clock }.write_after_threads(out)
}

/// A thread of a written profile.
#[derive(Deserialize)]
struct Written {
    samples: Samples,
}

#[derive(Deserialize)]
struct Samples {
    weight: Vec<usize>,
}

/// In what order the crate writes threads: positions in the plan, or none for the one that knows libraries. It is asked by profiles
/// in which a sample of each weighs that position.
fn order(plan: &Plan<'_>) -> io::Result<Vec<Option<usize>>> {
    let mut json = b"[".to_vec();
    let parts = Parts { profile: &Threads::of(plan).into_numbered(), has_clock: plan.has_clock() };
    parts.write_threads(|_| true, &|_| None, &mut true, &mut json)?;
    json.push(b']');
    let threads: Vec<Written> = serde_json::from_slice(&json)?;
    Ok(threads.iter().map(|thread| thread.samples.weight.first().copied()).collect())
}

#[cfg(test)]
mod tests {
    use collector_common::ids::{Nanos, Pid, Svma, Tid};
    use collector_common::record::{
        AttributeListId, ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleKind, Sample, Unit,
    };
    use serde_json::Value;

    use super::*;
    use crate::symbolize::Symbols;

    /// Three processes, the first of which began last, so that it is written last: each with two threads, of which the second is called
    /// something else later. Each thread has a sample of each kind on stacks of its own; libraries come in another order than their frames.
    fn recording() -> (ExportMachine, Symbols) {
        let mut machine = ExportMachine::default();
        machine.system_mut().account = vec!["nothing is lost".to_owned()];
        let kinds = [
            ("cpu", Unit::Count, 1_000_000),
            ("alloc_space", Unit::Bytes, 1),
            ("off_cpu", Unit::Nanoseconds, 1),
        ];
        let kinds = kinds.map(|(name, unit, period)| machine.add_kind(name, unit, period));
        let mut frames: Vec<FrameId> = Vec::new();
        for library in 0..3 {
            let path = machine.intern_string(&format!("/lib/{library}.so"));
            let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
            frames.extend((0..4).map(|function| {
                let (address, flags) = (Svma(0x1000 + function * 16), FrameFlags(0));
                machine.intern_frame(Frame { module, address, flags })
            }));
        }
        for number in 0..3_u32 {
            let start = Nanos(u64::from(10 - number));
            let process = machine.add_process(Pid(100 + number), "prog", None, start);
            for (thread, name) in [(0, "prog"), (1, "worker"), (1, "renamed")] {
                let name = machine.intern_string(name);
                let thread = machine.intern_thread(process, Tid(100 + number + 50 * thread), name);
                for (at, kind) in kinds.into_iter().enumerate() {
                    let seed = number as usize * 5 + thread.0 as usize + at;
                    let path: Vec<FrameId> = (0..4).map(|step| frames[(seed * 7 + step * 5) % 12]).collect();
                    let stack = machine.intern_stack(&path);
                    let time = Nanos(20 + seed as u64);
                    let attributes = AttributeListId::NONE;
                    machine.add_sample(&Sample { time, thread, stack, cpu: 0, kind, value: 9, attributes });
                }
            }
        }
        let mut symbols = Symbols::unresolved(&machine);
        for (frame, number) in frames.iter().zip(0..) {
            symbols.set(*frame, &format!("f{number}"), &format!("f{number}"));
        }
        (machine, symbols)
    }

    fn written(plan: &Plan<'_>, steps: usize) -> Value {
        let mut json = Vec::new();
        write(plan, steps, &mut json).unwrap();
        serde_json::from_slice(&json).unwrap()
    }

    #[test]
    fn parts_are_what_the_crate_writes_at_once() {
        let (machine, symbols) = recording();
        let plan = Plan::of(Profile { machine: &machine, symbols: &symbols });
        let parts = written(&plan, 1);
        assert_eq!(parts, written(&plan, usize::MAX));
        let mut all = Threads::of(&plan);
        (0..plan.threads.len()).for_each(|thread| all.fill(thread));
        let mut all = serde_json::to_value(all.into_profile().0).unwrap();
        let threads = all["threads"].as_array_mut().unwrap();
        threads.retain(|thread| thread["pid"] != "4294967295");
        assert_eq!(threads.len(), 6);
        for thread in threads {
            if let Some(allocations) = thread.get_mut("nativeAllocations").and_then(Value::as_object_mut) {
                for column in ["memoryAddress", "threadId"] {
                    allocations.remove(column).unwrap();
                }
            }
        }
        for part in ["threads", "libs", "meta"] {
            assert_eq!(parts[part], all[part], "{part}");
        }
        let names = parts["meta"]["markerSchema"].as_array().unwrap();
        assert_eq!(names.len(), 3 + 3, "those of kinds, told, renamed, and off_cpu: {names:#?}");
    }

    #[test]
    fn a_counter_is_at_the_main_thread_of_its_process() {
        let (machine, symbols) = recording();
        let parts = written(&Plan::of(Profile { machine: &machine, symbols: &symbols }), 1);
        let counters = parts["counters"].as_array().unwrap();
        assert_eq!(counters.len(), 3);
        for counter in counters {
            let thread = &parts["threads"][counter["mainThreadIndex"].as_u64().unwrap() as usize];
            assert_eq!((&thread["pid"], &thread["isMainThread"]), (&counter["pid"], &Value::Bool(true)));
        }
        let pids: Vec<_> = parts["threads"].as_array().unwrap().iter().map(|thread| &thread["pid"]).collect();
        assert_eq!(pids, ["102", "102", "101", "101", "100", "100"], "by the processes' starts");
    }
}
