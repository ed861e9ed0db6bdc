//! What the tasks need from the machine, and how to tell that it is there.
//!
//! Out: for each need a list of requirements, each with its check (a file, or a program whatever package it is
//! from), its Debian packages, and the command for other systems.

use std::path::Path;
use std::process::Command;

use super::Need;
use crate::command;
use crate::fixtures;
use crate::toolchain::{self, CrossTarget, CrossToolchain};
use crate::vm;
use crate::windows;

/// One thing a machine must have.
pub(super) struct Requirement {
    /// As shown to a person.
    pub(super) name: &'static str,
    check: Check,
    /// Debian 12 packages that bring it.
    pub(super) debian: &'static [&'static str],
    /// How another system gets it.
    pub(super) elsewhere: Elsewhere,
}

/// What brings a requirement on a system that is not Debian 12.
#[derive(Clone, Copy)]
pub(super) enum Elsewhere {
    /// This command, whatever the system.
    Command(&'static str),
    /// A package: by apt-get it has Debian's name.
    Package { dnf: &'static str, pacman: &'static str },
}

/// How to tell whether a requirement is met.
enum Check {
    /// A file or folder of this path exists.
    File(&'static str),
    /// A program of this name is on PATH.
    Program(&'static str),
    /// A program on PATH whose `--version` prints at least this major version.
    Version(&'static str, u32),
    /// The system's Python imports a module of this name.
    Module(&'static str),
    /// The system's linker finds libraries of these names.
    Libraries(&'static [&'static str]),
}

impl Requirement {
    pub(super) fn is_met(&self) -> bool {
        match self.check {
            Check::File(path) => Path::new(path).exists(),
            Check::Program(name) => command::find_program(name).is_some(),
            Check::Libraries(names) => {
                let of_machine = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
                let folders = [of_machine.as_str(), "/usr/lib64", "/usr/lib"];
                let is_there = |name| folders.iter().any(|folder| Path::new(folder).join(name).exists());
                names.iter().all(is_there)
            }
            Check::Version(name, least) => major_version(name).is_some_and(|major| major >= least),
            Check::Module(name) => {
                let import = format!("import {name}");
                command::output(Command::new(fixtures::PYTHON).args(["-I", "-c", &import])).is_ok()
            }
        }
    }
}

/// All requirements of `need`. A C compiler is in each group that links: a machine got here by way of one, but
/// cargo may have been built elsewhere.
pub(super) fn of(need: Need) -> Vec<Requirement> {
    match need {
        Need::Bpf => vec![c_compiler(), bpf_rustc(), bpf_core(), llvm(), polly()],
        Need::Windows => vec![c_compiler(), standard_library_source(WINDOWS), debian_cargo(WINDOWS), mingw()],
        Need::Wine => vec![wine()],
        Need::Aarch64 => {
            let mut needed = vec![aarch64_c(), aarch64_cxx(), aarch64_emulator()];
            if CrossToolchain::detect(CrossTarget::AARCH64).is_none() {
                needed.extend([bpf_rustc(), standard_library_source(AARCH64), debian_cargo(AARCH64)]);
            }
            needed
        }
        Need::Tests => {
            let native = [
                c_compiler(),
                cxx_compiler(),
                clang(),
                binutils(),
                symbolizer(),
                dwz(),
                xz(),
                zstd(),
                perf(),
                go(),
            ];
            native
                .into_iter()
                .chain([i686_c(), i686_cxx(), mingw(), lld(), llvm_tools(), debuginfod()])
                .chain([node(), java(), python(), jq(), allocators()])
                .collect()
        }
        Need::Browser => vec![chromium(), node(), npm()],
        Need::Readers => vec![python(), python_venv()],
        Need::Lints => vec![bpf_clippy()],
        Need::Fixtures => {
            let native = [gdb(), musl(), openssl(), python(), node(), java(), git(), sqlite()];
            native
                .into_iter()
                .chain([gdb_multiarch(), aarch64_c(), aarch64_cxx(), aarch64_emulator()])
                .collect()
        }
        Need::DotNet => vec![mono_mcs()],
        Need::Vm => vec![apt(), archive_keys(), busybox(), machine_emulator(), xz()],
        Need::KernelBuild => {
            vec![c_compiler(), make(), flex(), bison(), calculator(), elf_library(), btf_writer(), xz()]
        }
    }
}

const NIGHTLY: Elsewhere = Elsewhere::Command("rustup toolchain install nightly --component rust-src");
const AARCH64: Elsewhere = Elsewhere::Command("rustup target add aarch64-unknown-linux-gnu");
const WINDOWS: Elsewhere = Elsewhere::Command("rustup target add x86_64-pc-windows-gnu");
const I686: Elsewhere = Elsewhere::Command(
    "# install gcc and g++ for i686-linux-gnu, with the libraries of their programs in /usr/i686-linux-gnu/lib",
);
const LLVM: Elsewhere = Elsewhere::Package { dnf: "llvm-devel", pacman: "llvm" };

fn c_compiler() -> Requirement {
    Requirement {
        name: "a C compiler",
        check: Check::Program("cc"),
        debian: &["gcc", "libc6-dev"],
        elsewhere: Elsewhere::Package { dnf: "gcc", pacman: "gcc" },
    }
}

fn cxx_compiler() -> Requirement {
    Requirement {
        name: "a C++ compiler",
        check: Check::Program("g++"),
        debian: &["g++"],
        elsewhere: Elsewhere::Package { dnf: "gcc-c++", pacman: "gcc" },
    }
}

fn bpf_rustc() -> Requirement {
    Requirement {
        name: "a Rust compiler for BPF",
        check: Check::File(toolchain::DEBIAN_RUSTC),
        debian: &["rustc-web"],
        elsewhere: NIGHTLY,
    }
}

fn bpf_core() -> Requirement {
    Requirement {
        name: "Rust's core library for BPF",
        check: Check::File(toolchain::DEBIAN_BPF_CORE),
        debian: &["rustc-web", "libstd-rust-web-dev-bpf"],
        elsewhere: NIGHTLY,
    }
}

fn bpf_clippy() -> Requirement {
    Requirement {
        name: "clippy for BPF",
        check: Check::File(toolchain::DEBIAN_CLIPPY),
        debian: &["rust-web-clippy"],
        elsewhere: Elsewhere::Command("rustup component add clippy --toolchain nightly"),
    }
}

fn llvm() -> Requirement {
    Requirement {
        name: "LLVM 22",
        check: Check::File("/usr/lib/llvm-22/bin/llvm-config"),
        debian: &["llvm-22-dev"],
        elsewhere: LLVM,
    }
}

fn polly() -> Requirement {
    Requirement {
        name: "Polly 22",
        check: Check::File("/usr/lib/llvm-22/lib/libPolly.a"),
        debian: &["libpolly-22-dev"],
        elsewhere: LLVM,
    }
}

fn standard_library_source(elsewhere: Elsewhere) -> Requirement {
    Requirement {
        name: "the sources of Rust's standard library",
        check: Check::File(toolchain::DEBIAN_STD_SOURCE),
        debian: &["rust-web-src"],
        elsewhere,
    }
}

fn debian_cargo(elsewhere: Elsewhere) -> Requirement {
    Requirement {
        name: "a cargo of the compiler's version",
        check: Check::File(toolchain::DEBIAN_CARGO),
        debian: &["cargo-web"],
        elsewhere,
    }
}

fn mingw() -> Requirement {
    Requirement {
        name: "a linker for Windows",
        check: Check::Program("x86_64-w64-mingw32-gcc"),
        debian: &["gcc-mingw-w64-x86-64"],
        elsewhere: Elsewhere::Package { dnf: "mingw64-gcc", pacman: "mingw-w64-gcc" },
    }
}

fn wine() -> Requirement {
    Requirement {
        name: "Wine for 64-bit programs",
        check: Check::File(windows::DEBIAN_WINE),
        debian: &["wine64"],
        elsewhere: Elsewhere::Package { dnf: "wine-core", pacman: "wine" },
    }
}

fn clang() -> Requirement {
    Requirement {
        name: "clang 22",
        check: Check::Program("clang-22"),
        debian: &["clang-22"],
        elsewhere: Elsewhere::Package { dnf: "clang", pacman: "clang" },
    }
}

fn lld() -> Requirement {
    Requirement {
        name: "LLVM's linker for Windows",
        check: Check::Program("lld-link-22"),
        debian: &["lld-22"],
        elsewhere: Elsewhere::Package { dnf: "lld", pacman: "lld" },
    }
}

fn llvm_tools() -> Requirement {
    Requirement {
        name: "LLVM's readers of Windows' files",
        check: Check::Program("llvm-symbolizer-22"),
        debian: &["llvm-22"],
        elsewhere: Elsewhere::Package { dnf: "llvm", pacman: "llvm" },
    }
}

fn binutils() -> Requirement {
    Requirement {
        name: "binutils",
        check: Check::Program("objcopy"),
        debian: &["binutils"],
        elsewhere: Elsewhere::Package { dnf: "binutils", pacman: "binutils" },
    }
}

fn debuginfod() -> Requirement {
    Requirement {
        name: "debuginfod and its client",
        check: Check::Program("debuginfod-find"),
        debian: &["debuginfod"],
        elsewhere: Elsewhere::Package { dnf: "elfutils-debuginfod", pacman: "debuginfod" },
    }
}

fn symbolizer() -> Requirement {
    Requirement {
        name: "llvm-symbolizer and llvm-dwp",
        check: Check::Program("llvm-symbolizer"),
        debian: &["llvm"],
        elsewhere: Elsewhere::Package { dnf: "llvm", pacman: "llvm" },
    }
}

fn dwz() -> Requirement {
    Requirement {
        name: "dwz",
        check: Check::Program("dwz"),
        debian: &["dwz"],
        elsewhere: Elsewhere::Package { dnf: "dwz", pacman: "dwz" },
    }
}

fn xz() -> Requirement {
    Requirement {
        name: "xz",
        check: Check::Program("xz"),
        debian: &["xz-utils"],
        elsewhere: Elsewhere::Package { dnf: "xz", pacman: "xz" },
    }
}

fn zstd() -> Requirement {
    Requirement {
        name: "zstd",
        check: Check::Program("zstd"),
        debian: &["zstd"],
        elsewhere: Elsewhere::Package { dnf: "zstd", pacman: "zstd" },
    }
}

fn perf() -> Requirement {
    Requirement {
        name: "perf",
        check: Check::Program("perf"),
        debian: &["linux-perf"],
        elsewhere: Elsewhere::Package { dnf: "perf", pacman: "perf" },
    }
}

fn go() -> Requirement {
    Requirement {
        name: "go",
        check: Check::Program("go"),
        debian: &["golang-go"],
        elsewhere: Elsewhere::Package { dnf: "golang", pacman: "go" },
    }
}

fn i686_c() -> Requirement {
    Requirement {
        name: "a C compiler for 32-bit x86",
        check: Check::File("/usr/i686-linux-gnu/lib/libc.so.6"),
        debian: &["gcc-i686-linux-gnu", "libc6-dev-i386-cross"],
        elsewhere: I686,
    }
}

fn i686_cxx() -> Requirement {
    Requirement {
        name: "a C++ compiler for 32-bit x86",
        check: Check::Program("i686-linux-gnu-g++"),
        debian: &["g++-i686-linux-gnu"],
        elsewhere: I686,
    }
}

fn aarch64_c() -> Requirement {
    Requirement {
        name: "a C compiler for aarch64",
        check: Check::File("/usr/aarch64-linux-gnu/lib/libc.so.6"),
        debian: &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
        elsewhere: Elsewhere::Package { dnf: "gcc-aarch64-linux-gnu", pacman: "aarch64-linux-gnu-gcc" },
    }
}

fn aarch64_cxx() -> Requirement {
    Requirement {
        name: "a C++ compiler for aarch64",
        check: Check::Program("aarch64-linux-gnu-g++"),
        debian: &["g++-aarch64-linux-gnu"],
        elsewhere: Elsewhere::Package { dnf: "gcc-c++-aarch64-linux-gnu", pacman: "aarch64-linux-gnu-gcc" },
    }
}

fn aarch64_emulator() -> Requirement {
    Requirement {
        name: "an emulator for aarch64 programs",
        check: Check::Program("qemu-aarch64-static"),
        debian: &["qemu-user-static"],
        elsewhere: Elsewhere::Package { dnf: "qemu-user-static", pacman: "qemu-user-static" },
    }
}

fn machine_emulator() -> Requirement {
    Requirement {
        name: "an emulator of x86-64 machines",
        check: Check::Program("qemu-system-x86_64"),
        debian: &["qemu-system-x86"],
        elsewhere: Elsewhere::Package { dnf: "qemu-system-x86-core", pacman: "qemu-system-x86" },
    }
}

fn busybox() -> Requirement {
    Requirement {
        name: "busybox, linked statically",
        check: Check::Program("busybox"),
        debian: &["busybox-static"],
        elsewhere: Elsewhere::Package { dnf: "busybox", pacman: "busybox" },
    }
}

fn apt() -> Requirement {
    Requirement {
        name: "apt, set to an archive of Debian",
        check: Check::Program("apt-get"),
        debian: &["apt"],
        elsewhere: Elsewhere::Package { dnf: "apt", pacman: "apt" },
    }
}

fn archive_keys() -> Requirement {
    Requirement {
        name: "the keys of Debian's archive",
        check: Check::File(vm::ARCHIVE_KEYS),
        debian: &["debian-archive-keyring"],
        elsewhere: Elsewhere::Package { dnf: "debian-keyring", pacman: "debian-archive-keyring" },
    }
}

fn make() -> Requirement {
    Requirement {
        name: "make",
        check: Check::Program("make"),
        debian: &["make"],
        elsewhere: Elsewhere::Package { dnf: "make", pacman: "make" },
    }
}

fn flex() -> Requirement {
    Requirement {
        name: "flex",
        check: Check::Program("flex"),
        debian: &["flex"],
        elsewhere: Elsewhere::Package { dnf: "flex", pacman: "flex" },
    }
}

fn bison() -> Requirement {
    Requirement {
        name: "bison",
        check: Check::Program("bison"),
        debian: &["bison"],
        elsewhere: Elsewhere::Package { dnf: "bison", pacman: "bison" },
    }
}

fn calculator() -> Requirement {
    Requirement {
        name: "bc",
        check: Check::Program("bc"),
        debian: &["bc"],
        elsewhere: Elsewhere::Package { dnf: "bc", pacman: "bc" },
    }
}

fn elf_library() -> Requirement {
    Requirement {
        name: "libelf to build with",
        check: Check::File("/usr/include/libelf.h"),
        debian: &["libelf-dev"],
        elsewhere: Elsewhere::Package { dnf: "elfutils-libelf-devel", pacman: "libelf" },
    }
}

fn btf_writer() -> Requirement {
    Requirement {
        name: "pahole",
        check: Check::Program("pahole"),
        debian: &["pahole"],
        elsewhere: Elsewhere::Package { dnf: "dwarves", pacman: "pahole" },
    }
}

fn chromium() -> Requirement {
    Requirement {
        name: "chromium",
        check: Check::Program("chromium"),
        debian: &["chromium"],
        elsewhere: Elsewhere::Package { dnf: "chromium", pacman: "chromium" },
    }
}

fn node() -> Requirement {
    Requirement {
        name: "node 18",
        check: Check::Version("node", 18),
        debian: &["nodejs"],
        elsewhere: Elsewhere::Package { dnf: "nodejs", pacman: "nodejs" },
    }
}

fn npm() -> Requirement {
    Requirement {
        name: "npm",
        check: Check::Program("npm"),
        debian: &["npm"],
        elsewhere: Elsewhere::Package { dnf: "nodejs-npm", pacman: "npm" },
    }
}

fn gdb() -> Requirement {
    Requirement {
        name: "gdb",
        check: Check::Program("gdb"),
        debian: &["gdb"],
        elsewhere: Elsewhere::Package { dnf: "gdb", pacman: "gdb" },
    }
}

fn gdb_multiarch() -> Requirement {
    Requirement {
        name: "gdb for aarch64",
        check: Check::Program("gdb-multiarch"),
        debian: &["gdb-multiarch"],
        elsewhere: Elsewhere::Command("# install a gdb that knows aarch64, by the name of gdb-multiarch"),
    }
}

fn musl() -> Requirement {
    Requirement {
        name: "musl's C compiler",
        check: Check::Program("musl-gcc"),
        debian: &["musl-tools"],
        elsewhere: Elsewhere::Package { dnf: "musl-gcc", pacman: "musl" },
    }
}

fn openssl() -> Requirement {
    Requirement {
        name: "openssl",
        check: Check::Program("openssl"),
        debian: &["openssl"],
        elsewhere: Elsewhere::Package { dnf: "openssl", pacman: "openssl" },
    }
}

fn python() -> Requirement {
    Requirement {
        name: "python3",
        check: Check::File(fixtures::PYTHON),
        debian: &["python3"],
        elsewhere: Elsewhere::Package { dnf: "python3", pacman: "python" },
    }
}

fn python_venv() -> Requirement {
    Requirement {
        name: "virtual environments of python3",
        // What Debian leaves out of its Python.
        check: Check::Module("ensurepip"),
        debian: &["python3-venv"],
        elsewhere: Elsewhere::Package { dnf: "python3", pacman: "python" },
    }
}

/// Those that programs are given instead of the C library's.
fn allocators() -> Requirement {
    Requirement {
        name: "jemalloc, tcmalloc and mimalloc",
        check: Check::Libraries(&["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"]),
        debian: &["libjemalloc2", "libtcmalloc-minimal4", "libmimalloc2.0"],
        elsewhere: Elsewhere::Package {
            dnf: "jemalloc gperftools-libs mimalloc",
            pacman: "jemalloc gperftools mimalloc",
        },
    }
}

fn mono_mcs() -> Requirement {
    Requirement {
        name: "a C# compiler",
        check: Check::Program("mcs"),
        debian: &["mono-mcs"],
        elsewhere: Elsewhere::Package { dnf: "mono-devel", pacman: "mono" },
    }
}

fn jq() -> Requirement {
    Requirement {
        name: "jq",
        check: Check::Program("jq"),
        debian: &["jq"],
        elsewhere: Elsewhere::Package { dnf: "jq", pacman: "jq" },
    }
}

fn git() -> Requirement {
    Requirement {
        name: "git",
        check: Check::File("/usr/bin/git"),
        debian: &["git"],
        elsewhere: Elsewhere::Package { dnf: "git", pacman: "git" },
    }
}

fn sqlite() -> Requirement {
    Requirement {
        name: "sqlite3",
        check: Check::Program("sqlite3"),
        debian: &["sqlite3"],
        elsewhere: Elsewhere::Package { dnf: "sqlite", pacman: "sqlite" },
    }
}

fn java() -> Requirement {
    Requirement {
        name: "javac",
        check: Check::Program("javac"),
        debian: &["openjdk-17-jdk-headless"],
        elsewhere: Elsewhere::Package { dnf: "java-17-openjdk-devel", pacman: "jdk17-openjdk" },
    }
}

/// The first number in what `program --version` prints, as in `v20.20.2`.
fn major_version(program: &str) -> Option<u32> {
    let text = command::output(Command::new(command::find_program(program)?).arg("--version")).ok()?;
    leading_number(&text)
}

fn leading_number(text: &str) -> Option<u32> {
    let digits = text.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_past_its_prefix() {
        assert_eq!(leading_number("v20.20.2\n"), Some(20));
        assert_eq!(leading_number("tool 9"), Some(9));
        assert_eq!(leading_number("none"), None);
    }

    #[test]
    fn a_check_can_fail_and_can_succeed() {
        let with = |check| Requirement { name: "", check, debian: &[], elsewhere: NIGHTLY }.is_met();
        assert!(with(Check::Program("sh")));
        assert!(!with(Check::Program("no-such-program-anywhere")));
        assert!(with(Check::File("/proc")));
        assert!(!with(Check::File("/proc/no-such-file")));
        assert!(!with(Check::Version("no-such-program-anywhere", 0)));
        assert!(!with(Check::Module("no_such_module_anywhere")));
    }
}
