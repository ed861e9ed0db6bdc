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
    let (start, end) = (machine.system().start.0, machine.system().end.0);
    for life in machine.lives() {
        let _ = writeln!(text, "{}  {}", columns(row(life, start, end)), command(life));
    }
    say(text.trim_end());
}

fn columns([pid, parent, at, lived, ended]: [String; 5]) -> String {
    format!("  {pid:>8}  {parent:<24}  {at:>12}  {lived:>12}  {ended:<12}")
}

/// Where it is told of: `start` and `end` are the recording's.
fn row(life: &ProcessLife, start: u64, end: u64) -> [String; 5] {
    let at = if life.start.0 < start { "before".to_owned() } else { milliseconds(life.start.0 - start) };
    let lived = life.end.map_or(end, |(end, _)| end.0).saturating_sub(life.start.0);
    let ended = match life.end {
        Some((_, Exit::Code(code))) => format!("code {code}"),
        Some((_, Exit::Signal(signal))) => format!("signal {signal}"),
        None => "runs on".to_owned(),
    };
    let parent = format!("{} {}", life.parent.0, life.parent_name.escape_debug());
    [life.pid.0.to_string(), parent, at, milliseconds(lived), ended]
}

fn milliseconds(nanoseconds: u64) -> String {
    format!("{:.1} ms", nanoseconds as f64 / 1e6)
}

/// The arguments as a shell would take most of them; of a process that executed nothing its name in brackets, as `ps` has it.
fn command(life: &ProcessLife) -> String {
    if life.arguments.is_empty() {
        return format!("[{}]", life.name.escape_debug());
    }
    let quoted = life.arguments.iter().map(|argument| {
        let is_plain = !argument.is_empty() && !argument.contains([' ', '\t', '\n', '"', '\'']);
        if is_plain { argument.escape_debug().to_string() } else { format!("{argument:?}") }
    });
    let more = life.are_cut.then(|| "...".to_owned());
    quoted.chain(more).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use collector_common::ids::{Nanos, Pid};

    use super::*;

    #[test]
    fn a_process_is_a_line() {
        let mut life = ProcessLife {
            pid: Pid(7),
            name: "sh".to_owned(),
            parent: Pid(1),
            parent_name: "init".to_owned(),
            arguments: ["sh", "-c", "exit 3"].map(str::to_owned).into(),
            are_cut: false,
            start: Nanos(2_000_000),
            end: Some((Nanos(5_500_000), Exit::Code(3))),
        };
        assert_eq!(row(&life, 1_000_000, 9_000_000), ["7", "1 init", "1.0 ms", "3.5 ms", "code 3"]);
        assert_eq!(command(&life), "sh -c \"exit 3\"");
        (life.end, life.are_cut) = (None, true);
        assert_eq!(row(&life, 3_000_000, 9_000_000), ["7", "1 init", "before", "7.0 ms", "runs on"]);
        assert_eq!(command(&life), "sh -c \"exit 3\" ...");
        life.arguments.clear();
        assert_eq!(command(&life), "[sh]");
    }
}
