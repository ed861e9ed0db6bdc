//! Sums that 63 bits do not hold: told whole, in parts, or refused, and never as another number.

use collector_common::ids::{Nanos, Pid, Svma, Tid};
use collector_common::record::{ClockAnchor, ExportMachine, Frame, FrameFlags, ModuleId, Sample, Unit};
use export::format::otlp::Otlp;
use export::format::perfetto::Perfetto;
use export::format::pprof::Pprof;
use export::format::speedscope::Speedscope;
use export::format::{ExportFormat, Profile};
use export::hottest::Hottest;
use export::symbolize::Symbols;
use serde_json::Value;

use crate::perfetto;
use crate::random::written;
use crate::tools::{file, output, python};

const MOST: i64 = i64::MAX;

/// Samples of one kind, thread and stack with these values.
fn recording(unit: Unit, period: u64, values: &[i64]) -> (ExportMachine, Symbols) {
    let mut machine = ExportMachine::default();
    let kind = machine.add_kind("many", unit, period);
    let process = machine.add_process(Pid(7), "app", None, Nanos(0));
    let name = machine.intern_string("app");
    let thread = machine.intern_thread(process, Tid(7), name);
    let (module, address) = (ModuleId::KERNEL, Svma(0xffff_ffff_8100_0000));
    let frame = machine.intern_frame(Frame { module, address, flags: FrameFlags(FrameFlags::KERNEL) });
    let stack = machine.intern_stack(&[frame]);
    for (&value, time) in values.iter().zip(1_000..) {
        machine.add_sample(&Sample { time: Nanos(time), thread, stack, kind, value, ..Sample::default() });
    }
    let symbols = Symbols::unresolved(&machine);
    (machine, symbols)
}

fn refused(format: &dyn ExportFormat, (machine, symbols): &(ExportMachine, Symbols)) -> Option<String> {
    format.write(Profile { machine, symbols }, &mut Vec::new()).err().map(|error| error.to_string())
}

#[test]
fn the_hottest_functions_have_whole_sums() {
    let (machine, symbols) = recording(Unit::Bytes, 1, &[MOST; 3]);
    let hottest = Hottest::of_main(Profile { machine: &machine, symbols: &symbols });
    let sum = 3 * i128::from(MOST);
    assert_eq!((hottest.total, hottest.rows[0].own, hottest.rows[0].total), (sum, sum, sum));
    // 3 times 8 EiB.
    assert!(hottest.table(1).to_string().contains("25769803776.00 GiB"), "{}", hottest.table(1));
    // Of a clock the time: 2^62 periods of a millisecond.
    let (machine, symbols) = recording(Unit::Count, 1_000_000, &[1 << 62]);
    let hottest = Hottest::of_main(Profile { machine: &machine, symbols: &symbols });
    assert_eq!((hottest.total, hottest.unit.as_str()), (1_000_000 << 62, "nanoseconds"));
    // What has no room as a time is told in samples.
    let (machine, symbols) = recording(Unit::Count, u64::MAX, &[MOST; 3]);
    let hottest = Hottest::of_main(Profile { machine: &machine, symbols: &symbols });
    assert_eq!((hottest.total, hottest.unit.as_str()), (sum, "count"));
}

/// Whoever reads it adds up what is there several times: what a stack has is written whole, or not at all.
#[test]
fn pprof_refuses_them() {
    assert_eq!(refused(&Pprof, &recording(Unit::Count, 1_000_000, &[9_000_000_000_000])), None);
    for (period, values) in
        [(1_000_000, &[1 << 62][..]), (1_000_000, &[9_000_000_000_000; 2]), (1, &[MOST, 1])]
    {
        let error = refused(&Pprof, &recording(Unit::Count, period, values)).unwrap();
        assert!(error.contains("more than 63 bits hold"), "{error}");
    }
}

#[test]
fn otlp_has_them_in_parts_where_samples_have_no_times() {
    let values = [MOST, 1, MOST - 1, MOST - 1];
    let (mut machine, symbols) = recording(Unit::Bytes, 1, &values);
    let Some(parts) = of_otlp(&machine, &symbols) else { return };
    assert_eq!(parts, [vec![MOST], vec![MOST], vec![MOST - 1]].map(|values| (false, values)));
    // With times each value is there.
    machine.system_mut().clocks.start = ClockAnchor::at(Nanos(0), 0);
    let parts = of_otlp(&machine, &symbols).unwrap();
    assert_eq!(parts, [(true, values.to_vec())]);
}

/// By OpenTelemetry's own messages: of each sample whether it has times, and its values.
fn of_otlp(machine: &ExportMachine, symbols: &Symbols) -> Option<Vec<(bool, Vec<i64>)>> {
    let mut reader = python("otlp_profiles.py")?;
    let file = file(&written(&Otlp, machine, symbols), ".otlp");
    let told: Value = serde_json::from_str(&output(reader.arg(&*file))).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let samples = list(&told[0]["profiles"][0]["samples"]).into_iter().map(|sample| {
        let values = list(&sample["values"]).iter().map(|value| value.as_i64().unwrap()).collect();
        (!list(&sample["times"]).is_empty(), values)
    });
    Some(samples.collect())
}

/// A counter ends, and another of its name goes on.
#[test]
fn perfetto_has_counters_in_parts_and_refuses_clocks() {
    let clock = |values: &[i64]| refused(&Perfetto, &recording(Unit::Count, 1_000_000, values));
    assert_eq!(clock(&[18_000_000_000_000]), None);
    for values in [&[1 << 62][..], &[18_000_000_000_000; 2]] {
        let error = clock(values).unwrap();
        assert!(error.contains("more than 64 bits hold"), "{error}");
    }
    let (machine, symbols) = recording(Unit::Bytes, 1, &[MOST - 5, 5, 7, 2]);
    let Some(told) = perfetto::told(&written(&Perfetto, &machine, &symbols)) else { return };
    let counters = told["counters"].as_array().unwrap();
    let values: Vec<_> = counters.iter().map(|counter| counter["value"].as_i64().unwrap()).collect();
    assert_eq!(values, [MOST - 5, MOST, 7, 9]);
    assert!(counters.iter().all(|counter| counter["track"] == "many"), "{counters:?}");
}

/// Its numbers are JSON's, of as many digits as there are.
#[test]
fn speedscope_has_whole_weights() {
    let (machine, symbols) = recording(Unit::Count, 1_000_000, &[1 << 62, 1]);
    let text = String::from_utf8(written(&Speedscope, &machine, &symbols)).unwrap();
    assert!(text.contains(&format!("\"weights\":[{},1000000]", 1_000_000_i128 << 62)), "{text}");
    assert!(text.contains(&format!("\"endValue\":{}", (1_000_000_i128 << 62) + 1_000_000)), "{text}");
}
