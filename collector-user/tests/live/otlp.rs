//! What is recorded goes to a receiver of OTLP profiles, beside files.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use collector_user::universal::{ExportError, ExportSettings, UniversalExporter};

#[cfg(feature = "otlp-grpc")]
use crate::grpc_receiver::Receiver as GrpcReceiver;
use crate::http_receiver::{Answer, Received, Receiver, Stacks, taken};
use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::recording::{FREQUENCY, collector};

/// `collector run` of a program to a URL and a folded file; its exit status and what it says.
fn run(url: &str, folded: &Path, program: impl AsRef<OsStr>) -> (i32, String) {
    let mut collector = collector();
    for (name, _) in std::env::vars().filter(|(name, _)| {
        let name = name.to_lowercase();
        name.starts_with("otel_") || name.ends_with("_proxy")
    }) {
        collector.env_remove(name);
    }
    collector.args(["run", "-F", FREQUENCY, "-o", url, "-o"]).arg(folded).arg("--").arg(program);
    let output = collector.stdin(Stdio::null()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The stacks of all requests.
fn together(received: &[Received]) -> Stacks {
    let mut all = Stacks::new();
    for (stack, count) in received.iter().flat_map(Received::stacks) {
        *all.entry(stack).or_default() += count;
    }
    all
}

/// The stacks of a folded file, without the names of processes that they begin with, and without marks of what functions are.
fn folded_stacks(path: &Path) -> Stacks {
    let mut all = Stacks::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let stack = stack.split_once(';').unwrap().1.replace("_[k]", "").replace("_[i]", "");
        *all.entry(stack).or_default() += count.parse::<i64>().unwrap();
    }
    all
}

/// How many samples each function is on.
fn by_function(stacks: &Stacks) -> BTreeMap<&str, i64> {
    let mut counts = BTreeMap::new();
    for (stack, count) in stacks {
        let mut names: Vec<&str> = stack.split(';').collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            *counts.entry(name).or_default() += count;
        }
    }
    counts
}

#[test]
fn a_receiver_has_what_the_file_has() {
    let Some(_live) = live("a_receiver_has_what_the_file_has") else { return };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &[]);
    let folded = folder.path().join("x.folded");
    let receiver = Receiver::new(vec![taken()]);
    let (code, says) = run(&receiver.url, &folded, &program);
    assert_eq!(code, 0, "{says}");
    let received = receiver.received();
    let (sent, written) = (together(&received), folded_stacks(&folded));
    let samples: i64 = written.values().sum();
    assert!(samples > 50, "{says}");
    assert!(says.contains(&format!("sent {samples} samples in {} requests", received.len())), "{says}");
    assert_eq!(by_function(&sent), by_function(&written));
    assert!(sent == written);
}

/// gRPC's own server for Python takes it.
#[cfg(feature = "otlp-grpc")]
#[test]
fn a_receiver_by_grpc_has_what_the_file_has() {
    let Some(_live) = live("a_receiver_by_grpc_has_what_the_file_has") else { return };
    let Some(receiver) = GrpcReceiver::new(&serde_json::json!([{}]), &[]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &[]);
    let folded = folder.path().join("x.folded");
    let (code, says) = run(&format!("grpc://127.0.0.1:{}", receiver.port), &folded, &program);
    assert_eq!(code, 0, "{says}");
    let received = receiver.received();
    let mut sent = Stacks::new();
    for (stack, count) in received.iter().flat_map(|request| request["stacks"].as_object().unwrap()) {
        *sent.entry(stack.clone()).or_default() += count.as_i64().unwrap();
    }
    let written = folded_stacks(&folded);
    let samples: i64 = written.values().sum();
    assert!(samples > 50, "{says}");
    assert!(says.contains(&format!("sent {samples} samples in {} requests", received.len())), "{says}");
    assert!(sent == written);
}

#[test]
fn a_receiver_that_takes_nothing_leaves_the_files() {
    let Some(_live) = live("a_receiver_that_takes_nothing_leaves_the_files") else { return };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &[]);
    let folded = folder.path().join("x.folded");
    let receiver = Receiver::new(vec![Answer::Bytes("400 Bad Request", Vec::new())]);
    let (code, says) = run(&receiver.url, &folded, &program);
    assert!(code != 0, "{says}");
    assert!(!receiver.received().is_empty());
    let samples: i64 = folded_stacks(&folded).values().sum();
    assert!(samples > 50 && says.contains(&format!("{samples} in ")), "{says}");
    assert!(says.contains("were refused: status 400 Bad Request"), "{says}");
}

#[test]
fn without_a_receiver_nothing_is_run() {
    let Some(_live) = live("without_a_receiver_nothing_is_run") else { return };
    let folder = folder();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let made = folder.path().join("made");
    let mut collector = collector();
    collector.args(["run", "-o", &format!("http://127.0.0.1:{port}"), "--", "touch"]).arg(&made);
    let output = collector.env_remove("http_proxy").env_remove("HTTP_PROXY").output().unwrap();
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && says.contains("nobody listens"), "{says}");
    assert!(!made.exists());
}

#[test]
fn an_embedding_program_sends_as_it_writes() {
    let Some(_live) = live("an_embedding_program_sends_as_it_writes") else { return };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &[]);
    let folded = folder.path().join("x.folded");
    let [first, second] = [(); 2].map(|()| Receiver::new(vec![taken()]));
    let refusing = Receiver::new(vec![Answer::Bytes("403 Forbidden", Vec::new())]);
    let settings = || ExportSettings::default().with_pid(std::process::id());
    let collect = |exporter: &mut UniversalExporter| {
        exporter.start_collection().unwrap();
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(300) {}
        assert!(Command::new(&program).stdout(Stdio::null()).status().unwrap().success());
        exporter.stop_and_export()
    };
    let settings_of_first = settings().with_output(&first.url).with_output(&folded);
    let exported = collect(&mut UniversalExporter::new(settings_of_first)).unwrap();
    let samples = exported.recording.machine.samples().len();
    let received = first.received();
    let sent = together(&received);
    // Names of this program's functions have semicolons in them, which folded stacks can't have.
    let recursive = |stacks: &Stacks| {
        let own = stacks.iter().filter(|(stack, _)| stack.contains(";main;recurse;"));
        own.map(|(stack, count)| (stack.clone(), *count)).collect::<Stacks>()
    };
    let written = folded_stacks(&folded);
    assert!(recursive(&sent).values().sum::<i64>() > 50 && recursive(&sent) == recursive(&written));
    assert_eq!(sent.values().sum::<i64>(), written.values().sum::<i64>());
    assert_eq!(sent.values().sum::<i64>(), i64::try_from(samples).unwrap());
    assert_eq!(exported.written, [folded.canonicalize().unwrap()]);
    let [line] = &exported.sent[..] else { panic!("{:?}", exported.sent) };
    assert!(line.ends_with(&format!(": {samples} samples in {} requests", received.len())), "{line}");

    let url = refusing.url.clone();
    let settings = settings().with_output(&refusing.url).with_output(&second.url);
    let Err(ExportError::Incomplete(incomplete)) = collect(&mut UniversalExporter::new(settings)) else {
        panic!("it was told that all was taken")
    };
    let [ExportError::Receiver { url: failed, .. }] = &incomplete.failures[..] else {
        panic!("{:?}", incomplete.failures)
    };
    assert_eq!(*failed, url);
    assert!(incomplete.to_string().contains("403"), "{incomplete}");
    assert!(!refusing.received().is_empty() && !together(&second.received()).is_empty());
}
