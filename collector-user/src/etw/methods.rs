//! What .NET's runtime tells of the code that it has made: which method lies where, from when to when, and of which file.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use collector_common::event::Utf16Text;
use collector_common::ids::{Nanos, Pid};
use collector_common::intern::{InternedStrings, Seeded, StringId};
use windows_etw::decode::clr::{ClrEvent, NamedMethod};

use super::name;

/// Methods that are kept, and modules.
const MOST: usize = 1 << 22;

/// Code of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Method {
    pub(super) pid: Pid,
    /// The runtime's number of the module.
    module: u64,
    pub(super) start: u64,
    pub(super) size: u32,
    /// As `System.Threading.Thread.Sleep`.
    pub(super) name: StringId,
    /// With what it takes and returns.
    pub(super) signature: StringId,
    /// When it was told of, which says whose the process's number was.
    pub(super) told: Nanos,
    /// None if it was there before it was told of.
    pub(super) since: Option<Nanos>,
    pub(super) until: Option<Nanos>,
}

/// All methods of a trace.
#[derive(Debug, Default)]
pub(super) struct Methods {
    strings: InternedStrings,
    code: Vec<Method>,
    /// Those that are there, by where they begin.
    there: HashMap<Pid, HashMap<u64, usize, Seeded>>,
    /// Paths of modules.
    modules: HashMap<(Pid, u64), StringId>,
    /// Kept for its memory.
    text: String,
    left_out: u64,
}

impl Methods {
    /// Takes an event; those that tell nothing of code are passed over.
    pub(super) fn take(&mut self, event: &ClrEvent<'_>, pid: Pid, at: Nanos) {
        match event {
            ClrEvent::NamedMethodLoad(method) => self.load(method, pid, at),
            ClrEvent::NamedMethodDcStart(method) | ClrEvent::NamedMethodDcStop(method) => {
                self.meet(method, pid, at);
            }
            ClrEvent::NamedMethodUnload(method) => {
                self.meet(method, pid, at);
                self.remove(pid, method.start, at);
            }
            ClrEvent::MethodUnload(method) => self.remove(pid, method.start, at),
            ClrEvent::ModuleLoad(module)
            | ClrEvent::ModuleUnload(module)
            | ClrEvent::ModuleDcStart(module)
            | ClrEvent::ModuleDcStop(module) => self.module(pid, module.module, module.il_path),
            ClrEvent::DomainModuleLoad(module)
            | ClrEvent::DomainModuleDcStart(module)
            | ClrEvent::DomainModuleDcStop(module) => self.module(pid, module.module, module.il_path),
            _ => {}
        }
    }

    /// A number is another process's from now on.
    pub(super) fn forget(&mut self, pid: Pid) {
        self.there.remove(&pid);
    }

    pub(super) fn all(&self) -> &[Method] {
        &self.code
    }

    pub(super) fn text(&self, id: StringId) -> &str {
        self.strings.get(id)
    }

    /// The path of the file that a method is of.
    pub(super) fn path(&self, method: &Method) -> Option<StringId> {
        self.modules.get(&(method.pid, method.module)).copied()
    }

    /// What there was no room for.
    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Code is made. What was there is gone.
    fn load(&mut self, method: &NamedMethod<'_>, pid: Pid, at: Nanos) {
        self.remove(pid, method.start, at);
        self.add(method, pid, at, Some(at));
    }

    fn meet(&mut self, method: &NamedMethod<'_>, pid: Pid, at: Nanos) {
        let known = self.there.get(&pid).and_then(|there| there.get(&method.start));
        if known.and_then(|index| self.code.get(*index)).is_none_or(|known| known.size != method.size) {
            self.add(method, pid, at, None);
        }
    }

    fn add(&mut self, method: &NamedMethod<'_>, pid: Pid, told: Nanos, since: Option<Nanos>) {
        if method.size == 0 {
            return;
        }
        if self.code.len() >= MOST {
            self.left_out += 1;
            return;
        }
        let (class, dot) = (method.namespace, if method.namespace.as_bytes().is_empty() { "" } else { "." });
        let called = self.intern(format_args!("{class}{dot}{}", method.name));
        let signature = self.intern(format_args!("{}", method.signature));
        self.there.entry(pid).or_default().insert(method.start, self.code.len());
        self.code.push(Method {
            pid,
            module: method.module,
            start: method.start,
            size: method.size,
            name: called,
            signature,
            told,
            since,
            until: None,
        });
    }

    fn intern(&mut self, text: fmt::Arguments<'_>) -> StringId {
        self.text.clear();
        // Nothing fails that writes to memory.
        let _ = self.text.write_fmt(text);
        self.strings.intern(name(&self.text))
    }

    fn remove(&mut self, pid: Pid, start: u64, at: Nanos) {
        let known = self.there.get_mut(&pid).and_then(|there| there.remove(&start));
        if let Some(method) = known.and_then(|index| self.code.get_mut(index)) {
            method.until = Some(at);
        }
    }

    fn module(&mut self, pid: Pid, module: u64, path: Utf16Text<'_>) {
        let path = path.to_string();
        if path.is_empty() {
            return;
        }
        if self.modules.len() >= MOST {
            self.left_out += 1;
            return;
        }
        let path = self.strings.intern(name(&path));
        self.modules.insert((pid, module), path);
    }
}

#[cfg(test)]
mod tests {
    use collector_common::event::ByteOrder;
    use windows_etw::decode::clr::Module;

    use super::*;

    fn units(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    /// What was there before the recording is told when its process ends, as of methods and files that go.
    #[test]
    fn a_process_that_ends_names_what_it_had() {
        let [namespace, name, signature, path] = ["A.B", "C", "void  ()", r"C:\b.dll"].map(units);
        let text = |bytes| Utf16Text::new(bytes, ByteOrder::Little);
        let method = NamedMethod {
            method: 1,
            module: 9,
            start: 0x1000,
            size: 16,
            token: 1,
            flags: 0,
            namespace: text(&namespace),
            name: text(&name),
            signature: text(&signature),
            runtime: None,
            rejit: None,
        };
        let module = Module {
            module: 9,
            assembly: 1,
            flags: 0,
            reserved: 0,
            il_path: text(&path),
            native_path: text(&[]),
            runtime: None,
            managed_pdb: None,
            managed_pdb_age: None,
            managed_pdb_path: None,
            native_pdb: None,
            native_pdb_age: None,
            native_pdb_path: None,
        };
        let mut methods = Methods::default();
        methods.take(&ClrEvent::NamedMethodUnload(method), Pid(7), Nanos(50));
        methods.take(&ClrEvent::ModuleUnload(module), Pid(7), Nanos(51));
        let [method] = methods.all() else { panic!("{methods:?}") };
        assert_eq!((method.since, method.until), (None, Some(Nanos(50))));
        let path = methods.path(method).map(|path| methods.text(path));
        assert_eq!((methods.text(method.name), path), ("A.B.C", Some(r"C:\b.dll")));
    }
}
