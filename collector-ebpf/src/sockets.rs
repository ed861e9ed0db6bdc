//! Whom a socket is connected to. See `include/net/sock.h` and `include/net/af_unix.h`.

use aya_ebpf::helpers::generated::{bpf_probe_read_kernel, bpf_probe_read_user_str};
use collector_common::wire::{Operation, Peer, Transfer};

use crate::{
    kernel::{read_user, read_word},
    transfers::{at, setting},
};

/// `AF_UNIX`, `AF_INET` and `AF_INET6` of `include/linux/socket.h`.
const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;

/// Bytes of `sockaddr_un::sun_path`.
const UNIX_PATH: u32 = 108;

/// The `struct sock` of a file that is a socket.
#[inline(always)]
pub(crate) fn of_file(file: u64) -> u64 {
    at(at(file, |o| &raw const o.file_data), |o| &raw const o.socket_sock)
}

#[inline(always)]
fn family(sock: u64) -> u32 {
    at(sock, |o| &raw const o.sock_family) as u32 & 0xffff
}

/// `IPPROTO_TCP` and so on.
#[inline(always)]
pub(crate) fn protocol(sock: u64) -> u32 {
    at(sock, |o| &raw const o.sock_protocol) as u32 & 0xffff
}

/// Whom a socket of the internet protocol is connected to.
#[inline(always)]
pub(crate) fn peer(sock: u64) -> Peer {
    let port = u32::from((at(sock, |o| &raw const o.sock_port) as u16).swap_bytes());
    let address6 = setting(|o| &raw const o.sock_address6);
    let address = if family(sock) == AF_INET6 && address6 != 0 {
        [read_word(sock, address6), read_word(sock, address6 + 8)]
    } else {
        mapped(at(sock, |o| &raw const o.sock_address) as u32)
    };
    Peer { address, port, reserved: 0 }
}

/// An address of IPv4 as IPv6 has it.
#[inline(always)]
fn mapped(address: u32) -> [u64; 2] {
    [0, u64::from(address) << 32 | 0xffff_0000]
}

/// Puts the addresses of the socket `file` into a record. `address` is what the call has for one, or 0.
#[inline(always)]
pub(crate) fn tell(transfer: &mut Transfer, file: u64, address: u64) {
    let sock = of_file(file);
    transfer.family = family(sock);
    transfer.protocol = protocol(sock);
    let is_connect = transfer.operation == Operation::Connect as u32;
    match transfer.family {
        AF_INET | AF_INET6 => {
            transfer.peer = peer(sock);
            transfer.local_port = at(sock, |o| &raw const o.sock_local_port) as u32 & 0xffff;
            // That of a connection that could not be made is forgotten by the socket.
            if address != 0 && (is_connect || transfer.peer.port == 0) {
                tell_given(transfer, address);
            }
        }
        AF_UNIX => tell_unix(transfer, sock, if is_connect { address } else { 0 }),
        _ => {}
    }
}

/// Of `struct sockaddr_in`, or `sockaddr_in6`, in the program's memory.
#[inline(always)]
fn tell_given(transfer: &mut Transfer, address: u64) {
    let first: u64 = read_user(address);
    let words = match first as u32 & 0xffff {
        AF_INET => mapped((first >> 32) as u32),
        AF_INET6 => [read_user(address.wrapping_add(8)), read_user(address.wrapping_add(16))],
        _ => return,
    };
    let port = u32::from(((first >> 16) as u16).swap_bytes());
    transfer.peer = Peer { address: words, port, reserved: 0 };
}

/// The name that the socket or its peer is bound to, or else that in the program's memory.
#[inline(always)]
fn tell_unix(transfer: &mut Transfer, sock: u64, address: u64) {
    if setting(|o| &raw const o.unix_address) == 0 {
        return;
    }
    let mut bound = at(sock, |o| &raw const o.unix_address);
    if bound == 0 {
        bound = at(at(sock, |o| &raw const o.unix_peer), |o| &raw const o.unix_address);
    }
    let names = transfer.names.as_mut_ptr();
    if bound == 0 && address != 0 {
        // SAFETY: there is room for more; the helper checks the source.
        let copied =
            unsafe { bpf_probe_read_user_str(names.cast(), UNIX_PATH, address.wrapping_add(2) as *const _) };
        transfer.name_bytes = if copied > 0 { copied as u32 } else { 0 };
    } else if bound != 0 {
        // Its length has the family in it.
        let len = (at(bound, |o| &raw const o.unix_len) as u32).wrapping_sub(2);
        let name = bound.wrapping_add(u64::from(setting(|o| &raw const o.unix_name)) + 2);
        // SAFETY: there is room for more; the helper checks the source.
        let result = unsafe { bpf_probe_read_kernel(names.cast(), UNIX_PATH, name as *const _) };
        transfer.name_bytes = if result == 0 { len.min(UNIX_PATH) } else { 0 };
    }
}
