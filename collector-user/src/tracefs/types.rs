//! C types of format files.

use collector_common::event::{FieldKind, PointerWidth, Width};

/// What a type is by its name; `None` for a name that says nothing, as of a `typedef` that is not known here.
pub(super) fn known(type_name: &str) -> Option<FieldKind> {
    let name = type_name.strip_prefix("const ").unwrap_or(type_name);
    Some(match name {
        "bool" => FieldKind::Bool(Width::W8),
        "signed char" | "s8" | "__s8" | "int8_t" => FieldKind::Signed(Width::W8),
        "unsigned char" | "u8" | "__u8" | "uint8_t" => FieldKind::Unsigned(Width::W8),
        "short" | "s16" | "__s16" | "int16_t" => FieldKind::Signed(Width::W16),
        "unsigned short" | "u16" | "__u16" | "uint16_t" | "umode_t" => FieldKind::Unsigned(Width::W16),
        "int" | "s32" | "__s32" | "int32_t" | "pid_t" | "clockid_t" | "key_t" | "key_serial_t" | "mqd_t"
        | "timer_t" | "rwf_t" => FieldKind::Signed(Width::W32),
        "unsigned" | "unsigned int" | "uint" | "u32" | "__u32" | "uint32_t" | "uid_t" | "gid_t" | "qid_t" => {
            FieldKind::Unsigned(Width::W32)
        }
        "long long" | "s64" | "__s64" | "int64_t" | "loff_t" => FieldKind::Signed(Width::W64),
        "unsigned long long" | "u64" | "__u64" | "uint64_t" => FieldKind::Unsigned(Width::W64),
        "long" | "ssize_t" | "off_t" => FieldKind::Signed(WORD),
        "unsigned long" | "size_t" | "cpumask_t" => FieldKind::Unsigned(WORD),
        _ => return None,
    })
}

/// What a number of so many bytes is, of a type that says nothing; `None` for a size that no number has.
pub(super) fn by_size(size: u32, signed: bool) -> Option<FieldKind> {
    let width = match size {
        1 => Width::W8,
        2 => Width::W16,
        4 => Width::W32,
        8 => Width::W64,
        _ => return None,
    };
    Some(if signed { FieldKind::Signed(width) } else { FieldKind::Unsigned(width) })
}

/// An address of so many bytes.
pub(super) fn pointer(size: u32) -> Option<FieldKind> {
    match size {
        4 => Some(FieldKind::Pointer(PointerWidth::W32)),
        8 => Some(FieldKind::Pointer(PointerWidth::W64)),
        _ => None,
    }
}

/// The kernel's `long`.
const WORD: Width = if cfg!(target_pointer_width = "64") { Width::W64 } else { Width::W32 };
