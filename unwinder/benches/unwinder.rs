//! This crate beside framehop, over the same stacks of real programs, in one run and in turns.
//!
//! `cargo bench --bench unwinder -- [NAME...]` prints, for all corpora or those of these names, all sections or those of these
//! names:
//!
//! 1. `ends`: how far each walks: the share of stacks that end at the root, by stop reason, and of those that are as a witness saw
//!    them;
//! 2. `times`: nanoseconds a frame, hot (all rules compiled and cached) and on a first pass (nothing compiled, caches empty; the
//!    compilation counts), over the stacks that both walk alike;
//! 3. `together`: one unwinder for all programs, stack by stack in turns, as a recording of a machine has it: what its caches
//!    are sized by, for what they don't have begins with looking for a mapping;
//! 4. `guesses`: how often a guessed caller is the one that the witness saw, where files are taken for ones without unwind information;
//! 5. `files`: how fast tables are made of large files, how large they are, and what making them takes; the largest are made of
//!    copies of one that the machine has.

#![allow(clippy::unwrap_used, reason = "a failed step of a bench should stop it")]

mod clock;
#[path = "../tests/corpus/mod.rs"]
mod corpus;
mod framehop_peer;
mod large;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::env;
use std::hint::black_box;
use std::num::NonZeroU64;

use object::{Object, ObjectSegment};
use unwinder::aarch64::Aarch64;
use unwinder::x86::X86;
use unwinder::{AddressSpace, Mapping, StopReason, UnwindTable, Unwinder};

use corpus::{Captured, Module, Platform, Run, Space, saved};
use framehop_peer::Peer;
use large::Large;

/// One of the stacks is 10,000 deep.
const DEPTH_LIMIT: usize = 20_000;

/// Files of several sizes; those that a machine has are measured.
const FILES: [&str; 8] = [
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/bin/python3.11",
    "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so",
    "/usr/bin/node",
    "/usr/lib/x86_64-linux-gnu/libLLVM-15.so.1",
    "/usr/lib/llvm-22/lib/libLLVM.so.22.1",
    "/usr/lib/chromium/chromium",
];

/// Files larger than any of a machine are made of the largest of these, with so many bytes of code: as near to each other as may
/// be, and so far apart that addresses take nearly 32 bits.
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";
const LARGEST: u64 = 220_000_000;
const SPAN: u64 = 0xf000_0000;

/// A program of the corpus: name, source and compiler's flags.
type Program = (&'static str, &'static str, &'static [&'static str]);

/// Programs for aarch64, which run on an emulated processor.
const AARCH64: [Program; 6] = [
    ("own/aarch64/c", "walks.c", &[]),
    ("own/aarch64/c-O0", "walks.c", &["-O0"]),
    ("own/aarch64/signed", "walks.c", &["-mbranch-protection=standard"]),
    ("own/aarch64/frame_pointers", "walks.c", &["-fno-omit-frame-pointer"]),
    ("own/aarch64/static", "walks.c", &["-static"]),
    ("own/aarch64/cpp", "exceptions.cc", &[]),
];

/// The same for 32-bit x86, which the processor itself runs.
const X86_PROGRAMS: [Program; 5] = [
    ("own/x86/c", "walks.c", &[]),
    ("own/x86/c-O0", "walks.c", &["-O0"]),
    ("own/x86/fixed", "walks.c", &["-no-pie", "-fno-pie"]),
    ("own/x86/frame_pointers", "walks.c", &["-fno-omit-frame-pointer"]),
    ("own/x86/cpp", "exceptions.cc", &[]),
];

/// What can be asked for by name, beside a corpus.
const SECTIONS: [&str; 5] = ["ends", "times", "together", "guesses", "files"];

fn main() {
    // Cargo passes `--bench` on.
    let names = env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let (sections, names): (Vec<String>, Vec<String>) = names.partition(|name| SECTIONS.contains(&&**name));
    let is_asked = |name: &str, asked: &[String]| asked.is_empty() || asked.iter().any(|asked| asked == name);
    let mut corpora = corpora();
    corpora.retain(|corpus| is_asked(&corpus.name, &names));
    for section in SECTIONS.into_iter().filter(|section| is_asked(section, &sections)) {
        match section {
            "ends" => completeness(&corpora, |name| is_asked(name, &names)),
            "times" => times(&corpora),
            "together" => together(&corpora),
            "guesses" => guesses(&corpora, |name| is_asked(name, &names)),
            _ => files(),
        }
    }
}

/// Stacks of one program.
struct Corpus {
    name: String,
    runs: Vec<Run>,
}

/// Programs that are compiled and run now, and the samples that `cargo xtask fixtures` left on this machine.
fn corpora() -> Vec<Corpus> {
    let own = [
        ("own/c", corpus::run("walks.c", &[])),
        ("own/steps", corpus::run("steps.c", &["-Wl,-z,lazy"])),
        ("own/cpp", corpus::run("exceptions.cc", &[])),
        ("own/cpython", corpus::run_python()),
    ];
    let own =
        own.into_iter().filter_map(|(name, run)| Some(Corpus { name: name.to_owned(), runs: vec![run?] }));
    let saved = saved::local();
    println!(
        "Corpus: programs run now{}",
        if saved.is_empty() { "; there are no fixtures" } else { ", and the fixtures of this machine" }
    );
    own.chain(saved.into_iter().map(|fixture| Corpus { name: fixture.name, runs: fixture.runs })).collect()
}

fn walk<A: Platform>(
    unwinder: &mut Unwinder<A>,
    space: &Space<A>,
    stack: &Captured<A>,
) -> (Vec<u64>, &'static str) {
    let mut frames = Vec::new();
    let stop = unwinder.unwind(space, &stack.registers, &stack.stack(), |frame| frames.push(frame.address));
    (frames, stop.name())
}

fn peer_walk(peer: &mut Peer, stack: &Captured) -> (Vec<u64>, &'static str) {
    let mut frames = Vec::new();
    let stop = peer.walk(stack, |address| frames.push(address));
    (frames, stop)
}

/// How many of a corpus' stacks ended for each reason, and how many are as the witness saw them.
#[derive(Default)]
struct Ends {
    stops: BTreeMap<&'static str, usize>,
    as_seen: usize,
}

impl Ends {
    fn count<A: Platform>(&mut self, (frames, stop): &(Vec<u64>, &'static str), stack: &Captured<A>) {
        *self.stops.entry(stop).or_default() += 1;
        self.as_seen += usize::from(*frames == stack.chain);
    }

    fn of<A: Platform>(runs: &[Run<A>]) -> Self {
        let mut ends = Ends::default();
        for run in runs {
            let mut unwinder = Unwinder::with_depth_limit(DEPTH_LIMIT);
            for stack in &run.stacks {
                ends.count(&walk(&mut unwinder, &run.space, stack), stack);
            }
        }
        ends
    }

    fn add(&mut self, others: &Ends) {
        for (stop, count) in &others.stops {
            *self.stops.entry(stop).or_default() += count;
        }
        self.as_seen += others.as_seen;
    }

    fn total(&self) -> usize {
        self.stops.values().sum()
    }

    fn line(&self) -> String {
        let percent = |count: usize| 100.0 * count as f64 / self.total().max(1) as f64;
        let mut stops: Vec<_> = self.stops.iter().collect();
        stops.sort_by_key(|&(name, _)| (*name != "root", *name));
        let stops =
            stops.into_iter().map(|(name, &count)| format!("{name} {:.1} % ({count})", percent(count)));
        format!("as seen {:5.1} %, {}", percent(self.as_seen), stops.collect::<Vec<_>>().join(", "))
    }
}

fn completeness(corpora: &[Corpus], is_asked: impl Fn(&str) -> bool) {
    println!("\nHow stacks end");
    // Of the fixtures alone: programs of the tests have stacks that are hard to follow.
    let mut all = Ends::default();
    for corpus in corpora {
        let (ours, mut theirs) = (Ends::of(&corpus.runs), Ends::default());
        for run in &corpus.runs {
            let mut peer = Peer::new(&run.space);
            for stack in &run.stacks {
                theirs.count(&peer_walk(&mut peer, stack), stack);
            }
        }
        println!("{:17} {:5} stacks  unwinder  {}", corpus.name, ours.total(), ours.line());
        println!("{:17} {:5}         framehop  {}", "", "", theirs.line());
        if !corpus.name.starts_with("own/") {
            all.add(&ours);
        }
    }
    ends_of::<Aarch64>(&mut all, &is_asked);
    ends_of::<X86>(&mut all, &is_asked);
    println!("{:17} {:5} stacks  unwinder  {}", "all fixtures", all.total(), all.line());
}

fn ends_of<A: Platform>(all: &mut Ends, is_asked: impl Fn(&str) -> bool) {
    for fixture in saved::local::<A>().iter().filter(|fixture| is_asked(&fixture.name)) {
        let ours = Ends::of(&fixture.runs);
        println!("{:17} {:5} stacks  unwinder  {}", fixture.name, ours.total(), ours.line());
        all.add(&ours);
    }
}

fn times(corpora: &[Corpus]) {
    println!("\nNanoseconds a frame");
    println!(
        "{:12} {:>6} {:>8}   {:>8} {:>8} {:>5}   {:>9} {:>8} {:>5}",
        "", "stacks", "frames", "hot", "framehop", "ratio", "first pass", "framehop", "ratio"
    );
    let mut logarithms = Vec::new();
    for corpus in corpora {
        let alike = Alike::of(corpus);
        if alike.frames == 0 {
            continue;
        }
        let (hot, first) = (alike.hot(), alike.first_pass());
        logarithms.push([hot, first].map(|times| times.ratio().ln()));
        let nanoseconds = |seconds: f64| seconds * 1e9 / alike.frames as f64;
        println!(
            "{:12} {:6} {:8}   {:8.1} {:8.1} {:5.2}   {:9.1} {:9.1} {:5.2}",
            corpus.name,
            alike.stacks.len(),
            alike.frames,
            nanoseconds(hot.ours),
            nanoseconds(hot.peer),
            hot.ratio(),
            nanoseconds(first.ours),
            nanoseconds(first.peer),
            first.ratio(),
        );
    }
    let mean = |which: usize| {
        let sum: f64 = logarithms.iter().map(|pair| pair[which]).sum();
        (sum / logarithms.len() as f64).exp()
    };
    println!("{:12} {:>31} {:5.2}   {:>19} {:5.2}", "mean ratio", "", mean(0), "", mean(1));
}

/// An address space that counts what its caller's caches did not have.
struct Counting<'a> {
    space: &'a Space,
    lookups: &'a Cell<u64>,
}

impl AddressSpace for Counting<'_> {
    fn lookup(&self, address: u64) -> Option<Mapping<'_>> {
        self.lookups.set(self.lookups.get() + 1);
        self.space.lookup(address)
    }

    fn generation(&self) -> Option<NonZeroU64> {
        self.space.generation()
    }

    fn code(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.space.code(address, buffer)
    }
}

fn together(corpora: &[Corpus]) {
    let runs: Vec<&Run> = corpora.iter().flat_map(|corpus| &corpus.runs).collect();
    let most = runs.iter().map(|run| run.stacks.len()).max().unwrap_or_default();
    let (lookups, mut frames) = (Cell::new(0), 0_u64);
    let mut unwinder = Unwinder::with_depth_limit(DEPTH_LIMIT);
    let mut pass = || {
        for turn in 0..most {
            for run in &runs {
                let Some(stack) = run.stacks.get(turn) else { continue };
                let space = Counting { space: &run.space, lookups: &lookups };
                unwinder.unwind(&space, &stack.registers, &stack.copy(), |_| frames += 1);
            }
        }
    };
    pass();
    lookups.set(0);
    pass();
    println!("\nAll programs in turns, one unwinder");
    let share = 1000.0 * lookups.get() as f64 / (frames / 2) as f64;
    println!("{} programs, {} frames, of 1000 of which {share:.1} ask for a mapping", runs.len(), frames / 2);
}

/// The stacks of one run that both walk alike: the run with most of them.
struct Alike<'a> {
    run: &'a Run,
    stacks: Vec<&'a Captured>,
    frames: u64,
}

impl<'a> Alike<'a> {
    fn of(corpus: &'a Corpus) -> Self {
        let all = corpus.runs.iter().map(|run| {
            let mut unwinder = Unwinder::with_depth_limit(DEPTH_LIMIT);
            let (mut peer, mut frames) = (Peer::new(&run.space), 0);
            let is_alike = |stack: &&Captured| {
                let (ours, _) = walk(&mut unwinder, &run.space, stack);
                let same = ours == peer_walk(&mut peer, stack).0;
                frames += if same { ours.len() as u64 } else { 0 };
                same
            };
            let stacks = run.stacks.iter().filter(is_alike).collect();
            Alike { run, stacks, frames }
        });
        all.max_by_key(|alike| alike.frames).unwrap()
    }

    fn pass(&self, unwinder: &mut Unwinder, space: &Space) {
        for stack in &self.stacks {
            unwinder.unwind(space, &stack.registers, &stack.copy(), |frame| {
                black_box(frame.address);
            });
        }
    }

    fn peer_pass(&self, peer: &mut Peer) {
        for stack in &self.stacks {
            peer.walk(stack, |address| {
                black_box(address);
            });
        }
    }

    /// Passes are timed so many at once that looking at the clock takes no part in it.
    fn hot(&self) -> clock::Compared {
        let mut unwinder = Unwinder::with_depth_limit(DEPTH_LIMIT);
        let mut peer = Peer::new(&self.run.space);
        let passes = u32::try_from(10_000 / self.frames).unwrap().max(1);
        clock::compare(
            || {
                clock::timed(|| (0..passes).for_each(|_| self.pass(&mut unwinder, &self.run.space))).0
                    / passes
            },
            || clock::timed(|| (0..passes).for_each(|_| self.peer_pass(&mut peer))).0 / passes,
        )
    }

    fn first_pass(&self) -> clock::Compared {
        clock::compare(
            || {
                let mut unwinder = Unwinder::with_depth_limit(DEPTH_LIMIT);
                let space = self.run.space.fresh();
                clock::timed(|| self.pass(&mut unwinder, &space)).0
            },
            || {
                let mut peer = Peer::new(&self.run.space);
                clock::timed(|| self.peer_pass(&mut peer)).0
            },
        )
    }
}

/// Steps that had to be guessed, up to the first wrong one of each stack.
#[derive(Default)]
struct Guesses {
    right: usize,
    wrong: usize,
    none: usize,
}

impl Guesses {
    fn of<A: Platform>(runs: &[Run<A>], without: impl Fn(&Module<A>) -> bool) -> Self {
        let mut guesses = Guesses::default();
        for run in runs {
            let space = run.space.stripped(&without);
            let mut unwinder = Unwinder::with_depth_limit(DEPTH_LIMIT);
            for stack in &run.stacks {
                guesses.count(&mut unwinder, &space, stack);
            }
        }
        guesses
    }

    fn count<A: Platform>(&mut self, unwinder: &mut Unwinder<A>, space: &Space<A>, stack: &Captured<A>) {
        let mut frames = Vec::new();
        let stop = unwinder.unwind(space, &stack.registers, &stack.stack(), |frame| frames.push(frame));
        for (at, frame) in frames.iter().enumerate() {
            let right = stack.chain.get(at) == Some(&frame.address);
            if frame.heuristic {
                *(if right { &mut self.right } else { &mut self.wrong }) += 1;
            }
            if !right {
                return;
            }
        }
        self.none += usize::from(stop == StopReason::NoRule && frames.len() < stack.chain.len());
    }

    fn line(&self) -> String {
        let total = (self.right + self.wrong + self.none).max(1) as f64;
        let percent = |count: usize| 100.0 * count as f64 / total;
        format!(
            "{:7} guesses, right {:5.1} %, wrong {:4.1} %, none {:4.1} %",
            total,
            percent(self.right),
            percent(self.wrong),
            percent(self.none)
        )
    }
}

fn guesses(corpora: &[Corpus], is_asked: impl Fn(&str) -> bool) {
    println!("\nGuessed callers");
    // What gdb can't walk has no witness of every frame.
    for corpus in corpora.iter().filter(|corpus| !["go", "java", "node"].contains(&&*corpus.name)) {
        print_guesses(&corpus.name, &corpus.runs);
    }
    guesses_of::<Aarch64>(&AARCH64, &is_asked);
    guesses_of::<X86>(&X86_PROGRAMS, &is_asked);
}

fn guesses_of<A: Platform>(programs: &[Program], is_asked: impl Fn(&str) -> bool) {
    for fixture in saved::local::<A>().iter().filter(|fixture| is_asked(&fixture.name)) {
        print_guesses(&fixture.name, &fixture.runs);
    }
    for (name, source, flags) in programs {
        let run = is_asked(name).then(|| corpus::run_on::<A>(source, flags)).flatten();
        if let Some(run) = run {
            print_guesses(name, &[run]);
        }
    }
}

fn print_guesses<A: Platform>(name: &str, runs: &[Run<A>]) {
    let of_none = Guesses::of(runs, |_| true);
    let of_program = Guesses::of(runs, |module| !module.name.contains(".so") && module.name != "[vdso]");
    println!("{name:22} no rules at all      {}", of_none.line());
    println!("{:22} none of the program  {}", "", of_program.line());
}

/// From a file's bytes to a table, which is ready for its first stack then, and from there to all rows compiled.
fn files() {
    println!("\nTables");
    println!(
        "{:24} {:>8} {:>8} {:>9} {:>10} {:>8} {:>11} {:>9} {:>10} {:>9} {:>8} {:>6}",
        "",
        "text MB",
        "rules MB",
        "ready ms",
        "framehop ms",
        "peak MB",
        "framehop MB",
        "all ms",
        "rules MB/s",
        "table MB",
        "of text",
        "B/FDE"
    );
    for path in FILES {
        let Ok(bytes) = std::fs::read(path) else {
            println!("{path} is not on this machine");
            continue;
        };
        file(path.rsplit('/').next().unwrap_or(path), &bytes);
    }
    for (name, span) in [("largest in one", None), ("the same, far apart", Some(SPAN))] {
        let Some(large) = Large::of_largest(LIBRARIES, LARGEST, span) else {
            println!("{name}: {LIBRARIES} has not that much code");
            continue;
        };
        file(name, &large.bytes);
        let table = <UnwindTable>::from_elf(large.bytes.as_slice()).unwrap();
        let (right, all) = large.right(&table);
        println!("{:24} {right} of {all} callers are those that gimli finds by the library", "");
    }
}

fn file(name: &str, bytes: &[u8]) {
    let peak = peak_of(|| <UnwindTable>::from_elf(bytes));
    let peer_peak = peak_of(|| framehop_module(bytes));
    let Ok(table) = <UnwindTable>::from_elf(bytes) else { return };
    table.compile_all();
    let report = table.size_report();
    let ready = clock::compare(
        || clock::timed(|| <UnwindTable>::from_elf(bytes)).0,
        || clock::timed(|| framehop_module(bytes)).0,
    );
    let all = clock::alone(|| {
        let table = <UnwindTable>::from_elf(bytes).unwrap();
        clock::timed(|| table.compile_all()).0
    });
    let megabytes = |bytes: usize| bytes as f64 / 1e6;
    let text = text_bytes(bytes);
    println!(
        "{name:24} {:8.1} {:8.1} {:9.2} {:11.2} {:8.1} {:11.1} {:9.1} {:10.0} {:9.2} {:6.1} % {:6.1}",
        megabytes(text),
        megabytes(report.section_bytes),
        ready.ours * 1e3,
        ready.peer * 1e3,
        peak as f64 / 1e6,
        peer_peak as f64 / 1e6,
        all * 1e3,
        megabytes(report.section_bytes) / (ready.ours + all),
        megabytes(report.table_bytes()),
        100.0 * report.table_bytes() as f64 / text as f64,
        report.bytes_per_function(),
    );
}

/// Bytes that `make` has allocated at most at one time.
fn peak_of<T>(make: impl FnOnce() -> T) -> u64 {
    allocation_counter::measure(|| drop(black_box(make()))).bytes_max
}

/// The size of a file's executable segments.
fn text_bytes(elf: &[u8]) -> usize {
    let file = object::File::parse(elf).unwrap();
    let executable = file.segments().filter(|segment| segment.permissions().executable());
    executable.map(|segment| segment.size() as usize).sum()
}

/// What framehop does before its first stack; it copies the text, too.
fn framehop_module(elf: &[u8]) -> impl Sized {
    let info = framehop_peer::sections(elf);
    framehop::Module::<Vec<u8>>::new(String::new(), 0..u64::MAX, 0, info)
}
