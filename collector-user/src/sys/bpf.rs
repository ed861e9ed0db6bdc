//! The few commands of `bpf(2)` that maps of other programs are read with, and how such commands are called. Numbers and layouts: `enum bpf_cmd` and
//! `union bpf_attr` in `include/uapi/linux/bpf.h`; the kernel takes what is behind a shorter structure for zeros.

use std::ffi::{CStr, c_long};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd};

const MAP_UPDATE_ELEM: c_long = 2;
const MAP_DELETE_ELEM: c_long = 3;
const OBJ_GET: c_long = 7;
const MAP_GET_NEXT_ID: c_long = 12;
const MAP_GET_FD_BY_ID: c_long = 14;
const OBJ_GET_INFO_BY_FD: c_long = 15;

/// An element of a map.
#[repr(C)]
#[derive(Default)]
struct Element {
    map: u32,
    zero: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// A path at which something is pinned.
#[repr(C)]
#[derive(Default)]
struct Pinned {
    path: u64,
    fd: u32,
    flags: u32,
}

/// The number of a map.
#[repr(C)]
#[derive(Default)]
struct Numbered {
    id: u32,
    next: u32,
    flags: u32,
}

/// Where the kernel is to write what it knows of an object.
#[repr(C)]
struct Asked {
    fd: u32,
    len: u32,
    info: u64,
}

/// The beginning of `struct bpf_map_info`.
#[repr(C)]
#[derive(Default)]
struct MapInfo {
    numbers: [u32; 6],
    name: [u8; 16],
}

/// A descriptor of its own of what is pinned at a path, a map or another BPF object. Minimum kernel: 4.4.
pub(crate) fn pinned(path: &CStr) -> io::Result<OwnedFd> {
    let mut attributes = Pinned { path: path.as_ptr() as u64, ..Pinned::default() };
    // SAFETY: the path is a valid text up to its NUL for as long as the call takes, and the kernel writes nothing.
    let fd = unsafe { call(OBJ_GET, &mut attributes)? };
    // SAFETY: the call gave a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A descriptor of its own of the map with a number. Minimum kernel: 4.13.
pub(crate) fn map_by_id(id: u32) -> io::Result<OwnedFd> {
    // SAFETY: it has no pointer, and the kernel writes nothing.
    let fd = unsafe { call(MAP_GET_FD_BY_ID, &mut Numbered { id, ..Numbered::default() })? };
    // SAFETY: the call gave a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The number of the map whose number follows another one; an error of kind [`io::ErrorKind::NotFound`] behind the last. Minimum kernel: 4.13.
pub(crate) fn map_after(id: u32) -> io::Result<u32> {
    let mut numbered = Numbered { id, ..Numbered::default() };
    // SAFETY: it has no pointer, and the kernel writes the number into the structure.
    unsafe { call(MAP_GET_NEXT_ID, &mut numbered)? };
    Ok(numbered.next)
}

/// What a map is called, which may be nothing. Minimum kernel: 4.15.
pub(crate) fn map_name(map: impl AsFd) -> io::Result<Vec<u8>> {
    let mut info = MapInfo::default();
    let (fd, len) = (map.as_fd().as_raw_fd().cast_unsigned(), size_of::<MapInfo>() as u32);
    let mut asked = Asked { fd, len, info: &raw mut info as u64 };
    // SAFETY: the kernel writes as much as is said to where `info` is, which nothing else looks at meanwhile.
    unsafe { call(OBJ_GET_INFO_BY_FD, &mut asked)? };
    Ok(info.name.into_iter().take_while(|byte| *byte != 0).collect())
}

/// A descriptor of its own of what a descriptor of this process is of.
pub(crate) fn duplicate(number: u32) -> io::Result<OwnedFd> {
    // SAFETY: it has no pointer; of a number that is no descriptor the kernel says so.
    let fd = unsafe { libc::fcntl(number.cast_signed(), libc::F_DUPFD_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call gave a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Puts a value of four bytes into a map whose keys have four bytes.
pub(crate) fn set_element(map: impl AsFd, key: u32, value: u32) -> io::Result<()> {
    let (key, value) = (&raw const key as u64, &raw const value as u64);
    let map = map.as_fd().as_raw_fd().cast_unsigned();
    // SAFETY: both pointers are valid for the call. Where the map's keys or values are longer, the kernel reads beyond
    // them: the caller has looked at its type, and those of a perf event array have four bytes each.
    unsafe { call(MAP_UPDATE_ELEM, &mut Element { map, key, value, ..Element::default() })? };
    Ok(())
}

/// Takes the value of a key of four bytes out of a map.
pub(crate) fn delete_element(map: impl AsFd, key: u32) -> io::Result<()> {
    let (map, key) = (map.as_fd().as_raw_fd().cast_unsigned(), &raw const key as u64);
    // SAFETY: as above.
    unsafe { call(MAP_DELETE_ELEM, &mut Element { map, key, ..Element::default() })? };
    Ok(())
}

/// Gives what the kernel returns.
///
/// # Safety
/// The attributes must be those of the command, and pointers in them be valid for what the command does.
pub(super) unsafe fn call<A>(command: c_long, attributes: &mut A) -> io::Result<i32> {
    // SAFETY: the structure is as long as is said; the rest is the caller's word.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<A>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}
