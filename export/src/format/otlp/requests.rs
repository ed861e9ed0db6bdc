//! A [`Profile`] in, requests out that send it, each below a limit: `ExportProfilesServiceRequest`, whole in itself, with a dictionary of
//! its own.
//!
//! Samples come in the order of time, so that a request has those of a part of it. How many fit is not known before they are written:
//! as many are tried as the last request lets expect, and half as many where that was too much. Memory holds the samples of one
//! request and its bytes, however long the recording is, and what a dictionary needs for each stack of the recording: 4 bytes.

use std::collections::VecDeque;
use std::io;
use std::iter::Peekable;

use collector_common::ids::Nanos;
use collector_common::record::{Happened, Sample, Samples};

use super::write::{Data, whole_span};
use crate::format::Profile;

/// Samples that the first request is tried with.
const FIRST: usize = 1 << 14;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is sent.
    pub bytes: Vec<u8>,
    /// How many samples are in it.
    pub samples: usize,
    /// How many profiles are in it.
    pub profiles: usize,
}

/// The requests that send a recording, first those of its start. All samples are in one of them, but for those that are too large.
pub struct Requests<'a> {
    profile: Profile<'a>,
    most: usize,
    source: Peekable<Box<dyn Iterator<Item = Sample> + 'a>>,
    /// Samples that are in no request yet, oldest first.
    waiting: VecDeque<Sample>,
    /// How many are tried next.
    next: usize,
    too_large: u64,
    /// Where the times that the next request tells of begin.
    since: Nanos,
    is_over: bool,
}

impl<'a> Requests<'a> {
    /// Requests of at most so many bytes, not packed.
    pub fn new(profile: Profile<'a>, most: usize) -> Self {
        let machine = profile.machine;
        let samples = machine.in_time_order().filter_map(|(_, happened)| match happened {
            Happened::Sampled(sample) | Happened::SampledEvent(sample, _) => Some(sample),
            _ => None,
        });
        let known = move |sample: &Sample| usize::from(sample.kind.0) < machine.kinds().len();
        let source: Box<dyn Iterator<Item = Sample>> = Box::new(samples.filter(known));
        Self {
            profile,
            most,
            source: source.peekable(),
            waiting: VecDeque::new(),
            next: FIRST,
            too_large: 0,
            since: whole_span(machine).0,
            is_over: false,
        }
    }

    /// How many samples were left out so far, as one of them alone is beyond the limit.
    pub fn too_large(&self) -> u64 {
        self.too_large
    }

    /// The next samples that are together below the limit.
    fn request(&mut self) -> Option<io::Result<Request>> {
        loop {
            let lacking = self.next.saturating_sub(self.waiting.len());
            self.waiting.extend(self.source.by_ref().take(lacking));
            let count = self.next.min(self.waiting.len());
            let mut samples = Samples::default();
            self.waiting.iter().take(count).for_each(|sample| {
                samples.push(sample);
            });
            let (_, last) = samples.span()?;
            let is_last = count == self.waiting.len() && self.source.peek().is_none();
            let end = if is_last { whole_span(self.profile.machine).1 } else { last };
            if let Some(data) = Data::plan(self.profile, &samples, (self.since, end), self.most) {
                let mut bytes = Vec::with_capacity(data.encoded_len());
                let profiles = data.profiles();
                if let Err(error) = data.write(&mut bytes) {
                    return Some(Err(error));
                }
                self.waiting.drain(..count);
                self.since = last;
                // A quarter is left for stacks that are new in the next.
                let fitting =
                    (count as u128 * self.most as u128 * 3 / 4 / bytes.len().max(1) as u128) as usize;
                self.next = fitting.clamp(1, count.saturating_mul(2));
                return Some(Ok(Request { bytes, samples: count, profiles }));
            }
            if count == 1 {
                self.waiting.pop_front();
                self.too_large += 1;
            }
            self.next = (count / 2).max(1);
        }
    }
}

impl Iterator for Requests<'_> {
    type Item = io::Result<Request>;

    /// The next request; an error, which is the last then, where samples that were put into a file can't be read back.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let request = self.request();
        if let Some(Ok(_)) = request {
            return request;
        }
        self.is_over = true;
        request.or_else(|| self.profile.machine.samples().check().err().map(Err))
    }
}
