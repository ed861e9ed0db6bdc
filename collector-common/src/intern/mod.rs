//! Strings and call stacks, each stored once and named by a small id.
//!
//! Both are sets of one make, and both take what programs under the profiler choose: their names and their stacks. So
//! each set hashes with a seed of its own (see `seed.rs`): nobody outside can tell which texts collide. And no call does the work
//! of many others: items lie in chunks of which only the first, a small one, is ever moved, and the table of ids grows by
//! halving one of its pieces (see `index.rs`), so a new item costs a bounded time in a set of any size.
//!
//! An item takes 12 bytes for its place and 10 to 21 in the table (15 on average), beside its own.
//!
//! What a hit takes, as a part of what it takes `one_collect`: `cargo xtask bench one_collect`, the middle of three turns of both on a
//! machine with a load of 5 on two cores, and all three.
//!
//! | hit | middle | turns |
//! |---|---|---|
//! | of one string of 4 bytes | 0.77 | 0.56, 0.77, 1.00 |
//! | of one call stack of 5 frames | 0.58 | 0.53, 0.58, 0.71 |
//! | of each of 1024 strings in turn | 0.45 | 0.29, 0.45, 0.47 |
//!
//! The longest single insert on the way to 10 million strings took 0.5 ms, and to as many call stacks of 5 frames 0.7 ms, on a CPU with
//! a load of 18 from other work on two cores: `cargo xtask bench intern`, which gives the smallest of three rounds' longest, since what
//! growth takes is in each of them.

mod arena;
mod callstacks;
mod index;
mod seed;
mod set;
mod strings;

pub use callstacks::{InternedCallstacks, StackId};
pub use seed::Seeded;
pub use strings::{InternedStrings, StringId};
