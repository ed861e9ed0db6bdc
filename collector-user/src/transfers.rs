//! Words for calls that transfer data: what they do, to what, and where that is.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use collector_common::wire::{FileKind, Operation, Peer, Transfer};

/// What a call does.
pub(crate) fn operation_name(operation: u32) -> &'static str {
    match Operation::ALL.get(operation as usize) {
        Some(Operation::Read) => "read",
        Some(Operation::Write) => "write",
        Some(Operation::Sync) => "sync",
        Some(Operation::Send) => "send",
        Some(Operation::Receive) => "receive",
        Some(Operation::Connect) => "connect",
        Some(Operation::Accept) => "accept",
        None => "other",
    }
}

/// What it does that to.
pub(crate) fn kind_name(kind: u32) -> &'static str {
    match FileKind::ALL.get(kind as usize) {
        Some(FileKind::None) => "no file",
        Some(FileKind::Regular) => "regular file",
        Some(FileKind::Directory) => "directory",
        Some(FileKind::Pipe) => "pipe",
        Some(FileKind::Socket) => "socket",
        Some(FileKind::Character) => "character device",
        Some(FileKind::Block) => "block device",
        Some(FileKind::Other) | None => "other",
    }
}

/// The path of a file, or the address of a socket: `/var/log/syslog`, `pipe:[4711]`, `tcp 10.0.0.1:443`. Empty where there is
/// none. `...` stands for folders that there was no room for.
pub(crate) fn place(transfer: &Transfer) -> String {
    let names = transfer.names.get(..transfer.name_bytes as usize).unwrap_or(&transfer.names);
    match transfer.kind {
        kind if kind == FileKind::None as u32 => String::new(),
        kind if kind == FileKind::Socket as u32 => address(transfer, names),
        kind => path(names, kind, transfer),
    }
}

fn path(names: &[u8], kind: u32, transfer: &Transfer) -> String {
    let names = names.strip_suffix(&[0]).unwrap_or(names);
    let names: Vec<_> = names.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    if transfer.is_nameless != 0 {
        return match names.first() {
            Some(name) if name.starts_with('[') => format!("anon_inode:{name}"),
            Some(name) if !name.is_empty() => name.clone().into_owned(),
            _ => format!("{}:[{}]", kind_name(kind), transfer.inode),
        };
    }
    let start = if transfer.is_cut == 0 { "/" } else { ".../" };
    let names: Vec<Cow<'_, str>> = names.into_iter().rev().collect();
    format!("{start}{}", names.join("/"))
}

fn address(transfer: &Transfer, names: &[u8]) -> String {
    let family = i32::try_from(transfer.family).unwrap_or(-1);
    match family {
        libc::AF_INET | libc::AF_INET6 => {
            let protocol = protocol(transfer.protocol);
            peer(&transfer.peer)
                .map_or_else(|| protocol.clone().into_owned(), |peer| format!("{protocol} {peer}"))
        }
        libc::AF_UNIX => unix(names),
        libc::AF_NETLINK => "netlink".to_owned(),
        libc::AF_PACKET => "packet".to_owned(),
        libc::AF_VSOCK => "vsock".to_owned(),
        _ => format!("family {}", transfer.family),
    }
}

fn protocol(protocol: u32) -> Cow<'static, str> {
    match i32::try_from(protocol).unwrap_or(-1) {
        libc::IPPROTO_TCP => "tcp".into(),
        libc::IPPROTO_UDP => "udp".into(),
        libc::IPPROTO_ICMP => "icmp".into(),
        libc::IPPROTO_ICMPV6 => "icmpv6".into(),
        _ => format!("protocol {protocol}").into(),
    }
}

/// `10.0.0.1:443`, `[::1]:443`, without the port where that is not known; `None` where nothing is.
pub(crate) fn peer(peer: &Peer) -> Option<String> {
    let address: [u8; 16] = bytemuck::cast(peer.address);
    let address = Ipv6Addr::from(address);
    let is_known = peer.port != 0 || !address.to_canonical().is_unspecified();
    is_known.then(|| match (address.to_ipv4_mapped(), peer.port) {
        (Some(address), 0) => address.to_string(),
        (Some(address), port) => format!("{address}:{port}"),
        (None, 0) => address.to_string(),
        (None, port) => format!("[{address}]:{port}"),
    })
}

/// A name that begins with a NUL is in no file system; it is shown as `ss` does.
fn unix(name: &[u8]) -> String {
    let text = |name: &[u8]| String::from_utf8_lossy(name).replace('\0', "@");
    match name {
        [] => "unix".to_owned(),
        [0, rest @ ..] => {
            let rest = text(rest);
            if rest.is_empty() { "unix".to_owned() } else { format!("unix @{rest}") }
        }
        name => format!("unix {}", text(name.split(|byte| *byte == 0).next().unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable as _;
    use collector_common::wire::FILE_NAMES;

    use super::*;

    fn transfer(kind: FileKind, names: &[u8]) -> Transfer {
        let mut transfer =
            Transfer { kind: kind as u32, name_bytes: names.len() as u32, inode: 7, ..Transfer::zeroed() };
        transfer.names[..names.len()].copy_from_slice(names);
        transfer
    }

    fn socket(family: i32, protocol: i32, address: &str, port: u32) -> String {
        let address: std::net::IpAddr = address.parse().unwrap();
        let address = match address {
            std::net::IpAddr::V4(address) => address.to_ipv6_mapped(),
            std::net::IpAddr::V6(address) => address,
        };
        let peer = Peer { address: bytemuck::cast(address.octets()), port, reserved: 0 };
        let (family, protocol) = (family as u32, protocol as u32);
        place(&Transfer { family, protocol, peer, ..transfer(FileKind::Socket, b"") })
    }

    #[test]
    fn names_from_the_file_up_are_a_path() {
        let file = transfer(FileKind::Regular, b"syslog\0log\0var\0");
        assert_eq!(place(&file), "/var/log/syslog");
        assert_eq!(place(&Transfer { is_cut: 1, ..file }), ".../var/log/syslog");
        assert_eq!(place(&transfer(FileKind::Directory, b"")), "/");
        assert_eq!(place(&Transfer { name_bytes: u32::MAX, ..file }).matches('/').count(), FILE_NAMES - 12);
    }

    #[test]
    fn what_has_no_path_has_a_name_or_a_number() {
        let nameless = |kind, names| place(&Transfer { is_nameless: 1, ..transfer(kind, names) });
        assert_eq!(nameless(FileKind::Pipe, b"\0"), "pipe:[7]");
        assert_eq!(nameless(FileKind::Other, b"[eventfd]\0"), "anon_inode:[eventfd]");
        assert_eq!(nameless(FileKind::Regular, b"memfd:x\0"), "memfd:x");
        assert_eq!(nameless(FileKind::Regular, b""), "regular file:[7]");
        assert_eq!(place(&transfer(FileKind::None, b"x")), "");
    }

    #[test]
    fn addresses_are_as_people_write_them() {
        assert_eq!(socket(libc::AF_INET, libc::IPPROTO_TCP, "10.0.0.1", 443), "tcp 10.0.0.1:443");
        assert_eq!(socket(libc::AF_INET6, libc::IPPROTO_TCP, "10.0.0.1", 0), "tcp 10.0.0.1");
        assert_eq!(socket(libc::AF_INET6, libc::IPPROTO_UDP, "::1", 53), "udp [::1]:53");
        assert_eq!(socket(libc::AF_INET, libc::IPPROTO_UDP, "0.0.0.0", 0), "udp");
        assert_eq!(socket(libc::AF_INET6, 132, "fe80::2", 0), "protocol 132 fe80::2");
        assert_eq!(socket(libc::AF_NETLINK, 0, "::", 0), "netlink");
        assert_eq!(socket(77, 0, "::", 0), "family 77");
        let unix = |name| place(&Transfer { family: 1, ..transfer(FileKind::Socket, name) });
        assert_eq!(unix(b"/run/x.sock\0"), "unix /run/x.sock");
        assert_eq!(unix(b"\0x\0y"), "unix @x@y");
        assert_eq!(unix(b""), "unix");
    }

    #[test]
    fn noise_is_told_as_something() {
        for byte in 0..=u8::MAX {
            let noise: Transfer = bytemuck::cast([byte; size_of::<Transfer>()]);
            place(&noise);
            operation_name(noise.operation);
            kind_name(noise.kind);
        }
    }
}
