//! Differential test of records of all types against the crates in `peers`: records that our writer makes, of every type and with every
//! part of a sample, in both byte orders, are read by us and by the peers, and every field that a peer knows is the same. What may
//! differ is in `peer_faults`, and nowhere else.

use std::collections::BTreeMap;

use collector_common::perf::{
    BranchSampleType, ByteOrder, OwnedRecord, ParseConfig, RecordKind, SampleType, records,
};
use proptest::prelude::*;

use crate::layout::{self, KINDS, SAMPLE_TYPE_BITS};
use crate::peer_faults::{self, Case};
use crate::peers::{self, Peer};

const PEERS: [Peer; 2] = [Peer::Reader, Peer::Data];

/// A record as our writer makes it.
fn written(kind: RecordKind, config: &ParseConfig, noise: &[u64]) -> OwnedRecord {
    let laid_out = layout::record(kind, config, noise);
    let mut bytes = Vec::new();
    laid_out.as_raw().parse(config).unwrap().write(config, &mut bytes).unwrap();
    records(&bytes, config.byte_order).next().unwrap().unwrap().into()
}

/// How often each field was compared with a peer, by type of record.
#[derive(Default)]
struct Compared(BTreeMap<(Peer, u32, &'static str), u64>);

impl Compared {
    /// Compares what each peer reads of a record with what we read.
    fn compare(&mut self, kind: RecordKind, config: &ParseConfig, noise: &[u64]) {
        let record = written(kind, config, noise);
        let parsed = record.as_raw().parse(config).unwrap();
        let ours = peers::ours(&parsed, &record, config);
        let case = Case { parsed: &parsed, record: &record, config };
        for peer in PEERS {
            let Some(spoilt) = peer_faults::spoilt(peer, &case) else { continue };
            let theirs = peers::theirs(peer, &record, config);
            let theirs = theirs.unwrap_or_else(|| panic!("{peer:?} does not read {parsed:?} of {config:?}"));
            for (name, value) in theirs.0.iter().filter(|(name, _)| !spoilt.contains(*name)) {
                let own = ours.0.get(name);
                assert_eq!(own, Some(value), "{peer:?}, {name}: {parsed:?} of {config:?}");
                if value != "None" {
                    *self.0.entry((peer, kind.0, name)).or_default() += 1;
                }
            }
        }
    }

    /// Fields of a type of record that were compared with a peer, beside those that all records have.
    fn own_fields(&self, peer: Peer, kind: RecordKind) -> Vec<&'static str> {
        let of = self.0.keys().filter(|(of, of_kind, _)| (*of, *of_kind) == (peer, kind.0));
        let is_own = |name: &&str| !name.starts_with("sample_id.") && !["misc", "cpu_mode"].contains(name);
        of.map(|(_, _, name)| *name).filter(is_own).collect()
    }
}

/// What both peers tell of each type, from their interfaces: so much is compared at least, or the test says nothing.
fn expected(peer: Peer, kind: RecordKind) -> &'static [&'static str] {
    use RecordKind as Kind;

    let is_reader = peer == Peer::Reader;
    match kind {
        Kind::MMAP if is_reader => &["addr", "filename", "is_executable", "len", "pgoff", "pid", "tid"],
        Kind::MMAP => &["addr", "filename", "len", "pgoff", "pid", "tid"],
        Kind::MMAP2 => &["addr", "file", "filename", "flags", "len", "pgoff", "pid", "prot", "tid"],
        Kind::COMM if is_reader => &["comm", "is_exec", "pid", "tid"],
        Kind::COMM => &["comm", "pid", "tid"],
        Kind::LOST => &["id", "lost"],
        Kind::EXIT | Kind::FORK => &["pid", "ppid", "ptid", "tid", "time"],
        Kind::THROTTLE | Kind::UNTHROTTLE if is_reader => &["id", "time"],
        Kind::THROTTLE | Kind::UNTHROTTLE => &["id", "stream_id", "time"],
        Kind::SAMPLE if is_reader => &[
            "addr",
            "code_page_size",
            "data_page_size",
            "dyn_size",
            "ip",
            "ips",
            "period",
            "phys_addr",
            "raw",
            "regs_intr",
            "regs_user",
            "stack",
        ],
        Kind::SAMPLE => &[
            "abort_code",
            "addr",
            "aux",
            "branch flags",
            "branches",
            "cgroup",
            "code_page_size",
            "copied stack",
            "data_page_size",
            "hw_idx",
            "ip",
            "ips",
            "mem_blk",
            "mem_dtlb",
            "mem_hops",
            "mem_lock",
            "mem_lvl",
            "mem_lvl_num",
            "mem_op",
            "mem_remote",
            "mem_snoop",
            "period",
            "phys_addr",
            "raw",
            "regs_intr",
            "regs_user",
            "time_enabled",
            "time_running",
            "transaction",
            "values",
            "weight",
        ],
        Kind::SWITCH if is_reader => &["is_out", "is_preempted"],
        Kind::SWITCH => &[],
        Kind::SWITCH_CPU_WIDE if is_reader => &["is_out", "is_preempted", "next_prev"],
        Kind::SWITCH_CPU_WIDE => &["is_out", "next_prev"],
        // It passes on the others as they are.
        _ if is_reader => &["body"],
        Kind::READ => &["pid", "tid", "time_enabled", "time_running", "values"],
        Kind::AUX => &["aux_offset", "aux_size", "flags"],
        Kind::ITRACE_START => &["pid", "tid"],
        Kind::LOST_SAMPLES => &["lost"],
        Kind::NAMESPACES => &["namespaces", "pid", "tid"],
        Kind::KSYMBOL => &["addr", "flags", "ksym_type", "len", "name"],
        Kind::BPF_EVENT => &["flags", "id", "tag", "type"],
        Kind::CGROUP => &["id", "path"],
        Kind::TEXT_POKE => &["addr", "new", "old"],
        Kind::AUX_OUTPUT_HW_ID => &["hw_id"],
        _ => &["body without sample_id"],
    }
}

/// Every type of record, with each part of a sample alone and beside each other one, in both byte orders.
#[test]
fn every_type_with_each_part_and_each_other() {
    let noise: Vec<u64> =
        (0..29).map(|step| 0x0123_4567_89ab_cdef_u64.rotate_left(step * 5) ^ u64::from(step)).collect();
    let mut compared = Compared::default();
    for one in 0..SAMPLE_TYPE_BITS {
        for two in one..SAMPLE_TYPE_BITS {
            for (byte_order, from) in [(ByteOrder::Little, one), (ByteOrder::Big, two)] {
                let sample_type = layout::without_two_weights(SampleType(1 << one | 1 << two));
                let is_odd = two % 2 == 1;
                let config = ParseConfig {
                    sample_type,
                    read_format: collector_common::perf::ReadFormat((from % 32).into()),
                    branch_sample_type: if is_odd {
                        BranchSampleType::HW_INDEX
                    } else {
                        BranchSampleType::default()
                    },
                    sample_regs_user: 0xf0,
                    sample_regs_intr: 0x1f,
                    sample_id_all: one % 3 != 1,
                    build_id: is_odd,
                    byte_order,
                };
                // From another place each time, so that lists have other lengths and registers other ABIs.
                let noise = [&noise[from as usize..], &noise[..from as usize]].concat();
                for kind in KINDS {
                    compared.compare(RecordKind(kind), &config, &noise);
                }
            }
        }
    }
    for (peer, kind) in PEERS.into_iter().flat_map(|peer| KINDS.map(move |kind| (peer, RecordKind(kind)))) {
        assert_eq!(compared.own_fields(peer, kind), expected(peer, kind), "{peer:?}, {kind:?}");
    }
}

/// Without the parts that a peer reads wrongly whatever is in them.
fn without_faults(peer: Peer, config: ParseConfig) -> ParseConfig {
    let parts = match peer {
        Peer::Reader => SampleType::READ | SampleType::WEIGHT_STRUCT | SampleType::CGROUP | SampleType::AUX,
        Peer::Data => SampleType::WEIGHT_STRUCT,
    };
    ParseConfig {
        sample_type: config.sample_type.without(parts),
        branch_sample_type: BranchSampleType::default(),
        ..config
    }
}

proptest! {
    #[test]
    fn any_record_of_any_event(
        kind in KINDS,
        config in layout::configs(),
        noise in layout::noise(),
    ) {
        Compared::default().compare(RecordKind(kind), &config, &noise);
    }

    #[test]
    fn any_sample_of_parts_that_are_read_well(
        peer in prop_oneof![Just(Peer::Reader), Just(Peer::Data)],
        config in layout::configs(),
        noise in layout::noise(),
    ) {
        Compared::default().compare(RecordKind::SAMPLE, &without_faults(peer, config), &noise);
    }
}
