//! JSON lines: an object a line, for `jq`, `DuckDB`'s `read_json`, Python and whatever takes in logs. `docs/formats.md` has the members.
//!
//! ```text
//! {"type":"recording","host":...}                                              first, once
//! {"type":"event","time":...,"event":"sched:sched_switch","pid":7,...,"fields":{"prev_comm":"bash",...},"stack":[...]}
//! {"type":"sample","time":...,"event":"cpu","pid":7,...,"value":1,"unit":"count","stack":[...]}
//! {"type":"span","time":...,"duration_ns":3000,"span":"GET /","timeline":"requests","pid":7,...}
//! ```
//!
//! - `write`: the lines, in the order of time; `frames`: stacks; `fields`: the values of an event.
//! - `text`: what all strings have to be like.

mod fields;
mod frames;
mod text;
mod write;

pub use write::JsonLines;
