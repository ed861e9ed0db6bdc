//! `collector list`: what can be recorded and written.

use std::process::ExitCode;

use clap::ValueEnum as _;
use export::format::formats;

use crate::args::{ListWhat, Scenario};

pub(crate) fn list(what: ListWhat) -> ExitCode {
    match what {
        ListWhat::Scenarios => {
            for scenario in Scenario::value_variants().iter().filter_map(Scenario::to_possible_value) {
                let help = scenario.get_help().map(ToString::to_string).unwrap_or_default();
                println!("{:<16} {help}", scenario.get_name());
            }
        }
        ListWhat::Formats => {
            for format in formats() {
                println!("{:<12} {:<10} {}", format.name(), format.ending(), format.description());
            }
        }
    }
    ExitCode::SUCCESS
}
