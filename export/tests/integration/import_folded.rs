//! Folded stacks become machines again: those that we write, and those of others' scripts.

use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};

use collector_common::record::{ExportMachine, Sample, Unit};
use export::format::firefox::Firefox;
use export::format::folded::Folded;
use export::format::jfr::Jfr;
use export::format::jsonl::JsonLines;
use export::format::nettrace::Nettrace;
use export::format::pprof::Pprof;
use export::format::{Contents, ExportFormat, Profile};
use export::import::{ImportFormat as _, Imported};
use export::symbolize::Symbols;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use crate::made::Made;
use crate::random::{imported, recording, rows, told, written};

/// Names alone, with what tells the kernel's and inlined ones apart.
fn names(machine: &ExportMachine, symbols: &Symbols) -> BTreeMap<String, i64> {
    let thread = |sample: &Sample| {
        let thread = machine.string(machine.thread(sample.thread).name);
        Some((thread.to_owned(), sample.value))
    };
    told(machine, thread, |id| {
        let functions: Vec<_> = symbols.functions(id).collect();
        let is_kernel = machine.frames().get(id).is_kernel();
        let named = functions.iter().rev();
        named.map(|of| format!("{} {is_kernel} {}", symbols.function(of.name), of.is_inlined)).collect()
    })
}

proptest! {
    #[test]
    fn what_we_write_is_read_as_it_was(rows in rows()) {
        let (machine, symbols) = recording(&rows, &[("cpu", Unit::Count, 1_003_009)]);
        let bytes = written(&Folded, &machine, &symbols);
        if rows.is_empty() {
            prop_assert!(imported(&bytes).is_err());
            return Ok(());
        }
        let again = imported(&bytes).unwrap();
        prop_assert_eq!(names(&machine, &symbols), names(&again.machine, &again.symbols));
        prop_assert_eq!(written(&Folded, &again.machine, &again.symbols), bytes);
    }

    #[test]
    fn noise_is_survived(noise in "[a-c;_\\[\\]ki 0-9\n]{0,200}") {
        let _ = export::import::folded::Folded.import(&mut Cursor::new(noise));
    }
}

#[test]
fn lines_of_others_scripts_are_read() {
    let text = "# a comment\njava-12/13;start_thread;Foo::bar_[j];do_syscall_64_[k];inl_[i] 7\r\n\nperf;a b 1\nidle 3\n";
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    for bytes in [text.as_bytes(), &packed.finish().unwrap()] {
        let Imported { machine, symbols, left_out } = imported(bytes).unwrap();
        assert!(left_out.is_empty());
        let lines = String::from_utf8(written(&Folded, &machine, &symbols)).unwrap();
        let expected =
            "idle 3\njava-12/13;start_thread;Foo::bar_[j];do_syscall_64_[k];inl_[i] 7\nperf;a b 1\n";
        assert_eq!(lines, expected);
    }
}

#[test]
fn how_many_were_lost_is_not_known_here_and_where_it_goes() {
    let Imported { machine, symbols, .. } = imported(b"main;f 3\n").unwrap();
    assert_eq!(machine.system().lost, None);
    let lines = written(&JsonLines, &machine, &symbols);
    assert!(String::from_utf8(lines).unwrap().contains("\"lost\":null,"));
    for format in [&Jfr as &dyn ExportFormat, &Pprof, &Firefox] {
        let again = imported(&written(format, &machine, &symbols)).unwrap();
        assert_eq!(again.machine.system().lost, None, "{}", format.name());
    }
}

/// What readers make up so that formats have something to tell names by is not what a file has.
#[test]
fn what_is_not_there_is_not_left_out() {
    let Imported { machine, symbols, .. } = imported(b"main;f;g_[k] 3\n").unwrap();
    let left_out = |format, machine, symbols| Contents::of(Profile { machine, symbols }).left_out(format);
    assert_eq!(left_out(&Folded, &machine, &symbols), None);
    let made = Made::new();
    let told = left_out(&JsonLines, &made.machine, &made.symbols).unwrap();
    assert!(told.contains("files") && told.contains("mappings"), "{told}");
    let again = imported(&written(&Firefox, &made.machine, &made.symbols)).unwrap();
    let told = left_out(&JsonLines, &again.machine, &again.symbols).unwrap();
    assert!(told.contains("files") && !told.contains("mappings"), "{told}");
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let error = |text: &str| imported(text.as_bytes()).unwrap_err().to_string();
    let told = error("a;b 1\nc;d x\n");
    let cause = "not a folded profile, or a damaged one: line 2 has no count behind its last space, as in `a;b;c 12`; ";
    assert!(told.starts_with(cause), "{told}");
    assert!(error("a;b 1\nc;d").starts_with("it is cut short: line 2 has no count"));
    assert!(error(&format!("a;b 1\n{} 1\n", "x".repeat(1 << 20))).contains("1048576 bytes in a line"));
}

/// A stack whose sum has no room in a number is there twice, for tools with wider ones. pprof's readers begin again from below zero.
#[test]
fn sums_without_room_are_not_other_numbers() {
    const MOST: i64 = i64::MAX;
    let text = format!("a;b {MOST}\na;c 1\na;b {MOST}\n");
    let Imported { machine, symbols, .. } = imported(text.as_bytes()).unwrap();
    let lines = String::from_utf8(written(&Folded, &machine, &symbols)).unwrap();
    assert_eq!(lines, format!("a;b {MOST}\na;b {MOST}\na;c 1\n"));
    let profile = Profile { machine: &machine, symbols: &symbols };
    let error = Pprof.write(profile, &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("more than 63 bits hold"), "{error}");
}

/// Names without addresses, of the kernel too, are not lost by formats that tell names by address.
#[test]
fn names_go_through_other_formats() {
    let text = "one;main;f;vfs_read_[k] 3\ntwo;main;g 4\n";
    let Imported { machine, symbols, .. } = imported(text.as_bytes()).unwrap();
    let formats: [&dyn ExportFormat; 4] = [&Folded, &Pprof, &Firefox, &Nettrace];
    for format in formats {
        let bytes = written(format, &machine, &symbols);
        let again = imported(&bytes).unwrap();
        let lines = String::from_utf8(written(&Folded, &again.machine, &again.symbols)).unwrap();
        assert_eq!(lines, text, "{}", format.name());
    }
}
