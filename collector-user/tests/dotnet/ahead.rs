//! What .NET compiled ahead, by a map of a known truth: methods and their addresses as the runtime tells them of its own framework,
//! written as the runtime's compiler writes its maps, which come with no runtime.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use export::format::nettrace::{Event, Value, read};
use object::read::pe::PeFile64;
use object::{Object as _, ObjectSection as _};

use crate::runtime::{Runtime, collector, samples};

const LIBRARY: &str = "System.Private.CoreLib.dll";
const MAP: &str = "System.Private.CoreLib.ni.r2rmap";

/// A method of which the runtime tells: first address, size, class and name.
type Method = (u64, u32, String, String);

/// `MethodDCEndVerbose`, by the runtime's manifest.
fn method(event: &Event<'_>) -> Option<Method> {
    if (&*event.event_type.provider, event.event_type.id) != ("Microsoft-Windows-DotNETRuntimeRundown", 144) {
        return None;
    }
    let start = u64::from_le_bytes(event.payload[16..24].try_into().unwrap());
    let size = u32::from_le_bytes(event.payload[24..28].try_into().unwrap());
    let units: Vec<u16> =
        event.payload[36..].chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
    let mut texts = units.split(|&unit| unit == 0).map(String::from_utf16_lossy);
    Some((start, size, texts.next()?, texts.next()?))
}

/// The library's image: what its map is to be signed with, and what lies between places in the file and addresses in the image, of
/// each section.
struct Image {
    signature: [u8; 16],
    /// First and last place in the file, and what to add.
    sections: Vec<(u64, u64, u64)>,
}

impl Image {
    fn of(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        let record = bytes.windows(4).position(|bytes| bytes == b"R2RM").unwrap() + 4;
        let image = PeFile64::parse(&*bytes).unwrap();
        let base = image.relative_address_base();
        let sections = image.sections().filter_map(|section| {
            let (offset, size) = section.file_range()?;
            Some((offset, offset + size, section.address() - base - offset))
        });
        Self { signature: bytes[record..record + 16].try_into().unwrap(), sections: sections.collect() }
    }

    /// Where it is loaded, by one of its mappings.
    fn base(&self, start: u64, offset: u64) -> u64 {
        const PAGE: u64 = 0x1000;
        let section =
            self.sections.iter().find(|(first, last, _)| (first & !(PAGE - 1)..*last).contains(&offset));
        start - offset - section.unwrap().2
    }
}

/// The methods of the library that the runtime tells of in a process, by their addresses relative to the image.
fn methods(capture: &Path, recorded: &Path, image: &Image) -> BTreeMap<u64, (u32, String, String)> {
    // It may be mapped as a file, too, where no code of it runs.
    let mut mapped = Vec::new();
    let open = |path: &Path| BufReader::new(File::open(path).unwrap());
    let of_mapping = |event: &Event<'_>| {
        if (&*event.event_type.provider, event.event_type.id) != ("Universal.System", 3) {
            return;
        }
        let values = event.values().unwrap();
        let [_, Value::Unsigned(start), Value::Unsigned(end), Value::Unsigned(offset), Value::Text(path), ..] =
            &*values
        else {
            panic!("{values:?}")
        };
        if path.ends_with(LIBRARY) {
            mapped.push((*start..*end, image.base(*start, *offset)));
        }
    };
    read(open(recorded), |_| (), of_mapping).unwrap();
    let mut bases = BTreeSet::new();
    let mut methods = BTreeMap::new();
    let take = |event: &Event<'_>| {
        let Some((start, size, class, name)) = method(event) else { return };
        if let Some((_, base)) = mapped.iter().find(|(range, _)| range.contains(&start)) {
            bases.insert(*base);
            methods.insert(start - base, (size, class, name));
        }
    };
    read(open(capture), |_| (), take).unwrap();
    assert_eq!(bases.len(), 1, "{bases:x?}");
    methods
}

/// The stack of most samples that end in the method of the thread of the pool, from the first managed frame on, without parameters.
fn chain(folded: &str) -> Vec<String> {
    let mut counts: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let names = stack.split(';').map(|name| name.split_once('(').map_or(name, |(name, _)| name));
        let names: Vec<String> = names.map(str::to_owned).collect();
        let is_async = names.iter().any(|name| name == "Known.Program+<Async>c__async0.MoveNext");
        if is_async && names.last().is_some_and(|name| name == "Known.Hot.Spin") {
            // The runtime's own code comes before it, or the process alone.
            let native = names.iter().rposition(|name| name.starts_with("libcoreclr.so+")).unwrap_or(0);
            *counts.entry(names[native + 1..].to_vec()).or_default() += count.parse::<u64>().unwrap();
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).unwrap().0
}

#[test]
fn methods_that_were_compiled_ahead_have_the_names_of_a_map() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let runtime = Runtime::of("9");
    let image = Image::of(&runtime.folder.join(LIBRARY));

    // One process, of which both tell: the runtime writes beside our recording.
    let recorded = at("recorded.nettrace");
    let told = at("told");
    fs::create_dir(&told).unwrap();
    let capture = told.join("capture.nettrace");
    let config = "Microsoft-DotNETCore-SampleProfiler:0:5,Microsoft-Windows-DotNETRuntimeRundown:58:5";
    let variables = [
        ("EnableEventPipe", "1"),
        ("EventPipeConfig", config),
        ("EventPipeOutputPath", capture.to_str().unwrap()),
    ];
    runtime.record(&recorded, &variables, &[]);
    collector(&[&"convert", &capture, &"-o", &at("told.folded")], &[]);
    let truth = chain(&fs::read_to_string(at("told.folded")).unwrap());
    let methods = methods(&capture, &recorded, &image);
    assert!(methods.len() > 100, "{}", methods.len());

    let signature = u128::from_be_bytes(image.signature);
    let stored = at("symbols").join(MAP).join(format!("r2rmap-v1-{signature:032x}"));
    fs::create_dir_all(&stored).unwrap();
    let mut map =
        format!("FFFFFFFF 00 {signature:032X}\nFFFFFFFE 00 1\nFFFFFFFD 00 2\nFFFFFFFC 00 3\nFFFFFFFB 00 1\n");
    for (address, (size, class, name)) in &methods {
        writeln!(map, "{address:08X} {size:02X} System.Object {class}::{name}(System.Object)").unwrap();
    }
    fs::write(stored.join(MAP), map).unwrap();

    // Another process, where the image is elsewhere.
    let mut names = Vec::new();
    for (symbols, output) in [("none", at("without.folded")), ("symbols", at("with.folded"))] {
        let symbols = at(symbols);
        runtime.record(&output, &[("PerfMapEnabled", "1")], &[("_NT_SYMBOL_PATH", &symbols)]);
        names.push(chain(&fs::read_to_string(output).unwrap()));
    }
    let of_library = |name: &&String| name.starts_with(LIBRARY);
    assert!(names[0].iter().filter(of_library).count() >= 3, "{:?}", names[0]);
    assert_eq!(names[0].len(), truth.len(), "{names:?}\n{truth:?}");
    assert_eq!(names[1], truth);

    // And later, of a recording that tells which map is the image's.
    let later = |symbols: &str| {
        let output = at("later.folded");
        collector(
            &[&"convert", &at("unnamed.nettrace"), &"-o", &output],
            &[("_NT_SYMBOL_PATH", &at(symbols))],
        );
        samples(
            &fs::read_to_string(output).unwrap(),
            ";System.Threading.ThreadPoolWorkQueue.Dispatch(System.Object)",
        )
    };
    runtime.record(&at("unnamed.nettrace"), &[], &[("_NT_SYMBOL_PATH", &at("none"))]);
    assert_eq!(later("none"), 0);
    assert!(later("symbols") >= 30);
}
