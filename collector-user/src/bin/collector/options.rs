//! Options of scenarios as people type them, `off_cpu:min=10ms`, in; what they say in its place.

use std::collections::BTreeSet;

use collector_common::ids::Nanos;

use crate::Usage;
#[cfg(target_os = "linux")]
use crate::args::parse_bytes;
use crate::args::parse_duration;

/// How the shortest time that is recorded is written.
pub(crate) const SHORTEST: &str = "min=10ms";
/// How a period of bytes is.
#[cfg(target_os = "linux")]
pub(crate) const EVERY: &str = "every=64KiB";

/// Where what is chosen of a scenario goes.
pub(crate) enum Place<'a> {
    /// What is shorter is left out.
    Shortest(&'a mut Nanos),
    /// There is one stack for about so many bytes.
    #[cfg(target_os = "linux")]
    Every(&'a mut u64),
}

impl Place<'_> {
    const fn example(&self) -> &'static str {
        match self {
            Self::Shortest(_) => SHORTEST,
            #[cfg(target_os = "linux")]
            Self::Every(_) => EVERY,
        }
    }
}

/// A scenario's name and what stands behind its colon.
pub(crate) fn split(named: &str) -> (&str, Option<&str>) {
    named.split_once(':').map_or((named, None), |(name, option)| (name, Some(option)))
}

/// Those of a command line, one for a scenario.
#[derive(Default)]
pub(crate) struct Options(BTreeSet<&'static str>);

impl Options {
    /// Takes the option of a scenario that `named` has with it; `all` are those that there are, as `off_cpu:min=10ms`.
    pub(crate) fn take(
        &mut self,
        named: &str,
        scenario: &'static str,
        place: Option<Place<'_>>,
        all: impl Iterator<Item = String>,
    ) -> Result<(), Usage> {
        let Some(option) = split(named).1 else { return Ok(()) };
        if !self.0.insert(scenario) {
            let twice = "its option is named twice: there is one for all of a recording";
            return Err(Usage(format!("{named}: {twice}")));
        }
        let chosen = if let Some(place) = place {
            choose(scenario, option, place)
        } else {
            let all = all.collect::<Vec<_>>().join(", ");
            Err(format!("{scenario} has no options; there are {all}"))
        };
        chosen.map_err(|why| Usage(format!("{named}: {why}")))
    }
}

/// Sets what `min=10ms` or `every=64KiB` say of a scenario.
fn choose(scenario: &str, option: &str, place: Place<'_>) -> Result<(), String> {
    let example = place.example();
    let (key, value) = option.split_once('=').unwrap_or((option, ""));
    match (place, key) {
        (_, "") if option.is_empty() => {
            Err(format!("nothing is behind the colon: leave it out, or write {scenario}:{example}"))
        }
        (Place::Shortest(_), "min") if value.ends_with(|last: char| last.is_ascii_digit()) => {
            Err(format!("`{option}` has no unit: write us, ms, s, m or h behind it, as {example}"))
        }
        (Place::Shortest(of), "min") => {
            *of = Nanos(u64::try_from(parse_duration(value)?.as_nanos()).unwrap_or(u64::MAX));
            Ok(())
        }
        #[cfg(target_os = "linux")]
        (Place::Every(of), "every") => {
            *of = parse_bytes(value)?;
            Ok(())
        }
        _ => Err(format!("`{option}` is no option of {scenario}, which has {example}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortest(named: &[&str]) -> Result<Nanos, String> {
        let (mut options, mut shortest) = (Options::default(), Nanos(7));
        for named in named {
            let place = Some(Place::Shortest(&mut shortest));
            options.take(named, "off_cpu", place, [].into_iter()).map_err(|Usage(why)| why)?;
        }
        Ok(shortest)
    }

    #[test]
    fn the_shortest_time_is_what_is_said_and_else_what_it_was() {
        assert_eq!(shortest(&["off_cpu"]), Ok(Nanos(7)));
        assert_eq!(shortest(&["off_cpu:min=10ms"]), Ok(Nanos(10_000_000)));
        assert_eq!(shortest(&["offcpu:min=1.5s", "off_cpu"]), Ok(Nanos(1_500_000_000)));
    }

    #[test]
    fn what_means_nothing_is_told_with_what_does() {
        let no_option = |option: &str| format!("`{option}` is no option of off_cpu, which has min=10ms");
        for (option, why) in [
            ("", "nothing is behind the colon: leave it out, or write off_cpu:min=10ms".to_owned()),
            ("min=10", "`min=10` has no unit: write us, ms, s, m or h behind it, as min=10ms".to_owned()),
            ("min=", "it must start with a number, as 10s does".to_owned()),
            ("min=10d", "unknown unit `d`: use us, ms, s, m or h".to_owned()),
            ("=10ms", no_option("=10ms")),
            ("every=1KiB", no_option("every=1KiB")),
        ] {
            let named = format!("off_cpu:{option}");
            assert_eq!(shortest(&[&named]), Err(format!("{named}: {why}")));
        }
        let twice = shortest(&["off_cpu:min=1ms", "offcpu:min=1ms"]).unwrap_err();
        assert!(twice.starts_with("offcpu:min=1ms: its option is named twice"), "{twice}");
        let all = ["off_cpu", "wall_clock"].map(|name| format!("{name}:{SHORTEST}"));
        let none = Options::default().take("cpu:min=1ms", "cpu_profiling", None, all.into_iter());
        let none = none.map_err(|Usage(why)| why);
        let told =
            "cpu:min=1ms: cpu_profiling has no options; there are off_cpu:min=10ms, wall_clock:min=10ms";
        assert_eq!(none, Err(told.to_owned()));
    }
}
