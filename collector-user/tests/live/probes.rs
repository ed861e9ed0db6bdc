//! Probes, by a program that calls functions and passes markers with known values, so often as it is told.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use collector_common::event::{EventData, EventFieldRef, EventFlags, filter};
use collector_user::probe::Probe;
use collector_user::session::{Backend, Session, SessionSettings};
use collector_user::source::{Hook, Settings, Targets};
use collector_user::tracefs::Tracefs;

use crate::prerequisites::{find, live, live_with};
use crate::probe_values::{self, OF_PROGRAMS, OF_THE_KERNEL, TIMES, attach, command, of_events};
use crate::programs::{Running, compile, folder};
use crate::recording::{collector, record, run};
use crate::scenarios;

/// `TEXTS` of the program.
const TEXTS: [&str; 4] = ["zero", "one", "two words", ""];

/// Probes of programs that the kernel knows of.
fn registered() -> Vec<String> {
    probe_values::registered(OF_PROGRAMS).unwrap()
}

/// What `read` makes of each occurrence of a probe that is one event.
fn values<T: std::fmt::Debug + 'static>(
    probe: &str,
    program: &Path,
    fields: &[&str],
    read: impl Fn(&EventData<'_>, &[EventFieldRef]) -> anyhow::Result<T> + 'static,
) -> Vec<T> {
    probe_values::values(Backend::Auto, OF_PROGRAMS, probe, program, fields, read)
}

fn probed(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    compile(folder, name, "probed.c", options)
}

/// The compiler's option by which it finds LLVM's linker, whatever the version in its name.
fn lld(folder: &Path) -> String {
    let linker = ["ld.lld", "ld.lld-22"].into_iter().find_map(find).expect("LLVM's linker is on PATH");
    symlink(linker, folder.join("ld.lld")).unwrap();
    format!("-B{}", folder.display())
}

/// The arguments of `work`, as the program's source gives them.
fn arguments() -> Vec<(i32, String, i64)> {
    (0..TIMES).map(|i| (i as i32 - 50, TEXTS[i % 4].to_owned(), (i as i64) << 33)).collect()
}

fn arguments_seen(program: &Path) -> Vec<(i32, String, i64)> {
    let probe = format!("uprobe:{}:work(a:i32, text:str, c:i64)", program.display());
    values(&probe, program, &["a", "text", "c"], |data, refs| {
        let text = data.try_get_str(refs[1])?.to_owned();
        Ok((data.try_get_i32(refs[0])?, text, data.try_get_i64(refs[2])?))
    })
}

#[test]
fn every_argument_is_right_however_the_program_is_linked() {
    let Some(_live) = live("every_argument_is_right_however_the_program_is_linked") else { return };
    let folder = folder();
    let lld = lld(folder.path());
    for (name, options) in [
        ("pie", &["-pie", "-fPIE"][..]),
        ("fixed", &["-no-pie"]),
        ("static", &["-static"]),
        // Its segments lie elsewhere in the file than in memory.
        ("lld", &[&lld, "-fuse-ld=lld", "-Wl,-z,separate-code"]),
        ("lld-packed", &[&lld, "-fuse-ld=lld", "-Wl,-z,noseparate-code"]),
        ("of a name with spaces (1)", &[]),
        ("stripped", &["-rdynamic", "-s"]),
    ] {
        let program = probed(folder.path(), name, options);
        assert_eq!(arguments_seen(&program), arguments(), "{name}");
    }
}

#[test]
fn functions_that_a_debug_file_names() {
    let Some(_live) = live("functions_that_a_debug_file_names") else { return };
    let folder = folder();
    let program = probed(folder.path(), "apart", &[]);
    for line in [
        &["objcopy", "--only-keep-debug", "apart", "apart.debug"][..],
        &["strip", "apart"],
        &["objcopy", "--add-gnu-debuglink=apart.debug", "apart"],
    ] {
        let status = Command::new(line[0]).args(&line[1..]).current_dir(folder.path()).status().unwrap();
        assert!(status.success(), "{line:?}");
    }
    assert_eq!(arguments_seen(&program), arguments());
    fs::remove_file(folder.path().join("apart.debug")).unwrap();
    let probe = Probe::parse(&format!("uprobe:{}:work", program.display())).unwrap();
    let error = probe.attach(&Tracefs::open().unwrap()).expect_err("nothing names it").to_string();
    assert!(error.contains("install its debug package"), "{error}");
}

#[test]
fn what_a_function_returns() {
    let Some(_live) = live("what_a_function_returns") else { return };
    let folder = folder();
    let program = probed(folder.path(), "probed", &[]);
    let probe = format!("uretprobe:{}:work(ret:i64)", program.display());
    let returned = values(&probe, &program, &["ret"], |data, refs| Ok(data.try_get_i64(refs[0])?));
    let expected =
        arguments().into_iter().map(|(a, text, c)| i64::from(a) - c + i64::from(text.starts_with('o')));
    assert_eq!(returned, expected.collect::<Vec<_>>());
}

/// By the unwind information, which `strip` leaves: an entry begins there, and says that the return address is on the stack.
#[test]
fn what_a_function_of_a_stripped_file_returns() {
    let Some(_live) = live("what_a_function_of_a_stripped_file_returns") else { return };
    let folder = folder();
    let program = probed(folder.path(), "probed", &[]);
    let symbols = Command::new("nm").arg(&program).output().unwrap();
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    let line = symbols.lines().find(|line| line.ends_with(" work")).unwrap();
    let address = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    assert!(Command::new("strip").arg(&program).status().unwrap().success());
    let probe = |address: u64| format!("uretprobe:{}:{address:#x}(ret:i64)", program.display());
    let returned = values(&probe(address), &program, &["ret"], |data, refs| Ok(data.try_get_i64(refs[0])?));
    let expected =
        arguments().into_iter().map(|(a, text, c)| i64::from(a) - c + i64::from(text.starts_with('o')));
    assert_eq!(returned, expected.collect::<Vec<_>>());
    let within = Probe::parse(&probe(address + 4)).unwrap().attach(&Tracefs::open().unwrap());
    let refused = within.expect_err("no function begins there").to_string();
    assert!(refused.contains("by its symbols or its unwind information"), "{refused}");
}

#[test]
fn types_say_what_a_register_holds() {
    let Some(_live) = live("types_say_what_a_register_holds") else { return };
    let folder = folder();
    let program = probed(folder.path(), "probed", &[]);
    let probe = format!("uprobe:{}:work(low:u8, _, odd:bool, high@rdx:u64, text:ptr)", program.display());
    // The fifth argument has a register, whatever it holds.
    let seen = values(&probe, &program, &["low", "odd", "high"], |data, refs| {
        Ok((data.try_get_u8(refs[0])?, data.try_get_bool(refs[1])?, data.try_get_u64(refs[2])?))
    });
    let expected = (0..TIMES as u64).map(|i| ((i as u8).wrapping_sub(50), false, i << 33));
    assert_eq!(seen, expected.collect::<Vec<_>>());
}

#[test]
fn a_probe_that_somebody_else_uses_stays_and_is_told() {
    let Some(_live) = live("a_probe_that_somebody_else_uses_stays_and_is_told") else { return };
    let folder = folder();
    let program = probed(folder.path(), "probed", &[]);
    let before = registered();
    let hooks = attach(&format!("uprobe:{}:work(a:i32)", program.display()));
    let made = registered().into_iter().find(|line| !before.contains(line)).unwrap();
    let name = made.split([':', ' ']).nth(1).unwrap();
    let tracefs = Tracefs::open().unwrap();
    let same = tracefs.event(&name.replace('/', ":")).unwrap();
    let other = Session::start(of_events(Backend::Perf, vec![Hook::tracepoint(same)]), None).unwrap();
    let recording = scenarios::record(of_events(Backend::Auto, hooks), &command(&program));
    assert!(registered().contains(&made));
    let [told] = &recording.warnings[..] else { panic!("{:?}", recording.warnings) };
    assert!(told.contains(&name.replace('/', ":")) && told.contains("resource busy"), "{told}");
    other.finish().unwrap();
    let remedy = told.split('`').nth(1).unwrap().replace("sudo ", "");
    if tracefs.is_mounted() {
        let done = Command::new("sh").args(["-c", &remedy]).stdout(Stdio::null()).status().unwrap();
        assert!(done.success(), "{remedy}");
    } else {
        // What would remove it where it is mounted.
        let line = remedy.split('\'').nth(1).unwrap();
        let mut file = fs::File::options().append(true).open(tracefs.root().join(OF_PROGRAMS)).unwrap();
        writeln!(file, "{line}").unwrap();
    }
    assert_eq!(registered(), before, "{remedy}");
}

#[test]
fn hits_that_a_filter_leaves_out_are_not_recorded() {
    let Some(_live) = live("hits_that_a_filter_leaves_out_are_not_recorded") else { return };
    let folder = folder();
    let program = probed(folder.path(), "probed", &[]);
    let path = program.display();
    let mut written = 0;
    for (probe, text, passing) in [
        (format!("uprobe:{path}:work(a:i32, text:str, c:i64)"), "a == -47 and c > 0", 1),
        (format!("uprobe:{path}:work(a:i32, text:str, c:i64)"), "text starts_with 'two'", TIMES / 4),
        (format!("uprobe:{path}:work(low:u8, text:ptr, odd:bool)"), "text == 1", 0),
        (format!("uprobe:{path}:work(low:u8, text:ptr, odd:bool)"), "low >= 206 and odd == 0", 50),
        (format!("uretprobe:{path}:work(ret:i64)"), "ret > 0", 0),
        (format!("usdt:{path}:probed:always"), "arg0 < -97", 2),
        (format!("uprobe:{path}:work(a:i32)"), "a > -51", TIMES),
    ] {
        let mut hooks = attach(&probe);
        let event = &mut hooks[0].event;
        event.flags_mut().set(EventFlags::CALLSTACK, true);
        event.set_filter(Some(&filter::parse(text).unwrap())).unwrap();
        assert!(event.kernel_filter().is_some(), "{probe}/{text}/");
        let recording = scenarios::record(of_events(Backend::Auto, hooks), &command(&program));
        let what = format!("{probe}/{text}/: {:?}, {} bytes", recording.ledger, recording.stats.bytes_copied);
        assert_eq!(recording.ledger.delivered(), passing as u64, "{what}");
        assert_eq!(recording.ledger.total_lost(), 0, "{what}");
        // Stacks are copied with the hits that pass, and with no other.
        written = recording.stats.bytes_copied;
        assert_eq!(written > 0, passing > 0, "{what}");
        assert!(written <= passing as u64 * (8 << 10), "{what}");
    }
    assert!(written > 0);
}

#[test]
fn a_pattern_is_one_event_of_several_functions() {
    let Some(_live) = live("a_pattern_is_one_event_of_several_functions") else { return };
    let folder = folder();
    let program = probed(folder.path(), "probed", &[]);
    let probe = format!("uprobe:{}:part_*(n:u32)", program.display());
    // Three calls in a turn, of the same value.
    let seen = values(&probe, &program, &["n"], |data, refs| Ok(data.try_get_u32(refs[0])?));
    assert_eq!(seen, (0..3 * TIMES as u32).map(|call| call / 3).collect::<Vec<_>>());

    let mut hooks = attach(&format!("uprobe:{}:part_t*", program.display()));
    hooks[0].event.flags_mut().set(EventFlags::CALLSTACK, true);
    let recording = scenarios::record(of_events(Backend::Auto, hooks), &command(&program));
    let kinds: Vec<&str> =
        recording.machine.kinds().iter().map(|kind| recording.machine.string(kind.name)).collect();
    assert_eq!(kinds, [format!("uprobe:{}:part_t*", program.display())]);
    let delivered = recording.ledger.delivered() + recording.ledger.total_lost();
    assert_eq!(delivered, 2 * TIMES as u64);
}

#[test]
fn markers_with_their_arguments() {
    let Some(_live) = live("markers_with_their_arguments") else { return };
    let folder = folder();
    let lld = lld(folder.path());
    for options in [&[][..], &[&lld, "-fuse-ld=lld", "-Wl,-z,separate-loadable-segments"], &["-no-pie"]] {
        let program = probed(folder.path(), "probed", options);
        let path = program.display();
        let seen =
            values(&format!("usdt:{path}:probed:always"), &program, &["arg0", "arg2"], |data, refs| {
                Ok((data.try_get_i32(refs[0])?, data.try_get_i32(refs[1])?))
            });
        assert_eq!(seen, (0..TIMES as i32).map(|i| (-i, -5)).collect::<Vec<_>>());
        let named = format!("usdt:{path}:probed:always(number:i32, text:str)");
        let seen =
            values(&named, &program, &["text"], |data, refs| Ok(data.try_get_str(refs[0])?.to_owned()));
        assert_eq!(seen, (0..TIMES).map(|i| TEXTS[i % 4]).collect::<Vec<_>>());
        // It is passed only while somebody listens.
        let seen = values(&format!("usdt:{path}:probed:watched"), &program, &["arg0"], |data, refs| {
            Ok(data.try_get_i32(refs[0])?)
        });
        assert_eq!(seen, (0..TIMES as i32).map(|i| -i).collect::<Vec<_>>());
    }
}

#[test]
fn stacks_and_a_filter_by_the_command_line() {
    let Some(_live) = live("stacks_and_a_filter_by_the_command_line") else { return };
    let folder = folder();
    let program = probed(folder.path(), "probed", &[]);
    let before = registered();
    let probe = format!("uprobe:{}:work(a:i32, text:str) /text == 'one' && a >= 0/", program.display());
    let args = ["-e".as_ref(), OsStr::new(&probe), "--".as_ref(), program.as_os_str()];
    let recorded = record(folder.path(), args);
    let expected = arguments().iter().filter(|(a, text, _)| text == "one" && *a >= 0).count();
    assert_eq!(recorded.figure("/samples/delivered"), expected as u64, "{}", recorded.stderr);
    for stack in &recorded.stacks {
        assert_eq!(stack.frames.last().map(String::as_str), Some("work"), "{stack:?}");
        assert!(stack.frames.contains(&"main".to_owned()) && !stack.is_cut(), "{stack:?}");
    }
    assert_eq!(registered(), before);
}

/// Processes that `forks` makes, and calls of each and of itself: together as many as one ring has room for, however late it is read.
const CHILDREN: usize = 40;
const CALLS: usize = 20;

#[test]
fn calls_of_processes_that_are_made_are_all_recorded() {
    let test = "calls_of_processes_that_are_made_are_all_recorded";
    let Some(_live) = live(test) else { return };
    let folder = folder();
    let program = compile(folder.path(), "forks", "forks.c", &[]);
    let before = registered();
    let probe = format!("uprobe:{}:work(number:i32)", program.display());
    let [children, calls] = [CHILDREN, CALLS].map(|number| number.to_string());
    let args = ["-e", &probe, "--", program.to_str().unwrap(), &children, &calls];
    let recorded = record(folder.path(), args);
    let expected = ((CHILDREN + 1) * CALLS) as u64;
    assert_eq!(recorded.figure("/samples/delivered"), expected, "{}", recorded.stderr);
    // Of a process that runs, and of no other one.
    let waiting = [(); 2].map(|()| {
        let mut shell = Command::new("sh");
        let script = r#"read line; exec "$0" "$1" "$2""#;
        let shell = shell.args(["-c", script]).arg(&program).args([&children, &calls]);
        Running::of(shell.stdin(Stdio::piped()))
    });
    let targets = Targets { pids: [waiting[0].0.id()].into(), ..Targets::default() };
    let events = Probe::parse(&probe).unwrap().attach(&Tracefs::open().unwrap()).unwrap();
    let sampling = Settings { clock: false, targets, ..Settings::default() };
    let settings = SessionSettings { sampling, events, ..SessionSettings::default() };
    let mut session = Session::start(settings, None).unwrap();
    for mut running in waiting {
        drop(running.0.stdin.take());
        assert!(running.0.wait().unwrap().success());
    }
    session.parse_for(Duration::from_millis(1)).unwrap();
    let recording = session.finish().unwrap();
    let ledger = &recording.ledger;
    assert_eq!([ledger.delivered(), ledger.total_lost()], [expected, 0], "{ledger:?}");
    drop(recording);
    assert_eq!(registered(), before);
}

#[test]
fn that_forks_may_have_calls_untold_is_told() {
    let test = "that_forks_may_have_calls_untold_is_told";
    let Some(_live) = live(test) else { return };
    let folder = folder();
    let program = probed(folder.path(), "probed", &[]);
    let probe = format!("uprobe:{}:work", program.display());
    let told = |script: &str| {
        let args = ["--backend", "perf", "-e", &probe, "--", "sh", "-c", script, program.to_str().unwrap()];
        let recorded = record(folder.path(), args);
        recorded.stderr.contains("processes were made by those that were chosen")
    };
    assert!(told(r#""$0"; "$0""#));
    assert!(!told(r#"exec "$0""#));
}

/// Where the second instruction of a program's `work` is, as linked, as objdump has it.
fn second_instruction(program: &Path) -> u64 {
    let listing = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(program).output().unwrap();
    let listing = String::from_utf8(listing.stdout).unwrap();
    let (_, function) = listing.split_once("<work>:\n").unwrap();
    let (address, _) = function.lines().nth(1).unwrap().trim().split_once(':').unwrap();
    u64::from_str_radix(address, 16).unwrap()
}

#[test]
fn what_can_not_be_probed_is_told_in_a_line() {
    let test = "what_can_not_be_probed_is_told_in_a_line";
    let Some(_live) = live_with(test, &["objdump"]) else { return };
    let folder = folder();
    let program = probed(folder.path(), "probed", &[]);
    let text = folder.path().join("text");
    fs::write(&text, "#!/bin/sh\n").unwrap();
    let lld = lld(folder.path());
    let packed = probed(folder.path(), "packed", &[&lld, "-fuse-ld=lld", "-Wl,-z,noseparate-code"]);
    let behind = second_instruction(&program);
    let (program, text, packed) = (program.display(), text.display(), packed.display());
    let before = registered();
    let mut cases = vec![
        (format!("uprobe:{text}:work"), 2, "it is no ELF file"),
        (format!("uprobe:{text}x:work"), 2, "No such file or directory"),
        (format!("uprobe:{}:work", folder.path().display()), 2, "it is no file"),
        ("uprobe:probed:work".to_owned(), 2, "not absolute"),
        (format!("uprobe:{program}:wrk"), 2, "did you mean work?"),
        (format!("uprobe:{program}:no_such_thing_at_all"), 2, "which `nm` and `nm -D` list"),
        (format!("uprobe:{program}:work(a)"), 2, "`a` is no argument, which is NAME:TYPE"),
        (format!("uprobe:{program}:work(a:int)"), 2, "`int` is no type of an argument"),
        (format!("uprobe:{program}:work(a:u32"), 2, "the parentheses do not match"),
        (format!("uprobe:{program}:work(_,_,_,_,_,_,g:u64)"), 2, "it is on the stack"),
        (format!("uprobe:{program}:work(g@xmm0:u64)"), 2, "`xmm0` is no register"),
        (format!("uprobe:{program}:work+0x4000"), 2, "the function's size is the bound"),
        (format!("uprobe:{program}:0x7fffffff"), 2, "is not in the code of"),
        (format!("uprobe:{program}:work+1"), 2, "is inside of an instruction"),
        (
            format!("uretprobe:{program}:{behind:#x}"),
            2,
            "name a function, or probe the place itself by uprobe:",
        ),
        (format!("uprobe:{program}:work(arg1:str)"), 2, "`arg1` is in the place of argument 0"),
        (format!("uprobe:{program}:chosen"), 2, "(an ifunc)"),
        (format!("uprobe:{program}:work(a:i32) /b == 1/"), 2, "work: the filter `b == 1`, at column 1"),
        (format!("usdt:{program}:probed:alwys"), 2, "did you mean probed:always?"),
        ("usdt:/bin/sh:probed:always".to_owned(), 2, "built without markers"),
        (format!("usdt:{packed}:probed:watched"), 2, "-z separate-loadable-segments"),
        (format!("usdt:{program}:always"), 2, "provider and name are needed"),
    ];
    if probe_values::registered(OF_THE_KERNEL).is_none() {
        cases.push(("kprobe:vfs_read".to_owned(), 1, "built without CONFIG_KPROBE_EVENTS"));
        cases.push(("kretprobe:vfs_read(ret:i64)".to_owned(), 1, "built without CONFIG_KPROBE_EVENTS"));
    }
    for (event, code, expected) in cases {
        let file = folder.path().join("x.folded");
        let output = run([
            "-e".as_ref(),
            OsStr::new(&event),
            "-o".as_ref(),
            file.as_os_str(),
            "--".as_ref(),
            "true".as_ref(),
        ]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{event}: {stderr}");
        assert!(stderr.lines().count() == 1 && stderr.contains(expected), "{event}: {stderr}");
        assert_eq!(registered(), before, "{event}");
    }
}

#[test]
fn a_return_probe_of_a_go_program_comes_with_a_warning() {
    let test = "a_return_probe_of_a_go_program_comes_with_a_warning";
    let Some(_live) = live_with(test, &["go"]) else { return };
    let folder = folder();
    let (source, program) = (folder.path().join("main.go"), folder.path().join("quiet"));
    fs::write(&source, "package main\n\nfunc main() {}\n").unwrap();
    let mut build = Command::new("go");
    build.args(["build", "-ldflags=-w", "-o"]).arg(&program).arg(&source);
    assert!(build.status().unwrap().success());
    for (probe, warns) in [("uretprobe", true), ("uprobe", false)] {
        let (probe, file) =
            (format!("{probe}:{}:main.main", program.display()), folder.path().join("x.folded"));
        let output = run(["-e", &probe, "-o", file.to_str().unwrap(), "--", "true"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        assert_eq!(stderr.contains("is a Go program, which ends itself"), warns, "{stderr}");
    }
}

#[test]
fn an_error_behind_a_probe_leaves_nothing_of_it() {
    let Some(_live) = live("an_error_behind_a_probe_leaves_nothing_of_it") else { return };
    let folder = folder();
    let program = probed(folder.path(), "probed", &[]);
    let before = registered();
    let (probe, file) = (format!("uprobe:{}:work", program.display()), folder.path().join("x.folded"));
    let [none, missing] = ["no:such_event", "/no/such/program"].map(OsStr::new);
    let program = program.as_os_str();
    for (event, command, expected) in
        [(none, program, "no event `no:such_event`"), ("page-faults".as_ref(), missing, "can't be executed")]
    {
        let head = ["-e".as_ref(), OsStr::new(&probe), "-e".as_ref(), event, "-o".as_ref()];
        let output = run(head.into_iter().chain([file.as_os_str(), "--".as_ref(), command]));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains(expected), "{stderr}");
        assert_eq!(registered(), before);
    }
}

#[test]
fn what_a_killed_collector_left_the_next_one_removes() {
    let Some(_live) = live_with("what_a_killed_collector_left_the_next_one_removes", &["unshare"]) else {
        return;
    };
    let folder = folder();
    let program = probed(folder.path(), "probed", &[]);
    let before = registered();
    let probe = format!("uprobe:{}:part_*", program.display());
    let file = folder.path().join("x.folded");
    let mut killed = collector();
    killed
        .args(["run", "-d", "60s", "-e", &probe, "-o"])
        .arg(&file)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let mut killed = killed.spawn().unwrap();
    let group = format!("_{}_", killed.id());
    let is_of_it = |line: &&String| line.contains("collector_") && line.contains(&group);
    let of_it = || registered().iter().filter(is_of_it).count();
    let until = Instant::now() + Duration::from_secs(20);
    while of_it() < 3 {
        assert!(Instant::now() < until && killed.try_wait().unwrap().is_none(), "{:?}", registered());
        thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(of_it(), 3, "nobody else removes them");
    // In another pid namespace the pid is nobody's, and the probes are not its business.
    let mut elsewhere = Command::new("unshare");
    elsewhere.args(["--pid", "--fork", "--mount-proc"]).arg(env!("CARGO_BIN_EXE_collector"));
    elsewhere.args(["run", "-o", "-", "--format", "folded", "-e", &probe, "--"]);
    let output = elsewhere.arg(&program).arg("10").stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(of_it(), 3, "{}", String::from_utf8_lossy(&output.stderr));
    let recorded = record(
        folder.path(),
        ["-e".as_ref(), OsStr::new(&probe), "--".as_ref(), program.as_os_str(), "10".as_ref()],
    );
    assert_eq!(recorded.figure("/samples/delivered"), 30);
    assert_eq!(registered(), before);
}

/// The probe that `perf probe` made, removed when it is dropped.
struct OfPerf<'a>(&'a str);

impl Drop for OfPerf<'_> {
    fn drop(&mut self) {
        let _ = Command::new("perf").args(["probe", "-q", "-d", self.0]).status();
    }
}

#[test]
fn perf_counts_as_many() {
    let Some(_live) = live_with("perf_counts_as_many", &["perf"]) else { return };
    let folder = folder();
    let program = probed(folder.path(), "probed", &[]);
    let (probe, times) = (format!("uprobe:{}:work", program.display()), TIMES.to_string());
    let args = [OsStr::new("-e"), probe.as_ref(), "--".as_ref(), program.as_os_str(), times.as_ref()];
    let recorded = record(folder.path(), args);
    let perf = |args: &[&str]| {
        let mut perf = Command::new("perf");
        // Where it would keep copies.
        perf.env("HOME", folder.path());
        let output = perf.args(args).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let event = "collector_peer:work";
    let _probe = OfPerf(event);
    perf(&["probe", "-q", "-x", "./probed", "-a", &format!("{event}=work")]);
    perf(&["record", "-q", "-N", "-e", event, "-o", "perf.data", "--", "./probed", &times]);
    let lines = perf(&["script", "-i", "perf.data", "-F", "event,ip,sym"]);
    let theirs = lines.lines().filter(|line| line.contains(event)).count();
    assert_eq!([theirs as u64, recorded.figure("/samples/delivered")], [TIMES as u64; 2], "{lines}");
}
