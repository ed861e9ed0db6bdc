//! Events of the recording itself, its host, its processes, their files, and spans.

use std::io;

use collector_common::ids::Nanos;
use collector_common::record::{
    ClockAnchor, Exit, ExportMachine, ModuleKind, ModuleMapping, ProcessId, ProgramId, Span, TimelineOwner,
};

use super::chunk::Chunks;
use super::kinds::Kind;
use super::numbers::Numbers;
use super::types::id;
use super::wire::{NULL, constant_text, int, long, text};
use crate::format::account::account;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Tells of the recording as a whole.
pub(super) fn recording(
    machine: &ExportMachine,
    kinds: &[Kind],
    anchor: ClockAnchor,
    start: Nanos,
    chunks: &mut Chunks<'_>,
) -> io::Result<()> {
    const MILLISECOND: u64 = 1_000_000;
    let system = machine.system();
    let duration = system.end.0.saturating_sub(start.0);
    let unix_milliseconds = anchor.unix_at(start).div_euclid(MILLISECOND.into()) as i64;
    chunks.event(id::RECORDING, start, |out, _| {
        long(out, duration);
        for name in [&system.host, &system.kernel, &system.architecture] {
            text(out, name);
        }
        int(out, system.cpus.cast_signed());
        text(out, &system.command);
        // -1 where it is not known, as readers see it.
        long(out, system.lost.unwrap_or(u64::MAX));
    })?;
    for line in account(machine) {
        chunks.event(id::NOTE, start, |out, _| text(out, &line))?;
    }
    chunks.event(id::ACTIVE_RECORDING, start, |out, _| {
        long(out, 1);
        text(out, &format!("collector {VERSION}"));
        // Where it is written to, and what its bounds are.
        out.push(NULL);
        long(out, 0);
        long(out, 0);
        long(out, unix_milliseconds.cast_unsigned());
        long(out, duration / MILLISECOND);
    })?;
    settings(kinds, start, chunks)?;
    chunks.event(id::CPU_INFORMATION, start, |out, _| {
        text(out, &system.architecture);
        out.push(NULL);
        // How many sockets and cores there are is not recorded.
        int(out, 0);
        int(out, 0);
        int(out, system.cpus.cast_signed());
    })?;
    chunks.event(id::OS_INFORMATION, start, |out, _| text(out, &system.kernel))?;
    chunks.event(id::JVM_INFORMATION, start, |out, _| {
        text(out, "none: recorded by collector");
        text(out, VERSION);
        out.push(NULL);
        out.push(NULL);
        text(out, &system.command);
        long(out, unix_milliseconds.cast_unsigned());
        // Only where there is no doubt.
        let [process] = machine.processes() else { return long(out, 0) };
        long(out, process.pid.0.into());
    })
}

/// What each type of event was recorded with.
fn settings(kinds: &[Kind], start: Nanos, chunks: &mut Chunks<'_>) -> io::Result<()> {
    let mut setting = |type_id, name: &str, value: &str| {
        chunks.event(id::ACTIVE_SETTING, start, |out, _| {
            long(out, type_id);
            text(out, name);
            text(out, value);
        })
    };
    setting(id::ACTIVE_RECORDING, "version", VERSION)?;
    for kind in kinds {
        setting(kind.type_id, "enabled", "true")?;
        if let Some(period) = kind.period {
            setting(kind.type_id, "period", &format!("{period} ns"))?;
        }
    }
    Ok(())
}

/// Tells of a process. One that was there before the recording is told of as from its start.
pub(super) fn process(
    machine: &ExportMachine,
    process_id: ProcessId,
    start: Nanos,
    chunks: &mut Chunks<'_>,
) -> io::Result<()> {
    let process = machine.process(process_id);
    let was_there = process.start == Nanos(0);
    let time = if was_there { start } else { process.start };
    let end = process.end.unwrap_or(machine.system().end);
    chunks.event(id::PROCESS, time, |out, _| {
        long(out, end.0.saturating_sub(time.0));
        long(out, process.pid.0.into());
        text(out, machine.string(process.name));
        long(out, process.parent.map_or(0, |parent| machine.process(parent).pid.0.into()));
        out.push(u8::from(!was_there));
        out.push(u8::from(process.end.is_some()));
        let program = machine.program_at(process_id, process.end.unwrap_or(Nanos(u64::MAX)));
        let known = |out: &mut Vec<u8>, known: &str| match known {
            "" => out.push(NULL),
            known => text(out, known),
        };
        known(out, &program.map(|id| machine.command_line(machine.program(id))).unwrap_or_default());
        known(out, machine.user_name(process).unwrap_or_default());
        long(out, process.user.map_or(-1, |user| i64::from(user.0)).cast_unsigned());
        long(out, process.namespace_pid.map_or(0, |pid| pid.0.into()));
        known(out, machine.string(process.container));
        known(out, machine.string(process.cgroup));
        let (status, signal) = match process.exit {
            None => (-1, -1),
            Some(Exit::Code(status)) => (i64::from(status), -1),
            Some(Exit::Signal(signal)) => (-1, i64::from(signal)),
        };
        long(out, status.cast_unsigned());
        long(out, signal.cast_unsigned());
    })
}

/// Tells of a program that a process executed. Its arguments are one text, an array of strings as JSON has it.
pub(super) fn program(
    machine: &ExportMachine,
    program: ProgramId,
    time: Nanos,
    chunks: &mut Chunks<'_>,
) -> io::Result<()> {
    let program = machine.program(program);
    chunks.event(id::PROGRAM, time, |out, _| {
        long(out, machine.process(program.process).pid.0.into());
        text(out, machine.string(program.name));
        let arguments: Vec<&str> = machine.arguments(program).collect();
        text(out, &serde_json::Value::from(arguments).to_string());
        out.push(u8::from(program.are_cut));
    })
}

/// Tells what went on for a time: until the recording's end where its own was not seen.
pub(super) fn span(
    machine: &ExportMachine,
    span: &Span,
    numbers: &Numbers,
    chunks: &mut Chunks<'_>,
) -> io::Result<()> {
    let Some(timeline) = machine.timeline_of(span) else { return Ok(()) };
    let (process, thread) = match timeline.owner {
        TimelineOwner::Recording => (None, None),
        TimelineOwner::Process(process) => (Some(process), None),
        TimelineOwner::Thread(thread) => (Some(machine.thread(thread).process), Some(thread)),
    };
    let end = span.end.unwrap_or(machine.system().end);
    chunks.event(id::SPAN, span.start, |out, constants| {
        long(out, end.0.saturating_sub(span.start.0));
        long(out, thread.map_or(0, |thread| constants.thread(thread)));
        text(out, machine.string(span.name));
        text(out, machine.string(timeline.name));
        let process = process.map(|process| machine.process(process));
        long(out, process.map_or(0, |process| process.pid.0.into()));
        match process {
            Some(process) => text(out, machine.string(process.name)),
            None => out.push(NULL),
        }
        out.push(u8::from(span.end.is_some()));
        match constants.attributes(span.attributes) {
            0 => out.push(NULL),
            attributes => constant_text(out, attributes),
        }
        numbers.write(machine, span.attributes, out);
    })
}

/// Tells of a file where it is mapped.
pub(super) fn library(
    machine: &ExportMachine,
    mapping: &ModuleMapping,
    time: Nanos,
    chunks: &mut Chunks<'_>,
) -> io::Result<()> {
    let module = machine.module(mapping.module);
    if !matches!(module.kind, ModuleKind::File | ModuleKind::Vdso) {
        return Ok(());
    }
    chunks.event(id::NATIVE_LIBRARY, time, |out, _| {
        text(out, machine.string(module.path));
        long(out, mapping.start.0);
        long(out, mapping.end.0);
        long(out, machine.process(mapping.process).pid.0.into());
        match module.build_id {
            Some(build_id) => text(out, &build_id.to_string()),
            None => out.push(NULL),
        }
        long(out, mapping.file_offset.0);
        long(out, mapping.bias);
    })
}
