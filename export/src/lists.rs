//! Many short lists in two columns: all items, and where each list ends.

use std::ops::Range;

/// Lists by their position.
#[derive(Debug)]
pub(crate) struct Lists<T> {
    ends: Vec<usize>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self { ends: Vec::new(), items: Vec::new() }
    }
}

impl<T> Lists<T> {
    /// Adds a list and gives its position.
    pub(crate) fn push(&mut self, list: impl IntoIterator<Item = T>) -> usize {
        self.items.extend(list);
        self.ends.push(self.items.len());
        self.ends.len() - 1
    }

    /// Number of lists.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A list; an empty one where there is none.
    pub(crate) fn get(&self, list: usize) -> &[T] {
        self.items.get(self.range(list)).unwrap_or_default()
    }

    /// Where a list is among all items.
    pub(crate) fn range(&self, list: usize) -> Range<usize> {
        let start = list.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        start..self.ends.get(list).copied().unwrap_or(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_has_its_items() {
        let mut lists = Lists::default();
        for list in [&[1, 2][..], &[], &[3]] {
            lists.push(list.iter().copied());
        }
        let all: Vec<&[i32]> = (0..5).map(|at| lists.get(at)).collect();
        assert_eq!(all, [&[1, 2][..], &[], &[3], &[], &[]]);
        assert_eq!((lists.len(), lists.range(2)), (3, 2..3));
    }
}
