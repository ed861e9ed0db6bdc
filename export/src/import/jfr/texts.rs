//! Text of fields in, one copy of each out. A constant is looked at once for each chunk, however many refer to it.

use std::collections::HashMap;

use collector_common::intern::{InternedStrings, StringId};

use super::events::{Constant, Struct, Value};

/// How far text may be within types that have nothing but it.
const DEEPEST: u32 = 3;

/// The most bytes of a name in a machine.
const LONGEST_NAME: usize = 4096;

/// Text.
#[derive(Debug, Default)]
pub(super) struct Texts {
    strings: InternedStrings,
    of_constants: HashMap<Constant, Option<StringId>>,
    /// By the constant that the field is in, its position, and the field of the field where it is that.
    of_fields: HashMap<(Constant, usize, Option<&'static str>), Option<StringId>>,
}

impl Texts {
    /// Forgets what is known by number, as another chunk has others.
    pub(super) fn begin_chunk(&mut self) {
        self.of_constants.clear();
        self.of_fields.clear();
    }

    /// A field's text; empty where it has none.
    pub(super) fn of(&mut self, fields: &Struct<'_>, name: &str) -> StringId {
        self.told(fields, name).unwrap_or_default()
    }

    /// A field's text, where it has one.
    pub(super) fn told(&mut self, fields: &Struct<'_>, name: &str) -> Option<StringId> {
        let position = fields.kind().position(name)?;
        self.once(fields, position, None, |texts| texts.at(fields, position, 0))
    }

    /// The text of the field of a field, as the name of a class.
    pub(super) fn within(&mut self, fields: &Struct<'_>, outer: &str, inner: &'static str) -> StringId {
        let Some(position) = fields.kind().position(outer) else { return StringId::EMPTY };
        let text = self.once(fields, position, Some(inner), |texts| {
            fields.at(position).fields().and_then(|fields| texts.told(&fields, inner))
        });
        text.unwrap_or_default()
    }

    /// Looks at a field of a constant once, however many refer to that: it may have much before the field.
    fn once(
        &mut self,
        fields: &Struct<'_>,
        position: usize,
        inner: Option<&'static str>,
        look: impl FnOnce(&mut Self) -> Option<StringId>,
    ) -> Option<StringId> {
        let Some(owner) = fields.constant() else { return look(self) };
        if let Some(&known) = self.of_fields.get(&(owner, position, inner)) {
            return known;
        }
        let text = look(self);
        self.of_fields.insert((owner, position, inner), text);
        text
    }

    fn at(&mut self, fields: &Struct<'_>, position: usize, depth: u32) -> Option<StringId> {
        let constant = fields.constant_at(position);
        if let Some(&known) = constant.and_then(|constant| self.of_constants.get(&constant)) {
            return known;
        }
        let text = match fields.at(position) {
            Value::Text(text) => Some(self.strings.intern(&text)),
            Value::Struct(of) if depth < DEEPEST && of.kind().fields().len() == 1 => {
                self.at(&of, 0, depth + 1)
            }
            _ => None,
        };
        if let Some(constant) = constant {
            self.of_constants.insert(constant, text);
        }
        text
    }

    /// A text that was made of others.
    pub(super) fn intern(&mut self, text: &str) -> StringId {
        self.strings.intern(text)
    }

    /// The text behind an id.
    pub(super) fn get(&self, id: StringId) -> &str {
        self.strings.get(id)
    }

    /// The same, as long as names may be.
    pub(super) fn name(&self, id: StringId) -> &str {
        let name = self.strings.get(id);
        &name[..name.floor_char_boundary(LONGEST_NAME)]
    }
}
