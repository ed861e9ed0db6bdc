//! A program at many functions of a file at once, which says at the begin of each call whether it wants to see the return
//! (`BPF_TRACE_UPROBE_SESSION`). Aya neither loads nor attaches such programs. Minimum kernel: 6.13.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};

use aya::Ebpf;
use aya::maps::Map;
use aya_obj::Object;
use aya_obj::generated::bpf_prog_info;

use crate::sys::uprobe_session::{link_uprobe_session, load_types, load_uprobe_session, program_info};

/// A loaded program.
pub(super) struct UprobeSession {
    program: OwnedFd,
}

impl UprobeSession {
    /// Loads the program `name` of an object whose maps aya has made.
    ///
    /// # Errors
    /// When the object is not what aya loaded, or the kernel refuses.
    pub(super) fn load(ebpf: &Ebpf, object: &[u8], name: &str) -> io::Result<Self> {
        let mut object = Object::parse(object).map_err(io::Error::other)?;
        let features = aya::features();
        let types = features.btf().map(|features| object.fixup_and_sanitize_btf(features));
        let types = types.transpose().map_err(io::Error::other)?.flatten();
        let types = types.map(|types| load_types(&types.to_bytes())).transpose()?;
        let others = object.programs.iter().filter(|(other, _)| *other != name);
        let others: HashSet<_> = others.map(|(_, program)| program.function_key()).collect();
        object.programs.retain(|other, _| other == name);
        object.functions.retain(|key, _| !others.contains(key));
        let sections = object.functions.keys().map(|(section, _)| *section).collect();
        let maps = std::mem::take(&mut object.maps);
        let made = maps.iter().filter_map(|(name, map)| Some((name.as_str(), fd_of(ebpf.map(name)?)?, map)));
        object.relocate_maps(made, &sections).map_err(io::Error::other)?;
        object.relocate_calls(&sections).map_err(io::Error::other)?;
        object.sanitize_functions(features);
        let program = object.programs.get(name).ok_or(io::ErrorKind::NotFound)?;
        let function = object.functions.get(&program.function_key()).ok_or(io::ErrorKind::NotFound)?;
        let types = types.as_ref().map(|types| types.as_fd());
        Ok(Self { program: load_uprobe_session(name, function, &program.license, types)? })
    }

    /// Attaches the program to functions of a file, each an offset in it with what the program is told of it. It is detached
    /// when what this gives is dropped.
    ///
    /// # Errors
    /// When the kernel refuses, as for an offset without an instruction that it can put aside.
    pub(super) fn attach(&self, file: &File, functions: &[(u64, u64)]) -> io::Result<OwnedFd> {
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        link_uprobe_session(self.program.as_fd(), &path, functions)
    }

    /// Time in the program in nanoseconds, and runs.
    pub(super) fn cost(&self) -> [u64; 2] {
        let info: Option<bpf_prog_info> = program_info(self.program.as_fd()).ok();
        info.map_or([0; 2], |info| [info.run_time_ns, info.run_cnt])
    }
}

/// Of the kinds that the object has.
fn fd_of(map: &Map) -> Option<RawFd> {
    let (Map::Array(data)
    | Map::ArrayOfMaps(data)
    | Map::CgroupArray(data)
    | Map::HashMap(data)
    | Map::LruHashMap(data)
    | Map::PerCpuArray(data)
    | Map::PerCpuHashMap(data)
    | Map::RingBuf(data)) = map
    else {
        return None;
    };
    Some(data.fd().as_fd().as_raw_fd())
}
