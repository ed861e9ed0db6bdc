//! Which processes and images there were from when to when, by the events of their beginnings and ends, and of those that were there when the
//! trace began (`DCStart`) or ended (`DCStop`).
//!
//! A number is used again: a life is one use of it. What begins while it is there already has lost its end; what ends and was not there has been
//! there from before the trace.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use collector_common::ids::Pid;

use super::ids::{ImageIds, PdbId};
use super::paths::NtPaths;
use crate::decode::kernel::{DebugId, Image, KernelEvent, Process};
use crate::decode::windows::{MappedImage, WindowsEvent};
use crate::record::EtwRecord;

/// A process from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessLife {
    /// Its number.
    pub pid: Pid,
    /// The process that made it.
    pub parent: Pid,
    /// Name of the program's file; Windows cuts it in some versions.
    pub image: Box<str>,
    /// As it was started.
    pub command_line: Box<str>,
    /// The user that it runs for, as `S-1-5-…`.
    pub user: Option<Box<str>>,
    /// The session of a user.
    pub session: Option<u32>,
    /// When it began; none if it ran when the trace began.
    pub start: Option<i64>,
    /// When it ended; none if it ran when the trace ended.
    pub end: Option<i64>,
    /// What it ended with.
    pub exit_status: Option<i32>,
}

/// An image from when it was mapped to when it was unmapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageLife {
    /// The process; 0 is the kernel.
    pub pid: Pid,
    /// Where it is mapped.
    pub base: u64,
    /// In bytes.
    pub size: u64,
    /// Checksum of its header; 0 where the linker made none.
    pub checksum: Option<u32>,
    /// When it was linked, by its header. `DCStart` and `DCStop` have 0 for images of processes, which is none: other events tell it then.
    pub timestamp: Option<u32>,
    /// Its path, with a drive where that is known.
    pub path: Box<str>,
    /// By what its symbols are found.
    pub ids: ImageIds,
    /// When it was mapped; none if it was when the trace began.
    pub start: Option<i64>,
    /// When it was unmapped, or its process ended; none if it was mapped when the trace ended.
    pub end: Option<i64>,
}

impl ProcessLife {
    fn new(pid: Pid) -> Self {
        Self {
            pid,
            parent: Pid(0),
            image: Box::default(),
            command_line: Box::default(),
            user: None,
            session: None,
            start: None,
            end: None,
            exit_status: None,
        }
    }

    fn of(process: &Process<'_>, start: Option<i64>) -> Self {
        Self {
            parent: process.parent.0,
            image: process.image.to_string().into(),
            command_line: process.command_line.map(|text| text.to_string().into()).unwrap_or_default(),
            user: process.user.map(|user| user.to_string().into()),
            session: process.session,
            start,
            ..Self::new(process.pid.0)
        }
    }
}

impl ImageLife {
    fn of(image: &Image<'_>, start: Option<i64>, paths: &NtPaths) -> Self {
        Self {
            pid: image.pid,
            base: image.base.0,
            size: image.size.0,
            checksum: image.checksum,
            timestamp: image.timestamp.and_then(date),
            path: paths.to_dos(&image.path.to_string()).into(),
            ids: ImageIds::default(),
            start,
            end: None,
        }
    }

    fn of_manifest(image: &MappedImage<'_>, start: Option<i64>, paths: &NtPaths) -> Self {
        Self {
            pid: image.pid,
            base: image.base.0,
            size: image.size.0,
            checksum: Some(image.checksum),
            timestamp: date(image.timestamp),
            path: paths.to_dos(&image.path.to_string()).into(),
            ids: ImageIds::default(),
            start,
            end: None,
        }
    }

    /// Takes from another event of it what is not known.
    fn complete(&mut self, other: &Self) {
        if self.size == other.size && self.path.eq_ignore_ascii_case(&other.path) {
            self.timestamp = self.timestamp.or(other.timestamp);
            self.checksum = self.checksum.or(other.checksum);
        }
    }

    /// What images have in common that are one file; none without a checksum, which many programs do not have.
    fn file(&self) -> Option<(String, u64, u32)> {
        let checksum = self.checksum.filter(|checksum| *checksum > 0)?;
        Some((self.path.to_ascii_lowercase(), self.size, checksum))
    }
}

/// How many there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifeLimits {
    /// Processes.
    pub processes: usize,
    /// Images.
    pub images: usize,
}

impl Default for LifeLimits {
    /// 65,536 processes and a million images.
    fn default() -> Self {
        Self { processes: 1 << 16, images: 1 << 20 }
    }
}

/// Which processes and images there were.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    limits: LifeLimits,
    processes: Vec<ProcessLife>,
    /// Lives of a number, the latest last.
    of_pid: HashMap<Pid, Vec<usize>>,
    images: Vec<ImageLife>,
    /// Images by process and base, the latest last.
    of_base: HashMap<Pid, BTreeMap<u64, Vec<usize>>>,
    /// Images of a process that are mapped.
    mapped: HashMap<Pid, BTreeSet<usize>>,
    /// What is known of images before they are.
    ids: HashMap<(Pid, u64), ImageIds>,
    left_out: u64,
}

impl Lives {
    /// Nothing yet, and at most so many.
    pub fn new(limits: LifeLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Takes an event; those that tell nothing of processes and images are passed over.
    pub fn take(&mut self, record: &EtwRecord<'_>, event: &KernelEvent<'_>, paths: &NtPaths) {
        let at = record.ticks;
        match event {
            KernelEvent::ProcessStart(process) => self.begin(ProcessLife::of(process, Some(at))),
            KernelEvent::ProcessDcStart(process) | KernelEvent::ProcessDcStop(process) => {
                self.meet(ProcessLife::of(process, None));
            }
            KernelEvent::ProcessStop(process) => {
                self.meet(ProcessLife::of(process, None));
                self.end(process.pid.0, at, process.exit_status);
            }
            KernelEvent::ImageLoad(image) => self.map(ImageLife::of(image, Some(at), paths)),
            KernelEvent::ImageDcStart(image) | KernelEvent::ImageDcStop(image) => {
                self.find(ImageLife::of(image, None, paths));
            }
            KernelEvent::ImageUnload(image) => self.leave(ImageLife::of(image, None, paths), at),
            KernelEvent::ImageId(id) => {
                let name = Some(id.name.to_string().into());
                let ids =
                    ImageIds { original_name: name, timestamp: date(id.timestamp), ..ImageIds::default() };
                self.identify((id.pid, id.base.0), ids);
            }
            KernelEvent::DebugId(id) => {
                let ids = ImageIds { pdb: Some(pdb(id)), ..ImageIds::default() };
                self.identify((id.pid, id.base.0), ids);
            }
            KernelEvent::IlDebugId(id) => {
                let ids = ImageIds { il_pdb: Some(pdb(id)), ..ImageIds::default() };
                self.identify((id.pid, id.base.0), ids);
            }
            _ => {}
        }
    }

    /// Takes an event of `Microsoft-Windows-Kernel-Process`, which tells neither command lines nor users. A trace that has the kernel's own
    /// events is told of everything twice: one of the two is enough.
    pub fn take_manifest(&mut self, record: &EtwRecord<'_>, event: &WindowsEvent<'_>, paths: &NtPaths) {
        let at = record.ticks;
        match event {
            WindowsEvent::ProcessStart(process) => {
                let path = process.image.to_string();
                let image = path.rsplit('\\').next().unwrap_or_default().into();
                let session = Some(process.session);
                let start = Some(at);
                let life = ProcessLife {
                    parent: process.parent,
                    image,
                    session,
                    start,
                    ..ProcessLife::new(process.pid)
                };
                self.begin(life);
            }
            WindowsEvent::ProcessStop(process) => {
                let image = process.image.to_string().into();
                self.meet(ProcessLife { image, ..ProcessLife::new(process.pid) });
                // The number is a status as the kernel has it.
                self.end(process.pid, at, Some(process.exit_code.cast_signed()));
            }
            WindowsEvent::ImageLoad(image) => self.map(ImageLife::of_manifest(image, Some(at), paths)),
            WindowsEvent::ImageUnload(image) => self.leave(ImageLife::of_manifest(image, None, paths), at),
            _ => {}
        }
    }

    /// All events were taken: an image of which none tells the date has that of others of the same path, size and checksum, if these have one.
    pub fn fill_dates(&mut self) {
        let mut dates: HashMap<_, Option<u32>> = HashMap::new();
        for image in self.images.iter().filter(|image| image.timestamp.is_some()) {
            let Some(file) = image.file() else { continue };
            let known = dates.entry(file).or_insert(image.timestamp);
            *known = known.filter(|known| Some(*known) == image.timestamp);
        }
        if dates.is_empty() {
            return;
        }
        for image in self.images.iter_mut().filter(|image| image.timestamp.is_none()) {
            image.timestamp = image.file().and_then(|file| dates.get(&file).copied().flatten());
        }
    }

    /// All processes, in the order in which they were met.
    pub fn processes(&self) -> &[ProcessLife] {
        &self.processes
    }

    /// All images, in the order in which they were met.
    pub fn images(&self) -> &[ImageLife] {
        &self.images
    }

    /// Processes and images that were left out because there were too many.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The process that had a number at a time.
    pub fn process_at(&self, pid: Pid, ticks: i64) -> Option<&ProcessLife> {
        let lives = self.of_pid.get(&pid)?.iter().rev().filter_map(|index| self.processes.get(*index));
        // A process that has ended may still be told of.
        lives.clone().find(|life| is_within(life.start, life.end, ticks)).or_else(|| {
            let mut before = lives;
            before.find(|life| life.start.is_none_or(|start| start <= ticks))
        })
    }

    /// The image that was mapped at an address of a process at a time.
    pub fn image_at(&self, pid: Pid, address: u64, ticks: i64) -> Option<&ImageLife> {
        let below = self.of_base.get(&pid)?.range(..=address).rev();
        below
            .flat_map(|(_, lives)| lives.iter().rev())
            .filter_map(|index| self.images.get(*index))
            .find(|image| address - image.base < image.size && is_within(image.start, image.end, ticks))
    }

    fn running(&mut self, pid: Pid) -> Option<&mut ProcessLife> {
        let index = *self.of_pid.get(&pid)?.last()?;
        self.processes.get_mut(index).filter(|process| process.end.is_none())
    }

    /// A process begins.
    fn begin(&mut self, life: ProcessLife) {
        if let Some(start) = life.start {
            self.end(life.pid, start, None);
        }
        self.add(life);
    }

    /// A process runs, and may be known: by texts that were not told of it yet it is completed.
    fn meet(&mut self, life: ProcessLife) {
        let Some(known) = self.running(life.pid) else { return self.add(life) };
        if known.image.is_empty() {
            known.image = life.image;
        }
        if known.command_line.is_empty() {
            known.command_line = life.command_line;
        }
    }

    fn add(&mut self, life: ProcessLife) {
        if self.processes.len() >= self.limits.processes {
            self.left_out += 1;
            return;
        }
        self.of_pid.entry(life.pid).or_default().push(self.processes.len());
        self.processes.push(life);
    }

    fn end(&mut self, pid: Pid, at: i64, exit_status: Option<i32>) {
        let Some(life) = self.running(pid) else { return };
        (life.end, life.exit_status) = (Some(at), exit_status);
        for index in self.mapped.remove(&pid).unwrap_or_default() {
            if let Some(image) = self.images.get_mut(index) {
                image.end = image.end.or(Some(at));
            }
        }
    }

    fn latest(&self, (pid, base): (Pid, u64)) -> Option<usize> {
        self.of_base.get(&pid)?.get(&base)?.last().copied()
    }

    fn mapped_at(&self, place: (Pid, u64)) -> Option<usize> {
        let index = self.latest(place)?;
        self.images.get(index).filter(|image| image.end.is_none()).map(|_| index)
    }

    /// An image is mapped. The end of what was there is lost.
    fn map(&mut self, image: ImageLife) {
        if let Some(start) = image.start {
            self.unmap(image.pid, image.base, start);
        }
        self.add_image(image);
    }

    /// An image is there, and may be known.
    fn find(&mut self, image: ImageLife) {
        let place = (image.pid, image.base);
        let Some(index) = self.mapped_at(place) else { return self.add_image(image) };
        self.ids.remove(&place);
        self.complete(index, &image);
    }

    fn complete(&mut self, index: usize, other: &ImageLife) {
        if let Some(image) = self.images.get_mut(index) {
            image.complete(other);
        }
    }

    /// An image is unmapped. With its process it has ended already.
    fn leave(&mut self, image: ImageLife, at: i64) {
        let (pid, base) = (image.pid, image.base);
        match self.latest((pid, base)) {
            Some(index) if self.running(pid).is_none() => self.complete(index, &image),
            _ => self.find(image),
        }
        self.unmap(pid, base, at);
    }

    fn add_image(&mut self, mut image: ImageLife) {
        let place = (image.pid, image.base);
        image.ids = self.ids.remove(&place).unwrap_or_default();
        image.timestamp = image.timestamp.or(image.ids.timestamp);
        if self.images.len() >= self.limits.images {
            self.left_out += 1;
            return;
        }
        let index = self.images.len();
        self.of_base.entry(image.pid).or_default().entry(image.base).or_default().push(index);
        self.mapped.entry(image.pid).or_default().insert(index);
        self.images.push(image);
    }

    fn unmap(&mut self, pid: Pid, base: u64, at: i64) {
        let Some(index) = self.mapped_at((pid, base)) else { return };
        if let Some(image) = self.images.get_mut(index) {
            image.end = Some(at);
        }
        if let Some(mapped) = self.mapped.get_mut(&pid) {
            mapped.remove(&index);
        }
    }

    /// What is told of an image is told before or behind that it is mapped.
    fn identify(&mut self, place: (Pid, u64), ids: ImageIds) {
        let mapped = self.mapped_at(place).and_then(|index| self.images.get_mut(index));
        if let Some(image) = mapped {
            image.ids.complete(ids);
            image.timestamp = image.timestamp.or(image.ids.timestamp);
        } else if self.ids.len() < self.limits.images {
            self.ids.entry(place).or_default().complete(ids);
        } else {
            self.left_out += 1;
        }
    }
}

fn is_within(start: Option<i64>, end: Option<i64>, ticks: i64) -> bool {
    start.is_none_or(|start| start <= ticks) && end.is_none_or(|end| ticks < end)
}

/// A date of a header; 0 is none.
fn date(timestamp: u32) -> Option<u32> {
    Some(timestamp).filter(|timestamp| *timestamp > 0)
}

fn pdb(id: &DebugId<'_>) -> PdbId {
    PdbId { signature: id.signature, age: id.age, path: id.path.to_string().into() }
}
