//! C++ names as Microsoft's compiler makes them (`?name@scope@@...`) in, names without return types, calling conventions and access out.
//!
//! The crate that reads them calls itself for each type within a type, and copies what a digit refers back to: a name of some hundred
//! bytes could take all of the stack, or of the memory. So names have a bound, longer ones have a stack of their own, and
//! those that could become too long are left as they are.

use std::thread;

use msvc_demangler::DemangleFlags;

use super::demangle::{self, NameForm};

/// Longest name that is demangled: Microsoft's compiler puts a hash in the place of longer ones.
const MAX_LENGTH: usize = 4096;

/// Longest name that is demangled on the stack of the caller.
const MAX_ON_STACK: usize = 256;

/// Enough for a type within a type for every two bytes of the longest name, in a build without optimisation.
const STACK: usize = 32 << 20;

/// The most that may come out, by the worst case.
const MAX_RESULT: usize = 4 << 20;

/// What a name that begins with `?` stands for.
pub(super) fn demangled(name: &str, form: NameForm) -> Option<String> {
    if name.len() > MAX_LENGTH || largest_result(name) > MAX_RESULT {
        return None;
    }
    if name.len() <= MAX_ON_STACK {
        return read(name, form);
    }
    let name = name.to_owned();
    thread::Builder::new().stack_size(STACK).spawn(move || read(&name, form)).ok()?.join().ok().flatten()
}

fn read(name: &str, form: NameForm) -> Option<String> {
    let flags = DemangleFlags::NO_ACCESS_SPECIFIERS
        | DemangleFlags::NO_FUNCTION_RETURNS
        | DemangleFlags::NO_MEMBER_TYPE
        | DemangleFlags::NO_MS_KEYWORDS
        | DemangleFlags::NO_MS_THISTYPE
        | DemangleFlags::NO_CLASS_TYPE
        | DemangleFlags::SPACE_AFTER_COMMA;
    let flags = match form {
        NameForm::Full => flags,
        NameForm::Short => flags | DemangleFlags::NAME_ONLY,
    };
    msvc_demangler::demangle(name, flags).ok().filter(|name| (1..=demangle::MAX_LENGTH).contains(&name.len()))
}

/// Each digit that may refer back doubles at most what there is. In `<lambda_0123>` and `?A0x01234567@`, digits are letters.
fn largest_result(name: &str) -> usize {
    let mut digits = 0;
    let mut rest = name;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit() || c == '<') {
        let behind = &rest[at + 1..];
        let is_space = rest[..at].ends_with("?A") && behind.starts_with('x');
        rest = if rest.as_bytes()[at] == b'<' {
            behind.split_once('>').map_or("", |(_, behind)| behind)
        } else if is_space {
            behind.split_once('@').map_or("", |(_, behind)| behind)
        } else {
            digits += 1;
            behind
        };
    }
    u32::try_from(digits).ok().and_then(|digits| name.len().checked_shl(digits.min(40))).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    /// As `llvm-undname` has them with `--no-access-specifier --no-calling-convention --no-return-type --no-member-type`, but for
    /// `class` and `struct`.
    #[test]
    fn names_are_as_their_authors_wrote_them() {
        for (linkage, name) in [
            ("?leaf@shapes@@YAHH@Z", "shapes::leaf(int)"),
            ("?area@Square@shapes@@QEBAHXZ", "shapes::Square::area(void) const"),
            ("??0Foo@@QEAA@PEBD@Z", "Foo::Foo(char const *)"),
            ("??1Foo@@UEAA@XZ", "Foo::~Foo(void)"),
            ("??4Foo@@QEAAAEAV0@AEBV0@@Z", "Foo::operator=(Foo const &)"),
            ("??$max@H@std@@YAAEBHAEBH0@Z", "std::max<int>(int const &, int const &)"),
            ("?f@?A0x0123456789abcdef@@YAXXZ", "`anonymous namespace'::f(void)"),
            (
                "??R<lambda_0123456789abcdef0123456789abcdef>@@QEBA@H@Z",
                "<lambda_0123456789abcdef0123456789abcdef>::operator()(int) const",
            ),
            ("?", "?"),
            ("?what", "?what"),
        ] {
            assert_eq!(demangle::demangle(linkage), name, "{linkage}");
        }
    }

    #[test]
    fn deep_and_growing_names_are_survived() {
        let started = Instant::now();
        for length in [200, 256, 257, 4096, 5000] {
            for unit in [
                "PA",
                "PEA",
                "P6A",
                "?$A@V",
                "?$A@P6A",
                "V?$A@U?$B@",
                "$$A6A",
                "?1?",
                "Y01",
                "P6AX00@Z",
                "V0@",
                "0",
            ] {
                for (start, end) in [("?f@@YAX", ""), ("?f@@YAX", "H@Z"), ("?", ""), ("?f@@YAXPAUA@@", "@Z")]
                {
                    let name = format!("{start}{}{end}", unit.repeat(length / unit.len()));
                    let _ = demangled(&name, NameForm::Full);
                }
            }
        }
        let levels = (0..9).map(|level: u8| format!("P6AX{}@Z", level.to_string().repeat(9)));
        let levels = levels.collect::<Vec<_>>().concat();
        assert_eq!(demangled(&format!("?f@@YAXPAUA@@{levels}@Z"), NameForm::Full), None);
        assert!(started.elapsed() < Duration::from_mins(1));
    }

    proptest! {
        #[test]
        fn any_name_is_survived(name in "\\?[a-zA-Z0-9_@$?]{0,80}") {
            let _ = demangled(&name, NameForm::Full);
        }
    }
}
