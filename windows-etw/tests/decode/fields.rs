//! Values of fields, as `PerfView` prints them: numbers with commas, addresses as `0x0000abcd`, text cut behind 20 characters.

use std::collections::BTreeMap;

use collector_common::event::{EventData, Value};
use windows_etw::decode::described::Schemas;
use windows_etw::decode::state::NtPaths;

use crate::baseline::events;
use crate::data::{baseline, open};

/// `name=value` of an `EVENT` line, behind what all events have.
fn fields(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let own =
        line.split_once("DataLen=").and_then(|(_, own)| own.split_once("; ")).map_or("", |(_, own)| own);
    own.split("; ").filter_map(|field| field.split_once('='))
}

/// What `PerfView` calls a field of another name.
const RENAMED: [(&str, &str); 11] = [
    ("ProcessID", "ProcessId"),
    ("ParentID", "ParentId"),
    ("SessionID", "SessionId"),
    ("PDBFileName", "PdbFileName"),
    ("MemoryCount", "PageFaultCount"),
    ("FileKey", "FileObject"),
    ("SessionName", "SessionNameString"),
    ("LogFileName", "LogFileNameString"),
    ("PageDirectoryBase", "DirectoryTableBase"),
    ("Length", "RegionSize"),
    ("SampleSource", "Source"),
];

/// What `PerfView` prints of something else: of its own process where the payload has another, and without the bits that it prints as
/// another field.
const OTHERS: [(&str, &str); 3] =
    [("ImageID", "ProcessID"), ("SystemConfig/Services", "ProcessName"), ("Create", "CreateOptions")];

/// Whether a value is printed so; none where that can't be told: flags and kinds by name, and times of day.
fn is_printed(value: &Value<'_>, printed: &str, paths: &NtPaths) -> Option<bool> {
    let plain = printed.replace(',', "");
    let is_text = |text: &str| match printed.strip_suffix("...") {
        Some(start) => text.starts_with(start),
        None => text == printed,
    };
    let text = |text: String| is_text(&text) || is_text(&paths.to_dos(&text));
    Some(match value {
        // A single letter is a number to it.
        Value::Text(value) => {
            text(value.to_string()) || matches!(value.as_bytes(), [letter] if plain == letter.to_string())
        }
        Value::Utf16(value) => text(value.to_string()),
        Value::Guid(guid) => text(guid.to_string()),
        Value::Ipv6(address) => text(address.to_string()),
        Value::Ipv4(address) => text(address.to_string()),
        Value::Bool(value) => plain.to_lowercase() == value.to_string(),
        Value::Pointer(value) | Value::Unsigned(value) => {
            let number = match plain.strip_prefix("0x") {
                Some(hex) => i128::from(u64::from_str_radix(hex, 16).ok()?),
                None => plain.parse::<i128>().ok()?,
            };
            // It prints what has no sign with one.
            [0, 1 << 32, 1 << 64].iter().any(|turn| number + turn == i128::from(*value))
        }
        Value::Signed(value) => plain.parse::<i64>().ok()? == *value,
        // `21/09/09 14:59:35.79...`
        Value::FileTime(time) => {
            let own = time.to_string().replace('-', "/").replace('T', " ");
            own.get(2..)?.starts_with(printed.strip_suffix("...")?)
        }
        Value::Struct(time) => {
            let number = |name| time.format().field_ref(name).map(|field| time.try_get_u16(field).unwrap());
            let date = format!("{:02}/{:02}/{:02}", number("year")? % 100, number("month")?, number("day")?);
            let day = format!("{:02}:{:02}:{:02}", number("hour")?, number("minute")?, number("second")?);
            printed.starts_with(&format!("{date} {day}."))
        }
        Value::Float64(value) => (plain.parse::<f64>().ok()? - value).abs() < 0.001,
        _ => return None,
    })
}

#[test]
fn values_are_those_that_perfview_prints() {
    for (file, least) in [("net.4.5.2.x64.etl", 2054), ("gcevents.etl", 194), ("primitive-types.etl", 79)] {
        let Some(mut etl) = open(file) else { return };
        let clock = etl.header().clock;
        let baseline = baseline(file);
        let mut listed: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for (event, line) in events(&baseline).zip(baseline.lines().filter(|line| line.starts_with("EVENT")))
        {
            listed.entry(event.name).or_default().push((event, line));
        }
        let (mut schemas, mut paths) = (Schemas::default(), NtPaths::default());
        let (mut compared, mut by_name, mut wrong) = (0, BTreeMap::new(), Vec::new());
        while let Some(record) = etl.next_record().unwrap() {
            schemas.learn(&record).unwrap();
            if let Ok(Some(event)) = windows_etw::decode::kernel::KernelEvent::decode(&record) {
                paths.learn(&event);
            }
            let Some(described) = schemas.describe(&record).unwrap() else { continue };
            let name = format!("{}/{}", described.provider, described.name);
            let Some(expected) = listed.get_mut(name.as_str()) else { continue };
            let nanos = clock.nanos(record.ticks);
            let place = expected.iter().position(|(event, _)| {
                (event.nanos - nanos).abs() <= 500
                    && event.cpu == record.cpu
                    && event.length == record.payload.len()
            });
            let Some((_, line)) = place.map(|place| expected.remove(place)) else { continue };
            let data = EventData::new(record.payload, record.payload, &described.format);
            for (name, printed) in fields(line) {
                let name = name.trim();
                if OTHERS.contains(&(&*described.name, name)) {
                    continue;
                }
                let own = RENAMED.iter().find(|(theirs, _)| *theirs == name).map(|(_, own)| *own);
                let names = [Some(name), own];
                let field = names.iter().flatten().find_map(|name| {
                    described.format.fields().iter().position(|field| field.name().eq_ignore_ascii_case(name))
                });
                let Some(field) = field.and_then(|place| described.format.field_refs().nth(place)) else {
                    continue;
                };
                let value = data.value(field).unwrap();
                match is_printed(&value, printed, &paths) {
                    Some(true) => {
                        compared += 1;
                        *by_name.entry(described.name.clone()).or_insert(0) += 1;
                    }
                    Some(false) => {
                        wrong.push(format!("{} {name}: {value:?} printed {printed}", described.name));
                    }
                    None => {}
                }
            }
        }
        eprintln!("{file}: {compared} values of {} kinds of events are as printed", by_name.len());
        assert!(wrong.is_empty(), "{file}: {wrong:#?}");
        assert!(compared >= least, "{file}: {compared}");
    }
}
