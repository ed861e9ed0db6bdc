//! Recordings that are put together here, as machines and kernels would write them that this one is not.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Tid};
use collector_common::perf::file::{Feature, FileWriter};
use collector_common::perf::{
    Attr, AttrFlags, ByteOrder, Bytes, MappedFile, Misc, Mmap2, Parsed, Record, Sample, SampleId, SampleType,
    Text,
};
use collector_common::record::FrameFlags;
use collector_user::replay::Replay;
use collector_user::session::Recording;

/// The event's id.
const ID: u64 = 7;

/// A recording as far as it has been put together: of the sampling clock, with a sample each millisecond.
pub(crate) struct PutTogether {
    writer: FileWriter<BufWriter<File>>,
    /// Of the next record.
    time: u64,
}

impl PutTogether {
    /// A recording whose samples have these parts beside time, CPU and whose they are.
    pub(crate) fn new(path: &Path, order: ByteOrder, attr: &Attr) -> Self {
        let parts = [SampleType::IDENTIFIER, SampleType::IP, SampleType::TID, SampleType::TIME];
        let attr = Attr {
            kind: 1,
            config: 0,
            sample_period: 1_000_000,
            sample_type: parts.into_iter().fold(attr.sample_type, SampleType::or),
            flags: attr.flags.or(AttrFlags::SAMPLE_ID_ALL),
            ..attr.clone()
        };
        let mut writer = FileWriter::new(BufWriter::new(File::create(path).unwrap()), order).unwrap();
        writer.add_event(&attr, vec![ID], Some("cpu-clock".to_owned())).unwrap();
        Self { writer, time: 1_000_000 }
    }

    /// A file's code, mapped.
    pub(crate) fn map(&mut self, pid: u32, [start, end, file_offset]: [u64; 3], path: &Path) {
        let inode = u64::from(crc32fast::hash(path.as_os_str().as_encoded_bytes()));
        let mapped = Mmap2 {
            pid: Pid(pid),
            tid: Tid(pid),
            start: Avma(start),
            len: end - start,
            file_offset: FileOffset(file_offset),
            file: MappedFile::Inode { major: 1, minor: 1, inode, generation: 1 },
            protection: 5,
            flags: 2,
            path: Text::new(path.as_os_str().as_encoded_bytes()),
        };
        self.record(pid, Misc::USER, &Record::Mmap2(mapped));
    }

    /// A sample of the main thread of a process.
    pub(crate) fn sample(&mut self, pid: u32, misc: Misc, sample: &Sample<'_>) {
        let time = Some(Nanos(self.time));
        let (pid, tid) = (Some(Pid(pid)), Some(Tid(pid)));
        self.time += 1_000_000;
        let record = Record::Sample(Sample { identifier: Some(ID), pid, tid, time, ..*sample });
        self.write(&Parsed { misc, record, sample_id: SampleId::default(), rest: Bytes::default() });
    }

    /// Another record.
    pub(crate) fn record(&mut self, pid: u32, misc: Misc, record: &Record<'_>) {
        let sample_id = SampleId {
            pid: Some(Pid(pid)),
            tid: Some(Tid(pid)),
            time: Some(Nanos(self.time)),
            identifier: Some(ID),
            ..SampleId::default()
        };
        self.time += 1_000_000;
        self.write(&Parsed { misc, record: *record, sample_id, rest: Bytes::default() });
    }

    fn write(&mut self, parsed: &Parsed<'_>) {
        self.writer.write(0, parsed).unwrap();
    }

    /// All of it; with the name of the machine's architecture, if that is told.
    pub(crate) fn finish(mut self, architecture: Option<&str>) {
        let features = self.writer.features();
        for (feature, text) in [
            (Feature::ARCH, architecture),
            (Feature::OSRELEASE, Some("5.15.0-other")),
            (Feature::HOSTNAME, Some("other")),
        ] {
            if let Some(text) = text {
                features.set_text(feature, text).unwrap();
            }
        }
        self.writer.finish().unwrap();
    }
}

pub(crate) fn replay(path: &Path) -> Recording {
    Replay::open(File::open(path).unwrap()).unwrap().run()
}

/// File and address as linked of every frame of every sample, in the order of time; where a stack was cut there is nothing.
pub(crate) fn frames(recording: &Recording) -> Vec<Vec<(String, u64)>> {
    let machine = &recording.machine;
    let frame = |id| {
        let frame = machine.frames().get(id);
        if frame.flags.has(FrameFlags::CUT) {
            return Default::default();
        }
        (machine.string(machine.module(frame.module).path).to_owned(), frame.address.0)
    };
    let mut samples: Vec<_> = machine.samples().iter().collect();
    samples.sort_by_key(|sample| sample.time);
    let stacks = samples.iter().map(|sample| machine.stacks().get(sample.stack));
    stacks.map(|stack| stack.iter().map(|&id| frame(id)).collect()).collect()
}
