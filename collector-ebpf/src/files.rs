//! Which file a descriptor is of: its kind and its path. See `include/linux/fdtable.h`, `include/linux/fs.h`,
//! `include/linux/dcache.h` and `fs/mount.h`.

use aya_ebpf::helpers::generated::{bpf_get_current_task_btf, bpf_probe_read_kernel_str};
use collector_common::wire::{FILE_NAMES, FILE_STEPS, FileKind, Transfer, TransferOffsets};

use crate::{
    kernel::read_word,
    transfers::{at, forgotten, setting},
};

/// `S_ANON_INODE` of `include/linux/fs.h`, of Linux 6.16: what has no file is a regular file to the kernel since then.
const S_ANON_INODE: u32 = 1 << 19;

/// Bytes of a name with the NUL behind it: `NAME_MAX` of `include/uapi/linux/limits.h`.
const NAME: usize = 256;

/// The `struct file` of a descriptor of the current thread; 0 where it has none. Minimum kernel: 5.11.
#[inline(always)]
pub(crate) fn of_descriptor(descriptor: u32) -> u64 {
    // SAFETY: the helper has no preconditions. The verifier knows the type of what it gives, and of what lies at these offsets
    // in it: such memory is read without a helper, and reads as 0 where it cannot be.
    let (len, files) = unsafe {
        let task = bpf_get_current_task_btf().cast::<u8>().cast_const();
        let open: *const u8 = field(task, |o| &raw const o.task_files);
        let table: *const u8 = field(open, |o| &raw const o.files_table);
        let len: u32 = field(table, |o| &raw const o.table_len);
        (len, field::<u64>(table, |o| &raw const o.table_files))
    };
    if descriptor >= len { 0 } else { read_word(files.wrapping_add(u64::from(descriptor) * 8), 0) }
}

/// A field of a structure whose type the verifier knows.
///
/// # Safety
/// It lies at that offset.
#[inline(always)]
unsafe fn field<T>(base: *const u8, offset: impl Fn(&TransferOffsets) -> *const u32) -> T {
    // SAFETY: as the caller promises.
    unsafe { core::ptr::read_volatile(base.add(setting(offset) as usize).cast()) }
}

/// Its [`FileKind`].
#[inline(always)]
pub(crate) fn kind(file: u64) -> u32 {
    /// By the four bits of `S_IFMT`: a table, of whose entries the verifier knows nothing.
    static KINDS: [u8; 16] = {
        let mut kinds = [FileKind::Other as u8; 16];
        kinds[0x1] = FileKind::Pipe as u8;
        kinds[0x2] = FileKind::Character as u8;
        kinds[0x4] = FileKind::Directory as u8;
        kinds[0x6] = FileKind::Block as u8;
        kinds[0x8] = FileKind::Regular as u8;
        kinds[0xc] = FileKind::Socket as u8;
        kinds
    };
    if file == 0 {
        return FileKind::None as u32;
    }
    let inode = at(file, |o| &raw const o.file_inode);
    let kind = u32::from(KINDS[(at(inode, |o| &raw const o.inode_mode) >> 12 & 0xf) as usize]);
    let is_nothing = kind == FileKind::Regular as u32
        && at(inode, |o| &raw const o.inode_flags) as u32 & S_ANON_INODE != 0;
    if is_nothing { FileKind::Other as u32 } else { kind }
}

/// Puts the file's number and names into a record, from the file's own up to that below the root.
#[inline(always)]
pub(crate) fn tell(transfer: &mut Transfer, file: u64) {
    transfer.inode = at(at(file, |o| &raw const o.file_inode), |o| &raw const o.inode_number);
    transfer.is_cut = 1;
    let mut dentry = at(file, |o| &raw const o.file_dentry);
    let mut mount = at(file, |o| &raw const o.file_mount) - u64::from(setting(|o| &raw const o.mount_inner));
    let mut step = 0;
    while step < FILE_STEPS {
        step += 1;
        if dentry == at(mount, |o| &raw const o.mount_root) {
            let parent = at(mount, |o| &raw const o.mount_parent);
            if parent == mount {
                transfer.is_cut = 0;
                return;
            }
            dentry = at(mount, |o| &raw const o.mount_point);
            mount = parent;
            continue;
        }
        if !push(transfer, at(dentry, |o| &raw const o.dentry_name)) {
            return;
        }
        let parent = at(dentry, |o| &raw const o.dentry_parent);
        if parent == dentry {
            (transfer.is_cut, transfer.is_nameless) = (0, 1);
            return;
        }
        dentry = parent;
    }
}

/// Puts a name behind the others, if there is room.
#[inline(always)]
fn push(transfer: &mut Transfer, name: u64) -> bool {
    const { assert!(FILE_NAMES >= 2 * NAME) };
    let len = forgotten(&transfer.name_bytes) as usize;
    if len >= FILE_NAMES - NAME {
        return false;
    }
    // SAFETY: there are `NAME` bytes of room behind `len`; the helper checks the source.
    let copied = unsafe {
        bpf_probe_read_kernel_str(transfer.names.as_mut_ptr().add(len).cast(), NAME as u32, name as *const _)
    };
    if copied <= 0 {
        return false;
    }
    transfer.name_bytes = len as u32 + copied as u32;
    true
}
