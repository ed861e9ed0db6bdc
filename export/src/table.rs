//! Tables by keys that are not dense numbers of our own.
//!
//! Names, addresses, and which of our numbers stand beside each other are chosen by the recorded programs, and by whoever made a file
//! that is imported. So tables have a seed, these one of their own in each: nobody outside can tell which keys collide. What is numbered without gaps is looked up in a list, by position.

use std::collections::{HashMap, HashSet};

use collector_common::intern::Seeded;

/// Values by key.
pub(crate) type Table<K, V> = HashMap<K, V, Seeded>;

/// A set of keys.
pub(crate) type KeySet<K> = HashSet<K, Seeded>;

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

    use super::*;

    /// A hasher that everybody knows: of the make that these tables would have without a seed (a sum and a product for each number, of which
    /// the upper bits count most).
    #[derive(Default)]
    struct Known(u64);

    const FACTOR: u64 = 0xf135_7aea_2e62_a9c5;

    impl Hasher for Known {
        fn write(&mut self, bytes: &[u8]) {
            for &byte in bytes {
                self.write_u64(byte.into());
            }
        }

        fn write_u32(&mut self, number: u32) {
            self.write_u64(number.into());
        }

        fn write_u64(&mut self, number: u64) {
            self.0 = self.0.wrapping_add(number).wrapping_mul(FACTOR);
        }

        fn finish(&self) -> u64 {
            self.0.rotate_left(26)
        }
    }

    thread_local! {
        static COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    /// A key as that of a location: module, address, and whether it is a return address. Counts what it is compared with.
    #[derive(Clone, Copy)]
    struct Key(u32, u64, u8);

    impl Hash for Key {
        fn hash<H: Hasher>(&self, state: &mut H) {
            (self.0, self.1, self.2).hash(state);
        }
    }

    impl PartialEq for Key {
        fn eq(&self, other: &Self) -> bool {
            COMPARED.set(COMPARED.get() + 1);
            (self.0, self.1, self.2) == (other.0, other.1, other.2)
        }
    }

    impl Eq for Key {}

    /// What a factor is undone by: each round doubles the bits that are right.
    fn inverse() -> u64 {
        (0..6).fold(FACTOR, |undoes, _| undoes.wrapping_mul(2_u64.wrapping_sub(FACTOR.wrapping_mul(undoes))))
    }

    /// Keys whose known hashes are the first numbers before they are turned: the bits that tables go by are the same.
    fn hostile(count: u64) -> impl Iterator<Item = Key> {
        let (module, flag) = (7, 1);
        (0..count).map(move |wanted| {
            let before_flag = wanted.wrapping_mul(inverse()).wrapping_sub(flag);
            let before_address = u64::from(module).wrapping_mul(FACTOR);
            let address = before_flag.wrapping_mul(inverse()).wrapping_sub(before_address);
            Key(module, address, flag as u8)
        })
    }

    fn compared<S: BuildHasher + Default>(count: u64) -> usize {
        let mut table: HashMap<Key, u64, S> = HashMap::default();
        COMPARED.set(0);
        for (key, value) in hostile(count).zip(0..) {
            table.insert(key, value);
        }
        for key in hostile(count) {
            assert!(table.contains_key(&key));
        }
        COMPARED.get()
    }

    #[test]
    fn chosen_keys_collide_in_no_table() {
        let known = [1_000, 2_000].map(compared::<BuildHasherDefault<Known>>);
        assert!(known[0] > 1_000 * 1_000 / 2, "the keys are hostile: {known:?}");
        assert!(known[1] > 3 * known[0], "and grow so: {known:?}");
        let seeded = [1_000, 2_000].map(compared::<Seeded>);
        assert!(seeded[0] < 2 * 1_000 && seeded[1] < 2 * 2_000, "{seeded:?}");
    }
}
