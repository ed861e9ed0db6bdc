//! Types in, the event that tells a chunk's reader of them out: a table of texts, and a tree of elements with attributes that are
//! numbers of these.

use collector_common::intern::InternedStrings;

use super::types::{Class, Content, Field, Shape, Super, id};
use super::wire::{int, long, size, text};

/// The event of all types, from its size on.
pub(super) fn event(classes: &[Class], start: u64) -> Vec<u8> {
    const TYPE: u64 = 0;
    const NO_DURATION: u64 = 0;
    const METADATA_ID: u64 = 1;
    let mut tree = Tree::default();
    tree.element("root", &[], 2);
    tree.element("metadata", &[], classes.len());
    for class in classes {
        tree.class(class);
    }
    tree.element("region", &[("locale", "en_US"), ("gmtOffset", "0")], 0);

    let mut content = Vec::new();
    for number in [TYPE, start, NO_DURATION, METADATA_ID] {
        long(&mut content, number);
    }
    int(&mut content, tree.texts.len() as i32);
    for of_table in tree.texts.iter() {
        text(&mut content, of_table);
    }
    content.extend(tree.elements);
    let mut event = Vec::new();
    size(&mut event, content.len() as u64);
    event.extend(content);
    event
}

#[derive(Default)]
struct Tree {
    texts: InternedStrings,
    elements: Vec<u8>,
}

impl Tree {
    /// Begins an element; its children follow.
    fn element(&mut self, name: &str, attributes: &[(&str, &str)], children: usize) {
        self.text(name);
        int(&mut self.elements, attributes.len() as i32);
        for (name, value) in attributes {
            self.text(name);
            self.text(value);
        }
        int(&mut self.elements, children as i32);
    }

    fn text(&mut self, text: &str) {
        let number = self.texts.intern(text);
        int(&mut self.elements, number.0 as i32);
    }

    fn class(&mut self, class: &Class) {
        let id = class.id.to_string();
        let mut attributes = vec![("id", id.as_str()), ("name", &class.name)];
        match class.super_type {
            Super::None => {}
            Super::Simple => attributes.push(("simpleType", "true")),
            Super::Event => attributes.push(("superType", "jdk.jfr.Event")),
            Super::Annotation | Super::ContentType => {
                attributes.push(("superType", "java.lang.annotation.Annotation"));
            }
        }
        let is_content_type = class.super_type == Super::ContentType;
        let annotations = [!class.label.is_empty(), !class.category.is_empty(), is_content_type];
        let annotations = annotations.into_iter().filter(|is_there| *is_there).count();
        self.element("class", &attributes, annotations + class.fields.len() + class.numbers.len());
        if is_content_type {
            self.annotation(id::CONTENT_TYPE, &[]);
        }
        self.label(&class.label);
        if !class.category.is_empty() {
            let names: Vec<_> = (0..class.category.len()).map(|at| format!("value-{at}")).collect();
            let values = names.iter().zip(class.category).map(|(name, value)| (name.as_str(), *value));
            self.annotation(id::CATEGORY, &values.collect::<Vec<_>>());
        }
        for field in &class.fields {
            self.field(field);
        }
        for (name, label) in &class.numbers {
            let class = id::LONG.to_string();
            self.element("field", &[("name", name), ("class", &class)], usize::from(!label.is_empty()));
            self.label(label);
        }
    }

    fn label(&mut self, label: &str) {
        if !label.is_empty() {
            self.annotation(id::LABEL, &[("value", label)]);
        }
    }

    fn field(&mut self, field: &Field) {
        let class = field.class.to_string();
        let mut attributes = vec![("name", field.name), ("class", class.as_str())];
        match field.shape {
            Shape::Inline => {}
            Shape::Constant => attributes.push(("constantPool", "true")),
            Shape::List => attributes.push(("dimension", "1")),
        }
        let told: &[(u64, Option<&str>)] = match field.content {
            Content::Plain => &[],
            Content::Unsigned => &[(id::UNSIGNED, None)],
            Content::Time => &[(id::TIMESTAMP, Some("TICKS"))],
            Content::UnixMilliseconds => &[(id::TIMESTAMP, Some("MILLISECONDS_SINCE_EPOCH"))],
            Content::Ticks => &[(id::TIMESPAN, Some("TICKS"))],
            Content::Nanoseconds => &[(id::TIMESPAN, Some("NANOSECONDS"))],
            Content::Milliseconds => &[(id::TIMESPAN, Some("MILLISECONDS"))],
            Content::Bytes => &[(id::DATA_AMOUNT, Some("BYTES"))],
            Content::Address => &[(id::UNSIGNED, None), (id::MEMORY_ADDRESS, None)],
        };
        self.element("field", &attributes, usize::from(!field.label.is_empty()) + told.len());
        self.label(field.label);
        for (annotation, value) in told {
            let value = value.map(|value| ("value", value));
            self.annotation(*annotation, value.as_slice());
        }
    }

    fn annotation(&mut self, class: u64, values: &[(&str, &str)]) {
        let class = class.to_string();
        let attributes: Vec<_> =
            [("class", class.as_str())].into_iter().chain(values.iter().copied()).collect();
        self.element("annotation", &attributes, 0);
    }
}
