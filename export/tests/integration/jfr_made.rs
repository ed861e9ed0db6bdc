//! JFR files made by hand, byte for byte: what our writer does not make, and what nobody should.

use std::collections::HashMap;

/// A file's bytes: with numbers of variable length, or of constant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes {
    pub(crate) bytes: Vec<u8>,
    is_compressed: bool,
}

impl Bytes {
    pub(crate) fn new(is_compressed: bool) -> Self {
        Self { bytes: Vec::new(), is_compressed }
    }

    pub(crate) fn byte(&mut self, byte: u8) -> &mut Self {
        self.bytes.push(byte);
        self
    }

    pub(crate) fn long(&mut self, mut number: u64) -> &mut Self {
        if !self.is_compressed {
            self.bytes.extend(number.to_be_bytes());
            return self;
        }
        for _ in 0..8 {
            if number < 0x80 {
                break;
            }
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8)
    }

    pub(crate) fn int(&mut self, number: u32) -> &mut Self {
        if self.is_compressed {
            return self.long(number.into());
        }
        self.bytes.extend(number.to_be_bytes());
        self
    }

    pub(crate) fn short(&mut self, number: u16) -> &mut Self {
        if self.is_compressed {
            return self.long(number.into());
        }
        self.bytes.extend(number.to_be_bytes());
        self
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.byte(3).int(text.len() as u32);
        self.bytes.extend(text.as_bytes());
        self
    }

    /// An event: its size counts itself, and is padded where numbers have a variable length.
    pub(crate) fn event(&mut self, id: u64, content: impl FnOnce(&mut Self) -> &mut Self) -> &mut Self {
        let mut inner = Self::new(self.is_compressed);
        inner.long(id);
        content(&mut inner);
        let size = inner.bytes.len() as u32 + 4;
        if self.is_compressed {
            let sevens = [0, 7, 14].map(|shift| (size >> shift) as u8 | 0x80);
            self.bytes.extend(sevens);
            self.bytes.push((size >> 21) as u8);
        } else {
            self.bytes.extend(size.to_be_bytes());
        }
        self.bytes.extend(inner.bytes);
        self
    }

    /// The event of all types: number and name, whether it is an event, and fields as `name:class` with `#` where it is a constant, and
    /// `[]` where there are several.
    pub(crate) fn types(&mut self, types: &[(u64, &str, bool, &[&str])]) -> &mut Self {
        let mut texts: Vec<String> = Vec::new();
        let mut index: HashMap<String, u32> = HashMap::new();
        let mut tree = Self::new(self.is_compressed);
        let mut number = |text: &str| {
            *index.entry(text.to_owned()).or_insert_with(|| {
                texts.push(text.to_owned());
                texts.len() as u32 - 1
            })
        };
        let mut element = |name: &str, attributes: &[(&str, &str)], children: usize| {
            tree.int(number(name)).int(attributes.len() as u32);
            for (key, value) in attributes {
                tree.int(number(key)).int(number(value));
            }
            tree.int(children as u32);
        };
        element("root", &[], 1);
        element("metadata", &[], types.len());
        for (id, name, is_event, fields) in types {
            let id = id.to_string();
            let mut attributes = vec![("id", id.as_str()), ("name", *name)];
            attributes.extend(is_event.then_some(("superType", "jdk.jfr.Event")));
            element("class", &attributes, fields.len());
            for field in *fields {
                let (name, class) = field.split_once(':').unwrap();
                let (is_constant, is_list) = (class.ends_with('#'), class.ends_with("[]"));
                let class = class.trim_end_matches(['#', '[', ']']);
                let mut attributes = vec![("name", name), ("class", class)];
                attributes.extend(is_constant.then_some(("constantPool", "true")));
                attributes.extend(is_list.then_some(("dimension", "1")));
                element("field", &attributes, 0);
            }
        }
        self.event(0, |out| {
            out.long(5).long(0).long(1).int(texts.len() as u32);
            for text in &texts {
                out.text(text);
            }
            out.bytes.extend(tree.bytes);
            out
        })
    }

    /// A chunk of what was written, whose clock has two ticks in a nanosecond.
    pub(crate) fn chunk(&self) -> Vec<u8> {
        let mut chunk = b"FLR\0\0\x02\0\x01".to_vec();
        let size = 68 + self.bytes.len() as u64;
        for number in [size, 0, 0, 1_000_000, 50, 100, 2_000_000_000] {
            chunk.extend(number.to_be_bytes());
        }
        chunk.extend([0, 0, 0, u8::from(self.is_compressed)]);
        chunk.extend(&self.bytes);
        chunk
    }
}
