//! Samples added up: one row for each thread, call stack and list of attributes.

use std::io;

use collector_common::intern::StackId;
use collector_common::record::{AttributeListId, ExportMachine, ThreadId};

use super::columns::Columns;
use crate::table::Table;

/// What samples of one row have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) thread: ThreadId,
    pub(super) stack: StackId,
    pub(super) attributes: AttributeListId,
}

/// The rows, in the order of their first samples.
#[derive(Debug)]
pub(super) struct Rows {
    keys: Vec<Key>,
    /// As many for each row as there are columns.
    values: Vec<i64>,
    width: usize,
}

impl Rows {
    /// # Errors
    /// When a sum has no room in 63 bits. Readers add up what is there several times, and beyond that begin again from below.
    pub(super) fn of(machine: &ExportMachine, columns: &Columns) -> io::Result<Self> {
        let width = columns.list.len();
        let mut rows = Self { keys: Vec::new(), values: Vec::new(), width };
        let mut index: Table<Key, u32> = Table::default();
        for sample in machine.samples().iter() {
            let key = Key { thread: sample.thread, stack: sample.stack, attributes: sample.attributes };
            let row = *index.entry(key).or_insert_with(|| {
                rows.keys.push(key);
                rows.values.resize(rows.values.len() + width, 0);
                rows.keys.len() as u32 - 1
            });
            let start = row as usize * width;
            if !columns.add_to(&mut rows.values[start..start + width], &sample) {
                return Err(io::Error::other(
                    "the values of a stack add up to more than 63 bits hold: name a format with all samples, as .jsonl",
                ));
            }
        }
        Ok(rows)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &[i64])> {
        self.keys.iter().copied().zip(self.values.chunks_exact(self.width))
    }
}
