//! Sessions where there are none to be had: Wine's functions of ETW do nothing, and refuse to open a trace. What Windows does is tried
//! by `docs/windows-check.ps1` on a real machine.

use std::io::{Write as _, stderr};

use collector_common::ids::Pid;

use crate::plan::{Scenario, Scope, SystemPlan};
use crate::session::{Target, console};

use super::*;

/// Which `dotnet_gc_analysis` asks at the end.
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";

/// Events go to nobody.
fn nobody(_: Part) -> MakeSink {
    Box::new(|| Box::new(|_| {}))
}

fn plan(name: &str) -> Plan {
    Scenario::by_name(name).unwrap().plan(&Scope { frequency_hz: 997, pids: vec![] })
}

fn settings(name: &str) -> Settings {
    Settings { name: name.to_owned(), target: Target::Live }
}

#[test]
fn names_that_windows_does_not_take_are_refused() {
    for name in ["", "a\\b", "a\0b", &"x".repeat(201)] {
        let error = Sessions::start(&plan("processes"), &settings(name), nobody).unwrap_err();
        assert!(matches!(error, SessionError::Name { .. }), "{error}");
    }
}

#[test]
fn too_many_processes_for_the_heap_are_told() {
    let pids = (1..=2000).map(Pid).collect();
    let plan = Scenario::by_name("memory_tracking").unwrap().plan(&Scope { frequency_hz: 997, pids });
    let error = Sessions::start(&plan, &settings("start-test-heap"), nobody).unwrap_err().to_string();
    assert!(error.contains("of 1019 processes at most, and these are 2000"), "{error}");
}

#[test]
fn a_name_that_another_process_records_under_is_left_alone() {
    let _other = Claim::of("start-test-busy").unwrap();
    let settings = settings("start-test-busy");
    let error = Sessions::start(&plan("processes"), &settings, nobody).unwrap_err();
    assert!(error.to_string().starts_with("a session `start-test-busy` is recording"), "{error}");
}

#[test]
fn parts_have_names_of_their_own() {
    let name = |part| session_name("Collector", part);
    assert_eq!(
        [Part::Main, Part::Heap, Part::Kernel].map(name),
        ["Collector", "Collector-heap", "NT Kernel Logger"]
    );
}

/// A plan without a heap, after one with it whose process was killed.
#[test]
fn all_that_was_left_of_a_name_is_stopped() {
    let _turn = console::turn();
    // In whatever way this ends here.
    let _ = Sessions::start(&plan("processes"), &settings("start-test-left"), nobody);
    let stopped = sys::stopped_by_name();
    assert_eq!(stopped[..2], ["start-test-left", "start-test-left-heap"]);

    stop_abandoned("start-test-left-2");
    let _other = Claim::of("start-test-left-3").unwrap();
    stop_abandoned("start-test-left-3");
    assert_eq!(
        sys::stopped_by_name()[stopped.len()..],
        ["start-test-left-2", "start-test-left-2-heap"],
        "the third is somebody's"
    );
}

/// On Wine: `StartTraceW` succeeds, `OpenTraceW` is refused. A session that was started is stopped then, and its name is free.
#[test]
fn what_is_refused_leaves_nothing_behind() {
    if std::env::var_os("COLLECTOR_WINE").is_none() {
        // Past the runner, which keeps what a test that passes prints.
        let _ = writeln!(stderr(), "SKIPPED what_is_refused_leaves_nothing_behind: this is not Wine");
        return;
    }
    let _turn = console::turn();
    for name in ["processes", "cpu_profiling", "dotnet_gc_analysis", "processes"] {
        let refused = Sessions::start(&plan(name), &settings("start-test-wine"), nobody);
        let error = refused.unwrap_err();
        assert!(matches!(error, SessionError::NotAdministrator { call: "OpenTraceW" }), "{error}");
    }
    assert!(!console::is_running("start-test-wine"));
}

/// Of providers and of a heap's blocks, written to a file: Wine starts and stops such sessions, and has nothing to write.
fn plan_for_files() -> Plan {
    let mut plan = plan("dotnet_gc_analysis");
    plan.system = SystemPlan::default();
    plan.heap = Some(HeapPlan { pids: vec![Pid(std::process::id())] });
    plan
}

/// What is done with sessions that run, under names that no other test has; nothing where this is not Wine.
fn with_sessions(name: &str, body: impl FnOnce(Sessions, [String; 2])) {
    if std::env::var_os("COLLECTOR_WINE").is_none() {
        let _ = writeln!(stderr(), "SKIPPED sessions that run: this is not Wine");
        return;
    }
    let _turn = console::turn();
    let folder = tempfile::tempdir().unwrap();
    let target = Target::File(folder.path().join("x.etl"));
    let settings = Settings { name: name.to_owned(), target };
    let sink = |_| -> MakeSink { panic!("a file takes the events") };
    let sessions = Sessions::start(&plan_for_files(), &settings, sink).unwrap();
    let names = [Part::Main, Part::Heap].map(|part| session_name(name, part));
    assert!(names.iter().all(|name| console::is_running(name)));
    assert!(matches!(Claim::of(name), Err(SessionError::Busy { .. })));
    body(sessions, names.clone());
    assert!(!names.iter().any(|name| console::is_running(name)), "one is left behind");
    Claim::of(name).unwrap();
}

#[test]
fn sessions_that_are_stopped_tell_of_each_and_ask_once_more_before() {
    with_sessions("start-test-stop", |sessions, _| {
        assert!(!sessions.has_ended() && sessions.interval().is_none());
        let none = [Part::Main, Part::Heap].map(|part| (part, Losses::default()));
        assert_eq!(sessions.losses().unwrap(), none);
        let started = sys::told_providers();
        let stopped = sessions.stop().whole().unwrap();
        assert_eq!((&stopped.losses[..], stopped.events), (&none[..], 0));

        let plan = plan_for_files();
        let [always, at_end] = [When::Always, When::AtEnd]
            .map(|when| plan.providers.iter().find(|provider| provider.when == when).unwrap());
        let told = |it: &ProviderPlan| sys::Told {
            provider: it.name.clone(),
            what: Enable::On,
            any: it.any,
            pids: None,
        };
        assert_eq!(started, [told(always)]);
        assert_eq!(sys::told_providers(), [told(at_end)]);
    });
}

#[test]
fn at_the_end_those_are_asked_that_are_there() {
    let asked_of = |pids: &[u32]| {
        let mut asked = Vec::new();
        with_sessions("start-test-asked", |mut sessions, _| {
            sessions.ask_at_end(&pids.iter().copied().map(Pid).collect());
            sys::told_providers();
            sessions.stop().whole().unwrap();
            asked = sys::told_providers();
        });
        asked.into_iter().map(|told| (told.provider, told.pids)).collect::<Vec<_>>()
    };
    if std::env::var_os("COLLECTOR_WINE").is_some() {
        assert_eq!(asked_of(&[]), []);
        assert_eq!(asked_of(&[7]), [(RUNDOWN.to_owned(), Some(vec![7]))]);
        let eight = [4, 8, 12, 16, 20, 24, 28, 0x1_0000];
        assert_eq!(asked_of(&eight), [(RUNDOWN.to_owned(), Some(eight.to_vec()))]);
        // A filter has no place for more: all are asked.
        assert_eq!(asked_of(&(1..=9).collect::<Vec<_>>()), [(RUNDOWN.to_owned(), None)]);
    }
}

/// What Wine answers to flags is made up, for it has none.
#[test]
fn what_is_asked_for_at_the_end_is_no_sample() {
    with_sessions("start-test-lives", |mut sessions, names| {
        let lives = Flags::PROCESS | Flags::THREAD | Flags::IMAGE_LOAD;
        sessions.flags = lives | Flags::PROFILE | Flags::CSWITCH;
        sys::told_providers();
        sys::let_flags_be_answered(Some(0));
        let stopped = sessions.stop().whole().unwrap();
        sys::let_flags_be_answered(None);
        assert_eq!(sys::told_flags(), [(lives, 0)], "before providers are told");
        assert_eq!((sys::told_providers().len(), stopped.unanswered), (1, vec![]));
        assert_eq!(stopped.losses.len(), names.len());
    });
    with_sessions("start-test-no-lives", |mut sessions, _| {
        sessions.flags = Flags::PROCESS | Flags::PROFILE;
        sys::let_flags_be_answered(Some(87));
        let stopped = sessions.stop().whole().unwrap();
        sys::let_flags_be_answered(None);
        let [on] = &stopped.unanswered[..] else { panic!("{stopped:?}") };
        assert_eq!((&*on.provider, on.asked, on.cause.0), ("start-test-no-lives", Asked::Lives, 87));
    });
    // Where nobody is asked, all is told to the end.
    with_sessions("start-test-all", |mut sessions, _| {
        sessions.flags = Flags::PROCESS | Flags::PROFILE;
        sessions.ask_at_end(&BTreeSet::new());
        sys::told_flags();
        assert_eq!((sessions.stop().unanswered, sys::told_flags()), (vec![], vec![]));
    });
}

/// What Wine answers is made up: that a session goes on, and what it says that it lost.
#[test]
fn sessions_that_can_not_be_stopped_are_told_with_what_there_is() {
    with_sessions("start-test-goes-on", |sessions, names| {
        let lost = Losses { events: 7, file_buffers: 2, live_buffers: 0 };
        sys::let_sessions_answer(Some((Win32Error::INVALID_PARAMETER.0, lost)));
        let stopped = sessions.stop();
        sys::let_sessions_answer(None);
        assert_eq!(stopped.losses, [Part::Main, Part::Heap].map(|part| (part, lost)));
        assert!(stopped.goes_on(Part::Main) && stopped.goes_on(Part::Heap) && !stopped.goes_on(Part::Kernel));
        let told: Vec<String> = stopped.failed.iter().map(|(_, error)| error.to_string()).collect();
        for (told, name) in told.iter().zip(&names) {
            assert!(told.contains(&format!("`logman stop \"{name}\" -ets`")), "{told}");
        }
        assert_eq!(told.len(), 2);
        assert!(matches!(stopped.whole(), Err(SessionError::Unstopped { .. })));
        for name in &names {
            sys::stop_by_name(name).unwrap();
        }
    });
}

/// As behind a second Ctrl-C, or where another program has stopped them.
#[test]
fn of_sessions_that_are_gone_nobody_is_asked_at_the_end_which_is_told() {
    with_sessions("start-test-unasked", |sessions, names| {
        sys::told_providers();
        sys::let_sessions_answer(Some((Win32Error::WMI_INSTANCE_NOT_FOUND.0, Losses::default())));
        let stopped = sessions.stop().whole().unwrap();
        sys::let_sessions_answer(None);
        assert_eq!((sys::told_providers(), stopped.losses.len()), (vec![], 2));
        let [unasked] = &stopped.unanswered[..] else { panic!("{stopped:?}") };
        assert!(unasked.is_unasked() && unasked.provider == RUNDOWN, "{unasked}");
        for name in &names {
            sys::stop_by_name(name).unwrap();
        }
    });
}

#[test]
fn what_sessions_say_that_they_lost_is_told() {
    with_sessions("start-test-lost", |sessions, _| {
        let lost = Losses { events: 7, file_buffers: 2, live_buffers: 1 };
        sys::let_sessions_answer(Some((0, lost)));
        let all = [Part::Main, Part::Heap].map(|part| (part, lost));
        assert_eq!(sessions.losses().unwrap(), all);
        let stopped = sessions.stop();
        sys::let_sessions_answer(None);
        assert_eq!(stopped.whole().unwrap().losses, all);
    });
}

/// Wine has no providers that could be slow: their answer is made up.
#[test]
fn what_providers_do_not_do_is_told_and_stops_nothing() {
    with_sessions("start-test-answers", |sessions, _| {
        sys::let_providers_answer(1460);
        let stopped = sessions.stop().whole().unwrap();
        assert_eq!(stopped.losses.len(), 2);
        let [late] = &stopped.unanswered[..] else { panic!("{stopped:?}") };
        assert_eq!((&*late.provider, late.asked, late.cause.0), (RUNDOWN, Asked::End, 1460));
        // The one that is asked at the beginning, twice, and the one that is at the end.
        let mut plan = plan_for_files();
        plan.providers[0].capture_state = true;
        let names: Vec<String> = plan.providers.iter().map(|provider| provider.name.clone()).collect();
        let folder = tempfile::tempdir().unwrap();
        let target = Target::File(folder.path().join("x.etl"));
        let settings = Settings { name: "start-test-answers-late".to_owned(), target };
        let sessions = Sessions::start(&plan, &settings, nobody).unwrap();
        sys::let_providers_answer(87);
        let told: Vec<(String, Asked, u32)> =
            sessions.stop().unanswered.into_iter().map(|it| (it.provider, it.asked, it.cause.0)).collect();
        let told: Vec<(&str, Asked, u32)> =
            told.iter().map(|(name, asked, code)| (&**name, *asked, *code)).collect();
        let expected =
            [(&*names[0], Asked::Events, 1460), (&*names[0], Asked::State, 1460), (RUNDOWN, Asked::End, 87)];
        assert_eq!(told, expected);
        // What is refused at the beginning ends it.
        let error = Sessions::start(&plan, &settings, nobody).unwrap_err();
        assert!(matches!(error, SessionError::Call { call: "EnableTraceEx2", .. }), "{error}");
        sys::let_providers_answer(0);
    });
}

/// As a provider that has none to tell: `ERROR_ACCESS_DENIED`, `ERROR_NOT_SUPPORTED`.
#[test]
fn a_provider_that_does_not_tell_its_state_tells_its_events() {
    with_sessions("start-test-state", |sessions, _| {
        drop(sessions);
        let mut plan = plan_for_files();
        plan.providers[0].capture_state = true;
        let folder = tempfile::tempdir().unwrap();
        let target = Target::File(folder.path().join("x.etl"));
        let settings = Settings { name: "start-test-state-refused".to_owned(), target };
        for code in [5, 50] {
            sys::let_states_be_answered(Some(code));
            let started = Sessions::start(&plan, &settings, nobody);
            sys::let_states_be_answered(None);
            let stopped = started.unwrap().stop().whole().unwrap();
            let [refused] = &stopped.unanswered[..] else { panic!("{stopped:?}") };
            assert_eq!((&refused.provider, refused.asked), (&plan.providers[0].name, Asked::State));
            assert_eq!(refused.cause.0, code);
        }
    });
}

/// Of sessions that write files nothing is read that could tell.
#[test]
fn sessions_that_are_gone_have_ended() {
    with_sessions("start-test-ended", |sessions, names| {
        assert!(!sessions.has_ended());
        sys::let_sessions_answer(Some((Win32Error::WMI_INSTANCE_NOT_FOUND.0, Losses::default())));
        assert!(sessions.has_ended());
        drop(sessions);
        sys::let_sessions_answer(None);
        for name in &names {
            sys::stop_by_name(name).unwrap();
        }
    });
}

/// What another one sets between a look at the interval and its being set again would be undone.
#[test]
fn the_interval_is_not_tried_while_another_one_changes_it() {
    const SHORT: std::time::Duration = std::time::Duration::from_millis(300);
    let _turn = console::turn();
    let held = restored::lock().unwrap();
    let (tells, told) = std::sync::mpsc::channel();
    let other = std::thread::spawn(move || {
        let interval = || {
            tells.send(()).unwrap();
            Ok(10_000)
        };
        let mut set = None;
        set_again(interval, |units| {
            set = Some(units);
            Ok(())
        })
        .unwrap();
        set
    });
    assert!(told.recv_timeout(SHORT).is_err(), "it does not wait");
    drop(held);
    assert_eq!((told.recv(), other.join().unwrap()), (Ok(()), Some(10_000)));
}

/// As for the process of a command.
#[test]
fn a_heap_that_comes_later_is_a_part_like_others() {
    if std::env::var_os("COLLECTOR_WINE").is_none() {
        let _ = writeln!(stderr(), "SKIPPED a_heap_that_comes_later_is_a_part_like_others: this is not Wine");
        return;
    }
    let _turn = console::turn();
    let folder = tempfile::tempdir().unwrap();
    let target = Target::File(folder.path().join("x.etl"));
    let settings = Settings { name: "start-test-later".to_owned(), target };
    let mut plan = plan_for_files();
    let heap = plan.heap.take().unwrap();
    let mut sessions = Sessions::start(&plan, &settings, nobody).unwrap();
    assert!(!console::is_running("start-test-later-heap"));
    sessions.start_heap(&heap, plan.buffers, nobody).unwrap();
    assert!(console::is_running("start-test-later-heap"));
    let many = HeapPlan { pids: vec![Pid(1); HeapPlan::MOST + 1] };
    let error = sessions.start_heap(&many, plan.buffers, nobody).unwrap_err();
    assert!(matches!(error, SessionError::Processes { count: 1020 }), "{error}");
    let parts: Vec<Part> =
        sessions.stop().whole().unwrap().losses.into_iter().map(|(part, _)| part).collect();
    assert_eq!(parts, [Part::Main, Part::Heap]);
}

#[test]
fn sessions_that_are_dropped_are_stopped() {
    with_sessions("start-test-drop", |sessions, _| drop(sessions));
    with_sessions("start-test-panic", |sessions, _| {
        let panicking = std::thread::spawn(move || {
            let _sessions = sessions;
            panic!("on purpose");
        });
        panicking.join().unwrap_err();
    });
}

/// Of a program that does not watch it, with sessions that are stopped or dropped behind it.
#[test]
fn ctrl_c_leaves_no_session_behind() {
    with_sessions("start-test-interrupt", |sessions, names| {
        assert!(!console::interrupt(), "what else comes of it is the program's");
        assert!(!names.iter().any(|name| console::is_running(name)));
        assert_eq!(sys::stopped_by_name()[2..], names);
        assert_eq!(sessions.stop().whole().unwrap().losses.len(), 2);
    });
    with_sessions("start-test-interrupt-2", |sessions, _| {
        console::interrupt();
        drop(sessions);
    });
}

/// Of sessions of which Ctrl-C comes behind the first, the second is not started.
#[test]
fn what_ctrl_c_comes_into_is_not_gone_on_with() {
    let _turn = console::turn();
    let (settings, round) = (settings("start-test-late"), console::round());
    console::interrupt();
    let (part, kind, buffers) = (Part::Main, Kind::Providers, Buffers::USUAL);
    let wanted = Wanted { part, kind, buffers, settings: &settings, round };
    let error = Session::start(&wanted, &mut |_| -> MakeSink { panic!("it was started") }).unwrap_err();
    assert!(matches!(error, SessionError::Interrupted), "{error}");
    assert!(!console::is_running("start-test-late"));
}

#[test]
fn the_kernels_own_session_is_for_where_no_other_is_to_be_had() {
    let of = |code| SessionError::of("StartTraceW", "Collector", Win32Error(code));
    assert!(is_for_want_of_loggers(&of(1450)));
    // ERROR_INVALID_PARAMETER, ERROR_DISK_FULL, and what is refused.
    assert!(![87, 112, 5].into_iter().any(|code| is_for_want_of_loggers(&of(code))));
    assert!(!is_for_want_of_loggers(&SessionError::of("OpenTraceW", "Collector", Win32Error(1450))));
}

/// One that another program has stopped meanwhile, or that Ctrl-C did: what is left of it is nobody's any more.
#[test]
fn the_heap_is_stopped_where_the_first_session_is_gone() {
    with_sessions("start-test-gone", |sessions, names| {
        for name in &names {
            sys::stop_by_name(name).unwrap();
        }
        assert_eq!(sessions.stop().whole().unwrap().losses.len(), 2);
    });
}
