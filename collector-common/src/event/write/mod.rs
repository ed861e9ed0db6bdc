//! Events for people and for programs, as text.
//!
//! Both forms implement `Display`, so `write!` puts them into a `fmt::Write` or an `io::Write` without an allocation.

mod json;
mod text;

pub use json::Json;
pub use text::PlainText;

use super::data::EventData;

impl<'a> EventData<'a> {
    /// `name=value` pairs, see [`PlainText`].
    pub fn as_text(&self) -> PlainText<'a> {
        PlainText(*self)
    }

    /// A JSON object, see [`Json`].
    pub fn as_json(&self) -> Json<'a> {
        Json(*self)
    }
}
