//! Methods of .NET: their names, and samples in them.

use std::collections::{BTreeMap, BTreeSet};

use windows_etw::decode::clr::ClrEvent;
use windows_etw::decode::kernel::KernelEvent;

use crate::baseline::counts;
use crate::data::{baseline, open};

/// `name=value` of a line.
fn value<'l>(line: &'l str, name: &str) -> &'l str {
    let (_, rest) = line.split_once(&format!(" {name}=")).unwrap();
    rest.split_once("; ").unwrap().0
}

#[test]
fn methods_have_names() {
    let file = "net.4.5.2.x64.etl";
    let Some(mut etl) = open(file) else { return };
    let (mut loaded, mut names, mut rundown) = (0, BTreeSet::new(), 0);
    // Code by its start, of each process.
    let mut code: BTreeMap<(u32, u64), (u64, String)> = BTreeMap::new();
    let (mut samples, mut processes) = (Vec::new(), BTreeMap::new());
    while let Some(record) = etl.next_record().unwrap() {
        match KernelEvent::decode(&record).unwrap() {
            Some(KernelEvent::Sample(sample)) => samples.push(sample),
            Some(
                KernelEvent::ThreadStart(thread)
                | KernelEvent::ThreadDcStart(thread)
                | KernelEvent::ThreadDcStop(thread),
            ) => drop(processes.insert(thread.tid, thread.pid.0)),
            _ => {}
        }
        match ClrEvent::decode(&record).unwrap() {
            Some(ClrEvent::NamedMethodLoad(method)) => {
                loaded += 1;
                let name = format!("{}.{}{}", method.namespace, method.name, method.signature);
                names.insert((record.pid.unwrap().0, name.clone()));
                code.insert((record.pid.unwrap().0, method.start), (u64::from(method.size), name));
            }
            Some(ClrEvent::NamedMethodDcStop(method)) => {
                rundown += 1;
                let name = format!("{}.{}{}", method.namespace, method.name, method.signature);
                code.insert((record.pid.unwrap().0, method.start), (u64::from(method.size), name));
            }
            _ => {}
        }
    }
    let baseline = baseline(file);
    let count =
        |name: &str| counts(&baseline).find_map(|(own, count)| (own == name).then_some(count)).unwrap();
    assert_eq!(loaded, count("Microsoft-Windows-DotNETRuntime/Method/LoadVerbose"));
    let mut listed = 0;
    for line in baseline.lines().filter(|line| line.contains("DotNETRuntime/Method/LoadVerbose PID=")) {
        let pid = value(line, "PID").parse().unwrap();
        let (namespace, name) = (value(line, "MethodNamespace"), value(line, "MethodName"));
        let start = namespace.strip_suffix("...").map_or(format!("{namespace}.{name}"), str::to_owned);
        let start = start.strip_suffix("...").unwrap_or(&start);
        assert!(names.iter().any(|(own, name)| *own == pid && name.starts_with(start)), "{line}");
        listed += 1;
    }
    assert_eq!(listed, 5);
    let named = samples.iter().filter(|sample| {
        let Some(pid) = processes.get(&sample.tid) else { return false };
        let below = code.range(..=(*pid, sample.instruction.0)).next_back();
        below.is_some_and(|((own, start), (size, _))| own == pid && sample.instruction.0 - start < *size)
    });
    let named = named.count();
    eprintln!(
        "{file}: {loaded} methods loaded, {rundown} at the end; {named} of {} samples are in one",
        samples.len()
    );
    assert_eq!(rundown, 16_702);
    assert!(named > 1000, "{named}");
}
