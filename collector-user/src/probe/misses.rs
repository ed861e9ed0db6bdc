//! How often the kernel came to probes of its functions and did not tell: it kept account of as many calls already as it has room for, or was in
//! another probe.
//!
//! In: `kprobe_events` and `kprobe_profile` of tracefs, which have the same probes in the same order, the one with their groups and the other
//! with counts. Out: misses of each event. Source: `probes_seq_show` and `probes_profile_seq_show` in `kernel/trace/trace_kprobe.c`. Calls for
//! which there was no room are among them since Linux 5.17, and in later releases of some before.

use rustc_hash::FxHashMap;

use super::attach::KERNEL;
use crate::tracefs::Tracefs;

/// The file of counts.
const PROFILE: &str = "kprobe_profile";

/// Misses since probes were made, by `GROUP/EVENT`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Misses(FxHashMap<String, u64>);

impl Misses {
    /// Those so far; none where the kernel does not tell.
    pub(crate) fn so_far() -> Self {
        /// The files are read one after the other, and others may make and remove probes meanwhile.
        const TRIES: usize = 3;
        let read = || {
            let tracefs = Tracefs::open().ok()?;
            Self::parse(&tracefs.read(KERNEL).ok()?, &tracefs.read(PROFILE).ok()?)
        };
        (0..TRIES).find_map(|_| read()).unwrap_or_default()
    }

    /// `None` where the two are not of the same probes.
    fn parse(events: &str, profile: &str) -> Option<Self> {
        let mut missed = FxHashMap::default();
        let (mut events, mut profile) = (events.lines(), profile.lines());
        loop {
            let (event, counts) = match (events.next(), profile.next()) {
                (Some(event), Some(counts)) => (event, counts),
                (None, None) => return Some(Self(missed)),
                _ => return None,
            };
            let name = name_of(event)?;
            let mut words = counts.split_whitespace();
            if words.next()? != name.split_once('/')?.1 {
                return None;
            }
            let count: u64 = words.nth(1)?.parse().ok()?;
            // An event has a line for each of its places.
            let all = missed.entry(name.to_owned()).or_insert(0_u64);
            *all = all.saturating_add(count);
        }
    }

    #[cfg(test)]
    pub(super) fn of_one(name: &str, count: u64) -> Self {
        Self([(name.to_owned(), count)].into_iter().collect())
    }

    /// Those of one event.
    pub(super) fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

/// `GROUP/EVENT` of a line that defines one.
pub(super) fn name_of(line: &str) -> Option<&str> {
    line.split_once(':')?.1.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &str = "p:collector_4026531836_7_0/vfs_read vfs_read\n\
                          r4096:kprobes/vfs_read vfs_read ret=$retval:s64\n\
                          r64:collector_4026531836_7_1/vfs__ vfs_read\n\
                          r64:collector_4026531836_7_1/vfs__ vfs_write\n";

    /// As the kernel writes it.
    fn profile(counts: &[(&str, u64, u64)]) -> String {
        let line =
            |&(name, hits, missed): &(&str, u64, u64)| format!("  {name:<44} {hits:>15} {missed:>15}\n");
        counts.iter().map(line).collect::<Vec<_>>().concat()
    }

    #[test]
    fn events_of_one_name_are_told_apart_and_places_of_one_are_added_up() {
        let profile = profile(&[("vfs_read", 10, 0), ("vfs_read", 9, 3), ("vfs__", 8, 4), ("vfs__", 7, 5)]);
        let misses = Misses::parse(EVENTS, &profile).unwrap();
        assert_eq!(misses.of("collector_4026531836_7_0/vfs_read"), 0);
        assert_eq!(misses.of("kprobes/vfs_read"), 3);
        assert_eq!(misses.of("collector_4026531836_7_1/vfs__"), 9);
        assert_eq!(misses.of("collector_4026531836_7_2/vfs__"), 0, "there is none");
        assert_eq!(Misses::parse("", ""), Some(Misses::default()));
    }

    #[test]
    fn what_is_not_of_the_same_probes_is_not_taken() {
        let fewer = profile(&[("vfs_read", 10, 0), ("vfs_read", 9, 3), ("vfs__", 8, 4)]);
        let others = profile(&[("vfs_read", 10, 0), ("vfs__", 8, 4), ("vfs_read", 9, 3), ("vfs__", 7, 5)]);
        let more =
            profile(&[("vfs_read", 1, 0), ("vfs_read", 1, 3), ("vfs__", 1, 4), ("vfs__", 1, 5), ("x", 1, 1)]);
        for text in [fewer.as_str(), &others, &more, "", "\n\n\n\n", "  vfs_read 1\n", "  vfs_read 1 x\n"] {
            assert_eq!(Misses::parse(EVENTS, text), None, "{text}");
        }
        for text in ["p:vfs_read vfs_read\n", "p vfs_read\n", "\n"] {
            assert_eq!(Misses::parse(text, &profile(&[("vfs_read", 1, 1)])), None, "{text}");
        }
        let most = profile(&[("f", 1, u64::MAX), ("f", 1, 1)]);
        assert_eq!(Misses::parse("r:g/f a\nr:g/f b\n", &most).unwrap().of("g/f"), u64::MAX);
    }
}
