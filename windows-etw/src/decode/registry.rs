//! All events of the tables: to look one up by name or by record, and to make an [`Event`] of it.

use collector_common::event::{Event, EventId, FormatError};

use super::clr::ClrEvent;
use super::cursor::Layout;
use super::kernel::KernelEvent;
use super::table::EventSpec;
use super::windows::WindowsEvent;
use crate::record::EtwRecord;

/// All events of the tables: classic ones, .NET's, and those of Windows' own manifests.
pub fn specs() -> impl Iterator<Item = &'static EventSpec> + Clone {
    KernelEvent::SPECS.iter().chain(ClrEvent::SPECS).chain(WindowsEvent::SPECS)
}

/// What a record is by the tables.
pub fn spec_of(record: &EtwRecord<'_>) -> Option<&'static EventSpec> {
    specs().find(|spec| spec.is_of(record.provider, &record.descriptor))
}

impl EventSpec {
    /// An event of this kind, to which closures and filters can be added.
    ///
    /// ```
    /// # use std::{cell::Cell, rc::Rc};
    /// use collector_common::event::{EventErrors, EventId};
    /// use windows_etw::decode::{Layout, specs};
    /// use windows_etw::record::PointerSize;
    ///
    /// let spec = specs().find(|spec| spec.name == "PerfInfo/Sample").unwrap();
    /// let layout = Layout { version: 2, pointer: PointerSize::Bits64 };
    /// let mut sample = spec.event(EventId(1), layout)?;
    /// let tid = sample.format().field_ref("ThreadId").unwrap();
    /// # let seen = Rc::new(Cell::new(0));
    /// # let sum = seen.clone();
    /// sample.add_closure(move |data| {
    ///     println!("thread {}", data.try_get_u32(tid)?);
    /// #   sum.set(data.try_get_u32(tid)?);
    ///     Ok(())
    /// });
    /// // The payload of a record.
    /// let payload = [0x10, 0x32, 0x54, 0x76, 0xf8, 0x7f, 0, 0, 0xd2, 4, 0, 0, 1, 0, 0, 0];
    /// sample.process(&payload, &payload, &mut EventErrors::new());
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
