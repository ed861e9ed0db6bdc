//! Samples, tables and histograms as a test compares them.

use collector_common::record::ExportMachine;

/// What there is of a sample.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) at: u64,
    pub(crate) value: i64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    /// Leaf first, relative to images.
    pub(crate) addresses: Vec<u64>,
    /// `name=value`, in their order.
    pub(crate) attributes: String,
}

/// Samples of a kind, in their order.
pub(crate) fn samples(machine: &ExportMachine, name: &str) -> Vec<Shown> {
    let of = |sample: collector_common::record::Sample| {
        let thread = machine.thread(sample.thread);
        let frames = machine.stacks().get(sample.stack).iter();
        let attributes = machine.attributes().get(sample.attributes).iter();
        let attributes = attributes
            .map(|(key, value)| format!("{}={}", machine.string(*key), machine.attribute_text(*value)));
        Shown {
            at: sample.time.0,
            value: sample.value,
            pid: machine.process(thread.process).pid.0,
            tid: thread.tid.0,
            addresses: frames.map(|frame| machine.frames().get(*frame).address.0).collect(),
            attributes: attributes.collect::<Vec<_>>().join(" "),
        }
    };
    let is_of = |sample: &collector_common::record::Sample| {
        machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == name
    };
    machine.samples().iter().filter(is_of).map(of).collect()
}

/// Rows of a table: label and numbers.
pub(crate) fn table(machine: &ExportMachine, name: &str) -> Vec<(String, Vec<u64>)> {
    let found = machine.tables().iter().find(|table| table.name == name);
    found.map(|table| table.rows.clone()).unwrap_or_default()
}

/// Histograms of a name: label, how many there were and their sum.
pub(crate) fn histograms(machine: &ExportMachine, name: &str) -> Vec<(String, u64, u64)> {
    let found = machine.histograms().iter().filter(|histogram| histogram.name == name);
    found.map(|histogram| (histogram.label.clone(), histogram.count(), histogram.sum)).collect()
}
