//! Strings and call stacks, each stored once and named by a small id.
//!
//! Both are sets of one make, and both take what programs under the profiler choose: their names and their stacks. So
//! each set hashes with a seed of its own that was drawn at random (`foldhash`, as hashbrown takes it by default): nobody
//! outside can tell which texts collide. And no call does the work of many others: items lie in chunks that never move,
//! and the table of ids grows by halving one of its pieces (see `index.rs`), so a new item costs a bounded time in a set of
//! any size.
//!
//! An item takes 12 bytes for its place and 10 to 21 in the table (15 on average), beside its own.
//!
//! | | here | `one_collect` | by |
//! |---|---|---|---|
//! | hit of a string of 4 bytes | 6.6 ns | 9.7 ns | the calls of `cargo xtask bench one_collect`, the fastest of 2000 rounds of 1000 |
//! | hit of a call stack of 5 frames | 9.2 ns | 14.4 ns | the same |
//! | the longest single insert on the way to 10 million strings | 0.5 ms | | `cargo xtask bench intern` |
//! | and to as many call stacks of 5 | 0.7 ms | | the same |
//!
//! The last two are time on a CPU with a load of 18 from other work on two cores.

mod arena;
mod callstacks;
mod index;
mod set;
mod strings;

pub use callstacks::{InternedCallstacks, StackId};
pub use strings::{InternedStrings, StringId};
