//! JSON lines: an object a line, for `jq`, `DuckDB`'s `read_json`, Python and whatever takes in logs. `docs/formats.md` has the members.
//!
//! ```text
//! {"type":"recording","host":...}                                              first, once
//! {"type":"process","time":...,"duration_ns":...,"pid":7,...,"status":0,"executed":[{"program":"sh",...}]}     what was counted
//! {"type":"table","table":"system calls","columns":[{"name":"calls","unit":"count"},...],"rows":[{"label":"read","numbers":[3,...]},...]}
//! {"type":"histogram","histogram":"waits for a CPU","label":...,"unit":"nanoseconds",...,"buckets":[{"from":0,"to":1000,"count":7},...]}
//! {"type":"event","time":...,"event":"sched:sched_switch","pid":7,...,"fields":{"prev_comm":"bash",...},"stack":[...]}
//! {"type":"sample","time":...,"event":"cpu","pid":7,...,"value":1,"unit":"count","stack":[...]}
//! {"type":"span","time":...,"duration_ns":3000,"span":"GET /","timeline":"requests","pid":7,...}
//! ```
//!
//! - `write`: the lines, in the order of time; `counted`: those of the recording as a whole, before these; `frames`: stacks; `fields`: the values of an event.
//! - `text`: what all strings have to be like.

mod counted;
mod fields;
mod frames;
mod text;
mod write;

pub use write::JsonLines;
