//! `cargo xtask fixtures`: saved samples of real programs, and what a witness says their stacks are.
//!
//! In: names of programs, or none for all; `xtask/fixtures/` has their sources. Out: `target/fixtures/NAME.gz`, whose
//! format `sample.py` describes, and the files that were mapped, in the folder `files` beside it. Programs for aarch64 have
//! `aarch64/` before their names, and an emulator runs them; those for 32-bit x86 have `x86/`. The replay test and the
//! bench of the unwinder read them. With `--commit` also the part of them that is in the repository:
//! `unwinder/tests/replay/corpus`.

mod programs;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::setup::{self, Verb};
use crate::toolchain;
use crate::workspace::Workspace;
use programs::{PROGRAMS, Program, Source};

/// Debian's interpreter, which is an ELF file; one on PATH may be a script that starts another.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// Where programs for 32-bit x86 find their interpreter and libraries.
const X86_LIBRARIES: [&str; 2] = [
    "-Wl,--dynamic-linker=/usr/i686-linux-gnu/lib/ld-linux.so.2",
    "-Wl,--disable-new-dtags,-rpath,/usr/i686-linux-gnu/lib",
];

/// Samples the programs of these names, or all.
pub(crate) fn fixtures(workspace: &Workspace, names: &[String], commit: bool) -> Result<()> {
    for name in names {
        let known = PROGRAMS.map(|program| program.name);
        anyhow::ensure!(
            known.contains(&name.as_str()),
            "no fixture `{name}`; there are {}",
            known.join(", ")
        );
    }
    setup::setup(workspace, Verb::Fixtures)?;
    let studio = Studio {
        sources: workspace.join("xtask/fixtures"),
        folder: workspace.join("target/fixtures"),
        programs: env::temp_dir().join("collector-fixtures"),
    };
    for program in
        PROGRAMS.iter().filter(|program| names.is_empty() || names.iter().any(|n| n == program.name))
    {
        studio.sample(program).with_context(|| format!("fixture `{}` can't be made", program.name))?;
    }
    if commit {
        studio.commit(&workspace.join("unwinder/tests/replay/corpus"))?;
    }
    Ok(())
}

/// Where fixtures are made.
struct Studio {
    sources: PathBuf,
    folder: PathBuf,
    /// What is run. Stacks hold the paths of programs, and samples of them are published: no checkout's path is in it.
    programs: PathBuf,
}

impl Studio {
    fn sample(&self, program: &Program) -> Result<()> {
        let files = self.folder.join(program.name).with_file_name("files");
        for folder in [Some(&*files), self.programs.join(program.name).parent()].into_iter().flatten() {
            fs::create_dir_all(folder).with_context(|| format!("{} can't be made", folder.display()))?;
        }
        let command = self.build(program)?;
        let plan = program.plan(&command, &self.folder);
        let mut gdb =
            toolchain::undisturbed(if program.emulator.is_some() { "gdb-multiarch" } else { "gdb" });
        gdb.args(["-batch", "-nx", "-x"]).arg(self.sources.join("sample.py"));
        // Programs write what they like to the folder that they run in.
        gdb.env("SAMPLE", plan).current_dir(&self.programs);
        let printed = command::output(&mut gdb)?;
        let last = printed.lines().last().unwrap_or_default();
        anyhow::ensure!(!last.starts_with('0'), "gdb took no sample; it said:\n{printed}");
        eprintln!("{}: {last}", program.name);
        Ok(())
    }

    /// Compiles a program, where it must be, and says how it is started.
    fn build(&self, program: &Program) -> Result<Vec<String>> {
        let source = |name: &str| self.sources.join("programs").join(name);
        let binary = self.programs.join(program.name);
        let built = |mut compiler: Command, source: PathBuf| {
            command::output(compiler.arg("-o").arg(&binary).arg(source))?;
            Ok(vec![text(&binary)])
        };
        match program.source {
            Source::C { compiler, file, flags } => {
                let mut command = toolchain::undisturbed(compiler);
                command.args(["-O2", "-fomit-frame-pointer", "-pthread", "-g", "-w"]).args(flags);
                if compiler.starts_with("i686") {
                    command.args(X86_LIBRARIES);
                }
                built(command, source(file))
            }
            Source::Rust(file) => {
                let mut command = Command::new("rustc");
                command.args(["--edition", "2024", "-O", "-C", "strip=debuginfo"]);
                built(command, source(file))
            }
            Source::Go(file) => {
                let mut command = toolchain::undisturbed("go");
                command.arg("build").env("GOCACHE", self.folder.join("go-cache")).env("GO111MODULE", "off");
                built(command, source(file))
            }
            Source::Java { file, class, options } => {
                command::output(
                    toolchain::undisturbed("javac").arg("-d").arg(&self.programs).arg(source(file)),
                )?;
                let mut line = vec![elf("java")?];
                line.extend(options.iter().map(|&option| option.to_owned()));
                line.extend(["-cp".to_owned(), text(&self.programs), class.to_owned()]);
                Ok(line)
            }
            Source::Script { interpreter, options, file } => {
                let script = self.programs.join(file);
                fs::copy(source(file), &script)
                    .with_context(|| format!("{} can't be written", script.display()))?;
                let mut line = vec![elf(interpreter)?];
                line.extend(options.iter().map(|&option| option.to_owned()));
                line.push(text(&script));
                Ok(line)
            }
            Source::Installed { program, arguments, input } => {
                if let Some(input) = input {
                    let mut script = Command::new("/bin/sh");
                    script.arg("-e").arg(source(input)).arg(source("")).current_dir(&self.programs);
                    command::run(&mut script)?;
                }
                let mut line = vec![elf(program)?];
                line.extend(arguments.iter().map(|&argument| argument.to_owned()));
                Ok(line)
            }
        }
    }

    /// The committed part: some samples of some programs, and of the files only what their walks can need.
    fn commit(&self, corpus: &Path) -> Result<()> {
        let mut shrink = Command::new(PYTHON);
        shrink.arg(self.sources.join("shrink.py")).args([&self.folder, corpus]);
        for program in PROGRAMS.iter().filter(|program| program.committed > 0) {
            shrink.arg(format!("{}={}", program.name, program.committed));
        }
        command::run(&mut shrink)
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn elf(program: &str) -> Result<String> {
    let found = if program.starts_with('/') { Some(program.into()) } else { command::find_program(program) };
    let path = found.with_context(|| format!("{program} is not on PATH"))?;
    Ok(text(&path.canonicalize().with_context(|| format!("{} can't be followed", path.display()))?))
}
