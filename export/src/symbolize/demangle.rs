//! Linkage names in, names as a programmer writes them out: Rust (v0 and legacy), C++ (Itanium ABI, Microsoft's), else the
//! name itself. A symbol's version (`@GLIBC_2.2.5`) goes, its `@plt` stays.
//!
//! Legacy Rust names look like C++ ones and differ in their last part, the hash `17h` + 16 hex digits: they go
//! to the Rust demangler. Names come from files that anyone may have written, so depth and length are bounded.

use std::borrow::Cow;
use std::fmt::{self, Write};

use super::msvc;

/// Longest name that is demangled, and longest name that comes out.
const MAX_LENGTH: usize = 64 << 10;

/// Depth of nesting that is followed.
const MAX_DEPTH: u32 = 160;

/// The name to show for a linkage name.
pub fn demangle(linkage: &str) -> Cow<'_, str> {
    // There, `@` is a part of the name.
    if linkage.starts_with('?') {
        return msvc::demangled(linkage).map_or(Cow::Borrowed(linkage), Cow::Owned);
    }
    let (name, tail) = match linkage.split_once('@') {
        Some((name, "plt")) if !name.is_empty() => (name, "@plt"),
        Some((name, _)) if !name.is_empty() => (name, ""),
        _ => (linkage, ""),
    };
    match demangled(name) {
        Some(mut text) => {
            text.push_str(tail);
            Cow::Owned(text)
        }
        None if tail.is_empty() => Cow::Borrowed(name),
        None => Cow::Borrowed(linkage),
    }
}

fn demangled(name: &str) -> Option<String> {
    if name.len() > MAX_LENGTH {
        return None;
    }
    if name.starts_with("_R") || is_legacy_rust(name) {
        let rust = rustc_demangle::try_demangle(name).ok()?;
        return bounded(|out| write!(out, "{rust:#}"));
    }
    if name.starts_with("_Z") || name.starts_with("_GLOBAL_") {
        return cpp(name);
    }
    None
}

fn cpp(name: &str) -> Option<String> {
    let parse = cpp_demangle::ParseOptions::default().recursion_limit(MAX_DEPTH);
    let write = cpp_demangle::DemangleOptions::default().recursion_limit(MAX_DEPTH);
    let symbol = cpp_demangle::Symbol::new_with_options(name, &parse).ok()?;
    bounded(|out| symbol.structured_demangle(out, &write))
}

/// Whether a name's last part before `E` is a hash, as in `_ZN4core3fmt5write17h0123456789abcdefE.llvm.42`.
fn is_legacy_rust(name: &str) -> bool {
    name.starts_with("_ZN")
        && name.match_indices("17h").any(|(at, _)| {
            let (digits, rest) = name[at + 3..].split_at_checked(16).unwrap_or_default();
            let rest = rest.strip_prefix('E');
            digits.bytes().all(|byte| byte.is_ascii_hexdigit())
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
}

/// Text that is dropped when it becomes longer than [`MAX_LENGTH`].
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_LENGTH {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

fn bounded(write: impl FnOnce(&mut Bounded) -> fmt::Result) -> Option<String> {
    let mut out = Bounded(String::new());
    write(&mut out).ok()?;
    (!out.0.is_empty()).then_some(out.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_as_their_authors_wrote_them() {
        for (linkage, name) in [
            ("main", "main"),
            ("", ""),
            ("_start", "_start"),
            // Rust, legacy: no hash, and never to the C++ demangler.
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            (
                "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
                "<Test + 'static as foo::Bar<Test>>::bar",
            ),
            ("_ZN3foo3bar17h0123456789abcdefE.llvm.1234567890", "foo::bar"),
            ("_ZN3foo3bar17h0123456789abcdefE.cold", "foo::bar.cold"),
            // Rust, v0.
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_RNvNtCs4fqI2P2rA04_7mycrate6module8function.llvm.99", "mycrate::module::function"),
            // C++.
            ("_ZN3foo3barEv", "foo::bar()"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
            ),
            ("_ZNK3foo17hash_of_a_keyEi", "_ZNK3foo17hash_of_a_keyEi"),
            ("_ZN3foo3barEv.cold", "foo::bar() [clone .cold]"),
            ("_ZN3foo3barEv.isra.0", "foo::bar() [clone .isra.0]"),
            ("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const"),
            // C clones, versions and stubs.
            ("parse.part.0", "parse.part.0"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("memcpy@plt", "memcpy@plt"),
            ("_ZN3foo3barEv@plt", "foo::bar()@plt"),
            ("@weird", "@weird"),
            ("_Z", "_Z"),
            ("_R", "_R"),
        ] {
            assert_eq!(demangle(linkage), name, "{linkage}");
        }
    }

    #[test]
    fn a_name_that_would_grow_without_end_stays_mangled() {
        let deep = format!("_Z1f1A{}", "1BI".repeat(3_000));
        assert_eq!(demangle(&deep), deep);
        // Each parameter names the one before it twice: f(A, B<A, A>, B<B<A, A>, B<A, A> >, ...).
        let doubled = |last: usize| {
            let id =
                |id| if id < 10 { format!("{id}") } else { char::from(b'A' + id as u8 - 10).to_string() };
            let types: Vec<String> = (1..last).map(|of| format!("S0_IS{0}_S{0}_E", id(of))).collect();
            format!("_Z1f1A1BIS_S_E{}", types.concat())
        };
        assert_eq!(demangle(&doubled(2)), "f(A, B<A, A>, B<B<A, A>, B<A, A> >)");
        assert_eq!(demangle(&doubled(35)), doubled(35));
        let long = format!("_ZN1a{}E", "1b".repeat(MAX_LENGTH));
        assert_eq!(demangle(&long), long);
    }

    proptest! {
        #[test]
        fn any_name_is_survived(name in "(_Z|_R|_ZN|)[a-zA-Z0-9_.$@]{0,60}") {
            let _ = demangle(&name);
        }

        #[test]
        fn a_plain_name_stays(name in "[a-y][a-z0-9_.]{0,20}") {
            prop_assert_eq!(demangle(&name), name.as_str());
        }
    }
}
