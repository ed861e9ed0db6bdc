//! Dumps that Wine's `MiniDumpWriteDump` writes of `windows_dump.c`: each thread has the chain of the source.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::{Object as _, ObjectSymbol as _};
use tempfile::TempDir;

use crate::prerequisites::{find, skip};
use crate::read::import;
use crate::windows::{COMPILER, Wine};

/// Where Windows has threads begin.
const BEGIN: [&str; 2] = ["RtlUserThreadStart", "BaseThreadInitThunk"];

/// What waits in `windows_dump.c`, outermost first.
const WORKER: &[&str] = &["worker", "keeper", "roomy", "wait_here"];

/// What has the dump written by another process, and what reads from address 8.
const MAIN: [(&str, &[&str]); 2] = [
    ("other", &["main", "first", "second", "at_end", "ask_other"]),
    ("fault", &["main", "first", "second", "at_end", "read_here"]),
];

/// `MINIDUMP_TYPE`: `MiniDumpNormal`, `MiniDumpWithFullMemory`.
const KINDS: [&str; 2] = ["0", "2"];

struct Written {
    folder: TempDir,
    wine: Wine,
}

impl Written {
    fn new(test: &str) -> Option<Self> {
        if find(COMPILER).is_none() {
            skip(test, &format!("{COMPILER} is not on PATH"));
            return None;
        }
        let wine = Wine::find(test)?;
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/windows_dump.c");
        let mut compiler = Command::new(COMPILER);
        compiler.args(["-O2", "-fomit-frame-pointer", "-o"]).arg(folder.path().join("windows_dump.exe"));
        assert!(compiler.arg(source).arg("-ldbghelp").status().unwrap().success());
        Some(Self { folder, wine })
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("windows_dump.exe")
    }

    /// Has the program write a dump of itself.
    fn dump(&self, kind: &str, how: &str) -> PathBuf {
        let path = self.folder.path().join(format!("{kind}_{how}.dmp"));
        let mut command = Command::new(&self.wine.program);
        command.arg(self.program()).arg(path.file_name().unwrap()).args([kind, how]);
        self.wine.around(command.current_dir(self.folder.path()).stdin(Stdio::null()));
        assert!(command.status().unwrap().success(), "{kind} {how}");
        path
    }
}

/// A run of the program under test; what it wrote on both streams.
fn collector(args: &[&str], dump: &Path, prefix: &Path) -> [String; 2] {
    let mut command = Command::new(env!("CARGO_BIN_EXE_collector"));
    command
        .args(&args[..1])
        .arg(dump)
        .args(&args[1..])
        .env("WINEPREFIX", prefix)
        .env_remove("_NT_SYMBOL_PATH");
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{text:?}");
    text
}

/// The frames of each line of folded stacks, outermost first, without the thread's name.
fn stacks(folded: &str) -> Vec<Vec<&str>> {
    let lines = folded.lines().map(|line| line.strip_suffix(" 1").unwrap());
    lines.map(|line| line.split(';').skip(1).collect()).collect()
}

#[test]
fn threads_have_the_chains_of_the_source() {
    let Some(written) = Written::new("threads_have_the_chains_of_the_source") else { return };
    for (how, main) in MAIN {
        for kind in KINDS {
            let dump = written.dump(kind, how);
            let args = ["convert", "--format", "folded", "-o", "-"];
            let [folded, told] = collector(&args, &dump, &written.wine.prefix);
            assert!(!told.contains("warning"), "{told}");
            let stacks = stacks(&folded);
            assert_eq!(stacks.len(), 2, "{folded}");
            for chain in [main, WORKER] {
                // Behind where threads begin main has what GCC's start-up code calls it by, and a thread nothing.
                let is_of_chain = |stack: &&Vec<&str>| stack.starts_with(&BEGIN) && stack.contains(&chain[0]);
                let stack = stacks.iter().find(is_of_chain).unwrap();
                let from = stack.iter().position(|frame| frame == &chain[0]).unwrap();
                assert_eq!(stack[from..from + chain.len()], *chain, "{folded}");
                let behind = &stack[from + chain.len()..];
                let waits = ["wait_here", "ask_other"].contains(chain.last().unwrap());
                assert_eq!(behind.first(), waits.then_some(&"WaitForSingleObject"), "{folded}");
                assert_eq!(behind.last().is_some_and(|last| last.contains("WaitFor")), waits, "{folded}");
            }
            if how == "fault" {
                let [jsonl, _] =
                    collector(&["convert", "--format", "jsonl", "-o", "-"], &dump, &written.wine.prefix);
                // The access violation's number; where it happened is in the function whose name is there.
                let line = jsonl
                    .lines()
                    .find(|line| line.contains(r#""exception":"0xc0000005 at 0x14000"#))
                    .unwrap();
                assert!(line.contains(r#""stack":["read_here","at_end""#), "{line}");
            }
            let [report, _] = collector(&["report"], &dump, &written.wine.prefix);
            assert!(report.contains(main.last().unwrap()) || report.contains("NtWaitFor"), "{report}");
            fs::remove_file(dump).unwrap();
        }
    }
}

/// Neither the program nor Wine's libraries are there: of a dump with all memory, the images are in it. Functions are named by another reader of
/// the program, which the converter has not seen.
#[test]
fn a_dump_with_all_memory_needs_no_files() {
    let Some(written) = Written::new("a_dump_with_all_memory_needs_no_files") else { return };
    let dump = written.dump("2", "other");
    let bytes = fs::read(written.program()).unwrap();
    fs::remove_file(written.program()).unwrap();
    let image = object::File::parse(&*bytes).unwrap();
    let symbols = image.symbol_map();
    let base = image.relative_address_base();
    let name = |frame: &str| -> Option<String> {
        let address = u64::from_str_radix(frame.strip_prefix("windows_dump.exe+0x")?, 16).ok()?;
        Some(symbols.before(base + address)?.name().to_owned())
    };
    let args = ["convert", "--format", "folded", "-o", "-"];
    let [folded, told] = collector(&args, &dump, &written.folder.path().join("none"));
    assert!(!told.contains("stack cut") && !told.contains("images on stacks are not here"), "{told}");
    let named: BTreeSet<Vec<String>> =
        stacks(&folded).iter().map(|stack| stack.iter().filter_map(|frame| name(frame)).collect()).collect();
    let main = [&["mainCRTStartup", "__tmainCRTStartup"], MAIN[0].1].concat();
    assert_eq!(
        named,
        [&main[..], WORKER].map(|chain| chain.iter().map(|it| (*it).to_owned()).collect()).into()
    );
    assert!(stacks(&folded).iter().all(|stack| stack.starts_with(&BEGIN)), "{folded}");
    assert!(image.symbols().any(|symbol| symbol.name() == Ok("keeper")));
}

#[test]
fn a_dump_of_wine_may_be_cut_and_spoilt() {
    let Some(written) = Written::new("a_dump_of_wine_may_be_cut_and_spoilt") else { return };
    let whole = fs::read(written.dump("0", "fault")).unwrap();
    assert_eq!(import(&whole, None).unwrap().machine.samples().len(), 2);
    for at in (0..whole.len()).step_by(whole.len() / 200) {
        let cut = import(&whole[..at], None);
        assert!(
            cut.as_ref().err().is_none_or(|error| error.to_string().contains("byte") || at < 32),
            "{cut:?}"
        );
    }
    // Headers, lists and contexts are in the first 8 KiB.
    for at in (0..8192).step_by(13) {
        let mut spoilt = whole.clone();
        spoilt[at] ^= 0xff;
        let _ = import(&spoilt, None);
    }
}
