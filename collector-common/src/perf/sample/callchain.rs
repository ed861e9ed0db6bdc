//! Callchains: return addresses from the innermost out, with marks of where they are from in between.

use crate::ids::Avma;
use crate::perf::Words;

/// Where the addresses behind a mark are from: `enum perf_callchain_context`, numbers close to 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChainContext(pub u64);

impl ChainContext {
    /// The hypervisor.
    pub const HV: Self = Self(-32_i64 as u64);
    /// The kernel.
    pub const KERNEL: Self = Self(-128_i64 as u64);
    /// The process.
    pub const USER: Self = Self(-512_i64 as u64);
    /// The process, but its addresses come in a [`crate::perf::CallchainDeferred`] with the cookie that follows this
    /// mark (Linux 6.19).
    pub const USER_DEFERRED: Self = Self(-640_i64 as u64);
    /// A guest.
    pub const GUEST: Self = Self(-2048_i64 as u64);
    /// A guest's kernel.
    pub const GUEST_KERNEL: Self = Self(-2176_i64 as u64);
    /// A guest's process.
    pub const GUEST_USER: Self = Self(-2560_i64 as u64);

    /// `PERF_CONTEXT_MAX`: the lowest number that is a mark.
    const LOWEST: u64 = -4095_i64 as u64;
}

/// An entry of a callchain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainEntry {
    /// What follows is from here.
    Context(ChainContext),
    /// An address: of the instruction for the innermost, else where a call returns to.
    Address(Avma),
    /// The number under which the rest comes later.
    Cookie(u64),
}

/// A callchain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Callchain<'a> {
    /// The entries as they were written.
    pub words: Words<'a>,
}

impl<'a> Callchain<'a> {
    /// The number under which the process's part comes later, if it does: it is the last entry then.
    pub fn cookie(&self) -> Option<u64> {
        let last = self.words.len().checked_sub(1)?;
        let mark = self.words.get(last.checked_sub(1)?)?;
        (mark == ChainContext::USER_DEFERRED.0).then(|| self.words.get(last)).flatten()
    }

    /// Entries from the innermost out, told apart.
    pub fn iter(&self) -> impl Iterator<Item = ChainEntry> + use<'a> {
        let mut cookie_follows = false;
        self.words.iter().map(move |word| {
            if std::mem::take(&mut cookie_follows) {
                ChainEntry::Cookie(word)
            } else if word >= ChainContext::LOWEST {
                cookie_follows = word == ChainContext::USER_DEFERRED.0;
                ChainEntry::Context(ChainContext(word))
            } else {
                ChainEntry::Address(Avma(word))
            }
        })
    }
}

impl<'a> From<Words<'a>> for Callchain<'a> {
    fn from(words: Words<'a>) -> Self {
        Self { words }
    }
}
