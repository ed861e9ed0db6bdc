//! The text that defines a probe: `p:GROUP/EVENT PATH:0xOFFSET NAME=FETCHARG ...`, a line for each location.
//! Source: `Documentation/trace/uprobetracer.rst`, `kprobetrace.rst`.

use std::fmt::Write as _;

use super::spec::Moment;

/// As many calls of the kernel's functions as return probes keep at once (`KRETPROBE_MAXACTIVE_MAX`). Of further ones the return is
/// not met. The kernel's own number is 10, or two for each CPU, and each caller that waits in a function keeps one.
const MOST_CALLS: usize = 4096;

/// Longest name of an event: `MAX_EVENT_NAME_LEN` is 64, with a NUL.
const LONGEST_NAME: usize = 40;

/// One place where the probe is hit, and what is fetched there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Location {
    /// `PATH:0xOFFSET`, with the semaphore behind it, or the function of the kernel.
    pub(super) place: String,
    /// Name and fetch argument of each.
    pub(super) fetched: Vec<(String, String)>,
}

impl Location {
    /// Names and types: the kernel wants the same of all locations of an event.
    fn signature<'a>(&'a self) -> Vec<(&'a str, &'a str)> {
        let kind = |fetch: &'a str| fetch.rsplit(':').next().unwrap_or(fetch);
        self.fetched.iter().map(|(name, fetch)| (name.as_str(), kind(fetch))).collect()
    }
}

/// Locations that can be one event are put together, in the order of their first.
pub(super) fn group(locations: Vec<Location>) -> Vec<Vec<Location>> {
    let mut groups: Vec<Vec<Location>> = Vec::new();
    for location in locations {
        let fits = |group: &&mut Vec<Location>| {
            group.first().is_some_and(|first| first.signature() == location.signature())
        };
        match groups.iter_mut().find(fits) {
            Some(group) if group.iter().any(|other| other.place == location.place) => {}
            Some(group) => group.push(location),
            None => groups.push(vec![location]),
        }
    }
    groups
}

/// How many calls at once a return probe has room for, as its definition tells it: of the kernel, its share of those of all places of an event.
/// Where that were few, and with programs, whose calls are noted by thread, the kernel is to see to it.
pub(super) fn calls_at_once(moment: Moment, is_of_kernel: bool, locations: usize) -> Option<usize> {
    const FEW: usize = 64;
    let is_told = moment == Moment::Return && is_of_kernel;
    is_told.then(|| MOST_CALLS / locations.max(1)).filter(|calls| *calls >= FEW)
}

/// A location's line.
pub(super) fn line(
    moment: Moment,
    calls_at_once: Option<usize>,
    group: &str,
    event: &str,
    location: &Location,
) -> String {
    let mut line = match (moment, calls_at_once) {
        (Moment::Entry, _) => "p".to_owned(),
        (Moment::Return, None) => "r".to_owned(),
        (Moment::Return, Some(calls)) => format!("r{calls}"),
    };
    let _ = write!(line, ":{group}/{event} {}", location.place);
    for (name, fetch) in &location.fetched {
        let _ = write!(line, " {name}={fetch}");
    }
    line.push('\n');
    line
}

/// A name that the kernel takes, of what people call it.
pub(super) fn event_name(name: &str) -> String {
    let kept = name.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '_' });
    let kept: String = kept.take(LONGEST_NAME).collect();
    if kept.starts_with(|first: char| first.is_ascii_digit()) { format!("_{kept}") } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(place: &str, fetched: &[(&str, &str)]) -> Location {
        let own = |(name, fetch): &(&str, &str)| ((*name).to_owned(), (*fetch).to_owned());
        Location { place: place.to_owned(), fetched: fetched.iter().map(own).collect() }
    }

    #[test]
    fn lines_are_those_of_the_kernels_documentation() {
        let probe = location("/bin/bash:0x4245c0", &[("a", "%di:u64"), ("b", "+0(%si):string")]);
        assert_eq!(
            line(Moment::Entry, None, "collector_1_0", "f", &probe),
            "p:collector_1_0/f /bin/bash:0x4245c0 a=%di:u64 b=+0(%si):string\n"
        );
        let probe = location("do_sys_open", &[("ret", "$retval:s64")]);
        let of_return = |calls| line(Moment::Return, calls, "g", "e", &probe);
        assert_eq!(of_return(None), "r:g/e do_sys_open ret=$retval:s64\n");
        assert_eq!(of_return(Some(4096)), "r4096:g/e do_sys_open ret=$retval:s64\n");
    }

    #[test]
    fn places_of_one_event_share_the_room_for_calls() {
        let of_kernel = |locations| calls_at_once(Moment::Return, true, locations);
        assert_eq!([1, 2, 64].map(of_kernel), [Some(4096), Some(2048), Some(64)]);
        assert_eq!([0, 65, 1000].map(of_kernel), [Some(4096), None, None]);
        assert_eq!(calls_at_once(Moment::Entry, true, 1), None);
        assert_eq!(calls_at_once(Moment::Return, false, 1), None);
    }

    #[test]
    fn what_agrees_in_names_and_types_is_one_event() {
        let groups = group(vec![
            location("x:1", &[("arg0", "%di:s32")]),
            location("x:2", &[("arg0", "-8(%bp):s32")]),
            location("x:3", &[("arg0", "%di:u64")]),
            location("x:1", &[("arg0", "%di:s32")]),
        ]);
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(event_name("ns::f*(int)"), "ns__f__int_");
        assert_eq!(event_name("0x12"), "_0x12");
        assert_eq!(event_name(&"é".repeat(100)).len(), LONGEST_NAME);
    }
}
