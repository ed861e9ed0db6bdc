//! Which functions a name means.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use collector_common::event::near;
use collector_common::glob::{is_glob, matches_glob};
use export::symbolize::demangle;

use super::elf::Function;

/// Names that are told of.
const MOST_TOLD: usize = 3;

/// For how long names are made readable to find one: those of a file may be made to take their time.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a name means no function.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoFunction {
    /// There is none, but there are these.
    Unknown(Vec<String>),
    /// There are several, of these names.
    Ambiguous(Vec<String>),
    /// It only chooses one of its implementations, which have names like these.
    Resolver(Vec<String>),
    /// To make all names readable takes longer than anybody waits.
    TooLong,
}

/// The functions that `wanted` means: those of that linkage name, in the version that programs get who name none; else, for
/// a pattern, all that match; else the one that is so called in the source.
pub(super) fn choose<'a, 'd>(
    functions: &'a [Function<'d>],
    wanted: &str,
) -> Result<Vec<&'a Function<'d>>, NoFunction> {
    choose_within(functions, wanted, PATIENCE)
}

fn choose_within<'a, 'd>(
    functions: &'a [Function<'d>],
    wanted: &str,
    patience: Duration,
) -> Result<Vec<&'a Function<'d>>, NoFunction> {
    let (name, version) = match wanted.split_once('@') {
        Some((name, version)) => (name, Some(version.trim_start_matches('@'))),
        None => (wanted, None),
    };
    let mut named: Vec<_> = functions.iter().filter(|it| it.name == name).collect();
    match version {
        Some(version) => named.retain(|it| it.version == Some(version)),
        None if named.iter().any(|it| it.is_default) => named.retain(|it| it.is_default),
        None => {}
    }
    if named.is_empty() && is_glob(wanted) {
        let matches = |it: &Function<'_>| !it.is_resolver && matches_function(wanted, it.name);
        named = all_within(functions, patience, matches)?;
    }
    if named.is_empty() {
        named = all_within(functions, patience, |it| is_called(it.name, wanted))?;
        let full: BTreeSet<Cow<'_, str>> = named.iter().map(|it| demangle(it.name)).collect();
        if full.len() > 1 {
            return Err(NoFunction::Ambiguous(
                full.into_iter().take(MOST_TOLD).map(Cow::into_owned).collect(),
            ));
        }
    }
    if named.is_empty() {
        return Err(NoFunction::Unknown(nearest(functions, wanted)));
    }
    if named.iter().all(|it| it.is_resolver) {
        let prefix = format!("__{name}_");
        let like = functions.iter().filter(|it| !it.is_resolver && it.name.starts_with(&prefix));
        let like: BTreeSet<&str> = like.map(|it| it.name).collect();
        return Err(NoFunction::Resolver(like.into_iter().take(MOST_TOLD).map(str::to_owned).collect()));
    }
    named.retain(|it| !it.is_resolver);
    Ok(named)
}

/// Those that are meant, if that is known in time.
fn all_within<'a, 'd>(
    functions: &'a [Function<'d>],
    patience: Duration,
    is_meant: impl Fn(&Function<'d>) -> bool,
) -> Result<Vec<&'a Function<'d>>, NoFunction> {
    let until = Instant::now() + patience;
    let mut meant = Vec::new();
    for function in functions {
        if Instant::now() >= until {
            return Err(NoFunction::TooLong);
        }
        meant.extend(is_meant(function).then_some(function));
    }
    Ok(meant)
}

fn nearest(functions: &[Function<'_>], wanted: &str) -> Vec<String> {
    let mut told: Vec<String> =
        near(wanted, functions.iter().map(|it| it.name)).into_iter().map(str::to_owned).collect();
    let until = Instant::now() + PATIENCE;
    let in_time = functions.iter().take_while(|_| Instant::now() < until);
    let readable: Vec<Cow<'_, str>> = in_time.filter_map(|it| readable(it.name)).collect();
    told.extend(
        near(wanted, readable.iter().map(|it| without_parameters(it))).into_iter().map(str::to_owned),
    );
    told.truncate(MOST_TOLD);
    told
}

/// The name in the source, where it is another than that of the linker.
fn readable(name: &str) -> Option<Cow<'_, str>> {
    Some(demangle(name)).filter(|readable| readable != name)
}

fn is_called(name: &str, wanted: &str) -> bool {
    readable(name).is_some_and(|full| full == wanted || without_parameters(&full) == wanted)
}

/// `ns::f` of `ns::f(int) const`.
fn without_parameters(full: &str) -> &str {
    let Some(inner) = full.strip_suffix(" const").unwrap_or(full).strip_suffix(')') else { return full };
    let mut depth = 0_usize;
    for (at, byte) in inner.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' if depth > 0 => depth -= 1,
            b'(' => return inner.get(..at).filter(|name| !name.is_empty()).unwrap_or(full),
            _ => {}
        }
    }
    full
}

/// A part that the compiler has moved away is reached by jumps: it is no function of its own.
pub(super) fn is_part(name: &str) -> bool {
    name.split('.').skip(1).any(|part| part == "cold")
}

fn matches_function(pattern: &str, name: &str) -> bool {
    !is_part(name)
        && (matches_glob(pattern, name)
            || (pattern.contains("::")
                && readable(name).is_some_and(|full| matches_glob(pattern, without_parameters(&full)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(
        name: &'static str,
        version: Option<&'static str>,
        is_default: bool,
        address: u64,
    ) -> Function<'static> {
        Function { name, version, is_default, address, size: 16, is_resolver: name == "memcpy" }
    }

    fn all() -> Vec<Function<'static>> {
        vec![
            function("pthread_cond_wait", Some("GLIBC_2.3.2"), true, 1),
            function("pthread_cond_wait", Some("GLIBC_2.2.5"), false, 2),
            function("memcpy", None, true, 3),
            function("__memcpy_avx", None, true, 4),
            function("ssl_read", None, true, 5),
            function("ssl_write", None, true, 6),
            function("ssl_write.cold", None, true, 7),
            function("_ZN2ns1fEi", None, true, 8),
            function("_ZN2ns1fEv", None, true, 9),
            function("_ZN2ns4onlyEv", None, true, 10),
            function("_ZN3foo3bar17h0123456789abcdefE", None, true, 11),
        ]
    }

    #[test]
    fn a_name_means_what_a_linker_or_a_programmer_means_by_it() {
        let all = all();
        for (wanted, expected) in [
            ("pthread_cond_wait", &[1][..]),
            ("pthread_cond_wait@GLIBC_2.2.5", &[2]),
            ("pthread_cond_wait@@GLIBC_2.3.2", &[1]),
            ("ssl_*", &[5, 6]),
            ("ssl_rea?", &[5]),
            ("_ZN2ns1fEi", &[8]),
            ("ns::f(int)", &[8]),
            ("ns::only", &[10]),
            ("ns::only()", &[10]),
            ("foo::bar", &[11]),
            ("foo::*", &[11]),
            ("*mem*", &[4]),
        ] {
            let addresses: Vec<u64> = choose(&all, wanted).unwrap().iter().map(|it| it.address).collect();
            assert_eq!(addresses, expected, "{wanted}");
        }
    }

    #[test]
    fn what_means_none_is_told_with_what_could_be_meant() {
        let all = all();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(choose(&all, "ssl_reed").err(), Some(NoFunction::Unknown(names(&["ssl_read"]))));
        assert_eq!(choose(&all, "ns::onli").err(), Some(NoFunction::Unknown(names(&["ns::only"]))));
        assert_eq!(choose(&all, "memcpy").err(), Some(NoFunction::Resolver(names(&["__memcpy_avx"]))));
        assert_eq!(
            choose(&all, "ns::f").err(),
            Some(NoFunction::Ambiguous(names(&["ns::f()", "ns::f(int)"])))
        );
        assert!(matches!(choose(&all, "ssl_read@V9").err(), Some(NoFunction::Unknown(_))));
        // What the linker calls so is found without a look at how it reads.
        let at_once = |wanted| choose_within(&all, wanted, Duration::ZERO);
        assert!(at_once("_ZN2ns1fEi").is_ok());
        assert_eq!(
            [at_once("ns::only"), at_once("ns::*")].map(Result::err),
            [(); 2].map(|()| Some(NoFunction::TooLong))
        );
    }
}
