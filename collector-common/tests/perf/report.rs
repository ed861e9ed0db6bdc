//! What `perf report -D` prints of a record, printed from our reading of it.
//!
//! The formats are those of `tools/perf/util/event.c` and `session.c` of Linux 6.1.

use std::fmt::Write;

use collector_common::perf::file::FileEvent;
use collector_common::perf::{
    AuxFlags, BranchStack, ChainEntry, Counters, MappedFile, Misc, ParseConfig, Parsed, Read, ReadFormat,
    ReadValues, Record, RecordKind, Registers, RegistersAbi, Sample, SampleType, TextPoke,
};

use crate::report_user;

/// As C prints `%#lx`: zero has no prefix.
pub(crate) fn hex(value: u64) -> String {
    if value == 0 { "0".into() } else { format!("{value:#x}") }
}

/// The lines, from behind the record's name on, given its event; `None` for a record of which `perf` prints nothing that can be compared.
pub(crate) fn lines(parsed: &Parsed<'_>, event: &FileEvent) -> Option<Vec<String>> {
    let misc = parsed.misc;
    let has = |bit| misc.contains(bit);
    let in_or_out = match (has(Misc::SWITCH_OUT), has(Misc::SWITCH_OUT_PREEMPT)) {
        (false, _) => "IN",
        (true, false) => "OUT",
        (true, true) => "OUT preempt",
    };
    let line = match &parsed.record {
        Record::Mmap(mmap) => {
            let kind = if has(Misc::MMAP_DATA) { 'r' } else { 'x' };
            let (start, len, offset) = (hex(mmap.start.0), hex(mmap.len), hex(mmap.file_offset.0));
            let (pid, tid) = (mmap.pid.0 as i32, mmap.tid.0 as i32);
            format!(" {pid}/{tid}: [{start}({len}) @ {offset}]: {kind} {}", mmap.path.to_string_lossy())
        }
        Record::Mmap2(mmap) => {
            let (start, len, offset) = (hex(mmap.start.0), hex(mmap.len), hex(mmap.file_offset.0));
            let file = match mmap.file {
                MappedFile::Inode { major, minor, inode, generation } => {
                    format!("{major:02x}:{minor:02x} {inode} {generation}")
                }
                MappedFile::BuildId(id) => format!("<{}>", id.unwrap()),
            };
            let bit = |value: u32, bit: u32, set, unset| if value & bit != 0 { set } else { unset };
            let protection: String = [
                bit(mmap.protection, 1, 'r', '-'),
                bit(mmap.protection, 2, 'w', '-'),
                bit(mmap.protection, 4, 'x', '-'),
                bit(mmap.flags, 1, 's', 'p'),
            ]
            .iter()
            .collect();
            let (pid, tid) = (mmap.pid.0 as i32, mmap.tid.0 as i32);
            let path = mmap.path.to_string_lossy();
            format!(" {pid}/{tid}: [{start}({len}) @ {offset} {file}]: {protection} {path}")
        }
        Record::Comm(comm) => {
            let exec = if has(Misc::COMM_EXEC) { " exec" } else { "" };
            format!("{exec}: {}:{}/{}", comm.name.to_string_lossy(), comm.pid, comm.tid)
        }
        Record::Fork(task) | Record::Exit(task) => {
            let [pid, tid] = [task.pid.0, task.tid.0].map(|id| id as i32);
            let [parent_pid, parent_tid] = [task.parent_pid.0, task.parent_tid.0].map(|id| id as i32);
            format!("({pid}:{tid}):({parent_pid}:{parent_tid})")
        }
        Record::Switch(_) => format!(" {in_or_out}"),
        Record::SwitchCpuWide(switch) => {
            let which = if has(Misc::SWITCH_OUT) { "next" } else { "prev" };
            let padding = " ".repeat(11 - in_or_out.len());
            let (pid, tid) = (switch.other_pid.0 as i32, switch.other_tid.0 as i32);
            format!(" {in_or_out}{padding}  {which} pid/tid: {pid:>5}/{tid:<5}").trim_end().to_owned()
        }
        Record::Namespaces(namespaces) => {
            let all: Vec<_> = namespaces.iter().collect();
            let mut line = format!(" {}/{} - nr_namespaces: {}", namespaces.pid, namespaces.tid, all.len());
            let names = ["net", "uts", "ipc", "pid", "user", "mnt", "cgroup"];
            for (index, (namespace, name)) in all.iter().zip(names).enumerate() {
                write!(line, " {index}/{name}: {}/{}", namespace.device, hex(namespace.inode)).unwrap();
            }
            line
        }
        Record::Cgroup(cgroup) => format!(" cgroup: {} {}", cgroup.id, cgroup.path.to_string_lossy()),
        Record::Ksymbol(symbol) => {
            let (start, flags) = (symbol.start.0, symbol.flags.0);
            let name = symbol.name.to_string_lossy();
            format!(" addr {start:x} len {} type {} flags {flags:#x} name {name}", symbol.len, symbol.kind)
        }
        Record::BpfEvent(event) => format!(" type {}, flags {}, id {}", event.kind, event.flags, event.id),
        Record::Lost(lost) => format!(": id:{}: lost:{}", lost.id, lost.count),
        Record::LostSamples(lost) => {
            let id = parsed.sample_id.identifier.or(parsed.sample_id.id);
            format!(": id:{}: lost samples :{}", id.unwrap_or(u64::MAX), lost.count)
        }
        Record::Throttle(throttling) | Record::Unthrottle(throttling) => {
            format!(" {:x} {:x} {:x}", throttling.time.0, throttling.id, throttling.stream_id)
        }
        Record::Aux(aux) => {
            let (offset, size, flags) = (hex(aux.offset), hex(aux.size), hex(aux.flags.0));
            let letters: String =
                [(AuxFlags::TRUNCATED, 'T'), (AuxFlags::OVERWRITE, 'O'), (AuxFlags::PARTIAL, 'P')]
                    .iter()
                    .filter(|(flag, _)| aux.flags.contains(*flag))
                    .map(|(_, letter)| letter)
                    .collect();
            format!(" offset: {offset} size: {size} flags: {flags} [{letters}]")
        }
        Record::ItraceStart(start) => format!(" pid: {} tid: {}", start.pid, start.tid),
        Record::AuxOutputHwId(output) => format!(" hw_id: {}", hex(output.hw_id)),
        Record::TextPoke(poke) => return Some(text_poke_lines(poke)),
        Record::Read(read) => return Some(counter_lines(read, event.name.as_deref()?)),
        Record::Sample(sample) => return Some(sample_lines(sample, misc, event)),
        _ => return None,
    };
    Some(vec![line])
}

/// Of code that is known `perf` says before its length which it is; here it is of no kernel that it knows.
fn text_poke_lines(poke: &TextPoke<'_>) -> Vec<String> {
    let first = format!(" {:x}  old len {} new len {}", poke.address.0, poke.old.len(), poke.new.len());
    let codes = [("Old", poke.old), ("New", poke.new)].into_iter().filter(|(_, code)| !code.is_empty());
    let codes = codes.map(|(name, code)| {
        let bytes = code.to_cow().iter().fold(String::new(), |bytes, byte| format!("{bytes} {byte:02x}"));
        format!("{name} bytes:{bytes}")
    });
    std::iter::once(first).chain(codes).collect()
}

fn branch_lines(branches: &BranchStack<'_>, lines: &mut Vec<String>) {
    lines.push(format!("... branch stack: nr:{}", branches.iter().count()));
    for (index, branch) in branches.iter().enumerate() {
        let flags = branch.flags;
        let letter = |is_set, letter| if is_set { letter } else { ' ' };
        let letters: String = [
            letter(flags.is_mispredicted(), 'M'),
            letter(flags.is_predicted(), 'P'),
            letter(flags.is_abort(), 'A'),
            letter(flags.is_in_transaction(), 'T'),
        ]
        .iter()
        .collect();
        let (from, to) = (branch.from.0, branch.to.0);
        lines
            .push(format!("..... {index:2}: {from:016x} -> {to:016x} {} cycles {letters} 0", flags.cycles()));
    }
}

/// What is not asked for is not printed.
fn counter_lines(read: &Read<'_>, event: &str) -> Vec<String> {
    let Counters::One(value) = read.values.counters else { panic!("{read:?}") };
    let first = format!(": {} {} {event} {}", read.pid, read.tid, value.value);
    let numbers = [
        ("time enabled ", read.values.time_enabled),
        ("time running ", read.values.time_running),
        ("id           ", value.id),
        ("lost         ", value.lost),
    ];
    let others = numbers.iter().filter_map(|(name, number)| Some(format!("... {name}: {}", (*number)?)));
    std::iter::once(first).chain(others).collect()
}

fn sample_lines(sample: &Sample<'_>, misc: Misc, event: &FileEvent) -> Vec<String> {
    let config = &event.config;
    let mut lines = vec![format!(
        "(IP, {:#x}): {}/{}: {} period: {} addr: {}",
        misc.0,
        // A task that is ending has lost its numbers: both are -1.
        sample.pid.unwrap().0 as i32,
        sample.tid.unwrap().0 as i32,
        hex(sample.ip.unwrap().0),
        sample.period.unwrap_or(event.attr.sample_period),
        hex(sample.addr.unwrap_or_default().0),
    )];
    if let Some(chain) = &sample.callchain {
        lines.push(format!("... FP chain: nr:{}", chain.words.len()));
        for (index, entry) in chain.iter().enumerate() {
            let number = match entry {
                ChainEntry::Context(context) => context.0,
                ChainEntry::Address(address) => address.0,
                ChainEntry::Cookie(cookie) => cookie,
            };
            lines.push(format!("..... {index:2}: {number:016x}"));
        }
    }
    if let Some(branches) = &sample.branch_stack {
        branch_lines(branches, &mut lines);
    }
    if let Some(registers) = &sample.user_registers {
        register_lines("user", registers, &mut lines);
    }
    if let Some(registers) = &sample.interrupted_registers {
        register_lines("intr", registers, &mut lines);
    }
    if let Some(stack) = &sample.user_stack {
        lines.push(format!(
            "... ustack: size {}, offset {:#x}",
            stack.dyn_size,
            stack_offset(sample, config)
        ));
    }
    if let Some(weight) = sample.weight {
        let mut line = format!("... weight: {}", weight.0);
        if config.sample_type.contains(SampleType::WEIGHT_STRUCT) {
            line = format!("... weight: {},0x{:x},0x{:x}", weight.var1(), weight.var2(), weight.var3());
        }
        lines.push(line);
    }
    if let Some(source) = sample.data_source {
        lines.push(format!(" . data_src: {:#x}", source.0));
    }
    if let Some(address) = sample.phys_addr {
        lines.push(format!(" .. phys_addr: {address:#x}"));
    }
    if let Some(size) = sample.data_page_size {
        lines.push(format!(" .. data page size: {}", page_size(size)));
    }
    if let Some(size) = sample.code_page_size {
        lines.push(format!(" .. code page size: {}", page_size(size)));
    }
    if let Some(transaction) = sample.transaction {
        lines.push(format!("... transaction: {:x}", transaction.0));
    }
    if let Some(values) = &sample.read {
        read_lines(values, config, &mut lines);
    }
    lines
}

/// `perf` prints where in the record the stack is; here it is what comes before it.
fn stack_offset(sample: &Sample<'_>, config: &ParseConfig) -> usize {
    let words_before = SampleType::IDENTIFIER
        | SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::ADDR
        | SampleType::ID
        | SampleType::STREAM_ID
        | SampleType::CPU
        | SampleType::PERIOD;
    let words = config.sample_type.and(words_before).0.count_ones() as usize;
    let chain = sample.callchain.map_or(0, |chain| 1 + chain.words.len());
    let registers = sample.user_registers.map_or(0, |registers| 1 + registers.iter().count());
    // Behind the record's header; the stack's size is taken to be its own.
    8 + (words + chain + registers) * 8
}

fn register_lines(which: &str, registers: &Registers<'_>, lines: &mut Vec<String>) {
    /// `arch/x86/include/uapi/asm/perf_regs.h`
    const NAMES: [&str; 24] = [
        "AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP", "IP", "FLAGS", "CS", "SS", "DS", "ES", "FS", "GS",
        "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15",
    ];
    let abi = match registers.abi {
        RegistersAbi::BITS_64 => "64-bit",
        RegistersAbi::BITS_32 => "32-bit",
        _ => return,
    };
    lines.push(format!("... {which} regs: mask {:#x} ABI {abi}", registers.mask()));
    for (bit, value) in registers.iter() {
        assert_eq!(registers.get(bit), Some(value));
        lines.push(format!(".... {:5} 0x{value:016x}", NAMES[bit as usize]));
    }
}

fn page_size(size: u64) -> String {
    match size {
        0 => "N/A".into(),
        _ if size >= 1 << 30 => format!("{}G", size >> 30),
        _ if size >= 1 << 20 => format!("{}M", size >> 20),
        _ => format!("{}K", size >> 10),
    }
}

fn read_lines(values: &ReadValues<'_>, config: &ParseConfig, lines: &mut Vec<String>) {
    lines.push("... sample_read:".into());
    if let Some(time) = values.time_enabled {
        lines.push(format!("...... time enabled {time:016x}"));
    }
    if let Some(time) = values.time_running {
        lines.push(format!("...... time running {time:016x}"));
    }
    if let Counters::Group(group) = &values.counters {
        lines.push(format!(".... group nr {}", group.len()));
    }
    for value in values.iter() {
        let mut line = format!("..... id {:016x}, value {:016x}", value.id.unwrap(), value.value);
        if config.read_format.contains(ReadFormat::LOST) {
            write!(line, ", lost {}", value.lost.unwrap()).unwrap();
        }
        lines.push(line);
    }
}

/// A record as `perf` printed it.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) time: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) kind: String,
    pub(crate) lines: Vec<String>,
}

/// The records in the text, in its order; of each the lines that [`lines`] prints as well.
pub(crate) fn printed(text: &str) -> Vec<Printed> {
    const BEGINNINGS: [&str; 9] = [
        "... branch stack",
        "... transaction",
        "... FP chain",
        "....",
        "... user regs",
        "... intr regs",
        "... ustack",
        "... weight",
        "... sample_read",
    ];
    const BEGINNINGS_OF_NUMBERS: [&str; 2] = [" . data_src", " .. "];
    let mut records: Vec<Printed> = Vec::new();
    let mut raw = Vec::new();
    for line in text.lines() {
        if let Some(mut record) = head(line) {
            if ["THROTTLE", "UNTHROTTLE"].contains(&record.kind.as_str()) {
                record.lines = vec![words_behind_the_header(&raw)];
            }
            records.push(record);
            continue;
        }
        if line.starts_with(". ... raw event") {
            raw.clear();
        }
        raw.extend(bytes_of(line).into_iter().flatten());
        let Some(record) = records.last_mut() else { continue };
        if record.kind == "NAMESPACES" && line.starts_with('\t') {
            let names = line.trim().trim_matches(['[', ']']);
            for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                write!(record.lines[0], " {name}").unwrap();
            }
        }
        if record.kind == "TEXT_POKE" && ["Old bytes:", "New bytes:"].iter().any(|of| line.contains(of)) {
            record.lines.push(line.trim().to_owned());
        }
        let begins = |with: &&str| line.starts_with(with);
        if report_user::has_lines(&record.kind) || record.kind == "READ" {
            if ["... ", " ... "].iter().any(begins) {
                record.lines.push(line.trim_end().to_owned());
            }
        } else if BEGINNINGS.iter().any(begins) || BEGINNINGS_OF_NUMBERS.iter().any(begins) {
            record.lines.push(line.trim_end().to_owned());
        }
    }
    records
}

/// `[CPU ]TIME OFFSET [SIZE]: PERF_RECORD_KIND...`
fn head(line: &str) -> Option<Printed> {
    let (place, record) = line.split_once("]: PERF_RECORD_")?;
    let (place, size) = place.split_once(" [0x")?;
    let mut words = place.split(' ').rev();
    let offset = words.next()?.trim_start_matches("0x");
    // What has no time is printed with one of 0 or of -1.
    let time = words.next()?.parse::<i64>().ok()?.max(0) as u64;
    let end = record.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let (kind, rest) = record.split_at(end.unwrap_or(record.len()));
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    Some(Printed {
        time,
        offset: number(offset)?,
        size: number(size)?,
        kind: kind.to_owned(),
        // So it says of what its reports leave out.
        lines: vec![rest.trim_end().trim_end_matches(": unhandled!").to_owned()],
    })
}

/// The bytes in a line of a dump: `.  0010:  49 00 00 ...  text`
fn bytes_of(line: &str) -> Option<Vec<u8>> {
    let (offset, rest) = line.strip_prefix(".  ")?.split_once(":  ")?;
    u32::from_str_radix(offset, 16).ok()?;
    let bytes = rest.get(..16 * 3).unwrap_or(rest).split_ascii_whitespace();
    bytes.map(|byte| u8::from_str_radix(byte, 16).ok()).collect()
}

/// Of these records `perf` prints no fields: its dump has them.
fn words_behind_the_header(raw: &[u8]) -> String {
    let words = raw[8..32].chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    words.fold(String::new(), |line, word| format!("{line} {word:x}"))
}

/// The name of a type as `perf` prints it, of those that it prints more of.
pub(crate) fn name(kind: RecordKind) -> Option<&'static str> {
    Some(match kind {
        RecordKind::MMAP => "MMAP",
        RecordKind::COMM => "COMM",
        RecordKind::EXIT => "EXIT",
        RecordKind::FORK => "FORK",
        RecordKind::SAMPLE => "SAMPLE",
        RecordKind::MMAP2 => "MMAP2",
        RecordKind::SWITCH => "SWITCH",
        RecordKind::SWITCH_CPU_WIDE => "SWITCH_CPU_WIDE",
        RecordKind::NAMESPACES => "NAMESPACES",
        RecordKind::KSYMBOL => "KSYMBOL",
        RecordKind::BPF_EVENT => "BPF_EVENT",
        RecordKind::CGROUP => "CGROUP",
        RecordKind::LOST => "LOST",
        RecordKind::LOST_SAMPLES => "LOST_SAMPLES",
        RecordKind::THROTTLE => "THROTTLE",
        RecordKind::UNTHROTTLE => "UNTHROTTLE",
        RecordKind::READ => "READ",
        RecordKind::AUX => "AUX",
        RecordKind::ITRACE_START => "ITRACE_START",
        RecordKind::AUX_OUTPUT_HW_ID => "AUX_OUTPUT_HW_ID",
        RecordKind::TEXT_POKE => "TEXT_POKE",
        _ => return report_user::name(kind),
    })
}
