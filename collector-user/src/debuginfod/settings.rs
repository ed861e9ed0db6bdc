//! The environment variables of elfutils' client in (`debuginfod-client-config(7)`), what they mean out.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The longest that one server may take to answer, unless it is told.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Which servers are asked, and how much of them is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// In the order in which they are asked.
    pub(super) servers: Vec<String>,
    /// Where files are kept; `None` where there is no place.
    pub(super) cache: Option<PathBuf>,
    /// A server that has not answered by then, or sends nothing for that long, is not asked again.
    pub(super) timeout: Option<Duration>,
    /// The longest that one file may take.
    pub(super) longest: Option<Duration>,
    /// The largest file that is taken.
    pub(super) largest: Option<u64>,
}

impl Settings {
    /// What variables say; `None` where no server is named.
    pub(super) fn of(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let number = |name: &str| text(name).and_then(|value| value.trim().parse::<i64>().ok());
        let positive =
            |name: &str| number(name).and_then(|value| u64::try_from(value).ok()).filter(|&it| it > 0);
        let urls = text("DEBUGINFOD_URLS")?;
        // Other words, as `ima:enforcing`, say how signatures in packages are checked; build ids are in any case.
        let servers = urls.split_whitespace().filter(|word| word.contains("://"));
        let servers: Vec<String> = servers.map(|server| server.trim_end_matches('/').to_owned()).collect();
        let timeout = match number("DEBUGINFOD_TIMEOUT") {
            None => Some(TIMEOUT),
            Some(_) => positive("DEBUGINFOD_TIMEOUT").map(Duration::from_secs),
        };
        (!servers.is_empty()).then(|| Self {
            servers,
            cache: cache(|name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from)),
            timeout,
            longest: positive("DEBUGINFOD_MAXTIME").map(Duration::from_secs),
            largest: positive("DEBUGINFOD_MAXSIZE"),
        })
    }
}

/// Where elfutils' client keeps its files.
fn cache(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let home = variable("HOME");
    let old = home.as_ref().map(|home| home.join(".debuginfod_client_cache")).filter(|old| old.is_dir());
    let usual =
        || Some(variable("XDG_CACHE_HOME").or_else(|| Some(home?.join(".cache")))?.join("debuginfod_client"));
    variable("DEBUGINFOD_CACHE_PATH").or(old).or_else(usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<Settings> {
        Settings::of(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn nothing_is_asked_unless_servers_are_named() {
        assert_eq!(of(&[("HOME", "/nowhere")]), None);
        assert_eq!(of(&[("DEBUGINFOD_URLS", " ")]), None);
        assert_eq!(of(&[("DEBUGINFOD_URLS", "ima:enforcing")]), None);
        let settings =
            of(&[("DEBUGINFOD_URLS", "https://a.example/ ima:enforcing  http://b:8002/buildids")]).unwrap();
        assert_eq!(settings.servers, ["https://a.example", "http://b:8002/buildids"]);
    }

    #[test]
    fn limits_have_the_defaults_of_elfutils() {
        let urls = ("DEBUGINFOD_URLS", "http://a");
        let limits = |variables: &[(&str, &str)]| {
            let Settings { timeout, longest, largest, .. } = of(&[&[urls], variables].concat()).unwrap();
            (timeout.map(|it| it.as_secs()), longest.map(|it| it.as_secs()), largest)
        };
        assert_eq!(limits(&[]), (Some(90), None, None));
        let set = [("DEBUGINFOD_TIMEOUT", "5"), ("DEBUGINFOD_MAXTIME", "7"), ("DEBUGINFOD_MAXSIZE", "1000")];
        assert_eq!(limits(&set), (Some(5), Some(7), Some(1000)));
        let none = [("DEBUGINFOD_TIMEOUT", "-1"), ("DEBUGINFOD_MAXTIME", "0"), ("DEBUGINFOD_MAXSIZE", "0")];
        assert_eq!(limits(&none), (None, None, None));
        assert_eq!(limits(&[("DEBUGINFOD_TIMEOUT", "soon")]), (Some(90), None, None));
    }

    #[test]
    fn the_cache_is_where_elfutils_has_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().to_str().unwrap();
        let cache = |variables: &[(&str, &str)]| {
            of(&[&[("DEBUGINFOD_URLS", "http://a"), ("HOME", path)], variables].concat())
                .unwrap()
                .cache
                .unwrap()
        };
        assert_eq!(cache(&[]), home.path().join(".cache/debuginfod_client"));
        let xdg = [("XDG_CACHE_HOME", "/xdg")];
        assert_eq!(cache(&xdg), PathBuf::from("/xdg/debuginfod_client"));
        std::fs::create_dir(home.path().join(".debuginfod_client_cache")).unwrap();
        assert_eq!(cache(&xdg), home.path().join(".debuginfod_client_cache"));
        assert_eq!(cache(&[("DEBUGINFOD_CACHE_PATH", "/own")]), PathBuf::from("/own"));
    }
}
