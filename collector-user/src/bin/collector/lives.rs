//! The processes that a recording was asked for, on stderr.

use std::fmt::Write as _;

use collector_common::record::{Exit, ExportMachine, ProcessLife};

use crate::say;

/// Prints all processes, in the order in which they were made.
pub(crate) fn print_lives(machine: &ExportMachine) {
    if machine.lives().is_empty() {
        return;
    }
    let mut text = String::from("processes:\n");
    let heads = ["pid", "made by", "at", "lived", "ended with"];
    let _ = writeln!(text, "{}  command", columns(heads.map(str::to_owned)));
    for life in machine.lives() {
        let _ = writeln!(text, "{}  {}", columns(row(machine, life)), command(machine, life));
    }
    say(text.trim_end());
}

fn columns([pid, parent, at, lived, ended]: [String; 5]) -> String {
    format!("  {pid:>8}  {parent:<24}  {at:>12}  {lived:>12}  {ended:<12}")
}

fn row(machine: &ExportMachine, life: &ProcessLife) -> [String; 5] {
    let (start, end) = (machine.system().start.0, machine.system().end.0);
    let process = machine.process(life.process);
    let at = if life.made.0 < start { "before".to_owned() } else { milliseconds(life.made.0 - start) };
    let lived = process.end.map_or(end, |end| end.0).saturating_sub(life.made.0);
    let ended = match (process.exit, process.end) {
        // A status of Windows.
        (Some(Exit::Code(code @ 0x4000_0000..)), _) => format!("code {code:#x}"),
        (Some(Exit::Code(code)), _) => format!("code {code}"),
        (Some(Exit::Signal(signal)), _) => format!("signal {signal}"),
        (None, Some(_)) => "not told".to_owned(),
        (None, None) => "runs on".to_owned(),
    };
    let parent = process.parent.map_or(String::new(), |id| {
        let parent = machine.process(id);
        let program = machine.program_at(id, life.made).map(|program| machine.program(program).name);
        let name = machine.string(program.unwrap_or(parent.name));
        format!("{} {}", parent.pid, name.escape_debug())
    });
    [process.pid.to_string(), parent, at, milliseconds(lived), ended]
}

fn milliseconds(nanoseconds: u64) -> String {
    format!("{:.1} ms", nanoseconds as f64 / 1e6)
}

/// The arguments of the last program; of a process that executed nothing its name in brackets, as `ps` has it.
fn command(machine: &ExportMachine, life: &ProcessLife) -> String {
    let program = machine.programs_of(life.process).next().map(|id| machine.program(id));
    let line = program.map(|program| machine.command_line(program)).filter(|line| !line.is_empty());
    line.unwrap_or_else(|| format!("[{}]", machine.string(machine.process(life.process).name).escape_debug()))
}

#[cfg(test)]
mod tests {
    use collector_common::ids::{Nanos, Pid};

    use super::*;

    #[test]
    fn a_process_is_a_line() {
        let mut machine = ExportMachine::default();
        (machine.system_mut().start, machine.system_mut().end) = (Nanos(1_000_000), Nanos(9_000_000));
        let parent = machine.add_process(Pid(1), "renamed", None, Nanos(0));
        machine.add_program(parent, Nanos(0), "init");
        let process = machine.add_process(Pid(7), "sh", Some(parent), Nanos(2_000_000));
        let life = ProcessLife { process, made: Nanos(2_000_000) };
        assert_eq!(row(&machine, &life), ["7", "1 init", "1.0 ms", "7.0 ms", "runs on"]);
        assert_eq!(command(&machine, &life), "[sh]");
        let program = machine.add_program(process, Nanos(2_100_000), "sh");
        assert_eq!(command(&machine, &life), "[sh]");
        machine.set_arguments(program, b"sh\0-c\0exit 3\0", false);
        machine.end_process(process, Nanos(5_500_000));
        machine.process_mut(process).unwrap().exit = Some(Exit::Code(3));
        assert_eq!(row(&machine, &life), ["7", "1 init", "1.0 ms", "3.5 ms", "code 3"]);
        assert_eq!(command(&machine, &life), "sh -c \"exit 3\"");
        let before = ProcessLife { made: Nanos(900_000), ..life };
        assert_eq!(row(&machine, &before)[2..4], ["before", "4.6 ms"]);
    }
}
