//! Events of `run --event`, and of `collector list events`.

use std::fmt::Write as _;

use collector_user::source::{CLOCK_NAMES, COUNTERS, Counter, Hook, Named};
use collector_user::tracefs::Tracefs;

use crate::{Usage, say};

/// What `-e` names. `by_programs` is whether programs of ours may record it.
pub(crate) fn parse(names: &[String], by_programs: bool) -> anyhow::Result<Named> {
    let named = Named::parse(names, by_programs).map_err(|error| -> anyhow::Error {
        if error.is_of_the_request() { Usage(format!("-e {error}")).into() } else { error.into() }
    })?;
    for note in named.hooks.iter().filter_map(Hook::note) {
        say(&format!("warning: {note}"));
    }
    Ok(named)
}

/// Forms of events that no list has, for people.
const FORMS: [(&str, &str); 9] = [
    ("uprobe:/FILE:FUNCTION", "a call of a function, or of all of a pattern; arguments by (NAME:TYPE, ...)"),
    ("uretprobe:/FILE:FUNCTION", "its return; what it returns by (NAME:TYPE)"),
    ("usdt:/FILE:PROVIDER:NAME", "a marker in a program, which `readelf -n` lists, or all of a pattern"),
    ("kprobe:FUNCTION", "a call of a function of the kernel, where it was built with CONFIG_KPROBE_EVENTS"),
    ("kretprobe:FUNCTION", "its return"),
    (
        "user_events:NAME",
        "a tracepoint that a program registers for itself, while it runs (CONFIG_USER_EVENTS)",
    ),
    (
        "bpf:/sys/fs/bpf/NAME",
        "what other programs write into a BPF map, ringbuf or perf_event_array; its fields by (NAME:TYPE, ...)",
    ),
    ("bpf:id:NUMBER", "the same, by the map's number, which `bpftool map` lists"),
    ("bpf:fd:NUMBER", "the same, by a descriptor that collector is started with"),
];

/// All events that can be recorded here, a line each.
pub(crate) fn list() -> String {
    let mut text = String::new();
    for name in CLOCK_NAMES {
        let _ = writeln!(text, "{name:<24} the sampling clock, which is all that is recorded without -e");
    }
    let (here, absent): (Vec<Counter>, _) = COUNTERS.into_iter().partition(Counter::is_here);
    for Counter { name, description, .. } in here {
        let _ = writeln!(text, "{name:<24} {description}");
    }
    if absent.is_empty() {
        let _ = writeln!(text, "{:<24} an event of the processor, by the number in its manual", "rNNN");
    } else {
        let names: Vec<&str> = absent.iter().map(|counter| counter.name).collect();
        say(&format!("not counted by the processor here: {}", names.join(", ")));
    }
    for (form, description) in FORMS {
        let _ = writeln!(text, "{form:<24} {description}");
    }
    match Tracefs::open().and_then(|tracefs| tracefs.events()) {
        Ok(names) => names.iter().for_each(|name| {
            let _ = writeln!(text, "{name}");
        }),
        // Counters can be recorded all the same.
        Err(error) => say(&format!("warning: the tracepoints can't be listed: {error}")),
    }
    text
}
