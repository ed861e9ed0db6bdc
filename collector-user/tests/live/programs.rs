//! The programs under record. In: a source in `tests/programs`. Out: an executable file in a folder of the test's.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use tempfile::TempDir;

/// A process that is ended with this.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

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
    link(compiler.args(flags).args(options).arg(source), &program);
    program
}

/// The compiler for 32-bit x86, which installs beside the machine's own.
pub(crate) const COMPAT_COMPILER: &str = "i686-linux-gnu-gcc";

/// Compiles the C source `source_name` to the 32-bit program `name` in `folder`.
pub(crate) fn compile_compat(folder: &Path, name: &str, source_name: &str, options: &[&str]) -> PathBuf {
    /// Its libraries need not be where those of the system are.
    const LIBRARIES: [&str; 2] =
        ["-Wl,--dynamic-linker=/usr/i686-linux-gnu/lib/ld-linux.so.2", "-Wl,-rpath,/usr/i686-linux-gnu/lib"];
    let program = folder.join(name);
    let mut compiler = Command::new(COMPAT_COMPILER);
    link(compiler.args(FLAGS).args(LIBRARIES).args(options).arg(source(source_name)), &program);
    program
}

fn link(compiler: &mut Command, program: &Path) {
    let output = compiler.arg("-o").arg(program).output().unwrap();
    assert!(output.status.success(), "{}: {}", program.display(), String::from_utf8_lossy(&output.stderr));
}
