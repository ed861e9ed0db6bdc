//! bpf-linker, which turns LLVM bitcode into an eBPF object.
//!
//! Out: `target/tools/bin/bpf-linker`, compiled against Debian's LLVM 22, the one that Debian's Rust compiler is
//! made with: a linker of an older LLVM can't read its bitcode.

use super::Need;
use super::cargo_tool::CargoTool;
use crate::toolchain::BpfToolchain;
use crate::workspace::Workspace;

/// The version that is known to link for the kernels we test on.
pub(super) const BPF_LINKER: CargoTool = CargoTool {
    name: "bpf-linker",
    version: "0.13.0",
    args: &["--no-default-features", "--features", "llvm-22"],
    env: &[("LLVM_PREFIX", "/usr/lib/llvm-22")],
};

/// Whether a verb with these needs lacks the linker. With Debian's compiler it must be of our version and LLVM;
/// with rustup's nightly, any that is there was chosen by a person.
pub(super) fn is_missing(workspace: &Workspace, needs: &[Need]) -> bool {
    let by_person = || matches!(BpfToolchain::detect(workspace), Some(BpfToolchain::Nightly { .. }));
    needs.contains(&Need::Bpf) && !BPF_LINKER.is_installed(workspace) && !by_person()
}
