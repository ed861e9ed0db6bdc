//! speedscope: JSON with a sampled profile for each thread and kind of sample, hottest first. A thread is one under all of its
//! names, and is called by the last of them. The account of losses is with the program that wrote the file; that samples were
//! lost is said behind the file's name, which speedscope shows.
//!
//! Source of the format: speedscope's `file-format-schema.json` (npm package `speedscope`). A profile's axis is the sum of its
//! samples' weights in time order, not the clock: what speedscope calls "time order" has no gaps where a thread did not run.
//! A weight is a sample's value in the kind's unit; of a sampling clock, whose samples count periods, it is in nanoseconds.
//! A frame is a function, inlined or not, of which speedscope adds up what it has. Its file is the source's, with the first line of it that
//! was seen; where no source is known, the module that it lies in.
//!
//! - `series`: which samples are a profile, and these by time, of a few profiles at once; `places`: where functions are in their source;
//!   `write`: the file.

mod places;
mod series;
mod write;

pub use write::Speedscope;
