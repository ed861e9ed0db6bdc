//! Programs at tracepoints, attached while it is recorded.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

use aya::Ebpf;
use aya::programs::RawTracePoint;
use aya::programs::raw_trace_point::RawTracePointLinkId;

use super::error::LoadError;
use super::load;

/// Some programs.
pub(super) struct Attached {
    /// Each program's name, with its tracepoint.
    programs: Vec<(&'static str, &'static str)>,
    /// Each program's name and where it is attached.
    links: Vec<(&'static str, RawTracePointLinkId)>,
}

impl Attached {
    /// Of programs with their tracepoints; they are neither loaded nor attached yet.
    pub(super) fn new(programs: &[(&'static str, &'static str)]) -> Self {
        Self { programs: programs.to_vec(), links: Vec::new() }
    }

    /// Loads them into the kernel.
    pub(super) fn load(&self, ebpf: &mut Ebpf) -> Result<(), LoadError> {
        self.programs.iter().try_for_each(|(name, _)| {
            let program = load::program::<RawTracePoint>(ebpf, name)?;
            program.load().map_err(|error| load::refused(name, error))
        })
    }

    pub(super) fn start(&mut self, ebpf: &mut Ebpf) -> io::Result<()> {
        for &(name, tracepoint) in &self.programs {
            let program = load::program::<RawTracePoint>(ebpf, name).map_err(io::Error::other)?;
            self.links.push((name, program.attach(tracepoint).map_err(io::Error::other)?));
        }
        Ok(())
    }

    pub(super) fn stop(&mut self, ebpf: &mut Ebpf) -> io::Result<()> {
        for (name, link) in self.links.drain(..) {
            let program = load::program::<RawTracePoint>(ebpf, name).map_err(io::Error::other)?;
            program.detach(link).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Time in the programs in nanoseconds, and runs.
    pub(super) fn cost(&self, ebpf: &mut Ebpf) -> [u64; 2] {
        let mut cost = [0; 2];
        for (name, _) in &self.programs {
            let program = load::program::<RawTracePoint>(ebpf, name).ok();
            if let Some(info) = program.and_then(|program| program.info().ok()) {
                cost[0] += info.run_time().as_nanos() as u64;
                cost[1] += info.run_count();
            }
        }
        cost
    }
}

/// How often the kernel did not run a program because it ran on the same CPU already: `bpf_prog_info::recursion_misses`. 0
/// before Linux 5.12, which does not count it.
///
/// # Errors
/// When the kernel does not tell.
pub(super) fn left_out(ebpf: &Ebpf, name: &str) -> io::Result<u64> {
    let program: Option<&RawTracePoint> = ebpf.program(name).and_then(|program| program.try_into().ok());
    let program = program.ok_or(io::ErrorKind::NotFound)?;
    let fd = program.fd().map_err(io::Error::other)?.as_fd().as_raw_fd();
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}"))?;
    let misses = text.lines().find_map(|line| line.strip_prefix("recursion_misses:"));
    Ok(misses.and_then(|number| number.trim().parse().ok()).unwrap_or(0))
}
