//! Files that somebody made to cost much: each is refused with an error that names the place and the limit, or becomes a recording that
//! every format writes with bounded memory and output.
//!
//! - `made`: the files, by hand or by our own writers.
//! - `binary`: those of formats with tables by number.
//! - `spoilt`: what is left of a good file when it is cut or bits of it are others.

mod binary;
mod made;
mod spoilt;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use collector_common::ids::{Nanos, Pid, Svma, Tid};
use collector_common::intern::StringId;
use collector_common::record::{ExportMachine, Frame, FrameFlags, ModuleId, Sample, SampleKindId, Unit};
use export::format::otlp::Otlp;

use export::format::{ExportFormat as _, Profile, formats};
use export::import::Imported;
use export::symbolize::Symbols;

use crate::random::imported;
use made::{Expected, Hostile};

/// What reading and writing may hold beside what the file has, in bytes: limits that do not go by the file's size allow as much.
const FIXED: u64 = 128 << 20;

/// What may be held for each byte of a file, uncompressed.
const PER_BYTE: u64 = 160;

/// The most that is written of any of these files.
const MOST_OUTPUT: u64 = 96 << 20;

/// As long as no file takes, in a debug build on a busy machine, but where work grows as the square of something.
const LONGEST: Duration = Duration::from_mins(1);

/// Goes nowhere, as far as a limit.
struct Nowhere {
    left: u64,
}

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| io::Error::other("too much"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Does something, and fails where that holds more than `most` bytes or takes too long.
fn bounded<T>(what: &str, most: u64, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let mut done = None;
    let used = allocation_counter::measure(|| done = Some(work()));
    assert!(used.bytes_max <= most, "{what}: {} bytes were held, {most} are the bound", used.bytes_max);
    assert!(begun.elapsed() < LONGEST, "{what}: {:?}", begun.elapsed());
    done.unwrap()
}

/// Writes a recording in every format.
fn write_all(name: &str, machine: &ExportMachine, symbols: &Symbols, most: u64) {
    for format in formats() {
        let what = format!("{name} as {}", format.name());
        let profile = Profile { machine, symbols };
        let written = bounded(&what, most, || format.write(profile, &mut Nowhere { left: MOST_OUTPUT }));
        assert!(written.is_ok(), "{what}: {}", written.unwrap_err());
    }
}

#[test]
fn files_that_cost_much_are_bounded() {
    for Hostile { name, plain_len, bytes, expected } in made::all().into_iter().chain(binary::all()) {
        let most = FIXED + plain_len as u64 * PER_BYTE;
        match (bounded(name, most, || imported(&bytes)), expected) {
            (Ok(Imported { machine, symbols, .. }), Expected::Read) => {
                write_all(name, &machine, &symbols, most);
            }
            (Err(error), Expected::Refused(text)) => {
                assert!(error.to_string().contains(text), "{name}: {error}");
            }
            (Ok(_), Expected::Refused(text)) => panic!("{name} was read, and not refused with `{text}`"),
            (Err(error), Expected::Read) => panic!("{name}: {error}"),
        }
    }
}

/// Samples of one kind in many processes, of many kinds that there might be: that is no product of the two.
#[test]
fn kinds_of_many_processes_cost_what_there_is() {
    const PROCESSES: u32 = 60_000;
    let mut machine = ExportMachine::default();
    for kind in 0..255 {
        machine.add_kind(&format!("kind {kind}"), Unit::Count, 1);
    }
    for pid in 0..PROCESSES {
        let process = machine.add_process(Pid(pid), "", None, Nanos(0));
        let thread = machine.intern_thread(process, Tid(pid), StringId::EMPTY);
        let kind = SampleKindId(254);
        machine.add_sample(&Sample { thread, kind, value: 1, ..Sample::default() });
    }
    let symbols = Symbols::unresolved(&machine);
    let profile = Profile { machine: &machine, symbols: &symbols };
    // Each of 8 bytes, a number for each kind of each process would be 122 MB.
    let written = bounded("OTLP", 64 << 20, || Otlp.write(profile, &mut Nowhere { left: MOST_OUTPUT }));
    written.unwrap();
}

/// Times of one thread of which each begins in the one before and ends behind it: each is on a track of its own in Perfetto.
#[test]
fn times_that_cross_each_other_end() {
    const COUNT: u64 = 100_000;
    let mut machine = ExportMachine::default();
    let kind = machine.add_kind("off_cpu", Unit::Nanoseconds, 1);
    let process = machine.add_process(Pid(1), "prog", None, Nanos(0));
    let thread = machine.intern_thread(process, Tid(1), StringId::EMPTY);
    let (module, flags) = (ModuleId::KERNEL, FrameFlags(FrameFlags::KERNEL));
    let frame = machine.intern_frame(Frame { module, address: Svma(1 << 63), flags });
    let stack = machine.intern_stack(&[frame]);
    for at in 0..COUNT {
        let (time, value) = (Nanos(at), COUNT as i64);
        machine.add_sample(&Sample { time, thread, kind, value, stack, ..Sample::default() });
    }
    let symbols = Symbols::unresolved(&machine);
    write_all("crossing times", &machine, &symbols, 256 << 20);
}
