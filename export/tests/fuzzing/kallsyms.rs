//! The input is the kernel's list of its symbols: names for some addresses of the kernel, and modules that lines are looked
//! for in.
//!
//! What is found is compared with what another reading of the text finds, one that keeps all symbols.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Cursor};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use collector_common::ids::Svma;
use collector_common::record::{ExportMachine, Frame, FrameFlags, FrameId, ModuleId};
use export::symbolize::{Detail, KernelModule, ModuleFiles, symbolize};

/// Bytes that any text may hold, and bytes for each of its own: a symbol's name is kept as it is, as it reads, and by each of both.
const FIXED_MEMORY: u64 = 4 << 20;
const PER_BYTE: u64 = 64;

/// One of an input's size takes no more than this, instrumented or not.
const MOST_TIME: Duration = Duration::from_secs(5);

/// How much of the text is read at once: the same is found however it is cut.
const PIECES: [usize; 3] = [1, 61, 64 << 10];

/// No line is looked at that is longer.
const LONGEST_LINE: usize = 4096;

/// No function is.
const LONGEST_FUNCTION: u64 = 1 << 20;

struct Input<'a> {
    text: &'a [u8],
    piece: usize,
    /// Modules that were asked for.
    asked: Mutex<Vec<String>>,
}

impl ModuleFiles for Input<'_> {
    type File = Cursor<Vec<u8>>;

    fn open(&self, _: ModuleId) -> Option<Self::File> {
        None
    }

    fn kernel_symbols(&self) -> Option<Box<dyn BufRead + Send>> {
        Some(Box::new(BufReader::with_capacity(self.piece, Cursor::new(self.text.to_owned()))))
    }

    fn kernel_module(&self, name: &str) -> Option<KernelModule<Self::File>> {
        self.asked.lock().unwrap().push(name.to_owned());
        None
    }
}

/// Looks up addresses. Out: how many have names.
pub(crate) fn run(input: &[u8]) -> usize {
    let mut machine = ExportMachine::default();
    let bits = (0..64).map(|bit| 1 << bit);
    let kernel = [0xffff_ffff_8100_0000, 0xffff_ffff_c030_0000];
    let far = bits
        .clone()
        .chain(kernel)
        .flat_map(|at| [at, at + LONGEST_FUNCTION - 1, at + LONGEST_FUNCTION, at + LONGEST_FUNCTION / 2]);
    let near = kernel.into_iter().flat_map(|at| at..at + 0x100);
    for address in (0..0x1000).step_by(13).chain(far).chain(near).chain([u64::MAX - 1, u64::MAX]) {
        let flags = FrameFlags(FrameFlags::KERNEL);
        machine.intern_frame(Frame { module: ModuleId::KERNEL, address: Svma(address), flags });
    }
    let truth = names(input);
    let expected: Vec<Option<&str>> =
        machine.frames().iter().map(|frame| name_of(&truth, frame.address.0)).collect();
    let mut modules: BTreeSet<&str> = BTreeSet::new();
    for name in expected.iter().flatten() {
        modules
            .extend(name.strip_suffix(']').and_then(|name| name.rsplit_once(" [")).map(|(_, module)| module));
    }
    let most = FIXED_MEMORY + input.len() as u64 * PER_BYTE;
    for piece in PIECES {
        let start = Instant::now();
        let files = Input { text: input, piece, asked: Mutex::default() };
        let used = allocation_counter::measure(|| {
            let symbols = symbolize(&machine, &files, Detail::Lines);
            assert!(symbols.unreadable().is_empty());
            for (id, expected) in (0..).map(FrameId).zip(&expected) {
                let found = symbols.is_resolved(id).then(|| symbols.name(id).linkage);
                let address = machine.frames().get(id).address.0;
                assert_eq!(found, *expected, "at {address:#x}, {piece} bytes at once");
            }
        });
        assert!(start.elapsed() < MOST_TIME, "it took {:?}", start.elapsed());
        assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
        let asked = files.asked.into_inner().unwrap();
        assert!(asked.iter().eq(&modules), "{asked:?} are asked for, and there are {modules:?}");
    }
    expected.iter().flatten().count()
}

/// The name that counts, by address: of the most visible symbol, of these that with the fewest underscores at its beginning, of these
/// the longest, of these the first.
fn names(text: &[u8]) -> BTreeMap<u64, String> {
    let mut best: BTreeMap<u64, ((u8, usize, usize), String)> = BTreeMap::new();
    for line in text.split(|&byte| byte == b'\n').filter(|line| line.len() <= LONGEST_LINE) {
        let mut parts = line.splitn(3, |&byte| byte == b' ');
        let (Some(digits), Some([kind]), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let Some(visible) = [&b"t"[..], b"Ww", b"T"].iter().position(|kinds| kinds.contains(kind)) else {
            continue;
        };
        let is_address = digits.len() <= 16 && digits.iter().all(u8::is_ascii_hexdigit);
        let address = std::str::from_utf8(digits).ok().and_then(|it| u64::from_str_radix(it, 16).ok());
        let Some(address) = address.filter(|&address| is_address && address != 0 && !name.is_empty()) else {
            continue;
        };
        let underscores = name.iter().position(|&byte| byte != b'_').unwrap_or(name.len());
        let rank = (visible as u8, usize::MAX - underscores, name.len());
        let name = String::from_utf8_lossy(name).replace('\t', " ");
        match best.get(&address) {
            Some((known, _)) if rank <= *known => {}
            _ => drop(best.insert(address, (rank, name))),
        }
    }
    best.into_iter().map(|(address, (_, name))| (address, name)).collect()
}

/// That of the nearest symbol that is not above an address.
fn name_of(names: &BTreeMap<u64, String>, address: u64) -> Option<&str> {
    let (start, name) = names.range(..=address).next_back()?;
    (address - start < LONGEST_FUNCTION).then_some(name.as_str())
}
