//! Memory: blocks, bytes and what is not freed are what a program knows of itself.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use collector_common::sharing::Writable;
use collector_user::session::{Recording, SessionSettings};

use crate::prerequisites::{kernel_is_since, live, skip};
use crate::programs::{Running, compile, folder};
use crate::recording::collector;
use crate::scenarios::{attribute, in_function, record, settings};

/// Bytes that each round of `blocks` asks for, by the function that does; `grows` asks twice.
const ROUND: [(&str, u64); 5] =
    [("keeps", 256), ("churns", 192), ("clears", 128), ("grows", 128 + 256), ("aligns", 3 * 192)];

/// What it allocates in `main`, and keeps.
const ONCE: u64 = 1 << 20;

/// What `blocks` tells of itself.
struct Told {
    blocks: u64,
    bytes: u64,
    freed: u64,
    kept: u64,
}

/// Records what the program does that is behind `start` in the command line.
fn record_blocks(
    folder: &Path,
    start: &[OsString],
    rounds: u32,
    settings: SessionSettings,
) -> (Recording, Told) {
    let program = compile(folder, "blocks", "blocks.c", &["-fno-builtin"]);
    let (recording, numbers) = record_told(&program, start, rounds, settings);
    let [blocks, bytes, freed, kept, _] = numbers[..] else { panic!("{numbers:?}") };
    (recording, Told { blocks, bytes, freed, kept })
}

/// Records a program that does so many rounds, behind `start` in the command line. Out: also the numbers that it tells.
pub(crate) fn record_told(
    program: &Path,
    start: &[OsString],
    rounds: u32,
    settings: SessionSettings,
) -> (Recording, Vec<u64>) {
    let told = program.with_extension("told");
    let of_program = [program.into(), told.clone().into(), OsString::from(rounds.to_string())];
    let recording = record(settings, &[start, &of_program[..]].concat());
    (recording, numbers(&told))
}

fn numbers(told: &Path) -> Vec<u64> {
    fs::read_to_string(told).unwrap().split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// With a stack for about so many bytes.
pub(crate) fn every(names: &[&str], bytes: u64) -> SessionSettings {
    let mut settings = settings(names);
    (settings.sampling.allocation_period, settings.sampling.mapped_period) = (bytes, bytes);
    // All that is recorded has room, however late the rings are emptied.
    settings.sampling.ring_bytes = Some(32 << 20);
    settings
}

/// What was counted of the program: blocks, bytes, blocks freed.
fn counted(recording: &Recording) -> [u64; 3] {
    counted_of(recording, "blocks")
}

/// What was counted of the program of a name.
pub(crate) fn counted_of(recording: &Recording, program: &str) -> [u64; 3] {
    let tables = recording.machine.tables();
    let table = tables.iter().find(|table| table.name == "native memory").unwrap();
    let start = format!("{program} (");
    let mut rows = table.rows.iter().filter(|(label, _)| label.starts_with(&start));
    let row = rows.next().unwrap_or_else(|| panic!("{:?}", table.rows));
    assert!(rows.next().is_none(), "{:?}", table.rows);
    [row.1[0], row.1[1], row.1[3]]
}

/// A sum of `count` samples is so close to the truth that chance would have it further away once in a million.
#[track_caller]
fn assert_close((sum, count): (i64, usize), truth: u64, what: &str) {
    let error = (sum as f64 - truth as f64).abs() / truth as f64;
    assert!(
        count >= 100 && error * (count as f64).sqrt() < 5.0,
        "{what}: {sum} of {truth} by {count} samples"
    );
}

#[test]
fn memory_is_what_a_program_knows_of_itself() {
    let Some(_live) = live("memory_is_what_a_program_knows_of_itself") else { return };
    let folder = folder();
    let (recording, told) = record_blocks(folder.path(), &[], 20_000, every(&["memory"], 8 << 10));
    assert_eq!(counted(&recording), [told.blocks, told.bytes, told.freed]);
    assert_eq!(recording.ledger.total_lost(), 0, "a sum of what was lost could not be close");
    for (function, bytes) in ROUND {
        assert_close(in_function(&recording, "alloc_space", function), bytes * 20_000, function);
    }
    assert_close(in_function(&recording, "alloc_objects", "keeps"), 20_000, "blocks of keeps");
    // What was not freed.
    let kept = in_function(&recording, "inuse_space", "keeps");
    assert_close(kept, told.kept - ONCE, "kept by keeps");
    assert_close(in_function(&recording, "inuse_objects", "keeps"), 20_000, "blocks kept by keeps");
    let all = in_function(&recording, "inuse_space", "main").0;
    assert_eq!(all - kept.0, ONCE as i64, "nothing else is kept, and a large block stands for itself");
    // What goes on being allocated and is never freed.
    let leaked = |function| in_function(&recording, "likely_leaks", function).0;
    assert_eq!([leaked("keeps"), leaked("main")], [kept.0; 2]);
    let machine = &recording.machine;
    let at_exit = |kind| machine.string(machine.kinds()[usize::from(kind)].name).starts_with("inuse");
    for sample in machine.samples().iter() {
        let until = if at_exit(sample.kind.0) { "exit" } else { "" };
        assert!(attribute(machine, &sample, "until") == until || until.is_empty(), "{sample:?}");
    }
}

/// Of blocks whose size is about the distance, each recorded one stands for less than three.
#[test]
fn blocks_of_about_the_distance_are_counted_without_bias() {
    const DISTANCE: u64 = 8 << 10;
    const ROUNDS: u32 = 4000;
    let Some(_live) = live("blocks_of_about_the_distance_are_counted_without_bias") else { return };
    let folder = folder();
    let program = compile(folder.path(), "distances", "distances.c", &["-fno-builtin"]);
    let numbers = [DISTANCE.to_string(), ROUNDS.to_string()].map(OsString::from);
    let recording = record(every(&["memory"], DISTANCE), &[&[program.into()], &numbers[..]].concat());
    assert_eq!(recording.ledger.total_lost(), 0, "a sum of what was lost could not be close");
    for (function, size) in [("halves", DISTANCE / 2), ("wholes", DISTANCE), ("larger", DISTANCE * 7 / 5)] {
        let of = |kind| in_function(&recording, kind, function).0;
        let chance = -(-(size as f64) / DISTANCE as f64).exp_m1();
        // What is behind the point of a block's number adds a quarter at most, and nothing to its bytes.
        let error = (((1.0 - chance) / chance + 0.25) * f64::from(ROUNDS)).sqrt();
        for (sum, truth) in [
            (of("alloc_objects") as f64, f64::from(ROUNDS)),
            (of("alloc_space") as f64 / size as f64, f64::from(ROUNDS)),
        ] {
            assert!((sum - truth).abs() < 5.0 * error, "{function}: {sum} of {truth}, give or take {error}");
        }
        let [in_use, leaked] = ["inuse_space", "likely_leaks"].map(of);
        assert_eq!([in_use, leaked], [of("alloc_space"); 2], "{function}");
        assert_eq!(of("inuse_objects"), of("alloc_objects"), "{function}: what a block is in use as");
    }
}

#[test]
fn each_block_is_recorded_if_asked_for() {
    let Some(_live) = live("each_block_is_recorded_if_asked_for") else { return };
    let folder = folder();
    let sizes = Writable::new(0);
    let mut settings = every(&["memory_tracking"], 1);
    let event = &mut settings.events[0].event;
    let [bytes, weight] = ["bytes", "weight"].map(|name| event.format().field_ref(name).unwrap());
    let sum = sizes.clone();
    event.add_closure(move |data| {
        assert!((data.try_get_f64(weight)? - 1.0).abs() < f64::EPSILON);
        let size = data.try_get_u64(bytes)?;
        sum.write(|sum| *sum += size)?;
        Ok(())
    });
    let (recording, told) = record_blocks(folder.path(), &[], 100, settings);
    let sum = |kind, function| in_function(&recording, kind, function).0 as u64;
    assert_eq!(recording.ledger.total_lost(), 0);
    assert_eq!(sizes.read(|sum| *sum).unwrap(), told.bytes);
    assert_eq!(sum("alloc_space", "main"), told.bytes);
    assert_eq!(sum("alloc_objects", "main"), told.blocks);
    assert_eq!(sum("inuse_space", "main"), told.kept);
    for (function, bytes) in ROUND {
        assert_eq!(sum("alloc_space", function), bytes * 100, "{function}");
    }
}

/// What begins the command line of a program that is given an allocator, and a process that has this, too.
pub(crate) fn preloaded(library: &Path) -> (Running, [OsString; 2]) {
    let mut preload = OsString::from("LD_PRELOAD=");
    preload.push(library);
    (mapped_by_another(library), ["env".into(), preload])
}

/// A process that has a library mapped, so that its allocator is known before the recording begins.
fn mapped_by_another(library: &Path) -> Running {
    let running = Running::of(Command::new("cat").env("LD_PRELOAD", library).stdin(Stdio::piped()));
    let maps = format!("/proc/{}/maps", running.0.id());
    let library = library.to_str().unwrap();
    while !fs::read_to_string(&maps).unwrap().contains(library) {
        std::thread::yield_now();
    }
    running
}

#[test]
fn an_allocator_that_calls_itself_is_counted_once() {
    let Some(_live) = live("an_allocator_that_calls_itself_is_counted_once") else { return };
    // Its functions begin as the compiler likes, and with `endbr64`, behind which they are probed.
    let begins: &[&str] = if cfg!(target_arch = "x86_64") {
        &["-fcf-protection=none", "-fcf-protection=full"]
    } else {
        &["-mbranch-protection=bti"]
    };
    for begin in begins {
        counts_calls_within_calls_once(begin);
    }
}

fn counts_calls_within_calls_once(begin: &str) {
    let folder = folder();
    let options = ["-shared", "-fPIC", "-fno-builtin", begin];
    let library = compile(folder.path(), "allocator.so", "allocator.c", &options);
    let (_running, start) = preloaded(&library);
    let (recording, told) = record_blocks(folder.path(), &start, 500, every(&["memory"], 1));
    assert_eq!(counted(&recording), [told.blocks, told.bytes, told.freed]);
    assert_eq!(recording.ledger.total_lost(), 0);
    for (function, bytes) in ROUND {
        assert_eq!(in_function(&recording, "alloc_space", function).0 as u64, bytes * 500, "{function}");
    }
    // `env` was another program of the same process: nothing of its memory is left.
    assert_eq!(in_function(&recording, "inuse_space", "main").0 as u64, told.kept);
    let in_use = recording.machine.samples().iter().filter(|sample| {
        recording.machine.string(recording.machine.kinds()[usize::from(sample.kind.0)].name) == "inuse_space"
    });
    assert_eq!(in_use.map(|sample| sample.value as u64).sum::<u64>(), told.kept);
}

const MIMALLOC: &str = "libmimalloc.so.2";

/// Libraries with allocators that programs are given.
pub(crate) const ALLOCATORS: [&str; 3] = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", MIMALLOC];

/// A library of Debian's, or of another system's; where it is missing, a test is skipped.
pub(crate) fn installed(test: &str, name: &str) -> Option<PathBuf> {
    let of_machine = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let folders = [of_machine.as_str(), "/usr/lib64", "/usr/lib"];
    let found = folders.into_iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists());
    if found.is_none() {
        skip(test, &format!("{name} is not installed: run `cargo xtask setup --for test`"));
    }
    found
}

/// Each has functions that call one another, names of its own beside those of the C library, and operators of C++.
#[test]
fn allocators_that_programs_are_given_are_counted() {
    let test = "allocators_that_programs_are_given_are_counted";
    let Some(_live) = live(test) else { return };
    let folder = folder();
    let operators = compile(folder.path(), "operators", "operators.cpp", &["-std=c++17"]);
    for name in ALLOCATORS {
        let Some(library) = installed(test, name) else { return };
        let (_running, start) = preloaded(&library);
        let (recording, told) = record_blocks(folder.path(), &start, 500, every(&["memory"], 1));
        assert_eq!(recording.ledger.total_lost(), 0, "{name}");
        let sum = |kind, function| in_function(&recording, kind, function);
        for (function, bytes) in ROUND {
            assert_eq!(sum("alloc_space", function).0 as u64, bytes * 500, "{name}: {function}");
        }
        let in_main = ["alloc_objects", "alloc_space", "inuse_space"].map(|kind| sum(kind, "main").0 as u64);
        assert_eq!(in_main, [told.blocks, told.bytes, told.kept], "{name}");
        let (recording, told) = record_told(&operators, &start, 500, every(&["memory"], 1));
        assert_eq!(recording.ledger.total_lost(), 0, "{name}");
        let of = |kind, function| in_function(&recording, kind, function).0 as u64;
        let made = ["makes", "makes_many", "makes_aligned"].map(|function| of("alloc_space", function));
        assert_eq!(made, [told[0], told[1], told[2]], "{name}");
        // Two `new[]` in each round.
        let made = ["makes", "makes_many", "makes_aligned"].map(|function| of("alloc_objects", function));
        assert_eq!(made, [500, 2 * 500, 500], "{name}");
        assert_eq!(of("inuse_space", "main"), told[3], "{name}");
    }
}

/// Functions that call one another by way of the dynamic linker, and those whose arguments are others than the C library's. With nothing
/// recorded, the kernel traps no return but those that must be seen.
#[test]
fn functions_of_mimalloc_alone_are_counted() {
    let test = "functions_of_mimalloc_alone_are_counted";
    let Some(_live) = live(test) else { return };
    let Some(library) = installed(test, MIMALLOC) else { return };
    let folder = folder();
    let linked = format!("-Wl,{}", library.to_str().unwrap());
    let program = compile(
        folder.path(),
        "mimalloc_calls",
        "mimalloc_calls.c",
        &["-fno-builtin", "-Wl,--no-as-needed", &linked],
    );
    let _running = mapped_by_another(&library);
    for distance in [1, 1 << 40] {
        let (recording, numbers) = record_told(&program, &[], 200, every(&["memory"], distance));
        assert_eq!(counted_of(&recording, "mimalloc_calls"), numbers[..], "every {distance} bytes");
        if distance == 1 {
            let in_main = ["alloc_objects", "alloc_space", "inuse_space"]
                .map(|kind| in_function(&recording, kind, "main").0);
            assert_eq!(in_main.map(|sum| sum as u64), [numbers[0], numbers[1], 0]);
        }
    }
}

/// The same of the functions that take the C library's place, and of operators: each counts once, whatever it calls.
#[test]
fn memory_of_allocators_that_is_not_recorded_is_counted() {
    let test = "memory_of_allocators_that_is_not_recorded_is_counted";
    let Some(_live) = live(test) else { return };
    let folder = folder();
    let operators = compile(folder.path(), "operators", "operators.cpp", &["-std=c++17"]);
    for name in ALLOCATORS {
        let Some(library) = installed(test, name) else { return };
        let (_running, start) = preloaded(&library);
        let (recording, told) = record_blocks(folder.path(), &start, 500, every(&["memory"], 1 << 40));
        assert_counted_once(counted(&recording), [told.blocks, told.bytes, told.freed], name);
        let (recording, told) = record_told(&operators, &start, 500, every(&["memory"], 1 << 40));
        let [made, many, aligned, _] = told[..] else { panic!("{told:?}") };
        let told = [500 * 4, made + many + aligned, 500 * 4 - 250];
        assert_counted_once(counted_of(&recording, "operators"), told, name);
    }
}

/// Libraries that a program gets with an allocator may allocate a little as they begin, that of C++ 72,704 bytes.
#[track_caller]
fn assert_counted_once(counted: [u64; 3], told: [u64; 3], what: &str) {
    const MORE: [u64; 3] = [8, 100_000, 8];
    for ((counted, told), more) in counted.into_iter().zip(told).zip(MORE) {
        assert!((told..=told + more).contains(&counted), "{what}: {counted} of {told}");
    }
}

/// A library that nobody else has, with an allocator, and a program that begins by calling it: all is counted, as the program was made to
/// wait until its files were probed. A program that nobody can know of beforehand is told of.
#[test]
fn a_program_waits_until_its_allocator_is_probed() {
    let Some(_live) = live("a_program_waits_until_its_allocator_is_probed") else { return };
    let folder = folder();
    let options = ["-shared", "-fPIC", "-fno-builtin"];
    compile(folder.path(), "allocator.so", "allocator.c", &options);
    let found = format!("-L{}", folder.path().display());
    let linked = ["-fno-builtin", "-Wl,--no-as-needed", &found, "-l:allocator.so", "-Wl,-rpath=$ORIGIN"];
    let program = compile(folder.path(), "blocks", "blocks.c", &linked);
    let late = |recording: &Recording| {
        recording.warnings.iter().filter(|text| text.contains("were probed when a program had them")).count()
    };
    let (recording, told) = record_told(&program, &[], 100, every(&["memory"], 1));
    let [blocks, bytes, freed, ..] = told[..] else { panic!("{told:?}") };
    assert_eq!(counted(&recording), [blocks, bytes, freed]);
    assert_eq!(late(&recording), 0, "{:?}", recording.warnings);
    // Its name is in no word of the command.
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    let copies =
        ["allocator.so", "blocks"].map(|name| fs::copy(folder.path().join(name), other.join(name)).unwrap());
    assert!(copies.iter().all(|bytes| *bytes > 0));
    let told = folder.path().join("told by the other");
    let script = format!("cd '{}'; ./blocks '{}' 100; true", other.display(), told.display());
    let recording = record(every(&["memory"], 1), &["sh", "-c", &script].map(OsString::from));
    assert_eq!(late(&recording), 1, "{:?}", recording.warnings);
}

#[test]
fn memory_of_the_kernel_is_what_is_asked_of_it() {
    let Some(_live) = live("memory_of_the_kernel_is_what_is_asked_of_it") else { return };
    let folder = folder();
    let program = compile(folder.path(), "mapped_memory", "mapped_memory.c", &[]);
    let told = folder.path().join("told");
    let recording = record(every(&["growth"], 1), &[program, told.clone()].map(OsString::from));
    let numbers = numbers(&told);
    let [by_mmap, by_mremap, by_brk, by_children] = numbers[..] else { panic!("{numbers:?}") };
    let of = |function| in_function(&recording, "mapped_space", function).0 as u64;
    assert_eq!(recording.ledger.total_lost(), 0);
    assert_eq!([of("maps") + of("moves"), of("extends")], [by_mmap + by_mremap, by_brk]);
    assert_eq!(of("extends_as_child"), by_children, "also of one that has another one's pid");
    // Of a file, and set aside, each 15 pages more, 50 times: older kernels do not tell that they are.
    let taken_for_memory = if kernel_is_since(5, 17) { 0 } else { 2 * 15 * 4096 * 50 };
    assert_eq!(of("moves_others"), taken_for_memory);
    assert!(in_function(&recording, "minor-faults", "maps").0 >= 50, "each first touch is a fault");
}

#[test]
fn memory_is_printed_and_its_options_are_told() {
    let Some(_live) = live("memory_is_printed_and_its_options_are_told") else { return };
    let folder = folder();
    let program = compile(folder.path(), "blocks", "blocks.c", &["-fno-builtin"]);
    let run = |scenario: &str| {
        let mut command = collector();
        command.args(["run", "-s", scenario, "-o"]).arg(folder.path().join("x.pb.gz")).arg("--");
        let output = command.arg(&program).arg(folder.path().join("told")).arg("1000").output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, stderr) = run("memory:every=64KiB");
    assert_eq!(code, Some(0), "{stderr}");
    let row = stderr.lines().find(|line| line.trim_start().starts_with("blocks (")).unwrap_or_default();
    assert!(row.contains(" 8001 blocks ") && row.contains(" 7000 blocks freed"), "{stderr}");
    for (scenario, why) in [
        ("memory:every=0", "must be from 1 byte"),
        ("memory:every=3x", "unknown unit `x`"),
        ("memory:min=3ms", "no option of memory_tracking, which has every=64KiB"),
        ("off_cpu:every=3", "no option of off_cpu, which has min=10ms"),
        ("cpu:every=1", "cpu_profiling has no options"),
    ] {
        let (code, stderr) = run(scenario);
        assert!(code == Some(2) && stderr.contains(why), "{scenario}: {stderr}");
    }
}
