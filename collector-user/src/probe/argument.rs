//! The list of arguments behind a function's name: `(arg0:u64, arg1:str)`.
//!
//! An argument is `NAME:TYPE`. The names are the caller's own; which argument of the function is meant, the position says,
//! and `_` passes one over. `NAME@REGISTER:TYPE` takes a register instead.

use collector_common::event::{FieldKind, PointerWidth, Width};

/// Names of the kernel's own fields begin so.
const RESERVED: [&str; 2] = ["common_", "__probe_"];

/// `MAX_ARG_NAME_LEN` of the kernel's `trace_probe.h`, of which one is the NUL.
const LONGEST_NAME: usize = 31;

/// Something to be fetched when the probe is hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// What its field is called.
    pub name: String,
    /// Which argument of the function or marker, from 0 on.
    pub position: usize,
    /// A register to take instead, as the architecture calls it.
    pub register: Option<String>,
    /// What its value is.
    pub kind: ArgumentType,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentType {
    /// A number without a sign, of 8, 16, 32 or 64 bits.
    Unsigned(u8),
    /// A number with a sign, of 8, 16, 32 or 64 bits.
    Signed(u8),
    /// The address of text that ends with a NUL: the text, as far as its memory can be read when the probe is hit.
    Text,
    /// In a probe of the kernel, the address of such text in the process.
    UserText,
    /// An address.
    Pointer,
    /// Whether the lowest byte is not 0.
    Bool,
}

impl ArgumentType {
    fn parse(text: &str) -> Option<Self> {
        let bits = |digits: &str| match digits {
            "8" => Some(8),
            "16" => Some(16),
            "32" => Some(32),
            "64" => Some(64),
            _ => None,
        };
        match text {
            "str" => return Some(Self::Text),
            "ustr" => return Some(Self::UserText),
            "ptr" => return Some(Self::Pointer),
            "bool" => return Some(Self::Bool),
            _ => {}
        }
        match text.split_at_checked(1)? {
            ("u" | "x", digits) => bits(digits).map(Self::Unsigned),
            ("i" | "s", digits) => bits(digits).map(Self::Signed),
            _ => None,
        }
    }

    /// Its fetch argument, of a place as `%di` or `-8(%bp)`: the place with its type.
    pub(super) fn fetch(self, place: &str) -> String {
        match self {
            Self::Unsigned(bits) => format!("{place}:u{bits}"),
            Self::Signed(bits) => format!("{place}:s{bits}"),
            Self::Text => format!("+0({place}):string"),
            Self::UserText => format!("+0({place}):ustring"),
            Self::Pointer => format!("{place}:u64"),
            Self::Bool => format!("{place}:u8"),
        }
    }

    /// Its type in C's words and what it is, where it is the lower part of a register. Of text it is the address.
    #[cfg(feature = "ebpf")]
    pub(super) fn in_register(self) -> (String, FieldKind) {
        let width = |bits| match bits {
            8 => Width::W8,
            16 => Width::W16,
            32 => Width::W32,
            _ => Width::W64,
        };
        match self {
            Self::Unsigned(bits) => (format!("u{bits}"), FieldKind::Unsigned(width(bits))),
            Self::Signed(bits) => (format!("s{bits}"), FieldKind::Signed(width(bits))),
            Self::Bool => ("bool".to_owned(), FieldKind::Bool(Width::W8)),
            Self::Pointer | Self::Text | Self::UserText => {
                ("void *".to_owned(), FieldKind::Pointer(PointerWidth::W64))
            }
        }
    }

    /// What its field holds, where the kernel's type does not tell.
    pub(super) fn field_kind(self) -> Option<FieldKind> {
        match self {
            Self::Pointer => Some(FieldKind::Pointer(PointerWidth::W64)),
            Self::Bool => Some(FieldKind::Bool(Width::W8)),
            _ => None,
        }
    }
}

/// Reads what is between the parentheses. The error says what is wrong with it.
pub(super) fn parse_list(list: &str) -> Result<Vec<Argument>, String> {
    let mut arguments: Vec<Argument> = Vec::new();
    if list.trim().is_empty() {
        return Ok(arguments);
    }
    for (position, text) in list.split(',').map(str::trim).enumerate() {
        if text == "_" {
            continue;
        }
        let Some((name, kind)) = text.split_once(':') else {
            return Err(format!("`{text}` is no argument, which is NAME:TYPE, as count:u32"));
        };
        let (name, register) = match name.split_once('@') {
            Some((name, register)) => (name.trim(), Some(register.trim().to_owned())),
            None => (name.trim(), None),
        };
        let kind = ArgumentType::parse(kind.trim()).ok_or_else(|| {
            format!(
                "`{}` is no type of an argument: use u8 to u64, i8 to i64, x8 to x64, str, ptr or bool",
                kind.trim()
            )
        })?;
        check_name(name)?;
        let told = name.strip_prefix("arg").and_then(|digits| digits.parse::<usize>().ok());
        if register.is_none() && told.is_some_and(|told| told != position) {
            let others = "_, ".repeat(told.unwrap_or_default().min(8));
            return Err(format!(
                "`{name}` is in the place of argument {position}: arguments are taken by their places, and `_` passes one over, as in \
                 ({others}{name}:{})",
                text.split_once(':').map_or("", |(_, kind)| kind.trim()),
            ));
        }
        if arguments.iter().any(|other| other.name == name) {
            return Err(format!("two arguments are called `{name}`: give each a name of its own"));
        }
        arguments.push(Argument { name: name.to_owned(), position, register, kind });
    }
    Ok(arguments)
}

fn check_name(name: &str) -> Result<(), String> {
    let is_part = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    let begins = |first: &u8| *first == b'_' || first.is_ascii_alphabetic();
    if !name.as_bytes().first().is_some_and(begins) || !name.bytes().all(is_part) {
        return Err(format!("`{name}` is no name of an argument: use letters, digits and `_`"));
    }
    if name.len() > LONGEST_NAME {
        return Err(format!("the name `{name}` is longer than {LONGEST_NAME} characters"));
    }
    match RESERVED.iter().find(|reserved| name.starts_with(**reserved)) {
        Some(reserved) => {
            Err(format!("`{name}` begins as the kernel's own fields do, with {reserved}: use another name"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_and_names_are_free() {
        let list = parse_list("a:u8, _,text:str , c@rdi:i64, p:ptr,b:bool,x:x16").unwrap();
        let told: Vec<_> =
            list.iter().map(|it| (it.name.as_str(), it.position, it.kind.fetch("%di"))).collect();
        let expected = [
            ("a", 0, "%di:u8"),
            ("text", 2, "+0(%di):string"),
            ("c", 3, "%di:s64"),
            ("p", 4, "%di:u64"),
            ("b", 5, "%di:u8"),
            ("x", 6, "%di:u16"),
        ];
        assert_eq!(told, expected.map(|(name, position, fetch)| (name, position, fetch.to_owned())));
        assert_eq!(list[2].register.as_deref(), Some("rdi"));
        assert_eq!(parse_list(" "), Ok(vec![]));
        assert_eq!(parse_list("arg0:u64, _, arg2:str").unwrap().len(), 2);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (list, expected) in [
            ("a", "`a` is no argument, which is NAME:TYPE"),
            ("a:u64,", "`` is no argument"),
            ("a:u7", "`u7` is no type"),
            ("a:é", "`é` is no type"),
            ("a:u64, a:u8", "two arguments are called `a`"),
            ("arg2:u64", "as in (_, _, arg2:u64)"),
            ("a:u8, arg0:u64", "`arg0` is in the place of argument 1"),
            ("1a:u64", "no name of an argument"),
            (":u64", "no name of an argument"),
            ("common_pid:u32", "begins as the kernel's own"),
            (&format!("{}:u8", "a".repeat(32)), "longer than 31"),
        ] {
            let error = parse_list(list).unwrap_err();
            assert!(error.contains(expected), "{list}: {error}");
        }
    }
}
