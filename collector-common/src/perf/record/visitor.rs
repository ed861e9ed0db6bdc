//! A method for each type of record.

use super::{Misc, Record, SampleId};

/// What is known of a record beside its fields.
#[derive(Clone, Copy, Debug)]
pub struct Context<'r, 'a> {
    /// The record.
    pub record: &'r Record<'a>,
    /// The bits of its header.
    pub misc: Misc,
    /// When and where it was written.
    pub sample_id: &'r SampleId,
}

/// Declares [`Visitor`] and the call of its methods.
macro_rules! declare {
    ($($(#[$doc:meta])* $variant:ident($fields:ty) $method:ident;)*) => {
        /// Has a method for each type of record. A method that is not written goes on to [`Self::other`].
        pub trait Visitor {
            /// What ends the visit.
            type Error;

            /// The catch-all: records that have no method of their own here, and those of unknown type.
            ///
            /// # Errors
            /// The visitor's own.
            fn other(&mut self, context: &Context<'_, '_>) -> Result<(), Self::Error>;

            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// The visitor's own.
                #[allow(clippy::elidable_lifetime_names, reason = "some records borrow and some do not")]
                fn $method<'a>(&mut self, _: &$fields, context: &Context<'_, 'a>) -> Result<(), Self::Error> {
                    self.other(context)
                }
            )*
        }

        impl<'a> Record<'a> {
            fn visit<V: Visitor>(&self, context: &Context<'_, 'a>, visitor: &mut V) -> Result<(), V::Error> {
                match self {
                    $(Self::$variant(fields) => visitor.$method(fields, context),)*
                    Self::Other(_) => visitor.other(context),
                }
            }
        }
    };
}

pub(super) use declare;
