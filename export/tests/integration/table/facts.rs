//! What a recording tells, in words that are no format's: its samples, and facts about everything else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use export::format::Part;
use serde_json::Value;

use super::recording::{INLINED, LATER, SOURCED, UNSAMPLED};

/// A sample, or the sum of those that a format does not tell apart. What a format has no place for is `None`, or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    pub(super) kind: String,
    /// Nanoseconds since the recording began.
    pub(super) time: Option<u64>,
    pub(super) pid: Option<u32>,
    pub(super) process: Option<String>,
    pub(super) tid: Option<u32>,
    pub(super) thread: Option<String>,
    pub(super) cpu: Option<u16>,
    pub(super) attributes: Vec<(String, Said)>,
    /// Names of functions, the outermost first.
    pub(super) stack: Vec<String>,
    pub(super) value: i64,
}

/// What an attribute says: a number is no text, not even one of digits alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Said {
    Text(String),
    Number(i64),
}

impl From<&str> for Said {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&Value> for Said {
    fn from(value: &Value) -> Self {
        value.as_i64().map_or_else(|| value.as_str().unwrap().into(), Self::Number)
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// What an object of JSON says of attributes, where there is one.
pub(super) fn attributes(object: Option<&Value>) -> Vec<(String, Said)> {
    let members = object.into_iter().flat_map(|object| object.as_object().unwrap());
    members.map(|(name, value)| (name.clone(), value.into())).collect()
}

/// Something that went on for a time: of a thread, a process, or the recording.
pub(super) struct Span {
    pub(super) pid: Option<u64>,
    pub(super) tid: Option<u64>,
    /// Nanoseconds since the recording began.
    pub(super) begin: u64,
    pub(super) lasted: u64,
    pub(super) timeline: String,
    pub(super) name: String,
    pub(super) attributes: Vec<(String, Said)>,
}

/// Rows that differ in nothing but their value: how many there are, and the sum of these.
pub(super) type Sums = BTreeMap<Row, (usize, i64)>;

pub(super) fn sums(rows: impl IntoIterator<Item = Row>) -> Sums {
    let mut sums = Sums::new();
    for row in rows {
        let value = row.value;
        let (count, sum) = sums.entry(Row { value: 0, ..row }).or_default();
        (*count, *sum) = (*count + 1, *sum + value);
    }
    sums
}

/// A sort of fact. Each comes with a text, which says what it is about first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fact {
    /// Pid and name of a process without samples.
    Unsampled,
    /// Process (pid and name), and its last command line.
    CommandLine,
    /// Process, name and number of its user.
    User,
    /// Process, id of its container.
    Container,
    /// Process, path of its cgroup.
    Cgroup,
    /// Process, time, command line: a program that it executed.
    Program,
    /// Process, time.
    Start,
    /// Process, time.
    End,
    /// Process, pid of the one that made it.
    Parent,
    /// Process, status that it ended with.
    ExitStatus,
    /// Process, its pid in its namespace.
    NamespacePid,
    /// Pid, tid, later name of a thread that changes it: of formats whose samples have one name of it.
    Renamed,
    /// Function, path of its file, where no source file is known.
    Path,
    /// The same where one is.
    PathBesideSource,
    /// The same of one that was inlined.
    PathOfInlined,
    /// Path, build id.
    BuildId,
    /// Path, name of the file with its debug information.
    DebugLink,
    /// Pid, range, path, time.
    Mapping,
    /// Range as linked, where in the file, path.
    Segment,
    /// Function, number of the first line that frames are at.
    Line,
    /// The same of a further line.
    LaterLine,
    /// Function, source file.
    Source,
    /// Name of a function that was inlined.
    Inlined,
    /// Names of functions on a stack of which some were guessed.
    Guessed,
    /// Names of functions that are to be dropped, and of those to be kept.
    FrameRules,
    /// Kind of sample, unit.
    Unit,
    /// Kind of sample, period.
    Period,
    Distribution,
    Processor,
    /// Bytes that the machine has.
    Memory,
    /// When it was booted, in nanoseconds since 1970.
    Booted,
    Host,
    Kernel,
    /// What was recorded.
    Command,
    /// How many samples were lost.
    Lost,
    /// A line of the account of losses, or a number of an embedding program.
    Account,
    /// Time, name, and fields of a raw event.
    Event,
    /// The same of the scheduler's.
    Switch,
    /// Whose it is, its begin and duration, timeline, name, and attributes.
    Span,
    /// What was counted: a number of a table, a bucket of a histogram, or a process that was asked for.
    Counted,
}

impl Fact {
    /// The part of a recording that it is of. What samples say by themselves is in rows.
    pub(super) const fn part(self) -> Option<Part> {
        Some(match self {
            Self::CommandLine | Self::User | Self::Cgroup => Part::Owners,
            Self::Unsampled => Part::Unsampled,
            Self::Container => Part::Containers,
            Self::Program => Part::Programs,
            Self::Start | Self::End => Part::Lives,
            Self::Parent => Part::Parents,
            Self::ExitStatus => Part::ExitStatuses,
            Self::NamespacePid => Part::NamespacePids,
            Self::Path | Self::PathBesideSource => Part::Files,
            Self::BuildId => Part::BuildIds,
            Self::DebugLink => Part::FileDetails,
            Self::Mapping => Part::Mappings,
            Self::Line | Self::LaterLine => Part::Lines,
            Self::Source => Part::Sources,
            Self::Guessed => Part::Guesses,
            Self::FrameRules => Part::FrameRules,
            Self::Period => Part::Periods,
            Self::Distribution | Self::Processor | Self::Memory => Part::System,
            Self::Host | Self::Kernel => Part::Host,
            Self::Command => Part::Command,
            Self::Account => Part::Account,
            Self::Event | Self::Switch => Part::Events,
            Self::Span => Part::Spans,
            Self::Counted => Part::Tables,
            // A mapping in part; names that are on stacks; what is told beside the period, the system and the account.
            Self::Segment
            | Self::PathOfInlined
            | Self::Inlined
            | Self::Renamed
            | Self::Unit
            | Self::Booted
            | Self::Lost => return None,
        })
    }
}

/// All that a reader finds in a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) rows: Vec<Row>,
    pub(super) facts: BTreeSet<(Fact, String)>,
}

impl Told {
    pub(super) fn add(&mut self, fact: Fact, text: impl Into<String>) {
        self.facts.insert((fact, text.into()));
    }

    pub(super) fn event(&mut self, time: u64, name: &str, fields: &str) {
        let fact = if name.starts_with("sched:") { Fact::Switch } else { Fact::Event };
        self.add(fact, format!("{time} {name}{fields}"));
    }

    /// What files are is told by their paths; what has none is the kernel, or a mark.
    pub(super) fn path(&mut self, function: &str, path: &str) {
        if path.starts_with('/') {
            let fact = match function {
                INLINED => Fact::PathOfInlined,
                function if SOURCED.contains(&function) => Fact::PathBesideSource,
                _ => Fact::Path,
            };
            self.add(fact, format!("{function} {path}"));
        }
    }

    pub(super) fn line(&mut self, function: &str, source: &str, line: u64) {
        if line > 0 {
            let fact = if (function, line) == LATER { Fact::LaterLine } else { Fact::Line };
            self.add(fact, format!("{function} {line}"));
        }
        if !source.is_empty() {
            self.add(Fact::Source, format!("{function} {source}"));
        }
    }

    pub(super) fn span(&mut self, span: Span) {
        let Span { pid, tid, begin, lasted, timeline, name, mut attributes } = span;
        let of = match (pid, tid) {
            (Some(pid), Some(tid)) => format!("thread {tid} of {pid}"),
            (Some(pid), None) => format!("process {pid}"),
            (None, _) => "recording".to_owned(),
        };
        attributes.sort();
        let attributes = attributes.iter().map(|(name, said)| format!(", {name} {said}"));
        let attributes = attributes.collect::<String>();
        self.add(Fact::Span, format!("{of} at {begin} for {lasted}: {timeline}: {name}{attributes}"));
    }

    /// A process that a file tells of, with samples or without.
    pub(super) fn process(&mut self, pid: u64, name: &str) {
        if (pid, name) == (UNSAMPLED.0.into(), UNSAMPLED.1) {
            self.add(Fact::Unsampled, format!("{pid} {name}"));
        }
    }

    /// A line of what is told of a process, as `user: ann (1000)`.
    pub(super) fn of_process(&mut self, pid: u32, name: &str, line: &str) {
        let (what, text) = line.split_once(": ").unwrap();
        let fact = match what {
            "command" => Fact::CommandLine,
            "user" => Fact::User,
            "container" => Fact::Container,
            "cgroup" => Fact::Cgroup,
            "exit status" => Fact::ExitStatus,
            "pid in its namespace" => Fact::NamespacePid,
            other => panic!("{other}"),
        };
        self.add(fact, format!("{pid} {name}: {text}"));
    }
}

/// A reader of a format, and what of a recording it can find there.
pub(super) struct Reader {
    /// The format's name.
    pub(super) format: &'static str,
    /// What its column is called in `docs/formats.md`.
    pub(super) column: &'static str,
    /// What the format holds of a sample.
    pub(super) holds: fn(Row) -> Option<Row>,
    /// Whether samples are there one by one.
    pub(super) has_single_samples: bool,
    /// Further facts that it holds.
    pub(super) facts: &'static [Fact],
    /// Gives what a file's bytes tell; none where a program is missing that is needed for it.
    pub(super) read: fn(&[u8]) -> Option<Told>,
}

/// Arguments as a shell would take them.
pub(super) fn command_line<'a>(arguments: impl IntoIterator<Item = &'a str>) -> String {
    let quoted = |argument: &str| {
        if argument.contains(' ') { format!("\"{argument}\"") } else { argument.to_owned() }
    };
    arguments.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// What a reader shows of code without a name that tells of a file and of an address in it, which has hexadecimal digits.
pub(super) fn unnamed(path: &str, address: &str) -> String {
    let name = path.rsplit('/').next().unwrap();
    format!("{name}+0x{address}")
}

/// A name without the mark that says what code it is, and what the mark is.
pub(super) fn unmarked(name: &str) -> (&str, &str) {
    let marks = ["_[k]", "_[i]"];
    let marked = marks.into_iter().find_map(|mark| Some((name.strip_suffix(mark)?, mark)));
    marked.unwrap_or((name, ""))
}
