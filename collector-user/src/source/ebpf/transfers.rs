//! Calls that transfer data, and TCP connections: the programs attached while it is recorded, and what they counted.

use std::io;

use aya::Ebpf;
use aya::maps::PerCpuArray;
use collector_common::loss::{Ledger, LossCause};
use collector_common::record::{Column, Histogram, Table, Unit};
use collector_common::wire::{
    Counter, FIRST_TRANSFER_BYTES, FIRST_TRANSFER_NS, FileKind, SampleFlags, SampleHeader, TRANSFER_SLOTS,
    TransferCounts, TransferOffsets,
};

use super::attached::Attached;
use super::btf::{BtfError, KernelTypes};
use super::part::{Ended, Part};
use super::peers;
use crate::source::{Account, EventIndex};
use crate::transfers::{kind_name, operation_name};

/// The programs with their tracepoints.
const CALLS: [(&str, &str); 2] = [("transfer_begins", "sys_enter"), ("transfer_ends", "sys_exit")];

/// Those of the network.
const TCP: [(&str, &str); 2] =
    [("tcp_state", "inet_sock_set_state"), ("tcp_retransmits", "tcp_retransmit_skb")];

/// Threads whose calls are remembered until they return.
const THREADS: u32 = 16384;

/// What is counted, as the map has it.
type Words = [u64; size_of::<TransferCounts>() / 8];

/// The programs.
pub(super) struct Transfers {
    programs: Attached,
    files: Option<EventIndex>,
    sockets: Option<EventIndex>,
    /// Records taken out of the rings.
    taken: u64,
}

impl Transfers {
    /// With the numbers of the records of files, and of sockets, where those are asked for.
    pub(super) fn new(files: Option<EventIndex>, sockets: Option<EventIndex>) -> Self {
        let mut programs = CALLS.to_vec();
        if sockets.is_some() {
            programs.extend(TCP);
        }
        Self { programs: Attached::new(&programs), files, sockets, taken: 0 }
    }
}

impl Part for Transfers {
    fn programs(&mut self) -> &mut Attached {
        &mut self.programs
    }

    fn globals(&self, types: &KernelTypes) -> Result<Vec<(&'static str, Vec<u8>)>, BtfError> {
        let offsets = TransferOffsets {
            is_of_files: self.files.is_some().into(),
            is_of_sockets: self.sockets.is_some().into(),
            ..offsets(types)?
        };
        Ok(vec![("TRANSFER_OFFSETS", bytemuck::bytes_of(&offsets).to_vec())])
    }

    fn map_sizes(&self) -> Vec<(&'static str, u32)> {
        let calls = [("TRANSFERS", TRANSFER_SLOTS), ("TRANSFERRING", THREADS)];
        let tcp = if self.sockets.is_some() { &peers::MAP_SIZES[..] } else { &[] };
        calls.iter().chain(tcp).copied().collect()
    }

    fn event_of(&mut self, header: &SampleHeader) -> Option<EventIndex> {
        if !header.flags().has(SampleFlags::TRANSFER) {
            return None;
        }
        self.taken += 1;
        if header.flags().has(SampleFlags::SOCKET) { self.sockets } else { self.files }
    }

    fn lost(&self) -> &'static [Counter] {
        &[Counter::TransfersLost]
    }

    fn close(&mut self, ended: &Ended<'_>, ledger: &mut Ledger, account: &mut Account) -> io::Result<()> {
        let counter = |counter| ended.counted.counter(counter);
        ledger.lose(LossCause::RingFull, counter(Counter::TransfersLost));
        ledger.lose(LossCause::Unaccounted, counter(Counter::TransfersRecorded).saturating_sub(self.taken));
        let counted = counted(ended.ebpf)?;
        account.tables.push(table(&counted));
        account.histograms.extend(histograms(&counted));
        if self.sockets.is_some() {
            let (table, times) = peers::counted(ended.ebpf)?;
            account.tables.extend(table);
            account.histograms.extend(times);
        }
        account.warnings.extend([
            (
                counter(Counter::TransfersUnknown),
                "reads, writes and calls on sockets were not counted that were made before the recording, or by too many threads",
            ),
            (counter(Counter::PeersFull), "TCP connections were not counted: too many addresses"),
        ]);
        Ok(())
    }
}

/// Offsets that the programs need.
fn offsets(types: &KernelTypes) -> Result<TransferOffsets, BtfError> {
    let common = |name| types.offset(&["sock", "__sk_common", name]);
    let inner = types.offset(&["mount", "mnt"])?;
    Ok(TransferOffsets {
        task_files: types.offset(&["task_struct", "files"])?,
        files_table: types.offset(&["files_struct", "fdt"])?,
        table_len: types.offset(&["fdtable", "max_fds"])?,
        table_files: types.offset(&["fdtable", "fd"])?,
        file_inode: types.offset(&["file", "f_inode"])?,
        file_dentry: types.offset(&["file", "f_path", "dentry"])?,
        file_mount: types.offset(&["file", "f_path", "mnt"])?,
        file_data: types.offset(&["file", "private_data"])?,
        inode_mode: types.offset(&["inode", "i_mode"])?,
        inode_flags: types.offset(&["inode", "i_flags"])?,
        inode_number: types.offset(&["inode", "i_ino"])?,
        dentry_parent: types.offset(&["dentry", "d_parent"])?,
        dentry_name: types.offset(&["dentry", "d_name", "name"])?,
        mount_inner: inner,
        mount_root: inner + types.offset(&["vfsmount", "mnt_root"])?,
        mount_parent: types.offset(&["mount", "mnt_parent"])?,
        mount_point: types.offset(&["mount", "mnt_mountpoint"])?,
        socket_sock: types.offset(&["socket", "sk"])?,
        sock_family: common("skc_family")?,
        sock_protocol: types.offset(&["sock", "sk_protocol"])?,
        sock_local_port: common("skc_num")?,
        sock_port: common("skc_dport")?,
        sock_address: common("skc_daddr")?,
        sock_address6: common("skc_v6_daddr").unwrap_or(0),
        // A module on some kernels.
        unix_address: types.offset(&["unix_sock", "addr"]).unwrap_or(0),
        unix_peer: types.offset(&["unix_sock", "peer"]).unwrap_or(0),
        unix_len: types.offset(&["unix_address", "len"]).unwrap_or(0),
        unix_name: types.offset(&["unix_address", "name"]).unwrap_or(0),
        ..TransferOffsets::NONE
    })
}

/// What was counted of each operation and kind of file, with its name: those first that took longest together.
fn counted(ebpf: &Ebpf) -> io::Result<Vec<(String, TransferCounts)>> {
    let map = ebpf.map("TRANSFERS").ok_or(io::ErrorKind::NotFound)?;
    let slots: PerCpuArray<_, Words> = PerCpuArray::try_from(map).map_err(io::Error::other)?;
    let mut counted = Vec::new();
    for slot in 0..TRANSFER_SLOTS {
        let cpus = slots.get(&slot, 0).map_err(io::Error::other)?;
        let mut all: TransferCounts = bytemuck::Zeroable::zeroed();
        cpus.iter().for_each(|words| add(&mut all, &bytemuck::cast(*words)));
        if all.times.iter().any(|count| *count > 0) {
            let kinds = FileKind::ALL.len() as u32;
            let name = format!("{} {}", operation_name(slot / kinds), kind_name(slot % kinds));
            counted.push((name, all));
        }
    }
    counted.sort_by(|(one, a), (other, b)| b.ns.cmp(&a.ns).then_with(|| one.cmp(other)));
    Ok(counted)
}

fn add(all: &mut TransferCounts, one: &TransferCounts) {
    all.times.iter_mut().zip(one.times).for_each(|(bucket, count)| *bucket += count);
    all.sizes.iter_mut().zip(one.sizes).for_each(|(bucket, count)| *bucket += count);
    all.ns = all.ns.saturating_add(one.ns);
    all.longest = all.longest.max(one.longest);
    all.bytes = all.bytes.saturating_add(one.bytes);
    all.errors += one.errors;
}

fn table(counted: &[(String, TransferCounts)]) -> Table {
    let column = |name: &str, unit| Column { name: name.to_owned(), unit };
    let columns = vec![
        column("calls", Unit::Count),
        column("failed", Unit::Count),
        column("transferred", Unit::Bytes),
        column("in all", Unit::Nanoseconds),
        column("on average", Unit::Nanoseconds),
        column("at longest", Unit::Nanoseconds),
    ];
    let rows = counted.iter().map(|(name, counts)| {
        let calls: u64 = counts.times.iter().sum();
        let TransferCounts { ns, longest, bytes, errors, .. } = *counts;
        (name.clone(), vec![calls, errors, bytes, ns, ns / calls.max(1), longest])
    });
    Table { name: "reads, writes and calls on sockets".to_owned(), columns, rows: rows.collect() }
}

/// How long they took, then how large those were that transfer anything: of all, and of each.
fn histograms(counted: &[(String, TransferCounts)]) -> Vec<Histogram> {
    let mut all: TransferCounts = bytemuck::Zeroable::zeroed();
    for (_, counts) in counted {
        add(&mut all, counts);
    }
    let all = ("all calls".to_owned(), all);
    let times = std::iter::once(&all).chain(counted).map(|(label, counts)| Histogram {
        name: "times of reads, writes and calls on sockets".to_owned(),
        label: label.clone(),
        unit: Unit::Nanoseconds,
        first_end: FIRST_TRANSFER_NS,
        buckets: counts.times.to_vec(),
        sum: counts.ns,
    });
    let sized = std::iter::once(&all).chain(counted).filter(|(_, counts)| counts.bytes > 0);
    let sizes = sized.map(|(label, counts)| Histogram {
        name: "sizes of reads, writes and calls on sockets".to_owned(),
        label: label.clone(),
        unit: Unit::Bytes,
        first_end: FIRST_TRANSFER_BYTES,
        buckets: counts.sizes.to_vec(),
        sum: counts.bytes,
    });
    times.chain(sizes).filter(|histogram| histogram.count() > 0).collect()
}
