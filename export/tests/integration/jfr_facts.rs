//! What JFR tells beside samples, as the JDK's own `jfr print` shows it for people, and as it is read back: arguments of programs, where
//! files are mapped.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::time::{Duration, Instant};

use collector_common::ids::{Avma, FileOffset, Nanos, Pid};
use collector_common::record::{ExportMachine, Frame, FrameFlags, ModuleMapping, WITHOUT_ADDRESS};
use export::format::folded::Folded;
use export::format::nettrace::Nettrace;
use export::format::pprof::Pprof;
use export::format::{ExportFormat, Profile};
use export::import::jfr::import;
use export::import::{ImportFormat, Imported};
use export::symbolize::Symbols;

use crate::jfr::{every_kind, printed, written};
use crate::jfr_made::Bytes;
use crate::made::Made;
use crate::random;
use crate::tools::{file, output, tool};

/// Such as any quoting has to tell apart.
const ARGUMENTS: [&str; 7] = ["a b", "", "\"quoted\" \\ 'it'", "[1,2]", "tab\t, line\n, ñ", "=,;", "$(x) *"];

/// A program with such arguments.
fn program() -> ExportMachine {
    let mut machine = ExportMachine::default();
    let process = machine.add_process(Pid(7), "p", None, Nanos(0));
    let program = machine.add_program(process, Nanos(0), "p");
    let arguments = ARGUMENTS.join("\0") + "\0";
    machine.set_arguments(program, arguments.as_bytes(), true);
    machine
}

/// Arguments of all programs, and whether there were more.
fn programs(machine: &ExportMachine) -> Vec<(Vec<&str>, bool)> {
    let of = |program| (machine.arguments(program).collect(), program.are_cut);
    machine.programs().iter().map(of).collect()
}

/// Without `--json`, as people use it: a recording with all kinds of events and values.
#[test]
fn the_jdk_prints_all_events_for_people() {
    let Some(mut jfr) = tool("jfr") else { return };
    let Made { machine, symbols } = every_kind();
    let file = file(&written(&machine, &symbols), ".jfr");
    let printed = output(jfr.arg("print").arg(&*file));
    let summary = output(tool("jfr").unwrap().arg("summary").arg(&*file));
    // Lines of a name, a number of events, and their bytes.
    let counts = summary.lines().filter_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [name, count, _] if name.contains('.') => {
            Some((name, count.parse::<usize>().ok().filter(|count| *count > 0)?))
        }
        _ => None,
    });
    let counts: Vec<_> = counts
        .filter(|(name, _)| !["jdk.metadata", "jdk.checkpoint"].contains(&&*name.to_lowercase()))
        .collect();
    assert!(counts.len() > 12, "{summary}");
    for (name, count) in counts {
        assert_eq!(printed.matches(&format!("{name} {{\n")).count(), count, "{name}");
    }
    assert!(printed.contains(r#"arguments = "["prog","--fast","two words"]""#), "{printed}");
}

#[test]
fn arguments_are_printed_and_read_as_they_were() {
    let machine = program();
    let bytes = written(&machine, &Symbols::unresolved(&machine));
    assert_eq!(programs(&import(&*bytes).unwrap().machine), [(ARGUMENTS.to_vec(), true)]);
    let Some(mut jfr) = tool("jfr") else { return };
    let printed = output(jfr.args(["print", "--events", "collector.Program"]).arg(&*file(&bytes, ".jfr")));
    let told = printed.lines().find_map(|line| line.trim().strip_prefix("arguments = \"")?.strip_suffix('"'));
    assert_eq!(serde_json::from_str::<Vec<String>>(told.unwrap()).unwrap(), ARGUMENTS);
}

/// A file of ours with a process and a program, whose arguments are a field of this type, which is written so.
fn with_arguments(class: &str, write: impl Fn(&mut Bytes)) -> Vec<u8> {
    let arguments = format!("arguments:{class}");
    let mut bytes = Bytes::new(true);
    bytes.types(&[
        (2, "boolean", false, &[]),
        (7, "long", false, &[]),
        (10, "java.lang.String", false, &[]),
        (20, "collector.Process", true, &["startTime:7", "processId:7", "name:10"]),
        (
            21,
            "collector.Program",
            true,
            &["startTime:7", "processId:7", "name:10", &arguments, "argumentsCut:2"],
        ),
    ]);
    bytes.event(1, |out| {
        out.long(1)
            .long(0)
            .long(0)
            .byte(1)
            .int(1)
            .long(10)
            .int(1)
            .long(5)
            .text(&format!("[\"{}\"]", "x".repeat(1 << 20)))
    });
    bytes.event(20, |out| out.long(100).long(7).text("p"));
    write(&mut bytes);
    bytes.chunk()
}

/// As they were written before they were one text.
#[test]
fn a_list_of_arguments_is_read() {
    let file = with_arguments("10[]", |bytes| {
        bytes.event(21, |out| {
            out.long(100).long(7).text("p").int(3).text("p").text("a b").byte(1);
            out.byte(0)
        });
    });
    assert_eq!(programs(&import(&*file).unwrap().machine), [(vec!["p", "a b", ""], false)]);
}

#[test]
fn what_is_no_array_of_strings_is_no_argument() {
    for text in ["", "p --fast", "[1]", "[\"p\"", "{\"p\":1}", &"[".repeat(100_000)] {
        let file = with_arguments("10", |bytes| {
            bytes.event(21, |out| out.long(100).long(7).text("p").text(text).byte(0));
        });
        assert_eq!(programs(&import(&*file).unwrap().machine), [(vec![], false)], "{text:.20}");
    }
}

/// One text of a megabyte that very many programs have.
#[test]
fn arguments_are_not_made_without_end() {
    let file = with_arguments("10", |bytes| {
        for _ in 0..50_000 {
            bytes.event(21, |out| out.long(100).long(7).text("p").byte(2).long(5).byte(0));
        }
    });
    let start = Instant::now();
    let imported = import(&*file).unwrap();
    assert!(start.elapsed() < Duration::from_secs(10));
    let programs = programs(&imported.machine);
    assert_eq!(programs.len(), 50_000);
    assert!(programs[0].0[0].len() <= 1 << 20 && !programs[0].1);
    let cut = programs.iter().filter(|(arguments, are_cut)| arguments.is_empty() && *are_cut).count();
    assert!(cut > 49_900, "{cut}");
}

/// The first sample's time in the made recording.
const FIRST: u64 = 500;

/// Pid, path, build id, range, offset, bias and time of all mappings. What was there at the first sample may have been there before.
fn mappings(machine: &ExportMachine) -> Vec<(u32, &str, String, [u64; 5])> {
    let of = |mapping: &ModuleMapping| {
        let module = machine.module(mapping.module);
        let build_id = module.build_id.map(|id| id.to_string()).unwrap_or_default();
        let numbers = [
            mapping.start.0,
            mapping.end.0,
            mapping.file_offset.0,
            mapping.bias,
            if mapping.since.0 > FIRST { mapping.since.0 } else { 0 },
        ];
        (machine.process(mapping.process).pid.0, machine.string(module.path), build_id, numbers)
    };
    // Those where numbers are that stand for addresses are the reader's own.
    let are_told = machine.mappings().iter().filter(|mapping| !WITHOUT_ADDRESS.contains(&mapping.start.0));
    let mut all: Vec<_> = are_told.map(of).collect();
    all.sort();
    all
}

/// The made recording, the first process of which maps its file once more later, and a bias below 0.
fn mapped() -> Made {
    let mut made = every_kind();
    let [first, ..] = *made.machine.mappings() else { panic!() };
    made.machine.add_mapping(ModuleMapping {
        start: Avma(0x1000),
        end: Avma(0x3000),
        file_offset: FileOffset(0x7_0000_0000),
        bias: 0_u64.wrapping_sub(0x5000),
        since: Nanos(7_777),
        ..first
    });
    made
}

#[test]
fn mappings_are_shown_and_read_as_they_were() {
    let Made { machine, symbols } = mapped();
    let bytes = written(&machine, &symbols);
    let Imported { machine: read, left_out, .. } = import(&*bytes).unwrap();
    assert_eq!(mappings(&read), mappings(&machine));
    assert!(left_out.is_empty(), "{left_out:?}");

    let Some(mut jfr) = tool("jfr") else { return };
    let events = printed(&mut jfr, &file(&bytes, ".jfr"));
    let libraries = events.iter().filter(|event| event["type"] == "jdk.NativeLibrary");
    let mut shown: Vec<_> = libraries
        .map(|event| {
            let of = |name: &str| event["values"][name].as_i64().unwrap().cast_unsigned();
            let text = |name: &str| event["values"][name].as_str().unwrap().to_owned();
            let numbers = ["processId", "baseAddress", "topAddress", "fileOffset", "loadBias"].map(of);
            (numbers, text("name"), text("buildId"))
        })
        .collect();
    shown.sort();
    let recorded =
        mappings(&machine).into_iter().map(|(pid, path, build_id, [start, end, offset, bias, _])| {
            ([pid.into(), start, end, offset, bias], path.to_owned(), build_id)
        });
    assert_eq!(shown, recorded.collect::<Vec<_>>());
}

/// What was read has files at places and functions without addresses, and so have others then.
#[test]
fn what_was_read_is_written_with_mappings_and_without_addresses() {
    let Made { machine, symbols } = mapped();
    let Imported { machine: read, symbols, .. } = import(&*written(&machine, &symbols)).unwrap();
    let profile = Profile { machine: &read, symbols: &symbols };
    let mut bytes = Vec::new();
    Nettrace.write(profile, &mut bytes).unwrap();
    let again = export::import::nettrace::import(Cursor::new(&bytes)).unwrap().machine;
    assert_eq!(mappings(&again), mappings(&read));

    bytes.clear();
    Pprof.write(profile, &mut bytes).unwrap();
    let again = export::import::pprof::Pprof.import(&mut Cursor::new(&bytes)).unwrap().machine;
    let linked = mappings(&again);
    let linked =
        linked.iter().map(|(_, path, id, [start, end, offset, ..])| (*path, &**id, [*start, *end, *offset]));
    assert!(linked.clone().any(|it| it == ("/opt/prog", "abcd01", [0x4000, 0x9000, 0x3000])), "{linked:x?}");
    let has_address = |frame: &&Frame| frame.has_address() && !frame.flags.has(FrameFlags::CUT);
    assert_eq!(again.frames().iter().filter(has_address).count(), 0);
}

/// A file of ours with a process, and one with libraries as they were told of before their offsets were, or as the JDK tells of them.
#[test]
fn libraries_of_other_writers() {
    let fields = ["startTime:7", "name:10", "baseAddress:7", "topAddress:7"];
    for own in [&["processId:7", "buildId:10"][..], &[]] {
        let mut bytes = Bytes::new(true);
        bytes.types(&[
            (7, "long", false, &[]),
            (10, "java.lang.String", false, &[]),
            (20, "collector.Process", true, &["startTime:7", "processId:7", "name:10"]),
            (21, "jdk.NativeLibrary", true, &[&fields[..], own].concat()),
        ]);
        bytes.event(20, |out| out.long(100).long(7).text("p"));
        bytes.event(21, |out| {
            out.long(104).text("/lib/x").long(0x7000).long(0x9000);
            if own.is_empty() { out } else { out.long(7).text("abcd01") }
        });
        let Imported { machine, left_out, .. } = import(&*bytes.chunk()).unwrap();
        let [told, expected] = if own.is_empty() {
            let line = "1 mappings of libraries are left out: which process has them is not told";
            [format!("{:?} {left_out:?}", mappings(&machine)), format!("[] [{line:?}]")]
        } else {
            let mapping = (7, "/lib/x", "abcd01".to_owned(), [0x7000, 0x9000, 0, 0x7000, 0]);
            [format!("{:?} {left_out:?}", mappings(&machine)), format!("{:?} []", [mapping])]
        };
        assert_eq!(told, expected);
    }
}

#[test]
fn lines_of_the_account_beyond_the_limit_are_called_so() {
    let mut machine = program();
    machine.system_mut().account = (0..1003).map(|line| format!("line {line}")).collect();
    let Imported { machine, left_out, .. } =
        import(&*written(&machine, &Symbols::unresolved(&machine))).unwrap();
    assert_eq!(machine.system().account.len(), 1000);
    assert_eq!(left_out, ["3 lines of the account are left out: there are too many"]);
}

/// nettrace tells names by where code lies, which JFR does not tell.
#[test]
fn names_stay_in_formats_that_tell_them_by_places() {
    let Made { machine, symbols } = Made::new();
    let of_jfr = import(Cursor::new(written(&machine, &symbols))).unwrap();
    let folded = |machine: &ExportMachine, symbols: &Symbols| {
        String::from_utf8(random::written(&Folded, machine, symbols)).unwrap()
    };
    let stacks = folded(&of_jfr.machine, &of_jfr.symbols);
    assert!(stacks.contains("main") && stacks.contains("recurse"), "{stacks}");
    let trace = random::written(&Nettrace, &of_jfr.machine, &of_jfr.symbols);
    let Imported { machine, symbols, .. } = random::imported(&trace).unwrap();
    // Inlined functions are no longer told apart there, nor is told where a stack is cut.
    let told = |folded: &str| {
        let plain = folded.replace("_[i]", "").replace("[stack cut];", "");
        plain.lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    assert_eq!(told(&folded(&machine, &symbols)), told(&stacks));
}
