//! A map as it is written: `bpf:/sys/fs/bpf/events(pid:u32, ns:u64)`, `bpf:id:123`, `bpf:fd:3`.
//!
//! A list at the end in parentheses is of fields; where the path itself ends so, an empty one follows it.

use std::path::PathBuf;

use collector_common::event::{Event, EventId};

use super::error::BpfMapError;
use super::fields::{self, MapField};
use super::map::BpfMap;
use crate::source::Hook;

/// The word that begins it.
const WORD: &str = "bpf:";

/// A map whose records are to be an event.
#[derive(Clone, Debug)]
pub struct MapSpec {
    /// As it was written, without fields: what the event is called.
    pub name: String,
    /// Where it is.
    pub place: MapPlace,
    /// What its records hold, one behind the other; nothing for bytes.
    pub fields: Vec<MapField>,
}

/// Where a map is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapPlace {
    /// Pinned at a path.
    Pinned(PathBuf),
    /// Anywhere, by its number.
    Id(u32),
    /// Where a descriptor of this process is of it, which it was started with.
    Descriptor(u32),
}

impl MapSpec {
    /// Whether a text is meant as a map, by the word that it begins with.
    pub fn is_map(text: &str) -> bool {
        text.starts_with(WORD)
    }

    /// Reads a map.
    ///
    /// # Errors
    /// When it is not of a form above; whether the map exists is asked when it is opened.
    pub fn parse(text: &str) -> Result<Self, BpfMapError> {
        let wrong = |problem: &str| BpfMapError::Form { map: text.to_owned(), problem: problem.to_owned() };
        let text = text.trim();
        if text.matches('(').count() != text.matches(')').count() {
            return Err(wrong("the parentheses do not match"));
        }
        let list = text.strip_suffix(')').and_then(|inner| inner.rsplit_once('('));
        let (name, list) = list.unwrap_or((text, ""));
        let name = name.trim_end();
        let place = name.strip_prefix(WORD).unwrap_or_default();
        let place = if let Some(id) = place.strip_prefix("id:") {
            let id = id.parse().map_err(|_| wrong("the map's number is missing, or is none"))?;
            MapPlace::Id(id)
        } else if let Some(number) = place.strip_prefix("fd:") {
            let number = number.parse::<i32>().ok().and_then(|number| u32::try_from(number).ok());
            MapPlace::Descriptor(
                number.ok_or_else(|| wrong("the descriptor's number is missing, or is none"))?,
            )
        } else if place.starts_with('/') && !place.ends_with('/') {
            MapPlace::Pinned(place.into())
        } else {
            return Err(wrong("the path at which the map is pinned is missing, or not absolute"));
        };
        let fields = fields::parse_list(list).map_err(|problem| wrong(&problem))?;
        fields::format(&fields).map_err(|problem| wrong(&problem))?;
        Ok(Self { name: name.to_owned(), place, fields })
    }

    /// Opens the map, and makes an event of it that is called as it is.
    ///
    /// # Errors
    /// When there is no such map, it is of another type, or the rights are missing.
    pub fn open(&self) -> Result<Hook, BpfMapError> {
        let map = match &self.place {
            MapPlace::Pinned(path) => BpfMap::pinned(path)?,
            MapPlace::Id(id) => BpfMap::by_id(*id)?,
            MapPlace::Descriptor(number) => BpfMap::by_descriptor(*number)?,
        };
        let mut event = Event::new(EventId(map.id.into()), self.name.as_str());
        let format = fields::format(&self.fields);
        *event.format_mut() =
            format.map_err(|problem| BpfMapError::Form { map: self.name.clone(), problem })?;
        Ok(Hook::bpf_map(event, map))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    #[test]
    fn place_and_fields_are_told_apart() {
        let path = |path: &str| MapPlace::Pinned(path.into());
        for (text, name, place, fields) in [
            ("bpf:/sys/fs/bpf/x", "bpf:/sys/fs/bpf/x", path("/sys/fs/bpf/x"), 0),
            ("bpf:/sys/fs/bpf/x()", "bpf:/sys/fs/bpf/x", path("/sys/fs/bpf/x"), 0),
            ("bpf:/a b/x:y (a:u8, _:u8) ", "bpf:/a b/x:y", path("/a b/x:y"), 2),
            ("bpf:/a(1)/x(a:char[16])", "bpf:/a(1)/x", path("/a(1)/x"), 1),
            ("bpf:/a/x(1)()", "bpf:/a/x(1)", path("/a/x(1)"), 0),
            ("bpf:id:123", "bpf:id:123", MapPlace::Id(123), 0),
            ("bpf:fd:3(a:u8)", "bpf:fd:3", MapPlace::Descriptor(3), 1),
            ("bpf:id:4294967295(a:str)", "bpf:id:4294967295", MapPlace::Id(u32::MAX), 1),
        ] {
            assert!(MapSpec::is_map(text));
            let spec = MapSpec::parse(text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((&*spec.name, spec.place, spec.fields.len()), (name, place, fields), "{text}");
        }
        assert!(!MapSpec::is_map("bpf_trace:bpf_trace_printk"));
    }

    #[test]
    fn what_is_malformed_is_told_with_its_form() {
        for (text, problem) in [
            ("bpf:", "missing, or not absolute"),
            ("bpf:x", "missing, or not absolute"),
            ("bpf:/sys/fs/bpf/", "missing, or not absolute"),
            ("bpf:id:", "number is missing"),
            ("bpf:id:x", "number is missing"),
            ("bpf:id:4294967296", "number is missing"),
            ("bpf:id:-1", "number is missing"),
            ("bpf:fd:-1", "descriptor's number is missing"),
            ("bpf:fd:2147483648", "descriptor's number is missing"),
            ("bpf:/x)", "parentheses"),
            ("bpf:/x(a:char[16]", "parentheses"),
            ("bpf:/x(a)", "`a` is no field"),
            ("bpf:/x(a:u9)", "`u9` is no type"),
            ("bpf:(a:u8)", "missing, or not absolute"),
        ] {
            let error = MapSpec::parse(text).unwrap_err();
            assert!(error.is_of_the_request());
            let error = error.to_string();
            assert!(error.contains(problem) && error.contains(text), "{text}: {error}");
            assert!(error.contains("bpf:/PATH(NAME:TYPE, ...)"), "{error}");
        }
    }

    proptest! {
        /// Whatever is typed is read or refused, and its name and place are from it.
        #[test]
        fn any_text_is_read_or_refused(
            parts in vec(select(&["bpf:", "id:", "fd:", "/a", "(", ")", ":", ",", "_", "u8", "pid", "char", "[", "]", "9", " ", "é"][..]), 0..24),
        ) {
            let text = format!("bpf:{}", parts.concat());
            if let Ok(spec) = MapSpec::parse(&text) {
                prop_assert!(text.starts_with(&spec.name));
                prop_assert!(fields::format(&spec.fields).is_ok());
            }
        }
    }
}
