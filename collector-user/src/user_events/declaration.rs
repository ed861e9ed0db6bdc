//! What an event is to be: a name and fields. Out: the text that the kernel takes, `NAME TYPE FIELD; TYPE FIELD`.
//!
//! Source of the types: `user_field_size` in `kernel/trace/trace_events_user.c`. Fields lie one behind the other without gaps.

use std::fmt::Write as _;

use collector_common::event::{Extent, FieldKind, Width};

use super::error::DeclarationError;

/// Bytes of a declaration without its NUL (`MAX_EVENT_DESC`).
pub const LONGEST_DECLARATION: usize = 511;

/// Bytes of text, or of bytes, in place (`MAX_FIELD_ARRAY_SIZE`).
pub const LONGEST_ARRAY: u32 = 1024;

/// An event that is to be registered.
#[derive(Clone, Debug)]
pub struct Declaration {
    name: String,
    fields: Vec<Field>,
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    kind: FieldKind,
    extent: Extent,
}

/// How a field lies in what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Unsigned(Width),
    Signed(Width),
    /// So many bytes in place.
    Array {
        len: u32,
        is_text: bool,
    },
    /// A word in place that says where the bytes are, behind all fields.
    Elsewhere {
        is_text: bool,
    },
}

impl Declaration {
    /// An event of this name: letters, digits and underscores, of which the first is no digit.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), fields: Vec::new() }
    }

    /// Adds a field, named like events. These can be declared:
    ///
    /// | kind | extent | the kernel's type | values |
    /// |---|---|---|---|
    /// | [`FieldKind::Unsigned`], [`FieldKind::Signed`] | [`Extent::One`] | `u8` to `u64`, `s8` to `s64` | integers, in the machine's byte order |
    /// | [`FieldKind::Char`] | [`Extent::Array`], up to [`LONGEST_ARRAY`] | `char[N]` | text of up to N bytes, filled up with NULs |
    /// | [`FieldKind::Char`] | [`Extent::RelLoc`] | `__rel_loc char[]` | text of any length, behind which a NUL is written |
    /// | `FieldKind::Unsigned(Width::W8)` | [`Extent::Array`], up to [`LONGEST_ARRAY`] | `unsigned char[N]` | N bytes |
    /// | `FieldKind::Unsigned(Width::W8)` | [`Extent::RelLoc`] | `__rel_loc u8[]` | bytes, any number of them |
    ///
    /// Others are refused when it is registered.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, kind: FieldKind, extent: Extent) -> Self {
        self.fields.push(Field { name: name.into(), kind, extent });
        self
    }

    /// The event's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The declaration in the kernel's words.
    ///
    /// # Errors
    /// When a name or a field can't be declared, or all are too long.
    pub fn text(&self) -> Result<String, DeclarationError> {
        let mut text = self.name.clone();
        self.check_name(&self.name)?;
        for (number, field) in self.fields.iter().enumerate() {
            self.check_name(&field.name)?;
            if self.fields[..number].iter().any(|other| other.name == field.name) {
                return Err(DeclarationError::Twice { event: self.name.clone(), field: field.name.clone() });
            }
            let layout = self.layout(field)?;
            let separator = if number == 0 { " " } else { "; " };
            // Writing to a string does not fail.
            let _ = write!(text, "{separator}{} {}", layout.type_name(), field.name);
        }
        if text.len() > LONGEST_DECLARATION {
            return Err(DeclarationError::TooLong { event: self.name.clone(), len: text.len() });
        }
        Ok(text)
    }

    /// Its fields by their names.
    pub(super) fn layouts(&self) -> Result<Vec<(String, Layout)>, DeclarationError> {
        self.fields.iter().map(|field| Ok((field.name.clone(), self.layout(field)?))).collect()
    }

    fn check_name(&self, name: &str) -> Result<(), DeclarationError> {
        let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_word && name.starts_with(|first: char| !first.is_ascii_digit()) {
            return Ok(());
        }
        Err(DeclarationError::Name { event: self.name.clone(), name: name.to_owned() })
    }

    fn layout(&self, field: &Field) -> Result<Layout, DeclarationError> {
        let is_text = matches!(field.kind, FieldKind::Char);
        Ok(match (&field.kind, field.extent) {
            (FieldKind::Unsigned(width), Extent::One) => Layout::Unsigned(*width),
            (FieldKind::Signed(width), Extent::One) => Layout::Signed(*width),
            (FieldKind::Char | FieldKind::Unsigned(Width::W8), Extent::Array(len @ 1..=LONGEST_ARRAY)) => {
                Layout::Array { len, is_text }
            }
            (FieldKind::Char | FieldKind::Unsigned(Width::W8), Extent::RelLoc) => {
                Layout::Elsewhere { is_text }
            }
            (kind, extent) => {
                return Err(DeclarationError::Kind {
                    event: self.name.clone(),
                    field: field.name.clone(),
                    kind: kind.name().as_str(),
                    extent,
                });
            }
        })
    }
}

impl Layout {
    /// Bytes in place.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Unsigned(width) | Self::Signed(width) => width.bytes() as usize,
            Self::Array { len, .. } => len as usize,
            Self::Elsewhere { .. } => size_of::<u32>(),
        }
    }

    fn type_name(self) -> String {
        match self {
            Self::Unsigned(width) => format!("u{}", width.bits()),
            Self::Signed(width) => format!("s{}", width.bits()),
            Self::Array { len, is_text: true } => format!("char[{len}]"),
            Self::Array { len, is_text: false } => format!("unsigned char[{len}]"),
            Self::Elsewhere { is_text: true } => "__rel_loc char[]".to_owned(),
            // Of what has `char` in its name, the kernel wants a NUL at the end.
            Self::Elsewhere { is_text: false } => "__rel_loc u8[]".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use collector_common::event::FloatWidth;

    use super::*;

    const BYTE: FieldKind = FieldKind::Unsigned(Width::W8);

    #[test]
    fn each_kind_has_the_kernel_s_type() {
        let declaration = Declaration::new("all")
            .field("a", BYTE, Extent::One)
            .field("b", FieldKind::Unsigned(Width::W64), Extent::One)
            .field("c", FieldKind::Signed(Width::W16), Extent::One)
            .field("d", FieldKind::Signed(Width::W32), Extent::One)
            .field("e", FieldKind::Char, Extent::Array(16))
            .field("f", BYTE, Extent::Array(1024))
            .field("g", FieldKind::Char, Extent::RelLoc)
            .field("_h9", BYTE, Extent::RelLoc);
        let text = "all u8 a; u64 b; s16 c; s32 d; char[16] e; unsigned char[1024] f; __rel_loc char[] g; \
                    __rel_loc u8[] _h9";
        assert_eq!(declaration.text().as_deref(), Ok(text));
        assert_eq!(Declaration::new("none").text().as_deref(), Ok("none"));
    }

    #[test]
    fn what_the_kernel_has_no_type_for_is_refused() {
        for (kind, extent) in [
            (FieldKind::Float(FloatWidth::W64), Extent::One),
            (FieldKind::Bool(Width::W8), Extent::One),
            (FieldKind::Char, Extent::One),
            (FieldKind::Char, Extent::Array(0)),
            (FieldKind::Char, Extent::Array(1025)),
            (FieldKind::Char, Extent::ZeroTerminated),
            (FieldKind::Unsigned(Width::W32), Extent::Array(2)),
            (FieldKind::Unsigned(Width::W32), Extent::RelLoc),
            (BYTE, Extent::DataLoc),
        ] {
            let error = Declaration::new("e").field("f", kind, extent).text().unwrap_err();
            assert!(error.to_string().contains("field f"), "{error}");
        }
    }

    #[test]
    fn names_are_words() {
        for name in ["", "9th", "a b", "a;b", "a:b", "a/b", "a.b", "ä", "a\0"] {
            let named = Declaration::new(name).text();
            assert!(matches!(named, Err(DeclarationError::Name { .. })), "{name}");
            let field = Declaration::new("e").field(name, BYTE, Extent::One).text();
            assert!(matches!(field, Err(DeclarationError::Name { .. })), "{name}");
        }
        let twice = Declaration::new("e").field("f", BYTE, Extent::One).field("f", BYTE, Extent::One);
        assert!(matches!(twice.text(), Err(DeclarationError::Twice { .. })));
    }

    #[test]
    fn a_declaration_has_room_for_511_bytes() {
        let named = |len| Declaration::new("x".repeat(len)).text();
        assert_eq!(named(511).unwrap().len(), 511);
        assert_eq!(named(512), Err(DeclarationError::TooLong { event: "x".repeat(512), len: 512 }));
    }
}
