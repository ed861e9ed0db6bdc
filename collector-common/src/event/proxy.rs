//! Events made of other events' data, by a closure in between.

use super::data::EventData;
use super::dispatch::Event;
use super::errors::EventErrors;
use crate::sharing::Writable;

/// The way of data from one event to another.
pub(super) struct Proxy<B> {
    target: Writable<Event>,
    build: B,
    buffer: Vec<u8>,
}

impl<B: FnMut(&EventData<'_>, &mut Vec<u8>) -> anyhow::Result<bool>> Proxy<B> {
    /// `build` writes the other event's data into the buffer and says whether there is an event.
    pub(super) fn new(target: Writable<Event>, build: B) -> Self {
        Self { target, build, buffer: Vec::new() }
    }

    /// Builds the other event's data and dispatches them, in the same context. An event that, by way of others, is its own target fails here
    /// instead of going in circles.
    pub(super) fn process(&mut self, data: &EventData<'_>, errors: &mut EventErrors) -> anyhow::Result<()> {
        self.buffer.clear();
        if (self.build)(data, &mut self.buffer)? {
            self.target
                .write(|target| target.process_in(data.context(), data.full_data(), &self.buffer, errors))?;
        }
        Ok(())
    }
}
