//! `--kind` of `collector run`: what outputs with room for one kind of samples show, and names that no samples will have.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::recording::run;

#[test]
fn one_kind_of_several_that_were_recorded_is_shown() {
    let Some(_live) = live("one_kind_of_several_that_were_recorded_is_shown") else { return };
    let folder = folder();
    let program = compile(folder.path(), "naps", "naps.c", &["-pthread"]);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [folded, lines, told] = ["x.folded", "x.jsonl", "told"].map(at);
    for kind in ["off_cpu", "cpu"] {
        // Two threads burn and sleep for 5 ms each, 20 times.
        let options =
            ["-F", "4999", "-s", "cpu", "-s", "off_cpu", "--kind", kind, "-o", &folded, "-o", &lines, "--"];
        let command = [program.to_str().unwrap(), "2", "20", "5000", "5000", &told];
        let output = run(options.into_iter().chain(command));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        assert!(stderr.contains(&format!("folded leaves out 1 kind of samples beside {kind}")), "{stderr}");
        let counts = fs::read_to_string(&folded).unwrap();
        let counts = counts.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<i64>().unwrap());
        // One by one, of all kinds.
        let lines = fs::read_to_string(&lines).unwrap();
        let samples = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of_kind = |name: &str| {
            let own = samples.clone().filter(|line| line["type"] == "sample" && line["event"] == name);
            own.map(|line| line["value"].as_i64().unwrap()).sum::<i64>()
        };
        assert_eq!(counts.sum::<i64>(), of_kind(kind));
        assert!(of_kind("cpu") > 0 && of_kind("off_cpu") > 200_000_000, "{kind}");
    }
}

#[test]
fn names_that_no_samples_will_have_are_refused_before_anything_runs() {
    let Some(_live) = live("names_that_no_samples_will_have_are_refused_before_anything_runs") else {
        return;
    };
    let folder = folder();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [lines, marker] = ["x.jsonl", "marker"].map(at);
    let scenarios =
        ["cpu", "offcpu", "wall", "sched", "lock", "memory", "memory_growth", "faults", "proc", "sys", "io"];
    let asked: Vec<&str> = scenarios.iter().flat_map(|name| ["-s", name]).chain(["-e", "cs"]).collect();
    let recorded = |kind: &[&str]| {
        let output = ["-o", &lines, "--", "touch", &marker];
        run(asked.iter().chain(kind).chain(&output))
    };
    let refused = recorded(&["--kind", "likely_leak"]);
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    let says =
        "collector: no kind of samples that is recorded is called `likely_leak`: did you mean likely_leaks? ";
    assert!(stderr.starts_with(says) && stderr.lines().count() == 1, "{stderr}");
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        0,
        "the command was not run, and no file is left"
    );
    let foretold = stderr.trim_end().split_once("There will be ").unwrap().1.split(", ");
    let foretold: BTreeSet<String> = foretold.map(str::to_owned).collect();

    // Nothing is leaked, which is no error.
    let output = recorded(&["--kind", "likely_leaks"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert!(
        stderr.contains("warning: the recording has no samples of likely_leaks (--kind), but of "),
        "{stderr}"
    );
    let text = fs::read_to_string(&lines).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let kinds =
        first["kinds"].as_array().unwrap().iter().map(|kind| kind["name"].as_str().unwrap().to_owned());
    assert_eq!(kinds.collect::<BTreeSet<_>>(), foretold);
}
