//! A probe as it is written: `uprobe:/usr/lib/x.so:func(arg0:u64, arg1:str)`.
//!
//! - The path is absolute and ends at the first colon behind its last slash (one in parentheses behind a name aside). Where files are
//!   there whose names have colons themselves, it is the longest such.
//! - What follows the function's name in parentheses are arguments; in a name with `::`, a last list without types is part
//!   of the name, as in `ns::f(int)`.
//! - A function may be followed by an offset, `func+0x10`, or be an address as linked, `0x1234`, or a pattern with `*` and
//!   `?`, each of which is the sign itself behind a `\`.

use std::fmt;
use std::path::{Path, PathBuf};

use super::argument::{Argument, parse_list};
use super::error::ProbeError;

/// Forms, by the word that begins them.
const FORMS: [(&str, &str); 5] = [
    ("uprobe", "uprobe:/PATH:FUNCTION(NAME:TYPE, ...)"),
    ("uretprobe", "uretprobe:/PATH:FUNCTION(NAME:TYPE)"),
    ("usdt", "usdt:/PATH:PROVIDER:NAME"),
    ("kprobe", "kprobe:FUNCTION(NAME:TYPE, ...)"),
    ("kretprobe", "kretprobe:FUNCTION(NAME:TYPE)"),
];

/// A place in code that is to be an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// As it was written, without arguments: what the event is called.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// Before or behind the function.
    pub moment: Moment,
    /// What is fetched. Of a marker without a list, all of its own arguments are, as `arg0`, `arg1` and so on.
    pub arguments: Vec<Argument>,
}

/// Where a probe is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a function of a program or library.
    Function {
        /// The file.
        path: PathBuf,
        /// Its function, an address, or a pattern.
        function: String,
        /// Bytes behind the function's start.
        offset: u64,
    },
    /// A marker that a program's author has put there (USDT, `sys/sdt.h`).
    Marker {
        /// The file.
        path: PathBuf,
        /// Who made it.
        provider: String,
        /// What it is called, or a pattern.
        name: String,
    },
    /// In a function of the kernel.
    Kernel {
        /// The function, or a pattern.
        function: String,
        /// Bytes behind the function's start.
        offset: u64,
    },
}

/// When a probe is hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// When the place is reached.
    Entry,
    /// When the function returns.
    Return,
}

impl Probe {
    /// Whether a text is meant as a probe, by the word that it begins with.
    pub fn is_probe(text: &str) -> bool {
        text.split_once(':').is_some_and(|(kind, _)| FORMS.iter().any(|(known, _)| *known == kind))
    }

    /// Reads a probe.
    ///
    /// # Errors
    /// When it is not of a form above; whether the place exists is asked when it is attached.
    pub fn parse(text: &str) -> Result<Self, ProbeError> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some((kind, form)) = FORMS.iter().find(|(known, _)| *known == kind) else {
            return Err(ProbeError::Kind { probe: text.to_owned() });
        };
        let wrong =
            |problem: &str| ProbeError::Form { probe: text.to_owned(), problem: problem.to_owned(), form };
        let (path, rest) = match *kind {
            "kprobe" | "kretprobe" => (None, rest),
            _ => {
                let names = if *kind == "usdt" { 2 } else { 1 };
                let (path, rest) = split_path(rest, names).map_err(wrong)?;
                (Some(PathBuf::from(path)), rest)
            }
        };
        let (target, list) = split_list(rest).map_err(wrong)?;
        let moment = if kind.ends_with("retprobe") { Moment::Return } else { Moment::Entry };
        let arguments = parse_list(list.unwrap_or_default()).map_err(|problem| wrong(&problem))?;
        if moment == Moment::Return && (arguments.len() > 1 || arguments.iter().any(|it| it.position > 0)) {
            return Err(wrong("a function returns one value: name one, as ret:i64"));
        }
        if target.is_empty() {
            return Err(wrong("the name of the function is missing"));
        }
        let (function, offset) = split_offset(target);
        if moment == Moment::Return && offset > 0 {
            return Err(wrong("a function returns as a whole: leave the offset out"));
        }
        let place = match (*kind, path) {
            ("usdt", Some(path)) => {
                let names = target.split_once(':').filter(|(a, b)| !a.is_empty() && !b.is_empty());
                let (provider, name) = names.ok_or_else(|| wrong("provider and name are needed"))?;
                Place::Marker { path, provider: provider.to_owned(), name: name.to_owned() }
            }
            (_, Some(path)) => Place::Function { path, function: function.to_owned(), offset },
            (_, None) => Place::Kernel { function: function.to_owned(), offset },
        };
        let name = text.get(..text.len() - rest.len()).unwrap_or_default();
        Ok(Self { name: format!("{name}{target}"), place, moment, arguments })
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(out)
    }
}

/// The path, and what follows it: so many names with colons between, at least.
fn split_path(rest: &str, names: usize) -> Result<(&str, &str), &'static str> {
    if !rest.starts_with('/') {
        return Err("the path of the file is missing, or not absolute");
    }
    // A slash behind a parenthesis is part of a signature.
    let is_name = |name: &str| name.split('(').next().is_some_and(|name| !name.contains('/'));
    let parts =
        rest.match_indices(':').filter_map(|(colon, _)| Some((rest.get(..colon)?, rest.get(colon + 1..)?)));
    let parts: Vec<_> = parts.filter(|(_, name)| is_name(name)).collect();
    let is_there = |&(path, name): &(&str, &str)| {
        name.split(':').count() >= names && !name.starts_with(':') && Path::new(path).is_file()
    };
    let longest = parts.iter().rev().copied().find(is_there);
    let split = longest.or_else(|| parts.first().copied());
    split.filter(|(path, _)| !path.ends_with('/')).ok_or("a colon and a name follow the file's path")
}

/// The name, and the list behind it if there is one.
fn split_list(rest: &str) -> Result<(&str, Option<&str>), &'static str> {
    let rest = rest.trim();
    let opens = rest.matches('(').count();
    if opens != rest.matches(')').count() {
        return Err("the parentheses do not match");
    }
    if opens == 0 {
        return Ok((rest, None));
    }
    let Some(inner) = rest.strip_suffix(')') else {
        // As `ns::f() const`.
        let is_part = rest.contains("::");
        return if is_part { Ok((rest, None)) } else { Err("something follows the arguments") };
    };
    let mut depth = 0_usize;
    for (at, byte) in inner.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' if depth > 0 => depth -= 1,
            b'(' => {
                let (name, list) =
                    (inner.get(..at).unwrap_or_default(), inner.get(at + 1..).unwrap_or_default());
                let is_untyped = !list.replace("::", "").contains(':');
                return match name.trim_end() {
                    name if name.contains("::") && is_untyped && !name.ends_with(')') => Ok((rest, None)),
                    name => Ok((name, Some(list))),
                };
            }
            _ => {}
        }
    }
    Err("the parentheses do not match")
}

/// The function, and the bytes behind its start.
fn split_offset(target: &str) -> (&str, u64) {
    let split = target.rsplit_once('+').and_then(|(name, offset)| Some((name, number(offset)?)));
    split.filter(|(name, _)| !name.is_empty()).unwrap_or((target, 0))
}

/// Decimal, or hexadecimal with `0x`.
pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(text: &str) -> (String, String, u64, usize) {
        let probe = Probe::parse(text).unwrap();
        let Place::Function { path, function, offset } = probe.place else { panic!("{text}") };
        (path.to_str().unwrap().to_owned(), function, offset, probe.arguments.len())
    }

    #[test]
    fn path_function_offset_and_arguments_are_told_apart() {
        for (text, path, name, offset, arguments) in [
            ("uprobe:/bin/x:f", "/bin/x", "f", 0, 0),
            ("uprobe:/bin/x:f()", "/bin/x", "f", 0, 0),
            ("uprobe:/bin/x:f(a:u64, b:str)", "/bin/x", "f", 0, 2),
            ("uprobe:/a:b/x y:f+0x10(a:u64)", "/a:b/x y", "f", 16, 1),
            ("uprobe:/a (1)/x:f(a:u8)", "/a (1)/x", "f", 0, 1),
            ("uprobe:/bin/x:ssl_*", "/bin/x", "ssl_*", 0, 0),
            ("uprobe:/bin/x:malloc@@GLIBC_2.2.5", "/bin/x", "malloc@@GLIBC_2.2.5", 0, 0),
            ("uprobe:/bin/x:a::b", "/bin/x", "a::b", 0, 0),
            ("uprobe:/bin/x:a::b(int, c::d const&)", "/bin/x", "a::b(int, c::d const&)", 0, 0),
            ("uprobe:/bin/x:a::b(int (*)(int))(p:ptr)", "/bin/x", "a::b(int (*)(int))", 0, 1),
            ("uprobe:/bin/x:a::b(p:ptr)", "/bin/x", "a::b", 0, 1),
            ("uprobe:/bin/x:a::b(int) const", "/bin/x", "a::b(int) const", 0, 0),
            ("uretprobe:/bin/x:f(ret:i64)", "/bin/x", "f", 0, 1),
        ] {
            let expected = (path.to_owned(), name.to_owned(), offset, arguments);
            assert_eq!(function(text), expected, "{text}");
        }
        let probe = Probe::parse("usdt:/bin/x:python:gc__start(generation:i32)").unwrap();
        assert!(
            matches!(&probe.place, Place::Marker { provider, name, .. } if provider == "python" && name == "gc__start")
        );
        assert_eq!(probe.name, "usdt:/bin/x:python:gc__start");
        let probe = Probe::parse("kretprobe:vfs_read(ret:i64)").unwrap();
        assert!(matches!(&probe.place, Place::Kernel { function, .. } if function == "vfs_read"));
        assert_eq!((probe.moment, probe.name.as_str()), (Moment::Return, "kretprobe:vfs_read"));
    }

    #[test]
    fn files_whose_names_have_colons() {
        let folder = tempfile::tempdir().unwrap();
        let [short, long] = ["bu", "bu:rn"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
        let read = |text: &str| function(&format!("uprobe:{text}"));
        std::fs::write(&long, "").unwrap();
        let told = |path: &str, name: &str| (path.to_owned(), name.to_owned(), 0, 0);
        assert_eq!(read(&format!("{long}:target")), told(&long, "target"));
        assert_eq!(read(&format!("{long}:a::b")), told(&long, "a::b"));
        assert_eq!(read(&format!("{short}:a::b")), told(&short, "a::b"), "it is told when it is attached");
        std::fs::write(&short, "").unwrap();
        assert_eq!(read(&format!("{long}:target")), told(&long, "target"));
        assert_eq!(read(&format!("{short}:a::b")), told(&short, "a::b"));
        let probe = Probe::parse(&format!("usdt:{long}:target")).unwrap();
        assert!(
            matches!(&probe.place, Place::Marker { provider, name, .. } if provider == "rn" && name == "target")
        );
        let probe = Probe::parse(&format!("usdt:{long}:p:n")).unwrap();
        assert!(
            matches!(&probe.place, Place::Marker { path, provider, .. } if path == Path::new(&long) && provider == "p")
        );
    }

    #[test]
    fn what_is_malformed_is_told_with_its_form() {
        for (text, problem) in [
            ("uprobe:x:f", "not absolute"),
            ("uprobe:/bin/x", "a colon and a name follow"),
            ("uprobe:/bin/:f", "a colon and a name follow"),
            ("uprobe:/bin/x:", "the name of the function is missing"),
            ("uprobe:/bin/x:(a:u64)", "the name of the function is missing"),
            ("uprobe:/bin/x:f(a:u64", "the parentheses do not match"),
            ("uprobe:/bin/x:f)a(", "something follows"),
            ("uprobe:/bin/x:f(a:u64) b", "something follows"),
            ("uprobe:/bin/x:f(a)", "NAME:TYPE"),
            ("uretprobe:/bin/x:f(a:u64, b:u64)", "returns one value"),
            ("uretprobe:/bin/x:f+4", "leave the offset out"),
            ("usdt:/bin/x:python", "provider and name"),
        ] {
            let error = Probe::parse(text).unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains(text), "{text}: {error}");
            let form =
                &FORMS[FORMS.iter().position(|(kind, _)| text.starts_with(&format!("{kind}:"))).unwrap()].1;
            assert!(error.contains(form), "{error}");
        }
        assert!(Probe::is_probe("uprobe:/x:f") && !Probe::is_probe("sched:sched_switch"));
    }
}
