//! What a session leaves: the records, the files to name them by, and the figures for `--stats`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use collector_common::loss::Ledger;
use collector_common::perf::file::FileWriteError;
use collector_common::record::{ExportMachine, ModuleId, ProcessId};
use export::format::{Holds, Part};
use export::symbolize::{
    AheadMapId, Detail, JitNames, KernelModule, ModuleFiles, Naming, PdbId, PerfMap, Symbols, symbolize,
};

#[cfg(feature = "debuginfod")]
use crate::debuginfod::WithServers;
use crate::modules::Modules;
use crate::stats::Stats;
use crate::this_machine::{kernel_image, kernel_module, kernel_symbols, own_usage};

/// What `SessionSettings::capture` of `session` holds of a recording without scenarios, which is what a replay on the
/// same machine finds: stacks, names and facts of files are as good as held. Of frames that are guessed those are that it guesses, too, and
/// not those that were read from memory after the sample.
pub const CAPTURED: Holds = Holds::everything()
    .without(&[
        Part::Attributes,
        Part::Estimates,
        Part::Owners,
        Part::Containers,
        Part::ExitStatuses,
        Part::NamespacePids,
        Part::System,
        Part::Spans,
        Part::Tables,
    ])
    .with_some(&[Part::Parents, Part::Guesses]);

/// A finished recording.
pub struct Recording {
    /// The records.
    pub machine: ExportMachine,
    /// Delivered and lost samples.
    pub ledger: Ledger,
    /// The figures for `--stats`.
    pub stats: Stats,
    /// Things a user should know, a line each.
    pub warnings: Vec<String>,
    /// Why `SessionSettings::capture` of `session` is not whole.
    pub capture_failure: Option<FileWriteError>,
    /// Why `SessionSettings::journal` of `session` is not whole.
    pub journal_failure: Option<std::io::Error>,
    /// Records of scenarios that `SessionSettings::capture` of `session` has no place for.
    pub not_captured: u64,
    pub(crate) modules: Modules,
    /// Names of the kernel's functions; `None` where those of the recorded kernel can't be had.
    pub(crate) kernel_symbols: Option<PathBuf>,
}

impl Recording {
    /// The figures with what the process has used up to now.
    pub fn stats_now(&self) -> Stats {
        Stats { usage: own_usage(), ..self.stats.clone() }
    }

    /// What of it `SessionSettings::capture` of `session` holds.
    pub fn captured(&self) -> Holds {
        if self.not_captured > 0 { CAPTURED.with_some(&[Part::Kinds]) } else { CAPTURED }
    }

    /// Whether its kernel is the one that runs, as it was started when it was recorded.
    fn is_of_this_kernel(&self) -> bool {
        self.kernel_symbols.is_some() && self.kernel_symbols == kernel_symbols()
    }

    /// Names all frames, with source lines and inlined functions. Where `DEBUGINFOD_URLS` names servers, these are asked for
    /// debug files that are not here: for minutes, in the worst case.
    pub fn symbolize(&self) -> Symbols {
        self.symbolize_to(Detail::Lines)
    }

    /// Names all frames, with as much as is wanted, and in the form that is.
    pub fn symbolize_to(&self, naming: impl Into<Naming>) -> Symbols {
        let files = Files(self);
        #[cfg(feature = "debuginfod")]
        let files = WithServers::new(files, &self.machine, self.modules.servers());
        symbolize(&self.machine, &files, naming)
    }
}

/// The recording's files, as the symbolizer wants them.
struct Files<'a>(&'a Recording);

impl ModuleFiles for Files<'_> {
    type File = File;

    fn open(&self, module: ModuleId) -> Option<File> {
        self.0.modules.file(module)?.try_clone().ok()
    }

    fn open_debug(&self, module: ModuleId) -> Option<File> {
        self.0.modules.open_debug(module)
    }

    fn open_pdb(&self, module: ModuleId, id: &PdbId) -> Option<File> {
        self.0.modules.open_pdb(module, id)
    }

    fn open_ahead_map(&self, module: ModuleId, id: &AheadMapId) -> Option<File> {
        self.0.modules.open_ahead_map(module, id)
    }

    fn open_shared(&self, module: ModuleId, path: &[u8], build_id: &[u8]) -> Option<File> {
        self.0.modules.open_shared(module, path, build_id)
    }

    fn open_split(&self, module: ModuleId, folder: &[u8], name: &[u8]) -> Option<File> {
        self.0.modules.open_split(module, folder, name)
    }

    fn open_package(&self, module: ModuleId) -> Option<File> {
        self.0.modules.open_package(module)
    }

    fn kernel_symbols(&self) -> Option<Box<dyn BufRead + Send>> {
        let path = self.0.kernel_symbols.as_ref()?;
        Some(Box::new(BufReader::with_capacity(256 << 10, File::open(path).ok()?)))
    }

    fn kernel_image(&self) -> Option<(File, u64)> {
        self.0.is_of_this_kernel().then(kernel_image).flatten()
    }

    fn kernel_module(&self, name: &str) -> Option<KernelModule<File>> {
        self.0.is_of_this_kernel().then(|| kernel_module(name)).flatten()
    }

    fn vdso(&self, module: ModuleId) -> Option<&[u8]> {
        self.0.modules.vdso_image(module)
    }

    fn jit_names(&self, module: ModuleId) -> Option<&JitNames> {
        self.0.modules.jit().names(module)
    }

    fn perf_map(&self, process: ProcessId) -> Option<PerfMap<File>> {
        self.0.modules.jit().perf_map(process)
    }
}
