//! Files that a command will have mapped when it runs its first instruction: its program, what executes that, and the libraries that
//! those name. As far as it can be told before: more than will be, rather than less.
//!
//! In: a command line, and the environment that it will have. Out: open files. Sources: `execve(2)`; `ld.so(8)`; `struct cache_file_new` of
//! `sysdeps/generic/dl-cache.h` of glibc.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, ReadRef};
use rustc_hash::FxHashMap;

use crate::modules::BoundedFile;

/// Files that are looked for at most.
const MOST_FILES: usize = 512;

/// Words of the command that are looked at.
const MOST_WORDS: usize = 64;

/// Bytes that are read of a file: headers, and names.
const MOST_BYTES: u64 = 16 << 20;

/// Bytes of a script's first line: `BINPRM_BUF_SIZE` of `include/uapi/linux/binfmts.h`.
const FIRST_LINE: u64 = 256;

/// Where the dynamic linkers of glibc and musl look, on the systems that there are.
const FOLDERS: [&str; 5] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"];

/// Where glibc's has a list of libraries.
const CACHE: &str = "/etc/ld.so.cache";

/// The files of a command. Words that name a program are taken for commands, too: one may be given to another (`env`, `nice`).
pub(super) fn files_of(words: &[OsString]) -> Vec<File> {
    let mut search = Search::new();
    let listed = fs::read("/etc/ld.so.preload").unwrap_or_default();
    let preloaded = env::var_os("LD_PRELOAD").unwrap_or_default();
    for names in [listed.as_slice(), preloaded.as_bytes()] {
        search.add_preloaded(names);
    }
    for (index, word) in words.iter().enumerate().take(MOST_WORDS) {
        if let Some(names) = word.as_bytes().strip_prefix(b"LD_PRELOAD=") {
            search.add_preloaded(names);
        } else if let Some(path) = program_of(word, index == 0) {
            search.waiting.push(path);
        }
    }
    search.run()
}

/// The file that is executed by a name. A word that need not name a program does only if it may be executed.
fn program_of(word: &OsStr, is_command: bool) -> Option<PathBuf> {
    let may_be_executed = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if word.is_empty() {
        return None;
    }
    if word.as_bytes().contains(&b'/') {
        let path = PathBuf::from(word);
        return Some(path).filter(|path| is_command || may_be_executed(path));
    }
    let folders = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    env::split_paths(&folders).map(|folder| folder.join(word)).find(may_be_executed)
}

struct Search {
    /// Where libraries are looked for.
    folders: Vec<PathBuf>,
    cache: FxHashMap<Vec<u8>, Vec<PathBuf>>,
    waiting: Vec<PathBuf>,
    /// Devices and inodes.
    known: BTreeSet<(u64, u64)>,
    found: Vec<File>,
}

impl Search {
    fn new() -> Self {
        let of_machine =
            ["/lib", "/usr/lib"].map(|folder| format!("{folder}/{}-linux-gnu", env::consts::ARCH));
        let named = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let named = named.as_bytes().split(|byte| b":;".contains(byte)).filter(|name| !name.is_empty());
        let folders = named.map(|name| PathBuf::from(OsStr::from_bytes(name)));
        let folders = folders.chain(FOLDERS.map(PathBuf::from)).chain(of_machine.map(PathBuf::from));
        Self {
            folders: folders.collect(),
            cache: cached(&fs::read(CACHE).unwrap_or_default()).unwrap_or_default(),
            waiting: Vec::new(),
            known: BTreeSet::new(),
            found: Vec::new(),
        }
    }

    fn run(mut self) -> Vec<File> {
        while let Some(path) = self.waiting.pop().filter(|_| self.found.len() < MOST_FILES) {
            // Not to wait for who writes to a pipe of that name.
            let is_file = fs::metadata(&path).is_ok_and(|data| data.is_file());
            let Some(file) = is_file.then(|| File::open(&path).ok()).flatten() else { continue };
            let Ok(data) = file.metadata() else { continue };
            if !self.known.insert((data.dev(), data.ino())) {
                continue;
            }
            if !self.add_interpreter(&file) {
                self.add_needed(&file, &path);
            }
            self.found.push(file);
        }
        self.found
    }

    /// What executes a script: what its first line names, which may be given the name of another program (`env`).
    fn add_interpreter(&mut self, file: &File) -> bool {
        let mut first = Vec::new();
        let is_read = file.take(FIRST_LINE).read_to_end(&mut first).is_ok();
        let Some(rest) = first.strip_prefix(b"#!").filter(|_| is_read) else { return false };
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        for word in line.split(u8::is_ascii_whitespace) {
            self.waiting.extend(program_of(OsStr::from_bytes(word), false));
        }
        true
    }

    /// The libraries that a program or a library names, and the linker.
    fn add_needed(&mut self, file: &File, path: &Path) {
        let Ok(copy) = file.try_clone() else { return };
        let bounded = BoundedFile::new(copy, MOST_BYTES);
        let needs = needs_of(&bounded).unwrap_or_default();
        self.waiting.extend(needs.linker.map(|path| PathBuf::from(OsStr::from_bytes(path))));
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let origin = real.parent().map(Path::to_owned).unwrap_or_default();
        for folder in needs.folders {
            let folder = in_origin(folder, &origin);
            if !self.folders.contains(&folder) {
                self.folders.push(folder);
            }
        }
        needs.libraries.into_iter().for_each(|name| self.add_library(name));
    }

    fn add_preloaded(&mut self, names: &[u8]) {
        let names = names.split(|byte| *byte == b':' || byte.is_ascii_whitespace());
        names.filter(|name| !name.is_empty()).for_each(|name| self.add_library(name));
    }

    /// All that a name may stand for: which one it is depends on the machine's abilities, and on who asks.
    fn add_library(&mut self, name: &[u8]) {
        if name.contains(&b'/') {
            self.waiting.push(PathBuf::from(OsStr::from_bytes(name)));
            return;
        }
        let in_folders = self.folders.iter().map(|folder| folder.join(OsStr::from_bytes(name)));
        self.waiting.extend(in_folders);
        self.waiting.extend(self.cache.get(name).into_iter().flatten().cloned());
    }
}

/// A folder that a file names, where `$ORIGIN` is the file's own.
fn in_origin(folder: &[u8], origin: &Path) -> PathBuf {
    let rest = [&b"$ORIGIN"[..], b"${ORIGIN}"].into_iter().find_map(|name| folder.strip_prefix(name));
    match rest {
        Some(rest) => {
            let mut path = origin.as_os_str().to_owned();
            path.push(OsStr::from_bytes(rest));
            path.into()
        }
        None => OsStr::from_bytes(folder).into(),
    }
}

/// What an ELF file names.
#[derive(Default)]
struct Needs<'d> {
    linker: Option<&'d [u8]>,
    libraries: Vec<&'d [u8]>,
    /// Where it has them looked for.
    folders: Vec<&'d [u8]>,
}

/// `None` for what is no ELF file of 64 bits.
fn needs_of<'d, R: ReadRef<'d>>(data: R) -> Option<Needs<'d>> {
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let mut segments = header.program_headers(endian, data).ok()?.iter();
    let linker = segments.find_map(|segment| segment.interpreter(endian, data).ok().flatten());
    let mut needs = Needs { linker, ..Needs::default() };
    let sections = header.sections(endian, data).ok()?;
    let dynamic = sections.dynamic_table(endian, data).ok()?;
    for entry in &dynamic {
        let list = match entry.tag {
            elf::DT_NEEDED => &mut needs.libraries,
            elf::DT_RPATH | elf::DT_RUNPATH => &mut needs.folders,
            _ => continue,
        };
        let text = dynamic.string(entry).unwrap_or_default();
        let is_list = entry.tag != elf::DT_NEEDED;
        list.extend(text.split(|byte| is_list && *byte == b':').filter(|part| !part.is_empty()));
    }
    Some(needs)
}

/// Paths of libraries by their names. A list of the older form may lie before that of this one, whose offsets begin with it.
fn cached(bytes: &[u8]) -> Option<FxHashMap<Vec<u8>, Vec<PathBuf>>> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEADER: usize = 48;
    const ENTRY: usize = 24;
    let start = bytes.windows(MAGIC.len()).position(|window| window == MAGIC)?;
    let bytes = &bytes[start..];
    let word =
        |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?) as usize);
    let text = |at: usize| bytes.get(at..)?.split(|byte| *byte == 0).next();
    let mut paths: FxHashMap<Vec<u8>, Vec<PathBuf>> = FxHashMap::default();
    for index in 0..word(MAGIC.len())? {
        let at = HEADER.checked_add(index.checked_mul(ENTRY)?)?;
        let (name, path) = (text(word(at + 4)?)?, text(word(at + 8)?)?);
        paths.entry(name.to_owned()).or_default().push(OsStr::from_bytes(path).into());
    }
    Some(paths)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn compile(folder: &Path, name: &str, source: &str, options: &[&str]) {
        let from = folder.join(format!("{name}.c"));
        fs::write(&from, source).unwrap();
        let mut compiler = Command::new("gcc");
        let status = compiler.arg("-o").arg(folder.join(name)).arg(&from).args(options).current_dir(folder);
        assert!(status.status().unwrap().success());
    }

    fn has(files: &[File], path: &Path) -> bool {
        let wanted = fs::metadata(path).unwrap();
        let data = files.iter().map(|file| file.metadata().unwrap());
        data.into_iter().any(|data| (data.dev(), data.ino()) == (wanted.dev(), wanted.ino()))
    }

    #[test]
    fn a_command_has_its_libraries_and_what_executes_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("lib")).unwrap();
        compile(folder.path(), "lib/inner.so", "void inner(void) {}", &["-shared", "-fPIC"]);
        let of_inner = "void inner(void); void outer(void) { inner(); }";
        compile(folder.path(), "lib/outer.so", of_inner, &["-shared", "-fPIC", "-Llib", "-l:inner.so"]);
        compile(folder.path(), "extra.so", "void extra(void) {}", &["-shared", "-fPIC"]);
        // `DT_RPATH` holds for the libraries of libraries, too.
        let options =
            ["-Llib", "-l:outer.so", "-Wl,-rpath=/none:$ORIGIN/lib,--disable-new-dtags,-rpath-link=lib"];
        compile(folder.path(), "program", "void outer(void); int main(void) { outer(); }", &options);
        let script = at("script");
        fs::write(&script, format!("#!/usr/bin/env {}\n", at("program").display())).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let preload = format!("LD_PRELOAD={}", at("extra.so").display());
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let own = |name: &str| {
            let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
            paths.into_iter().find(|path| path.contains(name)).map(PathBuf::from)
        };
        for words in [
            vec![at("program").into_os_string()],
            vec![script.into_os_string()],
            ["nice", "env", &preload, at("program").to_str().unwrap()].map(OsString::from).to_vec(),
        ] {
            let files = files_of(&words);
            for name in ["program", "lib/outer.so", "lib/inner.so"] {
                assert!(has(&files, &at(name)), "{words:?}: {name}");
            }
            assert_eq!(
                has(&files, &at("extra.so")),
                words.len() > 1 && words.contains(&preload.clone().into())
            );
            // Of this process, which the same linker put together.
            for path in ["/libc.so", "/ld-linux"].into_iter().filter_map(own) {
                assert!(has(&files, &path), "{words:?}: {}", path.display());
            }
        }
    }

    #[test]
    fn what_names_nothing_has_none() {
        assert!(files_of(&[]).is_empty());
        assert!(files_of(&["/no/such/program".into()]).is_empty());
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("noise"), vec![0x7f; 4096]).unwrap();
        assert_eq!(files_of(&[folder.path().join("noise").into()]).len(), 1);
        for cut in 0..64 {
            let noise = [b"glibc-ld.so.cache1.1", &[0xff; 64][..cut]].concat();
            assert!(cached(&noise).is_none());
        }
    }
}
