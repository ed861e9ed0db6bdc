//! What a map's records hold, as it is written: `pid:u32, _:u32, ns:u64, comm:char[16]`.
//!
//! A field is `NAME:TYPE`, one behind the other as in a packed structure; `_` is a gap. Types are u8 to u64, i8 to i64, x8 to
//! x64, f32, f64, bool, ptr, char, ipv4 and ipv6. `TYPE[N]` is so many of them, and of char text; `TYPE[]`, which comes last,
//! as many as are left; `str` is `char[]`, which ends at its first NUL.

use collector_common::event::{
    EventField, EventFormat, Extent, FieldKind, FloatWidth, Place, PointerWidth, Width,
};

/// What the whole record is called where no fields are named.
const WHOLE: &str = "data";

/// A part of a record.
#[derive(Clone, Debug)]
pub struct MapField {
    /// What it is called; `None` for a gap.
    pub name: Option<String>,
    /// Its type, as it was written.
    pub type_name: String,
    /// What one element is.
    pub kind: FieldKind,
    /// How many elements there are.
    pub extent: Extent,
}

/// Reads what is between the parentheses. The error says what is wrong with it.
pub(super) fn parse_list(list: &str) -> Result<Vec<MapField>, String> {
    let mut fields: Vec<MapField> = Vec::new();
    if list.trim().is_empty() {
        return Ok(fields);
    }
    for text in list.split(',').map(str::trim) {
        if let Some(last) = fields.last().filter(|last| size(last).is_none()) {
            return Err(format!("nothing follows {}, which is all that is left of a record", last.type_name));
        }
        let Some((name, type_name)) = text.split_once(':') else {
            return Err(format!("`{text}` is no field, which is NAME:TYPE, as pid:u32"));
        };
        let (name, type_name) = (name.trim(), type_name.trim());
        let (kind, extent) = parse_type(type_name)?;
        check_name(name)?;
        if name != "_" && fields.iter().any(|other| other.name.as_deref() == Some(name)) {
            return Err(format!("two fields are called `{name}`: give each a name of its own"));
        }
        let name = (name != "_").then(|| name.to_owned());
        fields.push(MapField { name, type_name: type_name.to_owned(), kind, extent });
    }
    Ok(fields)
}

/// The format that the fields make; the error says which of them can't be.
pub(super) fn format(fields: &[MapField]) -> Result<EventFormat, String> {
    let mut format = EventFormat::default();
    let mut offset = 0_u32;
    for field in fields {
        if let Some(name) = &field.name {
            let place = Place::At(offset);
            let MapField { type_name, kind, extent, .. } = field;
            let field = EventField::new(name.as_str(), type_name.as_str(), kind.clone(), *extent, place);
            format.add_field(field).map_err(|error| error.to_string())?;
        }
        let end = offset.checked_add(size(field).unwrap_or(0));
        offset = end.ok_or_else(|| format!("a record ends before {}", field.type_name))?;
    }
    if fields.is_empty() {
        let bytes = FieldKind::Unsigned(Width::W8);
        let whole = EventField::new(WHOLE, "u8[]", bytes, Extent::Rest, Place::At(0));
        format.add_field(whole).map_err(|error| error.to_string())?;
    }
    Ok(format)
}

/// Bytes that it takes; `None` for all that are left.
fn size(field: &MapField) -> Option<u32> {
    match field.extent {
        Extent::One => field.kind.size(),
        Extent::Array(count) => Some(field.kind.size()?.saturating_mul(count)),
        _ => None,
    }
}

fn parse_type(text: &str) -> Result<(FieldKind, Extent), String> {
    let wrong = || {
        format!(
            "`{text}` is no type of a field: use u8 to u64, i8 to i64, x8 to x64, f32, f64, bool, ptr, char, ipv4, ipv6, \
             with [N] behind it for N of them, or str"
        )
    };
    if text == "str" {
        return Ok((FieldKind::Char, Extent::ZeroTerminated));
    }
    let Some((one, count)) = text.split_once('[') else {
        return Ok((element(text).ok_or_else(wrong)?, Extent::One));
    };
    let kind = element(one.trim_end()).ok_or_else(wrong)?;
    let count = count.strip_suffix(']').ok_or_else(wrong)?.trim();
    let extent = match (count, count.parse()) {
        ("", _) if kind.is_text() => Extent::ZeroTerminated,
        ("", _) => Extent::Rest,
        (_, Ok(count)) if count > 0 => Extent::Array(count),
        _ => return Err(wrong()),
    };
    Ok((kind, extent))
}

/// What one element is.
fn element(text: &str) -> Option<FieldKind> {
    let width = |digits: &str| match digits {
        "8" => Some(Width::W8),
        "16" => Some(Width::W16),
        "32" => Some(Width::W32),
        "64" => Some(Width::W64),
        _ => None,
    };
    Some(match text {
        "char" => FieldKind::Char,
        "bool" => FieldKind::Bool(Width::W8),
        "ptr" => FieldKind::Pointer(PointerWidth::W64),
        "f32" => FieldKind::Float(FloatWidth::W32),
        "f64" => FieldKind::Float(FloatWidth::W64),
        "ipv4" => FieldKind::Ipv4,
        "ipv6" => FieldKind::Ipv6,
        _ => match text.split_at_checked(1)? {
            ("u" | "x", digits) => FieldKind::Unsigned(width(digits)?),
            ("i" | "s", digits) => FieldKind::Signed(width(digits)?),
            _ => return None,
        },
    })
}

fn check_name(name: &str) -> Result<(), String> {
    let is_part = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    let begins = |first: &u8| *first == b'_' || first.is_ascii_alphabetic();
    if name.as_bytes().first().is_some_and(begins) && name.bytes().all(is_part) {
        Ok(())
    } else {
        Err(format!("`{name}` is no name of a field: use letters, digits and `_`"))
    }
}

#[cfg(test)]
mod tests {
    use collector_common::event::EventData;

    use super::*;

    #[test]
    fn fields_lie_one_behind_the_other() {
        let list = "pid:u32, _:u32,ns : u64, comm:char[16], ok:bool, _:u8[3], to:ipv4, by:i16[2], load:f64, rest:str";
        let format = format(&parse_list(list).unwrap()).unwrap();
        let mut record = Vec::new();
        record.extend(7_u32.to_ne_bytes());
        record.extend([0xff; 4]);
        record.extend(9_000_000_000_u64.to_ne_bytes());
        record.extend(*b"worker\0\0rubbish!");
        record.extend([1, 0xff, 0xff, 0xff, 127, 0, 0, 1]);
        record.extend([(-1_i16).to_ne_bytes(), 2_i16.to_ne_bytes()].concat());
        record.extend(0.5_f64.to_ne_bytes());
        record.extend(*b"to the end\0padding");
        let data = EventData::new(&record, &record, &format);
        let field = |name| format.field_ref(name).unwrap();
        assert_eq!(data.try_get_u32(field("pid")), Ok(7));
        assert_eq!(data.try_get_u64(field("ns")), Ok(9_000_000_000));
        assert_eq!(data.try_get_str(field("comm")), Ok("worker"));
        assert_eq!(data.try_get_bool(field("ok")), Ok(true));
        assert_eq!(data.try_get_ipv4(field("to")).unwrap().to_string(), "127.0.0.1");
        assert_eq!(data.try_get_f64(field("load")), Ok(0.5));
        assert_eq!(data.try_get_str(field("rest")), Ok("to the end"));
        assert!(data.as_text().to_string().contains("by=[-1, 2]"), "{}", data.as_text());
        assert_eq!(format.fields().len(), 8);
        let short = EventData::new(&record[..12], &record[..12], &format);
        assert!(short.try_get_u64(field("ns")).is_err() && short.try_get_u32(field("pid")) == Ok(7));
    }

    #[test]
    fn without_fields_it_is_bytes() {
        for list in ["", "  "] {
            let format = format(&parse_list(list).unwrap()).unwrap();
            let data = EventData::new(b"abc", b"abc", &format);
            assert_eq!(data.try_get_slice(format.field_ref("data").unwrap()), Ok(&b"abc"[..]));
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (list, expected) in [
            ("pid", "`pid` is no field, which is NAME:TYPE"),
            ("pid:u32,", "`` is no field"),
            ("_", "`_` is no field"),
            ("pid:u7", "`u7` is no type of a field"),
            ("pid:é", "`é` is no type"),
            ("comm:char[16", "`char[16` is no type"),
            ("comm:char[0]", "`char[0]` is no type"),
            ("comm:char[-1]", "`char[-1]` is no type"),
            ("comm:char[99999999999]", "no type"),
            ("comm:char[1]x", "no type"),
            ("a:u8[], b:u8", "nothing follows u8[]"),
            ("a:str, b:u8", "nothing follows str"),
            ("a:u64, a:u8", "two fields are called `a`"),
            ("1a:u64", "no name of a field"),
            (":u64", "no name of a field"),
        ] {
            let error = parse_list(list).unwrap_err();
            assert!(error.contains(expected), "{list}: {error}");
        }
        for list in ["a:u64[999999999]", "_:u64[4294967295], _:u64[4294967295], a:u8"] {
            let error = parse_list(list).and_then(|fields| format(&fields)).unwrap_err();
            assert!(!error.is_empty(), "{list}");
        }
        let many = vec!["_:u8"; 5000].join(",") + ",a:u8";
        assert!(parse_list(&many).and_then(|fields| format(&fields)).is_ok(), "gaps are no fields");
        let many: Vec<_> = (0..5000).map(|it| format!("a{it}:u8")).collect();
        let error = parse_list(&many.join(",")).and_then(|fields| format(&fields)).unwrap_err();
        assert!(error.contains("more fields than"), "{error}");
    }
}
