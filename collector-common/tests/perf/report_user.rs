//! What `perf report -D` prints of a record that `perf` itself made, printed from our reading of it.
//!
//! The formats are those of `tools/perf/util/event.c`, `header.c`, `stat.c`, `tsc.c` and `auxtrace.c` of Linux 6.1.

use collector_common::perf::RecordKind;
use collector_common::perf::file::{AuxtraceError, CpuMap, EventUpdate, TimeConv, Update, UserRecord};

use crate::report::hex;

/// The name of a type as `perf` prints it, of those that are compared.
pub(crate) fn name(kind: RecordKind) -> Option<&'static str> {
    Some(match kind {
        RecordKind::HEADER_ATTR => "ATTR",
        RecordKind::HEADER_TRACING_DATA => "TRACING_DATA",
        RecordKind::HEADER_BUILD_ID => "BUILD_ID",
        RecordKind::FINISHED_ROUND => "FINISHED_ROUND",
        RecordKind::ID_INDEX => "ID_INDEX",
        RecordKind::AUXTRACE_INFO => "AUXTRACE_INFO",
        RecordKind::AUXTRACE => "AUXTRACE",
        RecordKind::AUXTRACE_ERROR => "AUXTRACE_ERROR",
        RecordKind::THREAD_MAP => "THREAD_MAP",
        RecordKind::CPU_MAP => "CPU_MAP",
        RecordKind::STAT_CONFIG => "STAT_CONFIG",
        RecordKind::STAT => "STAT",
        RecordKind::STAT_ROUND => "STAT_ROUND",
        RecordKind::EVENT_UPDATE => "EVENT_UPDATE",
        RecordKind::TIME_CONV => "TIME_CONV",
        RecordKind::HEADER_FEATURE => "FEATURE",
        RecordKind::FINISHED_INIT => "FINISHED_INIT",
        _ => return None,
    })
}

/// Whether more than one line is printed of it.
pub(crate) fn has_lines(kind: &str) -> bool {
    ["ID_INDEX", "STAT_CONFIG", "STAT", "STAT_ROUND", "EVENT_UPDATE", "TIME_CONV"].contains(&kind)
}

/// The lines, from behind the record's name on; `None` for a record of which `perf` prints nothing that can be compared.
pub(crate) fn lines(record: &UserRecord<'_>) -> Option<Vec<String>> {
    let lines = match record {
        UserRecord::IdIndex(index) => {
            let entries: Vec<_> = index.iter().collect();
            let lines = entries.iter().map(|entry| {
                let guest = entry.guest.filter(|(pid, _)| *pid != 0);
                let guest =
                    guest.map_or(String::new(), |(pid, cpu)| format!("  machine_pid: {pid}  vcpu: {cpu}"));
                let (id, index, cpu, tid) = (entry.id, entry.index, entry.cpu, entry.tid);
                format!(" ... id: {id}  idx: {index}  cpu: {cpu}  tid: {tid}{guest}")
            });
            std::iter::once(format!(" nr: {}", entries.len())).chain(lines).collect()
        }
        UserRecord::AuxtraceInfo(info) => vec![format!(" type: {}", info.kind)],
        UserRecord::Auxtrace(trace) => {
            let (size, offset, reference) = (hex(trace.size), hex(trace.offset), hex(trace.reference));
            let (index, tid, cpu) = (trace.index, trace.tid, trace.cpu);
            let place = format!("idx: {index}  tid: {tid}  cpu: {cpu}");
            vec![format!(" size: {size}  offset: {offset}  ref: {reference}  {place}")]
        }
        UserRecord::ThreadMap(threads) => {
            let threads: Vec<_> = threads.iter().map(|thread| thread.tid.to_string()).collect();
            let which = if threads.len() > 1 { "threads" } else { "thread" };
            vec![format!(" nr: {} {which}: {}", threads.len(), threads.join(", "))]
        }
        UserRecord::CpuMap(cpus) => vec![format!(": {}", list(cpus))],
        UserRecord::StatConfig(config) => {
            let terms = config.iter().map(|(term, value)| match term {
                0 => format!("... aggr_mode {value}"),
                1 => format!("... interval  {value}"),
                2 => format!("... scale     {value}"),
                _ => panic!("{config:?}"),
            });
            // It takes them into its own order.
            let mut lines: Vec<_> = std::iter::once(String::new()).chain(terms).collect();
            lines[1..].sort_by_key(|line| ["... a", "... s", "... i"].map(|begin| !line.starts_with(begin)));
            lines
        }
        UserRecord::Stat(stat) => vec![
            String::new(),
            format!("... id {}, cpu {}, thread {}", stat.id, stat.cpu, stat.thread),
            format!("... value {}, enabled {}, running {}", stat.value, stat.enabled, stat.running),
        ],
        UserRecord::StatRound(round) => {
            let kind = if round.kind == 1 { "FINAL" } else { "INTERVAL" };
            vec![String::new(), format!("... time {}, type {kind}", round.time.0)]
        }
        UserRecord::EventUpdate(update) => update_lines(update),
        UserRecord::TimeConv(conversion) => conversion_lines(conversion),
        _ => return None,
    };
    Some(lines)
}

fn update_lines(update: &EventUpdate<'_>) -> Vec<String> {
    let what = match update.update {
        Update::Unit(text) => format!("... unit:  {}", text.to_string_lossy()),
        Update::Scale(scale) => format!("... scale: {scale:.6}"),
        Update::Name(text) => format!("... name:  {}", text.to_string_lossy()),
        Update::Cpus(cpus) => format!("... {}", list(&cpus)),
    };
    vec![String::new(), format!("... id:    {}", update.id), what]
}

fn conversion_lines(conversion: &TimeConv) -> Vec<String> {
    let mut lines = vec![
        String::new(),
        format!("... Time Shift      {}", conversion.shift),
        format!("... Time Muliplier  {}", conversion.multiplier),
        format!("... Time Zero       {}", conversion.zero),
    ];
    if let Some(cycles) = conversion.cycles {
        lines.extend([
            format!("... Time Cycles     {}", cycles.cycles),
            format!("... Time Mask       {}", hex(cycles.mask)),
            format!("... Cap Time Zero   {}", u8::from(cycles.has_zero)),
            format!("... Cap Time Short  {}", u8::from(cycles.is_short)),
        ]);
    }
    lines
}

/// What `perf script` prints of it.
pub(crate) fn error_line(error: &AuxtraceError<'_>) -> String {
    let time = error
        .time
        .map_or("0".into(), |time| format!("{}.{:09}", time.0 / 1_000_000_000, time.0 % 1_000_000_000));
    let (cpu, pid, tid, code) = (error.cpu, error.pid, error.tid, error.code);
    let guest = error.guest.filter(|guest| guest.pid.0 != 0);
    let guest = guest.map_or(String::new(), |guest| format!(" machine_pid {} vcpu {}", guest.pid, guest.cpu));
    let (ip, message) = (hex(error.ip.0), error.message.to_string_lossy());
    let place = format!("cpu {cpu} pid {pid} tid {tid} ip {ip} code {code}");
    format!(" instruction trace error type {} time {time}{guest} {place}: {message}", error.kind)
}

/// CPUs as `perf` prints them: `0-3,8`, with -1 for any.
fn list(cpus: &CpuMap<'_>) -> String {
    let mut all: Vec<_> = cpus.iter().map(i64::from).chain(cpus.has_any().then_some(-1)).collect();
    all.sort_unstable();
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for cpu in all {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == cpu && cpu > 0 => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let runs = runs
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    runs.collect::<Vec<_>>().join(",")
}
