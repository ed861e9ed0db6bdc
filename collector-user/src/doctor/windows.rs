//! What a Windows machine allows.

use std::env;

use windows_etw::plan::Plan;
use windows_etw::session::{Sessions, Settings, Target};

use super::{Check, bad, good, limited};
use crate::etw::{Request, RequestError, TraceFolder};
use crate::symbol_path::VARIABLE;

/// What the session of the check is called, so that a recording that goes on is not disturbed.
const NAME: &str = "Collector.doctor";

/// Samples of CPUs in a second, as a recording has them.
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
    let tried = Sessions::start(&plan, &settings, |_| Box::new(|_| {})).and_then(Sessions::stop);
    match tried {
        Ok(_) => good(CHECK, "one that samples CPUs, with stacks, was started and stopped"),
        Err(error) => bad(CHECK, "one that samples CPUs can't be started", error.to_string()),
    }
}

fn plan() -> Result<Plan, RequestError> {
    let (scenarios, events) = (["cpu_profiling".to_owned()], []);
    let request = Request { scenarios: &scenarios, events: &events, frequency_hz: FREQUENCY, pids: &[] };
    request.plan(Vec::new)
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
