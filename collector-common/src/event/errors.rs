//! What went wrong in closures and filters while events went through: counted, and told at the end of the run.
//!
//! A closure that fails once fails mostly for each event, so equal messages of an event are counted as one, and both
//! the events and the different messages of one have a bound.

use std::fmt;

use hashbrown::{Equivalent, HashMap};

use super::dispatch::EventId;
use super::error::FieldError;
use super::format::EventFormat;

/// Different messages kept of one event; what is more is counted together.
const MOST_MESSAGES: usize = 16;

/// Events of which messages are kept.
const MOST_EVENTS: usize = 1024;

/// Failures by event and message.
#[derive(Debug, Default)]
pub struct EventErrors {
    /// By id and name: different makers of events may give the same id.
    events: HashMap<(EventId, Box<str>), Failures>,
    total: u64,
}

/// An event as it is looked up.
#[derive(Hash)]
struct Key<'a>(EventId, &'a str);

impl Equivalent<(EventId, Box<str>)> for Key<'_> {
    fn equivalent(&self, (id, name): &(EventId, Box<str>)) -> bool {
        self.0 == *id && *self.1 == **name
    }
}

/// Those of one event.
#[derive(Debug, Default)]
struct Failures {
    messages: Vec<Message>,
    others: u64,
}

#[derive(Debug)]
struct Message {
    /// What the text was made of, to know it again without printing.
    field: Option<FieldError>,
    text: Box<str>,
    count: u64,
}

impl EventErrors {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a failure of an event's closure.
    #[cold]
    pub fn collect(&mut self, id: EventId, name: &str, format: &EventFormat, error: &anyhow::Error) {
        // Within a context it may be the same failure with another message.
        match error.downcast_ref::<FieldError>().filter(|_| error.chain().len() == 1) {
            Some(field) => self.collect_field(id, name, format, *field),
            None => self.count(id, name, None, || with_causes(error, format)),
        }
    }

    /// Counts a field of an event that could not be read.
    #[cold]
    pub fn collect_field(&mut self, id: EventId, name: &str, format: &EventFormat, error: FieldError) {
        self.count(id, name, Some(error), || error.named(format).to_string());
    }

    fn count(&mut self, id: EventId, name: &str, field: Option<FieldError>, text: impl FnOnce() -> String) {
        self.total += 1;
        let key = Key(id, name);
        if !self.events.contains_key(&key) {
            if self.events.len() >= MOST_EVENTS {
                return;
            }
            self.events.insert((id, name.into()), Failures::default());
        }
        let Some(failures) = self.events.get_mut(&key) else { return };
        if let Some(known) =
            failures.messages.iter_mut().find(|known| field.is_some() && known.field == field)
        {
            known.count += 1;
            return;
        }
        let text = text();
        if let Some(known) = failures.messages.iter_mut().find(|known| *known.text == *text) {
            known.count += 1;
        } else if failures.messages.len() < MOST_MESSAGES {
            failures.messages.push(Message { field, text: text.into(), count: 1 });
        } else {
            failures.others += 1;
        }
    }

    /// Failures of all events, also those of which no message is kept.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether nothing failed.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The event's id and name, a message and how often it came, in no order.
    pub fn messages(&self) -> impl Iterator<Item = (EventId, &str, &str, u64)> {
        self.events.iter().flat_map(|((id, name), failures)| {
            failures.messages.iter().map(|message| (*id, &**name, &*message.text, message.count))
        })
    }

    /// Forgets all, to begin anew.
    pub fn clear(&mut self) {
        self.events.clear();
        self.total = 0;
    }
}

/// The message with its causes, in which fields have their names.
fn with_causes(error: &anyhow::Error, format: &EventFormat) -> String {
    let causes = error.chain().map(|cause| match cause.downcast_ref::<FieldError>() {
        Some(field) => field.named(format).to_string(),
        None => cause.to_string(),
    });
    causes.collect::<Vec<_>>().join(": ")
}

/// A line for each event and message, by the events' ids and names.
impl fmt::Display for EventErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut events: Vec<_> = self.events.iter().collect();
        events.sort_by_key(|(event, _)| *event);
        let mut told = 0;
        let mut separator = "";
        for ((id, name), Failures { messages, others }) in events {
            let others = (*others > 0).then_some(("other messages", *others));
            let messages = messages.iter().map(|message| (&*message.text, message.count));
            for (text, count) in messages.chain(others) {
                write!(out, "{separator}{name} (event {id}): {count} {}: {text}", times(count))?;
                told += count;
                separator = "\n";
            }
        }
        match self.total - told {
            0 => Ok(()),
            more => write!(out, "{separator}{more} {}: messages of other events", times(more)),
        }
    }
}

fn times(count: u64) -> &'static str {
    if count == 1 { "time" } else { "times" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_id_are_told_apart_by_name() {
        let mut errors = EventErrors::new();
        let format = EventFormat::default();
        let error = anyhow::anyhow!("no luck");
        for name in ["mine:b", "other:a", "mine:b"] {
            errors.collect(EventId(7), name, &format, &error);
        }
        let told = "mine:b (event 7): 2 times: no luck\nother:a (event 7): 1 time: no luck";
        assert_eq!(errors.to_string(), told);
        assert_eq!(errors.messages().count(), 2);
    }
}
