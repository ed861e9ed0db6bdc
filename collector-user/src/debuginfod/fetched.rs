//! Files of modules: those that are here, else those that a server has.

use std::fmt;
use std::fs::File;
use std::io::BufRead;

use collector_common::ids::{BuildId, Svma};
use collector_common::record::{ExportMachine, ModuleId, ModuleKind, ProcessId};
use export::symbolize::{AheadMapId, JitNames, KernelModule, ModuleFiles, PdbId, PerfMap};

use super::cache::Artifact;
use super::client::Client;

/// Servers that are asked for what was executed while a recording is read, since nothing else unwinds it, and for names after that.
pub(crate) struct Servers(Client);

impl Servers {
    /// Those that the environment names, if it names any.
    pub(crate) fn of_environment() -> Option<Self> {
        Client::of_environment().map(Self)
    }

    /// The executed file of a build.
    pub(crate) fn executable(&self, id: BuildId) -> Option<File> {
        self.0.find(id, Artifact::Executable)
    }

    /// What went wrong since it was asked last, a line each.
    pub(crate) fn take_told(&self) -> Vec<String> {
        self.0.take_told()
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Servers").finish_non_exhaustive()
    }
}

/// A client of one recording's names, or one that was asked before.
enum Asked<'a> {
    Own(Box<Client>),
    Before(&'a Client),
}

/// Files from elsewhere, and from servers what is not there.
pub(crate) struct WithServers<'a, F> {
    here: F,
    machine: &'a ExportMachine,
    client: Option<Asked<'a>>,
}

impl<'a, F: ModuleFiles<File = File>> WithServers<'a, F> {
    /// Asks the servers that were asked before, else those that the environment names, if it names any.
    pub(crate) fn new(here: F, machine: &'a ExportMachine, before: Option<&'a Servers>) -> Self {
        let before = before.map(|servers| Asked::Before(&servers.0));
        Self {
            here,
            machine,
            client: before.or_else(|| Client::of_environment().map(|own| Asked::Own(Box::new(own)))),
        }
    }

    fn client(&self) -> Option<&Client> {
        match self.client.as_ref()? {
            Asked::Own(client) => Some(client),
            Asked::Before(client) => Some(client),
        }
    }

    fn build_id(&self, module: ModuleId) -> Option<BuildId> {
        let module = self.machine.module(module);
        module.build_id.filter(|_| module.kind == ModuleKind::File)
    }

    fn find(&self, id: BuildId, artifact: Artifact) -> Option<File> {
        self.client()?.find(id, artifact)
    }
}

impl<F: ModuleFiles<File = File>> ModuleFiles for WithServers<'_, F> {
    type File = File;

    fn open(&self, module: ModuleId) -> Option<File> {
        self.here.open(module)
    }

    fn linked(&self, module: ModuleId, address: Svma) -> Svma {
        self.here.linked(module, address)
    }

    /// The debug file has the symbols of the file, too, which is asked for only where neither is anywhere.
    fn open_debug(&self, module: ModuleId) -> Option<File> {
        let debug = || self.find(self.build_id(module)?, Artifact::DebugInfo);
        let executable = || match self.here.open(module) {
            Some(_) => None,
            None => self.find(self.build_id(module)?, Artifact::Executable),
        };
        self.here.open_debug(module).or_else(debug).or_else(executable)
    }

    fn open_pdb(&self, module: ModuleId, id: &PdbId) -> Option<File> {
        self.here.open_pdb(module, id)
    }

    fn pdb_of(&self, module: ModuleId) -> Option<PdbId> {
        self.here.pdb_of(module)
    }

    fn open_ahead_map(&self, module: ModuleId, id: &AheadMapId) -> Option<File> {
        self.here.open_ahead_map(module, id)
    }

    fn ahead_map_of(&self, module: ModuleId) -> Option<AheadMapId> {
        self.here.ahead_map_of(module)
    }

    fn open_shared(&self, module: ModuleId, path: &[u8], build_id: &[u8]) -> Option<File> {
        let there = || self.find(BuildId::new(build_id)?, Artifact::DebugInfo);
        self.here.open_shared(module, path, build_id).or_else(there)
    }

    fn open_split(&self, module: ModuleId, folder: &[u8], name: &[u8]) -> Option<File> {
        self.here.open_split(module, folder, name)
    }

    fn open_package(&self, module: ModuleId) -> Option<File> {
        self.here.open_package(module)
    }

    fn kernel_symbols(&self) -> Option<Box<dyn BufRead + Send>> {
        self.here.kernel_symbols()
    }

    fn kernel_image(&self) -> Option<(File, u64)> {
        self.here.kernel_image()
    }

    fn kernel_module(&self, name: &str) -> Option<KernelModule<File>> {
        self.here.kernel_module(name)
    }

    fn vdso(&self, module: ModuleId) -> Option<&[u8]> {
        self.here.vdso(module)
    }

    fn jit_names(&self, module: ModuleId) -> Option<&JitNames> {
        self.here.jit_names(module)
    }

    fn perf_map(&self, process: ProcessId) -> Option<PerfMap<File>> {
        self.here.perf_map(process)
    }

    fn failures(&self) -> Vec<String> {
        self.client().map(Client::take_told).unwrap_or_default()
    }
}
