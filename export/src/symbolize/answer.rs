//! Wanted addresses of one module and the names and source lines found for them so far.

use std::collections::HashMap;
use std::ops::Range;

use super::elf::SymbolError;

/// Bytes of all names of one module that are wanted, and of all paths of its source files.
pub(super) const MOST_NAME_BYTES: usize = 64 << 20;

/// A function that an address is in, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Level {
    /// A position among the names.
    pub(super) name: Option<u32>,
    /// A position among the source files.
    pub(super) file: Option<u32>,
    /// From 1; 0 where not known.
    pub(super) line: u32,
    /// From 1; 0 where not known.
    pub(super) column: u32,
}

/// The nearest symbol below an address. A table that lacks symbols does not tell whether that is the one the address is of.
#[derive(Clone, Copy, Debug)]
struct Guess {
    start: u64,
    /// A position among the names; none where the symbol has a size, and so an end before the address.
    name: Option<u32>,
}

/// Addresses and, for those that have one, a name. Addresses of one symbol may share it.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    wanted: &'a [u64],
    /// By wanted address: a position in `names`.
    found: Vec<Option<u32>>,
    /// By wanted address, where it has no name yet.
    guesses: Vec<Option<Guess>>,
    /// Whether a table that lacks no symbols was looked at.
    has_seen_all: bool,
    names: Vec<String>,
    /// Bytes of further names that there is room for; none when there was too little once.
    room: usize,
    /// Names for which there was none.
    left_out: u64,
    /// The same of paths of source files.
    room_of_sources: usize,
    /// Positions among the names that are written as .NET's compiler does.
    of_dot_net: Range<usize>,
    sources: Vec<String>,
    /// By wanted address: which of the distinct lists of functions it has; none at all where no lines were found.
    lists: Vec<Option<u32>>,
    list_index: HashMap<Box<[Level]>, u32>,
    /// Where in `levels` each of the lists is.
    ranges: Vec<Range<usize>>,
    levels: Vec<Level>,
}

impl<'a> Answer<'a> {
    /// Nothing is found yet for `wanted`, which is sorted and holds each address once.
    pub(super) fn new(wanted: &'a [u64]) -> Self {
        debug_assert!(wanted.is_sorted_by(|a, b| a < b));
        Self {
            wanted,
            found: vec![None; wanted.len()],
            guesses: vec![None; wanted.len()],
            has_seen_all: false,
            names: Vec::new(),
            room: MOST_NAME_BYTES,
            left_out: 0,
            room_of_sources: MOST_NAME_BYTES,
            of_dot_net: 0..0,
            sources: Vec::new(),
            lists: Vec::new(),
            list_index: HashMap::new(),
            ranges: Vec::new(),
            levels: Vec::new(),
        }
    }

    /// All addresses.
    pub(super) fn wanted(&self) -> &'a [u64] {
        self.wanted
    }

    /// Whether every address has a name, or a guess that no further table of symbols mends.
    pub(super) fn is_complete(&self) -> bool {
        let is_sure = |guess: &Option<Guess>| self.has_seen_all && guess.is_some_and(|it| it.name.is_some());
        self.found.iter().zip(&self.guesses).all(|(name, guess)| name.is_some() || is_sure(guess))
    }

    /// Whether the address at a position has no name yet.
    pub(super) fn lacks(&self, position: usize) -> bool {
        self.found.get(position).is_some_and(Option::is_none)
    }

    /// Adds a name as the file has it, and gives its position for [`Self::set`]; `None`, which is counted, where there is no room.
    pub(super) fn add_name(&mut self, name: String) -> Option<u32> {
        let room = self.room.checked_sub(name.len());
        self.room = room.unwrap_or(0);
        if room.is_none() {
            self.leave_out(1);
            return None;
        }
        self.names.push(name);
        Some(self.names.len() as u32 - 1)
    }

    /// Counts names that there is no room for.
    pub(super) fn leave_out(&mut self, names: u64) {
        self.left_out += names;
    }

    /// How many names there was no room for.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Tells of names for which there was no room, with those that there is none for as they read.
    pub(super) fn had_room(&self, as_written: u64) -> Result<(), SymbolError> {
        if self.left_out == 0 && as_written == 0 {
            return Ok(());
        }
        Err(SymbolError::Names { left_out: self.left_out, as_written, limit: MOST_NAME_BYTES as u64 })
    }

    /// How many names there are, for [`Self::mark_dot_net`].
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Says that all names that were added since there were so many are of .NET's methods.
    pub(super) fn mark_dot_net(&mut self, since: usize) {
        self.of_dot_net = since..self.names.len();
    }

    /// Whether the name at a position is of one of .NET's methods.
    pub(super) fn is_dot_net(&self, name: usize) -> bool {
        self.of_dot_net.contains(&name)
    }

    /// Names the address at a position, if there was room for the name.
    pub(super) fn set(&mut self, position: usize, name: Option<u32>) {
        if let Some(found) = self.found.get_mut(position)
            && name.is_some()
        {
            *found = name;
        }
    }

    /// Whether a symbol that starts there would be the nearest one known below the address at a position, which has no name yet.
    pub(super) fn may_guess(&self, position: usize, start: u64) -> bool {
        let known = self.guesses.get(position).copied().flatten();
        self.lacks(position) && known.is_none_or(|known| known.start < start)
    }

    /// Notes what may name the address at a position, if there was room for the name: a symbol without a size that starts there.
    pub(super) fn guess(&mut self, position: usize, start: u64, name: Option<u32>) {
        if name.is_some()
            && self.may_guess(position, start)
            && let Some(guess) = self.guesses.get_mut(position)
        {
            *guess = Some(Guess { start, name });
        }
    }

    /// Notes that a symbol which starts there ends before the address at a position, so that none which starts no later names it.
    pub(super) fn rule_out(&mut self, position: usize, start: u64) {
        if let Some(guess) = self.guesses.get_mut(position)
            && guess.is_none_or(|guess| guess.start <= start)
        {
            *guess = Some(Guess { start, name: None });
        }
    }

    /// Says that what was looked at lacks no symbols.
    pub(super) fn set_seen_all(&mut self) {
        self.has_seen_all = true;
    }

    /// Names what still lacks a name as it was guessed.
    pub(super) fn settle(&mut self) {
        self.settle_where(|_, _| true);
    }

    /// The same for addresses at which functions are known to start: a symbol farther below is of another function.
    pub(super) fn settle_starts(&mut self) {
        self.settle_where(|guess, address| guess.start == address);
    }

    fn settle_where(&mut self, is_meant: impl Fn(&Guess, u64) -> bool) {
        for ((found, guess), &address) in self.found.iter_mut().zip(&self.guesses).zip(self.wanted) {
            let guess = guess.filter(|guess| is_meant(guess, address));
            *found = found.or(guess.and_then(|guess| guess.name));
        }
    }

    /// Whether there is room for further paths of source files.
    pub(super) fn has_room_for_sources(&self) -> bool {
        self.room_of_sources > 0
    }

    /// Adds a source file, and gives its position for [`Level::file`]; `None`, which is counted, where there is no room.
    pub(super) fn add_source(&mut self, path: &str) -> Option<u32> {
        let room = self.room_of_sources.checked_sub(path.len());
        self.room_of_sources = room.unwrap_or(0);
        if room.is_none() {
            self.leave_out(1);
            return None;
        }
        self.sources.push(path.to_owned());
        Some(self.sources.len() as u32 - 1)
    }

    /// All source files.
    pub(super) fn sources(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(String::as_str)
    }

    /// The functions at a position, innermost first, the last of them the one that is not inlined.
    pub(super) fn set_levels(&mut self, position: usize, levels: &[Level]) {
        let known = self.list_index.get(levels).copied();
        let list = known.unwrap_or_else(|| {
            let start = self.levels.len();
            self.levels.extend_from_slice(levels);
            self.ranges.push(start..self.levels.len());
            let list = self.ranges.len() as u32 - 1;
            self.list_index.insert(levels.into(), list);
            list
        });
        self.lists.resize(self.wanted.len(), None);
        if let Some(slot) = self.lists.get_mut(position) {
            *slot = Some(list);
        }
    }

    /// Takes over the lists of functions of another answer, whose positions are these of this one.
    pub(super) fn take_lists(&mut self, other: &Answer<'_>, positions: &[usize]) {
        let mut names: HashMap<u32, Option<u32>> = HashMap::new();
        let mut sources: HashMap<u32, Option<u32>> = HashMap::new();
        let mut levels = Vec::new();
        self.left_out += other.left_out;
        for (at, &position) in positions.iter().enumerate() {
            let Some(range) = other.list(at).and_then(|list| other.ranges.get(list)) else { continue };
            levels.clear();
            for &level in other.levels.get(range.clone()).unwrap_or_default() {
                let name = level.name.and_then(|name| Some((name, other.names.get(name as usize)?)));
                let name = name
                    .and_then(|(id, text)| *names.entry(id).or_insert_with(|| self.add_name(text.clone())));
                let file = level.file.and_then(|file| Some((file, other.sources.get(file as usize)?)));
                let file =
                    file.and_then(|(id, text)| *sources.entry(id).or_insert_with(|| self.add_source(text)));
                levels.push(Level { name, file, ..level });
            }
            self.set_levels(position, &levels);
        }
    }

    /// The distinct lists of functions.
    pub(super) fn lists(&self) -> impl Iterator<Item = &[Level]> {
        self.ranges.iter().map(|range| self.levels.get(range.clone()).unwrap_or_default())
    }

    /// Which of the lists of functions the address at a position has.
    pub(super) fn list(&self, position: usize) -> Option<usize> {
        self.lists.get(position).copied().flatten().map(|list| list as usize)
    }

    /// All names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Which of the names the address at a position has.
    pub(super) fn found(&self, position: usize) -> Option<usize> {
        self.found.get(position).copied().flatten().map(|name| name as usize)
    }

    /// The name of an address.
    pub(super) fn name_at(&self, address: u64) -> Option<&str> {
        let position = self.wanted.binary_search(&address).ok()?;
        self.names.get(self.found(position)?).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_room_are_told_of() {
        const MIB: usize = 1 << 20;
        let mut answer = Answer::new(&[0x1000, 0x2000]);
        let added = (0..65).filter(|_| answer.add_name("n".repeat(MIB)).is_some()).count();
        assert_eq!(added * MIB, MOST_NAME_BYTES);
        // The next one is small, and comes too late.
        let late = answer.add_name("late".to_owned());
        answer.set(1, late);
        assert!(answer.lacks(1));
        let paths = (0..65).filter(|_| answer.add_source(&"p".repeat(MIB)).is_some()).count();
        assert_eq!((paths * MIB, answer.has_room_for_sources()), (MOST_NAME_BYTES, false));
        let told = answer.had_room(4).unwrap_err();
        assert!(matches!(told, SymbolError::Names { left_out: 3, as_written: 4, .. }), "{told}");
        assert!(Answer::new(&[]).had_room(0).is_ok());
    }

    #[test]
    fn the_nearest_guess_names_what_nothing_else_does() {
        let wanted = [0x110, 0x120, 0x130, 0x140];
        let mut answer = Answer::new(&wanted);
        let [far, near, sure] = ["far", "near", "sure"].map(|name| answer.add_name(name.to_owned()));
        for position in 0..4 {
            answer.guess(position, 0x100, far);
        }
        // Whichever of two comes first.
        answer.guess(1, 0x118, near);
        answer.guess(1, 0x108, far);
        answer.rule_out(2, 0x128);
        answer.guess(2, 0x128, near);
        answer.rule_out(3, 0xf0);
        answer.set(3, sure);
        assert!(answer.lacks(0) && !answer.is_complete());
        assert!(answer.may_guess(0, 0x101) && !answer.may_guess(0, 0x100) && !answer.may_guess(3, 0x138));
        answer.settle();
        assert_eq!(
            wanted.map(|address| answer.name_at(address)),
            [Some("far"), Some("near"), None, Some("sure")]
        );
    }

    #[test]
    fn a_guess_is_sure_where_all_symbols_were_seen() {
        let mut answer = Answer::new(&[0x110]);
        let name = answer.add_name("bare".to_owned());
        answer.guess(0, 0x100, name);
        assert!(!answer.is_complete());
        answer.set_seen_all();
        // Lines of source may still tell better.
        assert!(answer.is_complete() && answer.lacks(0));
        answer.rule_out(0, 0x108);
        assert!(!answer.is_complete());
    }

    #[test]
    fn a_function_is_not_named_after_a_symbol_that_starts_before_it() {
        let wanted = [0x100, 0x110];
        let mut answer = Answer::new(&wanted);
        let name = answer.add_name("bare".to_owned());
        answer.guess(0, 0x100, name);
        answer.guess(1, 0x100, name);
        answer.settle_starts();
        assert_eq!(wanted.map(|address| answer.name_at(address)), [Some("bare"), None]);
    }
}
