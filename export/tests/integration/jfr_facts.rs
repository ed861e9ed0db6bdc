//! What JFR tells beside samples, as the JDK's own `jfr print` shows it for people, and as it is read back: arguments of programs, where
//! files are mapped.

use std::time::{Duration, Instant};

use collector_common::ids::{Nanos, Pid};
use collector_common::record::ExportMachine;
use export::import::jfr::import;
use export::symbolize::Symbols;

use crate::jfr::{every_kind, written};
use crate::jfr_made::Bytes;
use crate::made::Made;
use crate::tools::{file, output, tool};

/// Such as any quoting has to tell apart.
const ARGUMENTS: [&str; 7] = ["a b", "", "\"quoted\" \\ 'it'", "[1,2]", "tab\t, line\n, ñ", "=,;", "$(x) *"];

/// A program with such arguments.
fn program() -> ExportMachine {
    let mut machine = ExportMachine::default();
    let process = machine.add_process(Pid(7), "p", None, Nanos(0));
    let program = machine.add_program(process, Nanos(0), "p");
    let arguments: String = ARGUMENTS.iter().map(|argument| format!("{argument}\0")).collect();
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
