//! A row of samples in, the sample of a profile out.

use collector_common::record::{self, AttributeValue, ExportMachine, ThreadId};
use prost::Message as _;

use super::dictionary::Dictionary;
use super::proto::Sample;
use crate::format::{Profile, unique_keys};
use crate::table::Table;

/// What every sample tells, by the semantic conventions.
const TID: &str = "thread.id";
const THREAD: &str = "thread.name";
const CPU: &str = "cpu.logical_number";

/// A sample's attributes have each key once: one of another tool's may not be called like these.
const OWN: [&str; 3] = [TID, THREAD, CPU];

/// Makes samples, and the dictionary that they refer to.
pub(super) struct Samples<'a> {
    machine: &'a ExportMachine,
    pub(super) dictionary: Dictionary<'a>,
    /// Attributes by thread and by CPU, once they are used.
    threads: Vec<Option<[i32; 2]>>,
    cpus: Table<u16, i32>,
    /// Whether samples have times of day, all of them: that these are known, and not before 1970.
    has_times: bool,
    /// By kind: whether a value is other than 1.
    has_values: Vec<bool>,
    /// The last one that was made.
    sample: Sample,
}

impl<'a> Samples<'a> {
    /// For these samples of a profile.
    pub(super) fn new(profile: Profile<'a>, samples: &record::Samples) -> Self {
        let machine = profile.machine;
        let mut has_values = vec![false; machine.kinds().len()];
        let mut has_times = true;
        for sample in samples.iter() {
            has_times &=
                machine.system().clocks.unix_at(sample.time).is_some_and(|unix| u64::try_from(unix).is_ok());
            if sample.value != 1
                && let Some(has_values) = has_values.get_mut(usize::from(sample.kind.0))
            {
                *has_values = true;
            }
        }
        Self {
            machine,
            has_times,
            dictionary: Dictionary::new(profile),
            threads: vec![None; machine.threads().len()],
            cpus: Table::default(),
            has_values,
            sample: Sample::default(),
        }
    }

    /// A row in parts that a sample each stands for: one, unless it has no times, and the sum of its values no room in 63 bits.
    pub(super) fn parts<'r>(&self, row: &'r [u32], samples: &record::Samples) -> Vec<&'r [u32]> {
        let mut parts = Vec::new();
        let (mut start, mut sum) = (0, 0_i64);
        for (at, &position) in row.iter().enumerate().filter(|_| !self.has_times) {
            let value = samples.at(position as usize).value;
            sum = sum.checked_add(value).unwrap_or_else(|| {
                parts.extend(row.get(start..at));
                start = at;
                value
            });
        }
        parts.extend(row.get(start..));
        parts
    }

    /// The sample that stands for those at positions of `samples`, which differ in nothing but their time and their value, and whose values
    /// have a sum in 63 bits if they have no times ([`Self::parts`]).
    pub(super) fn of_row(&mut self, row: &[u32], samples: &record::Samples) -> &Sample {
        let machine = self.machine;
        self.sample.clear();
        let Some(first) = row.first().map(|&position| samples.at(position as usize)) else {
            return &self.sample;
        };
        self.sample.stack_index = self.dictionary.stack(first.stack);
        let [tid, name] = self.thread(first.thread);
        let cpu = self.cpu(first.cpu);
        self.sample.attribute_indices.extend([tid, name, cpu]);
        let (sample, dictionary) = (&mut self.sample, &mut self.dictionary);
        unique_keys::each(machine, machine.attributes().get(first.attributes), &OWN, |key, value| {
            let attribute = match value {
                AttributeValue::Label(text) => dictionary.text(key.text, machine.string(text)),
                AttributeValue::Number(number) => dictionary.number(key.text, number),
            };
            sample.attribute_indices.push(attribute);
        });
        let clocks = &machine.system().clocks;
        let samples = row.iter().map(|&position| samples.at(position as usize));
        if self.has_times {
            let times = samples.clone().filter_map(|one| u64::try_from(clocks.unix_at(one.time)?).ok());
            self.sample.timestamps_unix_nano.extend(times);
        }
        if self.sample.timestamps_unix_nano.is_empty() {
            self.sample.values.push(samples.map(|one| one.value).sum());
        } else if self.has_values[usize::from(first.kind.0)] {
            self.sample.values.extend(samples.map(|one| one.value));
        }
        &self.sample
    }

    fn cpu(&mut self, cpu: u16) -> i32 {
        let dictionary = &mut self.dictionary;
        *self.cpus.entry(cpu).or_insert_with(|| dictionary.number(CPU, cpu.into()))
    }

    /// The attributes of a thread: its number and its name then.
    fn thread(&mut self, id: ThreadId) -> [i32; 2] {
        let known = self.threads.get(id.0 as usize).copied().flatten();
        known.unwrap_or_else(|| {
            let thread = self.machine.thread(id);
            let attributes = [
                self.dictionary.number(TID, thread.tid.0.into()),
                self.dictionary.text(THREAD, self.machine.string(thread.name)),
            ];
            self.threads[id.0 as usize] = Some(attributes);
            attributes
        })
    }
}
