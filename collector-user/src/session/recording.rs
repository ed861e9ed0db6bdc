//! What a session leaves: the records, the files to name them by, and the figures for `--stats`.

use std::fs::File;
use std::io::{BufRead, BufReader};

use collector_common::loss::Ledger;
use collector_common::record::{ExportMachine, ModuleId};
use export::symbolize::{ModuleFiles, Symbols, symbolize};

use crate::modules::Modules;
use crate::stats::Stats;
use crate::sys::usage::own_usage;

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
    pub(super) modules: Modules,
}

impl Recording {
    /// The figures with what the process has used up to now.
    pub fn stats_now(&self) -> Stats {
        Stats { usage: own_usage(), ..self.stats.clone() }
    }

    /// Names all frames.
    pub fn symbolize(&self) -> Symbols {
        symbolize(&self.machine, &Files { modules: &self.modules })
    }
}

/// The recording's files, as the symbolizer wants them.
struct Files<'a> {
    modules: &'a Modules,
}

impl ModuleFiles for Files<'_> {
    type File = File;

    fn open(&self, module: ModuleId) -> Option<File> {
        self.modules.file(module)?.try_clone().ok()
    }

    fn open_debug(&self, module: ModuleId) -> Option<File> {
        self.modules.open_debug(module)
    }

    fn kernel_symbols(&self) -> Option<Box<dyn BufRead>> {
        Some(Box::new(BufReader::with_capacity(256 << 10, File::open("/proc/kallsyms").ok()?)))
    }

    fn vdso(&self, module: ModuleId) -> Option<&[u8]> {
        self.modules.vdso_image(module)
    }
}
