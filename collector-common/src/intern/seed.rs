//! Hashers for keys that are chosen outside: which of them collide nobody can foresee.
//!
//! `foldhash`, as hashbrown takes it by default, is as quick as hashes of short keys get. Without `std`, which hashbrown leaves
//! out, all that it draws its seeds from are addresses, which a system may or may not place at random. So what each of
//! its hashes begins with is from the standard library besides, which asks the system for random bytes.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

use hashbrown::DefaultHashBuilder;

type DefaultHasher = <DefaultHashBuilder as BuildHasher>::Hasher;

/// Makes hashers that begin alike, and otherwise than those of any other.
#[derive(Clone)]
pub struct Seeded(DefaultHasher);

impl Default for Seeded {
    fn default() -> Self {
        let secret = RandomState::new().build_hasher().finish();
        let mut hasher = DefaultHashBuilder::default().build_hasher();
        hasher.write(&secret.to_ne_bytes());
        Self(hasher)
    }
}

impl fmt::Debug for Seeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seeded").finish_non_exhaustive()
    }
}

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;

    #[inline]
    fn build_hasher(&self) -> DefaultHasher {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_seed_of_its_own_and_keeps_it() {
        let [one, other] = [Seeded::default(), Seeded::default()];
        assert_eq!(one.hash_one("text"), one.clone().hash_one("text"));
        assert_ne!(one.hash_one("text"), other.hash_one("text"));
    }
}
