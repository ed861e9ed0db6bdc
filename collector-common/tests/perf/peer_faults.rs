//! Known faults of the crates in `peers`: what they read otherwise than the kernel writes it. Nothing else of what they read
//! may differ from what we read (`peer_records`). Each has a record that shows it, made by hand, and says by what it is the peer's
//! fault: by the text of the kernel's header, which is looked up where the header is installed (Debian's `linux-libc-dev`), or
//! by the kernel's code where the header does not say it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;

use collector_common::perf::{
    BranchSampleType, ByteOrder, MappedFile, Misc, OwnedRecord, ParseConfig, Parsed, ReadFormat, Record,
    RecordKind, Registers, RegistersAbi, Sample, SampleType,
};

use crate::peers::{self, Peer};

/// A record, as an event has it and as we read it.
pub(crate) struct Case<'a> {
    pub(crate) parsed: &'a Parsed<'a>,
    pub(crate) record: &'a OwnedRecord,
    pub(crate) config: &'a ParseConfig,
}

impl<'a> Case<'a> {
    fn sample(&self) -> Option<&'a Sample<'a>> {
        match &self.parsed.record {
            Record::Sample(sample) => Some(sample),
            _ => None,
        }
    }

    /// Whether it is a sample with all of these parts.
    fn has(&self, parts: SampleType) -> bool {
        self.sample().is_some() && self.config.sample_type.contains(parts)
    }

    fn branches_are(&self, is: impl Fn(usize) -> bool, with: BranchSampleType) -> bool {
        let branches = self.sample().and_then(|sample| sample.branch_stack);
        branches.is_some_and(|branches| is(branches.len())) && self.config.branch_sample_type.contains(with)
    }
}

/// By what it is a fault of the peer.
enum Because {
    /// The header says it, in these words.
    Header(&'static str),
    /// The header of Linux 6.8 and later says it, in these words; older ones do not have the bit, which is named before them.
    NewerHeader(&'static str, &'static str),
    /// The header does not say it, or says otherwise than the kernel does in this function.
    Kernel(&'static str),
}

/// What comes of it.
#[derive(Clone, Copy)]
enum Spoils {
    /// All that is behind it, or the record is not read.
    All,
    /// Some fields.
    Fields(&'static [&'static str]),
}

/// A record that shows it, and a field of it as it is by the header.
struct Example {
    config: ParseConfig,
    record: OwnedRecord,
    field: &'static str,
    value: String,
}

/// A fault.
struct Fault {
    what: &'static str,
    peers: &'static [Peer],
    because: Because,
    spoils: Spoils,
    applies: fn(&Case<'_>) -> bool,
    example: fn() -> Example,
}

const BOTH: &[Peer] = &[Peer::Reader, Peer::Data];

const FAULTS: [Fault; 14] = [
    Fault {
        what: "counters of samples: a group's are read as if there was one, one as a group",
        peers: &[Peer::Reader],
        because: Because::Header("} && !PERF_FORMAT_GROUP { u64 nr;"),
        spoils: Spoils::All,
        applies: |case| case.has(SampleType::READ),
        example: || sample(with(SampleType::READ), &[7, MARK]),
    },
    Fault {
        what: "counters of a group in a READ are an error",
        peers: &[Peer::Data],
        because: Because::Header(
            "struct read_format values; struct sample_id sample_id; }; PERF_RECORD_READ = 8,",
        ),
        spoils: Spoils::All,
        applies: |case| {
            matches!(case.parsed.record, Record::Read(_))
                && case.config.read_format.contains(ReadFormat::GROUP)
        },
        example: || {
            let config = ParseConfig { read_format: ReadFormat::GROUP, ..ParseConfig::default() };
            let record = words(RecordKind::READ, &[0x0000_0005_0000_0004, 1, 77]);
            shown(config, record, "values", vec![(77, None::<u64>, None::<u64>)])
        },
    },
    Fault {
        what: "registers that have no ABI, and are not there, are read all the same",
        peers: &[Peer::Data],
        because: Because::Kernel("perf_output_sample: `if (abi)`"),
        spoils: Spoils::All,
        applies: |case| {
            let none = |registers: Option<Registers<'_>>, mask: u64| {
                mask != 0 && registers.is_some_and(|registers| registers.abi == RegistersAbi::NONE)
            };
            case.sample().is_some_and(|sample| {
                none(sample.user_registers, case.config.sample_regs_user)
                    || none(sample.interrupted_registers, case.config.sample_regs_intr)
            })
        },
        example: || sample(ParseConfig { sample_regs_user: 1, ..with(SampleType::REGS_USER) }, &[0, MARK]),
    },
    Fault {
        what: "WEIGHT_STRUCT is not read over",
        peers: BOTH,
        because: Because::Header("u16 var3_w; } && PERF_SAMPLE_WEIGHT_STRUCT"),
        spoils: Spoils::All,
        applies: |case| case.has(SampleType::WEIGHT_STRUCT),
        example: || sample(with(SampleType::WEIGHT_STRUCT), &[1, MARK]),
    },
    Fault {
        what: "CGROUP is not read over",
        peers: &[Peer::Reader],
        // Its comment leaves out this part alone.
        because: Because::Kernel("perf_output_sample: PERF_SAMPLE_CGROUP before the sizes of pages"),
        spoils: Spoils::All,
        applies: |case| case.has(SampleType::CGROUP),
        example: || sample(with(SampleType::CGROUP), &[1, MARK]),
    },
    Fault {
        what: "AUX is taken to be before the sizes of pages",
        peers: &[Peer::Reader],
        // Its comment has it there. `perf` reads it as the kernel writes it: `recorded::perf_reads_what_the_kernel_does_not_make_here`.
        because: Because::Kernel("perf_output_sample: PERF_SAMPLE_AUX at the end"),
        spoils: Spoils::All,
        applies: |case| {
            case.has(SampleType::AUX | SampleType::DATA_PAGE_SIZE)
                || case.has(SampleType::AUX | SampleType::CODE_PAGE_SIZE)
        },
        example: || sample(with(SampleType::AUX), &[MARK, 8, 2]),
    },
    Fault {
        what: "the counts of branches are not read over",
        peers: BOTH,
        because: Because::NewerHeader(
            "PERF_SAMPLE_BRANCH_COUNTERS",
            "{ u64 counters; } cntr[nr] && PERF_SAMPLE_BRANCH_COUNTERS",
        ),
        spoils: Spoils::All,
        applies: |case| case.branches_are(|len| len > 0, BranchSampleType::COUNTERS),
        example: || sample(with_branches(BranchSampleType::COUNTERS), &[1, 7, 8, 9, 10, MARK]),
    },
    Fault {
        what: "a branch stack without branches must have an index",
        peers: BOTH,
        because: Because::Kernel("perf_output_sample: `nr` alone where an event has no branch stack"),
        spoils: Spoils::All,
        applies: |case| {
            let has_index =
                |sample: &Sample<'_>| sample.branch_stack.is_some_and(|stack| stack.hw_index.is_some());
            case.branches_are(|len| len == 0, BranchSampleType::HW_INDEX)
                && !case.sample().is_some_and(has_index)
        },
        example: || sample(with_branches(BranchSampleType::HW_INDEX), &[0, MARK]),
    },
    Fault {
        what: "the bits of branches of big-endian machines are taken from the wrong end",
        peers: &[Peer::Data],
        // Bit-fields begin at the end that the macros of the header's other bit-fields name.
        because: Because::Header(
            "__u64 mispred:1, target mispredicted predicted:1,/* target predicted in_tx:1,",
        ),
        spoils: Spoils::Fields(&["branch flags"]),
        applies: |case| {
            case.config.byte_order == ByteOrder::Big
                && case.branches_are(|len| len > 0, BranchSampleType::default())
        },
        example: || {
            let config =
                ParseConfig { byte_order: ByteOrder::Big, ..with_branches(BranchSampleType::default()) };
            // The first bit-field of one bit alone.
            let first = ([true, false, false, false], 0_u16, 0_u8);
            Example {
                value: format!("{:?}", [first]),
                field: "branch flags",
                ..sample(config, &[1, 7, 8, 1 << 63, MARK])
            }
        },
    },
    Fault {
        what: "a list without entries is an error at a record's end",
        peers: &[Peer::Data],
        because: Because::Header("{ u64 nr, u64 ips[nr]; } && PERF_SAMPLE_CALLCHAIN"),
        spoils: Spoils::All,
        applies: ends_in_nothing,
        example: || {
            let config = ParseConfig { sample_type: SampleType::CALLCHAIN, ..ParseConfig::default() };
            shown(config, words(RecordKind::SAMPLE, &[0]), "ips", Some(Vec::<u64>::new()))
        },
    },
    Fault {
        what: "the sample id of an MMAP is read as part of the path",
        peers: &[Peer::Data],
        because: Because::Header("char filename[]; struct sample_id sample_id; }; PERF_RECORD_MMAP = 1,"),
        spoils: Spoils::Fields(&[
            "filename",
            "sample_id.pid",
            "sample_id.tid",
            "sample_id.time",
            "sample_id.id or identifier",
            "sample_id.stream_id",
            "sample_id.cpu",
        ]),
        applies: |case| matches!(case.parsed.record, Record::Mmap(_)) && case.config.sample_id_size() > 0,
        example: || {
            let body = [&[0; 32][..], b"/a\0\0\0\0\0\0aaaaaaaa"].concat();
            shown(timed(), OwnedRecord { kind: RecordKind::MMAP, misc: Misc(2), body }, "filename", b"/a")
        },
    },
    Fault {
        what: "the sample id of a COMM without a NUL is read as part of the name",
        peers: &[Peer::Reader],
        because: Because::Header("char comm[]; struct sample_id sample_id; }; PERF_RECORD_COMM = 3,"),
        spoils: Spoils::Fields(&["comm"]),
        applies: |case| {
            let body = &case.record.body;
            let name = body.len().checked_sub(case.config.sample_id_size()).and_then(|end| body.get(8..end));
            let is_comm = matches!(case.parsed.record, Record::Comm(_));
            is_comm && case.config.sample_id_size() > 0 && name.is_some_and(|name| !name.contains(&0))
        },
        example: || {
            let body = [&[0; 8][..], b"12345678aaaaaaaa"].concat();
            shown(timed(), OwnedRecord { kind: RecordKind::COMM, misc: Misc(0), body }, "comm", b"12345678")
        },
    },
    Fault {
        what: "SWITCH is unknown",
        peers: &[Peer::Data],
        because: Because::Header("PERF_RECORD_SWITCH = 14,"),
        spoils: Spoils::All,
        applies: |case| matches!(case.parsed.record, Record::Switch(_)),
        example: || {
            let record = OwnedRecord { kind: RecordKind::SWITCH, misc: Misc::SWITCH_OUT, body: vec![0; 8] };
            shown(timed(), record, "is_out", true)
        },
    },
    Fault {
        what: "a stale MISC_MMAP_BUILD_ID makes an inode a build id",
        peers: BOTH,
        because: Because::Kernel(
            "perf_event_mmap_output: the bit stays in the header for the events after one with build_id",
        ),
        spoils: Spoils::All,
        applies: |case| {
            let Record::Mmap2(mmap) = &case.parsed.record else { return false };
            matches!(mmap.file, MappedFile::Inode { .. }) && case.parsed.misc.contains(Misc::MMAP_BUILD_ID)
        },
        example: || {
            let body = [&[0; 32][..], &[8, 0, 0, 0], &[1; 20], &[5, 0, 0, 0, 2, 0, 0, 0], b"/a\0\0\0\0\0\0"]
                .concat();
            let record = OwnedRecord { kind: RecordKind::MMAP2, misc: Misc::MMAP_BUILD_ID, body };
            let ones = u64::from_ne_bytes([1; 8]);
            shown(with(SampleType::TIME), record, "file", (8_u32, ones as u32, ones, ones))
        },
    },
];

/// What samples of [`with`] have behind the part that a peer reads wrongly.
const MARK: u64 = 4096;

/// Samples of a part, and the size of a page behind it.
fn with(part: SampleType) -> ParseConfig {
    ParseConfig { sample_type: part | SampleType::DATA_PAGE_SIZE, ..ParseConfig::default() }
}

fn with_branches(branch_sample_type: BranchSampleType) -> ParseConfig {
    ParseConfig { branch_sample_type, ..with(SampleType::BRANCH_STACK) }
}

/// Whose records that are no samples end in a time.
fn timed() -> ParseConfig {
    ParseConfig { sample_type: SampleType::TIME, sample_id_all: true, ..ParseConfig::default() }
}

/// A sample of numbers, of which the size of the page is [`MARK`].
fn sample(config: ParseConfig, numbers: &[u64]) -> Example {
    let mut record = words(RecordKind::SAMPLE, numbers);
    if config.byte_order != ByteOrder::NATIVE {
        record.body.chunks_mut(8).for_each(<[u8]>::reverse);
    }
    shown(config, record, "data_page_size", Some(MARK))
}

fn words(kind: RecordKind, numbers: &[u64]) -> OwnedRecord {
    let body = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    OwnedRecord { kind, misc: Misc(2), body }
}

fn shown(config: ParseConfig, record: OwnedRecord, field: &'static str, value: impl Debug) -> Example {
    Example { config, record, field, value: format!("{value:?}") }
}

/// Whether the last part of it is a list that has no entries. Of numbers in another byte order than the machine's the peer reads none.
fn ends_in_nothing(case: &Case<'_>) -> bool {
    if let Record::Namespaces(namespaces) = &case.parsed.record {
        return namespaces.words.is_empty() && case.config.byte_order == ByteOrder::NATIVE;
    }
    let Some(sample) = case.sample() else { return false };
    // From the last part that it has on.
    let numbers = SampleType::WEIGHT | SampleType::DATA_SRC | SampleType::TRANSACTION;
    let last_numbers =
        SampleType::PHYS_ADDR | SampleType::CGROUP | SampleType::DATA_PAGE_SIZE | SampleType::CODE_PAGE_SIZE;
    let asked = case.config.sample_type;
    let has_any = |parts: SampleType| asked.and(parts) != SampleType::default();
    let is_native = case.config.byte_order == ByteOrder::NATIVE;
    if let Some(aux) = sample.aux {
        return aux.is_empty();
    }
    if has_any(last_numbers) {
        return false;
    }
    if sample.interrupted_registers.is_some() {
        return case.config.sample_regs_intr == 0 && is_native;
    }
    if has_any(numbers) {
        return false;
    }
    if let Some(stack) = sample.user_stack {
        return stack.data.is_empty();
    }
    if sample.user_registers.is_some() {
        return case.config.sample_regs_user == 0 && is_native;
    }
    if let Some(branches) = sample.branch_stack {
        return branches.is_empty() && is_native;
    }
    if sample.raw.is_some() {
        return false;
    }
    if let Some(chain) = sample.callchain {
        return chain.words.is_empty() && is_native;
    }
    sample.read.is_some_and(|values| values.iter().next().is_none()) && is_native
}

/// The faults of a peer that a record may show: the fields that differ for them, or none where all may.
pub(crate) fn spoilt(peer: Peer, case: &Case<'_>) -> Option<BTreeSet<&'static str>> {
    let mut fields = BTreeSet::new();
    for fault in FAULTS.iter().filter(|fault| fault.peers.contains(&peer) && (fault.applies)(case)) {
        match fault.spoils {
            Spoils::All => return None,
            Spoils::Fields(spoilt) => fields.extend(spoilt),
        }
    }
    Some(fields)
}

/// A fault is in the list for a record that shows it, which we read as the header says.
#[test]
fn each_fault_is_one() {
    for Fault { what, peers, spoils, applies, example, .. } in &FAULTS {
        let Example { config, record, field, value } = example();
        let parsed = record.as_raw().parse(&config).unwrap();
        assert!(parsed.rest.is_empty(), "{what}: {parsed:?}");
        let ours = peers::ours(&parsed, &record, &config);
        assert_eq!(ours.0[field], value, "{what}");
        let case = Case { parsed: &parsed, record: &record, config: &config };
        assert!(applies(&case), "{what}: {parsed:?}");
        for &peer in *peers {
            let theirs = peers::theirs(peer, &record, &config);
            let differs = theirs.is_none_or(|theirs| theirs.0.get(field) != Some(&value));
            assert!(differs, "{what}: {peer:?} reads it well");
            if let Spoils::Fields(fields) = spoils {
                assert!(fields.contains(&field), "{what}: {field}");
            }
        }
    }
}

/// The words of the kernel's header, in one line, without what makes comments of them.
fn header() -> Option<String> {
    let text = fs::read_to_string("/usr/include/linux/perf_event.h").ok()?;
    let words = text.split_ascii_whitespace().filter(|word| !["/*", "*", "*/"].contains(word));
    Some(words.collect::<Vec<_>>().join(" "))
}

#[test]
fn each_fault_is_the_peer_s_by_the_kernel_s_header() {
    let Some(header) = header() else {
        eprintln!("SKIPPED: there is no linux/perf_event.h; install linux-libc-dev");
        let required = std::env::var_os("COLLECTOR_LIVE").is_some_and(|live| live == "require");
        assert!(!required, "there is no linux/perf_event.h");
        return;
    };
    for Fault { what, because, .. } in &FAULTS {
        let words = match because {
            Because::Header(words) => words,
            Because::NewerHeader(bit, words) if header.contains(bit) => words,
            Because::NewerHeader(..) => continue,
            Because::Kernel(function) => {
                assert!(function.starts_with("perf_"), "{what}");
                continue;
            }
        };
        assert!(header.contains(words), "{what}: the header does not say {words:?}");
    }
}
