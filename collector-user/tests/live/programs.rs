//! The programs under record. In: a source in `tests/programs`. Out: an executable file in a folder of the test's.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A folder for a test's files.
pub(crate) fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// What C and C++ programs are built with: without frame pointers.
const FLAGS: [&str; 2] = ["-O2", "-fomit-frame-pointer"];

/// A source in `tests/programs`.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Compiles `source` to the program `name` in `folder`, with the compiler of its ending.
pub(crate) fn compile(folder: &Path, name: &str, source_name: &str, options: &[&str]) -> PathBuf {
    let program = folder.join(name);
    let source = source(source_name);
    let (compiler, flags): (&str, &[&str]) = match source.extension().and_then(|ending| ending.to_str()) {
        Some("c") => ("gcc", &FLAGS),
        Some("cpp") => ("g++", &FLAGS),
        Some("rs") => ("rustc", &["-O", "--edition", "2024"]),
        other => panic!("no compiler for {other:?}"),
    };
    let mut compiler = Command::new(compiler);
    let output = compiler.args(flags).args(options).arg("-o").arg(&program).arg(source).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    program
}
