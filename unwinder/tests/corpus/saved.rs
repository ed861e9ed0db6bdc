//! Saved samples of real programs, which `cargo xtask fixtures` makes; `xtask/fixtures/sample.py` describes the format.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::GzDecoder;
use unwinder::UnwindTable;
use unwinder::x86_64::X86_64;

use super::{Captured, Module, Platform, Run, Space, Words, captured, svma_of_offset};

/// The samples of one program, in runs of the same mappings.
#[derive(Debug)]
pub(crate) struct Fixture<A: Platform = X86_64> {
    /// With the folder before it that the architecture's are in.
    pub(crate) name: String,
    /// What the stacks' chains are from.
    pub(crate) witness: String,
    pub(crate) runs: Vec<Run<A>>,
    /// Functions that were compiled while the program ran, by address and size; of two with one address the newer.
    names: BTreeMap<u64, (u64, String)>,
}

impl<A: Platform> Fixture<A> {
    pub(crate) fn stacks(&self) -> impl Iterator<Item = (&Run<A>, &Captured<A>)> {
        self.runs.iter().flat_map(|run| run.stacks.iter().map(move |stack| (run, stack)))
    }

    /// The name of the function compiled at run time that contains `address`.
    pub(crate) fn name_at(&self, address: u64) -> Option<&str> {
        let (start, (size, name)) = self.names.range(..=address).next_back()?;
        (address - start < *size).then_some(name.as_str())
    }
}

/// The fixtures of the repository.
pub(crate) fn committed<A: Platform>() -> Vec<Fixture<A>> {
    let found = all_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replay/corpus"));
    assert!(!found.is_empty(), "the repository has fixtures");
    found
}

/// The fixtures that were made on this machine, if any.
pub(crate) fn local<A: Platform>() -> Vec<Fixture<A>> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/fixtures");
    let found = all_in(&fixtures);
    if found.is_empty() {
        eprintln!("{} has none; `cargo xtask fixtures` makes them", fixtures.display());
    }
    found
}

fn all_in<A: Platform>(fixtures: &Path) -> Vec<Fixture<A>> {
    let folder = fixtures.join(A::FIXTURES);
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "gz"));
    paths.sort();
    let mut files = Files { folder: folder.join("files"), known: HashMap::new() };
    paths.iter().map(|path| load(path, &mut files)).collect()
}

/// The ELF files behind the mappings, each with its table, if one can be made of it.
struct Files<A: Platform> {
    folder: PathBuf,
    known: HashMap<String, File<A>>,
}

type File<A> = (Arc<Vec<u8>>, Option<Arc<UnwindTable<A>>>);

impl<A: Platform> Files<A> {
    fn get(&mut self, key: &str) -> File<A> {
        let folder = &self.folder;
        let load = || {
            let elf = std::fs::read(folder.join(key))
                .unwrap_or_else(|_| unpacked(&folder.join(format!("{key}.gz"))));
            let table = UnwindTable::from_elf(elf.as_slice()).ok().map(Arc::new);
            (Arc::new(elf), table)
        };
        self.known.entry(key.to_owned()).or_insert_with(load).clone()
    }
}

fn unpacked(path: &Path) -> Vec<u8> {
    let packed = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
    bytes
}

fn load<A: Platform>(path: &Path, files: &mut Files<A>) -> Fixture<A> {
    let name = Path::new(A::FIXTURES).join(path.file_stem().unwrap()).display().to_string();
    let mut fixture = Fixture { name, witness: String::new(), runs: Vec::new(), names: BTreeMap::new() };
    let (mut pages, mut others) = (BTreeMap::new(), Vec::new());
    let bytes = unpacked(path);
    let mut words = Words(&bytes);
    while !words.0.is_empty() {
        match u8::try_from(words.word()) {
            Ok(b'P') => fixture.names.extend(text(&mut words).lines().filter_map(name_line)),
            Ok(b'W') => fixture.witness = text(&mut words),
            Ok(b'M') => {
                let modules = text(&mut words).lines().map(|line| module(line, files)).collect();
                let space = Space::new(modules, Arc::default());
                fixture.runs.push(Run { stacks: Vec::new(), space });
            }
            // The newest code stands for all of its run.
            Ok(b'C') => {
                let (address, code) = (words.word(), words.sized().to_vec());
                pages.insert(address, code);
            }
            Ok(b'T') => others.push((words.word(), words.sized().to_vec())),
            Ok(b'S') => {
                let run = fixture.runs.last_mut().expect("mappings before the first sample");
                let others = std::mem::take(&mut others);
                run.stacks.push(Captured { others, ..captured(&mut words) });
            }
            other => panic!("{}: unknown record {other:?}", path.display()),
        }
    }
    let pages = Arc::new(pages);
    for run in &mut fixture.runs {
        run.space.pages = Arc::clone(&pages);
    }
    fixture
}

/// Of a line `start size name`.
fn name_line(line: &str) -> Option<(u64, (u64, String))> {
    let mut fields = line.splitn(3, ' ');
    let mut number = || u64::from_str_radix(fields.next()?.trim_start_matches("0x"), 16).ok();
    let (start, size) = (number()?, number()?);
    Some((start, (size, fields.next()?.to_owned())))
}

fn text(words: &mut Words<'_>) -> String {
    String::from_utf8(words.sized().to_vec()).unwrap()
}

/// Of a line `start end offset key path`.
fn module<A: Platform>(line: &str, files: &mut Files<A>) -> Module<A> {
    let fields: Vec<&str> = line.splitn(5, ' ').collect();
    let [start, end, offset, key, path] = fields[..] else { panic!("{line}") };
    let [start, end, offset] = [start, end, offset].map(|hex| u64::from_str_radix(hex, 16).unwrap());
    if key == "-" {
        let (name, elf) = (path.to_owned(), Arc::default());
        return Module { name, start, end, bias: 0, elf, offset, table: None };
    }
    let (elf, table) = files.get(key);
    let bias = start.wrapping_sub(svma_of_offset(&elf, offset));
    Module { name: path.to_owned(), start, end, bias, elf, offset, table }
}
