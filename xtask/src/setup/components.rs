//! Clippy and rustfmt of the toolchain that runs us, which rustup's minimal profile leaves out.

use std::env;
use std::path::Path;

use anyhow::{Context, Result};

use super::Need;
use crate::command;
use crate::toolchain;

/// Whether a verb with these needs lacks one of them. Cargo tells where it lies; they lie beside it.
pub(super) fn are_missing(needs: &[Need]) -> bool {
    let cargo = env::var_os("CARGO").unwrap_or_default();
    let Some(folder) = Path::new(&cargo).parent() else { return false };
    needs.contains(&Need::Lints)
        && ["cargo-clippy", "cargo-fmt"].iter().any(|name| !folder.join(name).exists())
}

/// Adds them by rustup.
pub(super) fn install() -> Result<()> {
    let mut rustup = toolchain::undisturbed("rustup");
    if let Some(name) = env::var_os("RUSTUP_TOOLCHAIN") {
        rustup.env("RUSTUP_TOOLCHAIN", name);
    }
    command::run(rustup.args(["component", "add", "clippy", "rustfmt"]))
        .context("install clippy and rustfmt for the Rust toolchain that you use")
}
