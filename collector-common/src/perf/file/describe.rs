//! Says what is known of the machine and of the recording: the feature sections that [`Features`] reads, written.
//!
//! Source: the functions `write_*` of `tools/perf/util/header.c`.

use super::section::{write_count, write_string};
use super::{
    BuildIdOfFile, CacheLevel, ClockData, Feature, Features, GroupDescription, HeaderBuildId, NumaNode,
    ParsedUser, SampleTimes, UserRecord,
};
use crate::ids::Nanos;
use crate::perf::write::{WriteError, Writer};
use crate::perf::{Bytes, Text};

/// What is set a second time replaces what was there. Each fails when something in it is longer than its length can
/// say.
impl Features {
    /// Sets a section's bytes as they are, in the file's byte order.
    pub fn set_section(&mut self, feature: Feature, bytes: Vec<u8>) {
        self.add(feature, bytes);
    }

    /// Takes a section away.
    pub fn remove(&mut self, feature: Feature) {
        self.remove_section(feature);
    }

    fn encode(
        &mut self,
        feature: Feature,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let mut bytes = Vec::new();
        write(&mut Writer::new(&mut bytes, self.order()))?;
        self.add(feature, bytes);
        Ok(())
    }

    /// Sets what [`Self::text`] reads.
    ///
    /// # Errors
    /// When the text is too long.
    pub fn set_text(&mut self, feature: Feature, text: &str) -> Result<(), WriteError> {
        self.encode(feature, |writer| write_string(writer, text))
    }

    /// Sets how many CPUs could be there, and how many were online.
    pub fn set_cpus(&mut self, possible: u32, online: u32) {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, self.order());
        writer.u32(possible);
        writer.u32(online);
        self.add(Feature::NRCPUS, bytes);
    }

    fn set_numbers(&mut self, feature: Feature, numbers: &[u64]) {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, self.order());
        for number in numbers {
            writer.u64(*number);
        }
        self.add(feature, bytes);
    }

    /// Sets the kilobytes of memory.
    pub fn set_total_memory(&mut self, kilobytes: u64) {
        self.set_numbers(Feature::TOTAL_MEM, &[kilobytes]);
    }

    /// Sets between which times the samples are.
    pub fn set_sample_times(&mut self, times: SampleTimes) {
        self.set_numbers(Feature::SAMPLE_TIME, &[times.first.0, times.last.0]);
    }

    /// Sets the nanoseconds of a tick of the samples' clock.
    pub fn set_clock_resolution(&mut self, tick: Nanos) {
        self.set_numbers(Feature::CLOCKID, &[tick.0]);
    }

    /// Sets one moment on the samples' clock and on the wall's.
    pub fn set_clock_data(&mut self, data: ClockData) {
        const VERSION: u32 = 1;
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, self.order());
        writer.u32(VERSION);
        writer.u32(data.clockid);
        writer.u64(data.wall_clock);
        writer.nanos(data.clock);
        self.add(Feature::CLOCK_DATA, bytes);
    }

    /// Says that the samples have branch stacks. The section is empty.
    pub fn set_branch_stack(&mut self) {
        self.add(Feature::BRANCH_STACK, Vec::new());
    }

    /// Sets the command line of the recording.
    ///
    /// # Errors
    /// When it is too long.
    pub fn set_command_line(&mut self, words: &[impl AsRef<str>]) -> Result<(), WriteError> {
        self.encode(Feature::CMDLINE, |writer| {
            write_count(writer, words.len())?;
            words.iter().try_for_each(|word| write_string(writer, word.as_ref()))
        })
    }

    /// Sets the PMUs by the numbers in [`crate::perf::Attr::kind`].
    ///
    /// # Errors
    /// When a name is too long.
    pub fn set_pmus(&mut self, pmus: &[(u32, String)]) -> Result<(), WriteError> {
        self.encode(Feature::PMU_MAPPINGS, |writer| {
            write_count(writer, pmus.len())?;
            pmus.iter().try_for_each(|(number, name)| {
                writer.u32(*number);
                write_string(writer, name)
            })
        })
    }

    /// Sets the groups of events.
    ///
    /// # Errors
    /// When a name is too long.
    pub fn set_groups(&mut self, groups: &[GroupDescription]) -> Result<(), WriteError> {
        self.encode(Feature::GROUP_DESC, |writer| {
            write_count(writer, groups.len())?;
            groups.iter().try_for_each(|group| {
                write_string(writer, &group.name)?;
                writer.u32(group.leader);
                writer.u32(group.members);
                Ok(())
            })
        })
    }

    /// Sets how many samples are missing, by the cause.
    ///
    /// # Errors
    /// When a cause's name is too long.
    pub fn set_losses<'a>(
        &mut self,
        losses: impl ExactSizeIterator<Item = (&'a str, u64)>,
    ) -> Result<(), WriteError> {
        self.encode(Feature::COLLECTOR_LOSSES, |writer| {
            write_count(writer, losses.len())?;
            for (cause, count) in losses {
                write_string(writer, cause)?;
                writer.u64(count);
            }
            Ok(())
        })
    }

    /// Sets when the recording began and ended, on the samples' clock.
    pub fn set_span(&mut self, (begin, end): (Nanos, Nanos)) {
        self.set_numbers(Feature::COLLECTOR_SPAN, &[begin.0, end.0]);
    }

    /// Sets the nodes of memory and their CPUs.
    ///
    /// # Errors
    /// When a list of CPUs is too long.
    pub fn set_numa_nodes(&mut self, nodes: &[NumaNode]) -> Result<(), WriteError> {
        self.encode(Feature::NUMA_TOPOLOGY, |writer| {
            write_count(writer, nodes.len())?;
            nodes.iter().try_for_each(|node| {
                writer.u32(node.node);
                writer.u64(node.total);
                writer.u64(node.free);
                write_string(writer, &node.cpus)
            })
        })
    }

    /// Sets the caches.
    ///
    /// # Errors
    /// When a text is too long.
    pub fn set_caches(&mut self, caches: &[CacheLevel]) -> Result<(), WriteError> {
        const VERSION: u32 = 1;
        self.encode(Feature::CACHE, |writer| {
            writer.u32(VERSION);
            write_count(writer, caches.len())?;
            caches.iter().try_for_each(|cache| {
                for number in [cache.level, cache.line_size, cache.sets, cache.ways] {
                    writer.u32(number);
                }
                [&cache.kind, &cache.size, &cache.cpus].iter().try_for_each(|text| write_string(writer, text))
            })
        })
    }

    /// Sets the build ids of the files in which samples are.
    ///
    /// # Errors
    /// When a path is too long.
    pub fn set_build_ids(&mut self, files: &[BuildIdOfFile]) -> Result<(), WriteError> {
        let (order, mut bytes) = (self.order(), Vec::new());
        for file in files {
            let path = Text::new(file.path.as_bytes());
            let record = HeaderBuildId { pid: file.pid, build_id: file.build_id, path };
            let misc = file.misc | HeaderBuildId::HAS_SIZE;
            let record = UserRecord::HeaderBuildId(record);
            let start = bytes.len();
            ParsedUser { misc, record, rest: Bytes::default() }.write(order, &mut bytes)?;
            // As perf has it in a file.
            bytes[start..start + size_of::<u32>()].fill(0);
        }
        self.add(Feature::BUILD_ID, bytes);
        Ok(())
    }
}
