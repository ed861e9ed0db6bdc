//! What comes of a recording when it is over, the same on every system: its outputs, figures, and what is told of it.

use std::fmt::Write as _;
use std::path::Path;
use std::process;
use std::time::Duration;

use collector_user::output::Places;
use collector_user::stats::Stats;
use export::format::Profile;
use export::hottest::Hottest;

use crate::Usage;
use crate::output::{Output, tell_all_but_last, tell_left_out};
use crate::report::print_hottest;
use crate::target::Target;

/// Functions printed when no output is named.
const HOTTEST: usize = 10;

/// Where profiles and figures go.
pub(crate) struct Outputs {
    pub(crate) profiles: Vec<Output>,
    stats: Option<Target>,
    prints_hottest: bool,
}

impl Outputs {
    /// Those that are named; without any, and where nothing else is, a page and a pprof, and the hottest functions on stdout.
    pub(crate) fn open<'a>(
        named: impl IntoIterator<Item = &'a Path>,
        format: Option<&str>,
        nothing_is_named: bool,
        taken: &mut Places,
    ) -> anyhow::Result<Self> {
        if nothing_is_named && format.is_some() {
            return Err(Usage("--format needs -o FILE, or `-o -` for stdout".to_owned()).into());
        }
        let mut profiles = Vec::new();
        if nothing_is_named {
            for [name, other] in default_outputs() {
                profiles.push(Output::open(Path::new(&name), None, taken)?.or_named(&other));
            }
        }
        for path in named {
            profiles.push(Output::open(path, format, taken)?);
        }
        Ok(Self { profiles, stats: None, prints_hottest: nothing_is_named })
    }

    /// Has figures written, too.
    pub(crate) fn open_stats(&mut self, path: Option<&Path>, taken: &mut Places) -> anyhow::Result<()> {
        self.stats = path.map(|path| Target::open(path, taken)).transpose()?;
        Ok(())
    }

    /// Writes everything that can be written, first what waits for nobody, so that it is there when the rest is abandoned; the
    /// last failure is given, the others are told. `before` is what came of outputs that were written already; `stats` is asked last of
    /// each kind, so that it holds what the writing cost.
    pub(crate) fn write(
        self,
        profile: Profile<'_>,
        before: Vec<anyhow::Result<()>>,
        stats: impl Fn() -> Stats,
    ) -> anyhow::Result<()> {
        let mut results = before;
        tell_left_out(&self.profiles, profile);
        let write_stats = |target: Target| target.fill(|out| writeln!(out, "{:#}", stats().to_json()));
        let (waiting, files): (Vec<_>, Vec<_>) = self.profiles.into_iter().partition(Output::may_wait);
        let (waiting_stats, stats) = match self.stats {
            Some(stats) if stats.may_wait() => (Some(stats), None),
            stats => (None, stats),
        };
        results.extend(files.into_iter().map(|output| output.write(profile)));
        results.extend(stats.map(write_stats));
        results.extend(waiting.into_iter().map(|output| output.write(profile)));
        results.extend(waiting_stats.map(write_stats));
        if self.prints_hottest {
            let hottest = Hottest::of(profile, profile.machine.shown_kind().unwrap_or_default());
            results.push(print_hottest(&hottest, HOTTEST));
        }
        tell_all_but_last(results)
    }
}

/// `collector-20260131T235959Z.html` and the pprof beside it, each with what it is called if another recording of that
/// second has taken its name.
fn default_outputs() -> [[String; 2]; 2] {
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let stems = [format!("collector-{now}"), format!("collector-{now}-{}", process::id())];
    [".html", ".pb.gz"].map(|ending| stems.each_ref().map(|stem| format!("{stem}{ending}")))
}

/// What was recorded and lost, in a few lines.
pub(crate) fn summary(stats: &Stats, warnings: &[String]) -> String {
    let seconds = Duration::from_nanos(stats.duration_ns).as_secs_f64();
    let mut text = format!("{} samples in {seconds:.1} s; ", stats.ledger.delivered());
    text.push_str(&stats.account().join("\n"));
    for warning in warnings {
        let _ = write!(text, "\nwarning: {warning}");
    }
    text
}

/// `--` with nothing behind it, which the parser takes for no command.
pub(crate) fn refuse_no_command(is_empty: bool) -> Result<(), Usage> {
    if is_empty && std::env::args_os().next_back().is_some_and(|last| last == "--") {
        return Err(Usage("no command follows `--`".to_owned()));
    }
    Ok(())
}
