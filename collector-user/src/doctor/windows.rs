//! What a Windows machine allows.

use std::env;

use windows_etw::plan::{Plan, When};
use windows_etw::session::{Restored, Sessions, Settings, Target, try_interval};

use super::{Check, bad, good, limited};
use crate::etw::{Request, RequestError, TraceFolder};
use crate::symbol_path::VARIABLE;

/// What the session of the check is called, so that a recording that goes on is not disturbed.
const NAME: &str = "Collector.doctor";

/// Samples of CPUs in a second, as a recording has them; they are not taken that often.
const FREQUENCY: u32 = 997;

/// Runs all checks.
pub fn examine() -> Vec<Check> {
    vec![sessions(), pdbs()]
}

/// A session is started and stopped: whether Windows lets it is told by nothing else for sure.
fn sessions() -> Check {
    const CHECK: &str = "sessions of ETW";
    let folder = env::temp_dir();
    let folder = match TraceFolder::make_in(&folder) {
        Ok(folder) => folder,
        Err(error) => {
            let fix = format!("free some space there, or set TEMP to a folder that is yours ({error})");
            return bad(CHECK, format!("{} can't be written to", folder.display()), fix);
        }
    };
    let plan = match plan() {
        Ok(plan) => plan,
        Err(error) => return bad(CHECK, "there is no plan for one", error.to_string()),
    };
    let settings = Settings { name: NAME.to_owned(), target: Target::File(folder.path()) };
    let started = Sessions::start(&plan, &settings, |_| Box::new(|| Box::new(|_| {})));
    let tried = started.and_then(|sessions| {
        let restored = sessions.restored();
        try_interval().and(sessions.stop().whole()).map(|_| restored)
    });
    match tried {
        Ok(restored) => good(CHECK, was_started(restored)),
        Err(error) => bad(CHECK, "one that samples CPUs can't be started", error.to_string()),
    }
}

/// What is said of the session, and of what starting it has mended.
fn was_started(restored: Option<Restored>) -> String {
    let mended = restored.map(|restored| format!("; {restored}")).unwrap_or_default();
    format!("one that samples CPUs, with stacks, was started and stopped{mended}")
}

/// That of a recording without what would disturb another one that goes on: how often CPUs are sampled is the whole machine's, and what
/// .NET tells of all its methods takes its time.
fn plan() -> Result<Plan, RequestError> {
    let (scenarios, events) = (["cpu_profiling".to_owned()], []);
    let request = Request {
        scenarios: &scenarios,
        events: &events,
        frequency_hz: FREQUENCY,
        pids: &[],
        has_command: false,
    };
    let mut plan = request.plan(Vec::new)?;
    plan.system.interval = None;
    plan.providers.retain(|provider| provider.when == When::Always);
    Ok(plan)
}

fn pdbs() -> Check {
    match env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => good(VARIABLE, path.to_string_lossy()),
        None => limited(
            VARIABLE,
            "not set",
            "functions of images without a PDB beside them have names only where they are exported",
            format!(
                "set {VARIABLE}=srv*C:\\Symbols (a symbol store, as Windows' debuggers fill it) or to folders of PDBs"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use windows_etw::plan::{Flags, SampleInterval};

    use super::*;

    #[test]
    fn what_was_set_back_is_said() {
        let [from, to] = [5000, 10_000].map(SampleInterval::told);
        let told = was_started(Some(Restored { from, to }));
        assert!(told.contains("started and stopped; ") && told.contains("10000 x 100 ns again"), "{told}");
        assert!(was_started(None).ends_with("stopped"));
    }

    #[test]
    fn the_session_that_is_tried_disturbs_no_other_one() {
        let plan = plan().unwrap();
        assert!(plan.system.flags.has(Flags::PROFILE) && !plan.system.stacks.is_empty());
        assert_eq!(plan.system.interval, None);
        assert!(plan.providers.iter().all(|provider| provider.when == When::Always), "{plan}");
        assert!(plan.providers.iter().all(|provider| !provider.name.contains("Rundown")), "{plan}");
    }
}
