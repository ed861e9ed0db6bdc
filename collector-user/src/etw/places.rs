//! What lies where in each address space, as that changes with time: images and methods with their beginnings and ends in, what is at an
//! address now out.

use std::collections::{BTreeMap, HashMap};

use collector_common::ids::Nanos;
use collector_common::intern::Seeded;
use collector_common::record::ProcessId;

/// The kernel's addresses, or a process's.
pub(super) type Space = Option<ProcessId>;

/// What may lie somewhere, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Image(u32),
    Method(u32),
}

/// Something and where it lies, from when to when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay {
    pub(super) space: Space,
    pub(super) start: u64,
    pub(super) size: u64,
    pub(super) what: What,
    /// From the beginning if it is none.
    pub(super) since: Option<Nanos>,
    pub(super) until: Option<Nanos>,
}

/// What is at an address: code that a runtime made may be in an image, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lying {
    pub(super) image: Option<u32>,
    pub(super) method: Option<u32>,
}

/// Places that do not overlap, by where they begin.
#[derive(Debug, Default)]
struct Ranges(BTreeMap<u64, (u64, u32)>);

impl Ranges {
    /// What was there is gone.
    fn insert(&mut self, start: u64, end: u64, id: u32) {
        while let Some((&at, &(last, _))) = self.0.range(..end).next_back() {
            if last <= start {
                break;
            }
            self.0.remove(&at);
        }
        self.0.insert(start, (end, id));
    }

    fn remove(&mut self, start: u64, id: u32) {
        if self.0.get(&start).is_some_and(|(_, own)| *own == id) {
            self.0.remove(&start);
        }
    }

    fn at(&self, address: u64) -> Option<u32> {
        let (_, (end, id)) = self.0.range(..=address).next_back()?;
        (address < *end).then_some(*id)
    }
}

#[derive(Debug, Default)]
struct Contents {
    images: Ranges,
    methods: Ranges,
    epoch: u32,
}

/// All address spaces at one time, which goes forwards.
#[derive(Debug, Default)]
pub(super) struct Places {
    stays: Vec<Stay>,
    /// When which of them begins or ends, in order; what ends comes before what begins.
    changes: Vec<(Nanos, bool, u32)>,
    next: usize,
    spaces: HashMap<Space, Contents, Seeded>,
}

impl Places {
    /// At the beginning.
    pub(super) fn new(stays: Vec<Stay>) -> Self {
        let mut changes = Vec::with_capacity(2 * stays.len());
        for (stay, index) in stays.iter().zip(0..) {
            let since = stay.since.unwrap_or(Nanos(0));
            if stay.until.is_some_and(|until| until <= since) {
                continue;
            }
            changes.push((since, true, index));
            changes.extend(stay.until.map(|until| (until, false, index)));
        }
        changes.sort_by_key(|(at, begins, _)| (*at, *begins));
        Self { stays, changes, next: 0, spaces: HashMap::default() }
    }

    /// Goes on to a time; one that is before the last one changes nothing.
    pub(super) fn advance(&mut self, to: Nanos) {
        while let Some(&(at, begins, index)) = self.changes.get(self.next)
            && at <= to
        {
            self.next += 1;
            let Some(stay) = self.stays.get(index as usize) else { continue };
            let contents = self.spaces.entry(stay.space).or_default();
            contents.epoch += 1;
            let (ranges, id) = match stay.what {
                What::Image(id) => (&mut contents.images, id),
                What::Method(id) => (&mut contents.methods, id),
            };
            if begins {
                ranges.insert(stay.start, stay.start.saturating_add(stay.size), id);
            } else {
                ranges.remove(stay.start, id);
            }
        }
    }

    /// What is at an address now.
    pub(super) fn at(&self, space: Space, address: u64) -> Lying {
        let Some(contents) = self.spaces.get(&space) else { return Lying::default() };
        Lying { image: contents.images.at(address), method: contents.methods.at(address) }
    }

    /// Another number when what is there changes.
    pub(super) fn epoch(&self, space: Space) -> u32 {
        self.spaces.get(&space).map_or(0, |contents| contents.epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: Space = Some(ProcessId(3));

    fn stay(what: What, start: u64, since: Option<u64>, until: Option<u64>) -> Stay {
        let (since, until) = (since.map(Nanos), until.map(Nanos));
        Stay { space: SPACE, start, size: 0x100, what, since, until }
    }

    #[test]
    fn one_address_is_one_thing_after_the_other() {
        use What::{Image, Method};
        let mut places = Places::new(vec![
            stay(Image(0), 0x1000, None, Some(10)),
            stay(Image(1), 0x1080, Some(10), None),
            stay(Method(2), 0x1090, Some(20), None),
            stay(Image(3), 0x1000, Some(30), Some(30)),
        ]);
        let at = |places: &Places, address| {
            let Lying { image, method } = places.at(SPACE, address);
            (image, method)
        };
        assert_eq!(at(&places, 0x1000), (None, None));
        places.advance(Nanos(9));
        assert_eq!(
            [0xfff, 0x1000, 0x10ff, 0x1100].map(|it| at(&places, it).0),
            [None, Some(0), Some(0), None]
        );
        let before = places.epoch(SPACE);
        places.advance(Nanos(10));
        assert_ne!(places.epoch(SPACE), before);
        assert_eq!([0x1000, 0x1080, 0x117f].map(|it| at(&places, it).0), [None, Some(1), Some(1)]);
        places.advance(Nanos(40));
        assert_eq!((at(&places, 0x1095), at(&places, 0x1081)), ((Some(1), Some(2)), (Some(1), None)));
        assert_eq!(places.at(None, 0x1081), Lying::default());
        places.advance(Nanos(0));
        assert_eq!(at(&places, 0x1000), (None, None));
    }

    #[test]
    fn what_is_put_over_others_takes_their_place() {
        let mut ranges = Ranges::default();
        for (start, end, id) in [(0, 10, 0), (10, 20, 1), (20, 30, 2), (5, 25, 3)] {
            ranges.insert(start, end, id);
        }
        assert_eq!([0, 5, 24, 25].map(|at| ranges.at(at)), [None, Some(3), Some(3), None]);
        ranges.remove(5, 2);
        assert_eq!(ranges.at(5), Some(3));
        ranges.remove(5, 3);
        assert_eq!(ranges.at(5), None);
    }
}
