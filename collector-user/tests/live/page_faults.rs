//! Page faults: as many as the kernel counts for the program itself, with its stacks, by either backend. Programs in the kernel
//! record some of many, which stand for the others.

use std::ffi::OsString;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use collector_common::loss::LossCause;
use collector_common::sharing::Writable;
use collector_user::session::{Backend, Ended, Recording, Session, SessionSettings};

use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::recording::assert_balanced;
use crate::scenarios::{in_function, record, settings};

const BACKENDS: [Backend; 2] = [Backend::Auto, Backend::Perf];

fn record_by(backend: Backend, command: &[OsString]) -> Recording {
    record(SessionSettings { backend, ..settings(&["page_faults"]) }, command)
}

/// How many of a kind happened in a function, as far as they are in the recording.
fn faults_in(recording: &Recording, kind: &str, function: &str) -> u64 {
    in_function(recording, kind, function).0 as u64
}

/// What was counted of processes of a name: minor and major faults.
fn counted(recording: &Recording, name: &str) -> [u64; 2] {
    let tables = recording.machine.tables();
    let table = tables.iter().find(|table| table.name == "page faults").unwrap();
    let row =
        table.rows.iter().find(|(label, _)| label == name).unwrap_or_else(|| panic!("{:?}", table.rows));
    [row.1[0], row.1[1]]
}

fn numbers(told: &Path) -> Vec<u64> {
    fs::read_to_string(told).unwrap().split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// How far the sum of a function's samples may be from the truth: six standard deviations, which chance exceeds once in five
/// hundred million times.
///
/// A fault is recorded with the chance `1 / value`, and then has that value: were they independent of each other, the
/// sum's variance would be that of `value - 1` for each fault, of which `value * (value - 1)` for each sample is an unbiased
/// estimate. That there is one of each block makes it less.
fn bound(recording: &Recording, function: &str) -> f64 {
    let (machine, symbols) = (&recording.machine, recording.symbolize());
    let is_in =
        |stack| machine.stacks().get(stack).iter().any(|&frame| symbols.name(frame).function == function);
    let samples = machine.samples().iter().filter(|sample| is_in(sample.stack));
    let variance: i64 = samples.map(|sample| sample.value * (sample.value - 1)).sum();
    6.0 * (variance as f64).sqrt()
}

#[track_caller]
fn assert_within_bound(recording: &Recording, function: &str, truth: u64) {
    let (sum, samples) = in_function(recording, "minor-faults", function);
    let bound = bound(recording, function) + missed(recording) as f64;
    let off = (sum - truth.cast_signed()).unsigned_abs() as f64;
    assert!(off <= bound, "{function}: {sum} of {truth} by {samples} samples, bound {bound}");
    // A bound that says something.
    assert!(bound < 0.75 * truth as f64, "{function}: {sum} of {truth} by {samples} samples, bound {bound}");
}

/// Faults, of whomever on the machine, for which the kernel did not run the program: it told so.
fn missed(recording: &Recording) -> u64 {
    let missed = recording.warnings.iter().find(|warning| warning.contains("met by no program"));
    missed.map_or(0, |warning| warning.split(' ').next().unwrap().parse().unwrap())
}

/// At most a hundredth of the records is lost.
#[track_caller]
fn assert_next_to_nothing_lost(recording: &Recording) {
    let ledger = &recording.ledger;
    assert!(ledger.total_lost() * 100 <= ledger.produced(), "{ledger:?}");
}

#[test]
fn minor_faults_are_where_memory_is_touched_first() {
    let Some(_live) = live("minor_faults_are_where_memory_is_touched_first") else { return };
    let folder = folder();
    let touches: PathBuf = compile(folder.path(), "touches", "touches.c", &[]);
    for backend in BACKENDS {
        let recording = record_by(backend, &[touches.clone().into()]);
        let faults = faults_in(&recording, "minor-faults", "touch_pages");
        let lost = recording.ledger.lost(LossCause::RingFull);
        if backend == Backend::Perf {
            // They come faster than the ring may be emptied; and there may be those of the loop's own code and stack.
            assert!(
                faults > 500 && faults < 2010 && faults + lost >= 2000,
                "{faults}: {:?}",
                recording.ledger
            );
        } else {
            assert_next_to_nothing_lost(&recording);
            assert_within_bound(&recording, "touch_pages", 2000);
            assert!((2000..3000).contains(&(counted(&recording, "touches")[0] + missed(&recording))));
        }
        assert_eq!(faults_in(&recording, "major-faults", "touch_pages"), 0);
    }
}

#[test]
fn few_faults_are_recorded_each() {
    let Some(_live) = live("few_faults_are_recorded_each") else { return };
    let folder = folder();
    let touches: PathBuf = compile(folder.path(), "touches", "touches.c", &[]);
    let weights = Writable::new(Vec::new());
    let mut settings = settings(&["page_faults"]);
    let event = &mut settings.events[0].event;
    assert_eq!(event.name(), "minor-faults");
    let weight = event.format().field_ref("weight").unwrap();
    let seen = weights.clone();
    event.add_closure(move |data| {
        let weight = data.try_get_u64(weight)?;
        Ok(seen.write(|seen| seen.push(weight))?)
    });
    let recording = record(settings, &[touches.into(), "100".into()]);
    assert_eq!(recording.ledger.total_lost(), 0, "{:?}", recording.ledger);
    let samples: Vec<_> = recording.machine.samples().iter().map(|sample| sample.value).collect();
    let [minor, major] = counted(&recording, "touches");
    // Fewer than 256 within 10 ms, the program's start among them.
    assert!((140..256).contains(&minor), "{minor}");
    assert!(faults_in(&recording, "minor-faults", "touch_pages") >= 100);
    assert_eq!(samples, vec![1; (minor + major) as usize]);
    weights.read(|weights| assert_eq!(*weights, vec![1; minor as usize])).unwrap();
}

#[test]
fn major_faults_are_those_that_the_kernel_counts_for_the_program() {
    let Some(_live) = live("major_faults_are_those_that_the_kernel_counts_for_the_program") else { return };
    let folder = folder();
    let mapped = compile(folder.path(), "mapped", "mapped.c", &[]);
    let (file, told) = (folder.path().join("pages"), folder.path().join("told"));
    fs::write(&file, vec![1; 200 * 4096]).unwrap();
    for backend in BACKENDS {
        let recording = record_by(backend, &[&mapped, &file, &told].map(|path| path.clone().into()));
        let numbers = numbers(&told);
        let [major, minor, sum] = numbers[..] else { panic!("{numbers:?}") };
        assert_eq!(sum, 200);
        assert!(major >= 100, "the pages were in memory: {numbers:?}");
        let found = ["major-faults", "minor-faults"].map(|kind| faults_in(&recording, kind, "read_pages"));
        let lost = recording.ledger.lost(LossCause::RingFull);
        // The kernel's figures have those of `getrusage` itself.
        assert!(
            found[0] <= major && found[0] + lost >= major,
            "{found:?}: {numbers:?} {:?}",
            recording.ledger
        );
        assert!(
            found[1] <= minor && found[1] + lost + 2 >= minor,
            "{found:?}: {numbers:?} {:?}",
            recording.ledger
        );
        if backend == Backend::Auto {
            assert!(counted(&recording, "mapped")[1] >= major);
        }
    }
}

/// Records `floods`, with so many thousands of pages and so many blocks of memory. Gives what it tells, too: faults in
/// `meet_pages` and behind it, and faults in all.
fn record_floods(folder: &Path, names: &[&str], thousands: u64, blocks: u64) -> (Recording, [u64; 2]) {
    let floods = compile(folder, "floods", "floods.c", &["-fno-builtin"]);
    let told = folder.join("told");
    let numbers_of = [thousands, blocks].map(|number| number.to_string().into());
    let command = [floods.into(), told.clone().into()].into_iter().chain(numbers_of);
    let recording = record(settings(names), &command.collect::<Vec<OsString>>());
    let numbers = numbers(&told);
    let [met, all] = numbers[..] else { panic!("{numbers:?}") };
    assert!(met >= thousands * 1000, "{met}");
    (recording, [met, all])
}

/// What the kernel counts is what was counted here: but for what came before `main` began to count and, where the kernel did it, before
/// the program had its name; and for what comes after it ended.
#[track_caller]
fn assert_counted(recording: &Recording, name: &str, [from, to]: [u64; 2]) {
    const AFTER: u64 = 50;
    let (minor, missed) = (counted(recording, name)[0], missed(recording));
    assert!((from - missed..=to + AFTER).contains(&minor), "{minor}, {missed} missed: {from} to {to}");
    assert!(to - from < from / 50, "{from} to {to}");
}

#[test]
fn a_flood_of_faults_keeps_its_shares_and_its_stacks() {
    let Some(_live) = live("a_flood_of_faults_keeps_its_shares_and_its_stacks") else { return };
    let folder = folder();
    let (recording, told) = record_floods(folder.path(), &["page_faults"], 200, 0);
    assert_next_to_nothing_lost(&recording);
    assert_counted(&recording, "floods", told);
    assert_within_bound(&recording, "most_pages", 150_000);
    assert_within_bound(&recording, "few_pages", 50_000);
    assert_within_bound(&recording, "main", told[0]);
    // Far fewer than there are faults, and each has its stack, 40 KiB of it, to its end.
    let samples = ["most_pages", "few_pages"].map(|name| in_function(&recording, "minor-faults", name).1);
    let samples = samples[0] + samples[1];
    assert!((500..40_000).contains(&samples), "{samples}");
    let whole = recording.stats.stacks.get("complete").copied().unwrap_or_default();
    assert!(whole * 100 >= samples as u64 * 99, "{samples}: {:?}", recording.stats.stacks);
    let in_meet = in_function(&recording, "minor-faults", "meet_pages").0;
    let in_main = in_function(&recording, "minor-faults", "main").0;
    let in_pages = ["most_pages", "few_pages"].map(|name| in_function(&recording, "minor-faults", name).0);
    assert!(in_meet >= in_pages[0] + in_pages[1] && in_main >= in_meet, "{in_main} {in_meet} {in_pages:?}");
}

#[test]
fn faults_beside_the_clock_and_memory() {
    let Some(_live) = live("faults_beside_the_clock_and_memory") else { return };
    let folder = folder();
    let (recording, told) = record_floods(folder.path(), &["cpu", "page_faults", "memory"], 200, 20_000);
    let machine = &recording.machine;
    assert_counted(&recording, "floods", told);
    assert_within_bound(&recording, "most_pages", 150_000);
    let memory = machine.tables().iter().find(|table| table.name == "native memory").unwrap();
    let row = memory.rows.iter().find(|(label, _)| label.starts_with("floods (")).unwrap();
    assert!((20_000..20_100).contains(&row.1[0]) && row.1[3] >= 20_000, "{row:?}");
    let (ticks, _) = in_function(&recording, "cpu", "main");
    assert!(ticks > 50, "{ticks}: {:?}", recording.ledger);
}

/// `broods` in a folder, with what it is to be given.
fn broods(folder: &Path, children: u64) -> ([OsString; 3], PathBuf) {
    let told = folder.join("told");
    let program = compile(folder, "broods", "broods.c", &[]);
    ([program.into(), told.clone().into(), children.to_string().into()], told)
}

/// What `wait4` told of each child, and `getrusage` of the program itself: meanwhile, or from its begin to its end.
#[track_caller]
fn assert_has_broods(recording: &Recording, told: &Path, children: u64) {
    let numbers = numbers(told);
    let [of_children, meanwhile, all] = numbers[..] else { panic!("{numbers:?}") };
    assert!(of_children >= children * 500, "{numbers:?}");
    assert_next_to_nothing_lost(recording);
    assert_counted(recording, "broods", [of_children + meanwhile, of_children + all]);
    assert_within_bound(recording, "touch_brood", children * 500);
}

#[test]
fn faults_of_many_short_children() {
    const CHILDREN: u64 = 400;
    let Some(_live) = live("faults_of_many_short_children") else { return };
    let folder = folder();
    let (command, told) = broods(folder.path(), CHILDREN);
    let recording = record(settings(&["page_faults"]), &command);
    assert_has_broods(&recording, &told, CHILDREN);
}

#[test]
fn faults_of_the_children_of_a_named_process() {
    const CHILDREN: u64 = 400;
    let Some(_live) = live("faults_of_the_children_of_a_named_process") else { return };
    let folder = folder();
    let ([program, file, children], told) = broods(folder.path(), CHILDREN);
    let mut child = Command::new(program).args([file, children]).stdin(Stdio::piped()).spawn().unwrap();
    let mut settings = settings(&["page_faults"]);
    settings.sampling.targets.pids = [child.id()].into();
    let mut session = Session::start(settings, None).unwrap();
    drop(child.stdin.take());
    let (stop, _never) = UnixStream::pair().unwrap();
    assert_eq!(session.run(stop.as_fd(), |_| {}).unwrap(), Ended::Processes);
    let recording = session.finish().unwrap();
    assert!(child.wait().unwrap().success());
    assert_balanced(&recording.stats_now().to_json());
    assert_has_broods(&recording, &told, CHILDREN);
}
