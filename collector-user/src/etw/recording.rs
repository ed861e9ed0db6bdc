//! The `.etl` files of a recording that was made on this machine in, what a live recording gives on other systems out: records, figures,
//! warnings.
//!
//! ```text
//! x.etl ──────┐ by time
//! x.heap.etl ─┴───────► Taker ─► of whom it was asked for ─► ledger, figures
//! ```

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use collector_common::ids::Nanos;
use collector_common::loss::Ledger;
use collector_common::record::{ExportMachine, ModuleId, ProcessId, ProcessLife, Samples};
use export::import::{ImportError, Imported, checked};
use export::symbolize::Symbols;
use windows_etw::etl::EtlFile;
use windows_etw::plan::AliveProcess;

use super::counted::add_counted;
use super::families::{Asked, Families, nobody_called};
use super::file::{lose, no_room, tell};
use super::parts::{is_one_clock, take_all};
use super::shortest::Shortest;
use super::taker::Taker;
use super::trace::Trace;
use super::wanted::choose_main_kind;
use crate::modules::tell_of_recent_images;
use crate::spill::{self, spill_samples};
use crate::stats::{GIVEN, Stats};

/// What helps where the files are not of one recording.
const RECORD_AGAIN: &str = "record it again";

/// Images of .NET's runtimes.
const RUNTIMES: [&str; 3] = ["coreclr.dll", "clr.dll", "mscorwks.dll"];

/// What a session lost, as it told when it was stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Events that found no buffer.
    pub events: u64,
    /// Buffers that were not written.
    pub buffers: u64,
}

/// A file of a recording.
#[derive(Debug)]
pub struct RecordedPart<R> {
    /// The file.
    pub file: EtlFile<R>,
    /// What its session lost. The file tells that, too, if it was closed; the larger number counts.
    pub lost: Lost,
}

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Asking {
    /// Scenarios that it was recorded for, by their full names; without any it is made what can be made of its events.
    pub scenarios: Vec<String>,
    /// What of times off a CPU is left out.
    pub shortest: Shortest,
    /// Whose samples and events are kept, with those of all descendants; empty is all.
    pub whose: Vec<Asked>,
    /// Of these the processes whose image is called so, in upper or lower case: those that they make are called otherwise, and are not kept.
    pub comm: Option<String>,
    /// Processes that were there when it began: events tell who made them by a number, which may be a younger one's by then.
    pub there: Vec<AliveProcess>,
    /// What paths of the kernel begin with, and what the same begins with for people: Windows does not write it into its files.
    pub volumes: Vec<(String, String)>,
    /// What raw events may take of memory; 0 keeps samples alone.
    pub event_bytes: u64,
    /// How often CPUs were sampled, in units of 100 ns, for files that do not tell it.
    pub interval_100ns: Option<u32>,
    /// CPU samples a second that were asked for, for the figures.
    pub frequency_hz: u32,
    /// Whether processes that were made meanwhile are told from beginning to end.
    pub tells_lives: bool,
    /// Nanoseconds that the program had run for when the recording began.
    pub began_after_ns: u64,
}

/// A recording by ETW that is over.
#[derive(Debug)]
pub struct Recorded {
    /// The records.
    pub machine: ExportMachine,
    /// Names of code that was made at run time.
    pub symbols: Symbols,
    /// The figures for `--stats`, but for what the process has used.
    pub stats: Stats,
    /// Things a user should know, a line each.
    pub warnings: Vec<String>,
    /// Whether a runtime of .NET was loaded by one of the processes that are kept.
    pub has_dotnet: bool,
}

impl Recorded {
    /// Reads the files of one recording, of this machine and a moment ago: images on stacks are where it has them, and are asked for their PDBs. The first
    /// is that of the session with the kernel's events or, without such, the providers': the clock and the times of the recording are its.
    ///
    /// # Errors
    /// When a file can't be read, is none of the same clock as the first, or has more in it than any machine records.
    pub fn read<R: Read + Seek>(parts: Vec<RecordedPart<R>>, asking: &Asking) -> Result<Self, ImportError> {
        let (mut files, lost): (Vec<_>, Vec<_>) =
            parts.into_iter().map(|RecordedPart { file, lost }| (file, lost)).unzip();
        let Some(header) = files.first().map(|file| file.header().clone()) else {
            let what = "a recording without a file".to_owned();
            return Err(ImportError::Unsupported { what, remedy: RECORD_AGAIN });
        };
        if files.iter().any(|file| !is_one_clock(&file.header().clock, &header.clock)) {
            let what = "parts of a recording whose clocks differ".to_owned();
            return Err(ImportError::Unsupported { what, remedy: RECORD_AGAIN });
        }
        let mut machine = ExportMachine::default();
        spill_samples(&mut machine, Samples::LIMIT);
        let mut taker = Taker::into(machine, Trace::from(&header), asking.event_bytes);
        taker.want(&asking.scenarios);
        taker.leave_out_shorter(asking.shortest);
        taker.keep_events_of(&asking.whose, asking.comm.as_deref());
        taker.know_there(&asking.there);
        asking.volumes.iter().for_each(|(nt, dos)| taker.name_volume(nt, dos));
        let during = files.len();
        take_all(&mut files, during, &mut taker).map_err(|(_, error)| error)?;
        asking.interval_100ns.into_iter().for_each(|units| taker.tell_interval(units));
        let mut imported = taker.finish_uncounted();
        imported.left_out.extend(tell_of_recent_images(&mut imported.machine));
        let mut ledger = no_room(&imported);
        for (file, lost) in files.iter().zip(lost) {
            lose(&mut ledger, file.losses(), &lost);
            tell(file.losses(), &lost, &mut imported);
        }
        Ok(Self::of(checked(imported)?, ledger, asking))
    }

    fn of(imported: Imported, mut ledger: Ledger, asking: &Asking) -> Self {
        let Imported { mut machine, symbols, left_out: mut warnings } = imported;
        warnings.extend(spill::warnings(&machine));
        let families = Families::of(&machine, &asking.whose, asking.comm.as_deref());
        let absent = families.absent().iter();
        warnings.extend(absent.map(|pid| format!("no process {pid} was there when the recording began")));
        let unmet = |comm| nobody_called(&machine, &asking.whose, comm);
        warnings.extend(asking.comm.as_deref().and_then(unmet));
        if !asking.whose.is_empty() || asking.comm.is_some() {
            machine.keep_threads(|machine, thread| families.has(machine.thread(thread).process));
        }
        let has_dotnet = has_dotnet(&machine, &families);
        choose_main_kind(&mut machine, &asking.scenarios);
        add_counted(&mut machine, asking.shortest);
        if asking.tells_lives {
            add_lives(&mut machine, &families);
        }
        let mut stacks = BTreeMap::new();
        let (mut frames, mut earliest) = (0, None);
        for sample in machine.samples().iter() {
            let depth = machine.stacks().get(sample.stack).len() as u64;
            frames += depth;
            *stacks.entry(GIVEN).or_default() += u64::from(depth > 0);
            earliest = Some(earliest.map_or(sample.time, |earliest| sample.time.min(earliest)));
        }
        ledger.deliver(machine.samples().len() as u64);
        let system = machine.system_mut();
        let since_start = |at: Nanos| at.0.saturating_sub(system.start.0);
        let stats = Stats {
            backend: "etw",
            kernel: system.kernel.clone(),
            duration_ns: since_start(system.end),
            frequency_hz: asking.frequency_hz,
            ledger,
            stacks,
            frames,
            start_to_first_sample_ns: earliest
                .map(|at| since_start(at).saturating_add(asking.began_after_ns)),
            ..Stats::default()
        };
        system.lost = Some(stats.ledger.total_lost());
        system.account.splice(0..0, stats.account());
        Self { machine, symbols, stats, warnings, has_dotnet }
    }
}

/// By the images of its runtimes: of .NET, of .NET Framework, and of that before its version 4.
fn has_dotnet(machine: &ExportMachine, families: &Families) -> bool {
    let is_runtime = |path: &str| {
        let name = path.rsplit(['\\', '/']).next().unwrap_or_default();
        RUNTIMES.iter().any(|runtime| name.eq_ignore_ascii_case(runtime))
    };
    let paths = machine.modules().iter().map(|module| is_runtime(machine.string(module.path)));
    let runtimes: Vec<bool> = paths.collect();
    let is_runtime = |module: ModuleId| runtimes.get(module.0 as usize) == Some(&true);
    machine.mappings().iter().any(|it| is_runtime(it.module) && families.has(it.process))
}

/// Tells of the processes that were made since the recording began.
fn add_lives(machine: &mut ExportMachine, families: &Families) {
    let start = machine.system().start;
    let lives = machine.processes().iter().zip((0..).map(ProcessId));
    let lives = lives.map(|(it, process)| ProcessLife { process, made: it.start });
    let made: Vec<_> = lives.filter(|life| life.made > start && families.has(life.process)).collect();
    for life in made {
        machine.add_life(life);
    }
}
