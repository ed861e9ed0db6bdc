//! System calls that transfer data, or wait for a connection: what they are counted by, and records of them with the file or
//! the address.

use bytemuck::{Pod, Zeroable};

/// What a call does.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `read`, `pread64`, `readv`, `preadv`, `preadv2`; `sendfile` and `copy_file_range`, by the file that they read.
    Read = 0,
    /// `write`, `pwrite64`, `writev`, `pwritev`, `pwritev2`.
    Write = 1,
    /// `fsync`, `fdatasync`, `sync_file_range`.
    Sync = 2,
    /// `sendto`, `sendmsg`, `sendmmsg`.
    Send = 3,
    /// `recvfrom`, `recvmsg`, `recvmmsg`.
    Receive = 4,
    /// `connect`.
    Connect = 5,
    /// `accept`, `accept4`.
    Accept = 6,
}

impl Operation {
    /// All of them, in index order.
    pub const ALL: [Self; 7] =
        [Self::Read, Self::Write, Self::Sync, Self::Send, Self::Receive, Self::Connect, Self::Accept];
}

/// What a descriptor is of: `S_IFMT` of `include/uapi/linux/stat.h`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// It is none.
    None = 0,
    /// A regular file.
    Regular = 1,
    /// A directory.
    Directory = 2,
    /// A pipe, with a name or without.
    Pipe = 3,
    /// A socket.
    Socket = 4,
    /// A character device, as a terminal.
    Character = 5,
    /// A block device.
    Block = 6,
    /// Something of the kernel's, as an `eventfd`.
    Other = 7,
}

impl FileKind {
    /// All of them, in index order.
    pub const ALL: [Self; 8] = [
        Self::None,
        Self::Regular,
        Self::Directory,
        Self::Pipe,
        Self::Socket,
        Self::Character,
        Self::Block,
        Self::Other,
    ];
}

/// Slots of what is counted: `operation * FileKind::ALL.len() + kind`.
pub const TRANSFER_SLOTS: u32 = (Operation::ALL.len() * FileKind::ALL.len()) as u32;

/// Buckets by time: less than [`FIRST_TRANSFER_NS`] nanoseconds, less than twice, four times and so on of it, and in the last
/// one all others.
pub const TRANSFER_TIMES: usize = 32;

/// Where the first of [`TRANSFER_TIMES`] ends.
pub const FIRST_TRANSFER_NS: u64 = 128;

/// Buckets by size: less than [`FIRST_TRANSFER_BYTES`] bytes, less than twice, four times and so on of it, and in the last one
/// all others.
pub const TRANSFER_SIZES: usize = 26;

/// Where the first of [`TRANSFER_SIZES`] ends.
pub const FIRST_TRANSFER_BYTES: u64 = 64;

/// What was counted in a slot on one CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct TransferCounts {
    /// Calls by how long they took.
    pub times: [u64; TRANSFER_TIMES],
    /// Those that did not fail, by how many bytes they transferred.
    pub sizes: [u64; TRANSFER_SIZES],
    /// Nanoseconds in all.
    pub ns: u64,
    /// Of the longest.
    pub longest: u64,
    /// Bytes in all.
    pub bytes: u64,
    /// Calls that failed.
    pub errors: u64,
}

/// Bytes that a record has room for of a file's names: they begin before half of it.
pub const FILE_NAMES: usize = 512;

/// Names of a path that are recorded at most, with the mounts between them.
pub const FILE_STEPS: u32 = 24;

/// What records of [`super::SampleFlags::TRANSFER`] have where others have their kernel stack.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Transfer {
    /// How long it took in nanoseconds; not 0.
    pub took: u64,
    /// What it returned: from -4095 to -1 the number of an error.
    pub returned: i64,
    /// Bytes that were transferred.
    pub bytes: u64,
    /// The number of the file in its file system.
    pub inode: u64,
    /// [`Operation`].
    pub operation: u32,
    /// [`FileKind`].
    pub kind: u32,
    /// Of a socket: `AF_INET` and so on.
    pub family: u32,
    /// Of a socket: `IPPROTO_TCP` and so on.
    pub protocol: u32,
    /// Of a socket: whom it goes to or comes from.
    pub peer: Peer,
    /// Of a socket: the port on this side.
    pub local_port: u32,
    /// 1 where the names are not all.
    pub is_cut: u32,
    /// 1 where the file is in no folder: it has a name of the kernel's, or none.
    pub is_nameless: u32,
    /// Bytes of names.
    pub name_bytes: u32,
    /// Names of the file, its folder, that one's folder and so on, each with a NUL behind it. Of a socket of `AF_UNIX` the
    /// address, `sockaddr_un::sun_path`.
    pub names: [u8; FILE_NAMES],
}

/// An address of the internet protocol, where there is one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
pub struct Peer {
    /// As IPv6 has it, in the network's order; of IPv4 it is mapped.
    pub address: [u64; 2],
    /// 0 where it is not known.
    pub port: u32,
    /// Zero.
    pub reserved: u32,
}

/// What was counted of TCP connections with a peer on one CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct PeerCounts {
    /// Connections that were made to it.
    pub connected: u64,
    /// Those that could not be made.
    pub failed: u64,
    /// Nanoseconds that the others took from the first packet until both sides knew, in all.
    pub ns: u64,
    /// Of the longest.
    pub longest: u64,
    /// Connections that were accepted from it.
    pub accepted: u64,
    /// Packets that were sent to it again.
    pub retransmitted: u64,
}

/// What the programs need to know of the kernel's structures, from its BTF, and what they are to record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct TransferOffsets {
    /// 1 where files beside sockets are recorded.
    pub is_of_files: u32,
    /// 1 where sockets are recorded.
    pub is_of_sockets: u32,
    /// Of `task_struct::files`.
    pub task_files: u32,
    /// Of `files_struct::fdt`.
    pub files_table: u32,
    /// Of `fdtable::max_fds`.
    pub table_len: u32,
    /// Of `fdtable::fd`.
    pub table_files: u32,
    /// Of `file::f_inode`.
    pub file_inode: u32,
    /// Of `file::f_path.dentry`.
    pub file_dentry: u32,
    /// Of `file::f_path.mnt`.
    pub file_mount: u32,
    /// Of `file::private_data`.
    pub file_data: u32,
    /// Of `inode::i_mode`.
    pub inode_mode: u32,
    /// Of `inode::i_flags`.
    pub inode_flags: u32,
    /// Of `inode::i_ino`.
    pub inode_number: u32,
    /// Of `dentry::d_parent`.
    pub dentry_parent: u32,
    /// Of `dentry::d_name.name`.
    pub dentry_name: u32,
    /// Of `mount::mnt`, which a file's path points to.
    pub mount_inner: u32,
    /// Of `mount::mnt.mnt_root`.
    pub mount_root: u32,
    /// Of `mount::mnt_parent`.
    pub mount_parent: u32,
    /// Of `mount::mnt_mountpoint`.
    pub mount_point: u32,
    /// Of `socket::sk`.
    pub socket_sock: u32,
    /// Of `sock::__sk_common.skc_family`.
    pub sock_family: u32,
    /// Of `sock::sk_protocol`.
    pub sock_protocol: u32,
    /// Of `sock::__sk_common.skc_num`.
    pub sock_local_port: u32,
    /// Of `sock::__sk_common.skc_dport`.
    pub sock_port: u32,
    /// Of `sock::__sk_common.skc_daddr`.
    pub sock_address: u32,
    /// Of `sock::__sk_common.skc_v6_daddr`; 0 where the kernel knows no IPv6.
    pub sock_address6: u32,
    /// Of `unix_sock::addr`; 0 where it is not known.
    pub unix_address: u32,
    /// Of `unix_sock::peer`.
    pub unix_peer: u32,
    /// Of `unix_address::len`.
    pub unix_len: u32,
    /// Of `unix_address::name`.
    pub unix_name: u32,
}

impl TransferOffsets {
    /// Not known yet.
    pub const NONE: Self = Self {
        is_of_files: 0,
        is_of_sockets: 0,
        task_files: 0,
        files_table: 0,
        table_len: 0,
        table_files: 0,
        file_inode: 0,
        file_dentry: 0,
        file_mount: 0,
        file_data: 0,
        inode_mode: 0,
        inode_flags: 0,
        inode_number: 0,
        dentry_parent: 0,
        dentry_name: 0,
        mount_inner: 0,
        mount_root: 0,
        mount_parent: 0,
        mount_point: 0,
        socket_sock: 0,
        sock_family: 0,
        sock_protocol: 0,
        sock_local_port: 0,
        sock_port: 0,
        sock_address: 0,
        sock_address6: 0,
        unix_address: 0,
        unix_peer: 0,
        unix_len: 0,
        unix_name: 0,
    };
}

const _: () = {
    assert!(size_of::<Transfer>() == 48 + 24 + 16 + FILE_NAMES);
    assert!(size_of::<Transfer>() <= super::SampleHeader::KERNEL_STACK_SIZE);
    assert!(size_of::<TransferOffsets>() == 30 * 4);
};
