//! How the machine is built, as the feature sections of a `perf.data` say it.

use super::section::{list, string};
use crate::perf::fields::Fields;

/// Cores and threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuTopology {
    /// CPUs that share a package, as lists such as `0-7`.
    pub cores: Vec<String>,
    /// CPUs that share a core.
    pub threads: Vec<String>,
    /// Core and socket of each CPU; empty in files of `perf` before Linux 4.0.
    pub core_and_socket: Vec<(u32, u32)>,
    /// CPUs that share a die; empty in files of `perf` before Linux 5.3.
    pub dies: Vec<String>,
}

pub(super) fn cpu_topology(fields: &mut Fields<'_>, cpus: u32) -> Option<CpuTopology> {
    let strings = |fields: &mut Fields<'_>| {
        let count = fields.u32()?;
        list(fields, u64::from(count), string)
    };
    let (cores, threads) = (strings(fields)?, strings(fields)?);
    let core_and_socket = list(fields, u64::from(cpus), |fields| Some((fields.u32()?, fields.u32()?)));
    let dies = strings(fields);
    Some(CpuTopology {
        cores,
        threads,
        core_and_socket: core_and_socket.unwrap_or_default(),
        dies: dies.unwrap_or_default(),
    })
}

/// A node of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumaNode {
    /// Its number.
    pub node: u32,
    /// Kilobytes.
    pub total: u64,
    /// Kilobytes that were free.
    pub free: u64,
    /// Its CPUs, a list such as `0-7`.
    pub cpus: String,
}

pub(super) fn numa_node(fields: &mut Fields<'_>) -> Option<NumaNode> {
    Some(NumaNode { node: fields.u32()?, total: fields.u64()?, free: fields.u64()?, cpus: string(fields)? })
}

/// A cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheLevel {
    /// From 1.
    pub level: u32,
    /// Bytes of a line.
    pub line_size: u32,
    /// Sets.
    pub sets: u32,
    /// Ways.
    pub ways: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Its size, such as `32K`.
    pub size: String,
    /// The CPUs that share it, a list such as `0-7`.
    pub cpus: String,
}

pub(super) fn cache_level(fields: &mut Fields<'_>) -> Option<CacheLevel> {
    Some(CacheLevel {
        level: fields.u32()?,
        line_size: fields.u32()?,
        sets: fields.u32()?,
        ways: fields.u32()?,
        kind: string(fields)?,
        size: string(fields)?,
        cpus: string(fields)?,
    })
}

/// The blocks of memory of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryNode {
    /// Its number.
    pub node: u64,
    /// How many blocks it has.
    pub size: u64,
    /// A bit for each block that is its own.
    pub blocks: Vec<u64>,
}

/// Which blocks of memory belong to which node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryTopology {
    /// Bytes of a block.
    pub block_size: u64,
    /// The nodes.
    pub nodes: Vec<MemoryNode>,
}

pub(super) fn memory_topology(fields: &mut Fields<'_>) -> Option<MemoryTopology> {
    let (_version, block_size, count) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let nodes = list(fields, count, |fields| {
        let (node, size) = (fields.u64()?, fields.u64()?);
        let bits = fields.u64()?;
        Some(MemoryNode { node, size, blocks: fields.words(bits.div_ceil(64))?.iter().collect() })
    })?;
    Some(MemoryTopology { block_size, nodes })
}
