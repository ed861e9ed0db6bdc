//! What is known of a mapped file in, JSON of its symbols and of its version out, as `PerfView` reads it
//! (`src/TraceEvent/Parsers/UniversalSystemTraceEventParser.cs` of microsoft/perfview): of each sort of file it takes other members, and
//! leaves out those that it does not know.

use collector_common::record::{ExportMachine, ModuleDetails, ModuleMapping};
use serde_json::{Map, Value, json};

/// Symbols and version of the file of a mapping, whose start is linked for an address.
pub(super) fn descriptions(machine: &ExportMachine, mapping: &ModuleMapping, linked: u64) -> [String; 2] {
    let unknown = ModuleDetails::default();
    let details = machine.details(mapping.module).unwrap_or(&unknown);
    let [linked, offset] = [linked, mapping.file_offset.0].map(|number| format!("{number:#x}"));
    if details.version.is_some() || details.pdb.is_some() || details.perf_map.is_some() {
        let mut symbols = image(details);
        symbols.insert("p_vaddr".to_owned(), json!(linked));
        symbols.insert("p_offset".to_owned(), json!(offset));
        let version =
            details.version.as_ref().map_or_else(|| json!({}), |version| json!({ "version": version }));
        return [Value::Object(symbols).to_string(), version.to_string()];
    }
    let link = details.debug_link.as_ref();
    let link = link.map(|link| format!(r#""debug_link":{},"#, json!(link.name))).unwrap_or_default();
    let build_id = machine.module(mapping.module).build_id;
    let build_id = build_id.map(|id| format!(r#""build_id":"{id}","#)).unwrap_or_default();
    let package = details.package.clone().unwrap_or_else(|| "{}".to_owned());
    let symbols = format!(r#"{{"type":"ELF",{link}{build_id}"p_vaddr":"{linked}","p_offset":"{offset}"}}"#);
    [symbols, package]
}

/// Symbols of an image of Windows or .NET. The signature of a PDB is a GUID, that of a map mere bytes. Numbers have 31 bits in the reader.
fn image(details: &ModuleDetails) -> Map<String, Value> {
    let mut about = Map::from_iter([("type".to_owned(), json!("PE"))]);
    let mut add = |name: &str, value: Value| about.insert(name.to_owned(), value);
    let number = |number: u32| json!(number.min(i32::MAX.cast_unsigned()));
    if let Some(pdb) = &details.pdb {
        add("name", json!(pdb.path));
        add("age", number(pdb.age));
        add("signature", json!(pdb.signature.to_string().to_lowercase()));
    }
    if let Some(map) = &details.perf_map {
        let signature = map.signature.map(|byte| format!("{byte:02x}"));
        add("perfmap_signature", json!(signature.concat()));
        add("perfmap_version", number(map.version));
        add("perfmap_name", json!(map.path));
    }
    about
}
