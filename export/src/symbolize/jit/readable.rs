//! How the names that runtimes give to their code read, and which language they are of.
//!
//! | who | what is written | what is shown |
//! |---|---|---|
//! | V8 | `JS:*run /srv/app.js:10:5` | `run`, at line 10 of `/srv/app.js` |
//! | CPython | `py::Queue.get:/usr/lib/queue.py` | `Queue.get`, in `/usr/lib/queue.py` |
//! | Java | `int app.Main.run(java.lang.String)`, `Lapp/Main;::run` | `app.Main.run` |
//! | .NET | `instance void [app] App.Main::Run(int32)[Tier1]` | `App.Main.Run(int32)` |
//!
//! What tells how a function was compiled is left out, so that it is one function however often it was; all of it stays in the
//! linkage name. Sources: `src/objects/code-kind.cc` and `src/logging/log.cc` of V8; `Python/perf_trampoline.c` of CPython;
//! `CodeCache::write_perf_map` of Java's virtual machine; `src/coreclr/vm/perfmap.cpp` of .NET.

use std::borrow::Cow;

use super::super::demangle::Demangler;

/// The language that a function was written in, as far as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// JavaScript, and what is translated to it.
    JavaScript,
    /// Java, and other languages of its virtual machine.
    Java,
    /// Python.
    Python,
    /// C#, and other languages of .NET.
    DotNet,
}

/// What a name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Readable<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) language: Option<Language>,
    /// The source file; empty where the name does not tell it.
    pub(super) file: &'a str,
    /// Where the function begins in it, from 1; 0 where the name does not tell it.
    pub(super) line: u32,
    pub(super) column: u32,
}

impl<'a> Readable<'a> {
    /// Of a name as it was written.
    pub(super) fn of(written: &'a str, demangler: &mut Demangler) -> Self {
        let known = javascript(written).or_else(|| python(written));
        known.or_else(|| dot_net(written)).or_else(|| java(written)).unwrap_or_else(|| Self {
            name: demangler.name(written),
            language: None,
            file: "",
            line: 0,
            column: 0,
        })
    }

    fn named(name: Cow<'a, str>, language: Language) -> Self {
        Self { name, language: Some(language), file: "", line: 0, column: 0 }
    }
}

/// Kinds of JavaScript code; behind them stands how it was compiled.
const V8_KINDS: [&str; 5] = ["JS:", "Eval:", "Function:", "Script:", "LazyCompile:"];

/// Interpreted; compiled by Sparkplug, Maglev and Turbofan.
const V8_TIERS: [char; 4] = ['~', '^', '+', '*'];

/// `JS:*name FILE:LINE:COLUMN`, with `'` before the name of code that a loop was continued in.
fn javascript(written: &str) -> Option<Readable<'_>> {
    if written.starts_with("RegExp:") {
        return Some(Readable::named(written.into(), Language::JavaScript));
    }
    let rest = V8_KINDS.iter().find_map(|kind| written.strip_prefix(kind))?;
    let rest = rest.strip_prefix(V8_TIERS).unwrap_or(rest);
    let rest = rest.strip_prefix('\'').unwrap_or(rest);
    // A function's name has no spaces, but for those of properties that are named so.
    let Some((name, place)) = rest.split_once(' ') else {
        let name = if rest.is_empty() { "(anonymous)" } else { rest };
        return Some(Readable::named(name.into(), Language::JavaScript));
    };
    let (file, line, column) = file_and_line(place);
    let name = if name.is_empty() { anonymous(file, line, column).into() } else { name.into() };
    Some(Readable { file, line, column, ..Readable::named(name, Language::JavaScript) })
}

/// `/srv/app.js:10:5`
fn file_and_line(place: &str) -> (&str, u32, u32) {
    let split = |text| -> Option<(&str, u32)> {
        let (head, number) = str::rsplit_once(text, ':')?;
        Some((head, number.parse().ok()?))
    };
    let Some((head, last)) = split(place) else { return (place, 0, 0) };
    match split(head) {
        Some((file, line)) => (file, line, last),
        None => (head, last, 0),
    }
}

/// Functions without a name are told apart by where they are.
fn anonymous(file: &str, line: u32, column: u32) -> String {
    match (file.rsplit('/').next().unwrap_or(file), line) {
        ("", _) => "(anonymous)".to_owned(),
        (file, 0) => format!("(anonymous) {file}"),
        (file, line) => format!("(anonymous) {file}:{line}:{column}"),
    }
}

/// `py::QUALIFIED_NAME:FILE`
fn python(written: &str) -> Option<Readable<'_>> {
    let rest = written.strip_prefix("py::")?;
    let (name, file) = rest.split_once(':').unwrap_or((rest, ""));
    // Every file has a `<module>`, and many have a `<lambda>`.
    let name = match file.rsplit('/').next().filter(|file| name.starts_with('<') && !file.is_empty()) {
        Some(file) => format!("{name} {file}").into(),
        None => name.into(),
    };
    Some(Readable { file, ..Readable::named(name, Language::Python) })
}

/// `int app.Main.run(java.lang.String)`, or the class as class files have it: `Lapp/Main;::run`.
fn java(written: &str) -> Option<Readable<'_>> {
    let as_in_class_file = || {
        let (class, method) = written.strip_prefix('L')?.split_once(";::")?;
        let method = method.split_once('(').map_or(method, |(method, _)| method);
        (!class.contains(' ')).then(|| Cow::from(format!("{}.{method}", class.replace('/', "."))))
    };
    let as_in_source = || {
        let (head, _) = written.strip_suffix(')')?.split_once('(')?;
        let (result, name) = head.split_once(' ')?;
        let is_name = |text: &str, more: &[char]| {
            let fits = |char: char| char.is_alphanumeric() || "._$".contains(char) || more.contains(&char);
            text.starts_with(|first: char| first.is_alphabetic() || "_$".contains(first))
                && text.chars().all(fits)
        };
        let (class, method) = name.rsplit_once('.')?;
        // `Main$$Lambda$1/0x00007f6a68000c08`: the number of a class that has no name of its own is another one each time.
        let class = class.split_once('/').map_or(class, |(class, _)| class);
        let is_method = is_name(method, &[]) || ["<init>", "<clinit>"].contains(&method);
        let fits = is_name(result, &['[', ']', '/']) && is_name(class, &['-']) && is_method;
        fits.then(|| Cow::from(format!("{class}.{method}")))
    };
    let name = as_in_class_file().or_else(as_in_source)?;
    Some(Readable::named(name, Language::Java))
}

/// What .NET has behind a method: how it was compiled.
const DOT_NET_TIERS: [&str; 11] = [
    "PreJIT",
    "ReadyToRun",
    "MinOptJitted",
    "Optimized",
    "QuickJitted",
    "OptimizedTier1",
    "OptimizedTier1OSR",
    "InstrumentedTier0",
    "InstrumentedTier1",
    "Unknown",
    "PreStub",
];

/// `RESULT [ASSEMBLY] NAMESPACE.CLASS::METHOD(PARAMETERS)[TIER]`
fn dot_net(written: &str) -> Option<Readable<'_>> {
    let tier = written.strip_suffix(']').and_then(|text| text.rsplit_once('['));
    let tiered = tier.filter(|(_, tier)| DOT_NET_TIERS.contains(tier) || tier.starts_with("Tier"));
    let text = tiered.map_or(written, |(text, _)| text);
    let has_parameters = |text: &str| text.ends_with(')') && text.contains('(');
    let method = text.match_indices("] ").find_map(|(at, end)| {
        let (before, after) = (&text[..at], &text[at + end.len()..]);
        let assembly = before.rsplit_once('[').map(|(_, assembly)| assembly)?;
        // The types of results stand before, in brackets of their own.
        (!assembly.is_empty() && after.split_once('(').is_some_and(|(name, _)| name.contains("::")))
            .then_some(after)
    });
    let name = match (method.filter(|method| has_parameters(method)), tiered) {
        (Some(method), _) => method.replacen("::", ".", 1).into(),
        // Stubs, and methods whose names other versions write otherwise.
        (None, Some((text, _))) => Cow::from(text),
        (None, None) => return None,
    };
    Some(Readable::named(name, Language::DotNet))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::demangle::NameForm;
    use super::*;

    #[test]
    fn names_read_as_their_authors_wrote_them() {
        use Language::{DotNet, Java, JavaScript, Python};
        for (written, name, language, place) in [
            ("JS:~run /srv/app.js:10:5", "run", Some(JavaScript), ("/srv/app.js", 10, 5)),
            ("JS:^run /srv/app.js:10:5", "run", Some(JavaScript), ("/srv/app.js", 10, 5)),
            ("JS:+'run /srv/app.js:10:5", "run", Some(JavaScript), ("/srv/app.js", 10, 5)),
            ("JS:*run file:///a b/c.mjs:1:2", "run", Some(JavaScript), ("file:///a b/c.mjs", 1, 2)),
            ("JS:* /srv/app.js:2:47", "(anonymous) app.js:2:47", Some(JavaScript), ("/srv/app.js", 2, 47)),
            ("LazyCompile:*run node:events:466:44", "run", Some(JavaScript), ("node:events", 466, 44)),
            ("Eval:~ /srv/app.js:1:1", "(anonymous) app.js:1:1", Some(JavaScript), ("/srv/app.js", 1, 1)),
            ("JS:~", "(anonymous)", Some(JavaScript), ("", 0, 0)),
            ("RegExp:^a+b$", "RegExp:^a+b$", Some(JavaScript), ("", 0, 0)),
            ("Builtin:ArrayMap", "Builtin:ArrayMap", None, ("", 0, 0)),
            ("BytecodeHandler:Add", "BytecodeHandler:Add", None, ("", 0, 0)),
            ("py::Queue.get:/usr/lib/queue.py", "Queue.get", Some(Python), ("/usr/lib/queue.py", 0, 0)),
            ("py::<module>:/srv/app.py", "<module> app.py", Some(Python), ("/srv/app.py", 0, 0)),
            ("py::f.<locals>.g:/srv/app.py", "f.<locals>.g", Some(Python), ("/srv/app.py", 0, 0)),
            ("py::main", "main", Some(Python), ("", 0, 0)),
            ("int app.Main.run(int, java.lang.String)", "app.Main.run", Some(Java), ("", 0, 0)),
            ("void Main.<init>()", "Main.<init>", Some(Java), ("", 0, 0)),
            ("java.lang.Object[] app.Main$Inner.of(int[])", "app.Main$Inner.of", Some(Java), ("", 0, 0)),
            ("int Hot$$Lambda$1/0x00007f6a68000c08.go(int)", "Hot$$Lambda$1.go", Some(Java), ("", 0, 0)),
            ("Lorg/app/Main;::run", "org.app.Main.run", Some(Java), ("", 0, 0)),
            ("Interpreter", "Interpreter", None, ("", 0, 0)),
            ("I2C/C2I adapters", "I2C/C2I adapters", None, ("", 0, 0)),
            ("StubRoutines (1)", "StubRoutines (1)", None, ("", 0, 0)),
            (
                "instance void [app] App.Main::Run(int32)[OptimizedTier1]",
                "App.Main.Run(int32)",
                Some(DotNet),
                ("", 0, 0),
            ),
            (
                "class [System.Runtime]System.String [app] App.Main::Of(class [System.Runtime]System.Object)[PreJIT]",
                "App.Main.Of(class [System.Runtime]System.Object)",
                Some(DotNet),
                ("", 0, 0),
            ),
            ("void [app] App.Main::.cctor()[Tier0]", "App.Main..cctor()", Some(DotNet), ("", 0, 0)),
            ("_ZN3foo3barEv", "foo::bar()", None, ("", 0, 0)),
            ("int f(int)", "int f(int)", None, ("", 0, 0)),
            ("a + b (c.d)", "a + b (c.d)", None, ("", 0, 0)),
        ] {
            let readable = Readable::of(written, &mut Demangler::new(NameForm::Full));
            assert_eq!((&*readable.name, readable.language), (name, language), "{written}");
            assert_eq!((readable.file, readable.line, readable.column), place, "{written}");
        }
    }

    proptest! {
        #[test]
        fn any_name_is_survived(
            start in "(JS:|Eval:|py::|L|int |instance void \\[|)",
            rest in "[a-zé:;~*'/.()\\[\\] $<>0-9]{0,40}",
            noise in any::<String>(),
        ) {
            let written = format!("{start}x{rest}");
            let mut demangler = Demangler::new(NameForm::Full);
            prop_assert!(!Readable::of(&written, &mut demangler).name.is_empty());
            Readable::of(&noise, &mut demangler);
        }
    }
}
