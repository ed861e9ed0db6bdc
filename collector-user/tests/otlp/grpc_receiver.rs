//! gRPC's own server, as a process.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use serde_json::Value;

pub(crate) struct Receiver {
    process: Child,
    /// What it tells, which is read as it comes.
    told: Option<JoinHandle<String>>,
    pub(crate) port: u16,
}

impl Receiver {
    /// One that gives these answers, of which the last is given again; with TLS, where it has a key and a certificate. `None` where
    /// the packages that `cargo xtask setup --for test` installs are missing.
    pub(crate) fn new(answers: &Value, secrets: &[&Path]) -> Option<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = here.join("../target/python/bin/python");
        if !python.exists() {
            let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!is_ci, "target/python is needed for this test: run `cargo xtask setup --for test`");
            eprintln!("SKIPPED: target/python is not installed");
            return None;
        }
        let mut command = Command::new(python);
        command.args(["-I", "-B"]).arg(here.join("tests/otlp/grpc_receiver.py")).arg(answers.to_string());
        command.args(secrets).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut port = String::new();
        out.read_line(&mut port).unwrap();
        let told = thread::spawn(move || {
            let mut lines = String::new();
            out.read_to_string(&mut lines).unwrap();
            lines
        });
        Some(Self { process, told: Some(told), port: port.trim().parse().unwrap() })
    }

    /// What it was sent.
    pub(crate) fn received(mut self) -> Vec<Value> {
        drop(self.process.stdin.take());
        assert!(self.process.wait().unwrap().success());
        let lines = self.told.take().unwrap().join().unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
