//! Events by what `-e` takes: those that are wrong are told in a line with the cause and what helps, markers of a pattern, and events of the
//! processor by their numbers.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use collector_user::tracefs::Tracefs;

use crate::prerequisites::live;
use crate::probe_values::{OF_THE_KERNEL, registered};
use crate::programs::{compile, folder};
use crate::recording::{collector, record, run};

/// What is wrong, by the part of a specification that it is in: what is written, the status, and what is told of it beside the event's
/// name. Status 2 is for what can't be meant, 1 for what this machine does not have.
const WRONG: [(&str, i32, &[&str]); 72] = [
    // Name and filter.
    ("", 2, &["an event begins with its name, as in sched:sched_switch"]),
    ("''/prev_pid == 1/", 2, &["an event begins with its name"]),
    ("'sched:sched_switch", 2, &["the quote of the event's name is not closed"]),
    (
        "'sched:sched_switch' prev_pid",
        2,
        &["`prev_pid` behind the event's name is no filter between slashes"],
    ),
    ("sched:sched_switch/prev_pid == 1", 2, &["ends with a slash; quote the whole name"]),
    (
        "uprobe:/bin/true:main/common_pid == 1/",
        2,
        &["begins with a space and a slash: uprobe:/usr/lib/x.so:func /common_pid == 1/"],
    ),
    ("sched:sched_switch//", 2, &["the filter is empty: the name of a field was expected"]),
    ("sched:sched_switch/prev_pid => 1/", 2, &["column 10, before `=> 1`", "did you mean `>=`?"]),
    ("sched:sched_switch/prev_pid =\t1/", 2, &["`prev_pid = 1`, at column 10", "did you mean `==`?"]),
    ("sched:sched_switch/prev_pid == 1\nor/", 2, &["at column 17, its end", "the name of a field"]),
    ("sched:sched_switch/prev_pid ==/", 2, &["its end: a number, or text in quotes, was expected"]),
    ("sched:sched_switch/prev_comm == bash/", 2, &["write text in quotes: 'bash'"]),
    ("sched:sched_switch/(prev_pid == 1/", 2, &["column 1", "the parenthesis is not closed"]),
    ("sched:sched_switch/prev_comm contians 'x'/", 2, &["did you mean `contains`?"]),
    ("sched:sched_switch/prev_comm == 'x/", 2, &["the quote is not closed"]),
    ("sched:sched_switch/prev_pd == 1/", 2, &["no field `prev_pd`; did you mean `prev_pid`"]),
    ("sched:sched_switch/prev_pid == 'x'/", 2, &["`prev_pid` is a number, this is text"]),
    ("sched:sched_switch/prev_comm == 1/", 2, &["`prev_comm` is text, this is a number; quote text"]),
    ("sched:sched_switch/prev_pid == 99999999999/", 2, &["from -2147483648 to 2147483647"]),
    ("raw_syscalls:sys_enter/args[6] == 1/", 2, &["`args` has 6 elements, the last is [5]"]),
    ("raw_syscalls:sys_enter/args == 1/", 2, &["name an element, as `args[0]`"]),
    ("cpu-clock/pid == 1/", 2, &["the sampling clock has no fields to filter by"]),
    ("page-faults/pid == 1/", 2, &["there is no field `pid`; the event has no fields"]),
    // Counters, and what is taken for one.
    ("nonsense", 2, &["`collector list events` lists them"]),
    ("page-fault", 2, &["did you mean page-faults?"]),
    ("PAGE-FAULTS", 2, &["did you mean page-faults?"]),
    ("page-faults:u", 2, &["modifiers such as `:u` are not known here"]),
    ("page-faults,cs", 2, &["each event has an `-e` of its own"]),
    ("L1-dcache-load-misses", 2, &["by its number in the processor's manual, as rNNN"]),
    ("raw:0x1a8", 2, &["did you mean r1a8?"]),
    ("r0x1a8", 2, &["did you mean r1a8?"]),
    ("cpu/event=0xa8,umask=0x1/", 2, &["did you mean r1a8?"]),
    ("cpu/event=0xa8,inv=1/", 2, &["of up to 16 hexadecimal digits, as rNNN"]),
    ("r10000000000000000", 2, &["of up to 16 hexadecimal digits, as rNNN"]),
    ("R1a8", 2, &["did you mean r1a8?"]),
    ("*", 2, &["a pattern of tracepoints is CATEGORY:NAME, as sched:*"]),
    ("etw:Microsoft-Windows-Kernel-Process", 2, &["is an event of Windows", "`collector list events`"]),
    // Tracepoints.
    ("sched_switch", 2, &["did you mean sched:sched_switch?"]),
    ("sched:sched_swich", 2, &["did you mean sched:sched_switch"]),
    ("sched:", 2, &["a tracepoint is CATEGORY:NAME"]),
    (":sched_switch", 2, &["a tracepoint is CATEGORY:NAME"]),
    ("sched", 2, &["did you mean sched:*?"]),
    ("shced:*", 2, &["did you mean sched:*?"]),
    ("sched:no_such*", 2, &["no tracepoint matches", "did you mean sched:*?"]),
    ("sched:../sched/sched_switch", 2, &["a slash"]),
    ("sched:sched_switch:x", 2, &["did you mean sched:sched_switch?"]),
    ("tracepoint:sched:sched_switch", 2, &["did you mean sched:sched_switch?"]),
    ("sched:sched_switch,sched:sched_wakeup", 2, &["each event has an `-e` of its own"]),
    // Probes.
    ("uprobe:", 2, &["not absolute; the form is uprobe:/PATH:FUNCTION"]),
    ("uprobe:true:main", 2, &["not absolute; the form is uprobe:/PATH:FUNCTION"]),
    ("uprobe:/bin/sh", 2, &["a colon and a name follow the file's path; the form is"]),
    ("uprobe:/bin/sh:", 2, &["the name of the function is missing; the form is"]),
    (
        "uprobe:/no/such/file:main",
        2,
        &["/no/such/file can't be read: No such file", "name the file of a program"],
    ),
    ("uprobe:/etc/passwd:main", 2, &["/etc/passwd is no program or library", "name an ELF file"]),
    ("uprobe:/usr/bin:main", 2, &["it is no file", "name the file of a program"]),
    (
        "uprobe:/bin/sh:no_such_function_at_all",
        2,
        &["/bin/sh has no function called `no_such_function_at_all`"],
    ),
    ("uprobe:/bin/sh:main(argc)", 2, &["`argc` is no argument, which is NAME:TYPE"]),
    ("uprobe:/bin/sh:main(argc:int)", 2, &["`int` is no type of an argument"]),
    ("uprobe:/bin/sh:main(argc:i32", 2, &["the parentheses do not match; the form is"]),
    (
        "uretprobe:/bin/sh:main(a:u64, b:u64)",
        2,
        &["returns one value", "the form is uretprobe:/PATH:FUNCTION"],
    ),
    ("usdt:/bin/sh:main", 2, &["provider and name are needed; the form is usdt:/PATH:PROVIDER:NAME"]),
    ("usdt:/bin/sh:any:*", 2, &["/bin/sh has no marker called `any:*`", "built without markers (USDT)"]),
    ("uporbe:/bin/sh:main", 2, &["did you mean uprobe:/bin/sh:main"]),
    ("kprobe:", 2, &["the name of the function is missing; the form is kprobe:FUNCTION"]),
    ("kretprobe:vfs_read+4", 2, &["leave the offset out; the form is kretprobe:FUNCTION"]),
    // Maps.
    ("bpf:", 2, &["the path at which the map is pinned is missing", "the form is bpf:/PATH(NAME:TYPE, ...)"]),
    ("bpf:/sys/fs/bpf/", 2, &["no file's path ends with a slash"]),
    ("bpf:id:seven", 2, &["the map's number is missing, or is none; the form is"]),
    ("bpf:id:4294967295", 2, &["no map has this number; "]),
    ("bpf:fd:1000000", 2, &["collector was started without this descriptor: hand it over"]),
    ("bpf:/dev/null", 2, &["is nothing of BPF's: name the path at which a map is pinned"]),
    ("bpf:/sys/fs/bpf/map(pid:u7)", 2, &["`u7` is no type of a field"]),
];

/// The event is told in one line, with all of these, and nothing is recorded.
fn assert_told(event: &str, status: i32, expected: &[&str]) {
    let folder = folder();
    let file = folder.path().join("x.folded");
    let [event_option, output, command] = ["-e", "-o", "--"].map(OsStr::new);
    let args = [event_option, event.as_ref(), output, file.as_os_str(), command, "true".as_ref()];
    let output = run(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{event}: {stderr}");
    let line = stderr.strip_suffix('\n').and_then(|line| line.strip_prefix("collector: "));
    let line = line.filter(|line| !line.contains(char::is_control));
    let line = line.unwrap_or_else(|| panic!("{event}: {stderr}"));
    // Up to its filter, and without the quotes around it.
    let name = event.trim_matches('\'').split(['/', '\'']).next().unwrap_or_default();
    assert!(
        line.contains(name) && expected.iter().all(|expected| line.contains(expected)),
        "{event}: {line}"
    );
    assert!(output.stdout.is_empty() && !file.exists(), "{event}");
}

#[test]
fn what_is_wrong_with_an_event_is_told_in_a_line() {
    let Some(_live) = live("what_is_wrong_with_an_event_is_told_in_a_line") else { return };
    for (event, status, expected) in WRONG {
        assert_told(event, status, expected);
    }
}

/// What is there on some machines, and named rightly.
#[test]
fn what_this_machine_does_not_have_is_told_in_a_line() {
    let Some(_live) = live("what_this_machine_does_not_have_is_told_in_a_line") else { return };
    let tracefs = Tracefs::open().unwrap();
    if tracefs.has_user_events() {
        for event in ["user_events:nobodys", "user_events:nobodys*"] {
            assert_told(event, 2, &["no program has registered", "start that first"]);
        }
    } else {
        for event in ["user_events:nobodys", "user_events:nobodys*"] {
            assert_told(event, 1, &["CONFIG_USER_EVENTS", "`usdt:` or `uprobe:`"]);
        }
    }
    if registered(OF_THE_KERNEL).is_some() {
        assert_told(
            "kprobe:vfs_raed",
            2,
            &["the kernel has no function called `vfs_raed`: did you mean vfs_read"],
        );
        assert_told("kprobe:no_such_thing_of_it*", 2, &["the kernel has no function called"]);
    } else {
        for event in ["kprobe:vfs_raed", "kprobe:vfs_read", "kretprobe:vfs_*"] {
            assert_told(event, 1, &["CONFIG_KPROBE_EVENTS", "use a tracepoint"]);
        }
    }
    if !Path::new("/sys/bus/event_source/devices/cpu").exists() {
        for event in ["cycles", "r1a8"] {
            assert_told(event, 1, &["the processor's unit for it is absent"]);
        }
    }
}

/// Of two markers, of which one is passed only while somebody listens, and has other arguments.
#[test]
fn markers_of_a_pattern() {
    const TIMES: u64 = 200;
    let Some(_live) = live("markers_of_a_pattern") else { return };
    let folder = folder();
    let program = compile(folder.path(), "probed", "probed.c", &[]);
    for (pattern, expected) in [
        ("probed:*", 2 * TIMES),
        ("p*d:*w*", 2 * TIMES),
        ("*:watch??", TIMES),
        ("*:*", 2 * TIMES),
        ("probed:always", TIMES),
        // Of each marker the arguments that it has are filtered by.
        ("probed:* /arg0 <= -100/", 2 * (TIMES - 100)),
    ] {
        let event = format!("usdt:{}:{pattern}", program.display());
        let times = TIMES.to_string();
        let recorded = record(folder.path(), ["-e", &event, "--", program.to_str().unwrap(), &times]);
        assert_eq!(recorded.samples_of("probed"), expected, "{pattern}: {}", recorded.stderr);
        assert!(recorded.stacks.iter().all(|it| it.frames.last().is_some_and(|leaf| leaf == "marked")));
    }
    let wrong = format!("usdt:{}:probed:nothing*", program.display());
    assert_told(&wrong, 2, &["has no marker called `probed:nothing*`", "among 2, which `readelf -n` lists"]);
    let wrong = format!("usdt:{}:porbed:always", program.display());
    assert_told(&wrong, 2, &["did you mean probed:always?"]);
}

/// What the kernel is asked for, as a library notes it that is loaded before the C library's.
#[test]
fn an_event_of_the_processor_is_asked_for_by_its_number() {
    let Some(_live) = live("an_event_of_the_processor_is_asked_for_by_its_number") else { return };
    let folder = folder();
    let noting = compile(folder.path(), "asked.so", "asked.c", &["-shared", "-fPIC"]);
    let noted = folder.path().join("noted");
    for backend in ["auto", "perf"] {
        let _ = fs::remove_file(&noted);
        let mut recorder = collector();
        recorder.args(["run", "--backend", backend, "-e", "r1a8", "-e", "rc0ffee00000005c", "-o", "-"]);
        recorder.args(["--format", "folded", "--", "true"]);
        recorder.env("LD_PRELOAD", &noting).env("NOTED", &noted);
        // Where there is no unit, it fails when it has asked.
        let output = recorder.output().unwrap();
        let noted = fs::read_to_string(&noted).unwrap();
        // PERF_TYPE_RAW
        let raw = |line: &&str| line.starts_with("4 ");
        let mut asked: Vec<&str> = noted.lines().filter(raw).collect();
        asked.sort_unstable();
        asked.dedup();
        let stderr = String::from_utf8_lossy(&output.stderr);
        if Path::new("/sys/bus/event_source/devices/cpu").exists() {
            assert_eq!(asked, ["4 0x1a8", "4 0xc0ffee00000005c"], "{backend}: {stderr}");
        } else {
            assert_eq!(asked, ["4 0x1a8"], "{backend}: {stderr}");
        }
    }
}
