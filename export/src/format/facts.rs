//! What is told of a process beside its name, for people.

use collector_common::ids::{Nanos, Pid};
use collector_common::record::{Exit, ExportMachine, Process, ProcessId};

/// Lines of text; none where nothing is known.
pub(super) fn facts(machine: &ExportMachine, id: ProcessId) -> Vec<String> {
    let process = machine.process(id);
    // The last program of its own, or that of the process which forked it.
    let program = machine.program_at(id, process.end.unwrap_or(Nanos(u64::MAX)));
    let command = program.map(|program| machine.command_line(machine.program(program)));
    let user = process.user.map(|user| match machine.user_name(process) {
        Some(name) => format!("{name} ({user})"),
        None => user.to_string(),
    });
    let (code, signal) = match process.exit {
        None => (None, None),
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(signal)),
    };
    let text = |id| Some(machine.string(id).to_owned());
    [
        ("command", command),
        ("user", user),
        ("pid in its namespace", other_pid(process).map(|pid| pid.to_string())),
        ("container", text(process.container)),
        ("cgroup", text(process.cgroup)),
        ("exit status", code.map(|code: u32| code.to_string())),
        ("ended by signal", signal.map(|signal| signal.to_string())),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)))
    .map(|(name, value)| format!("{name}: {value}"))
    .collect()
}

/// The pid of a process in its pid namespace, where it is another one there.
pub(super) fn other_pid(process: &Process) -> Option<Pid> {
    process.namespace_pid.filter(|pid| *pid != process.pid)
}

#[cfg(test)]
mod tests {
    use collector_common::ids::Uid;

    use super::*;

    #[test]
    fn what_is_known_is_told() {
        let mut machine = ExportMachine::default();
        let shell = machine.add_process(Pid(7), "sh", None, Nanos(0));
        assert!(facts(&machine, shell).is_empty());
        let program = machine.add_program(shell, Nanos(0), "sh");
        machine.set_arguments(program, b"sh\0-c\0a b\0", false);
        let child = machine.add_process(Pid(8), "sh", Some(shell), Nanos(5));
        machine.set_cgroup(child, "/user.slice");
        machine.name_user(Uid(1), "ann");
        let process = machine.process_mut(child).unwrap();
        (process.user, process.namespace_pid) = (Some(Uid(1)), Some(Pid(2)));
        let known =
            ["command: sh -c \"a b\"", "user: ann (1)", "pid in its namespace: 2", "cgroup: /user.slice"];
        assert_eq!(facts(&machine, child), known);
        let id = "0123456789abcdef".repeat(4);
        machine.set_cgroup(child, &format!("/docker/{id}"));
        let told = facts(&machine, child);
        assert_eq!(told[1], "user: 1", "who that is in a container nobody says");
        assert_eq!(told[3], format!("container: {id}"));
        for (exit, line) in [(Exit::Code(3), "exit status: 3"), (Exit::Signal(9), "ended by signal: 9")] {
            machine.process_mut(child).unwrap().exit = Some(exit);
            assert_eq!(facts(&machine, child).last().unwrap(), line);
        }
    }
}
