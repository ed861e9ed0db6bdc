//! A program at many functions at once, of a file or of the kernel. Aya neither loads nor attaches such programs.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};

use aya::Ebpf;
use aya::maps::Map;
use aya_obj::generated::bpf_prog_info;
use aya_obj::{Function, Object, Program};

use super::error::LoadError;
use super::load::refused;
use crate::sys::bpf_program::{
    Functions, link_to_file, link_to_kernel, load_program, load_types, program_info,
};

/// A loaded program.
pub(super) struct MultiProbe {
    program: OwnedFd,
}

impl MultiProbe {
    /// Loads the program `name` of an object whose maps aya has made.
    ///
    /// # Errors
    /// When the object is not what aya loaded, or the kernel refuses.
    pub(super) fn load(
        ebpf: &Ebpf,
        object: &[u8],
        functions: Functions,
        name: &str,
    ) -> Result<Self, LoadError> {
        let object = prepared(ebpf, object, name)
            .map_err(|error| LoadError::step(format!("program {name} could not be put together"), error))?;
        let Prepared { program, function, types } = &object;
        let types = types.as_ref().map(|types| types.as_fd());
        let loaded = load_program(functions, name, function, &program.license, types);
        Ok(Self { program: loaded.map_err(|error| refused(name, error))? })
    }

    /// Attaches the program to functions of a file, each an offset in it with what the program is told of it. It is detached
    /// when what this gives is dropped.
    ///
    /// # Errors
    /// When the kernel refuses, as for an offset without an instruction that it can put aside.
    pub(super) fn attach_to_file(&self, file: &File, functions: &[(u64, u64)]) -> io::Result<OwnedFd> {
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        link_to_file(self.program.as_fd(), &path, functions)
    }

    /// Attaches the program to functions of the kernel, at these addresses, or to their returns; `cookie` is what the program is
    /// told. It is detached when what this gives is dropped.
    ///
    /// # Errors
    /// When the kernel refuses, as for an address that is not the begin of a function that can be traced.
    pub(super) fn attach_to_kernel(
        &self,
        addresses: &[u64],
        cookie: u64,
        is_return: bool,
    ) -> io::Result<OwnedFd> {
        link_to_kernel(self.program.as_fd(), addresses, cookie, is_return)
    }

    /// Time in the program in nanoseconds, and runs.
    pub(super) fn cost(&self) -> [u64; 2] {
        self.info().map_or([0; 2], |info| [info.run_time_ns, info.run_cnt])
    }

    /// How often the kernel did not run it, because a program ran on the same CPU already.
    pub(super) fn left_out(&self) -> u64 {
        self.info().map_or(0, |info| info.recursion_misses)
    }

    fn info(&self) -> Option<bpf_prog_info> {
        program_info(self.program.as_fd()).ok()
    }
}

/// A program as the kernel takes it.
struct Prepared {
    program: Program,
    function: Function,
    types: Option<OwnedFd>,
}

/// Takes one program of an object, and puts the maps that aya has made into it.
fn prepared(ebpf: &Ebpf, object: &[u8], name: &str) -> io::Result<Prepared> {
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
    let program = object.programs.remove(name).ok_or(io::ErrorKind::NotFound)?;
    let function = object.functions.remove(&program.function_key()).ok_or(io::ErrorKind::NotFound)?;
    Ok(Prepared { program, function, types })
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
    | Map::Queue(data)
    | Map::RingBuf(data)) = map
    else {
        return None;
    };
    Some(data.fd().as_fd().as_raw_fd())
}
