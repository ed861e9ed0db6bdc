//! A [`Profile`] in, a Parquet file out: the samples in the order of time, then the frames of their stacks, then the processes, what
//! these executed, and spans. What is told of the recording as a whole is in the file's own list of keys and values.
//!
//! What is held is one group of rows, and a bit of the footer for each group.

use std::io::{self, Write};

use collector_common::ids::Nanos;
use collector_common::record::{ExportMachine, Happened};

use super::rows::Rows;
use crate::format::account::account;
use crate::format::calendar::UnixTime;
use crate::format::{ExportFormat, Holds, Part, Profile};

/// The Parquet format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parquet;

impl ExportFormat for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn ending(&self) -> &'static str {
        ".parquet"
    }

    fn description(&self) -> &'static str {
        "tables of samples, stacks and processes with all their facts, for DuckDB, DataFusion and pandas"
    }

    fn holds(&self) -> Holds {
        Holds::everything().without(&[
            Part::FileDetails,
            Part::Mappings,
            Part::FrameRules,
            Part::Events,
            Part::Tables,
        ])
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut rows = Rows::begin(profile, out)?;
        for (_, happened) in profile.machine.in_time_order() {
            if let Happened::Sampled(sample) | Happened::SampledEvent(sample, _) = happened {
                rows.sample(&sample)?;
            }
        }
        rows.stacks()?;
        rows.processes()?;
        rows.programs()?;
        rows.spans()?;
        rows.finish(facts(profile.machine))
    }
}

/// What is known of the recording as a whole.
fn facts(machine: &ExportMachine) -> Vec<(&'static str, String)> {
    let system = machine.system();
    let number = |number: u64| if number == 0 { String::new() } else { number.to_string() };
    let time =
        |time: Nanos| system.clocks.unix_at(time).map_or_else(String::new, |unix| UnixTime(unix).to_string());
    let facts = [
        ("collector.host", system.host.clone()),
        ("collector.kernel", system.kernel.clone()),
        ("collector.architecture", system.architecture.clone()),
        ("collector.distribution", system.distribution.clone()),
        ("collector.processor", system.processor.clone()),
        ("collector.memory", number(system.memory)),
        ("collector.cpus", number(system.cpus.into())),
        ("collector.command", system.command.clone()),
        ("collector.start", time(system.start)),
        ("collector.end", time(system.end)),
        ("collector.start_ns", system.start.0.to_string()),
        ("collector.end_ns", system.end.0.to_string()),
        ("collector.lost", system.lost.map(|lost| lost.to_string()).unwrap_or_default()),
        ("collector.account", account(machine).join("\n")),
    ];
    facts.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}
