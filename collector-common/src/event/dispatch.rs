//! An event: its format, who asked for it, and the way of its data to them.
//!
//! In: the data of one occurrence. Out: calls of closures in the order of their addition. A failure stops nothing: it
//! is counted in [`EventErrors`] and told at the end. Nothing is allocated unless something fails.

use std::fmt;

use super::context::Context;
use super::data::EventData;
use super::errors::EventErrors;
use super::filter::{Expression, FilterError, Predicate};
use super::format::EventFormat;
use super::proxy::Proxy;
use crate::sharing::Writable;

/// What a source calls an event, for instance the kernel's number of a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u64);

impl fmt::Display for EventId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// What is asked of a source, or known about an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventFlags(u8);

impl EventFlags {
    /// The data come from another event's closure: no source is to be asked for it.
    pub const PROXY: Self = Self(1);
    /// A call stack is wanted with each.
    pub const CALLSTACK: Self = Self(1 << 1);
    /// It goes to nobody.
    pub const DISABLED: Self = Self(1 << 2);

    /// Whether all of `flags` are set.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Sets or clears all of `flags`.
    pub fn set(&mut self, flags: Self, on: bool) {
        if on {
            self.0 |= flags.0;
        } else {
            self.0 &= !flags.0;
        }
    }
}

/// Gets an event's data: a closure, or the way to another event.
type Receiver = Box<dyn FnMut(&EventData<'_>, &mut EventErrors) -> anyhow::Result<()>>;

/// An event that can occur, and who wants to know.
pub struct Event {
    id: EventId,
    name: Box<str>,
    format: EventFormat,
    flags: EventFlags,
    filter: Option<Predicate>,
    receivers: Vec<Receiver>,
}

impl Event {
    /// An event without fields and closures.
    pub fn new(id: EventId, name: impl Into<Box<str>>) -> Self {
        Self {
            id,
            name: name.into(),
            format: EventFormat::default(),
            flags: EventFlags::default(),
            filter: None,
            receivers: Vec::new(),
        }
    }

    /// An event whose data come from closures of others, see [`Event::add_proxy`].
    pub fn proxy(id: EventId, name: impl Into<Box<str>>) -> Self {
        let mut event = Self::new(id, name);
        event.flags.set(EventFlags::PROXY, true);
        event
    }

    /// What its source calls it.
    pub fn id(&self) -> EventId {
        self.id
    }

    /// Its name, such as `sched:sched_switch`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its fields.
    pub fn format(&self) -> &EventFormat {
        &self.format
    }

    /// Its fields, to add some or to put another format in place. References resolved in a format that was replaced, and
    /// a filter compiled for it, fail from then on.
    pub fn format_mut(&mut self) -> &mut EventFormat {
        &mut self.format
    }

    /// Its flags.
    pub fn flags(&self) -> EventFlags {
        self.flags
    }

    /// Its flags, to change them.
    pub fn flags_mut(&mut self) -> &mut EventFlags {
        &mut self.flags
    }

    /// Adds a closure that is called for each occurrence that passes the filter, behind those added before.
    pub fn add_closure(&mut self, mut closure: impl FnMut(&EventData<'_>) -> anyhow::Result<()> + 'static) {
        self.receivers.push(Box::new(move |data, _| closure(data)));
    }

    /// Adds a closure that makes another event of this one: it writes `target`'s event data into an empty buffer (reused
    /// from one to the next) and says whether there is an event. `target` gets them with the full data of this one.
    pub fn add_proxy(
        &mut self,
        target: Writable<Event>,
        build: impl FnMut(&EventData<'_>, &mut Vec<u8>) -> anyhow::Result<bool> + 'static,
    ) {
        let mut proxy = Proxy::new(target, build);
        self.receivers.push(Box::new(move |data, errors| proxy.process(data, errors)));
    }

    /// Whether nobody wants its data: a source need not deliver them.
    pub fn is_idle(&self) -> bool {
        self.receivers.is_empty() || self.flags.contains(EventFlags::DISABLED)
    }

    /// Lets only those occurrences through that `filter` accepts, or all. It is compiled for the fields added so far.
    pub fn set_filter(&mut self, filter: Option<&Expression>) -> Result<(), FilterError> {
        self.filter = filter.map(|filter| filter.compile(&self.format)).transpose()?;
        Ok(())
    }

    /// Whether a filter chooses among the occurrences.
    pub fn is_filtered(&self) -> bool {
        self.filter.is_some()
    }

    /// The filter in the language of the Linux kernel's filters (`PERF_EVENT_IOC_SET_FILTER`), as far as that can say it:
    /// each occurrence that the filter lets through passes, and perhaps others. Nothing where there is no filter, or nothing
    /// of it can be said. Minimum kernel: 4.17; earlier ones take some names of fields for other things.
    pub fn kernel_filter(&self) -> Option<String> {
        self.filter.as_ref()?.kernel_text(&self.format)
    }

    /// Hands an occurrence to all who want it, and says whether it was wanted: the filter let it through. For `full_data`
    /// and `event_data` see [`EventData::new`].
    #[inline]
    pub fn process(&mut self, full_data: &[u8], event_data: &[u8], errors: &mut EventErrors) -> bool {
        self.process_in(None, full_data, event_data, errors)
    }

    /// As [`Self::process`], of an occurrence that is known to whom, when and where it happened.
    #[inline]
    pub fn process_in(
        &mut self,
        context: Option<&Context>,
        full_data: &[u8],
        event_data: &[u8],
        errors: &mut EventErrors,
    ) -> bool {
        if self.flags.contains(EventFlags::DISABLED) {
            return false;
        }
        let mut data = EventData::new(full_data, event_data, &self.format);
        if let Some(context) = context {
            data = data.at(context);
        }
        if let Some(filter) = &self.filter {
            match filter.accepts(&data) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => {
                    errors.collect_field(self.id, &self.name, &self.format, error);
                    return false;
                }
            }
        }
        for receiver in &mut self.receivers {
            if let Err(error) = receiver(&data, errors) {
                errors.collect(self.id, &self.name, &self.format, &error);
            }
        }
        true
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Event")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("format", &self.format)
            .field("flags", &self.flags)
            .field("receivers", &self.receivers.len())
            .finish_non_exhaustive()
    }
}
