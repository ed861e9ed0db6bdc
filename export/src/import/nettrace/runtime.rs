//! Events of .NET's runtime in, what they say of code and of their own values out. Their types are not told in traces: they are
//! those of the runtime's manifest (`src/coreclr/vm/ClrEtwAll.man` of dotnet/runtime).

use crate::format::nettrace::{Event, SAMPLER, Value};

/// The runtime's own events, as it goes on.
pub(super) const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// What it tells when it is asked to stop: all that there is by then.
pub(super) const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";

/// What writes the traces.
const WRITER: &str = "Microsoft-DotNETCore-EventPipe";

/// Which of its events a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    is_runtime: bool,
    is_rundown: bool,
}

impl Heard {
    /// Takes an event of a provider, by its number there.
    pub(super) fn take(&mut self, provider: &str, id: u32) {
        self.is_runtime |= matches!(provider, RUNTIME | SAMPLER);
        // `MethodDCStartVerbose`, `MethodDCEndVerbose`, `DCEndComplete`
        self.is_rundown |= provider == RUNDOWN && matches!(id, 143 | 144 | 146);
    }

    /// Whether nothing tells of methods that were compiled before the recording, as the runtime does when it is asked to stop.
    pub(super) fn lacks_rundown(self) -> bool {
        self.is_runtime && !self.is_rundown
    }
}

/// What one of these events says of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Code of a method.
    Method(Method),
    /// A module, by the runtime's number, and the path of its file.
    Module(u64, String),
    /// The process's program with its arguments, as they are separated by spaces.
    Process(String),
}

/// Code of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Method {
    /// The runtime's number of the module.
    pub(super) module: u64,
    pub(super) start: u64,
    pub(super) size: u32,
    /// As `System.Threading.Thread.Sleep`.
    pub(super) name: String,
    /// With what it takes and returns, as the runtime writes it.
    pub(super) signature: String,
}

/// What an event says of code; `None` for one that says nothing of it, an error where its bytes end too early.
pub(super) fn told(provider: &str, id: u32, payload: &[u8]) -> Result<Option<Told>, TooShort> {
    let mut fields = Fields(payload);
    match (provider, id) {
        // `MethodLoadVerbose`, `MethodDCStartVerbose`, `MethodDCEndVerbose`
        (RUNTIME | RUNDOWN, 143) | (RUNDOWN, 144) => method(&mut fields).map(Some),
        // `ModuleLoad`, `ModuleDCStart`, `ModuleDCEnd`
        (RUNTIME, 152) | (RUNDOWN, 153 | 154) => module(&mut fields).map(Some),
        _ => Ok(None),
    }
}

/// The same of an event whose fields the trace describes, as traces do that were made of Windows' own.
pub(super) fn told_by_fields(provider: &str, id: u32, event: &Event<'_>) -> Result<Option<Told>, TooShort> {
    use Value::{Text, Unsigned};
    let is_method = matches!((provider, id), (RUNTIME | RUNDOWN, 143) | (RUNDOWN, 144));
    let is_module = matches!((provider, id), (RUNTIME, 152) | (RUNDOWN, 153 | 154));
    // `ProcessInfo`, since .NET Core 3.1.
    let is_process = (provider, id) == (WRITER, 1);
    if !is_method && !is_module && !is_process {
        return Ok(None);
    }
    let values = event.values().map_err(|_| TooShort)?;
    match &*values {
        [
            _,
            Unsigned(module),
            Unsigned(start),
            Unsigned(size),
            _,
            _,
            Text(class),
            Text(method),
            Text(signature),
            ..,
        ] if is_method => {
            let size = u32::try_from(*size).map_err(|_| TooShort)?;
            let (name, signature) = (full_name(class, method), signature.clone());
            Ok(Some(Told::Method(Method { module: *module, start: *start, size, name, signature })))
        }
        [Unsigned(number), _, _, _, Text(path), ..] if is_module => {
            Ok(Some(Told::Module(*number, path.clone())))
        }
        [Text(command), ..] if is_process => Ok(Some(Told::Process(command.clone()))),
        _ => Err(TooShort),
    }
}

fn full_name(class: &str, method: &str) -> String {
    if class.is_empty() { method.to_owned() } else { format!("{class}.{method}") }
}

fn method(fields: &mut Fields<'_>) -> Result<Told, TooShort> {
    let (_number, module, start) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let (size, _token, _flags) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let (class, method, signature) = (fields.text()?, fields.text()?, fields.text()?);
    let name = full_name(&class, &method);
    Ok(Told::Method(Method { module, start, size, name, signature }))
}

fn module(fields: &mut Fields<'_>) -> Result<Told, TooShort> {
    let (number, _assembly) = (fields.u64()?, fields.u64()?);
    let (_flags, _reserved) = (fields.u32()?, fields.u32()?);
    Ok(Told::Module(number, fields.text()?))
}

/// The bytes that were allocated since the event before, of `GCAllocationTick`; `None` for another event.
pub(super) fn allocated(provider: &str, id: u32, payload: &[u8]) -> Option<u64> {
    const ALLOCATION_TICK: u32 = 10;
    if (provider, id) != (RUNTIME, ALLOCATION_TICK) {
        return None;
    }
    let mut fields = Fields(payload);
    let (amount, _kind) = (fields.u32().ok()?, fields.u32().ok()?);
    // Since version 2 of the event, with the number of the runtime before.
    let _runtime = fields.u16();
    Some(fields.u64().unwrap_or(amount.into()))
}

/// An event whose bytes end before its fields do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooShort;

/// What is left of an event's bytes.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], TooShort> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(TooShort)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn u16(&mut self) -> Result<u16, TooShort> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, TooShort> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, TooShort> {
        self.take().map(u64::from_le_bytes)
    }

    /// UTF-16 up to a unit of 0.
    fn text(&mut self) -> Result<String, TooShort> {
        let mut units = Vec::new();
        loop {
            match self.u16()? {
                0 => return Ok(String::from_utf16_lossy(&units)),
                unit => units.push(unit),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
    }

    /// By hand, after the manifest.
    #[test]
    fn methods_and_modules_are_told_of() {
        let numbers = [1_u64, 2, 0x7f00].map(u64::to_le_bytes).concat();
        let halves = [0x20_u32, 3, 4].map(u32::to_le_bytes).concat();
        let texts = ["My.Class", "Run", "void  ()"].map(wide).concat();
        let mut payload = [numbers, halves, texts].concat();
        let whole = payload.len();
        payload.extend([5, 0]);
        let method = Method {
            module: 2,
            start: 0x7f00,
            size: 0x20,
            name: "My.Class.Run".to_owned(),
            signature: "void  ()".to_owned(),
        };
        for (provider, id) in [(RUNTIME, 143), (RUNDOWN, 143), (RUNDOWN, 144)] {
            assert_eq!(told(provider, id, &payload), Ok(Some(Told::Method(method.clone()))));
        }
        // Code that is thrown away.
        assert_eq!(told(RUNTIME, 144, &payload), Ok(None));
        for len in 0..whole {
            assert_eq!(told(RUNTIME, 143, &payload[..len]), Err(TooShort), "{len}");
        }
        let payload = [[7_u64, 8, 0].map(u64::to_le_bytes).concat(), wide("/app/My.dll")].concat();
        assert_eq!(told(RUNDOWN, 154, &payload), Ok(Some(Told::Module(7, "/app/My.dll".to_owned()))));
    }

    #[test]
    fn allocations_are_counted_in_bytes() {
        let amount = [&104_096_u32.to_le_bytes()[..], &[0; 4], &[3, 0], &104_097_u64.to_le_bytes()].concat();
        assert_eq!(allocated(RUNTIME, 10, &amount), Some(104_097));
        assert_eq!(allocated(RUNTIME, 10, &amount[..8]), Some(104_096));
        assert_eq!(allocated(RUNTIME, 10, &amount[..7]), None);
        assert_eq!(allocated(RUNDOWN, 10, &amount), None);
    }
}
