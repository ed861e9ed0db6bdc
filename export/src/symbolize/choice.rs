//! Which of several symbols at one place names it: the most visible one, then the one with fewer leading
//! underscores, then the longer one. The last two are what perf does, so that names agree with its.

/// How visible a symbol is; a greater one is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binding {
    /// Of one object file.
    Local,
    /// Global, and replaceable.
    Weak,
    /// Global.
    Global,
}

/// Whether `name` is the better name than `other`, of a symbol that is as visible.
pub(super) fn reads_better(name: &[u8], other: &[u8]) -> bool {
    let underscores = |name: &[u8]| name.iter().take_while(|&&byte| byte == b'_').count();
    (underscores(other), name.len()) > (underscores(name), other.len())
}
