//! The event that tells the types in, what it says of them out: a table of texts, and a tree of elements whose names and attributes are
//! numbers of these.

use std::sync::Arc;

use super::ReadError;
use super::cursor::{Cursor, WrittenText};

type Result<T> = std::result::Result<T, ReadError>;

/// How deep elements may be within each other: root, metadata, class, field, annotation.
const DEEPEST: u32 = 8;

/// The most fields of a type.
const MOST_FIELDS: usize = 1 << 12;

/// The most digits of the number of a type.
const LONGEST_NUMBER: usize = 20;

/// A type.
#[derive(Debug, Default)]
pub(super) struct WrittenClass {
    pub(super) id: u64,
    pub(super) name: Arc<str>,
    pub(super) is_event: bool,
    pub(super) fields: Vec<WrittenField>,
    /// Numbers of their types, and values.
    pub(super) annotations: Vec<(u64, Option<Arc<str>>)>,
}

/// A field.
#[derive(Debug, Default)]
pub(super) struct WrittenField {
    pub(super) name: Arc<str>,
    pub(super) class: u64,
    pub(super) is_constant: bool,
    pub(super) is_list: bool,
    pub(super) annotations: Vec<(u64, Option<Arc<str>>)>,
}

/// Reads what is behind the number of the event's type.
pub(super) fn read(mut cursor: Cursor<'_>) -> Result<Vec<WrittenClass>> {
    let (_start, _duration, _id) = (cursor.long()?, cursor.long()?, cursor.long()?);
    let count = cursor.count()?;
    let empty: Arc<str> = Arc::default();
    // Many may be said by the same text: what is kept are references.
    let mut texts = Vec::new();
    for _ in 0..count {
        texts.push(match cursor.text()? {
            WrittenText::Text(text) if !text.is_empty() => text.into(),
            _ => Arc::clone(&empty),
        });
    }
    let mut reader = Reader { cursor, texts, classes: Vec::new() };
    reader.element(Inside::Other, 0)?;
    Ok(reader.classes)
}

/// What an element is part of.
#[derive(Clone, Copy)]
enum Inside {
    Class,
    Field,
    Other,
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    texts: Vec<Arc<str>>,
    classes: Vec<WrittenClass>,
}

impl Reader<'_> {
    /// The number of a text.
    fn text(&mut self) -> Result<usize> {
        let before = self.cursor;
        let number = self.cursor.int()? as usize;
        if number < self.texts.len() {
            Ok(number)
        } else {
            Err(before.malformed("the number of a text that is not there"))
        }
    }

    fn element(&mut self, inside: Inside, depth: u32) -> Result<()> {
        if depth > DEEPEST {
            return Err(self.cursor.malformed("elements that are too deep within each other"));
        }
        let before = self.cursor;
        let name = self.text()?;
        let mut attributes = Vec::new();
        for _ in 0..self.cursor.count()? {
            attributes.push((self.text()?, self.text()?));
        }
        let attribute = |name: &str| {
            let found = attributes.iter().find(|(key, _)| *self.texts[*key] == *name)?;
            Some(&self.texts[found.1])
        };
        let number = |name: &str| {
            let number = attribute(name).filter(|number| number.len() <= LONGEST_NUMBER);
            let number = number.and_then(|number| number.parse::<i64>().ok());
            number.map(i64::cast_unsigned).ok_or_else(|| before.malformed("a type without a number"))
        };
        let is = |name: &str, value: &str| attribute(name).is_some_and(|of| **of == *value);
        let text = |name: &str| attribute(name).cloned().unwrap_or_default();
        let children = match (&*self.texts[name], inside) {
            ("class", Inside::Other) => {
                let class = WrittenClass {
                    id: number("id")?,
                    name: text("name"),
                    is_event: is("superType", "jdk.jfr.Event"),
                    ..WrittenClass::default()
                };
                self.classes.push(class);
                Inside::Class
            }
            ("field", Inside::Class) => {
                let field = WrittenField {
                    name: text("name"),
                    class: number("class")?,
                    is_constant: is("constantPool", "true"),
                    is_list: attribute("dimension").is_some_and(|dimension| **dimension != *"0"),
                    annotations: Vec::new(),
                };
                if let Some(class) = self.classes.last_mut() {
                    if class.fields.len() == MOST_FIELDS {
                        return Err(before.malformed("a type of too many fields"));
                    }
                    class.fields.push(field);
                }
                Inside::Field
            }
            ("annotation", Inside::Class | Inside::Field) => {
                let value = attribute("value").or_else(|| attribute("value-0")).cloned();
                let annotation = (number("class")?, value);
                if let Some(class) = self.classes.last_mut() {
                    match (inside, class.fields.last_mut()) {
                        (Inside::Field, Some(field)) => field.annotations.push(annotation),
                        _ => class.annotations.push(annotation),
                    }
                }
                Inside::Other
            }
            _ => Inside::Other,
        };
        for _ in 0..self.cursor.count()? {
            self.element(children, depth + 1)?;
        }
        Ok(())
    }
}
