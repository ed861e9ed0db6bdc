//! What aya does not know of programs: those at many functions at once, and that one is told something of what it is attached
//! to. Source of the semantics: `include/uapi/linux/bpf.h`.

use std::ffi::{CStr, c_long};
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use aya::programs::ProgramError;
use aya_obj::generated::{bpf_attr, bpf_cmd, bpf_link_info, bpf_prog_info, bpf_prog_type};
use aya_obj::{Function, VerifierLog};
use bytemuck::{Pod, Zeroable};

use super::bpf::call;

/// Where such a program is at: `enum bpf_attach_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Functions {
    /// `BPF_TRACE_KPROBE_MULTI`: functions of the kernel. Minimum kernel: 5.18.
    Kernel = 42,
    /// `BPF_TRACE_UPROBE_SESSION`: functions of a file, and those of their returns that the program asks for. Minimum kernel: 6.13.
    File = 57,
}

/// `BPF_F_KPROBE_MULTI_RETURN`.
const AT_RETURN: u32 = 1;

/// Loads the types of an object, which tell the kernel of callbacks.
pub(crate) fn load_types(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut attributes = none();
    // SAFETY: this is the part of the union that loads types; all of it is zero.
    let load = unsafe { &mut attributes.__bindgen_anon_7 };
    load.btf = bytes.as_ptr() as u64;
    load.btf_size = bytes.len() as u32;
    // SAFETY: the bytes live until the call returns.
    unsafe { bpf(bpf_cmd::BPF_BTF_LOAD, &mut attributes) }
}

/// Room for what the verifier says of a program that it refuses.
const LOG_BYTES: usize = 1 << 20;

/// Loads a program.
///
/// # Errors
/// With what the verifier says.
pub(crate) fn load_program(
    functions: Functions,
    name: &str,
    function: &Function,
    license: &CStr,
    types: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd, ProgramError> {
    let (callbacks, lines) = (function.func_info.func_info_bytes(), function.line_info.line_info_bytes());
    let mut attributes = none();
    // SAFETY: this is the part of the union that loads programs; all of it is zero.
    let load = unsafe { &mut attributes.__bindgen_anon_3 };
    for (to, byte) in load.prog_name.iter_mut().take(15).zip(name.bytes()) {
        *to = byte.cast_signed();
    }
    load.prog_type = bpf_prog_type::BPF_PROG_TYPE_KPROBE as u32;
    load.expected_attach_type = functions as u32;
    load.insns = function.instructions.as_ptr() as u64;
    load.insn_cnt = function.instructions.len() as u32;
    load.license = license.as_ptr() as u64;
    if let Some(types) = types {
        load.prog_btf_fd = types.as_raw_fd().cast_unsigned();
        load.func_info = callbacks.as_ptr() as u64;
        load.func_info_cnt = function.func_info.len() as u32;
        load.func_info_rec_size = function.func_info_rec_size as u32;
        load.line_info = lines.as_ptr() as u64;
        load.line_info_cnt = function.line_info.len() as u32;
        load.line_info_rec_size = function.line_info_rec_size as u32;
    }
    // SAFETY: what the attributes point to lives until the call returns, and is as long as they say.
    let loaded = unsafe { bpf(bpf_cmd::BPF_PROG_LOAD, &mut attributes) };
    loaded.map_err(|io_error| {
        let mut text = vec![0_u8; LOG_BYTES];
        // SAFETY: as above.
        let load = unsafe { &mut attributes.__bindgen_anon_3 };
        (load.log_buf, load.log_size, load.log_level) = (text.as_mut_ptr() as u64, LOG_BYTES as u32, 1);
        // SAFETY: as above. Once more, for the text alone.
        drop(unsafe { bpf(bpf_cmd::BPF_PROG_LOAD, &mut attributes) });
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let verifier_log = VerifierLog::new(String::from_utf8_lossy(text).into_owned());
        ProgramError::LoadError { io_error, verifier_log }
    })
}

/// Attaches a program to functions of a file: to offsets in it, with a cookie for each.
pub(crate) fn link_to_file(
    program: BorrowedFd<'_>,
    path: &CStr,
    functions: &[(u64, u64)],
) -> io::Result<OwnedFd> {
    let (offsets, cookies): (Vec<u64>, Vec<u64>) = functions.iter().copied().unzip();
    let mut attributes = none();
    // SAFETY: this is the part of the union that makes links; all of it is zero.
    let link = unsafe { &mut attributes.link_create };
    link.__bindgen_anon_1.prog_fd = program.as_raw_fd().cast_unsigned();
    link.attach_type = Functions::File as u32;
    // SAFETY: as above, of links of this type.
    let told = unsafe { &mut link.__bindgen_anon_3.uprobe_multi };
    told.path = path.as_ptr() as u64;
    told.offsets = offsets.as_ptr() as u64;
    told.cookies = cookies.as_ptr() as u64;
    told.cnt = offsets.len() as u32;
    // SAFETY: what the attributes point to lives until the call returns, and is as long as they say.
    unsafe { bpf(bpf_cmd::BPF_LINK_CREATE, &mut attributes) }
}

/// Attaches a program to functions of the kernel, to their begins or to their returns: by their addresses, with a cookie for all.
pub(crate) fn link_to_kernel(
    program: BorrowedFd<'_>,
    addresses: &[u64],
    cookie: u64,
    is_return: bool,
) -> io::Result<OwnedFd> {
    let cookies = vec![cookie; addresses.len()];
    let mut attributes = none();
    // SAFETY: this is the part of the union that makes links; all of it is zero.
    let link = unsafe { &mut attributes.link_create };
    link.__bindgen_anon_1.prog_fd = program.as_raw_fd().cast_unsigned();
    link.attach_type = Functions::Kernel as u32;
    // SAFETY: as above, of links of this type.
    let told = unsafe { &mut link.__bindgen_anon_3.kprobe_multi };
    told.flags = if is_return { AT_RETURN } else { 0 };
    told.addrs = addresses.as_ptr() as u64;
    told.cookies = cookies.as_ptr() as u64;
    told.cnt = addresses.len() as u32;
    // SAFETY: what the attributes point to lives until the call returns, and is as long as they say.
    unsafe { bpf(bpf_cmd::BPF_LINK_CREATE, &mut attributes) }
}

/// Attaches a program to the tracepoint of a perf event, with a cookie. Minimum kernel: 5.15.
pub(crate) fn link_to_event(
    program: BorrowedFd<'_>,
    event: BorrowedFd<'_>,
    cookie: u64,
) -> io::Result<OwnedFd> {
    /// `BPF_PERF_EVENT` of `enum bpf_attach_type`.
    const OF_EVENT: u32 = 41;
    let mut attributes = none();
    // SAFETY: this is the part of the union that makes links; all of it is zero.
    let link = unsafe { &mut attributes.link_create };
    link.__bindgen_anon_1.prog_fd = program.as_raw_fd().cast_unsigned();
    link.__bindgen_anon_2.target_fd = event.as_raw_fd().cast_unsigned();
    link.attach_type = OF_EVENT;
    link.__bindgen_anon_3.perf_event.bpf_cookie = cookie;
    // SAFETY: the attributes point to nothing.
    unsafe { bpf(bpf_cmd::BPF_LINK_CREATE, &mut attributes) }
}

/// What the kernel tells of a program.
pub(crate) fn program_info(program: BorrowedFd<'_>) -> io::Result<bpf_prog_info> {
    // SAFETY: plain numbers.
    let mut info: bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut attributes = none();
    // SAFETY: this is the part of the union that asks for information; all of it is zero.
    let asked = unsafe { &mut attributes.info };
    asked.bpf_fd = program.as_raw_fd().cast_unsigned();
    asked.info = (&raw mut info) as u64;
    asked.info_len = size_of::<bpf_prog_info>() as u32;
    // SAFETY: the kernel writes at most as much as it is told there is room for.
    unsafe { call(bpf_cmd::BPF_OBJ_GET_INFO_BY_FD as c_long, &mut attributes) }?;
    Ok(info)
}

/// What the kernel tells of a link to its functions: `struct bpf_link_info`, with the part of its union that is `kprobe_multi`. A kernel
/// that has less of it leaves the rest as it was.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
struct FunctionsLink {
    /// `enum bpf_link_type`.
    kind: u32,
    id: u32,
    program: u32,
    padding: u32,
    addresses: u64,
    count: u32,
    flags: u32,
    missed: u64,
    cookies: u64,
}

const _: () = {
    assert!(offset_of!(FunctionsLink, addresses) == offset_of!(bpf_link_info, __bindgen_anon_1));
    assert!(offset_of!(FunctionsLink, missed) == 32);
    assert!(size_of::<FunctionsLink>() <= size_of::<bpf_link_info>());
};

impl FunctionsLink {
    /// `BPF_LINK_TYPE_KPROBE_MULTI`.
    const KIND: u32 = 8;

    fn missed(&self) -> Option<u64> {
        (self.kind == Self::KIND).then_some(self.missed)
    }
}

/// How often the kernel came to a function of a link of [`link_to_kernel`] and did not run the program: it kept account of as many calls
/// already as it has room for, or was in another probe. 0 before Linux 6.7, which does not tell.
///
/// # Errors
/// When it is no such link, or the kernel is older than 5.8.
pub(crate) fn missed_of_link(link: BorrowedFd<'_>) -> io::Result<u64> {
    let mut info = FunctionsLink::default();
    let mut attributes = none();
    // SAFETY: this is the part of the union that asks for information; all of it is zero.
    let asked = unsafe { &mut attributes.info };
    asked.bpf_fd = link.as_raw_fd().cast_unsigned();
    asked.info = (&raw mut info) as u64;
    asked.info_len = size_of::<FunctionsLink>() as u32;
    // SAFETY: the kernel writes at most as much as it is told there is room for.
    unsafe { call(bpf_cmd::BPF_OBJ_GET_INFO_BY_FD as c_long, &mut attributes) }?;
    info.missed().ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

fn none() -> bpf_attr {
    // SAFETY: a union of plain numbers.
    unsafe { std::mem::zeroed() }
}

/// A command that gives a descriptor.
///
/// # Safety
/// What the attributes point to is as the command has it.
unsafe fn bpf(command: bpf_cmd, attributes: &mut bpf_attr) -> io::Result<OwnedFd> {
    // SAFETY: as the caller promises.
    let fd = unsafe { call(command as c_long, attributes) }?;
    // SAFETY: the call gave a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that the kernel writes, of as many as it has.
    fn link(words: &[u32]) -> FunctionsLink {
        let mut link = FunctionsLink::default();
        bytemuck::cast_slice_mut(bytemuck::bytes_of_mut(&mut link))[..words.len()].copy_from_slice(words);
        link
    }

    #[test]
    fn misses_are_read_where_the_kernel_has_them() {
        // Type, id, program and a gap; addresses (none were asked for), 3 functions, flags of returns; misses; cookies.
        let words = [8, 21, 7, 0, 0, 0, 3, 1, 17, 1, 0, 0];
        assert_eq!(link(&words).missed(), Some((1 << 32) + 17));
        assert_eq!(link(&words[..8]).missed(), Some(0), "a kernel that does not tell");
        // `BPF_LINK_TYPE_PERF_EVENT`
        assert_eq!(link(&[7, 21, 7, 0, 0, 0, 3, 1, 17, 0]).missed(), None);
    }
}
