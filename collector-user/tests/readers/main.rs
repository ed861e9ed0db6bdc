//! Files that can't be read, given to the program by both commands that read: whatever is wrong with a file, one line names it, says why, and
//! what helps.
//!
//! - `broken`: a file of each reader, and what is to be said of it once it is spoilt.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

mod broken;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use broken::{Broken, Reader, packed, readers};
use export::format::formats;

fn collector(folder: &Path) -> Command {
    let mut collector = Command::new(env!("CARGO_BIN_EXE_collector"));
    collector.current_dir(folder).stdin(Stdio::null());
    collector
}

/// What it prints on stderr.
fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The commands that read a file; the first is `convert`.
fn commands(input: &str) -> [Vec<&str>; 2] {
    [vec!["convert", input, "-o", "out.folded"], vec!["report", input]]
}

/// What is said of a file that can't be read: one line that names it. Nothing else is printed, and nothing is left behind.
fn refused(folder: &Path, command: &[&str]) -> String {
    check_refused(&collector(folder).args(command).output().unwrap(), folder, command)
}

fn check_refused(output: &Output, folder: &Path, command: &[&str]) -> String {
    let told = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{command:?}: {told}");
    assert!(told.ends_with('\n') && told.lines().count() == 1, "{command:?}: {told}");
    let name = if command[1] == "-" { "stdin" } else { command[1] };
    assert!(told.starts_with(&format!("collector: {name} can't be ")) || command[1] == "-", "{told}");
    assert!(output.stdout.is_empty() && !folder.join("out.folded").exists(), "{command:?}");
    told
}

/// Whether a line has a cause, and behind it what helps.
fn assert_told(told: &str, cause: &str, remedy: &str) {
    let (_, behind) = told.split_once(cause).unwrap_or_else(|| panic!("`{cause}` is not in: {told}"));
    let helps = behind.split_once("; ").is_some_and(|(_, helps)| helps.contains(remedy));
    assert!(helps, "`{remedy}` is not behind `{cause}`: {told}");
}

/// What is read by the program's own list, by name, with usual endings.
fn listed() -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let output = collector(folder.path()).args(["list", "formats"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (_, read) = text.split_once("\nRead by ").unwrap();
    let (_, rows) = read.split_once("\n\n").unwrap();
    let rows = rows.lines().filter(|line| !line.starts_with(' ') && !line.is_empty());
    let columns = rows.map(|row| {
        let (name, rest) = row.split_once(' ').unwrap();
        (name.to_owned(), rest.trim_start().to_owned())
    });
    columns.collect()
}

#[test]
fn every_reader_is_in_the_table() {
    let listed = listed();
    let names: BTreeSet<&str> = listed.iter().map(|(name, _)| name.as_str()).collect();
    let all = readers();
    assert_eq!(names, all.iter().map(|reader| reader.name).collect());
    for Reader { name, ending, .. } in all {
        let (_, row) = listed.iter().find(|(listed, _)| listed == name).unwrap();
        assert!(row.split(' ').any(|listed| listed == ending), "{name}: {row}");
    }
}

#[test]
fn what_is_spoilt_is_told_with_its_cause_and_what_helps() {
    let folder = tempfile::tempdir().unwrap();
    for Reader { name, ending, whole, is_reported, broken, .. } in readers() {
        let file = format!("x{ending}");
        let path = folder.path().join(&file);
        let write = |bytes: &[u8]| fs::write(&path, bytes).unwrap();
        let [convert, report] = commands(&file);
        write(whole);
        for command in [&convert, &report] {
            let output = collector(folder.path()).args(command).output().unwrap();
            let is_read = is_reported || command[0] == "convert";
            assert_eq!(output.status.success(), is_read, "{name}: {}", stderr(&output));
        }
        if !is_reported {
            assert_told(
                &refused_again(folder.path(), &report),
                "it is a perf.data",
                "`collector convert x.perf.data",
            );
        }
        fs::remove_file(folder.path().join("out.folded")).unwrap();
        for Broken { bytes, cause, remedy } in broken {
            write(&bytes);
            assert_told(&refused(folder.path(), &convert), cause, remedy);
            if is_reported {
                assert_told(&refused(folder.path(), &report), cause, remedy);
            }
        }
    }
}

/// As [`refused`], where `convert` has written before.
fn refused_again(folder: &Path, command: &[&str]) -> String {
    fs::rename(folder.join("out.folded"), folder.join("kept")).unwrap();
    let told = refused(folder, command);
    fs::rename(folder.join("kept"), folder.join("out.folded")).unwrap();
    told
}

/// As it happens: some part is read, or a line says that it is cut short.
#[test]
fn a_file_may_be_cut_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    for Reader { name, ending, whole, is_reported, may_be_empty, .. } in readers() {
        let file = format!("x{ending}");
        let (mut refusals, mut lengths) = (0, 0);
        for length in (0..whole.len()).step_by(whole.len() / 12) {
            fs::write(folder.path().join(&file), &whole[..length]).unwrap();
            for command in commands(&file).into_iter().take(1 + usize::from(is_reported)) {
                lengths += 1;
                let output = collector(folder.path()).args(&command).output().unwrap();
                let _ = fs::remove_file(folder.path().join("out.folded"));
                if output.status.success() {
                    continue;
                }
                refusals += 1;
                let told = check_refused(&output, folder.path(), &command);
                let causes = ["cut short", "cut off", "is empty", "as where its end is missing"];
                let cause = causes.into_iter().find(|cause| told.contains(cause));
                assert_told(
                    &told,
                    cause.unwrap_or_else(|| panic!("{name}, {length}: {told}")),
                    "copy it again",
                );
            }
        }
        assert!(refusals > 0 || may_be_empty, "{name}: {refusals} of {lengths}");
    }
}

/// Each byte of the beginning, where headers are: what is not read is told.
#[test]
fn headers_may_be_spoilt_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    for Reader { name, ending, whole, .. } in readers() {
        let file = format!("x{ending}");
        let [convert, _] = commands(&file);
        let mut refusals = 0;
        for at in 0..32 {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 0xff;
            fs::write(folder.path().join(&file), bytes).unwrap();
            let output = collector(folder.path()).args(&convert).output().unwrap();
            let _ = fs::remove_file(folder.path().join("out.folded"));
            if !output.status.success() {
                refusals += 1;
                assert_told(&check_refused(&output, folder.path(), &convert), "can't be ", "");
            }
        }
        assert!(refusals > 0 || name == "folded", "{name}");
    }
}

#[test]
fn empty_files_are_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    for Reader { ending, may_be_empty, .. } in readers() {
        let file = format!("x{ending}");
        File::create(folder.path().join(&file)).unwrap();
        for command in commands(&file) {
            if may_be_empty {
                let output = collector(folder.path()).args(&command).output().unwrap();
                assert!(output.status.success(), "{}", stderr(&output));
                let _ = fs::remove_file(folder.path().join("out.folded"));
            } else {
                assert_told(&refused(folder.path(), &command), "it is empty", "record it again");
            }
        }
    }
    for command in commands("-") {
        assert_told(&refused(folder.path(), &command), "it is empty", "record it again");
    }
}

/// The bytes decide, whatever the ending says; which is told where they can't be read.
#[test]
fn a_wrong_ending_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let all = readers();
    for (of, by) in all.iter().zip(all.iter().skip(1).chain(all.first())) {
        let file = format!("x{}", by.ending);
        let [convert, _] = commands(&file);
        fs::write(folder.path().join(&file), of.whole).unwrap();
        let output = collector(folder.path()).args(&convert).output().unwrap();
        assert!(output.status.success(), "{} as {file}: {}", of.name, stderr(&output));
        fs::remove_file(folder.path().join("out.folded")).unwrap();
    }
    let [nettrace, jfr] =
        ["nettrace", "jfr"].map(|name| all.iter().find(|reader| reader.name == name).unwrap());
    fs::write(folder.path().join("x.jfr"), &nettrace.whole[..100]).unwrap();
    for command in commands("x.jfr") {
        let other = "it begins as nettrace, though its ending is that of JFR: the trace is cut short";
        assert_told(&refused(folder.path(), &command), other, "copy it again");
    }
    fs::write(folder.path().join("x.nettrace"), &jfr.whole[..100]).unwrap();
    for command in commands("x.nettrace") {
        let other = "it begins as JFR, though its ending is that of nettrace: the recording is cut short";
        assert_told(&refused(folder.path(), &command), other, "copy it again");
    }
}

#[test]
fn what_can_not_be_opened_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for Reader { name, ending, is_reported, .. } in readers() {
        let absent = format!("absent{ending}");
        for command in commands(&absent) {
            let told = refused(folder.path(), &command);
            assert_told(&told, "absent", "name a recording that is there");
            assert!(told.contains("(.nettrace; `Nettrace`)"), "{told}");
        }
        let directory = format!("folder{ending}");
        fs::create_dir(folder.path().join(&directory)).unwrap();
        let [convert, report] = commands(&directory).map(|command| refused(folder.path(), &command));
        let cause = "it is a folder";
        assert!(
            convert.contains(cause) && convert.contains("name such a folder, whole, or a file"),
            "{convert}"
        );
        assert_told(&report, cause, "name a file in it");
        assert!(is_reported || name == "perf.data");
    }
}

/// Root may read all files unless it gives up the rights to.
#[cfg(target_os = "linux")]
#[test]
fn files_that_may_not_be_read_are_told() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    for Reader { ending, whole, .. } in readers() {
        let file = format!("x{ending}");
        let path = folder.path().join(&file);
        fs::write(&path, whole).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        for command in commands(&file) {
            let mut reader = collector(folder.path());
            if File::open(&path).is_ok() {
                reader = Command::new("setpriv");
                reader.current_dir(folder.path()).stdin(Stdio::null());
                reader
                    .args(["--bounding-set", "-dac_override,-dac_read_search"])
                    .arg(env!("CARGO_BIN_EXE_collector"));
            }
            let output = reader.args(&command).output().unwrap();
            let told = check_refused(&output, folder.path(), &command);
            assert_told(&told, "can't be read: Permission denied", "have its owner let you read it");
        }
    }
}

/// What the program itself writes and does not read, by its ending and by what is in it.
#[test]
fn outputs_that_are_not_read_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let folded = readers().into_iter().find(|reader| reader.name == "folded").unwrap();
    let read: BTreeSet<&str> = readers().iter().map(|reader| reader.name).collect();
    fs::write(folder.path().join("in.folded"), folded.whole).unwrap();
    for format in formats().iter().filter(|format| !read.contains(format.name())) {
        let file = format!("x{}", format.ending());
        let output = collector(folder.path()).args(["convert", "in.folded", "-o", &file]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        for command in commands(&file) {
            let told = refused(folder.path(), &command);
            let is_archive = format.name() == "perfview";
            let (cause, remedy) =
                if is_archive { ("a zip archive", "unpack it first") } else { ("written and not read", "") };
            assert_told(&told, cause, remedy);
        }
        fs::rename(folder.path().join(&file), folder.path().join("x.bin")).unwrap();
        for command in commands("x.bin") {
            assert_told(&refused(folder.path(), &command), "can't be ", "");
        }
    }
}

#[test]
fn what_is_unknown_is_told_with_what_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let all: [(&[u8], &str, &str); 5] = [
        (
            b"\x01\x02\x03\x04\xff\xff",
            "begins with the bytes 01 02 03 04 ff ff, and is nothing that can be read",
            "nettrace (.nettrace; `Nettrace`)",
        ),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0", "a core dump of a process", "a debugger"),
        (b"PAGEDU64", "a dump of Windows' kernel", "procdump -ma"),
        (b"\x28\xb5\x2f\xfd\0\0", "compressed by zstd", "`zstd -d"),
        (b"{\"traceEvents\":[]}", "a trace of Chrome", "ui.perfetto.dev"),
    ];
    for (bytes, cause, remedy) in all {
        for bytes in [bytes.to_vec(), packed(bytes)] {
            for file in ["x.bin", "x.dmp"] {
                fs::write(folder.path().join(file), &bytes).unwrap();
                for command in commands(file) {
                    let told = refused(folder.path(), &command);
                    if file == "x.dmp" && cause.contains("nothing that can be read") {
                        assert_told(&told, "its ending is that of Windows' .dmp", "copy it again");
                    } else {
                        assert_told(&told, cause, remedy);
                    }
                    let is_known = !cause.contains("nothing that can be read");
                    assert!(
                        !is_known || told.contains("though its ending is that of") == (file == "x.dmp"),
                        "{told}"
                    );
                }
            }
        }
    }
}

/// What is called by its content is called so in the list, too.
#[test]
fn all_that_is_read_is_named_where_nothing_is_known() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.bin"), b"\x01\x02\x03").unwrap();
    for command in commands("x.bin") {
        let told = refused(folder.path(), &command);
        for Reader { called, ending, is_reported, .. } in readers() {
            let is_named = told.contains(&format!(" {called} (")) && told.contains(ending);
            assert_eq!(is_named, is_reported || command[0] == "convert", "{called}: {told}");
        }
    }
}
