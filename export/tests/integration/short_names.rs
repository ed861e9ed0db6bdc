//! Short names of C++ functions against `c++filt --no-params` of binutils.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use export::symbolize::{NameForm, Naming, symbolize};

use crate::symbols::{Files, library, machine_of};
use crate::tools::{output, tool};
use collector_common::record::FrameId;

#[test]
fn short_names_are_those_of_cxxfilt() {
    if tool("gcc").is_none() || tool("c++filt").is_none() {
        return;
    }
    let path = library("libstdc++.so.6").unwrap();
    let listed = output(Command::new("nm").args(["-D", "--defined-only"]).arg(&path));
    let functions: BTreeSet<u64> = listed
        .lines()
        .filter_map(|line| line.split_once(" T ").or_else(|| line.split_once(" W ")))
        .map(|(address, _)| u64::from_str_radix(address, 16).unwrap())
        .collect();
    let machine = machine_of(&path, functions);
    let naming = Naming { form: NameForm::Short, ..Naming::default() };
    let symbols = symbolize(&machine, &Files::of(&machine), naming);
    let names = (0..machine.frames().len() as u32).map(|id| symbols.name(FrameId(id)));
    let names: Vec<_> = names.filter(|name| name.linkage.starts_with("_Z")).collect();

    let mut cxxfilt = Command::new("c++filt");
    let mut child = cxxfilt.arg("--no-params").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let asked: Vec<&str> = names.iter().map(|name| name.linkage.split('@').next().unwrap()).collect();
    let asked = asked.join("\n");
    let feeding = std::thread::spawn(move || input.write_all(asked.as_bytes()).unwrap());
    let answers = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    feeding.join().unwrap();
    let (mut whole, mut cut) = (0, 0);
    // `Ss` and others are shown as `std::string` by one, and with its arguments by the other.
    let is_abbreviated = |linkage: &str| {
        let scope = linkage.trim_start_matches("_ZN").trim_start_matches('K');
        ["Sa", "Sb", "Ss", "Si", "So", "Sd"].iter().any(|start| scope.starts_with(start))
    };
    for (name, theirs) in names.iter().zip(answers.lines()) {
        // Of clones for transactions and thunks, `c++filt` tells the parameters all the same.
        let is_special = ["_ZGT", "_ZT"].iter().any(|start| name.linkage.starts_with(start));
        if is_special || is_abbreviated(name.linkage) {
            continue;
        }
        if !theirs.contains('<') {
            assert_eq!(name.function, theirs, "{}", name.linkage);
            whole += 1;
        } else if !theirs.contains("operator") {
            // As much as there is before the first of the arguments, and nothing of these.
            assert!(
                name.function.starts_with(theirs.split('<').next().unwrap()),
                "{}: {theirs}",
                name.function
            );
            assert!(!name.function.contains(['<', '>', ',']), "{}: {theirs}", name.function);
            cut += 1;
        }
    }
    assert!(whole > 500 && cut > 1_000, "{whole}, {cut}");
}
