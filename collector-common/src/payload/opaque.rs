//! The layout of events of which only the name is known.

use crate::layout;

layout! {
    /// An event whose fields are not known here.
    Opaque<'a> {
        data: &'a [u8] = "Data";
    }
}
