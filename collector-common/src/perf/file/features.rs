//! What a `perf.data` says of the machine and of the recording: the feature sections, `HEADER_*` of
//! `tools/perf/util/header.h`.
//!
//! A section is decoded when it is asked for; one that does not hold what its name says is as good as absent.

use std::fmt;

use super::section::{list, string};
use super::topology::{
    CacheLevel, CpuTopology, MemoryTopology, NumaNode, cache_level, cpu_topology, memory_topology, numa_node,
};
use super::{HeaderBuildId, UserRecord};
use crate::ids::{BuildId, FileOffset, Nanos, Pid};
use crate::perf::fields::Fields;
use crate::perf::{Attr, ByteOrder, Bytes, Misc, RawRecord, RecordKind, records};

/// A feature: the number of its bit in the file's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Feature(pub u32);

/// Bits for features in the header (`HEADER_FEAT_BITS`).
pub(super) const FEATURE_BITS: u32 = 256;

#[expect(missing_docs, reason = "the names are perf's; `Features` says what is in them")]
impl Feature {
    pub const TRACING_DATA: Self = Self(1);
    pub const BUILD_ID: Self = Self(2);
    pub const HOSTNAME: Self = Self(3);
    pub const OSRELEASE: Self = Self(4);
    pub const VERSION: Self = Self(5);
    pub const ARCH: Self = Self(6);
    pub const NRCPUS: Self = Self(7);
    pub const CPUDESC: Self = Self(8);
    pub const CPUID: Self = Self(9);
    pub const TOTAL_MEM: Self = Self(10);
    pub const CMDLINE: Self = Self(11);
    pub const EVENT_DESC: Self = Self(12);
    pub const CPU_TOPOLOGY: Self = Self(13);
    pub const NUMA_TOPOLOGY: Self = Self(14);
    pub const BRANCH_STACK: Self = Self(15);
    pub const PMU_MAPPINGS: Self = Self(16);
    pub const GROUP_DESC: Self = Self(17);
    pub const AUXTRACE: Self = Self(18);
    pub const STAT: Self = Self(19);
    pub const CACHE: Self = Self(20);
    pub const SAMPLE_TIME: Self = Self(21);
    pub const MEM_TOPOLOGY: Self = Self(22);
    pub const CLOCKID: Self = Self(23);
    pub const DIR_FORMAT: Self = Self(24);
    pub const BPF_PROG_INFO: Self = Self(25);
    pub const BPF_BTF: Self = Self(26);
    pub const COMPRESSED: Self = Self(27);
    pub const CPU_PMU_CAPS: Self = Self(28);
    pub const CLOCK_DATA: Self = Self(29);
    pub const HYBRID_TOPOLOGY: Self = Self(30);
    pub const PMU_CAPS: Self = Self(31);
    /// Not `perf`'s, which skips it: why samples are missing in a file of ours.
    pub const COLLECTOR_LOSSES: Self = Self(192);
    /// Not `perf`'s either: when a recording of ours began and ended.
    pub const COLLECTOR_SPAN: Self = Self(193);

    /// What it is called, if it is known.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::COLLECTOR_LOSSES => Some("COLLECTOR_LOSSES"),
            Self::COLLECTOR_SPAN => Some("COLLECTOR_SPAN"),
            Self(number) => NAMES.get(usize::try_from(number.checked_sub(1)?).ok()?).copied(),
        }
    }
}

/// `perf`'s names of its features, from [`Feature::TRACING_DATA`] on.
const NAMES: [&str; 31] = [
    "TRACING_DATA",
    "BUILD_ID",
    "HOSTNAME",
    "OSRELEASE",
    "VERSION",
    "ARCH",
    "NRCPUS",
    "CPUDESC",
    "CPUID",
    "TOTAL_MEM",
    "CMDLINE",
    "EVENT_DESC",
    "CPU_TOPOLOGY",
    "NUMA_TOPOLOGY",
    "BRANCH_STACK",
    "PMU_MAPPINGS",
    "GROUP_DESC",
    "AUXTRACE",
    "STAT",
    "CACHE",
    "SAMPLE_TIME",
    "MEM_TOPOLOGY",
    "CLOCKID",
    "DIR_FORMAT",
    "BPF_PROG_INFO",
    "BPF_BTF",
    "COMPRESSED",
    "CPU_PMU_CAPS",
    "CLOCK_DATA",
    "HYBRID_TOPOLOGY",
    "PMU_CAPS",
];

/// By its name, or by its number.
impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// An event as the file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDescription {
    /// Its attributes.
    pub attr: Attr,
    /// What `perf` calls it.
    pub name: String,
    /// Its ids.
    pub ids: Vec<u64>,
}

/// The build id of a file that was in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildIdOfFile {
    /// Its [`Misc::cpu_mode`] says where it is used.
    pub misc: Misc,
    /// The guest's process; `u32::MAX` for the host.
    pub pid: Pid,
    /// The build id; `None` if it is empty.
    pub build_id: Option<BuildId>,
    /// The file, or a name such as `[kernel.kallsyms]`.
    pub path: String,
}

/// A group of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    /// Its name; may be empty.
    pub name: String,
    /// The place of its leader among the events.
    pub leader: u32,
    /// How many events it has.
    pub members: u32,
}

/// Between which times the samples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleTimes {
    /// The first one's.
    pub first: Nanos,
    /// The last one's.
    pub last: Nanos,
}

/// One moment on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockData {
    /// The clock of the samples, `CLOCK_*`.
    pub clockid: u32,
    /// Nanoseconds since 1970.
    pub wall_clock: u64,
    /// What the samples' clock showed then.
    pub clock: Nanos,
}

/// How records are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Version of the section.
    pub version: u32,
    /// 1 is zstd.
    pub kind: u32,
    /// The strength.
    pub level: u32,
    /// How many times smaller it became.
    pub ratio: u32,
    /// Bytes of the ring.
    pub ring_size: u32,
}

/// What a PMU can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PmuCaps {
    /// The PMU.
    pub name: String,
    /// Names and values.
    pub capabilities: Vec<(String, String)>,
}

/// Where in the file a record with data of an AUX area is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuxIndexEntry {
    /// Where it begins.
    pub offset: FileOffset,
    /// Bytes of the record, without the data behind it.
    pub size: u64,
}

/// The feature sections.
#[derive(Clone, Debug)]
pub struct Features {
    order: ByteOrder,
    sections: Vec<(Feature, Vec<u8>)>,
}

impl Features {
    pub(super) fn new(order: ByteOrder) -> Self {
        Self { order, sections: Vec::new() }
    }

    pub(super) fn order(&self) -> ByteOrder {
        self.order
    }

    pub(super) fn remove_section(&mut self, feature: Feature) {
        self.sections.retain(|(known, _)| *known != feature);
    }

    /// One that comes again replaces the one before.
    pub(super) fn add(&mut self, feature: Feature, bytes: Vec<u8>) {
        self.remove_section(feature);
        self.sections.push((feature, bytes));
    }

    /// All sections as they are, also those that are not known here.
    pub fn sections(&self) -> impl Iterator<Item = (Feature, &[u8])> {
        self.sections.iter().map(|(feature, bytes)| (*feature, bytes.as_slice()))
    }

    /// A section as it is.
    pub fn section(&self, feature: Feature) -> Option<&[u8]> {
        self.sections().find(|(known, _)| *known == feature).map(|(_, bytes)| bytes)
    }

    pub(super) fn decode<T>(
        &self,
        feature: Feature,
        read: impl FnOnce(&mut Fields<'_>) -> Option<T>,
    ) -> Option<T> {
        read(&mut Fields::new(Bytes::from(self.section(feature)?), self.order))
    }

    /// The section that is only text: [`Feature::HOSTNAME`], [`Feature::OSRELEASE`], [`Feature::VERSION`] (of `perf`),
    /// [`Feature::ARCH`], [`Feature::CPUDESC`] or [`Feature::CPUID`].
    pub fn text(&self, feature: Feature) -> Option<String> {
        self.decode(feature, string)
    }

    /// How many CPUs could be there, and how many were online.
    pub fn cpus(&self) -> Option<(u32, u32)> {
        self.decode(Feature::NRCPUS, |fields| Some((fields.u32()?, fields.u32()?)))
    }

    /// Kilobytes of memory.
    pub fn total_memory(&self) -> Option<u64> {
        self.decode(Feature::TOTAL_MEM, number)
    }

    /// The command line of `perf record`.
    pub fn command_line(&self) -> Option<Vec<String>> {
        self.decode(Feature::CMDLINE, |fields| {
            let count = fields.u32()?;
            list(fields, u64::from(count), string)
        })
    }

    /// The events with their names.
    pub fn events(&self) -> Option<Vec<EventDescription>> {
        self.decode(Feature::EVENT_DESC, |fields| {
            let (count, attr_size) = (fields.u32()?, fields.u32()?);
            list(fields, u64::from(count), |fields| {
                let attr = Attr::parse(fields.bytes_of(u64::from(attr_size))?, fields.order).ok()?;
                let ids = fields.u32()?;
                let name = string(fields)?;
                let ids = fields.words(u64::from(ids))?.iter().collect();
                Some(EventDescription { attr, name, ids })
            })
        })
    }

    /// Build ids of the files in which samples are.
    pub fn build_ids(&self) -> Option<Vec<BuildIdOfFile>> {
        let records = records(self.section(Feature::BUILD_ID)?, self.order);
        Some(records.map_while(|record| build_id_of_file(&record.ok()?, self.order)).collect())
    }

    /// The PMUs by the numbers in [`Attr::kind`].
    pub fn pmus(&self) -> Option<Vec<(u32, String)>> {
        self.decode(Feature::PMU_MAPPINGS, |fields| {
            let count = fields.u32()?;
            list(fields, u64::from(count), |fields| Some((fields.u32()?, string(fields)?)))
        })
    }

    /// The groups of events.
    pub fn groups(&self) -> Option<Vec<GroupDescription>> {
        self.decode(Feature::GROUP_DESC, |fields| {
            let count = fields.u32()?;
            list(fields, u64::from(count), |fields| {
                Some(GroupDescription {
                    name: string(fields)?,
                    leader: fields.u32()?,
                    members: fields.u32()?,
                })
            })
        })
    }

    /// Cores and threads.
    pub fn cpu_topology(&self) -> Option<CpuTopology> {
        let (cpus, _) = self.cpus()?;
        self.decode(Feature::CPU_TOPOLOGY, |fields| cpu_topology(fields, cpus))
    }

    /// Nodes of memory and their CPUs.
    pub fn numa_nodes(&self) -> Option<Vec<NumaNode>> {
        self.decode(Feature::NUMA_TOPOLOGY, |fields| {
            let count = fields.u32()?;
            list(fields, u64::from(count), numa_node)
        })
    }

    /// The caches.
    pub fn caches(&self) -> Option<Vec<CacheLevel>> {
        self.decode(Feature::CACHE, |fields| {
            let (_version, count) = (fields.u32()?, fields.u32()?);
            list(fields, u64::from(count), cache_level)
        })
    }

    /// Which blocks of memory belong to which node.
    pub fn memory_topology(&self) -> Option<MemoryTopology> {
        self.decode(Feature::MEM_TOPOLOGY, memory_topology)
    }

    /// Between which times the samples are.
    pub fn sample_times(&self) -> Option<SampleTimes> {
        self.decode(Feature::SAMPLE_TIME, |fields| {
            Some(SampleTimes { first: fields.nanos()?, last: fields.nanos()? })
        })
    }

    /// Nanoseconds of a tick of the samples' clock.
    pub fn clock_resolution(&self) -> Option<Nanos> {
        self.decode(Feature::CLOCKID, number).map(Nanos)
    }

    /// One moment on the samples' clock and on the wall's.
    pub fn clock_data(&self) -> Option<ClockData> {
        self.decode(Feature::CLOCK_DATA, |fields| {
            let _version = fields.u32()?;
            Some(ClockData { clockid: fields.u32()?, wall_clock: fields.u64()?, clock: fields.nanos()? })
        })
    }

    /// How records are packed.
    pub fn compression(&self) -> Option<Compression> {
        self.decode(Feature::COMPRESSED, |fields| {
            Some(Compression {
                version: fields.u32()?,
                kind: fields.u32()?,
                level: fields.u32()?,
                ratio: fields.u32()?,
                ring_size: fields.u32()?,
            })
        })
    }

    /// What the PMUs can do; the one of the CPUs may be in a section of its own.
    pub fn pmu_caps(&self) -> Vec<PmuCaps> {
        let of_cpu = self.decode(Feature::CPU_PMU_CAPS, |fields| {
            Some(vec![PmuCaps { name: "cpu".into(), capabilities: capabilities(fields)? }])
        });
        let of_others = self.decode(Feature::PMU_CAPS, |fields| {
            let count = fields.u32()?;
            list(fields, u64::from(count), |fields| {
                let capabilities = capabilities(fields)?;
                Some(PmuCaps { name: string(fields)?, capabilities })
            })
        });
        [of_cpu, of_others].into_iter().flatten().flatten().collect()
    }

    /// Samples that are missing, by the cause.
    pub fn losses(&self) -> Option<Vec<(String, u64)>> {
        self.decode(Feature::COLLECTOR_LOSSES, |fields| {
            let count = fields.u32()?;
            list(fields, u64::from(count), |fields| Some((string(fields)?, fields.u64()?)))
        })
    }

    /// When the recording began and ended, on the samples' clock.
    pub fn span(&self) -> Option<(Nanos, Nanos)> {
        self.decode(Feature::COLLECTOR_SPAN, |fields| Some((fields.nanos()?, fields.nanos()?)))
    }

    /// Whether it has what `perf stat` counted. The section is empty.
    pub fn is_stat(&self) -> bool {
        self.section(Feature::STAT).is_some()
    }

    /// Whether the samples have branch stacks. The section is empty.
    pub fn has_branch_stacks(&self) -> bool {
        self.section(Feature::BRANCH_STACK).is_some()
    }

    /// Where the data of AUX areas is.
    pub fn aux_index(&self) -> Option<Vec<AuxIndexEntry>> {
        self.decode(Feature::AUXTRACE, |fields| {
            let count = fields.u64()?;
            list(fields, count, |fields| {
                Some(AuxIndexEntry { offset: fields.file_offset()?, size: fields.u64()? })
            })
        })
    }

    /// The version of the folder that the file is of, if there are several files.
    pub fn folder_version(&self) -> Option<u64> {
        self.decode(Feature::DIR_FORMAT, number)
    }

    /// The PMUs of a machine with several kinds of CPUs, each with its CPUs as a list such as `0-7`.
    pub fn hybrid_topology(&self) -> Option<Vec<(String, String)>> {
        self.decode(Feature::HYBRID_TOPOLOGY, |fields| {
            let count = fields.u32()?;
            list(fields, u64::from(count), |fields| Some((string(fields)?, string(fields)?)))
        })
    }
}

fn number(fields: &mut Fields<'_>) -> Option<u64> {
    fields.u64()
}

fn capabilities(fields: &mut Fields<'_>) -> Option<Vec<(String, String)>> {
    let count = fields.u32()?;
    list(fields, u64::from(count), |fields| Some((string(fields)?, string(fields)?)))
}

/// Each is a record, of any type.
fn build_id_of_file(raw: &RawRecord<'_>, order: ByteOrder) -> Option<BuildIdOfFile> {
    let record = RawRecord { kind: RecordKind::HEADER_BUILD_ID, ..*raw };
    let UserRecord::HeaderBuildId(HeaderBuildId { pid, build_id, path }) = record.parse_user(order).record
    else {
        return None;
    };
    Some(BuildIdOfFile { misc: raw.misc, pid, build_id, path: path.to_string_lossy().into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_called_as_perf_calls_them() {
        let named = [
            (Feature::TRACING_DATA, "TRACING_DATA"),
            (Feature::EVENT_DESC, "EVENT_DESC"),
            (Feature::CLOCK_DATA, "CLOCK_DATA"),
            (Feature::PMU_CAPS, "PMU_CAPS"),
            (Feature::COLLECTOR_SPAN, "COLLECTOR_SPAN"),
            (Feature(0), "0"),
            (Feature(32), "32"),
        ];
        for (feature, name) in named {
            assert_eq!(feature.to_string(), name);
        }
    }
}
