//! What a reader must know before the first event: the trace's clock and machine, types of events, and threads.
//!
//! `PerfView` knows the events of `Universal.System` by number, those of `Universal.Events` by name, and both providers by
//! GUID.

use collector_common::ids::Nanos;
use collector_common::record::{ExportMachine, FrameFlags, Thread};

use super::wire::{cut, text};
use crate::format::calendar::time_of_day;
use crate::leb128;
use crate::table::KeySet;

/// Types of events of `Universal.System`. A type's number in this file is its number there and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SystemEvent {
    ExistingProcess = 0,
    ProcessCreate = 1,
    ProcessExit = 2,
    ProcessMapping = 3,
    ProcessSymbol = 4,
    ProcessMappingMetadata = 5,
}

impl SystemEvent {
    const ALL: [Self; 6] = [
        Self::ExistingProcess,
        Self::ProcessCreate,
        Self::ProcessExit,
        Self::ProcessMapping,
        Self::ProcessSymbol,
        Self::ProcessMappingMetadata,
    ];

    /// The number of the type in this file.
    pub(super) const fn metadata(self) -> u32 {
        self as u32 + 1
    }

    const fn name(self) -> &'static str {
        match self {
            Self::ExistingProcess => "ExistingProcess",
            Self::ProcessCreate => "ProcessCreate",
            Self::ProcessExit => "ProcessExit",
            Self::ProcessMapping => "ProcessMapping",
            Self::ProcessSymbol => "ProcessSymbol",
            Self::ProcessMappingMetadata => "ProcessMappingMetadata",
        }
    }

    /// The document has a `ProcessId` in mappings, too; no reader expects one.
    const fn fields(self) -> &'static [(&'static str, Type)] {
        use Type::{Number, Text};
        match self {
            Self::ExistingProcess | Self::ProcessCreate => {
                &[("NamespaceId", Number), ("Name", Text), ("NamespaceName", Text)]
            }
            Self::ProcessExit => &[],
            Self::ProcessMapping => &[
                ("Id", Number),
                ("StartAddress", Number),
                ("EndAddress", Number),
                ("FileOffset", Number),
                ("FileName", Text),
                ("MetadataId", Number),
            ],
            Self::ProcessSymbol => &[
                ("Id", Number),
                ("MappingId", Number),
                ("StartAddress", Number),
                ("EndAddress", Number),
                ("Name", Text),
            ],
            Self::ProcessMappingMetadata => {
                &[("Id", Number), ("SymbolMetadata", Text), ("VersionMetadata", Text)]
            }
        }
    }
}

/// The fact about a type that tells what it is called here, where that is not its provider and name.
pub(crate) const NAME: &str = "Collector.Name";

/// The fact about a type, of this value, that tells that no samples were taken of its events, with a stack or without.
pub(crate) const SAMPLES: &str = "Collector.Samples";
pub(crate) const NO_SAMPLES: &str = "none";

/// The number of the first kind of sample's type in this file.
pub(super) const FIRST_KIND: u32 = SystemEvent::ALL.len() as u32 + 1;

/// The number of a kind of sample's type in this file.
pub(super) fn metadata_of_kind(kind: u16) -> u32 {
    FIRST_KIND + u32::from(kind)
}

/// Types of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    /// An unsigned number of variable length.
    Number,
    /// A signed one.
    Signed,
    /// Text: an array of UTF-8 bytes.
    Text,
}

impl Type {
    const fn code(self) -> &'static [u8] {
        match self {
            Self::Number => &[21],
            Self::Signed => &[20],
            Self::Text => &[19, 23],
        }
    }
}

/// A provider of events.
struct Provider {
    name: &'static str,
    /// Its first three parts have their lowest byte first.
    guid: [u8; 16],
}

/// `8c107b6c-79f8-5231-4de6-2a0e20a3f562`.
const SYSTEM: Provider = Provider {
    name: "Universal.System",
    guid: [0x6c, 0x7b, 0x10, 0x8c, 0xf8, 0x79, 0x31, 0x52, 0x4d, 0xe6, 0x2a, 0x0e, 0x20, 0xa3, 0xf5, 0x62],
};

/// `bc5e5d63-9799-5873-33d9-fba8316cef71`.
const EVENTS: Provider = Provider {
    name: "Universal.Events",
    guid: [0x63, 0x5d, 0x5e, 0xbc, 0x99, 0x97, 0x73, 0x58, 0x33, 0xd9, 0xfb, 0xa8, 0x31, 0x6c, 0xef, 0x71],
};

/// The most bytes of a type's or a thread's name: all that is known of one is at most 64 KiB.
const LONGEST_NAME: usize = 32 << 10;

/// Makes the content of a metadata block: types of events of the system, and of each kind of sample.
pub(super) fn metadata(machine: &ExportMachine, signed: &[bool]) -> Vec<u8> {
    // There is no header.
    let mut out = vec![0, 0];
    for event in SystemEvent::ALL {
        row(&mut out, &SYSTEM, (event.metadata(), event as u32), event.name(), event.fields());
    }
    for (kind, at) in machine.kinds().iter().zip(0..) {
        let is_signed = signed.get(usize::from(at)).copied().unwrap_or_default();
        let value = if is_signed { Type::Signed } else { Type::Number };
        let ids = (metadata_of_kind(at), u32::from(at) + 1);
        row(&mut out, &EVENTS, ids, machine.string(kind.name), &[("Value", value)]);
    }
    out
}

/// A type of events, with its number in this file and its provider's.
fn row(out: &mut Vec<u8>, provider: &Provider, ids: (u32, u32), name: &str, fields: &[(&str, Type)]) {
    const PROVIDER_GUID: u8 = 7;
    let mut row = Vec::new();
    leb128::write(&mut row, ids.0.into());
    text(&mut row, provider.name);
    leb128::write(&mut row, ids.1.into());
    text(&mut row, cut(name, LONGEST_NAME));
    row.extend_from_slice(&(fields.len() as u16).to_le_bytes());
    for &(name, of) in fields {
        let mut field = Vec::new();
        text(&mut field, name);
        field.extend_from_slice(of.code());
        sized(&mut row, &field);
    }
    let mut optional = vec![PROVIDER_GUID];
    optional.extend_from_slice(&provider.guid);
    sized(&mut row, &optional);
    sized(out, &row);
}

/// Bytes after their number. All that is written here is far below 64 KiB, names included.
pub(super) fn sized(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Adds a thread to the content of a thread block. One that records, and is none of the machine's, has only a name.
pub(super) fn thread(out: &mut Vec<u8>, index: u64, name: &str, ids: Option<(u32, u32)>) {
    const NAME: u8 = 1;
    const PROCESS: u8 = 2;
    const THREAD: u8 = 3;
    let mut row = Vec::new();
    leb128::write(&mut row, index);
    if !name.is_empty() {
        row.push(NAME);
        text(&mut row, cut(name, LONGEST_NAME));
    }
    if let Some((pid, tid)) = ids {
        for (kind, id) in [(PROCESS, pid), (THREAD, tid)] {
            row.push(kind);
            leb128::write(&mut row, id.into());
        }
    }
    sized(out, &row);
}

/// The process's and the thread's ids of a thread.
pub(super) fn ids_of(machine: &ExportMachine, thread: &Thread) -> (u32, u32) {
    (machine.process(thread.process).pid.0, thread.tid.0)
}

const MILLISECOND: i128 = 1_000_000;

/// Bytes of an address.
pub(super) const POINTER_SIZE: u32 = 8;

/// Makes the content of the trace block. Ticks are nanoseconds of `CLOCK_MONOTONIC`. The time of day has milliseconds, so what
/// is told is that of the last whole one before the start.
pub(super) fn trace(machine: &ExportMachine, start: Nanos) -> Vec<u8> {
    const FREQUENCY: u64 = 1_000_000_000;
    let unix = machine.system().clocks.unix_at(start).unwrap_or_default();
    let ticks = start.0.wrapping_sub(unix.rem_euclid(MILLISECOND) as u64);
    let mut out = Vec::new();
    for part in time_of_day(unix.div_euclid(MILLISECOND)) {
        out.extend_from_slice(&part.to_le_bytes());
    }
    out.extend_from_slice(&ticks.to_le_bytes());
    out.extend_from_slice(&FREQUENCY.to_le_bytes());
    out.extend_from_slice(&POINTER_SIZE.to_le_bytes());
    let pairs = pairs(machine);
    out.extend_from_slice(&(pairs.len() as u32).to_le_bytes());
    for (key, value) in &pairs {
        text(&mut out, key);
        text(&mut out, value);
    }
    out
}

/// The most bytes of a pair's name, so that those of all kinds have room in the block.
const LONGEST_KEY: usize = 1 << 10;

/// Before a kind's name: what its samples' values are in. Such facts are in the order of the kinds.
pub(crate) const UNIT_OF: &str = "Unit of ";

/// Before a kind's name: what one sample stands for.
pub(crate) const PERIOD_OF: &str = "Period of ";

/// The kind that is to be looked at first.
pub(crate) const SHOWN_KIND: &str = "ShownKind";

/// That the number of lost events, which each trace has, is not known.
pub(crate) const UNKNOWN_LOSSES: &str = "LossesUnknown";

/// That the time of day, which each trace has, is not known.
pub(crate) const UNKNOWN_TIME: &str = "TimeOfDayUnknown";

/// That stacks which end before their root are labelled so: what has such a label in another file was called so by somebody else.
pub(crate) const CUT_STACKS: &str = "CutStacksLabelled";

/// Facts by name. The first two are of the specification; the second is in nanoseconds, as .NET writes it. No name is there
/// twice.
fn pairs(machine: &ExportMachine) -> Vec<(String, String)> {
    let system = machine.system();
    let period = machine.kinds().iter().map(|kind| kind.period).find(|&period| period > 1);
    let period = period.filter(|&period| i32::try_from(period).is_ok());
    let shown = machine.main_kind().and_then(|kind| machine.kinds().get(usize::from(kind.0)));
    let shown = shown.map_or("", |kind| machine.string(kind.name));
    let has_cut_stacks = machine.frames().iter().any(|frame| frame.flags.has(FrameFlags::CUT));
    let number = |number: u64| if number == 0 { String::new() } else { number.to_string() };
    let pairs = [
        ("HardwareThreadCount", number(system.cpus.into())),
        ("ExpectedCPUSamplingRate", number(period.unwrap_or_default())),
        ("Host", system.host.clone()),
        ("Kernel", system.kernel.clone()),
        ("Architecture", system.architecture.clone()),
        ("Distribution", system.distribution.clone()),
        ("Processor", system.processor.clone()),
        ("MemoryBytes", number(system.memory)),
        ("BootedUnixNanoseconds", number(system.clocks.booted().unwrap_or_default())),
        ("Command", system.command.clone()),
        ("Account", system.account.join("\n")),
        ("Metrics", machine.metrics().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
        (UNKNOWN_LOSSES, system.lost.map_or("yes", |_| "").to_owned()),
        (UNKNOWN_TIME, system.clocks.start.map_or("yes", |_| "").to_owned()),
        (CUT_STACKS, if has_cut_stacks { "yes" } else { "" }.to_owned()),
        (SHOWN_KIND, cut(shown, LONGEST_KEY).to_owned()),
    ];
    let pairs = pairs.into_iter().map(|(key, value)| (key.to_owned(), value));
    let kinds = machine.kinds().iter().flat_map(|kind| {
        let name = cut(machine.string(kind.name), LONGEST_KEY);
        let period = if kind.period > 1 { kind.period.to_string() } else { String::new() };
        [(format!("{UNIT_OF}{name}"), kind.unit.name().to_owned()), (format!("{PERIOD_OF}{name}"), period)]
    });
    let mut known = KeySet::default();
    let told = pairs.chain(kinds).filter(|(_, value)| !value.is_empty());
    told.filter(|(key, _)| known.insert(key.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guids_have_their_first_parts_lowest_byte_first() {
        let guid = |text: &str| -> Vec<u8> {
            let parts: Vec<Vec<u8>> = text
                .split('-')
                .map(|part| {
                    (0..part.len())
                        .step_by(2)
                        .map(|at| u8::from_str_radix(&part[at..at + 2], 16).unwrap())
                        .collect()
                })
                .collect();
            let turned = parts.iter().take(3).flat_map(|part| part.iter().rev());
            turned.chain(parts.iter().skip(3).flatten()).copied().collect()
        };
        assert_eq!(guid("8c107b6c-79f8-5231-4de6-2a0e20a3f562"), SYSTEM.guid);
        assert_eq!(guid("bc5e5d63-9799-5873-33d9-fba8316cef71"), EVENTS.guid);
    }
}
