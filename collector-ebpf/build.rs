//! Tells `cfg(bpf_target_arch)`, the architecture whose registers the programs read.

fn main() -> aya_build::Result<()> {
    aya_build::emit_bpf_target_arch_cfg()
}
