//! Recordings at the ends of what their parts can be, as whoever makes a file to be imported may have them: each format writes them,
//! and the same each time.

use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Svma, Tid};
use collector_common::record::{
    AttributeListId, ClockAnchor, ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleKind,
    ModuleMapping, Sample, Unit,
};
use export::format::{Profile, formats};
use export::symbolize::Symbols;

/// Names that mean something to some format, or have no end.
fn names() -> Vec<String> {
    let odd =
        ["", " ", "\0", "a;b c\n\r\t\u{1b}[0m", "]]>&<\"'\u{ffff}", "\u{feff}\u{202e}\u{2028}", "9 9", ";;"];
    odd.into_iter().map(str::to_owned).chain(["é".repeat(35_000)]).collect()
}

/// Every name with every extreme time and value, on stacks with the same frame again and again and with extreme addresses.
fn odd(values: &[i64], times: &[u64]) -> (ExportMachine, Symbols) {
    let mut machine = ExportMachine::default();
    let names = names();
    let system = machine.system_mut();
    (system.start, system.end, system.lost) = (Nanos(u64::MAX), Nanos(0), Some(u64::MAX));
    system.clocks.start =
        Some(ClockAnchor { monotonic: Nanos(u64::MAX), realtime: u64::MAX, boottime: Some(Nanos(0)) });
    names[3].clone_into(&mut system.command);
    names[4].clone_into(&mut system.host);
    let units = [Unit::Count, Unit::Nanoseconds, Unit::Bytes];
    let kinds: Vec<_> = units
        .into_iter()
        .zip(&names[2..])
        .map(|(unit, name)| machine.add_kind(name, unit, u64::MAX))
        .collect();
    let mut frames: Vec<FrameId> = Vec::new();
    for (name, at) in names.iter().zip(0..) {
        let process =
            machine.add_process(Pid(u32::MAX - at % 2), name, None, Nanos(u64::MAX - u64::from(at)));
        let path = machine.intern_string(name);
        let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
        for (start, end, bias) in [(0, u64::MAX, 1), (u64::MAX, 0, u64::MAX), (5, 5, 0)] {
            let (start, end, file_offset) = (Avma(start), Avma(end), FileOffset(u64::MAX));
            machine.add_mapping(ModuleMapping {
                process,
                module,
                start,
                end,
                file_offset,
                bias,
                since: Nanos(bias),
            });
        }
        for address in [0, 1, u64::MAX] {
            for flags in [0, FrameFlags::RETURN_ADDRESS, FrameFlags::CUT] {
                frames.push(machine.intern_frame(Frame {
                    module,
                    address: Svma(address),
                    flags: FrameFlags(flags),
                }));
            }
        }
        let thread = machine.intern_thread(process, Tid(u32::MAX), path);
        let own = &frames[frames.len() - 9..];
        let deep = machine.intern_stack(&[own, own].concat());
        let key = machine.intern_string(&names[at as usize / 2]);
        let attributes = machine.attributes_mut().intern(&[(key, path), (path, key)]);
        let empty = machine.intern_stack(&[]);
        for (stack, attributes) in [(deep, attributes), (empty, AttributeListId::NONE)] {
            for &kind in &kinds {
                for (&value, &time) in
                    values.iter().flat_map(|value| times.iter().map(move |time| (value, time)))
                {
                    machine.add_sample(&Sample {
                        time: Nanos(time),
                        thread,
                        stack,
                        cpu: u16::MAX,
                        kind,
                        value,
                        attributes,
                    });
                }
            }
        }
    }
    let mut symbols = Symbols::unresolved(&machine);
    for (frame, name) in frames.into_iter().zip(names.iter().cycle()) {
        symbols.set(frame, name, name);
    }
    (machine, symbols)
}

fn each_format_writes(machine: &ExportMachine, symbols: &Symbols) {
    for format in formats() {
        let write = || {
            let mut out = Vec::new();
            format
                .write(Profile { machine, symbols }, &mut out)
                .map(|()| out)
                .map_err(|error| error.to_string())
        };
        let written = write();
        // A sum that has no room is refused, and not written as another number.
        let bits = match format.name() {
            "pprof" => Some("more than 63 bits hold"),
            "perfetto" => Some("more than 64 bits hold"),
            _ => None,
        };
        let is_refused = written.as_ref().is_err_and(|error| bits.is_some_and(|bits| error.contains(bits)));
        assert!(written.is_ok() || is_refused, "{}: {written:?}", format.name());
        assert!(written == write(), "{} the same each time", format.name());
    }
}

#[test]
fn extreme_values_and_times_are_written() {
    let (machine, symbols) = odd(&[0, -1, i64::MIN, i64::MAX], &[0, i64::MAX as u64, u64::MAX]);
    each_format_writes(&machine, &symbols);
}

#[test]
fn what_has_no_samples_is_written() {
    let (machine, symbols) = odd(&[], &[]);
    each_format_writes(&machine, &symbols);
}

#[test]
fn what_counts_nothing_is_written() {
    let (machine, symbols) = odd(&[0, -7], &[3]);
    each_format_writes(&machine, &symbols);
}
