//! Tables by keys that are not dense numbers of our own.
//!
//! Names, addresses, and which of our numbers stand beside each other are chosen by the recorded programs, and by whoever made a file
//! that is imported. So there is one kind of table for all of them, with a seed of its own in each: nobody outside can tell which keys
//! collide. What is numbered without gaps is looked up in a list, by position.

use std::collections::{HashMap, HashSet};

use collector_common::intern::Seeded;

/// Values by key.
pub(crate) type Table<K, V> = HashMap<K, V, Seeded>;

/// A set of keys.
pub(crate) type KeySet<K> = HashSet<K, Seeded>;
