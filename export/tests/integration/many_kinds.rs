//! More kinds of samples than a byte can number, as of all system calls: each comes back with what was counted of it.

use std::collections::BTreeMap;

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::record::{ExportMachine, Sample, Unit};
use export::format::by_name;
use export::symbolize::Symbols;

use crate::random::{imported, written};

const KINDS: u16 = 700;

/// A sample of the first kind, two of the second, and so on, up to seven.
fn recording() -> ExportMachine {
    let mut machine = ExportMachine::default();
    let process = machine.add_process(Pid(7), "calls", None, Nanos(0));
    let name = machine.intern_string("calls");
    let thread = machine.intern_thread(process, Tid(7), name);
    let mut time = 0;
    for number in 0..KINDS {
        let kind = machine.add_kind(&format!("syscalls:call_{number}"), Unit::Count, 1);
        for _ in 0..=number % 7 {
            time += 1000;
            machine.add_sample(&Sample { time: Nanos(time), thread, kind, value: 1, ..Sample::default() });
        }
    }
    machine
}

/// How much was counted of each kind.
fn counted(machine: &ExportMachine) -> BTreeMap<String, i64> {
    let mut counted = BTreeMap::new();
    for sample in machine.samples().iter() {
        let name = machine.string(machine.kinds()[usize::from(sample.kind.0)].name);
        *counted.entry(name.to_owned()).or_default() += sample.value;
    }
    counted
}

#[test]
fn formats_that_have_all_kinds_have_them_again() {
    let (machine, symbols) = (recording(), Symbols::default());
    for name in ["pprof", "nettrace", "firefox", "jfr"] {
        let bytes = written(by_name(name).unwrap(), &machine, &symbols);
        let again = imported(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let counted = counted(&again.machine);
        // The first is what Firefox Profiler's call tree is of, where it has no name.
        for number in 1..KINDS {
            let kind = format!("syscalls:call_{number}");
            assert_eq!(counted.get(&kind), Some(&(i64::from(number % 7) + 1)), "{name}: {kind}");
        }
        assert_eq!(counted.len(), usize::from(KINDS), "{name}");
    }
}
