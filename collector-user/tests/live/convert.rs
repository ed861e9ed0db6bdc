//! Recordings kept as `perf.data` and unwound later, beside what `perf` makes of the same file.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::record::{ExportMachine, ModuleKind, ModuleMapping, Sample, Unit};
use collector_common::sharing::Writable;
use collector_user::replay::Replay;
use export::format::Profile;
use export::symbolize::Symbols;

use crate::languages::recursion;
use crate::prerequisites::live_with;
use crate::programs::{compile, folder};
use crate::recording::{Recorded, Stack, collector, files, record};

/// `collector convert` to the folded file that a recording has in `folder`, ended.
fn convert_from(input: &Path, stdin: Stdio, folder: &Path) -> Output {
    let (folded, _) = files(folder);
    let mut converter = collector();
    converter.arg("convert").arg(input).arg("-o").arg(folded);
    converter.stdin(stdin).output().unwrap()
}

/// A file, converted.
fn convert(input: &Path, folder: &Path) -> Recorded {
    let output = convert_from(input, Stdio::null(), folder);
    converted(&output, folder)
}

fn converted(output: &Output, folder: &Path) -> Recorded {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {stderr}", output.status);
    let stacks = fs::read_to_string(files(folder).0).unwrap().lines().map(Stack::parse).collect();
    Recorded { stacks, stats: serde_json::Value::Null, stderr }
}

/// `perf record` of a program.
fn perf_record(data: &Path, options: &[&str], program: &Path) {
    let mut perf = Command::new("perf");
    // Two that write the user's cache of build ids at once can spoil it.
    perf.args(["record", "-q", "-N", "-o"]).arg(data).args(options).arg("--").arg(program);
    assert!(perf.stdin(Stdio::null()).status().unwrap().success());
}

/// What `perf script` prints of the samples: the names of each stack, root first, and how often it is there.
fn perf_script(data: &Path) -> BTreeMap<Vec<String>, u64> {
    let mut perf = Command::new("perf");
    perf.args(["script", "--no-inline", "-F", "comm,ip,sym", "-i"]).arg(data);
    let output = perf.stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !told.contains("rror"), "{told}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut stacks = BTreeMap::new();
    for sample in text.split("\n\n").filter(|sample| !sample.trim().is_empty()) {
        let frames = sample.lines().filter(|line| line.starts_with(['\t', ' ']));
        let names = frames.filter_map(|line| line.split_whitespace().nth(1)).map(str::to_owned);
        let mut names: Vec<String> = names.collect();
        names.reverse();
        *stacks.entry(names).or_default() += 1;
    }
    stacks
}

/// The samples whose stack has the functions `names` in this order, whatever is between them.
fn with<'a>(stacks: impl Iterator<Item = (&'a [String], u64)>, names: &[&str]) -> u64 {
    let has = |frames: &[String]| {
        let mut left = frames.iter();
        names.iter().all(|name| left.any(|frame| frame == name))
    };
    stacks.filter(|(frames, _)| has(frames)).map(|(_, count)| count).sum()
}

fn of_ours(recorded: &Recorded) -> impl Iterator<Item = (&[String], u64)> {
    recorded.stacks.iter().map(|stack| (stack.frames.as_slice(), stack.count))
}

fn total(recorded: &Recorded) -> u64 {
    recorded.stacks.iter().map(|stack| stack.count).sum()
}

const CHAIN: [&str; 5] = ["main", "recurse", "recurse", "leaf", "burn_rounds"];

#[test]
fn what_perf_recorded_is_unwound() {
    let Some(_live) = live_with("what_perf_recorded_is_unwound", &["perf"]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &[]);
    let data = folder.path().join("perf.data");
    perf_record(&data, &["-F", "4999", "-e", "cpu-clock", "--call-graph", "dwarf,4096"], &program);
    let ours = convert(&data, folder.path());
    recursion("recursion").check(&ours);
    let theirs = perf_script(&data);
    assert_eq!(total(&ours), theirs.values().sum::<u64>());
    let theirs = with(theirs.iter().map(|(frames, count)| (frames.as_slice(), *count)), &CHAIN);
    let ours = with(of_ours(&ours), &CHAIN);
    assert!(ours >= theirs && theirs > 0, "{ours}, perf {theirs}");
}

#[test]
fn stacks_that_the_kernel_walked_stay_as_they_are() {
    let Some(_live) = live_with("stacks_that_the_kernel_walked_stay_as_they_are", &["perf"]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &["-fno-omit-frame-pointer"]);
    let data = folder.path().join("perf.data");
    perf_record(&data, &["-F", "4999", "-e", "cpu-clock:u", "--call-graph", "fp"], &program);
    let ours = convert(&data, folder.path());
    assert!(ours.stderr.contains("as they were walked when they were recorded"), "{}", ours.stderr);
    let theirs = perf_script(&data);
    // Of the program itself: where the C library has several names for a place, each tool takes another.
    let own = |frames: &[String]| -> Vec<String> {
        frames.iter().filter(|name| CHAIN.contains(&name.as_str())).cloned().collect()
    };
    let mut of_perf: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for (frames, count) in &theirs {
        *of_perf.entry(own(frames)).or_default() += count;
    }
    let mut of_ours_by_stack: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for (frames, count) in of_ours(&ours) {
        *of_ours_by_stack.entry(own(frames)).or_default() += count;
    }
    assert_eq!(of_ours_by_stack, of_perf);
    // `burn_rounds` has no frame of its own, so that its caller is left out: main, 51 times `recurse`, and it.
    assert!(of_perf.keys().any(|frames| frames.len() == 53), "{of_perf:?}");
}

#[test]
fn counters_that_are_read_with_another_ones_samples() {
    let Some(_live) = live_with("counters_that_are_read_with_another_ones_samples", &["perf"]) else {
        return;
    };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &[]);
    let data = folder.path().join("perf.data");
    let groups = [
        ("1", "{context-switches,page-faults,task-clock}:S", 3),
        ("1000000", "{cpu-clock,page-faults}:S", 2),
    ];
    for (period, group, events) in groups {
        perf_record(&data, &["-c", period, "-e", group, "-g"], &program);
        let mut perf = Command::new("perf");
        perf.args(["script", "-G", "-F", "event,period", "-i"]).arg(&data);
        let text = String::from_utf8(perf.stdin(Stdio::null()).output().unwrap().stdout).unwrap();
        // How many samples, and of how much.
        let mut theirs: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (period, name) = line.trim().split_once(' ').unwrap();
            let sums = theirs.entry(name.trim().trim_end_matches(':').to_owned()).or_default();
            *sums = (sums.0 + 1, sums.1 + period.parse::<u64>().unwrap());
        }
        let recording = Replay::open(File::open(&data).unwrap()).unwrap().run();
        assert!(recording.warnings.iter().all(|line| !line.contains("left out")), "{:?}", recording.warnings);
        let machine = &recording.machine;
        let mut ours: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for sample in machine.samples().iter() {
            let kind = &machine.kinds()[usize::from(sample.kind.0)];
            let sums = ours.entry(machine.string(kind.name).to_owned()).or_default();
            *sums = (sums.0 + 1, sums.1 + sample.value.cast_unsigned());
        }
        assert_eq!(theirs.len(), events);
        assert!(theirs["page-faults"].1 > 20, "{theirs:?}");
        // Of a sampling clock ours are the ticks.
        if let Some((count, _)) = theirs.remove("cpu-clock") {
            theirs.insert("cpu".to_owned(), (count, count));
        }
        assert_eq!(ours, theirs);
    }
}

#[test]
fn a_nettrace_file_has_the_stacks_that_it_was_written_with() {
    let Some(_live) = live_with("a_nettrace_file_has_the_stacks_that_it_was_written_with", &[]) else {
        return;
    };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &[]);
    let [trace, folded] = ["a.nettrace", "a.folded"].map(|name| folder.path().join(name));
    let mut recorder = collector();
    recorder.args(["run", "--no-inline", "-o"]).arg(&trace).arg("-o").arg(&folded).arg("--").arg(program);
    assert!(recorder.output().unwrap().status.success());
    convert(&trace, folder.path());
    let stacks = |path: &Path| -> BTreeMap<String, u64> {
        let mut stacks = BTreeMap::new();
        for line in fs::read_to_string(path).unwrap().lines() {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            // Where a stack was cut is a label there.
            *stacks.entry(stack.replace(";[stack cut]", "")).or_default() += count.parse::<u64>().unwrap();
        }
        stacks
    };
    let written = stacks(&folded);
    assert!(written.len() >= 2 && written == stacks(&files(folder.path()).0), "{written:#?}");
}

/// Samples of the child that `family` forks, which executes nothing, within its functions.
fn of_child(stacks: &[Stack]) -> u64 {
    let own = stacks.iter().filter(|stack| stack.comm == "family-child");
    with(own.map(|stack| (stack.frames.as_slice(), stack.count)), &["main", "child_main", "work"])
}

#[test]
fn a_process_that_was_forked_has_what_its_parent_had_mapped() {
    let test = "a_process_that_was_forked_has_what_its_parent_had_mapped";
    let Some(_live) = live_with(test, &["perf"]) else { return };
    let folder = folder();
    let family = compile(folder.path(), "family", "family.c", &["-pthread"]);
    let [trace, kept] = ["a.nettrace", "a.perf.data"].map(|name| folder.path().join(name));
    let outputs = ["-o".as_ref(), trace.as_os_str(), "-o".as_ref(), kept.as_os_str()];
    let args = outputs.into_iter().chain(["--".as_ref(), family.as_os_str()]);
    let written = of_child(&record(folder.path(), args).stacks);
    assert!(written > 500, "{written}");
    let read = convert(&trace, folder.path());
    assert_eq!(of_child(&read.stacks), written, "{}", read.stderr);
    let of_perf = perf_script(&kept);
    let of_perf = with(
        of_perf.iter().map(|(frames, count)| (frames.as_slice(), *count)),
        &["main", "child_main", "work"],
    );
    assert!(of_perf * 100 >= written * 98, "{of_perf} of {written}");

    // Each frame in a file is where that was mapped by then in its own process, and not before that was made.
    let machine = &Replay::open_path(&kept).unwrap().run().machine;
    let is_child = |sample: &Sample| machine.string(machine.thread(sample.thread).name) == "family-child";
    let mut looked_at = 0;
    for sample in machine.samples().iter().filter(is_child) {
        let id = machine.thread(sample.thread).process;
        let process = machine.process(id);
        assert!(process.start > Nanos(0));
        for frame in machine.stacks().get(sample.stack).iter().map(|&frame| machine.frames().get(frame)) {
            if machine.module(frame.module).kind != ModuleKind::File {
                continue;
            }
            let address = frame.lookup_address().0;
            let holds = |mapping: &&ModuleMapping| {
                let [start, end] = [mapping.start, mapping.end].map(|end| end.0.wrapping_sub(mapping.bias));
                (mapping.process, mapping.module) == (id, frame.module) && (start..end).contains(&address)
            };
            let mappings: Vec<_> = machine.mappings().iter().filter(holds).collect();
            let [mapping] = mappings[..] else { panic!("{frame:?}: {mappings:?}") };
            assert!((process.start..=sample.time).contains(&mapping.since), "{mapping:?}, {process:?}");
            looked_at += 1;
        }
    }
    assert!(looked_at > 1000, "{looked_at}");
}

#[test]
fn a_stream_is_converted() {
    let Some(_live) = live_with("a_stream_is_converted", &["perf"]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &[]);
    let mut perf = Command::new("perf");
    perf.args([
        "record",
        "-q",
        "-N",
        "-F",
        "4999",
        "-e",
        "cpu-clock",
        "--call-graph",
        "dwarf,4096",
        "-o",
        "-",
        "--",
    ]);
    let mut perf = perf.arg(&program).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let stream = perf.stdout.take().unwrap();
    let output = convert_from(Path::new("-"), stream.into(), folder.path());
    assert!(perf.wait().unwrap().success());
    recursion("recursion").check(&converted(&output, folder.path()));
}

/// The samples that `perf script` finds, and those of them within the chain.
fn counted_by_perf(data: &Path) -> (u64, u64) {
    let stacks = perf_script(data);
    let within = with(stacks.iter().map(|(frames, count)| (frames.as_slice(), *count)), &CHAIN);
    (stacks.values().sum(), within)
}

#[test]
fn a_folder_of_files_is_converted() {
    let Some(_live) = live_with("a_folder_of_files_is_converted", &["perf"]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &[]);
    let stacks = ["-F", "4999", "-e", "cpu-clock", "--call-graph", "dwarf,4096"];
    // A file for each CPU; with each packed for itself; one for all, where records of several rings are mixed.
    for more in [&["--threads"][..], &["--threads", "-z"], &["--threads=package"]] {
        let data = folder.path().join(format!("recorded{}.data", more.concat()));
        perf_record(&data, &[&stacks[..], more].concat(), &program);
        assert!(data.join("data.0").exists(), "{more:?}");
        let ours = convert(&data, folder.path());
        recursion("recursion").check(&ours);
        let (all, within) = counted_by_perf(&data);
        assert_eq!(total(&ours), all, "{more:?}");
        let ours = with(of_ours(&ours), &CHAIN);
        assert!(ours >= within && within > 0, "{more:?}: {ours}, perf {within}");

        let copy = folder.path().join("copy.perf.data");
        let output = collector().arg("convert").arg(&data).arg("-o").arg(&copy).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(
            counted_by_perf(&copy),
            (all, within),
            "{more:?}: perf reads the copy as it does the folder"
        );
    }
}

#[test]
fn a_folder_with_the_kernels_memory_is_converted() {
    let Some(_live) = live_with("a_folder_with_the_kernels_memory_is_converted", &["perf"]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &[]);
    // As `perf record --kcore` lays it out, which needs a kernel with `/proc/kcore`.
    let data = folder.path().join("kcore");
    fs::create_dir_all(data.join("kcore_dir")).unwrap();
    let stacks = ["-F", "4999", "-e", "cpu-clock:u", "--call-graph", "dwarf,4096"];
    perf_record(&data.join("data"), &stacks, &program);
    let ours = convert(&data, folder.path());
    recursion("recursion").check(&ours);
    assert_eq!(total(&ours), counted_by_perf(&data).0);
}

#[test]
fn a_folder_that_is_not_whole_is_told() {
    let Some(_live) = live_with("a_folder_that_is_not_whole_is_told", &["perf"]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &[]);
    let data = folder.path().join("recorded");
    perf_record(
        &data,
        &["--threads", "-F", "4999", "-e", "cpu-clock", "--call-graph", "dwarf,4096"],
        &program,
    );
    let whole = total(&convert(&data, folder.path()));
    let told = |input: &Path| {
        let output = convert_from(input, Stdio::null(), folder.path());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
        stderr
    };
    assert!(told(&data.join("data")).contains("name the folder"));

    // Of a file that is cut off, what is before that is there, and all of the others.
    let parts = fs::read_dir(&data).unwrap().map(|part| part.unwrap().path());
    let parts: Vec<_> = parts.filter(|part| part.extension().is_some()).collect();
    let len = |part: &PathBuf| fs::metadata(part).unwrap().len();
    let largest = parts.iter().max_by_key(|part| len(part)).unwrap();
    File::options().write(true).open(largest).unwrap().set_len(len(largest) - 3).unwrap();
    let cut = convert(&data, folder.path());
    assert!(cut.stderr.contains("the end is missing"), "{}", cut.stderr);
    assert!((whole - 2..=whole).contains(&total(&cut)), "{} of {whole}", total(&cut));

    for part in parts {
        fs::remove_file(part).unwrap();
    }
    assert!(told(&data).contains("`data.0`"));
}

#[test]
fn what_is_kept_is_what_was_unwound_at_once() {
    let Some(_live) = live_with("what_is_kept_is_what_was_unwound_at_once", &["perf"]) else { return };
    let folder = folder();
    let family = compile(folder.path(), "family", "family.c", &["-pthread"]);
    let recursing = compile(folder.path(), "recursion", "recursion.c", &[]);
    let kept = folder.path().join("kept.perf.data");
    let script = r#""$1" </dev/null >/dev/null; "$2""#;
    for backend in ["ebpf", "perf"] {
        let options = ["--backend", backend, "-o"].map(OsStr::new);
        let command = ["--", "sh", "-euc", script, "sh"].map(OsStr::new);
        let programs = [family.as_os_str(), recursing.as_os_str()];
        let args = options.into_iter().chain([kept.as_os_str()]).chain(command).chain(programs);
        let at_once = record(folder.path(), args);
        let later = convert(&kept, folder.path());
        let by_stack = |recorded: &Recorded| -> BTreeMap<(String, Vec<String>), u64> {
            let stacks = recorded.stacks.iter();
            stacks.map(|stack| ((stack.comm.clone(), stack.frames.clone()), stack.count)).collect()
        };
        let (now, then) = (by_stack(&at_once), by_stack(&later));
        let piped = convert_from(Path::new("-"), File::open(&kept).unwrap().into(), folder.path());
        assert_eq!(by_stack(&converted(&piped, folder.path())), then, "a file through stdin");
        // What was read from memory after the sample is not in it, nor is what executes a program marked as such.
        let differ: u64 =
            now.iter().filter(|(stack, _)| !then.contains_key(stack)).map(|(_, count)| count).sum();
        assert_eq!(total(&at_once), total(&later), "{backend}");
        assert!(
            differ * 100 <= total(&at_once),
            "{backend}: {differ} of {}\n{}",
            total(&at_once),
            later.stderr
        );
        let account = |text: &str| text.lines().find(|line| line.contains("lost")).map(str::to_owned);
        let lost = |text: &str| Some(account(text)?.split_once("; ")?.1.to_owned());
        assert!(lost(&at_once.stderr).is_some(), "{}", at_once.stderr);
        assert_eq!(lost(&at_once.stderr), lost(&later.stderr), "{}{}", at_once.stderr, later.stderr);
        let theirs = perf_script(&kept);
        assert_eq!(theirs.values().sum::<u64>(), total(&later), "perf reads as many");
        let of_perf = with(theirs.iter().map(|(frames, count)| (frames.as_slice(), *count)), &CHAIN);
        let of_ours = with(of_ours(&later), &CHAIN);
        assert!(
            of_perf > 0 && of_perf * 100 >= of_ours * 98,
            "{backend}: perf unwinds it too: {of_perf}, {of_ours}"
        );
    }
}

#[test]
fn files_that_are_not_what_they_were_give_no_names() {
    let Some(_live) = live_with("files_that_are_not_what_they_were_give_no_names", &["perf"]) else { return };
    let folder = folder();
    // Its own: `perf` may keep copies of what others compiled of the same source.
    let build_id = format!("-Wl,--build-id=0x{:032x}", collector_user::clock::anchor().realtime);
    let program = compile(folder.path(), "recursion", "recursion.c", &[&build_id]);
    let kept = folder.path().join("kept.perf.data");
    let args = ["-o".as_ref(), kept.as_os_str(), "--".as_ref(), program.as_os_str()];
    record(folder.path(), args);
    compile(folder.path(), "recursion", "sorted.c", &["-Wl,--build-id"]);
    let later = convert(&kept, folder.path());
    assert!(
        later.stderr.contains("warning: 1 recorded files are not there any more as they were"),
        "{}",
        later.stderr
    );
    let named: Vec<_> = later.stacks.iter().flat_map(Stack::user_frames).collect();
    assert!(!named.contains(&"burn_rounds") && !named.contains(&"weigh"), "{named:?}");
    assert!(named.iter().any(|name| name.starts_with("recursion+0x")), "{named:?}");
}

/// `perf inject` tells the build ids of a stream's files with their first samples, when they were mapped already. Another build is at the
/// path by then, as old as the one that ran, whose copy `perf` has kept.
#[test]
fn build_ids_within_a_stream_are_those_of_its_files() {
    const LATE: &str = "1 files were mapped before the stream told which builds they are";
    let test = "build_ids_within_a_stream_are_those_of_its_files";
    let Some(_live) = live_with(test, &["perf"]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &["-Wl,--build-id"]);
    let [stream, copies] = ["stream.data", "copies"].map(|name| folder.path().join(name));
    let script = r#"
        perf record -q -N -o - -F 4999 -e cpu-clock --call-graph dwarf,4096 -- "$1" | perf inject -b -i - -o "$2"
        perf --buildid-dir "$3" buildid-cache --add "$1"
    "#;
    let mut shell = Command::new("sh");
    shell.args(["-euc", script, "sh"]).args([&program, &stream, &copies]);
    assert!(shell.stdin(Stdio::null()).status().unwrap().success());
    let built = fs::metadata(&program).unwrap().modified().unwrap();
    compile(folder.path(), "recursion", "sorted.c", &["-Wl,--build-id"]);
    File::options().write(true).open(&program).unwrap().set_modified(built).unwrap();
    let convert = |input: &Path, stdin: Stdio| {
        let mut convert = collector();
        convert.env("PERF_BUILDID_DIR", &copies).arg("convert").arg(input);
        let output = convert.arg("-o").arg(files(folder.path()).0).stdin(stdin).output().unwrap();
        converted(&output, folder.path())
    };
    let of_pipe = |stream: &Path| {
        let mut cat = Command::new("cat").arg(stream).stdout(Stdio::piped()).spawn().unwrap();
        let converted = convert(Path::new("-"), cat.stdout.take().unwrap().into());
        assert!(cat.wait().unwrap().success());
        converted
    };
    // Told at its end, it can't be known of what is read once.
    let late = folder.path().join("late.data");
    fs::write(&late, with_build_ids_last(&fs::read(&stream).unwrap())).unwrap();
    for recorded in [convert(&stream, Stdio::null()), convert(&late, Stdio::null()), of_pipe(&stream)] {
        recursion("recursion").check(&recorded);
        assert!(!recorded.stderr.contains(LATE), "{}", recorded.stderr);
    }
    let mistaken = of_pipe(&late);
    assert!(mistaken.stderr.contains(LATE), "{}", mistaken.stderr);
}

/// A stream whose records of build ids are behind all others, and behind the ends of two rounds, after which nothing is held back to be put in
/// order. Its header has 16 bytes; records begin with their type, in 4 bytes, two bytes of flags and their size in two.
fn with_build_ids_last(stream: &[u8]) -> Vec<u8> {
    const HEADER_BUILD_ID: u32 = 67;
    const FINISHED_ROUND: u64 = 68;
    let (header, mut rest) = stream.split_at(16);
    let [mut all, mut last] = [header.to_vec(), Vec::new()];
    while let Some(&[a, b, c, d, _, _, low, high]) = rest.first_chunk() {
        let (record, behind) = rest.split_at(u16::from_ne_bytes([low, high]).into());
        let place = if u32::from_ne_bytes([a, b, c, d]) == HEADER_BUILD_ID { &mut last } else { &mut all };
        place.extend_from_slice(record);
        rest = behind;
    }
    assert!(!last.is_empty());
    let round = (FINISHED_ROUND | 8 << 48).to_le_bytes();
    [&all[..], &round, &round, &last].concat()
}

#[test]
fn closures_get_the_fields_of_recorded_tracepoints() {
    let Some(_live) = live_with("closures_get_the_fields_of_recorded_tracepoints", &["perf"]) else { return };
    let folder = folder();
    let event = "sched:sched_process_exec";
    let by_perf = folder.path().join("perf.data");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-N", "-e", event, "-o"]).arg(&by_perf).args([
        "--",
        "sh",
        "-c",
        "ls /dev/null; env true",
    ]);
    assert!(perf.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().success());
    let by_us = folder.path().join("kept.perf.data");
    let ours = ["-e", event, "-o"].map(OsStr::new);
    let command = ["--", "sh", "-c", "ls /dev/null; env true"].map(OsStr::new);
    record(folder.path(), ours.into_iter().chain([by_us.as_os_str()]).chain(command));
    assert!(!perf_script(&by_us).is_empty());
    for data in [by_perf, by_us] {
        let mut replay = Replay::open(File::open(&data).unwrap()).unwrap();
        let names = Writable::new(Vec::new());
        let hook = &mut replay.hooks_mut()[0];
        assert_eq!(hook.event.name(), event);
        let field = hook.event.format().field_ref("filename").unwrap();
        let seen = names.clone();
        hook.event.add_closure(move |event| {
            let name = event.try_get_str(field)?.to_owned();
            Ok(seen.write(|seen| seen.push(name))?)
        });
        let recording = replay.run();
        assert_eq!(recording.warnings.iter().find(|line| line.contains("failed")), None);
        let last = |name: &String| name.rsplit('/').next().unwrap().to_owned();
        let mut names: Vec<String> = names.read(|names| names.iter().map(last).collect()).unwrap();
        names.dedup();
        assert_eq!(names, ["sh", "ls", "env", "true"]);
    }
}

#[test]
fn what_can_not_be_converted_is_told_in_a_line() {
    let folder = folder();
    let told = |input: &Path| {
        let output = convert_from(input, Stdio::null(), folder.path());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
        stderr
    };
    let unknown = told(Path::new("/etc/passwd"));
    assert!(unknown.contains("is nothing that can be read; name a file of these: perf.data ("), "{unknown}");
    assert!(told(&folder.path().join("absent")).contains("name a recording that"));
    assert!(told(folder.path()).contains("is a folder"));
    assert!(!files(folder.path()).0.exists(), "nothing is left behind");
    let own = folder.path().join("x.folded");
    fs::write(&own, "main;work 1\n").unwrap();
    let other = folder.path().join("other.folded");
    fs::write(&other, "main;work;more 1\n").unwrap();
    let stored = Stdio::from(File::open(&other).unwrap());
    for (path, stdin) in [(own.as_path(), Stdio::null()), (Path::new("-"), stored)] {
        let copy = folder.path().join("x.perf.data");
        let output = collector().arg("convert").arg(path).arg("-o").arg(&copy).stdin(stdin).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
        assert!(
            stderr.contains("it is folded stacks, and perf.data is of the kernel's own records"),
            "{stderr}"
        );
        assert!(stderr.contains("name another format: `collector list formats`"), "{stderr}");
        assert!(!copy.exists(), "nothing is left behind");
    }
    let link = folder.path().join("link.folded");
    std::os::unix::fs::symlink(&own, &link).unwrap();
    let output = collector().arg("convert").arg(&own).arg("-o").arg(&link).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && stderr.contains("is what is read"), "{stderr}");
    assert_eq!(fs::read_to_string(&own).unwrap(), "main;work 1\n");
}

/// A pipe can be read once, and not from any place in it.
#[test]
fn what_comes_through_a_pipe_is_read() {
    let folder = folder();
    let [own, pipe, out] = ["own.folded", "pipe", "out.folded"].map(|name| folder.path().join(name));
    fs::write(&own, "main;work 1\n").unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for from in [pipe.to_str().unwrap(), "-"] {
        for args in [vec!["report", from], vec!["convert", from, "-o", out.to_str().unwrap()]] {
            let mut reader = collector();
            reader.args(&args).stdin(File::open(&own).unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let reader = reader.spawn().unwrap();
            if from != "-" {
                fs::write(&pipe, "main;work 1\n").unwrap();
            }
            let output = reader.wait_with_output().unwrap();
            assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
            let told = if args[0] == "report" { output.stdout } else { fs::read(&out).unwrap() };
            assert!(String::from_utf8(told).unwrap().contains("work"), "{args:?}");
        }
    }
    let mut converter = collector();
    let output = converter.arg("convert").arg(&own).args(["-o", "x.etl"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && stderr.contains("is what Windows itself writes"), "{stderr}");
}

/// A pipe may have no end, or much that is nothing: no more of it is taken than tells what it is.
#[test]
fn what_a_pipe_brings_is_looked_at_before_it_is_stored() {
    const MOST_OFFERED: usize = 16 << 20;
    let folder = folder();
    let [pipe, out, copy] = ["pipe", "x.folded", "x.perf.data"].map(|name| folder.path().join(name));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let [pipe, out, copy] = [&pipe, &out, &copy].map(|path| path.to_str().unwrap());
    for from in [pipe, "-"] {
        for args in [&["report", from][..], &["convert", from, "-o", out], &["convert", from, "-o", copy]] {
            let mut reader = collector();
            reader.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut reader = reader.spawn().unwrap();
            let stdin = reader.stdin.take().unwrap();
            let mut writer =
                if from == "-" { File::from(OwnedFd::from(stdin)) } else { File::create(pipe).unwrap() };
            let mut taken = 0;
            while taken < MOST_OFFERED
                && let Ok(written) = writer.write(&[0; 4096])
            {
                taken += written;
            }
            drop(writer);
            let output = reader.wait_with_output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{args:?}: {stderr}");
            assert!(stderr.contains("it is zeros as far as was looked"), "{stderr}");
            assert!(taken < 1 << 20, "{args:?}: {taken}");
        }
    }
    // A device; with a limit on what may be written into a file, so that a mistake does not fill the disk.
    let mut limited = Command::new("sh");
    limited.args([
        "-c",
        "ulimit -f 2048; exec \"$0\" convert /dev/zero -o \"$1\"",
        env!("CARGO_BIN_EXE_collector"),
        out,
    ]);
    let output = limited.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("/dev/zero can't be converted: it is zeros as far as was looked"), "{stderr}");
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["pipe"], "nothing is left behind");
}

/// More than what is looked at first, and than a pipe holds.
#[test]
fn all_that_a_pipe_brings_is_read() {
    const LINES: u64 = 40_000;
    let folder = folder();
    let [out, parts] = ["x.folded", "parts"].map(|name| folder.path().join(name));
    let mut reader = collector();
    reader.args(["convert", "-", "-o"]).arg(&out).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut reader = reader.spawn().unwrap();
    let mut stdin = reader.stdin.take().unwrap();
    let mut lines = Vec::new();
    for line in 0..LINES {
        writeln!(lines, "main;work_{};part {}", line % 7, line + 1).unwrap();
    }
    stdin.write_all(&lines).unwrap();
    drop(stdin);
    assert!(reader.wait().unwrap().success());
    let stacks: Vec<Stack> = fs::read_to_string(&out).unwrap().lines().map(Stack::parse).collect();
    assert_eq!(stacks.len(), 7);
    assert_eq!(stacks.iter().map(|stack| stack.count).sum::<u64>(), LINES * (LINES + 1) / 2);
    // Where there is no folder to store it in, that is said.
    let mut nowhere = collector();
    nowhere.args(["convert", "-", "-o"]).arg(&out).stdin(File::open(&out).unwrap()).env("TMPDIR", &parts);
    let output = nowhere.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
    assert!(stderr.contains("/parts, as it has to be to be read: ") && stderr.contains("TMPDIR"), "{stderr}");
}

/// Folded stacks without end, on a disk of 8 MiB.
#[test]
fn a_stream_without_end_leaves_half_of_the_disk() {
    const SCRIPT: &str = r#"
        mount -t tmpfs -o size=8m none "$1"
        yes 'main;work 1' | TMPDIR="$1" "$2" convert - -o "$3"
    "#;
    let Some(_live) = live_with("a_stream_without_end_leaves_half_of_the_disk", &["unshare"]) else { return };
    let folder = folder();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mut unshare = Command::new("unshare");
    unshare.args(["-m", "sh", "-ec", SCRIPT, "sh"]).arg(&disk).arg(env!("CARGO_BIN_EXE_collector"));
    let output = unshare.arg(folder.path().join("x.folded")).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
    let told = format!("more than 4194304 bytes, which is half of what is free in {}", disk.display());
    assert!(stderr.contains(&told) && stderr.contains("name a file in place of a stream"), "{stderr}");
}

/// Of one line for each output: what it has no place for, and nothing that the recording does not have.
#[test]
fn what_an_output_leaves_out_is_told_in_a_line() {
    let mut machine = ExportMachine::default();
    let kinds = ["faults", "opens"].map(|name| machine.add_kind(name, Unit::Count, 1));
    let process = machine.add_process(Pid(7), "app", None, Nanos(0));
    let name = machine.intern_string("worker");
    let thread = machine.intern_thread(process, Tid(8), name);
    for kind in kinds {
        machine.add_sample(&Sample { thread, kind, value: 3, ..Sample::default() });
    }
    let symbols = Symbols::unresolved(&machine);
    let folder = folder();
    let [input, folded, lines] = ["in.pb.gz", "x.folded", "x.jsonl"].map(|name| folder.path().join(name));
    let pprof = export::format::by_name("pprof").unwrap();
    pprof
        .export(Profile { machine: &machine, symbols: &symbols }, &mut File::create(&input).unwrap())
        .unwrap();
    let told = |converter: &mut Command| {
        let output = converter.stdin(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{stderr}");
        let lines = stderr.lines().filter(|line| line.contains("leaves out")).map(str::to_owned);
        (lines.collect::<Vec<_>>(), String::from_utf8(output.stdout).unwrap())
    };
    let left_out = "folded leaves out 1 kind of samples beside faults, processes and threads' ids";
    let mut to_files = collector();
    to_files.arg("convert").arg(&input).arg("-o").arg(&folded).arg("-o").arg(&lines);
    assert_eq!(told(&mut to_files), (vec![format!("{}: {left_out}", folded.display())], String::new()));
    let mut to_stdout = collector();
    to_stdout.arg("convert").arg(&input).args(["-o", "-", "--format", "folded"]);
    assert_eq!(told(&mut to_stdout), (vec![format!("stdout: {left_out}")], "worker 3\n".to_owned()));
}
