//! Captures of real .NET runtimes running a program of ours, `dotnet/Known.cs`: its calls stand named, in their order, and stay so in
//! other formats.
//!
//! Versions are those of the runtimes: 3.1.23, 9.0.1 and 10.0.9. The latter two came with a program of its maker's, `azmcp`, the last one
//! trimmed and in one file with it; ours is in the place of its assembly. Each wrote its file itself, told to by variables (`COMPlus_`
//! instead of `DOTNET_` for 3.1, and no path: it ends with signal 11 where one is told):
//!
//! ```sh
//! mcs -nostdlib -noconfig -optimize+ -r:$FRAMEWORK_3_1/System.Private.CoreLib.dll -out:azmcp.dll Known.cs
//! DOTNET_EnableEventPipe=1 DOTNET_EventPipeOutputPath=9.nettrace DOTNET_EventPipeConfig=\
//!   Microsoft-DotNETCore-SampleProfiler:0:5,Microsoft-Windows-DotNETRuntime:8:4,Microsoft-Windows-DotNETRuntimeRundown:58:5 ./azmcp
//! ```
//!
//! `cargo xtask test --all` takes new ones of the same runtimes and converts them by the command.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::path::Path;

use collector_common::record::{ExportMachine, FrameId, Sample};
use export::format::nettrace::Nettrace;
use export::import::Imported;
use export::import::nettrace::{import, import_with_events};

use crate::nettrace::File;
use crate::nettrace_old::unzipped;
use crate::pprof::{self, Go, top};
use crate::random::{imported, written};

/// By version: what the process is called, and how many samples `Known.Hot.Spin` has there at least. 3.1 takes one a millisecond and
/// a bit, the others one in three.
const CAPTURES: [(&str, &str, usize); 3] =
    [("3.1", "dotnet", 300), ("9", "azmcp", 150), ("10", "azmcp", 140)];

const SPIN: &str = "Known.Hot.Spin";

/// Who has `Known.Hot.Outer` called.
const CALLERS: [&str; 3] = [
    "Known.Box`1[System.__Canon].Generic",
    "Known.Program.<Main>m__0",
    "Known.Program+<Async>c__async0.MoveNext",
];

pub(crate) fn capture(version: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/dotnet");
    unzipped(&folder.join(format!("{version}.nettrace.zip")))
}

/// The threads' samples: thread, and names, outermost last.
fn stacks(imported: &Imported) -> Vec<(u32, Vec<&str>)> {
    let machine = &imported.machine;
    let name = |&frame: &FrameId| imported.symbols.name(frame).function;
    let is_of_thread = |sample: &Sample| kind(machine, sample) == "thread_sample";
    let told = |sample: Sample| {
        let frames = machine.stacks().get(sample.stack).iter();
        (machine.thread(sample.thread).tid.0, frames.map(name).collect())
    };
    machine.samples().iter().filter(is_of_thread).map(told).collect()
}

fn kind<'a>(machine: &'a ExportMachine, sample: &Sample) -> &'a str {
    machine.string(machine.kinds()[usize::from(sample.kind.0)].name)
}

#[test]
fn calls_of_a_known_program_are_named_in_their_order() {
    for (version, process, least) in CAPTURES {
        let imported = import(Cursor::new(capture(version))).unwrap();
        let machine = &imported.machine;
        let main_kind = machine.main_kind().unwrap();
        assert_eq!(machine.string(machine.kinds()[usize::from(main_kind.0)].name), "thread_sample");
        let [of] = machine.processes() else { panic!("{:?}", machine.processes()) };
        assert_eq!(machine.string(of.name), process);
        let program = &machine.programs()[0];
        let arguments: Vec<&str> = machine.arguments(program).collect();
        assert!(
            matches!(&*arguments, [program, dll] if program.ends_with(process) && dll.ends_with("azmcp.dll"))
        );

        let stacks = stacks(&imported);
        let mut by_caller: BTreeMap<&str, usize> = BTreeMap::new();
        for (tid, stack) in stacks.iter().filter(|(_, stack)| stack.contains(&SPIN)) {
            let at = stack.iter().position(|name| *name == SPIN).unwrap();
            // Asking for the time may be above it.
            assert!(at <= 2, "{stack:?}");
            assert_eq!(stack[at + 1], "Known.Hot.Outer");
            *by_caller.entry(stack[at + 2]).or_default() += 1;
            if stack[at + 2] == CALLERS[2] {
                assert_ne!(*tid, of.pid.0, "{stack:?}");
                assert!(
                    stack[at + 3..].iter().all(|name| name.starts_with("System.Threading.")
                        || name.starts_with("System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1")),
                    "{stack:?}"
                );
            } else {
                assert_eq!((*tid, &stack[at + 3..]), (of.pid.0, &["Known.Program.Main"][..]));
            }
        }
        println!("{version}: {} samples, {by_caller:?}", stacks.len());
        let all: usize = by_caller.values().sum();
        assert!(all >= least, "{version}: {all}");
        assert_eq!(by_caller.keys().copied().collect::<BTreeSet<_>>(), BTreeSet::from(CALLERS));
        // Each of them took a third of the time, of which the machine gave less to some.
        assert!(by_caller.values().all(|&count| count * 6 >= all), "{version}: {by_caller:?}");

        // The first thread burns, and then waits. Trimmed, 10 has no code of the framework that was compiled ahead.
        let main: Vec<_> = stacks.iter().filter(|(_, stack)| stack.contains(&"Known.Program.Main")).collect();
        let known = main.iter().filter(|(_, stack)| {
            stack.contains(&SPIN) || stack.contains(&"System.Threading.Tasks.Task.Wait")
        });
        let (known, all) = (known.count(), main.len());
        assert!(known * 100 >= all * 90, "{version}: {known} of {all}");
    }
}

/// Whether its events are kept, in which the runtime's names are, or not.
#[test]
fn names_stay_in_another_trace() {
    for (version, ..) in CAPTURES {
        let bytes = capture(version);
        let without = import(Cursor::new(&bytes)).unwrap();
        let with = import_with_events(Cursor::new(&bytes), 1 << 24).unwrap();
        let before = stacks(&without);
        assert_eq!(stacks(&with), before);

        // By the strict reader, which knows no event of .NET's.
        let bytes = written(&Nettrace, &without.machine, &without.symbols);
        let file = File::of(&bytes);
        let threads: Vec<_> = file.samples.iter().filter(|sample| sample.kind == "thread_sample").collect();
        assert_eq!(threads.len(), before.len());
        let mut named = 0;
        for (sample, (tid, names)) in threads.iter().zip(&before) {
            assert_eq!((sample.tid, sample.stack.len()), (u64::from(*tid), names.len()));
            for (&address, name) in sample.stack.iter().zip(names) {
                match file.name(sample.pid, address) {
                    Some(told) => assert_eq!(told, *name, "{version}"),
                    None => assert!(name.contains("+0x"), "{version}: {name} at {address:#x}"),
                }
                named += usize::from(!name.contains("+0x"));
            }
        }
        assert!(named > 1000, "{version}: {named}");
        let program = file.mappings.iter().filter(|mapping| mapping.path.ends_with("/azmcp.dll"));
        assert!(program.count() >= 6, "{version}: one for each method of ours");

        let again = imported(&bytes).unwrap();
        assert_eq!(stacks(&again), before, "{version}");
        let third = imported(&written(&Nettrace, &again.machine, &again.symbols)).unwrap();
        assert_eq!(stacks(&third), before, "{version}");
        let bytes = written(&Nettrace, &with.machine, &with.symbols);
        let again = import_with_events(Cursor::new(&bytes), 1 << 24).unwrap();
        assert_eq!(stacks(&again), before, "{version}");
    }
}

#[test]
fn pprof_counts_the_same() {
    for (version, ..) in CAPTURES {
        let imported = import(Cursor::new(capture(version))).unwrap();
        let Some(go) = Go::new(&pprof::written(&imported.machine, &imported.symbols)) else { return };
        let told = top(&go.pprof(&["-top", "-sample_index=thread_sample"]));
        let with =
            |name| stacks(&imported).iter().filter(|(_, stack)| stack.contains(name)).count().to_string();
        for name in [SPIN, "Known.Program.Main"].iter().chain(&CALLERS) {
            assert_eq!(told[*name].1, with(name), "{version}: {name}");
        }
    }
}
