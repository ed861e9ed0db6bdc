//! Writes an HTML page of a made-up recording, and beside it what the page must show, for the browser tests; and the same
//! recording for speedscope and Firefox Profiler, and if it is small as pictures and as folded stacks.
//!
//! `browser_fixtures OUT.html` writes a small recording with every awkward thing: names that look like markup, deep
//! and recursive and empty stacks, a reused pid, two kinds of sample, CPUs out of order.
//! `browser_fixtures OUT.html SAMPLES` writes one of the given size in the shape of a busy machine.
//! `browser_fixtures OUT.html NAME [SAMPLES]` writes one of `known`.
//!
//! `OUT.truth.json` lists the samples as they were put in, one by one:
//! `functions[i] = [name, module, 1 if it was inlined, source or ""]`, `stacks[i] = [function, ...]` with the leaf first,
//! `processes[i] = [pid, name]`, `threads[i] = [process, tid, name]`, and
//! `samples[i] = [microseconds, thread, cpu, stack, kind, value]`. Nothing in it comes from the exporter.

mod known;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use collector_common::ids::{Nanos, Pid, Svma, Tid};
use collector_common::intern::StackId;
use collector_common::record::{
    AttributeListId, ClockAnchor, ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId, ModuleKind,
    ProcessId, Sample, SampleKindId, ThreadId, Unit,
};
use export::format::firefox::Firefox;
use export::format::flamegraph::{FlameGraph, Icicle};
use export::format::folded::Folded;
use export::format::html::Html;
use export::format::speedscope::Speedscope;
use export::format::{ExportFormat, Profile};
use export::symbolize::{Function, Symbols};

const START: u64 = 7_000_000_000;

/// Recordings with fewer samples are small.
const SMALL: usize = 100_000;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(page) = arguments.next() else {
        anyhow::bail!("usage: browser_fixtures OUT.html [NAME] [SAMPLES]")
    };
    let recording = match arguments.next().as_deref() {
        None => awkward(),
        Some("timeline") => known::timeline(),
        Some("base") => known::base(),
        Some("new") => known::new(),
        Some("other-kind") => known::other_kind(),
        Some("crowd") => known::crowd(arguments.next().unwrap_or_default().parse()?),
        Some(samples) => busy(samples.parse()?),
    };
    let page = Path::new(&page);
    recording.write_truth(&mut BufWriter::new(File::create(page.with_extension("truth.json"))?))?;
    let machine = &recording.machine;
    let mut symbols = Symbols::unresolved(machine);
    for (frame, name) in &recording.names {
        symbols.set(*frame, name, name);
    }
    for (frame, places) in &recording.inlined {
        let functions = places.iter().map(|place| {
            let [name, file] = [place.name, place.file].map(|text| symbols.intern(text));
            Function { name, linkage: name, file, line: place.line, ..Function::default() }
        });
        let functions: Vec<Function> = functions.collect();
        symbols.set_functions(*frame, &functions);
    }
    let formats: [&dyn ExportFormat; 6] = [&Html, &Speedscope, &Firefox, &FlameGraph, &Icicle, &Folded];
    let count = if machine.samples().len() < SMALL { 6 } else { 3 };
    for format in formats.into_iter().take(count) {
        let file = page.with_extension(format.ending().trim_start_matches('.'));
        let began = std::time::Instant::now();
        format.write(Profile { machine, symbols: &symbols }, &mut BufWriter::new(File::create(&file)?))?;
        println!(
            "{}: {} samples, {} stacks, {} bytes, written in {} ms",
            file.display(),
            machine.samples().len(),
            machine.stacks().len(),
            std::fs::metadata(&file)?.len(),
            began.elapsed().as_millis()
        );
    }
    Ok(())
}

/// A function of a frame in several.
#[derive(Clone, Copy)]
struct Place {
    name: &'static str,
    file: &'static str,
    line: u32,
}

/// A recording, and the truth about it.
struct Recording {
    machine: ExportMachine,
    names: HashMap<FrameId, String>,
    /// Innermost first.
    inlined: HashMap<FrameId, Vec<Place>>,
    next_address: u64,
    /// Distinct functions and their modules, and where each stands.
    functions: Vec<(String, String)>,
    /// By function: whether it was inlined, and its source.
    facts: Vec<(bool, String)>,
    function_index: HashMap<(String, String), usize>,
    stacks: Vec<Vec<usize>>,
    stack_ids: Vec<StackId>,
    samples: String,
    random: Random,
}

impl Recording {
    fn new(host: &str, command: &str, cpus: u32) -> Self {
        let mut machine = ExportMachine::default();
        let system = machine.system_mut();
        host.clone_into(&mut system.host);
        command.clone_into(&mut system.command);
        "Linux 6.12.9".clone_into(&mut system.kernel);
        "x86_64".clone_into(&mut system.architecture);
        system.cpus = cpus;
        system.start = Nanos(START);
        let realtime = 1_750_000_000_000_000_000;
        system.clocks.start = Some(ClockAnchor { monotonic: system.start, realtime, boottime: None });
        system.account = ["7 lost (ring_full 7)", "99.00 % are <b>complete</b>"].map(str::to_owned).into();
        Self {
            machine,
            names: HashMap::new(),
            inlined: HashMap::new(),
            facts: Vec::new(),
            next_address: 0x1000,
            functions: Vec::new(),
            function_index: HashMap::new(),
            stacks: Vec::new(),
            stack_ids: Vec::new(),
            samples: String::new(),
            random: Random(0x9e37_79b9_7f4a_7c15),
        }
    }

    fn module(&mut self, kind: ModuleKind, path: &str) -> ModuleId {
        let path = self.machine.intern_string(path);
        self.machine.add_module(Module { kind, path, build_id: None })
    }

    /// A frame at an address of its own; with no name it stays without a symbol.
    fn frame(&mut self, module: ModuleId, flags: u8, name: Option<&str>) -> FrameId {
        self.next_address += 0x10;
        let frame = Frame { module, address: Svma(self.next_address), flags: FrameFlags(flags) };
        let id = self.machine.intern_frame(frame);
        self.names.extend(name.map(|name| (id, name.to_owned())));
        id
    }

    fn thread(&mut self, process: ProcessId, tid: u32, name: &str) -> ThreadId {
        let name = self.machine.intern_string(name);
        self.machine.intern_thread(process, Tid(tid), name)
    }

    /// Adds a stack, leaf first, and gives its position.
    fn stack(&mut self, frames: &[FrameId]) -> usize {
        let functions = frames.iter().flat_map(|&frame| self.functions_of(frame)).collect();
        self.stacks.push(functions);
        self.stack_ids.push(self.machine.intern_stack(frames));
        self.stacks.len() - 1
    }

    /// Innermost first.
    fn functions_of(&mut self, frame: FrameId) -> Vec<usize> {
        let Some(places) = self.inlined.get(&frame).cloned() else { return vec![self.function(frame)] };
        let module = self.machine.module(self.machine.frames().get(frame).module);
        let path = self.machine.string(module.path).to_owned();
        let last = places.len() - 1;
        let added = places.iter().enumerate().map(|(at, place)| {
            let function = self.add_function((place.name.to_owned(), path.clone()));
            self.facts[function] = (at < last, format!("{}:{}", place.file, place.line));
            function
        });
        added.collect()
    }

    fn function(&mut self, frame: FrameId) -> usize {
        let Frame { module, address, flags } = *self.machine.frames().get(frame);
        // The last byte of the call, where that is what a frame is by.
        let call = address.0 - u64::from(flags.has(FrameFlags::RETURN_ADDRESS));
        let path = self.machine.string(self.machine.module(module).path);
        let base = path.rsplit('/').next().unwrap_or(path);
        let function = match self.names.get(&frame) {
            _ if flags.has(FrameFlags::CUT) => ("[stack cut]".to_owned(), String::new()),
            Some(name) => (name.clone(), path.to_owned()),
            None => (format!("{base}+{call:#x}"), path.to_owned()),
        };
        self.add_function(function)
    }

    fn add_function(&mut self, function: (String, String)) -> usize {
        *self.function_index.entry(function.clone()).or_insert_with(|| {
            self.functions.push(function);
            self.facts.push(Default::default());
            self.functions.len() - 1
        })
    }

    fn sample(&mut self, us: u64, thread: ThreadId, cpu: u16, stack: usize, kind: SampleKindId, value: i64) {
        self.sample_with(us, thread, cpu, stack, (kind, value, AttributeListId::NONE));
    }

    fn sample_with(
        &mut self,
        us: u64,
        thread: ThreadId,
        cpu: u16,
        stack: usize,
        (kind, value, attributes): (SampleKindId, i64, AttributeListId),
    ) {
        let Self { machine, samples, .. } = self;
        let comma = if samples.is_empty() { "" } else { ",\n" };
        let _ = write!(samples, "{comma}[{us},{},{cpu},{stack},{},{value}]", thread.0, kind.0);
        machine.add_sample(&Sample {
            // The page shows whole microseconds; what is below them must not matter.
            time: Nanos(START + us * 1_000 + 321),
            thread,
            stack: self.stack_ids[stack],
            cpu,
            kind,
            value,
            attributes,
        });
    }

    fn end(mut self, us: u64) -> Self {
        self.machine.system_mut().end = Nanos(START + us * 1_000);
        self
    }

    fn write_truth(&self, out: &mut impl Write) -> io::Result<()> {
        let functions = self.functions.iter().zip(&self.facts).map(|((name, module), (inlined, source))| {
            format!("[{},{},{},{}]", quoted(name), quoted(module), u8::from(*inlined), quoted(source))
        });
        let stacks = self.stacks.iter().map(|stack| list(stack.iter().map(usize::to_string)));
        let machine = &self.machine;
        let processes =
            machine.processes().iter().map(|p| format!("[{},{}]", p.pid, quoted(machine.string(p.name))));
        let threads = machine
            .threads()
            .iter()
            .map(|t| format!("[{},{},{}]", t.process.0, t.tid, quoted(machine.string(t.name))));
        writeln!(out, "{{\"functions\":{},\"stacks\":{},", list(functions), list(stacks))?;
        writeln!(out, "\"processes\":{},\"threads\":{},", list(processes), list(threads))?;
        writeln!(out, "\"samples\":[{}]}}", self.samples)?;
        out.flush()
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// xorshift64*: the same numbers every time.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % below.max(1)
    }
}

fn awkward() -> Recording {
    let mut made = Recording::new("host-<b>1</b>", "run --flag '</script><b>'", 2);
    let cpu = made.machine.add_kind("cpu", Unit::Count, 1_000_000);
    let off_cpu = made.machine.add_kind("off-cpu", Unit::Nanoseconds, 1);

    let process =
        |made: &mut Recording, pid, name: &str| made.machine.add_process(Pid(pid), name, None, Nanos(0));
    let server = process(&mut made, 100, "web server");
    let wide = process(&mut made, 200, "naïve 日本語 \"quoted\" & 'co'");
    let hostile = process(&mut made, 300, "</script><script>window.pwned=1</script>");
    let java = process(&mut made, 400, "java");
    let reused = process(&mut made, 100, "web server");
    let threads = [
        made.thread(server, 100, "main"),
        made.thread(server, 101, "worker <script>window.pwned=2</script>"),
        made.thread(wide, 200, "naïve 日本語"),
        made.thread(hostile, 300, "<img src=x onerror=window.pwned=3>"),
        made.thread(java, 400, "java"),
        made.thread(java, 401, "C2 compiler"),
        made.thread(reused, 100, "second life"),
    ];
    let stacks = awkward_stacks(&mut made, java);

    // CPU after CPU, as samples come out of the rings.
    for on in 0..2_u16 {
        for tick in 0..1_500_u64 {
            let us = tick * 2_000 + u64::from(on) * 700;
            // The second half of the time has another mix than the first.
            let choice = made.random.next(if tick < 750 { stacks.len() } else { stacks.len() / 2 });
            let thread = threads[made.random.next(threads.len())];
            made.sample(us, thread, on * 3, stacks[choice], cpu, 1);
        }
    }
    for tick in 0..200_u64 {
        let thread = threads[tick as usize % 3];
        let value = 1_000 * (tick as i64 + 1);
        made.sample(tick * 14_000, thread, 0, stacks[tick as usize % 4], off_cpu, value);
    }
    made.end(3_000_000)
}

/// The stacks of the awkward recording.
fn awkward_stacks(made: &mut Recording, java: ProcessId) -> Vec<usize> {
    let ret = FrameFlags::RETURN_ADDRESS;
    let program = made.module(ModuleKind::File, "/opt/a b/<i>server</i>");
    let libc = made.module(ModuleKind::File, "/usr/lib/x86_64-linux-gnu/libc.so.6");
    let jit = made.module(ModuleKind::Anonymous(java), "[anon]");
    let user = |made: &mut Recording, name: &str| made.frame(program, ret, Some(name));
    let start = made.frame(libc, ret, Some("_start"));
    let main = user(made, "main");
    let handle = user(made, "server::handle(request<'_>&, std::string const&)");
    let read = made.frame(libc, ret, Some("__read"));
    let entry =
        made.frame(ModuleId::KERNEL, FrameFlags::KERNEL | ret, Some("entry_SYSCALL_64_after_hwframe"));
    let vfs = made.frame(ModuleId::KERNEL, FrameFlags::KERNEL, Some("vfs_read"));
    // One function at three addresses: still one frame on the page.
    let fib: Vec<FrameId> = (0..3).map(|_| user(made, "fib")).collect();
    let guessed = made.frame(program, ret | FrameFlags::HEURISTIC, Some("guessed_by_scan"));
    let unnamed = made.frame(libc, ret, None);
    let cut = made.frame(program, FrameFlags::CUT, None);
    let compiled = made.frame(jit, 0, Some("LMain;.loop()V"));
    let markup = user(made, "<img src=x onerror=\"window.pwned=4\"></script><script>window.pwned=5</script>");
    let wide = user(made, "größe::測定<ナ, \"\\u{1F600}😀\">()");
    let long = user(made, &format!("std::vector<{}>::push_back", "std::pair<int, long>, ".repeat(40)));
    let several = made.frame(program, ret, None);
    let places = [("tiny", "/src/tiny.h", 7), ("small", "/src/small.h", 21), ("outer", "/src/outer.c", 300)];
    let places = places.map(|(name, file, line)| Place { name, file, line });
    made.inlined.insert(several, places.to_vec());
    let deep: Vec<FrameId> = (0..500).rev().map(|level| user(made, &format!("deep_{level}"))).collect();

    let deepest: Vec<FrameId> = deep.iter().copied().chain([main, start]).collect();
    [
        &[vfs, entry, read, handle, main, start][..],
        &[handle, main, start],
        &[fib[0], fib[1], fib[0], fib[2], main, start],
        &[fib[1], main, start],
        &[compiled, main, start],
        &[markup, wide, guessed, handle, main, start],
        &[wide, long, main, start],
        &[unnamed, read, cut],
        &[],
        &deepest,
        &[guessed, main, start],
        &[read, handle, main, start],
        &[several, main, start],
        &[read, several, main, start],
    ]
    .map(|stack| made.stack(stack))
    .to_vec()
}

/// Programs of the busy machine: name, processes, threads each, share of the samples.
const PROGRAMS: [(&str, u32, u32, usize); 7] = [
    ("rustc", 24, 9, 46),
    ("postgres", 6, 1, 18),
    ("nginx", 4, 1, 10),
    ("java", 1, 30, 14),
    ("ld.lld", 3, 4, 7),
    ("python3", 2, 2, 4),
    ("systemd", 1, 1, 1),
];

fn busy(samples: usize) -> Recording {
    let mut made = Recording::new("build-07", "", 8);
    let kind = made.machine.add_kind("cpu", Unit::Count, 1_003_009);
    let mut lots = Vec::new();
    let mut threads = Vec::new();
    let mut stacks = Vec::new();
    for (program, &(name, processes, each, share)) in PROGRAMS.iter().enumerate() {
        let mut own = Vec::new();
        for process in 0..processes {
            let pid = 1_000 + program as u32 * 1_000 + process * 40;
            let id = made.machine.add_process(Pid(pid), name, None, Nanos(0));
            for thread in 0..each {
                let label = if thread == 0 { name.to_owned() } else { format!("{name} {thread}") };
                own.push(made.thread(id, pid + thread, &label));
            }
        }
        threads.push(own);
        stacks.push(program_stacks(&mut made, name, share * 650));
        lots.extend(std::iter::repeat_n(program, share));
    }
    let per_cpu = samples.div_ceil(8);
    let mut left = samples;
    for cpu in 0..8_u16 {
        for tick in 0..per_cpu.min(left) {
            let phase = tick * 12 / per_cpu;
            // After two thirds of the time half of the CPUs pause, so that the strip has a shape.
            let pause = if phase > 7 && cpu > 3 { per_cpu as u64 * 60 } else { 0 };
            let us = tick as u64 * 1_003 + pause + u64::from(cpu) * 97;
            let program = lots[(made.random.next(lots.len()) + phase * 5) % lots.len()];
            let thread = threads[program][made.random.next(threads[program].len())];
            // Squared twice: few stacks are hot, many are rare.
            let count = stacks[program].len();
            let spread = made.random.next(1 << 15) as f64 / f64::from(1 << 15);
            let stack = stacks[program][(spread.powi(4) * count as f64) as usize];
            made.sample(us, thread, cpu, stack, kind, 1);
        }
        left = left.saturating_sub(per_cpu);
    }
    made.end(per_cpu as u64 * 1_063 + 1_000)
}

/// Up to `count` stacks of one program: random walks down a random call graph.
fn program_stacks(made: &mut Recording, program: &str, count: usize) -> Vec<usize> {
    let ret = FrameFlags::RETURN_ADDRESS;
    let modules =
        [format!("/usr/bin/{program}"), format!("/usr/lib/lib{program}.so.1"), "/usr/lib/libc.so.6".into()]
            .map(|path: String| made.module(ModuleKind::File, &path));
    let nouns =
        ["parser", "arena", "resolve", "codegen", "buffer", "query", "index", "socket", "cache", "lexer"];
    let verbs =
        ["next", "visit", "insert", "lookup", "flush", "walk", "reserve", "hash", "emit", "poll", "compare"];
    let mut functions = Vec::new();
    for index in 0..(count / 30).clamp(60, 900) {
        let noun = nouns[made.random.next(nouns.len())];
        let verb = verbs[made.random.next(verbs.len())];
        let module = modules[made.random.next(9).saturating_sub(6)];
        let name = format!("{program}::{noun}::{verb}_{index}");
        let flags = if index % 97 == 5 { ret | FrameFlags::HEURISTIC } else { ret };
        functions.push(made.frame(module, flags, if index % 61 == 7 { None } else { Some(&name) }));
    }
    let kernel: Vec<FrameId> =
        ["entry_SYSCALL_64", "do_syscall_64", "ksys_read", "vfs_read", "filemap_read", "copy_page_to_iter"]
            .map(|name| made.frame(ModuleId::KERNEL, FrameFlags::KERNEL | ret, Some(name)))
            .to_vec();
    let start = made.frame(modules[2], ret, Some("_start"));
    let main = made.frame(modules[0], ret, Some("main"));
    (0..count)
        .map(|_| {
            let mut path = vec![start, main];
            let mut at = 1;
            for _ in 0..6 + made.random.next(34) {
                // Each function calls one far more often than its other three.
                let callee = made.random.next(10).saturating_sub(6);
                at = (at * 7 + callee * 13 + 3) % functions.len();
                path.push(functions[at]);
            }
            if made.random.next(5) == 0 {
                path.extend(&kernel[..2 + made.random.next(5)]);
            }
            path.reverse();
            made.stack(&path)
        })
        .collect()
}
