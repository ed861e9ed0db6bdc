//! Programs at the tracepoints of TCP: connections that are made, and packets that are sent again, counted by who is on the
//! other side.

use aya_ebpf::{
    btf_maps::{HashMap, PerCpuArray, PerCpuHashMap},
    helpers::{bpf_get_current_pid_tgid, generated::bpf_ktime_get_ns},
    macros::{btf_map, raw_tracepoint},
    programs::RawTracePointContext,
};
use collector_common::wire::{Config, Counter, FIRST_TRANSFER_NS, Peer, PeerCounts, TRANSFER_TIMES};

use crate::{
    filter,
    maps::{config, count},
    sockets,
};

/// By the other side. The number of entries is set before load.
#[btf_map]
static PEERS: PerCpuHashMap<Peer, PeerCounts, 1> = PerCpuHashMap::new();

/// Connections by how long it took to make them; buckets as those of calls.
#[btf_map]
static CONNECT_TIMES: PerCpuArray<[u64; TRANSFER_TIMES], 1> = PerCpuArray::new();

/// A connection that is being made.
#[repr(C)]
#[derive(Clone, Copy)]
struct Connecting {
    since: u64,
    peer: Peer,
}

/// By the address of the kernel's `struct sock`. The number of entries is set before load.
#[btf_map]
static CONNECTING: HashMap<u64, Connecting, 1> = HashMap::new();

const IPPROTO_TCP: u32 = 6;

/// `include/net/tcp_states.h`.
const TCP_ESTABLISHED: u32 = 1;
const TCP_SYN_SENT: u32 = 2;
const TCP_CLOSE: u32 = 7;

/// `inet_sock_set_state(const struct sock *sk, const int oldstate, const int newstate)`: to `TCP_SYN_SENT` in the context of who
/// connects, from there often in an interrupt. Minimum kernel: 5.8.
#[raw_tracepoint(tracepoint = "inet_sock_set_state")]
pub(crate) fn tcp_state(context: RawTracePointContext) -> i32 {
    let sock: u64 = context.arg(0);
    let state = context.arg::<u64>(2) as u32;
    if !matches!(state, TCP_ESTABLISHED | TCP_SYN_SENT | TCP_CLOSE) {
        return 0;
    }
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    if state == TCP_SYN_SENT {
        let pid = (bpf_get_current_pid_tgid() >> 32) as u32;
        if sockets::protocol(sock) == IPPROTO_TCP && filter::wanted(pid) {
            let connecting = Connecting { since: now, peer: sockets::peer(sock) };
            count(Counter::PeersFull, u64::from(CONNECTING.insert(sock, connecting, 0).is_err()));
        }
        return 0;
    }
    let Some(connecting) = CONNECTING.get_ptr(sock) else { return 0 };
    // SAFETY: the map gave a valid pointer. The kernel holds a lock of the socket.
    let Connecting { since, peer } = unsafe { *connecting };
    let _ = CONNECTING.remove(sock);
    let took = now.saturating_sub(since);
    with(&peer, |counts| {
        if state == TCP_ESTABLISHED {
            counts.connected += 1;
            counts.ns += took;
            counts.longest = counts.longest.max(took);
        } else {
            counts.failed += 1;
        }
    });
    if state == TCP_ESTABLISHED
        && let Some(times) = CONNECT_TIMES.get_ptr_mut(0)
    {
        let bucket = (u64::BITS - (took / FIRST_TRANSFER_NS).leading_zeros()) as usize;
        // SAFETY: the map gave a valid pointer to this CPU's value. A connection that an interrupt tells of in the midst of
        // this is not counted at worst.
        unsafe { (*times)[bucket.min(TRANSFER_TIMES - 1)] += 1 };
    }
    0
}

/// `tcp_retransmit_skb(const struct sock *sk, const struct sk_buff *skb)`, mostly by a timer. Minimum kernel: 5.8.
///
/// Whose connection it is, is not known here. Where not all threads are recorded, it counts if they make it, or have had
/// connections with that side.
#[raw_tracepoint(tracepoint = "tcp_retransmit_skb")]
pub(crate) fn tcp_retransmits(context: RawTracePointContext) -> i32 {
    let sock: u64 = context.arg(0);
    let mut peer = sockets::peer(sock);
    if CONNECTING.get_ptr(sock).is_none() && PEERS.get_ptr(peer).is_none() {
        peer.port = 0;
        if config(|c: &Config| &raw const c.targets) != 0 && PEERS.get_ptr(peer).is_none() {
            return 0;
        }
    }
    with(&peer, |counts| counts.retransmitted += 1);
    0
}

/// A connection was accepted, which `file` is. All of one address count together, as each has a port of its own.
#[inline(always)]
pub(crate) fn accepted(file: u64) {
    let sock = sockets::of_file(file);
    if sockets::protocol(sock) == IPPROTO_TCP {
        let peer = Peer { port: 0, ..sockets::peer(sock) };
        with(&peer, |counts| counts.accepted += 1);
    }
}

/// Counts something of a peer.
#[inline(always)]
fn with(peer: &Peer, add: impl FnOnce(&mut PeerCounts)) {
    /// As one is met for the first time.
    const NONE: PeerCounts =
        PeerCounts { connected: 0, failed: 0, ns: 0, longest: 0, accepted: 0, retransmitted: 0 };
    let counts = PEERS.get_ptr_mut(*peer).or_else(|| {
        let _ = PEERS.insert(*peer, NONE, 0);
        PEERS.get_ptr_mut(*peer)
    });
    match counts {
        // SAFETY: the map gave a valid pointer to this CPU's value.
        Some(counts) => add(unsafe { &mut *counts }),
        None => count(Counter::PeersFull, 1),
    }
}
