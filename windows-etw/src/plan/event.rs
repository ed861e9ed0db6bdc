//! Events by a provider's name, as people type them.

use collector_common::event::Guid;

use super::compose::Plan;
use super::error::EventSpecError;
use super::named::guid_of_name;
use super::providers::KnownProvider;
use super::scenario::{self, Scope};
use super::user::{EventIds, Level, ProviderPlan, Stacks, When};

/// `etw:PROVIDER`, `etw:PROVIDER:KEYWORDS` or `etw:PROVIDER:KEYWORDS:LEVEL`.
///
/// `PROVIDER` is a GUID, with or without braces, a name, or `*NAME` for one of `TraceLogging` or .NET's `EventSource`, which has its GUID from
/// its name; `KEYWORDS` a number, of whose bits events have one at least (0 or
/// nothing: all events); `LEVEL` 1 to 5 or its name (verbose without it). The events have stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// Which provider.
    pub provider: Guid,
    /// What it is called; its GUID where that is how it was named and nobody knows better.
    pub name: String,
    /// Keywords; 0 is all.
    pub keywords: u64,
    /// How much.
    pub level: Level,
}

impl EventSpec {
    /// What `text` means. `look_up` tells the GUID of a provider that is not among [`KNOWN_PROVIDERS`]: Windows knows those with
    /// manifests.
    ///
    /// [`KNOWN_PROVIDERS`]: super::KNOWN_PROVIDERS
    pub fn parse(text: &str, look_up: impl FnOnce(&str) -> Option<Guid>) -> Result<Self, EventSpecError> {
        let form = || EventSpecError::Form(text.to_owned());
        let mut parts = text.strip_prefix("etw:").ok_or_else(form)?.split(':');
        let provider = parts.next().filter(|provider| !provider.is_empty()).ok_or_else(form)?;
        let (keywords, level) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        if parts.next().is_some() {
            return Err(form());
        }
        let (by_hash, provider) = provider.strip_prefix('*').map_or((false, provider), |name| (true, name));
        let known = || KnownProvider::by_name(provider).map(|known| known.guid);
        let guid = match provider {
            "" => return Err(form()),
            name if by_hash => Some(guid_of_name(name)),
            name => name.parse().ok().or_else(known).or_else(|| look_up(name)),
        };
        let guid = guid.ok_or_else(|| EventSpecError::Provider(provider.to_owned()))?;
        let name = KnownProvider::by_guid(guid).map_or(provider, |known| known.name).to_owned();
        let keywords = number(keywords).ok_or_else(|| EventSpecError::Keywords(keywords.to_owned()))?;
        let level = self::level(level).ok_or_else(|| EventSpecError::Level(level.to_owned()))?;
        Ok(Self { provider: guid, name, keywords, level })
    }

    /// What that needs: the provider with stacks, and what names the stacks' frames.
    pub fn plan(&self, scope: &Scope) -> Plan {
        let provider = ProviderPlan {
            guid: self.provider,
            name: self.name.clone(),
            when: When::Always,
            level: self.level,
            any: self.keywords,
            all: 0,
            ids: EventIds::All,
            stacks: Stacks::All,
            pids: scope.pids.iter().copied().collect(),
            capture_state: true,
        };
        let name = format!("etw:{}", self.name);
        scenario::named(scenario::with_names(scope, Vec::new(), vec![provider]), name, scope)
    }
}

/// Hexadecimal after `0x`, else decimal; 0 where there is nothing.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            u64::from_str_radix(digits, 16).ok()
        }
        None if text.is_empty() => Some(0),
        None if text.bytes().all(|digit| digit.is_ascii_digit()) => text.parse().ok(),
        Some(_) | None => None,
    }
}

fn level(text: &str) -> Option<Level> {
    if text.is_empty() {
        return Some(Level::Verbose);
    }
    let is =
        |(level, name): &(Level, &str)| name.eq_ignore_ascii_case(text) || level.number().to_string() == text;
    Level::ALL.iter().find(|known| is(known)).map(|(level, _)| *level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<EventSpec, EventSpecError> {
        EventSpec::parse(text, |name| (name == "Contoso").then_some(Guid([7; 16])))
    }

    #[test]
    fn providers_are_named_in_three_ways() {
        let process: Guid = "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716".parse().unwrap();
        for text in [
            "etw:22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716",
            "etw:{22FB2CD6-0E7B-422B-A0C7-2FAD1FD0E716}",
            "etw:Microsoft-Windows-Kernel-Process",
        ] {
            let spec = parse(text).unwrap();
            assert_eq!((spec.provider, spec.name.as_str()), (process, "Microsoft-Windows-Kernel-Process"));
            assert_eq!((spec.keywords, spec.level), (0, Level::Verbose));
        }
        let named = parse("etw:*MyCompany.MyComponent:1").unwrap();
        assert_eq!(named.provider.to_string(), "ce5fa4ea-ab00-5402-8b76-9f76ac858fb5");
        assert_eq!((named.name.as_str(), named.keywords), ("MyCompany.MyComponent", 1));
        assert_eq!(parse("etw:Contoso").map(|spec| spec.provider), Ok(Guid([7; 16])));
        assert_eq!(parse("etw:Fabrikam"), Err(EventSpecError::Provider("Fabrikam".to_owned())));
    }

    #[test]
    fn keywords_and_levels() {
        let of = |text: &str| parse(text).map(|spec| (spec.keywords, spec.level));
        assert_eq!(of("etw:Contoso:0x10:4"), Ok((0x10, Level::Informational)));
        assert_eq!(of("etw:Contoso:16:Error"), Ok((16, Level::Error)));
        assert_eq!(of("etw:Contoso::1"), Ok((0, Level::Critical)));
        assert_eq!(of("etw:Contoso:0xFFFFFFFFFFFFFFFF"), Ok((u64::MAX, Level::Verbose)));
        for wrong in ["0x", "+1", "-1", "0x+1", "x", "0x10000000000000000", "99999999999999999999"] {
            let error = of(&format!("etw:Contoso:{wrong}"));
            assert_eq!(error, Err(EventSpecError::Keywords(wrong.to_owned())), "{wrong}");
        }
        for wrong in ["0", "6", "04", "loud"] {
            assert_eq!(of(&format!("etw:Contoso:1:{wrong}")), Err(EventSpecError::Level(wrong.to_owned())));
        }
        for wrong in
            ["", "etw", "etw:", "etw::1", "etw:*", "etw:*:1", "sched:sched_switch", "etw:Contoso:1:1:1"]
        {
            assert_eq!(of(wrong), Err(EventSpecError::Form(wrong.to_owned())), "{wrong}");
        }
    }
}
