//! Linkage names in, names as a programmer writes them out: Rust (v0 and legacy), C++ (Itanium ABI, Microsoft's), else the
//! name itself. A symbol's version (`@GLIBC_2.2.5`) goes, its `@plt` stays.
//!
//! Legacy Rust names look like C++ ones and differ in their last part, the hash `17h` + 16 hex digits: they go
//! to the Rust demangler. Names come from files that anyone may have written, so depth and length are bounded.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::time::{Duration, Instant};

use super::answer::MOST_NAME_BYTES;
use super::msvc;
use super::short::short;

/// Longest name that is demangled, and longest name that comes out.
pub(super) const MAX_LENGTH: usize = 64 << 10;

/// Depth of nesting that is written out.
const MAX_DEPTH: u32 = 160;

/// Depth that C++ names are parsed to: those of names and types alone, those with expressions, and those with many of the operators that
/// are parsed twice. The parser tries what may follow in turn, at each depth anew: what is none of it in the end costs twice as much for each two to
/// nine levels more. The worst of some 900,000 such texts took 0.15 s with these; with 160 some do not end. Of 400,000 names of LLVM, clang, Node.js,
/// the JVM and others 98.4 % are parsed so, and 99.9 % with 160.
const PLAIN_DEPTH: u32 = 96;
const EXPRESSION_DEPTH: u32 = 64;
const TWICE_DEPTH: u32 = 24;

/// How many of those operators may be in a name that is parsed as others are.
const MOST_TWICE: usize = 4;

/// How much of a name is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameForm {
    /// All but hashes: `std::vector<int, std::allocator<int> >::push_back(int const&)`.
    #[default]
    Full,
    /// Neither parameters nor what is between angle brackets: `std::vector::push_back`. Functions that differ in nothing else are
    /// one row of a report then.
    Short,
}

/// The name to show for a linkage name, in full.
pub fn demangle(linkage: &str) -> Cow<'_, str> {
    demangle_to(linkage, NameForm::Full)
}

/// The name to show for a linkage name.
pub(super) fn demangle_to(linkage: &str, form: NameForm) -> Cow<'_, str> {
    // There, `@` is a part of the name.
    if linkage.starts_with('?') {
        return msvc::demangled(linkage, form).map_or(Cow::Borrowed(linkage), |name| to_form(name, form));
    }
    let (name, tail) = match linkage.split_once('@') {
        Some((name, "plt")) if !name.is_empty() => (name, "@plt"),
        Some((name, _)) if !name.is_empty() => (name, ""),
        _ => (linkage, ""),
    };
    match demangled(name, form) {
        Some(text) => to_form(text, form) + tail,
        None if tail.is_empty() => Cow::Borrowed(name),
        None => Cow::Borrowed(linkage),
    }
}

/// The longest that names of one module are made readable.
const MOST_TIME: Duration = Duration::from_secs(10);

/// Makes the names of one module readable, as long as there is time and room for it.
pub(super) struct Demangler {
    form: NameForm,
    until: Instant,
    room: usize,
    as_written: u64,
}

impl Demangler {
    pub(super) fn new(form: NameForm) -> Self {
        Self { form, until: Instant::now() + MOST_TIME, room: MOST_NAME_BYTES, as_written: 0 }
    }

    /// The name to show for a linkage name.
    pub(super) fn name<'a>(&mut self, linkage: &'a str) -> Cow<'a, str> {
        if self.room > 0 && Instant::now() < self.until {
            match demangle_to(linkage, self.form) {
                Cow::Owned(name) => match self.room.checked_sub(name.len()) {
                    Some(room) => {
                        self.room = room;
                        return Cow::Owned(name);
                    }
                    None => self.room = 0,
                },
                as_it_is @ Cow::Borrowed(_) => return as_it_is,
            }
        }
        self.as_written += u64::from(["_Z", "_R", "?"].iter().any(|begin| linkage.starts_with(begin)));
        Cow::Borrowed(linkage)
    }

    /// How many names of a form that is made readable are as they were written.
    pub(super) fn as_written(&self) -> u64 {
        self.as_written
    }
}

fn to_form(name: String, form: NameForm) -> Cow<'static, str> {
    Cow::Owned(match form {
        NameForm::Full => name,
        NameForm::Short => short(&name),
    })
}

fn demangled(name: &str, form: NameForm) -> Option<String> {
    if name.len() > MAX_LENGTH {
        return None;
    }
    if name.starts_with("_R") || is_legacy_rust(name) {
        let rust = rustc_demangle::try_demangle(name).ok()?;
        return bounded(|out| write!(out, "{rust:#}"));
    }
    if name.starts_with("_Z") || name.starts_with("_GLOBAL_") {
        return cpp(name, form);
    }
    None
}

fn cpp(name: &str, form: NameForm) -> Option<String> {
    let write = cpp_demangle::DemangleOptions::default().recursion_limit(MAX_DEPTH);
    let write = match form {
        NameForm::Full => write,
        NameForm::Short => write.no_params().no_return_type(),
    };
    let parse = cpp_demangle::ParseOptions::default().recursion_limit(depth_of(name));
    let symbol = cpp_demangle::Symbol::new_with_options(name, &parse).ok()?;
    let text = bounded(|out| symbol.structured_demangle(out, &write))?;
    Some(match form {
        NameForm::Full => text,
        NameForm::Short => without_qualifiers(&text),
    })
}

/// How deep a C++ name is parsed.
fn depth_of(name: &str) -> u32 {
    let twice = |pair: &&[u8]| matches!(*pair, b"nw" | b"na" | b"dl" | b"da");
    if is_plain(name.as_bytes()) {
        PLAIN_DEPTH
    } else if name.as_bytes().windows(2).filter(twice).count() <= MOST_TWICE {
        EXPRESSION_DEPTH
    } else {
        TWICE_DEPTH
    }
}

/// Whether nothing in a name begins an expression or has one: `X`, literals, arrays, `decltype`, `noexcept`, vectors. Identifiers, which have
/// their length before them, are passed over where a number can be nothing else: not behind what may have a number of its own, as constructors
/// (`C1`), substitutions (`S1_`) and unnamed types (`Ut1_`) have.
fn is_plain(name: &[u8]) -> bool {
    const MAY_HAVE_NUMBERS: &[u8] = b"STCDEhnptv_";
    let mut rest = name;
    let mut before = b'Z';
    while let [first, behind @ ..] = rest {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 {
            let number = rest.iter().take(digits).fold(0_usize, |number, digit| {
                number.saturating_mul(10).saturating_add(usize::from(digit - b'0'))
            });
            let identifier = if MAY_HAVE_NUMBERS.contains(&before) { 0 } else { number };
            rest = rest.get(digits.saturating_add(identifier)..).unwrap_or_default();
            before = b' ';
            continue;
        }
        let begins = match first {
            b'X' | b'L' | b'A' => true,
            b'D' => behind.first().is_some_and(|second| b"tTOv".contains(second)),
            _ => false,
        };
        if begins {
            return false;
        }
        (before, rest) = (*first, behind);
    }
    true
}

/// What stands behind parameters is behind a name without them: `area const`.
fn without_qualifiers(text: &str) -> String {
    let mut name = text;
    let ends = [" const", " volatile", " &", "&"];
    while let Some(shorter) = ends.iter().find_map(|end| name.strip_suffix(end)) {
        if shorter.trim_end_matches('&').ends_with("operator") {
            break;
        }
        name = shorter;
    }
    name.to_owned()
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

    /// Of which a parser that goes as deep as it may tries more ways than it can in a lifetime.
    #[test]
    fn names_that_may_mean_ever_more_end_as_they_are() {
        for (unit, before) in [
            ("dl", "_Z1fIX"),
            ("nwna", "_Z1fIX"),
            ("LSaI", "_Z1fIX"),
            ("1aIL", "_Z1fIX"),
            ("SaIst", "_Z1fI"),
            ("1aISt", "_Z1fI"),
        ] {
            for count in (1..40).chain([100]) {
                let name = format!("{before}{}?EEvv", unit.repeat(count));
                assert_eq!(demangle(&name), name);
            }
        }
    }

    #[test]
    fn what_is_in_an_identifier_is_no_expression() {
        for (name, is_plain_name) in [
            ("_ZN5XLAdlC1Ev", true),
            ("_Z1fSt6vectorIiSaIiEE", true),
            ("_Z1fILi3EEvv", false),
            ("_Z1fIXadL_Z1gvEEEvv", false),
            ("_Z1fRA3_i", false),
            ("_Z1fDTcl1gEE", false),
            // What stands behind a number that is no length is looked at.
            ("_ZZ1fvENKUlvE9_XclEv", false),
            ("_Z1fIT9_XE", false),
            ("_ZN1aC19XE", false),
            ("_ZN1aUt9_XE", false),
        ] {
            assert_eq!(is_plain(name.as_bytes()), is_plain_name, "{name}");
        }
    }

    #[test]
    fn a_name_may_be_deep() {
        let name = format!("_Z1f{}i{}", "3boxI".repeat(12), "E".repeat(12));
        let expected = format!("f({}int{} )", "box<".repeat(12), " >".repeat(12))
            .replace("int >", "int>")
            .replace(" )", ")");
        assert_eq!(demangle(&name), expected);
    }

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

    /// By what their authors called them: nothing else is known of names without what tells them from others.
    #[test]
    fn short_names_are_without_parameters_and_arguments() {
        for (linkage, name) in [
            ("main", "main"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("memcpy@plt", "memcpy@plt"),
            // Rust, legacy and v0.
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            (
                "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
                "<Test + 'static as foo::Bar>::bar",
            ),
            (
                "_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE",
                "core::ptr::drop_in_place",
            ),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_RINvNtC3std3mem8align_ofjdE", "std::mem::align_of"),
            ("_RNvMC5allocINtC5alloc3VechE4push", "<alloc::Vec>::push"),
            // C++.
            ("_ZN3foo3barEv", "foo::bar"),
            ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back"),
            ("_ZSt3maxIiERKT_S2_S2_", "std::max"),
            ("_ZlsRSoRK3Foo", "operator<<"),
            ("_ZN3FooltERKS_", "Foo::operator<"),
            ("_ZN3FooptEv", "Foo::operator->"),
            ("_ZN3FooclIiEEvT_", "Foo::operator()"),
            ("_ZlsI3FooERSoS1_RKT_", "operator<<"),
            ("_ZN3FooltIiEEbT_", "Foo::operator<"),
            ("_ZN12_GLOBAL__N_13runEv", "(anonymous namespace)::run"),
            ("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()"),
            ("_ZN3foo3barEv@plt", "foo::bar@plt"),
            ("_ZNK3foo3barEv.cold", "foo::bar"),
            ("_ZNKO3foo3barEv", "foo::bar"),
            ("_ZN3fooanERKS_", "foo::operator&"),
            ("_ZN3fooaaERKS_", "foo::operator&&"),
            // Microsoft's.
            ("?leaf@shapes@@YAHH@Z", "shapes::leaf"),
            ("?area@Square@shapes@@QEBAHXZ", "shapes::Square::area"),
            ("??$max@H@std@@YAAEBHAEBH0@Z", "std::max"),
            ("??4Foo@@QEAAAEAV0@AEBV0@@Z", "Foo::operator="),
            ("??MFoo@@QEAA_NAEBV0@@Z", "Foo::operator<"),
            ("?push_back@?$vector@H@std@@QEAAXAEBH@Z", "std::vector::push_back"),
        ] {
            assert_eq!(demangle_to(linkage, NameForm::Short), name, "{linkage}");
        }
    }

    proptest! {
        #[test]
        fn any_name_is_survived(name in "(_Z|_R|_ZN|)[a-zA-Z0-9_.$@]{0,60}") {
            let _ = demangle(&name);
            let _ = demangle_to(&name, NameForm::Short);
        }

        #[test]
        fn a_plain_name_stays(name in "[a-y][a-z0-9_.]{0,20}") {
            prop_assert_eq!(demangle(&name), name.as_str());
        }
    }
}
