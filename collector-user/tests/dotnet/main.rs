//! Real .NET runtimes, recorded by themselves and by us: `cargo xtask test --all` installs them, and says in `COLLECTOR_DOTNET` where.
//!
//! In each folder there is a runtime, called after its version, that runs `export/tests/integration/dotnet/Known.cs`. Needs root, as
//! recording does.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "what a test can't do is its failure")]

mod ahead;
mod runtime;

use std::fs;

use runtime::{Runtime, VERSIONS, collector, samples};

/// Who has `Known.Hot.Outer` called, as the runtime's own captures have it.
const CALLERS: [&str; 3] = [
    ";Known.Program.Main;Known.Box`1[System.__Canon].Generic",
    ";Known.Program.Main;Known.Program.<Main>m__0",
    ";Known.Program+<Async>c__async0.MoveNext",
];

/// The same, as perf maps have it.
const RECORDED_CALLERS: [&str; 3] = [
    ";Known.Program.Main();Known.Box`1[System.__Canon].Generic(!0,!!0,int64)",
    ";Known.Program.Main();Known.Program.<Main>m__0(int64)",
    ";Known.Program+<Async>c__async0.MoveNext()",
];

/// The runtime's own capture: its names stay, also in another `.nettrace` and what is made of that.
#[test]
fn captures_are_converted() {
    for version in VERSIONS {
        let folder = tempfile::tempdir().unwrap();
        let runtime = Runtime::of(version);
        let capture = runtime.capture(folder.path());
        let at = |name: &str| folder.path().join(name);
        collector(&[&"convert", &capture, &"-o", &at("first.folded"), &"-o", &at("second.nettrace")], &[]);
        collector(&[&"convert", &at("second.nettrace"), &"-o", &at("second.folded")], &[]);
        let first = fs::read_to_string(at("first.folded")).unwrap();
        assert_eq!(fs::read_to_string(at("second.folded")).unwrap(), first, "{version}");
        for caller in CALLERS {
            let spun = samples(&first, &format!("{caller};Known.Hot.Outer;Known.Hot.Spin"));
            // Of 200 ms: one every 3 ms, and the machine may be busy.
            assert!(spun >= 15, "{version}: {spun} of {caller}");
        }
    }
}

#[test]
fn a_recording_has_the_names_of_a_perf_map() {
    for version in VERSIONS {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("recorded.folded");
        let runtime = Runtime::of(version);
        runtime.record(&output, &[("PerfMapEnabled", "1")], &[]);
        let folded = fs::read_to_string(output).unwrap();
        let all = samples(&folded, "Known.Hot.Spin(int64)");
        let mut named = 0;
        for caller in RECORDED_CALLERS {
            let spun = samples(&folded, &format!("{caller};Known.Hot.Outer(int64);Known.Hot.Spin(int64)"));
            // Of 200 ms: as many as it had of a processor.
            assert!(spun >= 5, "{version}: {spun} of {caller}");
            named += spun;
        }
        assert!(named * 100 >= all * 98, "{version}: {named} of {all}");
    }
}
