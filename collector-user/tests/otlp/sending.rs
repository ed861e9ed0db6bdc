//! Folded stacks in, what `collector convert` does with them out.

use std::fmt::Write as _;
use std::process::{Command, Output, Stdio};

pub(crate) use crate::http_receiver::Stacks;

/// So many stacks, with the first digits of their names.
pub(crate) fn stacks(count: i64) -> Stacks {
    (1..=count).map(|number| (format!("main;step_{};leaf_{number}", number % 7), number)).collect()
}

/// A `collector convert` of these to a URL. The environment's own variables are not its.
pub(crate) fn convert(stacks: &Stacks, url: &str) -> (Command, tempfile::TempPath) {
    let mut text = String::new();
    for (stack, count) in stacks {
        writeln!(text, "app;{stack} {count}").unwrap();
    }
    let file = tempfile::Builder::new().suffix(".folded").tempfile().unwrap().into_temp_path();
    std::fs::write(&file, text).unwrap();
    let mut collector = Command::new(env!("CARGO_BIN_EXE_collector"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("OTEL_")) {
        collector.env_remove(name);
    }
    for name in ["http_proxy", "https_proxy", "all_proxy"] {
        collector.env_remove(name).env_remove(name.to_uppercase());
    }
    collector.arg("convert").arg(&file).args(["-o", url]).stdin(Stdio::null());
    (collector, file)
}

/// Its exit status and what it says.
pub(crate) fn outcome(command: &mut Command) -> (i32, String) {
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code().unwrap(), String::from_utf8(stderr).unwrap())
}
