//! Recordings of all kinds of things in any combination, and what is told of a recording, to be compared with what comes back from a
//! file of it.

use std::collections::BTreeMap;
use std::io::Cursor;

use collector_common::ids::{Avma, BuildId, FileOffset, Nanos, Pid, Svma, Tid};
use collector_common::record::{
    AttributeValue, ClockAnchor, ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId, ModuleKind,
    ModuleMapping, Sample, SampleKindId, Unit,
};
use export::format::{ExportFormat, Profile};
use export::import::{self, ImportError, Imported};
use export::symbolize::{Function, Symbols};
use proptest::prelude::*;

/// A sample, by numbers that choose what it is of.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) thread: u8,
    pub(crate) kind: u8,
    pub(crate) value: i64,
    pub(crate) stack: Vec<u8>,
    pub(crate) attribute: u8,
    pub(crate) time: u32,
    pub(crate) cpu: u16,
}

pub(crate) fn rows() -> impl Strategy<Value = Vec<Row>> {
    let stack = prop::collection::vec(0_u8..10, 0..6);
    let row = (0_u8..4, 0_u8..4, 1_i64..1000, stack, 0_u8..7, 0_u32..1_000_000, 0_u16..4);
    let row = row.prop_map(|(thread, kind, value, stack, attribute, time, cpu)| Row {
        thread,
        kind,
        value,
        stack,
        attribute,
        time,
        cpu,
    });
    prop::collection::vec(row, 0..40)
}

/// When what was before ends, and other things are at the same numbers and addresses.
const CHANGE: Nanos = Nanos(500_000_000);

/// Two processes with two threads each, one of which ends, so that another one has its pid and thread ids; and frames with names, lines,
/// inlined functions, or none of these. The second process has one file where the first half of the recording had another, and so has the
/// process with the pid that is used again.
pub(crate) fn recording(rows: &[Row], kinds: &[(&str, Unit, u64)]) -> (ExportMachine, Symbols) {
    let mut machine = ExportMachine::default();
    let system = machine.system_mut();
    system.end = Nanos(1_000_000_000);
    let realtime = 1_750_000_000_000_000_000;
    system.clocks.start = Some(ClockAnchor { monotonic: Nanos(0), realtime, boottime: None });
    let kinds: Vec<SampleKindId> =
        kinds.iter().map(|&(name, unit, period)| machine.add_kind(name, unit, period)).collect();
    let processes = [(10, "one", Nanos(0)), (20, "two", Nanos(0)), (10, "again", CHANGE)]
        .map(|(pid, name, start)| machine.add_process(Pid(pid), name, None, start));
    machine.end_process(processes[0], Nanos(CHANGE.0 - 1000));
    let threads = [
        (0, 10, "one"),
        (0, 11, "helper 2"),
        (1, 20, "two"),
        (1, 21, "helper 2"),
        (2, 10, "again"),
        (2, 11, "helper 2"),
    ];
    let threads = threads.map(|(process, tid, name)| {
        let name = machine.intern_string(name);
        machine.intern_thread(processes[process], Tid(tid), name)
    });
    let files = [
        ("/usr/bin/prog", &[0x12, 0x34, 0x56, 0x78, 0x9a][..]),
        ("/usr/lib/later.so", &[0x21, 0x43, 0x65, 0x87]),
    ]
    .map(|(path, build_id)| {
        let (path, build_id) = (machine.intern_string(path), BuildId::new(build_id));
        machine.add_module(Module { kind: ModuleKind::File, path, build_id })
    });
    for (process, file, bias, since) in [
        (0, 0, 0x7000_0000, Nanos(0)),
        (1, 0, 0x5000_0000, Nanos(0)),
        (1, 1, 0x5000_0000, CHANGE),
        (2, 1, 0x7000_0000, CHANGE),
    ] {
        machine.add_mapping(ModuleMapping {
            process: processes[process],
            module: files[file],
            start: Avma(bias + 0x1000),
            end: Avma(bias + 0x9000),
            file_offset: FileOffset(0x1000),
            bias,
            since,
        });
    }
    let frames = files.map(|file| -> Vec<FrameId> {
        let frame = |number: u64| {
            let (module, address, flags) = match number {
                8.. => (ModuleId::KERNEL, 0xffff_ffff_8100_0000 + number * 64, FrameFlags::KERNEL),
                _ => (file, 0x1100 + number * 64, 0),
            };
            machine.intern_frame(Frame { module, address: Svma(address), flags: FrameFlags(flags) })
        };
        (0..10).map(frame).collect()
    });
    // Above others on the stack the code without a name is by where a call returns to.
    let calling = files.map(|module| {
        let flags = FrameFlags(FrameFlags::RETURN_ADDRESS);
        machine.intern_frame(Frame { module, address: Svma(0x1101), flags })
    });
    let mut symbols = Symbols::unresolved(&machine);
    name_frames(&mut symbols, &frames);
    for row in rows {
        let time = Nanos(u64::from(row.time) * 1000);
        let is_later = time >= CHANGE;
        let thread = match row.thread {
            thread @ (0 | 1) if is_later => thread + 4,
            thread => thread,
        };
        let half = usize::from(is_later);
        let frame = |(depth, &at): (usize, &u8)| {
            if depth > 0 && at == 0 { calling[half] } else { frames[half][usize::from(at)] }
        };
        let stack: Vec<FrameId> = row.stack.iter().enumerate().map(frame).collect();
        let stack = machine.intern_stack(&stack);
        let label = |machine: &mut ExportMachine, text: &str| machine.intern_string(text).into();
        let mut list = vec![
            (machine.intern_string("lock"), label(&mut machine, "a b")),
            (machine.intern_string("file"), label(&mut machine, "/x;y")),
            (machine.intern_string("port"), AttributeValue::Number(i64::from(row.time % 7) - 3)),
            // Names again, as pprof has them of other tools.
            (machine.intern_string("lock"), label(&mut machine, "c=d")),
            (machine.intern_string("port"), AttributeValue::Number(i64::from(row.time % 5) + 10)),
            (machine.intern_string("lock_2"), label(&mut machine, "e")),
        ];
        list.truncate(usize::from(row.attribute));
        let attributes = machine.attributes_mut().intern(&list);
        machine.add_sample(&Sample {
            time,
            thread: threads[usize::from(thread)],
            stack,
            cpu: row.cpu,
            kind: kinds[usize::from(row.kind) % kinds.len()],
            value: row.value,
            attributes,
        });
    }
    (machine, symbols)
}

/// Each with other names in the second half.
fn name_frames(symbols: &mut Symbols, frames: &[Vec<FrameId>; 2]) {
    let numbered = frames.iter().zip(["f", "later_"]).flat_map(|(frames, prefix)| {
        frames.iter().zip(0_u32..).map(move |(&frame, number)| (frame, number, prefix))
    });
    for (frame, number, f) in numbered {
        let mut function = |name: String, line| Function {
            name: symbols.intern(&name),
            linkage: symbols.intern(&format!("_{name}")),
            file: symbols.intern(if line > 0 { "/src/prog.c" } else { "" }),
            line,
            column: line,
            is_inlined: false,
        };
        let functions = match number {
            0 => continue,
            1..4 => vec![function(format!("{f}{number}"), 0)],
            4..6 => vec![function(format!("{f} {number}"), 40 + number)],
            6..8 => vec![
                function("in".to_owned(), number),
                function("between".to_owned(), 7),
                function(format!("{f}{number}"), 8),
            ],
            _ => vec![function(format!("vfs_{number}"), 0)],
        };
        symbols.set_functions(frame, &functions);
    }
}

pub(crate) fn written(format: &dyn ExportFormat, machine: &ExportMachine, symbols: &Symbols) -> Vec<u8> {
    let mut out = Vec::new();
    format.write(Profile { machine, symbols }, &mut out).unwrap();
    out
}

/// What the bytes are of, by themselves.
pub(crate) fn imported(bytes: &[u8]) -> Result<Imported, ImportError> {
    let Some(importer) = import::of(&bytes[..bytes.len().min(import::BEGIN)]) else {
        return Err(ImportError::Unsupported { what: "unknown".to_owned(), remedy: "none" });
    };
    importer.import(&mut Cursor::new(bytes))
}

/// What to tell of each sample; what is equal is added up.
pub(crate) fn told(
    machine: &ExportMachine,
    tell: impl Fn(&Sample) -> Option<(String, i64)>,
    frame: impl Fn(FrameId) -> Vec<String>,
) -> BTreeMap<String, i64> {
    let mut all = BTreeMap::new();
    for sample in machine.samples().iter() {
        let Some((mut line, value)) = tell(&sample) else { continue };
        for &id in machine.stacks().get(sample.stack).iter().rev() {
            for part in frame(id) {
                line.push_str(" > ");
                line.push_str(&part);
            }
        }
        *all.entry(line).or_default() += value;
    }
    all
}

/// Process, thread and attributes of a sample.
pub(crate) fn of_thread(machine: &ExportMachine, sample: &Sample) -> String {
    let thread = machine.thread(sample.thread);
    let process = machine.process(thread.process);
    let string = |id| machine.string(id);
    let attributes = machine.attributes().get(sample.attributes).iter();
    let attributes: Vec<_> = attributes
        .map(|&(key, value)| match value {
            AttributeValue::Label(text) => format!("{}={:?}", string(key), string(text)),
            AttributeValue::Number(number) => format!("{}={number}", string(key)),
        })
        .collect();
    format!(
        "{} {}/{} {} {attributes:?}",
        process.pid.0,
        string(process.name),
        thread.tid.0,
        string(thread.name)
    )
}

/// All of a frame: outermost function first.
pub(crate) fn whole_frame(machine: &ExportMachine, symbols: &Symbols, id: FrameId) -> Vec<String> {
    let frame = machine.frames().get(id);
    let module = machine.module(frame.module);
    let place =
        format!("{} {:?} {:#x}", machine.string(module.path), module.build_id, frame.lookup_address().0);
    let functions: Vec<_> = symbols.functions(id).collect();
    let functions = functions.iter().rev().map(|of| {
        let [name, linkage, file] = [of.name, of.linkage, of.file].map(|id| symbols.function(id));
        format!("{name} ({linkage}) {file}:{}:{} {}", of.line, of.column, of.is_inlined)
    });
    [place].into_iter().chain(functions).collect()
}
