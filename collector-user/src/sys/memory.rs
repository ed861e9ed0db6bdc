//! Gives memory back that was freed.

/// Has the allocator give whole free pages back to the system, which it keeps otherwise, for each thread its own.
#[cfg(target_env = "gnu")]
pub(crate) fn give_back() {
    // SAFETY: takes and returns numbers, and may be called at any time (malloc_trim(3)).
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators do so by themselves.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn give_back() {}
