//! From the events of a file to those of a session.

use std::collections::BTreeMap;

use collector_common::event::{ByteOrder, Event, EventFlags, EventId};
use collector_common::ids::Nanos;
use collector_common::perf::file::{FileEvent, TracepointFormat, tracepoint_formats};
use collector_common::perf::{Attr, AttrFlags};
use collector_common::record::Unit;

use super::hooked::ReplayedEvent;
use crate::longest_name::name as kept;
use crate::records::EventIndex;
use crate::tracefs::parse_format_of;

/// `enum perf_type_id` of `include/uapi/linux/perf_event.h`.
const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_TYPE_TRACEPOINT: u32 = 2;

/// `enum perf_sw_ids`, ibid.
const PERF_COUNT_SW_CPU_CLOCK: u32 = 0;
const PERF_COUNT_SW_TASK_CLOCK: u32 = 1;
const PERF_COUNT_SW_DUMMY: u32 = 9;

/// What can be done about a format that can't be read.
const REMEDY: &str = "copy the file anew, or record again";

/// Formats that can't be read of which each is told.
const MOST_TOLD: usize = 16;

/// Bytes of the formats of all events, of which each is read by itself: one has a few thousand.
const MOST_OF_FORMATS: usize = 32 << 20;

/// What the samples of a file's event are here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Role {
    pub(super) index: EventIndex,
    /// What a sample stands for that does not tell it.
    pub(super) value: u64,
    /// Whether each counts as one, whatever it tells: the time between two ticks is the kind's period.
    pub(super) is_tick: bool,
}

/// All events of a file.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// In the file's order; `None` for one that has no samples.
    pub(super) roles: Vec<Option<Role>>,
    /// The sampling clock's period, if there is such an event.
    pub(super) clock: Option<Nanos>,
    pub(super) hooks: Vec<ReplayedEvent>,
    /// What is wrong with the formats of tracepoints, a line each.
    pub(super) warnings: Vec<String>,
    /// Bytes of formats that were read.
    formats: usize,
    /// Events whose formats were not.
    pub(super) without_format: u64,
}

impl Events {
    /// With the formats of tracepoints that the file carries, whose numbers have this order of bytes.
    pub(super) fn of(events: &[FileEvent], formats: Option<&[u8]>, order: ByteOrder) -> Self {
        let mut all = Self::default();
        let read = formats.map(tracepoint_formats);
        if read == Some(None) {
            all.warnings.push(format!(
                "the formats of tracepoints are cut off or spoilt: their fields are left out, and are bytes; {REMEDY}"
            ));
        }
        let formats = read.flatten().unwrap_or_default();
        let formats: BTreeMap<u64, &TracepointFormat> =
            formats.iter().rev().filter_map(|format| Some((id_of(&format.text)?, format))).collect();
        for event in events {
            let role = all.add(event, &formats, order);
            all.roles.push(role);
        }
        all
    }

    fn add(
        &mut self,
        event: &FileEvent,
        formats: &BTreeMap<u64, &TracepointFormat>,
        order: ByteOrder,
    ) -> Option<Role> {
        let attr = &event.attr;
        if is_software(attr, PERF_COUNT_SW_DUMMY) {
            return None;
        }
        let is_clock =
            is_software(attr, PERF_COUNT_SW_CPU_CLOCK) || is_software(attr, PERF_COUNT_SW_TASK_CLOCK);
        // One that is read with another event's samples alone is no clock.
        if is_clock && attr.sample_period > 0 && self.clock.is_none() {
            self.clock = Some(period_of_clock(attr));
            return Some(Role { index: EventIndex::CLOCK, value: 1, is_tick: true });
        }
        let index = EventIndex::of_hook(u16::try_from(self.hooks.len()).ok()?);
        let format = formats.get(&attr.config).filter(|_| attr.kind == PERF_TYPE_TRACEPOINT);
        let format = format.filter(|format| self.has_room(format.text.len()));
        let told = format.and_then(|format| name_of(format));
        let name = event.name.clone().or(told).unwrap_or_else(|| "event".to_owned());
        let fields = format.map(|format| parse_format_of(&format.text, order));
        let mut hooked = Event::new(EventId(attr.config), kept(&name));
        hooked.flags_mut().set(EventFlags::CALLSTACK, true);
        match fields {
            Some(Ok((_, fields))) => *hooked.format_mut() = fields,
            Some(Err(problem)) if self.warnings.len() < MOST_TOLD => self.warnings.push(format!(
                "the fields of {} are left out, and are bytes, as its format can't be read: {}; {REMEDY}",
                hooked.name(),
                kept(&problem.to_string())
            )),
            Some(Err(_)) if self.warnings.len() == MOST_TOLD => {
                self.warnings
                    .push("nor can the formats of further events, whose data is bytes, too".to_owned());
            }
            Some(Err(_)) | None => {}
        }
        let unit = if is_clock { Unit::Nanoseconds } else { Unit::Count };
        self.hooks.push(ReplayedEvent { event: hooked, unit });
        let has_period = !attr.flags.contains(AttrFlags::FREQ);
        let value = if has_period { attr.sample_period.max(1) } else { 1 };
        Some(Role { index, value, is_tick: false })
    }

    /// Whether there is room for the format of one more event, which is counted where there is none.
    fn has_room(&mut self, bytes: usize) -> bool {
        let has_room = self.formats.saturating_add(bytes) <= MOST_OF_FORMATS;
        if has_room {
            self.formats += bytes;
        } else {
            self.without_format += 1;
        }
        has_room
    }
}

fn is_software(attr: &Attr, id: u32) -> bool {
    attr.kind == PERF_TYPE_SOFTWARE && attr.config == u64::from(id)
}

/// Nanoseconds between two ticks.
fn period_of_clock(attr: &Attr) -> Nanos {
    let of_frequency = || 1_000_000_000 / attr.sample_period.max(1);
    Nanos(if attr.flags.contains(AttrFlags::FREQ) { of_frequency() } else { attr.sample_period })
}

/// The number of a tracepoint's format.
fn id_of(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()
}

/// What the kernel calls a tracepoint.
fn name_of(format: &TracepointFormat) -> Option<String> {
    let name = format.text.lines().find_map(|line| line.strip_prefix("name: "))?;
    Some(format!("{}:{name}", kept(&format.system)))
}

#[cfg(test)]
mod tests {
    use collector_common::perf::ParseConfig;
    use collector_common::perf::file::write_tracepoint_formats;

    use super::*;

    const FORMAT: &str = "name: made_up\nID: 316\nformat:\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
        \tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";

    fn packed(text: &str) -> Vec<u8> {
        let format = TracepointFormat { system: "mine".into(), text: text.to_owned() };
        write_tracepoint_formats("", "", &[format], ByteOrder::Little).unwrap()
    }

    /// Fields of the one event, and what is wrong with its format.
    fn read(formats: &[u8]) -> (usize, String) {
        let attr = Attr { kind: PERF_TYPE_TRACEPOINT, config: 316, sample_period: 1, ..Attr::default() };
        let config = ParseConfig::from(&attr, ByteOrder::Little);
        let event = FileEvent { attr, config, ids: Vec::new(), name: None };
        let events = Events::of(&[event], Some(formats), ByteOrder::Little);
        (events.hooks[0].event.format().fields().len(), events.warnings.concat())
    }

    #[test]
    fn formats_that_are_cut_short_or_spoilt_are_told_of() {
        assert_eq!(read(&packed(FORMAT)), (2, String::new()));
        let cut = FORMAT.find("\tfield:int x").unwrap();
        let (fields, told) = read(&packed(&FORMAT[..cut]));
        assert!(fields == 0 && told.contains("mine:made_up") && told.contains("`print fmt:`"), "{told}");
        let (fields, told) = read(&packed(&FORMAT.replace("offset:8", "offsXX:8")));
        assert!(
            fields == 0 && told.contains("mine:made_up") && told.contains("line 5 is no field"),
            "{told}"
        );
        let whole = packed(FORMAT);
        let (fields, told) = read(&whole[..whole.len() / 2]);
        assert!(fields == 0 && told.starts_with("the formats of tracepoints are cut off"), "{told}");
    }

    const EVENTS: usize = 2000;

    /// So many events of one tracepoint, whose format has this system and is filled up to so many bytes.
    fn events(system: &str, bytes: usize) -> Events {
        let order = ByteOrder::Little;
        let text = "name: made\nID: 7\n\tfield:int all;\toffset:0;\tsize:4;\tsigned:1;\nprint fmt: \"\"\n";
        let text = format!("{text}{}", "#".repeat(bytes));
        let format = TracepointFormat { system: system.into(), text };
        let formats = write_tracepoint_formats("", "", &[format], order).unwrap();
        let attr = Attr { kind: PERF_TYPE_TRACEPOINT, config: 7, sample_period: 1, ..Attr::default() };
        let config = ParseConfig::from(&attr, order);
        let event = FileEvent { attr, config, ids: Vec::new(), name: None };
        Events::of(&vec![event; EVENTS], Some(&formats), order)
    }

    /// Files of megabytes, of which each event has all.
    #[test]
    fn events_of_one_long_format_take_little() {
        let mut all = None;
        // 4 GB with all of the name for each.
        let used = allocation_counter::measure(|| all = Some(events(&"s".repeat(2 << 20), 0)));
        let all = all.unwrap();
        assert!(used.bytes_max < 64 << 20, "{} bytes were held", used.bytes_max);
        let last = &all.hooks[EVENTS - 1].event;
        assert!(last.name().starts_with("sss") && last.name().len() == 4096);
        assert_eq!((last.format().fields().len(), all.without_format), (1, 0));

        let all = events("made", 4 << 20);
        assert_eq!((all.hooks.len(), all.without_format), (EVENTS, EVENTS as u64 - 7));
        let fields = all.hooks.iter().map(|hooked| hooked.event.format().fields().len());
        assert_eq!(fields.sum::<usize>(), 7);
    }
}
