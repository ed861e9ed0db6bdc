//! Wanted addresses of one module and the names found for them so far.

/// Addresses and, for those that have one, a name. Addresses of one symbol may share it.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    wanted: &'a [u64],
    /// By wanted address: a position in `names`.
    found: Vec<Option<u32>>,
    names: Vec<String>,
}

impl<'a> Answer<'a> {
    /// Nothing is found yet for `wanted`, which is sorted and holds each address once.
    pub(super) fn new(wanted: &'a [u64]) -> Self {
        debug_assert!(wanted.is_sorted_by(|a, b| a < b));
        Self { wanted, found: vec![None; wanted.len()], names: Vec::new() }
    }

    /// All addresses.
    pub(super) fn wanted(&self) -> &'a [u64] {
        self.wanted
    }

    /// Whether every address has a name.
    pub(super) fn is_complete(&self) -> bool {
        self.found.iter().all(Option::is_some)
    }

    /// Whether the address at a position has no name yet.
    pub(super) fn lacks(&self, position: usize) -> bool {
        self.found.get(position).is_some_and(Option::is_none)
    }

    /// Adds a name as the file has it, and gives its position for [`Self::set`].
    pub(super) fn add_name(&mut self, name: String) -> u32 {
        self.names.push(name);
        self.names.len() as u32 - 1
    }

    /// Names the address at a position.
    pub(super) fn set(&mut self, position: usize, name: u32) {
        if let Some(found) = self.found.get_mut(position) {
            *found = Some(name);
        }
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
