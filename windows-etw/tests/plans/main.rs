//! Plans as people read them: `tests/plans/NAME.txt` has what each scenario asks ETW for. A test that fails prints what is asked for.

use collector_common::ids::Pid;
use windows_etw::plan::{
    EventSpec, Flags, KernelEvent, Note, Plan, PlanError, ProviderPlan, SCENARIOS, Scenario, Scope, When,
};

fn scope(pids: &[u32]) -> Scope {
    Scope { frequency_hz: 997, pids: pids.iter().copied().map(Pid).collect() }
}

fn plan(name: &str, pids: &[u32]) -> Plan {
    Scenario::by_name(name).expect("a scenario").plan(&scope(pids))
}

#[track_caller]
fn is(plan: &Plan, expected: &str) {
    let told = plan.to_string();
    assert!(told == expected, "asked for:\n{told}\nexpected:\n{expected}");
}

macro_rules! told {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            let name = stringify!($name);
            is(&plan(name, &[]), include_str!(concat!(stringify!($name), ".txt")));
        })*

        #[test]
        fn every_scenario_has_its_text() {
            let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

told! {
    cpu_profiling off_cpu wall_clock scheduling page_faults processes syscalls memory_tracking memory_growth io_monitoring
    dotnet_gc_analysis dotnet_allocations dotnet_exceptions dotnet_contention
}

/// What can be tried on Windows alone is tried of each: `'NAME' = ` in the table of the script.
#[test]
fn every_scenario_is_tried_on_windows() {
    let script = include_str!("../../../docs/windows-check.ps1");
    let (_, table) = script.split_once("$scenarios = [ordered] @{").unwrap();
    let (table, _) = table.split_once('}').unwrap();
    for Scenario { name, .. } in &SCENARIOS {
        assert!(table.contains(&format!("'{name}' = ")), "{name} is not tried");
    }
}

#[test]
fn memory_of_two_processes() {
    is(&plan("memory_tracking", &[1234, 5678]), include_str!("memory_of_two_processes.txt"));
}

#[test]
fn several_in_one_plan() {
    let mut whole = plan("cpu_profiling", &[]);
    for name in ["memory_tracking", "dotnet_gc_analysis", "dotnet_allocations", "cpu_profiling"] {
        whole.add(plan(name, &[])).unwrap();
    }
    let event = EventSpec::parse("etw:Microsoft-Windows-Kernel-File:0x10:4", |_| None).unwrap();
    whole.add(event.plan(&scope(&[]))).unwrap();
    is(&whole, include_str!("several_in_one_plan.txt"));
}

/// Whoever records what .NET's rundown tells by itself is told it at once; methods are asked for at the end all the same.
#[test]
fn one_provider_is_asked_for_different_things_at_both_ends() {
    let event = EventSpec::parse("etw:Microsoft-Windows-DotNETRuntimeRundown:0x48", |_| None).unwrap();
    let mut whole = plan("cpu_profiling", &[]);
    whole.add(event.plan(&scope(&[]))).unwrap();
    let rundown = whole.providers.iter().filter(|provider| provider.name.ends_with("Rundown"));
    let asked: Vec<(When, u64)> = rundown.map(|provider| (provider.when, provider.any)).collect();
    assert_eq!(asked, [(When::Always, 0x48), (When::AtEnd, 0x138)]);
}

#[test]
fn what_is_added_is_never_less_than_its_parts() {
    for one in &SCENARIOS {
        for other in &SCENARIOS {
            let parts = [one.plan(&scope(&[7])), other.plan(&scope(&[7]))];
            let mut whole = parts[0].clone();
            whole.add(parts[1].clone()).unwrap();
            for part in &parts {
                assert!(whole.system.flags.has(part.system.flags));
                assert!(whole.system.stacks.is_superset(&part.system.stacks));
                assert!(part.system.interval.is_none() || whole.system.interval == part.system.interval);
                for provider in &part.providers {
                    let is_sum = |sum: &&ProviderPlan| (sum.guid, sum.when) == (provider.guid, provider.when);
                    let sum = whole.providers.iter().find(is_sum).unwrap();
                    assert!(sum.level >= provider.level && sum.any & provider.any == provider.any);
                }
                assert!(part.heap.is_none() || whole.heap == part.heap);
            }
            let mut twice = whole.clone();
            twice.add(parts[1].clone()).unwrap();
            assert_eq!(twice, whole, "{} and {} twice", one.name, other.name);
        }
    }
}

#[test]
fn what_one_session_cannot_do_is_told() {
    let mut plan = plan("cpu_profiling", &[]);
    let faster = Scope { frequency_hz: 4000, pids: vec![] };
    let error = plan.add(Scenario::by_name("cpu").unwrap().plan(&faster)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "CPUs are sampled at one interval for the whole machine, not at 10030 x 100 ns and at 2500 x 100 ns"
    );

    let event = EventSpec::parse("etw:Microsoft-Windows-Kernel-File:0x10", |_| None).unwrap();
    let mut one = event.plan(&scope(&[]));
    let mut other = one.clone();
    other.providers[0].all = 0x30;
    let error = one.add(other).unwrap_err();
    assert!(matches!(error, PlanError::Keywords { one: 0, other: 0x30, .. }), "{error}");
}

#[test]
fn more_samples_than_there_can_be_are_told() {
    let at = |frequency_hz| Scenario::by_name("cpu").unwrap().plan(&Scope { frequency_hz, pids: vec![] });
    assert_eq!((at(8190).notes, at(8191).notes), (vec![], vec![Note::Frequency(8191)]));
    let told = at(20_000).to_string();
    assert!(
        told.ends_with("note: CPUs are sampled 8190 times a second at most here, not 20000 times\n"),
        "{told}"
    );
}

#[test]
fn a_filter_by_process_has_eight_at_most() {
    let pids: Vec<u32> = (1..=9).collect();
    assert!(plan("cpu_profiling", &pids[..8]).providers.iter().all(|provider| provider.pids.len() == 8));
    let nine = plan("cpu_profiling", &pids);
    assert!(nine.providers.iter().all(|provider| provider.pids.is_empty()));
    assert_eq!(nine.notes, [Note::ManyProcesses(9)]);
}

/// Microsoft's pages on `EVENT_TRACE_PROPERTIES`, `CSwitch`, `PerfInfo` and `PageFault_VirtualAlloc`.
#[test]
fn the_kernels_numbers_are_those_that_are_documented() {
    let flags = [
        (Flags::PROCESS, 0x1),
        (Flags::THREAD, 0x2),
        (Flags::IMAGE_LOAD, 0x4),
        (Flags::CSWITCH, 0x10),
        (Flags::DISPATCHER, 0x800),
        (Flags::VIRTUAL_ALLOC, 0x4000),
        (Flags::PROFILE, 0x0100_0000),
    ];
    assert!(flags.iter().all(|(flag, number)| flag.0 == *number));
    let event = |event: KernelEvent| (event.class.to_string(), event.opcode);
    assert_eq!(event(KernelEvent::SAMPLED_PROFILE), ("ce1dbfb4-137e-4da6-87b0-3f59aa102cbc".to_owned(), 46));
    assert_eq!(event(KernelEvent::CSWITCH), ("3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c".to_owned(), 36));
    assert_eq!(event(KernelEvent::VIRTUAL_ALLOC), ("3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c".to_owned(), 98));
}
