//! A process in, a resource out: what it is, and which machine it runs on, under the names of OpenTelemetry's semantic conventions
//! (`docs/registry/attributes` of open-telemetry/semantic-conventions: `process`, `container`, `host`, `os`).
//!
//! The conventions have no place for the programs that a process executed before its last.

use collector_common::ids::Nanos;
use collector_common::record::{Exit, ExportMachine, ProcessId};

use super::proto::{AnyValue, KeyValue, Resource};
use crate::format::account::os_and_release;
use crate::format::calendar::UnixTime;

/// The attributes of a process, and of the machine that it runs on, by the semantic conventions.
pub(super) fn resource(machine: &ExportMachine, process: ProcessId) -> Resource {
    let system = machine.system();
    let (os, version) = os_and_release(&system.kernel);
    let arch = match system.architecture.as_str() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let os_type = os.to_ascii_lowercase();
    let of_host = [
        ("host.name", system.host.as_str()),
        ("host.arch", arch),
        ("os.type", &os_type),
        ("os.version", version),
    ];
    let of_host = of_host.into_iter().filter(|(_, text)| !text.is_empty());
    let of_host = of_host.map(|(key, text)| (key, text.into()));
    let attributes = of_host.chain(of_process(machine, process));
    let attributes = attributes.map(|(key, value)| KeyValue { key: key.to_owned(), value: Some(value) });
    Resource { attributes: attributes.collect() }
}

/// The attributes of a process. A command line is that of the last program it ran.
fn of_process(machine: &ExportMachine, id: ProcessId) -> Vec<(&'static str, AnyValue)> {
    let process = machine.process(id);
    let clocks = &machine.system().clocks;
    let time = |time: Nanos| Some(clocks.unix_at(time).map(UnixTime)?.to_string());
    let program = machine.program_at(id, process.end.unwrap_or(Nanos(u64::MAX)));
    let program = program.map(|program| machine.program(program));
    let arguments = program.into_iter().flat_map(|program| machine.arguments(program));
    let more = program.filter(|program| program.are_cut).map(|_| "...");
    let arguments: Vec<AnyValue> = arguments.chain(more).map(AnyValue::from).collect();
    let text = |id| Some(machine.string(id)).filter(|text| !text.is_empty()).map(AnyValue::from);
    let number = |number: u32| AnyValue::from(i64::from(number));
    let (exit_code, signal) = match process.exit {
        None => (None, None),
        Some(Exit::Code(code)) => (Some(number(code)), None),
        Some(Exit::Signal(signal)) => (None, Some(number(signal.into()))),
    };
    let attributes = [
        ("process.executable.name", text(process.name)),
        ("process.pid", Some(number(process.pid.0))),
        ("process.parent_pid", process.parent.map(|parent| number(machine.process(parent).pid.0))),
        ("process.vpid", process.namespace_pid.map(|pid| number(pid.0))),
        // Of one that was there before it is not known.
        (
            "process.creation.time",
            Some(process.start).filter(|start| start.0 > 0).and_then(time).map(|time| time.as_str().into()),
        ),
        ("process.exit.time", process.end.and_then(time).map(|time| time.as_str().into())),
        ("process.exit.code", exit_code),
        // The conventions have no name for it.
        ("collector.process.exit.signal", signal),
        ("process.command_args", (!arguments.is_empty()).then_some(AnyValue::from(arguments))),
        ("process.owner", machine.user_name(process).map(AnyValue::from)),
        ("process.user.id", process.user.map(|user| number(user.0))),
        ("process.linux.cgroup", text(process.cgroup)),
        ("container.id", text(process.container)),
    ];
    attributes.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}
