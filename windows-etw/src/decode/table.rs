//! How tables of events are written: the fields of a payload once, from which come the type that it is decoded into, what reads it,
//! and its format; and the events once, from which come what tells them apart, their names and the enum of all.

use collector_common::event::{
    ByteOrder, EventField, EventFormat, Extent, FieldKind, FormatError, Guid, Place,
};

use super::cursor::{Cursor, Layout};
use super::error::DecodeError;
use super::wire::Wire;
use crate::record::{Descriptor, EtwRecord};

/// One field of a payload.
#[derive(Clone, Copy, Debug)]
pub struct FieldSpec {
    /// As its provider calls it.
    pub name: &'static str,
    /// The first version that has it.
    pub since: u8,
    /// The last version that has it.
    pub until: u8,
    pub(crate) kind: fn(Layout) -> (FieldKind, Extent),
}

/// What tells an event from others of its provider or class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKey {
    /// Of classic events: the opcode.
    Opcode(u8),
    /// Of events with a manifest: their number.
    Id(u16),
}

/// One kind of event, as a table has it.
#[derive(Clone, Copy, Debug)]
pub struct EventSpec {
    /// The provider, or the class of classic events.
    pub provider: Guid,
    /// Which of its events.
    pub key: EventKey,
    /// The first version that it describes.
    pub since: u8,
    /// The last.
    pub until: u8,
    /// Task and name, as PerfView prints them: `Process/Start`.
    pub name: &'static str,
    /// The fields of all versions, in their order.
    pub fields: &'static [FieldSpec],
}

impl EventSpec {
    /// Whether it describes an event of this provider and descriptor.
    pub fn is_of(&self, provider: Guid, descriptor: &Descriptor) -> bool {
        let key = match self.key {
            EventKey::Opcode(opcode) => opcode == descriptor.opcode,
            EventKey::Id(id) => id == descriptor.id,
        };
        key && self.provider == provider && (self.since..=self.until).contains(&descriptor.version)
    }

    /// The fields that a version has. Later versions have at least those of the last one that is known.
    pub fn fields_of(&self, version: u8) -> impl Iterator<Item = &'static FieldSpec> {
        self.fields.iter().filter(move |field| (field.since..=field.until).contains(&version))
    }

    /// The format of its payload.
    ///
    /// # Errors
    /// Those of [`EventFormat::add_field`], which no event of the tables has.
    pub fn format(&self, layout: Layout) -> Result<EventFormat, FormatError> {
        let mut format = EventFormat::new(ByteOrder::Little);
        for field in self.fields_of(layout.version) {
            let (kind, extent) = (field.kind)(layout);
            let type_name = kind.name().as_str();
            format.add_field(EventField::new(field.name, type_name, kind, extent, Place::AfterPrevious))?;
        }
        Ok(format)
    }
}

/// A payload that is made by [`layout!`].
pub(crate) trait Payload<'a>: Sized {
    const FIELDS: &'static [FieldSpec];

    fn read(event: &'static str, cursor: &mut Cursor<'a>) -> Result<Self, DecodeError>;

    /// Each field that the version has, as text.
    #[cfg(test)]
    fn shown(&self) -> Vec<(&'static str, String)>;
}

/// The next field.
#[inline]
pub(crate) fn field<'a, T: Wire<'a>>(
    event: &'static str,
    field: &'static str,
    cursor: &mut Cursor<'a>,
) -> Result<T, DecodeError> {
    let position = cursor.position();
    T::read(cursor).map_err(|problem| {
        let (version, len) = (cursor.layout().version, cursor.len());
        DecodeError { event, version, field, position, len, problem }
    })
}

/// The payload of a record.
#[inline]
pub(crate) fn payload<'a, T: Payload<'a>>(
    event: &'static str,
    record: &EtwRecord<'a>,
) -> Result<T, DecodeError> {
    let layout = Layout { version: record.descriptor.version, pointer: record.pointer_size };
    T::read(event, &mut Cursor::new(record.payload, layout))
}

/// The number of a GUID as it is printed.
pub(crate) const fn guid(printed: u128) -> Guid {
    Guid(printed.to_be_bytes())
}

/// The type of a field: optional where not all versions have it.
macro_rules! field_type {
    ($type:ty) => { $type };
    ($type:ty, $since:literal) => { Option<$type> };
}

/// Reads a field, where the version has it.
macro_rules! field_value {
    ($event:ident, $cursor:ident, $name:literal) => {
        $crate::decode::table::field($event, $name, $cursor)?
    };
    ($event:ident, $cursor:ident, $name:literal, $since:literal, $until:literal) => {
        if ($since..=$until).contains(&$cursor.layout().version) {
            Some($crate::decode::table::field($event, $name, $cursor)?)
        } else {
            None
        }
    };
}

/// What is there of a field.
#[cfg(test)]
macro_rules! field_shown {
    ($value:expr) => {
        Some(&$value)
    };
    ($value:expr, $since:literal) => {
        $value.as_ref()
    };
}

/// Versions of a field; all of them where nothing is said.
macro_rules! versions {
    () => {
        (0, u8::MAX)
    };
    ($since:literal, $until:literal) => {
        ($since, $until)
    };
}

/// Types of payloads, each a list of fields `name: Type = "NameOfTheProvider" [first version..=last version];`.
macro_rules! layout {
    ($($(#[$doc:meta])* $name:ident $(<$lifetime:lifetime>)? {
        $($field:ident: $type:ty = $wire:literal $([$since:literal..=$until:literal])?;)*
    })+) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name $(<$lifetime>)? {
            $(#[doc = concat!("`", $wire, "`", $(" of versions ", $since, " to ", $until,)? ".")]
            pub $field: $crate::decode::table::field_type!($type $(, $since)?),)*
        }

        #[allow(unused_variables, clippy::redundant_pub_crate, reason = "there are payloads without fields")]
        impl<'a> $crate::decode::table::Payload<'a> for $name $(<$lifetime>)? {
            const FIELDS: &'static [$crate::decode::table::FieldSpec] = &[
                $($crate::decode::table::FieldSpec {
                    name: $wire,
                    since: $crate::decode::table::versions!($($since, $until)?).0,
                    until: $crate::decode::table::versions!($($since, $until)?).1,
                    kind: <$type as $crate::decode::wire::Wire<'a>>::kind,
                },)*
            ];

            #[inline]
            fn read(
                event: &'static str,
                cursor: &mut $crate::decode::cursor::Cursor<'a>,
            ) -> Result<Self, $crate::decode::DecodeError> {
                Ok(Self {
                    $($field: $crate::decode::table::field_value!(event, cursor, $wire $(, $since, $until)?),)*
                })
            }

            #[cfg(test)]
            fn shown(&self) -> Vec<(&'static str, String)> {
                #[allow(unused_mut, reason = "there are payloads without fields")]
                let mut shown = Vec::new();
                $(if let Some(value) = $crate::decode::table::field_shown!(self.$field $(, $since)?) {
                    shown.push(($wire, <$type as $crate::decode::wire::Wire<'a>>::shown(value)));
                })*
                shown
            }
        })+
    };
}

/// The enum of all events of a table: `key [first version..=last version] => "Name" Variant(Payload);`, by class.
macro_rules! events {
    ($(#[$doc:meta])* $enum:ident by $by:ident($by_type:ident) {
        $($class:ident {
            $($key:literal $([$since:literal..=$until:literal])? => $name:literal $variant:ident($payload:ty);)+
        })+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $enum<'a> {
            $($(#[doc = concat!("`", $name, "`.")] $variant($payload),)+)+
        }

        impl<'a> $enum<'a> {
            /// All that it knows.
            pub const SPECS: &'static [$crate::decode::table::EventSpec] = &[
                $($($crate::decode::table::EventSpec {
                    provider: $class,
                    key: $crate::decode::table::EventKey::$by_type($key),
                    since: $crate::decode::table::versions!($($since, $until)?).0,
                    until: $crate::decode::table::versions!($($since, $until)?).1,
                    name: $name,
                    fields: <$payload as $crate::decode::table::Payload<'a>>::FIELDS,
                },)+)+
            ];

            /// Decodes an event; none if it is not of the table.
            ///
            /// # Errors
            /// When the payload ends before the fields of its version do. What is behind them is passed over.
            pub fn decode(
                record: &$crate::record::EtwRecord<'a>,
            ) -> Result<Option<Self>, $crate::decode::DecodeError> {
                let _version = record.descriptor.version;
                $(if record.provider == $class {
                    return match record.descriptor.$by {
                        $($key $(if ($since..=$until).contains(&_version))? => {
                            $crate::decode::table::payload($name, record).map(|payload| Some(Self::$variant(payload)))
                        })+
                        _ => Ok(None),
                    };
                })+
                Ok(None)
            }

            /// The name of the event, as in its table.
            pub const fn name(&self) -> &'static str {
                match self {
                    $($(Self::$variant(_) => $name,)+)+
                }
            }

            /// Each field that the version has, as text.
            #[cfg(test)]
            pub(crate) fn shown(&self) -> Vec<(&'static str, String)> {
                match self {
                    $($(Self::$variant(payload) => $crate::decode::table::Payload::shown(payload),)+)+
                }
            }
        }
    };
}

#[cfg(test)]
pub(crate) use field_shown;
pub(crate) use {events, field_type, field_value, layout, versions};
