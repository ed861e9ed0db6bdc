//! Modules to be looked up in, what was found of each out: by several threads, each with a module of its own at a time.
//!
//! ```text
//! worker ── what it wants of the files ──► the thread that called, which has them ──► a file that is open
//! worker ◄───────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Whoever has the files need not let several threads use them, and asks one server at a time. What is read of a file, and all that
//! is made of it, is its worker's, so that none waits for another; and what is found does not depend on who was faster, unless
//! the time that all of them have for lines runs out.

use std::io::BufRead;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use collector_common::record::{ModuleId, ProcessId};

use super::files::{KernelModule, ModuleFiles};
use super::jit::PerfMap;
use super::pe::{AheadMapId, PdbId};
use super::task::{Found, Task, Wanted};

/// The most threads, since each holds what it reads of a module.
const MOST_THREADS: usize = 8;

/// Bytes of a thread's stack. What reads DWARF stops at a part of them.
const STACK: usize = 8 << 20;

/// Looks up all of `tasks`, by at most so many threads. What is found is in their order.
pub(super) fn look_up_all<'f, 't, M: ModuleFiles>(
    files: &'f M,
    tasks: &'t [Task],
    wanted: &Wanted,
    threads: Option<NonZeroUsize>,
) -> Vec<Found<'t>> {
    let queue = Queue::of(tasks);
    let threads = threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let threads = threads.min(MOST_THREADS).min(tasks.len());
    let mut found = thread::scope(|scope| {
        let (asks, asked) = mpsc::channel::<Ask<'f, M>>();
        let start = || {
            let asking = Asking { asks: asks.clone() };
            let work = || {
                // All of it, so that the other end sees when the last thread has ended.
                let asking = asking;
                queue.work(&asking, wanted)
            };
            let thread = thread::Builder::new().name("symbolize".to_owned()).stack_size(STACK);
            thread.spawn_scoped(scope, work).ok()
        };
        // One alone would only make the way to the files longer.
        let count = if threads > 1 { threads } else { 0 };
        let workers: Vec<_> = (0..count).map_while(|_| start()).collect();
        drop(asks);
        for ask in &asked {
            ask(files);
        }
        let mut found = Vec::new();
        for worker in workers {
            match worker.join() {
                Ok(of_worker) => found.extend(of_worker),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        // What there was no thread for.
        found.extend(queue.work(files, wanted));
        found
    });
    found.sort_unstable_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, found)| found).collect()
}

/// What is to be done: that with the most addresses first, as the last of a long row it would be waited for.
struct Queue<'t> {
    tasks: &'t [Task],
    order: Vec<usize>,
    next: AtomicUsize,
}

impl<'t> Queue<'t> {
    fn of(tasks: &'t [Task]) -> Self {
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(tasks[index].addresses.len()));
        Self { tasks, order, next: AtomicUsize::new(0) }
    }

    /// Does what nobody has begun, until there is nothing left.
    fn work(&self, files: &impl ModuleFiles, wanted: &Wanted) -> Vec<(usize, Found<'t>)> {
        let mut found = Vec::new();
        while let Some(&index) = self.order.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            found.push((index, self.tasks[index].look_up(files, wanted)));
        }
        found
    }
}

/// Something to be done with the files by the thread that has them.
type Ask<'f, M> = Box<dyn FnOnce(&'f M) + Send + 'f>;

/// The files of a thread that does not have them: it asks the one that has.
struct Asking<'f, M> {
    asks: Sender<Ask<'f, M>>,
}

impl<'f, M: ModuleFiles> Asking<'f, M> {
    /// None where nobody answers any more.
    fn ask<T: Send + 'f>(&self, ask: impl FnOnce(&'f M) -> Option<T> + Send + 'f) -> Option<T> {
        let (reply, replied) = mpsc::sync_channel(1);
        // Nobody waits for an answer who has ended.
        let answered = move |files: &'f M| drop(reply.send(ask(files)));
        self.asks.send(Box::new(answered)).ok()?;
        replied.recv().ok().flatten()
    }
}

impl<M: ModuleFiles> ModuleFiles for Asking<'_, M> {
    type File = M::File;

    fn open(&self, module: ModuleId) -> Option<M::File> {
        self.ask(move |files| files.open(module))
    }

    fn open_debug(&self, module: ModuleId) -> Option<M::File> {
        self.ask(move |files| files.open_debug(module))
    }

    fn open_shared(&self, module: ModuleId, path: &[u8], build_id: &[u8]) -> Option<M::File> {
        let (path, build_id) = (path.to_owned(), build_id.to_owned());
        self.ask(move |files| files.open_shared(module, &path, &build_id))
    }

    fn open_split(&self, module: ModuleId, folder: &[u8], name: &[u8]) -> Option<M::File> {
        let (folder, name) = (folder.to_owned(), name.to_owned());
        self.ask(move |files| files.open_split(module, &folder, &name))
    }

    fn open_package(&self, module: ModuleId) -> Option<M::File> {
        self.ask(move |files| files.open_package(module))
    }

    fn open_pdb(&self, module: ModuleId, id: &PdbId) -> Option<M::File> {
        let id = id.clone();
        self.ask(move |files| files.open_pdb(module, &id))
    }

    fn pdb_of(&self, module: ModuleId) -> Option<PdbId> {
        self.ask(move |files| files.pdb_of(module))
    }

    fn open_ahead_map(&self, module: ModuleId, id: &AheadMapId) -> Option<M::File> {
        let id = id.clone();
        self.ask(move |files| files.open_ahead_map(module, &id))
    }

    fn ahead_map_of(&self, module: ModuleId) -> Option<AheadMapId> {
        self.ask(move |files| files.ahead_map_of(module))
    }

    fn kernel_symbols(&self) -> Option<Box<dyn BufRead + Send>> {
        self.ask(M::kernel_symbols)
    }

    fn kernel_image(&self) -> Option<(M::File, u64)> {
        self.ask(M::kernel_image)
    }

    fn kernel_module(&self, name: &str) -> Option<KernelModule<M::File>> {
        let name = name.to_owned();
        self.ask(move |files| files.kernel_module(&name))
    }

    fn vdso(&self, module: ModuleId) -> Option<&[u8]> {
        self.ask(move |files| files.vdso(module))
    }

    fn perf_map(&self, process: ProcessId) -> Option<PerfMap<M::File>> {
        self.ask(move |files| files.perf_map(process))
    }
}
