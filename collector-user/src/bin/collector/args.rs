//! The command line as it is typed. What it means is worked out in the module of each command.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use export::symbolize::Detail;

/// Records what a machine is doing.
#[derive(Debug, Parser)]
#[command(name = "collector", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record until Ctrl-C, for a time, or while a command runs
    Run(Box<RunArgs>),
    /// Write a recording in other formats
    Convert(ConvertArgs),
    /// Print the hottest functions of a recorded profile
    Report(ReportArgs),
    /// List what can be recorded, written and read
    List {
        /// What to list
        what: ListWhat,
    },
    /// Tell what this machine allows, and the command that closes each gap
    Doctor,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to record: see `collector list scenarios`; may be given more than once. Without it and without -e, it is
    /// `cpu_profiling`; `off_cpu:min=10ms` leaves out shorter waits,
    /// `memory_tracking:every=64KiB` (on Linux) records by so many bytes
    #[arg(short, long = "scenario", value_name = "NAME")]
    pub(crate) scenarios: Vec<String>,
    /// An event to record with its stacks, as `page-faults` or `'sched:sched_switch/prev_pid > 1/'`: see `collector list
    /// events`; may be given more than once
    #[arg(short, long = "event", value_name = "EVENT")]
    pub(crate) events: Vec<String>,
    /// Record this process, its threads and the children it makes; may be given more than once
    #[arg(short, long = "pid", value_name = "PID", allow_negative_numbers = true)]
    pub(crate) pids: Vec<u32>,
    /// Record the processes below this folder of the cgroup v2 hierarchy
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Record threads of this name (its first 15 bytes); on Windows processes of this name, as `notepad.exe`
    #[arg(long, value_name = "NAME")]
    pub(crate) comm: Option<String>,
    /// Samples per second and CPU
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 997, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) frequency: u32,
    /// How long, as 10s, 500ms or 2m; without it until Ctrl-C, or until COMMAND ends; a COMMAND that takes longer goes on
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    pub(crate) duration: Option<Duration>,
    /// Where to write; the ending says the format; `-` is stdout; `http://host:4318` or `grpc://host:4317` is a receiver of OTLP
    /// profiles, as OpenTelemetry's collector; may be given more than once
    #[arg(short, long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,
    /// The format of every output, whatever its ending: see `collector list formats`
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,
    /// What records
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    pub(crate) backend: Backend,
    /// In outputs with names: functions as they are called, without those that were inlined, and without source lines, which takes
    /// less time at the end
    #[arg(long)]
    pub(crate) no_inline: bool,
    /// Read no file for names: outputs have addresses in files, which `collector convert` names later from .perf.data, .pb.gz,
    /// .nettrace and .firefox.json.gz, on another machine, too
    #[arg(long, conflicts_with = "no_inline")]
    pub(crate) no_symbols: bool,
    /// The kind of samples that outputs show which have room for one (folded stacks, flame graphs, PerfView), as `off_cpu`; others have all
    /// kinds, and show it first
    #[arg(long, value_name = "NAME")]
    pub(crate) kind: Option<String>,
    /// Write figures of the recording itself, as JSON; `-` is stdout
    #[arg(long, value_name = "FILE.json")]
    pub(crate) stats: Option<PathBuf>,
    /// Record this command and its children, and end with it
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// A recording (.perf.data), a folder of `perf record --threads`, a trace (.nettrace, .etl of Windows), a minidump (.dmp of Windows), a flight
    /// recording (.jfr), or a profile (.pb.gz of pprof, folded stacks, or of Firefox Profiler): see `collector list formats`; `-` is a file, or a stream of `perf
    /// record -o -`, on stdin
    pub(crate) input: PathBuf,
    /// Where to write; the ending says the format; `-` is stdout; `http://host:4318` or `grpc://host:4317` is a receiver of OTLP
    /// profiles, as OpenTelemetry's collector; may be given more than once
    #[arg(short, long = "output", value_name = "FILE", required = true)]
    pub(crate) outputs: Vec<PathBuf>,
    /// The format of every output, whatever its ending: see `collector list formats`
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,
    /// In outputs with names: functions as they are called, without those that were inlined, and without source lines, which takes
    /// less time at the end
    #[arg(long)]
    pub(crate) no_inline: bool,
    /// Read no file for names: outputs have addresses in files, which `collector convert` names later from .perf.data, .pb.gz,
    /// .nettrace and .firefox.json.gz, on another machine, too
    #[arg(long, conflicts_with = "no_inline")]
    pub(crate) no_symbols: bool,
    /// The kind of samples that outputs show which have room for one (folded stacks, flame graphs, PerfView), as `off_cpu`; others have all
    /// kinds, and show it first
    #[arg(long, value_name = "NAME")]
    pub(crate) kind: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// A profile (.pb.gz), or what else `collector convert` reads that has its stacks already (.nettrace, .etl, .dmp, .jfr, folded stacks, a
    /// profile of Firefox Profiler); `-` is stdin
    pub(crate) input: PathBuf,
    /// How many functions
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true)]
    pub(crate) top: usize,
    /// Of which kind of samples, as `off_cpu`; the head of the table names those that there are
    #[arg(long, value_name = "NAME")]
    pub(crate) kind: Option<String>,
}

/// How much is looked up for each frame.
pub(crate) fn detail(no_inline: bool, no_symbols: bool) -> Detail {
    match (no_symbols, no_inline) {
        (true, _) => Detail::Addresses,
        (false, true) => Detail::Names,
        (false, false) => Detail::Lines,
    }
}

/// What `list` knows.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ListWhat {
    /// What `run --scenario` records
    Scenarios,
    /// What can be sampled
    Events,
    /// What `run` and `convert` write, and what `convert` reads
    Formats,
    /// Providers of Event Tracing for Windows
    Providers,
}

/// What `run` records with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// The best there is here
    Auto,
    /// Programs in the Linux kernel
    Ebpf,
    /// Plain perf events of the Linux kernel
    Perf,
    /// Event Tracing for Windows: on Windows only
    Etw,
}

/// `10s`, `500ms`, `2m`, `1h`; a number alone is seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err("it must start with a number, as 10s does".to_owned());
    }
    let scale = match unit {
        "us" => 0.000_001,
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("unknown unit `{unit}`: use us, ms, s, m or h")),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{number}` is no number"))?;
    Duration::try_from_secs_f64(number * scale)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "must be more than nothing and less than 500 billion years".to_owned())
}

/// `64KiB`, `1MiB`, `2GiB`; a number alone is bytes.
#[cfg(target_os = "linux")]
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale: u64 = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(format!("unknown unit `{unit}`: use B, KiB, MiB or GiB")),
    };
    let number: u64 = number.parse().map_err(|_| "it must start with a number, as 64KiB does".to_owned())?;
    number
        .checked_mul(scale)
        .filter(|bytes| (1..=1 << 40).contains(bytes))
        .ok_or_else(|| "must be from 1 byte to 1024 GiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn bytes() {
        for (text, bytes) in [("1", 1), ("64KiB", 65536), ("3MiB", 3 << 20), ("1024GiB", 1 << 40), ("7B", 7)]
        {
            assert_eq!(parse_bytes(text), Ok(bytes));
        }
        for text in
            ["", "KiB", "0", "1025GiB", "64kB", "1.5MiB", "-1", "99999999999999999999", "20000000000GiB"]
        {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("7"), Ok(Duration::from_secs(7)));
        for wrong in ["", "s", "10d", "0s", "-1s", "1e400h", "1.2.3s"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_negative_number_is_a_wrong_value_and_no_option() {
        for args in
            [["run", "-d", "-1s"], ["run", "-F", "-5"], ["run", "-p", "-1"], ["report", "--top", "-1"]]
        {
            let error = Cli::try_parse_from(["collector"].into_iter().chain(args)).unwrap_err();
            let says = error.to_string();
            assert!(says.contains(&format!("invalid value '{}' for", args[2])), "{says}");
        }
    }

    #[test]
    fn help_begins_with_what_the_program_does() {
        use clap::CommandFactory as _;
        let help = Cli::command().render_help().to_string();
        assert!(help.starts_with("Records what a machine is doing\n"), "{help}");
    }

    /// Each reader has a word in the help of what is converted, and in that of what is reported.
    #[test]
    fn help_names_all_that_is_read() {
        use clap::CommandFactory as _;
        for command in ["convert", "report"] {
            let mut cli = Cli::command();
            let help = cli.find_subcommand_mut(command).unwrap().render_long_help().to_string();
            let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
            let words = export::import::importers().iter().map(|importer| match importer.name() {
                "pprof" => ".pb.gz",
                "folded" => "folded stacks",
                "firefox" => "Firefox Profiler",
                other => other,
            });
            let input = help.split_once("<INPUT>").unwrap().1.split_once("Options:").unwrap().0;
            for word in words.chain([".etl", ".dmp"]) {
                assert!(input.contains(word), "{command}: {word}");
            }
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }
}
