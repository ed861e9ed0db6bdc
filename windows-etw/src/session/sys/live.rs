//! An event as a sink gets it.

use windows_sys::Win32::System::Diagnostics::Etw::EVENT_RECORD;

use super::describe;
use super::record::record_of;
use crate::record::EtwRecord;
use crate::session::Win32Error;

/// Takes events on the thread that reads the session, in the order of their times. A panic ends the reading, not the process.
pub type Sink = Box<dyn FnMut(&Live<'_>)>;

/// Makes a sink on the thread that reads the session, which it never leaves: closures of a [`Dispatch`](crate::dispatch::Dispatch) are of one thread.
/// A panic in it is one of the sink.
pub type MakeSink = Box<dyn FnOnce() -> Sink + Send>;

/// An event while its callback runs.
pub struct Live<'a> {
    raw: &'a EVENT_RECORD,
    /// The same as all other sources tell it.
    pub record: EtwRecord<'a>,
}

impl<'a> Live<'a> {
    /// # Safety
    /// As [`record_of`].
    pub(super) unsafe fn new(raw: &'a EVENT_RECORD) -> Self {
        // SAFETY: the caller answers for the same.
        let record = unsafe { record_of(raw) };
        Self { raw, record }
    }

    /// What Windows knows of the event's fields: the bytes of a `TRACE_EVENT_INFO` (`tdh.h`), from the provider's manifest, its
    /// classes, or from the event itself. It takes some microseconds: ask once for each kind of event.
    ///
    /// # Errors
    /// Where Windows knows nothing (`ERROR_NOT_FOUND`, 1168), for instance.
    pub fn description(&self) -> Result<Vec<u8>, Win32Error> {
        describe::event(self.raw)
    }
}
