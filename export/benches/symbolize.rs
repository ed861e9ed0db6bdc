//! What names cost at the end of a recording: 2,000 addresses, spread over the C library, the Rust compiler's
//! library and this program, and 500 of the kernel.
//!
//! The files are those of the machine it runs on; what is missing is left out and said. `PROGRAM=path` measures another
//! program than this one: with lines and inlined functions, and without.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Command;

use collector_common::ids::Svma;
use collector_common::record::{ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId, ModuleKind};
use criterion::{Criterion, criterion_group, criterion_main};
use export::symbolize::{Detail, ModuleFiles, Symbols, symbolize};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ReadCache, SectionKind};

struct Files<'a>(&'a ExportMachine);

impl ModuleFiles for Files<'_> {
    type File = File;

    fn open(&self, module: ModuleId) -> Option<File> {
        File::open(self.0.string(self.0.module(module).path)).ok()
    }

    fn kernel_symbols(&self) -> Option<Box<dyn BufRead + Send>> {
        Some(Box::new(BufReader::with_capacity(64 << 10, File::open("/proc/kallsyms").ok()?)))
    }
}

/// Addresses spread over the code of a file.
fn spread(path: &PathBuf, count: u64) -> Vec<u64> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let cache = ReadCache::new(file);
    let Ok(elf) = ElfFile64::<object::Endianness, _>::parse(&cache) else { return Vec::new() };
    let code = elf.sections().filter(|section| section.kind() == SectionKind::Text);
    let Some(largest) = code.max_by_key(ObjectSection::size) else { return Vec::new() };
    (0..count).map(|index| largest.address() + largest.size() / count * index).collect()
}

fn machine_of(files: &[(PathBuf, u64)], kernel: &[u64]) -> ExportMachine {
    let mut machine = ExportMachine::default();
    for (path, count) in files {
        let name = machine.intern_string(&path.to_string_lossy());
        let module = machine.add_module(Module { kind: ModuleKind::File, path: name, build_id: None });
        for address in spread(path, *count) {
            let flags = FrameFlags(FrameFlags::RETURN_ADDRESS);
            machine.intern_frame(Frame { module, address: Svma(address + 1), flags });
        }
    }
    for &address in kernel {
        let flags = FrameFlags(FrameFlags::KERNEL);
        machine.intern_frame(Frame { module: ModuleId::KERNEL, address: Svma(address), flags });
    }
    machine
}

/// Addresses of kernel functions; none where the kernel hides them.
fn kernel_addresses() -> Vec<u64> {
    let Ok(file) = File::open("/proc/kallsyms") else { return Vec::new() };
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    let code = lines.filter(|line| line.contains(" T ") || line.contains(" t "));
    let addresses = code.filter_map(|line| u64::from_str_radix(line.split(' ').next()?, 16).ok());
    addresses.filter(|&address| address != 0).step_by(240).take(500).collect()
}

fn named(machine: &ExportMachine, symbols: &Symbols) -> usize {
    (0..machine.frames().len() as u32).filter(|&id| symbols.is_resolved(FrameId(id))).count()
}

/// Functions with a line, inlined ones too.
fn lines(machine: &ExportMachine, symbols: &Symbols) -> usize {
    let functions = (0..machine.frames().len() as u32).flat_map(|id| symbols.functions(FrameId(id)));
    functions.filter(|function| function.line > 0).count()
}

fn printed_by(command: &mut Command) -> String {
    command
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}

fn bench(criterion: &mut Criterion) {
    let libc = PathBuf::from(printed_by(Command::new("gcc").arg("-print-file-name=libc.so.6")));
    let libraries = PathBuf::from(printed_by(Command::new("rustc").args(["--print", "sysroot"]))).join("lib");
    let rustc = std::fs::read_dir(libraries)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().contains("librustc_driver"))
        .unwrap_or_default();
    let own = std::env::var_os("PROGRAM").map(PathBuf::from);
    let own = own.unwrap_or_else(|| std::env::current_exe().unwrap_or_default());
    let files = [(libc, 600), (rustc, 1_000), (own, 400)];
    let kernel = kernel_addresses();
    let mut group = criterion.benchmark_group("symbolize");
    group.sample_size(10);
    let mut measure = |name: &str, machine: &ExportMachine, detail: Detail| {
        let frames = machine.frames().len();
        let symbols = symbolize(machine, &Files(machine), detail);
        println!(
            "{name}: {} of {frames} named, {} lines",
            named(machine, &symbols),
            lines(machine, &symbols)
        );
        group.bench_function(name, |bencher| bencher.iter(|| symbolize(machine, &Files(machine), detail)));
    };
    let names = Detail::Names;
    measure("2,000 addresses of three files", &machine_of(&files, &[]), names);
    for ((path, count), name) in files.iter().zip(["the C library", "the compiler", "this program"]) {
        measure(name, &machine_of(&[(path.clone(), *count)], &[]), names);
    }
    let [.., (own, count)] = &files;
    let machine = machine_of(&[(own.clone(), *count)], &[]);
    measure("this program with lines", &machine, Detail::Lines);
    measure("500 addresses of the kernel", &machine_of(&[], &kernel), names);
    group.bench_function("reading /proc/kallsyms alone", |bencher| {
        bencher.iter(|| {
            let mut file = BufReader::with_capacity(64 << 10, File::open("/proc/kallsyms").ok()?);
            std::io::copy(&mut file, &mut std::io::sink()).ok()
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
