//! What lines and inlined functions cost of memory: no more than twice what a reader that maps the file has of it in memory.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::process::Command;
use std::sync::{Arc, Mutex};

use collector_common::record::{FrameId, ModuleId};
use export::symbolize::{Detail, ModuleFiles, symbolize};

use crate::symbols::machine_of;
use crate::tools::{output, tool};

/// What the kernel maps where a page is touched that it has in memory (`fault_around_bytes` of Linux, whose default this is).
const MAPPED: u64 = 64 << 10;

/// What was read of a file.
type Touched = Arc<Mutex<BTreeSet<u64>>>;

/// A file that notes what is read of it.
struct Noted {
    file: File,
    touched: Touched,
}

impl Read for Noted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let at = self.file.stream_position()?;
        let length = self.file.read(buffer)?;
        let end = (at + length as u64).div_ceil(MAPPED);
        self.touched.lock().unwrap().extend(at / MAPPED..end);
        Ok(length)
    }
}

impl Seek for Noted {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

/// This program is the file of every module.
#[derive(Default)]
struct Own(Touched);

impl ModuleFiles for Own {
    type File = Noted;

    fn open(&self, _: ModuleId) -> Option<Noted> {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        Some(Noted { file, touched: Arc::clone(&self.0) })
    }
}

/// This program has 20 MB of debug information, of some thousand units.
#[test]
fn memory_is_no_more_than_twice_what_would_be_mapped() {
    if tool("nm").is_none() {
        return;
    }
    let own = std::env::current_exe().unwrap();
    let listed = output(Command::new("nm").arg("--defined-only").arg(&own));
    let functions =
        listed.lines().filter_map(|line| line.split_once(" t ").or_else(|| line.split_once(" T ")));
    let functions: Vec<u64> =
        functions.map(|(address, _)| u64::from_str_radix(address, 16).unwrap()).collect();
    for count in [1, 100, 1_000] {
        let machine = machine_of(&own, functions.iter().step_by(functions.len() / count).copied());
        let files = Own::default();
        let mut symbols = None;
        let used = allocation_counter::measure(|| symbols = Some(symbolize(&machine, &files, Detail::Lines)));
        let symbols = symbols.unwrap();
        let lines = (0..machine.frames().len() as u32)
            .filter(|&id| symbols.functions(FrameId(id)).any(|it| it.line > 0));
        assert!(lines.count() * 10 > count * 9);
        let mapped = files.0.lock().unwrap().len() as u64 * MAPPED;
        println!("{count} addresses: {} bytes at most, where {mapped} would be mapped", used.bytes_max);
        assert!(
            used.bytes_max < 2 * mapped,
            "{count}: {} bytes, where {mapped} would be mapped",
            used.bytes_max
        );
    }
}
