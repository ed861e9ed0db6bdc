//! TCP connections: what the programs counted, by who is on the other side.

use std::collections::BTreeMap;
use std::io;

use aya::Ebpf;
use aya::maps::{PerCpuArray, PerCpuHashMap};
use collector_common::record::{Column, Histogram, Table, Unit};
use collector_common::wire::{FIRST_TRANSFER_NS, Peer, PeerCounts, TRANSFER_TIMES};

use crate::transfers::peer;

/// Addresses, and connections that are being made at a time.
pub(super) const MAP_SIZES: [(&str, u32); 2] = [("PEERS", 1024), ("CONNECTING", 4096)];

/// A map's key and value as the kernel has them.
type PeerWords = [u64; size_of::<Peer>() / 8];
type CountWords = [u64; size_of::<PeerCounts>() / 8];

/// A table by address, those first that connections were made to most often, and how long that took; nothing where there were
/// none.
pub(super) fn counted(ebpf: &Ebpf) -> io::Result<(Option<Table>, Option<Histogram>)> {
    let peers = ebpf.map("PEERS").ok_or(io::ErrorKind::NotFound)?;
    let peers: PerCpuHashMap<_, PeerWords, CountWords> =
        PerCpuHashMap::try_from(peers).map_err(io::Error::other)?;
    let mut by_peer = BTreeMap::<Peer, PeerCounts>::new();
    for entry in &peers {
        let (peer, cpus) = entry.map_err(io::Error::other)?;
        let all = by_peer.entry(bytemuck::cast(peer)).or_default();
        cpus.iter().for_each(|words| add(all, &bytemuck::cast(*words)));
    }
    let times = ebpf.map("CONNECT_TIMES").ok_or(io::ErrorKind::NotFound)?;
    let times: PerCpuArray<_, [u64; TRANSFER_TIMES]> =
        PerCpuArray::try_from(times).map_err(io::Error::other)?;
    let mut histogram = Histogram {
        name: "times of TCP connections until they are made".to_owned(),
        label: "all addresses".to_owned(),
        unit: Unit::Nanoseconds,
        first_end: FIRST_TRANSFER_NS,
        buckets: vec![0; TRANSFER_TIMES],
        sum: by_peer.values().map(|counts| counts.ns).sum(),
    };
    for cpu in times.get(&0, 0).map_err(io::Error::other)?.iter() {
        histogram.buckets.iter_mut().zip(cpu).for_each(|(bucket, count)| *bucket += count);
    }
    let histogram = Some(histogram).filter(|histogram| histogram.count() > 0);
    Ok((table(by_peer.into_iter().collect()), histogram))
}

fn add(all: &mut PeerCounts, one: &PeerCounts) {
    all.connected += one.connected;
    all.failed += one.failed;
    all.ns = all.ns.saturating_add(one.ns);
    all.longest = all.longest.max(one.longest);
    all.accepted += one.accepted;
    all.retransmitted += one.retransmitted;
}

/// Addresses with the most connections, and all others as one.
fn table(mut peers: Vec<(Peer, PeerCounts)>) -> Option<Table> {
    const MOST_ROWS: usize = 50;
    let column = |name: &str, unit| Column { name: name.to_owned(), unit };
    let columns = vec![
        column("connected", Unit::Count),
        column("failed", Unit::Count),
        column("on average", Unit::Nanoseconds),
        column("at longest", Unit::Nanoseconds),
        column("accepted", Unit::Count),
        column("packets sent again", Unit::Count),
    ];
    let row = |label: String, counts: PeerCounts| {
        let PeerCounts { connected, failed, ns, longest, accepted, retransmitted } = counts;
        (label, vec![connected, failed, ns / connected.max(1), longest, accepted, retransmitted])
    };
    peers.sort_by_key(|(peer, counts)| (std::cmp::Reverse(counts.connected + counts.accepted), *peer));
    let others = peers.split_off(peers.len().min(MOST_ROWS));
    let known = |address: &Peer| peer(address).unwrap_or_else(|| "unknown".to_owned());
    let mut rows: Vec<_> = peers.iter().map(|(address, counts)| row(known(address), *counts)).collect();
    if !others.is_empty() {
        let mut all = PeerCounts::default();
        for (_, counts) in &others {
            add(&mut all, counts);
        }
        rows.push(row("other addresses".to_owned(), all));
    }
    (!rows.is_empty()).then(|| Table { name: "TCP connections".to_owned(), columns, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_few_connections_are_one() {
        let peers = (0..60).map(|port| {
            let counts =
                PeerCounts { connected: port + 1, ns: 10 * (port + 1), longest: 10, ..PeerCounts::default() };
            (Peer { address: [0, 0x0100_007f_ffff_0000], port: port as u32, reserved: 0 }, counts)
        });
        let table = table(peers.collect()).unwrap();
        assert_eq!(table.rows.len(), 51);
        assert_eq!(table.rows[0], ("127.0.0.1:59".to_owned(), vec![60, 0, 10, 10, 0, 0]));
        assert_eq!(table.rows[50], ("other addresses".to_owned(), vec![55, 0, 10, 10, 0, 0]));
        assert!(super::table(Vec::new()).is_none());
    }
}
