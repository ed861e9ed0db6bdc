//! What is read of a profile's text. Whatever else it has is passed over.
//!
//! Tables are a thread's own, or all threads' in `shared`.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::columns::{Column, Loose, Strings};
use crate::format::firefox::{MOST_TYPES, SPAN};

/// The most libraries and counters: one that tells nothing has few bytes, but takes as many as any.
const MANY: usize = 1 << 16;

/// The most categories, and fields of a type of markers: a browser has some hundred.
const FEW: usize = 1 << 10;

/// What tells the version, and nothing of the rest.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HeadMeta {
    pub(super) preprocessed_profile_version: Option<u32>,
}

/// All that is no thread's.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) meta: Meta,
    pub(super) libs: Limited<Lib, MANY>,
    pub(super) shared: Shared,
    pub(super) counters: Limited<Counter, MANY>,
    /// Whether each thread ran whenever a sample was taken of it.
    pub(super) is_on_cpu: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    /// In milliseconds.
    pub(super) interval: Loose<f64>,
    /// In milliseconds since 1970.
    pub(super) start_time: Loose<f64>,
    #[serde(default)]
    pub(super) product: Text,
    #[serde(default)]
    pub(super) oscpu: Text,
    #[serde(default)]
    pub(super) categories: Option<Limited<Category, FEW>>,
    #[serde(default)]
    pub(super) marker_schema: Option<Limited<Schema, MOST_TYPES>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Category {
    pub(super) name: Text,
    #[serde(default)]
    pub(super) subcategories: Limited<Text, FEW>,
}

/// What markers of one type have.
#[derive(Debug, Deserialize)]
pub(super) struct Schema {
    pub(super) name: Text,
    #[serde(default)]
    pub(super) fields: Limited<Field, FEW>,
    /// The fields before version 55.
    #[serde(default)]
    pub(super) data: Limited<Field, FEW>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Field {
    #[serde(default)]
    pub(super) key: Text,
    #[serde(default)]
    pub(super) label: Text,
    #[serde(default)]
    pub(super) format: Text,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lib {
    #[serde(default)]
    pub(super) path: Text,
    #[serde(default)]
    pub(super) name: Text,
    #[serde(default)]
    pub(super) code_id: Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Shared {
    pub(super) string_array: Option<Strings>,
    pub(super) stack_table: Option<StackTable>,
    pub(super) frame_table: Option<FrameTable>,
    pub(super) func_table: Option<FuncTable>,
    pub(super) resource_table: Option<ResourceTable>,
    pub(super) sources: Option<Sources>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Thread {
    pub(super) name: Text,
    pub(super) process_name: Text,
    pub(super) pid: Text,
    pub(super) tid: Text,
    #[serde(rename = "isMainThread")]
    pub(super) is_main: bool,
    pub(super) process_startup_time: Option<Loose<f64>>,
    pub(super) process_shutdown_time: Option<Loose<f64>>,
    pub(super) samples: Samples,
    pub(super) native_allocations: Option<Samples>,
    pub(super) js_allocations: Option<Samples>,
    pub(super) markers: Markers,
    pub(super) string_array: Option<Strings>,
    pub(super) stack_table: Option<StackTable>,
    pub(super) frame_table: Option<FrameTable>,
    pub(super) func_table: Option<FuncTable>,
    pub(super) resource_table: Option<ResourceTable>,
}

/// What a thread tells of when its samples were taken.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ThreadClock {
    pub(super) samples: Ticks,
}

/// What is told there of samples.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Ticks {
    pub(super) stack: Column<u32>,
    pub(super) weight: Column<f64>,
    #[serde(rename = "threadCPUDelta")]
    pub(super) cpu: Column<f64>,
}

impl Ticks {
    /// What a row counts: 1 where nothing is said.
    pub(super) fn weight_of(&self, row: u32) -> f64 {
        weight_of(&self.weight, row)
    }
}

/// What a row counts: 1 where nothing is said.
pub(super) fn weight_of(weights: &Column<f64>, row: u32) -> f64 {
    let weight = weights.get(row);
    if weight.is_nan() { 1.0 } else { weight }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct StackTable {
    pub(super) frame: Column<u32>,
    pub(super) prefix: Column<u32>,
    /// How far before a stack its prefix is, from version 66 on; 0 for none.
    pub(super) prefix_offset: Column<u32>,
    /// Before version 53.
    pub(super) category: Column<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FrameTable {
    pub(super) address: Column<f64>,
    pub(super) func: Column<u32>,
    pub(super) category: Column<u32>,
    pub(super) subcategory: Column<u32>,
    pub(super) line: Column<u32>,
    pub(super) column: Column<u32>,
    /// Until version 70.
    pub(super) inline_depth: Column<u32>,
    /// From version 70 on.
    pub(super) lib: Column<u32>,
    /// From version 71 on: which of the other columns have something.
    pub(super) flags: Column<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FuncTable {
    pub(super) name: Column<u32>,
    pub(super) resource: Column<u32>,
    /// Until version 57.
    pub(super) file_name: Column<u32>,
    /// From version 58 on.
    pub(super) source: Column<u32>,
    /// From version 75 on: which of the other columns have something.
    pub(super) flags: Column<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResourceTable {
    /// Until version 69.
    pub(super) lib: Column<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sources {
    pub(super) filename: Column<u32>,
}

/// Samples, or allocations.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Samples {
    pub(super) stack: Column<u32>,
    /// In milliseconds.
    pub(super) time: Column<f64>,
    /// Each since the one before.
    pub(super) time_deltas: Column<f64>,
    pub(super) weight: Column<f64>,
    pub(super) weight_type: Text,
    #[serde(rename = "threadCPUDelta")]
    pub(super) cpu: Column<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Markers {
    pub(super) name: Column<u32>,
    pub(super) start_time: Column<f64>,
    pub(super) end_time: Column<f64>,
    /// Whether it is a moment (0), lasts (1), or began (2) or ended (3) while nothing tells of the rest.
    pub(super) phase: Column<u32>,
    pub(super) data: Vec<Option<Data>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Counter {
    #[serde(default)]
    pub(super) name: Text,
    #[serde(default)]
    pub(super) description: Text,
}

/// A list, of which there is a limit.
#[derive(Debug)]
pub(super) struct Limited<T, const MOST: usize>(pub(super) Vec<T>);

impl<T, const MOST: usize> Default for Limited<T, MOST> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Listed + Deserialize<'de>, const MOST: usize> Deserialize<'de> for Limited<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(LimitedVisitor::<T, MOST>(PhantomData)).map(Self)
    }
}

/// What is in such a list.
pub(super) trait Listed {
    /// What several of it are called.
    const CALLED: &'static str;
}

macro_rules! listed {
    ($($of:ident: $called:literal),+) => {
        $(impl Listed for $of {
            const CALLED: &'static str = $called;
        })+
    };
}

listed!(
    Lib: "libraries",
    Counter: "counters",
    Category: "categories",
    Text: "subcategories",
    Schema: "types of markers",
    Field: "fields of markers"
);

struct LimitedVisitor<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Listed + Deserialize<'de>, const MOST: usize> Visitor<'de> for LimitedVisitor<T, MOST> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::CALLED)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = seq.next_element()? {
            if list.len() == MOST {
                return Err(A::Error::custom(format_args!("there are more than {MOST} {}", T::CALLED)));
            }
            list.push(element);
        }
        Ok(list)
    }
}

/// Text, or a number as text; empty for anything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text(pub(super) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_u64<E>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_i64<E>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_f64<E>(self, _: f64) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_bool<E>(self, _: bool) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_unit<E>(self) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<String, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(String::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<String, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(String::new())
    }
}

/// What a marker tells, as far as one of ours has it, or its stack.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) marker_type: Text,
    pub(super) stack: Option<u32>,
    pub(super) value: Option<f64>,
    pub(super) cpu: Option<f64>,
    /// What attributes have, by their numbers: numbers of strings, or what they say themselves.
    pub(super) attributes: Vec<(u32, f64)>,
    pub(super) text: Option<u32>,
    /// What went on.
    pub(super) span: Option<u32>,
}

#[derive(Deserialize)]
struct Cause {
    stack: Option<Loose<u32>>,
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DataVisitor)
    }
}

struct DataVisitor;

impl<'de> Visitor<'de> for DataVisitor {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what a marker tells")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Data, A::Error> {
        let mut data = Data::default();
        while let Some(Text(key)) = map.next_key()? {
            match &*key {
                "type" => data.marker_type = map.next_value()?,
                "cause" => {
                    let cause: Option<Cause> = map.next_value()?;
                    data.stack = cause.and_then(|cause| cause.stack).map(|Loose(stack)| stack);
                }
                "value" => data.value = Some(map.next_value::<Loose<f64>>()?.0),
                "cpu" => data.cpu = Some(map.next_value::<Loose<f64>>()?.0),
                SPAN => data.span = Some(map.next_value::<Loose<u32>>()?.0),
                "text" => data.text = Some(map.next_value::<Loose<u32>>()?.0),
                key => match key.strip_prefix("attribute").and_then(|number| number.parse().ok()) {
                    Some(number) => data.attributes.push((number, map.next_value::<Loose<f64>>()?.0)),
                    None => {
                        map.next_value::<IgnoredAny>()?;
                    }
                },
            }
        }
        Ok(data)
    }
}
