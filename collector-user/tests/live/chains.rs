//! A program's real call chains, known from its source, and how far a recording agrees with them.

use std::collections::{BTreeMap, BTreeSet};

use crate::recording::{Recorded, Stack};

/// A program as its source tells it.
pub(crate) struct Program {
    /// Its `comm`.
    pub(crate) comm: &'static str,
    /// Every chain of the program's own functions down to where it burns time, outermost first. Functions of
    /// libraries in between are left out. On the way there a thread is in a beginning of one of them.
    pub(crate) chains: Vec<Vec<&'static str>>,
    /// Whether it throws. Where libgcc lands in a handler it overwrites the frame it runs in, for a few instructions
    /// that no unwind information describes: such stacks may be wrong, and count as cut then.
    pub(crate) throws: bool,
}

/// `chain` with the function `repeated` in it `times` times.
pub(crate) fn repeat(
    before: &[&'static str],
    repeated: &'static str,
    times: usize,
    after: &[&'static str],
) -> Vec<&'static str> {
    let middle = std::iter::repeat_n(repeated, times);
    before.iter().copied().chain(middle).chain(after.iter().copied()).collect()
}

/// The largest share of user stacks that may end early.
const MAY_BE_CUT: f64 = 0.005;

/// That share where each file is deleted as soon as its program of five milliseconds has ended: on a machine with more
/// to do than CPUs, the recorder is not always there in time to open it.
pub(crate) const MAY_BE_CUT_IN_HASTE: f64 = 0.05;

/// Fewer samples than this say nothing about that share.
const ENOUGH: u64 = 1000;

impl Program {
    /// As good as all of its user stacks are complete (one whose file was gone before it could be opened, so that its
    /// frames have no names, counts as cut), begin at `_start` or where threads begin, and name the chain
    /// that the source has; most of them show one down to where time is burnt.
    pub(crate) fn check(&self, recorded: &Recorded) {
        self.check_but(MAY_BE_CUT, recorded);
    }

    /// The same, but for another share of stacks that may end early.
    pub(crate) fn check_but(&self, may_be_cut: f64, recorded: &Recorded) {
        let own: BTreeSet<&str> = self.chains.iter().flatten().copied().collect();
        let stacks = recorded.stacks.iter();
        let stacks: Vec<&Stack> =
            stacks.filter(|stack| stack.comm == self.comm && stack.has_user_part()).collect();
        let total: u64 = stacks.iter().map(|stack| stack.count).sum();
        assert!(total >= ENOUGH, "{}: {total} user stacks only\n{}", self.comm, recorded.stderr);
        let mut cut: Vec<&Stack> = stacks.iter().copied().filter(|stack| stack.is_cut()).collect();
        let mut whole = 0;
        for stack in stacks.iter().filter(|stack| !stack.is_cut()) {
            let chain: Vec<&str> = stack.user_frames().map(plain).filter(|name| own.contains(name)).collect();
            let known = self.chains.iter().any(|known| known.starts_with(&chain));
            if known && begins_at_root(stack) {
                let reaches_leaf = self.chains.contains(&chain);
                whole += if reaches_leaf { stack.count } else { 0 };
            } else {
                // The C library, which others keep open, has names even then.
                let unnamed = chain.is_empty()
                    && stack.user_frames().any(|frame| frame.starts_with(&format!("{}+0x", self.comm)));
                assert!(self.throws || unnamed, "{}: not a chain of the source: {stack:#?}", self.comm);
                cut.push(stack);
            }
        }
        let cut_count: u64 = cut.iter().map(|stack| stack.count).sum();
        assert!(
            cut_count as f64 <= may_be_cut * total as f64,
            "{}: {cut_count} of {total} stacks end early:\n{}\n{:#}",
            self.comm,
            tops(&cut),
            recorded.stats["stacks"],
        );
        // The programs spend their time at the ends of the chains, and some of it to get there: brief ones a fifth, more
        // where caches are cold.
        let least = (total - cut_count) / 2;
        assert!(whole >= least, "{}: {whole} of {total} stacks go down to the leaf", self.comm);
    }
}

/// Whether the outermost frame is where the kernel starts programs and threads: `_start` of the program or of the
/// dynamic linker, or the C library's thread start, which a stripped library does not name.
fn begins_at_root(stack: &Stack) -> bool {
    let Some(root) = stack.user_frames().next() else { return false };
    // `_dl_start_user` is the second half of the dynamic linker's `_start`.
    ["_start", "_dl_start_user", "clone3", "__clone3", "clone", "__clone"].contains(&root)
        || ["libc.so.6+0x", "ld-linux"].iter().any(|library| root.starts_with(library))
}

/// A function's name without what compilers append to parts of it.
fn plain(name: &str) -> &str {
    let name = name.strip_suffix("_[i]").unwrap_or(name);
    let name = name.split(" [clone").next().unwrap_or(name);
    name.strip_suffix(".cold").unwrap_or(name)
}

/// Stacks summed up by their outermost frames, most frequent first, for people.
fn tops(stacks: &[&Stack]) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for stack in stacks {
        let top: Vec<&str> = stack.frames.iter().take(4).map(String::as_str).collect();
        *counts.entry(top.join(";")).or_default() += stack.count;
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let lines: Vec<String> = counts.iter().take(10).map(|(top, count)| format!("{count:6} {top}")).collect();
    lines.join("\n")
}
