//! Embeds the compiled eBPF object.
//!
//! In a checkout the object is `target/bpf/collector-<arch>.bpf.o`, made by `cargo xtask build-ebpf`, and its
//! hash must be that of the sources; in a published crate it is in the folder `bpf`. Without an object the
//! library is built all the same and says at run time what is missing.

#[path = "bpf_hash.rs"]
mod bpf_hash;

use std::env;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rustc-check-cfg=cfg(ebpf_object)");
    println!("cargo::rerun-if-changed=bpf_hash.rs");
    let linux = env::var("CARGO_CFG_TARGET_OS")? == "linux";
    if !linux || env::var_os("CARGO_FEATURE_EBPF").is_none() {
        return Ok(());
    }
    let arch = env::var("CARGO_CFG_TARGET_ARCH")?;
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let top = here.parent().unwrap_or(&here).to_path_buf();
    let object = if top.join("collector-ebpf").is_dir() {
        from_checkout(&top, &arch)?
    } else {
        Some(here.join(format!("bpf/collector-{arch}.bpf.o"))).filter(|object| object.is_file())
    };
    if let Some(object) = object {
        println!("cargo::rerun-if-changed={}", object.display());
        println!("cargo::rustc-env=COLLECTOR_EBPF_OBJECT={}", object.display());
        println!("cargo::rustc-cfg=ebpf_object");
    }
    Ok(())
}

/// The object of a checkout, if there is one; an error if it was made from other sources.
fn from_checkout(top: &Path, arch: &str) -> Result<Option<PathBuf>, Box<dyn std::error::Error>> {
    let object = top.join(format!("target/bpf/collector-{arch}.bpf.o"));
    let hash_file = object.with_extension("hash");
    for input in bpf_hash::source_files(top)? {
        println!("cargo::rerun-if-changed={}", input.display());
    }
    println!("cargo::rerun-if-changed={}", hash_file.display());
    if !object.is_file() {
        return Ok(None);
    }
    let made_from = std::fs::read_to_string(&hash_file).unwrap_or_default();
    if made_from.trim() != bpf_hash::source_hash(top)? {
        return Err("the compiled eBPF object is older than its sources: run `cargo xtask build-ebpf`".into());
    }
    Ok(Some(object))
}
