//! Descriptions of mapped files in, as JSON; what is known of them out, as far as it can be understood.

use collector_common::ids::BuildId;
use collector_common::record::{ModuleDetails, Pdb, PerfMap, Signature};
use serde_json::Value;

use crate::import::digits::{build_id, bytes};

/// What is known of a mapped file.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub(super) build_id: Option<BuildId>,
    /// An address as linked and where that is in the file.
    pub(super) linked: Option<[u64; 2]>,
    pub(super) details: ModuleDetails,
}

impl File {
    /// Of its symbols and its version. The version of an ELF file is its package.
    pub(super) fn of(symbols: &str, version: &str) -> Self {
        let json: Value = serde_json::from_str(symbols).unwrap_or_default();
        let text = |name: &str| json.get(name)?.as_str();
        let number = |name| u64::from_str_radix(text(name)?.strip_prefix("0x")?, 16).ok();
        let build_id = text("build_id").and_then(build_id);
        let linked = number("p_vaddr").zip(number("p_offset")).map(<[u64; 2]>::from);
        let details = if text("type") == Some("PE") { image(&json, version) } else { elf(version) };
        Self { build_id, linked, details }
    }
}

/// Its debug link would want a checksum, which is not told.
fn elf(version: &str) -> ModuleDetails {
    let package = (!matches!(version, "" | "{}")).then(|| version.to_owned());
    ModuleDetails { package, ..ModuleDetails::default() }
}

fn image(json: &Value, version: &str) -> ModuleDetails {
    let text = |name: &str| json.get(name).and_then(Value::as_str);
    let number =
        |name: &str| json.get(name).and_then(Value::as_u64).and_then(|number| number.try_into().ok());
    let signature = |name: &str| -> Option<[u8; 16]> { bytes(text(name)?)?.try_into().ok() };
    let pdb = || {
        let signature = stored(signature("signature")?);
        Some(Pdb { path: text("name")?.to_owned(), signature, age: number("age").unwrap_or_default() })
    };
    let perf_map = || {
        let signature = signature("perfmap_signature")?;
        let version = number("perfmap_version").unwrap_or_default();
        Some(PerfMap { path: text("perfmap_name")?.to_owned(), signature, version })
    };
    let about: Value = serde_json::from_str(version).unwrap_or_default();
    let version = about.get("version").and_then(Value::as_str).map(str::to_owned);
    ModuleDetails { version, pdb: pdb(), perf_map: perf_map(), ..ModuleDetails::default() }
}

/// A GUID from the order of its digits.
fn stored(guid: [u8; 16]) -> Signature {
    let mut stored = guid;
    stored[..4].reverse();
    stored[4..6].reverse();
    stored[6..8].reverse();
    Signature(stored)
}
