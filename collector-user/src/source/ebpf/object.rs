//! The compiled programs, embedded at build time.

/// Bytes aligned as an ELF header wants them.
#[repr(C, align(8))]
#[cfg(ebpf_object)]
struct Aligned<Bytes: ?Sized>(Bytes);

#[cfg(ebpf_object)]
static ALIGNED: &Aligned<[u8]> = &Aligned(*include_bytes!(env!("COLLECTOR_EBPF_OBJECT")));

#[cfg(ebpf_object)]
static OBJECT: Option<&[u8]> = Some(&ALIGNED.0);
#[cfg(not(ebpf_object))]
static OBJECT: Option<&[u8]> = None;

/// The object, or `None` in a build that was made without one.
pub(super) fn object() -> Option<&'static [u8]> {
    OBJECT
}

/// Whether this build has the programs in it.
pub fn is_built_in() -> bool {
    object().is_some()
}
