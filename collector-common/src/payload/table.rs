//! How tables of events are written: the fields of a payload once, from which come the type that it is decoded into, what reads it,
//! and its format; and the events once, from which come what tells them apart, their names and the enum of all.

use crate::event::{
    ByteOrder, Event, EventField, EventFormat, EventId, Extent, FieldKind, FormatError, Guid, Place,
};

use super::cursor::{Cursor, Layout};
use super::encoded::Encoded;
use super::error::DecodeError;
use super::wire::Wire;

/// One field of a payload.
#[derive(Clone, Copy, Debug)]
pub struct FieldSpec {
    /// As its provider calls it.
    pub name: &'static str,
    /// The first version that has it.
    pub since: u8,
    /// The last version that has it.
    pub until: u8,
    /// What it is, and how many.
    pub kind: fn(Layout) -> (FieldKind, Extent),
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
    /// The name in the provider's manifest, without the version that it may end with: `GCStart`. Empty where there is no manifest.
    pub manifest_name: &'static str,
    /// The fields of all versions, in their order.
    pub fields: &'static [FieldSpec],
}

impl EventSpec {
    /// Whether it describes this event.
    pub fn is_of(&self, event: &Encoded<'_>) -> bool {
        let key = match self.key {
            EventKey::Opcode(opcode) => opcode == event.opcode,
            EventKey::Id(id) => id == event.id,
        };
        key && self.provider == event.provider && (self.since..=self.until).contains(&event.version)
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

    /// An event of this kind, to which closures and filters can be added.
    ///
    /// ```
    /// # use std::{cell::Cell, rc::Rc};
    /// use collector_common::event::{EventErrors, EventId};
    /// use collector_common::payload::clr::ClrEvent;
    /// use collector_common::payload::{Layout, PointerSize};
    ///
    /// let spec = ClrEvent::SPECS.iter().find(|spec| spec.manifest_name == "GCEnd").unwrap();
    /// let layout = Layout { version: 1, pointer: PointerSize::Bits64 };
    /// let mut end = spec.event(EventId(1), layout)?;
    /// let count = end.format().field_ref("Count").unwrap();
    /// # let seen = Rc::new(Cell::new(0));
    /// # let sum = seen.clone();
    /// end.add_closure(move |data| {
    ///     println!("collection {}", data.try_get_u32(count)?);
    /// #   sum.set(data.try_get_u32(count)?);
    ///     Ok(())
    /// });
    /// // The payload of a record.
    /// let payload = [0xd2, 4, 0, 0, 2, 0, 0, 0, 3, 0];
    /// end.process(&payload, &payload, &mut EventErrors::new());
    /// # assert_eq!(seen.get(), 1234);
    /// # Ok::<(), collector_common::event::FormatError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`EventSpec::format`].
    pub fn event(&self, id: EventId, layout: Layout) -> Result<Event, FormatError> {
        let mut event = Event::new(id, self.name);
        *event.format_mut() = self.format(layout)?;
        Ok(event)
    }
}

/// A payload that is made by [`layout!`](crate::layout).
pub trait Payload<'a>: Sized {
    /// The fields of all versions, in their order.
    const FIELDS: &'static [FieldSpec];

    /// Reads one.
    ///
    /// # Errors
    /// When the payload ends before the fields of its version do.
    fn read(event: &'static str, cursor: &mut Cursor<'a>) -> Result<Self, DecodeError>;

    /// Each field that the version has, as text.
    fn shown(&self) -> Vec<(&'static str, String)>;
}

/// The next field.
///
/// # Errors
/// When it is not whole.
#[inline]
pub fn field<'a, T: Wire<'a>>(
    event: &'static str,
    field: &'static str,
    cursor: &mut Cursor<'a>,
) -> Result<T, DecodeError> {
    let position = cursor.position();
    T::read(cursor).map_err(|problem| {
        let (version, len) = (cursor.layout().version, cursor.total());
        DecodeError { event, version, field, position, len, problem }
    })
}

/// The payload of an event.
///
/// # Errors
/// When it ends before the fields of its version do.
#[inline]
pub fn payload<'a, T: Payload<'a>>(event: &'static str, of: &Encoded<'a>) -> Result<T, DecodeError> {
    let layout = Layout { version: of.version, pointer: of.pointer_size };
    T::read(event, &mut Cursor::new(of.bytes, layout))
}

/// The number of a GUID as it is printed.
pub const fn guid(printed: u128) -> Guid {
    Guid(printed.to_be_bytes())
}

/// The type of a field: optional where not all versions have it.
#[doc(hidden)]
#[macro_export]
macro_rules! payload_field_type {
    ($type:ty) => { $type };
    ($type:ty, $since:literal) => { Option<$type> };
}

/// Reads a field, where the version has it.
#[doc(hidden)]
#[macro_export]
macro_rules! payload_field_value {
    ($event:ident, $cursor:ident, $name:literal) => {
        $crate::payload::field($event, $name, $cursor)?
    };
    ($event:ident, $cursor:ident, $name:literal, $since:literal, $until:literal) => {
        if ($since..=$until).contains(&$cursor.layout().version) {
            Some($crate::payload::field($event, $name, $cursor)?)
        } else {
            None
        }
    };
}

/// What is there of a field.
#[doc(hidden)]
#[macro_export]
macro_rules! payload_field_shown {
    ($value:expr) => {
        Some(&$value)
    };
    ($value:expr, $since:literal) => {
        $value.as_ref()
    };
}

/// Versions of a field; all of them where nothing is said.
#[doc(hidden)]
#[macro_export]
macro_rules! payload_versions {
    () => {
        (0_u8, u8::MAX)
    };
    ($since:literal, $until:literal) => {
        ($since, $until)
    };
}

/// Types of payloads, each a list of fields `name: Type = "NameOfTheProvider" [first version..=last version];`.
#[macro_export]
macro_rules! layout {
    ($($(#[$doc:meta])* $name:ident $(<$lifetime:lifetime>)? {
        $($field:ident: $type:ty = $wire:literal $([$since:literal..=$until:literal])?;)*
    })+) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name $(<$lifetime>)? {
            $(#[doc = concat!("`", $wire, "`", $(" of versions ", $since, " to ", $until,)? ".")]
            pub $field: $crate::payload_field_type!($type $(, $since)?),)*
        }

        #[allow(unused_variables, clippy::redundant_pub_crate, reason = "there are payloads without fields")]
        impl<'a> $crate::payload::Payload<'a> for $name $(<$lifetime>)? {
            const FIELDS: &'static [$crate::payload::FieldSpec] = &[
                $($crate::payload::FieldSpec {
                    name: $wire,
                    since: $crate::payload_versions!($($since, $until)?).0,
                    until: $crate::payload_versions!($($since, $until)?).1,
                    kind: <$type as $crate::payload::Wire<'a>>::kind,
                },)*
            ];

            #[inline]
            fn read(
                event: &'static str,
                cursor: &mut $crate::payload::Cursor<'a>,
            ) -> Result<Self, $crate::payload::DecodeError> {
                Ok(Self {
                    $($field: $crate::payload_field_value!(event, cursor, $wire $(, $since, $until)?),)*
                })
            }

            fn shown(&self) -> Vec<(&'static str, String)> {
                #[allow(unused_mut, reason = "there are payloads without fields")]
                let mut shown = Vec::new();
                $(if let Some(value) = $crate::payload_field_shown!(self.$field $(, $since)?) {
                    shown.push(($wire, <$type as $crate::payload::Wire<'a>>::shown(value)));
                })*
                shown
            }
        })+
    };
}

/// The enum of all events of a table: `key [first version..=last version] => "Name" ("NameInTheManifest") Variant(Payload);`, by class.
#[macro_export]
macro_rules! events {
    ($(#[$doc:meta])* $enum:ident by $by:ident($by_type:ident) {
        $($class:ident {
            $($key:literal $([$since:literal..=$until:literal])? => $name:literal $(($manifest_name:literal))? $variant:ident($payload:ty);)+
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
            pub const SPECS: &'static [$crate::payload::EventSpec] = &[
                $($($crate::payload::EventSpec {
                    provider: $class,
                    key: $crate::payload::EventKey::$by_type($key),
                    since: $crate::payload_versions!($($since, $until)?).0,
                    until: $crate::payload_versions!($($since, $until)?).1,
                    name: $name,
                    manifest_name: concat!($($manifest_name)?),
                    fields: <$payload as $crate::payload::Payload<'a>>::FIELDS,
                },)+)+
            ];

            /// Decodes an event; none if it is not of the table.
            ///
            /// # Errors
            /// When the payload ends before the fields of its version do. What is behind them is passed over.
            pub fn decode(
                event: impl Into<$crate::payload::Encoded<'a>>,
            ) -> Result<Option<Self>, $crate::payload::DecodeError> {
                let event = event.into();
                let _version = event.version;
                $(if event.provider == $class {
                    return match event.$by {
                        $($key $(if ($since..=$until).contains(&_version))? => {
                            $crate::payload::payload($name, &event).map(|payload| Some(Self::$variant(payload)))
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
            pub fn shown(&self) -> Vec<(&'static str, String)> {
                match self {
                    $($(Self::$variant(payload) => $crate::payload::Payload::shown(payload),)+)+
                }
            }
        }
    };
}
