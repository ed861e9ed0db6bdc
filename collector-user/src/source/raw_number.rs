//! Events of the processor by their numbers, as they are written elsewhere: what `perf` takes beside `rNNN` (perf-list(1)), and numbers as
//! manuals have them. In: a name that is no event's. Out: how it is written here.

use super::Hook;

/// Groups of events of the processor, as perf calls them: of Intel's hybrid ones by their kind of core.
const UNITS: [&str; 3] = ["cpu", "cpu_core", "cpu_atom"];

/// What is meant by a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meant {
    /// `rNNN`.
    Event(String),
    /// An event of the processor of which that says more than `rNNN` can.
    More,
}

/// What is meant by a text that is a number of the processor's, as `raw:0x1a8`, `r0x1a8`, `R1a8`, `0x1a8` or `cpu/event=0xa8,umask=0x1/`.
pub(super) fn meant(text: &str) -> Option<Meant> {
    let text = text.trim();
    if Hook::counter(text).is_some() {
        return None;
    }
    let number = if let Some((unit, terms)) = text.split_once('/') {
        if !UNITS.contains(&unit) {
            return None;
        }
        let terms = terms.split_once('/').map_or(terms, |(terms, _)| terms);
        of_terms(terms)
    } else {
        let bare = text.strip_prefix("raw:").or_else(|| text.strip_prefix(['r', 'R']));
        let digits = bare.unwrap_or(text);
        let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
        let number = hexadecimal.unwrap_or(digits);
        // Digits alone may be anything, and letters a name.
        let is_raw = text.starts_with("raw:")
            || hexadecimal.is_some()
            || (bare.is_some() && number.contains(|char: char| char.is_ascii_digit()));
        if !is_raw || number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        u64::from_str_radix(number, 16).ok()
    };
    Some(number.map_or(Meant::More, |number| Meant::Event(format!("r{number:x}"))))
}

/// Of the terms that Intel's and AMD's processors have in common (`/sys/bus/event_source/devices/cpu/format`), those that events are told
/// apart by.
fn of_terms(terms: &str) -> Option<u64> {
    terms.split(',').try_fold(0_u64, |config, term| {
        let (name, value) = term.split_once('=')?;
        let value = match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => value.parse().ok()?,
        };
        match name {
            "config" => Some(config | value),
            "event" if value <= 0xff => Some(config | value),
            "umask" if value <= 0xff => Some(config | value << 8),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_others_write_them() {
        let raw = |text: &str| Some(Meant::Event(text.to_owned()));
        for (text, expected) in [
            ("raw:0x1a8", raw("r1a8")),
            ("raw:1A8", raw("r1a8")),
            ("r0x01a8", raw("r1a8")),
            ("R0x1a8", raw("r1a8")),
            ("0x1a8", raw("r1a8")),
            ("R1a8", raw("r1a8")),
            ("r1a8", None),
            ("r10000000000000000", Some(Meant::More)),
            // Event and unit mask, as in manuals.
            ("cpu/event=0xa8,umask=0x1/", raw("r1a8")),
            ("cpu/event=60/", raw("r3c")),
            ("cpu_core/config=0x1a8/u", raw("r1a8")),
            ("cpu/event=0xa8,cmask=1/", Some(Meant::More)),
            ("cpu/cycles/", Some(Meant::More)),
            ("raw:0x", None),
            ("raw:0x10000000000000000", Some(Meant::More)),
            ("raw_syscalls:sys_enter", None),
            ("sched:sched_switch/prev_pid == 1/", None),
            ("resource", None),
            ("12", None),
        ] {
            assert_eq!(meant(text), expected, "{text}");
        }
    }
}
