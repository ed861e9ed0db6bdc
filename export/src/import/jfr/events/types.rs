//! What a chunk's metadata tells: types, their fields, and what these mean.

use std::collections::HashMap;
use std::sync::Arc;

use super::ReadError;
use super::metadata::{WrittenClass, WrittenField};

/// How deep values may be within each other, not counting constants.
const DEEPEST: u32 = 16;

/// So many fields are gone through for one of a name, and more are looked up.
const FEW: usize = 32;

/// What a value of a type is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    Byte,
    Short,
    Char,
    Int,
    Long,
    Float,
    Double,
    Text,
    Struct,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "boolean" => Self::Boolean,
            "byte" => Self::Byte,
            "short" => Self::Short,
            "char" => Self::Char,
            "int" => Self::Int,
            "long" => Self::Long,
            "float" => Self::Float,
            "double" => Self::Double,
            "java.lang.String" => Self::Text,
            _ => Self::Struct,
        }
    }
}

/// What is said of a type or a field.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Annotation {
    name: Arc<str>,
    value: Option<Arc<str>>,
}

/// A type of events or of what they are made of.
#[derive(Clone, Debug)]
pub struct Type {
    pub(super) id: u64,
    name: Arc<str>,
    pub(super) kind: Kind,
    is_event: bool,
    fields: Vec<Field>,
    annotations: Vec<Annotation>,
    /// Whether its values take no bytes.
    pub(super) is_empty: bool,
    /// Positions of the fields whose values take bytes.
    pub(super) written: Vec<usize>,
    /// Positions of the fields by name, where there are many.
    by_name: HashMap<Arc<str>, usize>,
}

/// A field of a type.
#[derive(Clone, Debug)]
pub struct Field {
    name: Arc<str>,
    /// A position among the types.
    pub(super) of: usize,
    pub(super) is_constant: bool,
    pub(super) is_list: bool,
    annotations: Vec<Annotation>,
    /// A number that is never below 0.
    pub(super) is_unsigned: bool,
}

impl Type {
    /// The number that its events have in the chunk, and settings name it by.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Its name, as `jdk.ExecutionSample`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is called for people, where that is told.
    pub fn label(&self) -> Option<&str> {
        annotation(&self.annotations, "jdk.jfr.Label")
    }

    /// Whether it is a type of events.
    pub const fn is_event(&self) -> bool {
        self.is_event
    }

    /// Its fields, in the order of the file.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.get(self.position(name)?)
    }

    /// The position of the field of a name.
    pub fn position(&self, name: &str) -> Option<usize> {
        if self.fields.len() <= FEW {
            return self.fields.iter().position(|field| *field.name == *name);
        }
        self.by_name.get(name).copied()
    }
}

impl Field {
    /// Its name, as `startTime`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What an annotation says: of `jdk.jfr.Timespan` for one the unit, of `jdk.jfr.Unsigned` nothing but that it is there.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        annotation(&self.annotations, name)
    }
}

fn annotation<'a>(annotations: &'a [Annotation], name: &str) -> Option<&'a str> {
    let found = annotations.iter().find(|annotation| *annotation.name == *name)?;
    Some(found.value.as_deref().unwrap_or_default())
}

/// All types of a chunk.
#[derive(Debug, Default)]
pub(super) struct Types {
    pub(super) list: Vec<Type>,
    by_id: HashMap<u64, usize>,
    /// The position of text.
    pub(super) text: Option<usize>,
}

impl Types {
    /// Puts together what was written. `position` is where that stands.
    pub(super) fn of(classes: Vec<WrittenClass>, position: u64) -> Result<Self, ReadError> {
        let by_id: HashMap<u64, usize> = classes.iter().zip(0..).map(|(class, at)| (class.id, at)).collect();
        let names: Vec<Arc<str>> = classes.iter().map(|class| class.name.clone()).collect();
        let annotations = |written: Vec<(u64, Option<Arc<str>>)>| -> Vec<Annotation> {
            let known = written.into_iter().filter_map(|(id, value)| {
                let name = names.get(*by_id.get(&id)?)?.clone();
                Some(Annotation { name, value })
            });
            known.collect()
        };
        let field = |written: WrittenField| -> Result<Field, ReadError> {
            let unknown = ReadError::Malformed { what: "a field of an unknown type", position };
            let annotations = annotations(written.annotations);
            Ok(Field {
                of: *by_id.get(&written.class).ok_or(unknown)?,
                is_unsigned: annotation(&annotations, "jdk.jfr.Unsigned").is_some(),
                annotations,
                name: written.name,
                is_constant: written.is_constant,
                is_list: written.is_list,
            })
        };
        let mut list = Vec::with_capacity(classes.len());
        for class in classes {
            let kind = Kind::of(&class.name);
            list.push(Type {
                id: class.id,
                kind,
                name: class.name,
                is_event: class.is_event,
                annotations: annotations(class.annotations),
                fields: class.fields.into_iter().map(field).collect::<Result<_, _>>()?,
                is_empty: false,
                written: Vec::new(),
                by_name: HashMap::new(),
            });
        }
        for of in list.iter_mut().filter(|of: &&mut Type| of.fields.len() > FEW) {
            for (position, field) in of.fields.iter().enumerate() {
                of.by_name.entry(field.name.clone()).or_insert(position);
            }
        }
        let text = list.iter().position(|of| of.kind == Kind::Text);
        let mut types = Self { list, by_id, text };
        types.find_empty(position)?;
        Ok(types)
    }

    /// The position of a type.
    pub(super) fn position(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Finds types whose values take no bytes, and refuses those that are within themselves.
    fn find_empty(&mut self, position: u64) -> Result<(), ReadError> {
        // By type: 0 where it is not known, else one more than how deep its values are.
        let mut depths = vec![0; self.list.len()];
        for at in 0..self.list.len() {
            self.measure(at, &mut depths, 0, position)?;
        }
        Ok(())
    }

    fn measure(
        &mut self,
        at: usize,
        depths: &mut [u32],
        outside: u32,
        position: u64,
    ) -> Result<u32, ReadError> {
        let too_deep = ReadError::Malformed { what: "types that are too deep within each other", position };
        if depths[at] != 0 {
            return Ok(depths[at]);
        }
        if outside > DEEPEST {
            return Err(too_deep);
        }
        let mut deepest = 0;
        let mut written = Vec::new();
        let is_struct = self.list[at].kind == Kind::Struct;
        let fields = if is_struct { self.list[at].fields.len() } else { 0 };
        for field in 0..fields {
            let Field { of, is_constant, is_list, .. } = self.list[at].fields[field];
            if !is_constant {
                deepest = deepest.max(self.measure(of, depths, outside + 1, position)?);
            }
            if is_constant || is_list || !self.list[of].is_empty {
                written.push(field);
            }
        }
        if deepest > DEEPEST {
            return Err(too_deep);
        }
        self.list[at].is_empty = is_struct && written.is_empty();
        self.list[at].written = written;
        depths[at] = deepest + 1;
        Ok(depths[at])
    }
}
