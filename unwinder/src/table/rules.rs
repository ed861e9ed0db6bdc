//! The interned rules of a table. Thousands of functions share one way to save their registers, so a row is only a
//! code offset and a [`RuleId`].

use super::row::{CfaRule, ExpressionSpan, RegisterNumber, RegisterRule, Row};
use crate::Architecture;
use crate::rule::{Rule, RuleOf};

/// Slots that are looked at for a rule, far more than it takes where hashes are not chosen to collide. A rule that has none of
/// them is kept without a slot, and will not be found again.
const MAX_PROBES: usize = 64;

/// Names a rule of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuleId(pub(crate) u32);

/// A register that changes on the way to the caller, and how, in one word:
///
/// ```text
///  63        32 31     16 15       8 7      0
///  |  value    | length  | register |  kind |
/// ```
///
/// The value is an offset, a register's number or an expression's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Saved(u64);

impl Saved {
    /// A register that does not change.
    pub(crate) const NONE: Saved = Saved(0);

    /// 0 for what does not change.
    #[inline]
    pub(crate) fn hash(self) -> u64 {
        let mixed = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    pub(crate) fn new(register: RegisterNumber, rule: RegisterRule) -> Self {
        let (kind, value, length) = match rule {
            RegisterRule::Unspecified => (0, 0, 0),
            RegisterRule::Undefined => (1, 0, 0),
            RegisterRule::SameValue => (2, 0, 0),
            RegisterRule::Offset(offset) => (3, offset as u32, 0),
            RegisterRule::ValOffset(offset) => (4, offset as u32, 0),
            RegisterRule::Register(source) => (5, source.into(), 0),
            RegisterRule::Expression(span) => (6, span.offset, span.length),
            RegisterRule::ValExpression(span) => (7, span.offset, span.length),
        };
        Saved(u64::from(value) << 32 | u64::from(length) << 16 | u64::from(register) << 8 | kind)
    }

    pub(crate) fn register(self) -> RegisterNumber {
        (self.0 >> 8) as RegisterNumber
    }

    pub(crate) fn rule(self) -> RegisterRule {
        let value = (self.0 >> 32) as u32;
        let span = ExpressionSpan { offset: value, length: (self.0 >> 16) as u16 };
        match self.0 as u8 {
            1 => RegisterRule::Undefined,
            2 => RegisterRule::SameValue,
            3 => RegisterRule::Offset(value as i32),
            4 => RegisterRule::ValOffset(value as i32),
            5 => RegisterRule::Register(value as RegisterNumber),
            6 => RegisterRule::Expression(span),
            7 => RegisterRule::ValExpression(span),
            _ => RegisterRule::Unspecified,
        }
    }
}

/// What a rule has beside the CFA and the registers' rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    /// The register that stands for the return address.
    pub(crate) return_address: RegisterNumber,
    /// A signal trampoline: the caller's address is where it was interrupted.
    pub(crate) signal: bool,
    /// The return address is signed, on architectures that sign.
    pub(crate) signed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head<A: Architecture> {
    cfa: CfaRule,
    traits: Traits,
    saved_count: u8,
    saved_start: u32,
    /// What the quick walk does for this rule.
    quick: RuleOf<A>,
}

/// A rule in full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuleView<'a> {
    pub(crate) cfa: CfaRule,
    pub(crate) traits: Traits,
    /// The registers that change;
    pub(crate) saved: &'a [Saved],
    /// or all, by their numbers, with [`Saved::NONE`] for those that don't.
    pub(crate) has_all: bool,
    /// The unwind section, which holds the expressions' bytes.
    pub(crate) section: &'a [u8],
}

impl RuleView<'_> {
    #[inline]
    pub(crate) fn register(&self, register: RegisterNumber) -> RegisterRule {
        let saved = if self.has_all {
            self.saved.get(usize::from(register))
        } else {
            self.saved.iter().find(|saved| saved.register() == register)
        };
        saved.map_or(RegisterRule::Unspecified, |saved| saved.rule())
    }
}

/// All rules of a table, each once.
#[derive(Debug)]
pub(crate) struct RuleStore<A: Architecture> {
    heads: Vec<Head<A>>,
    saved: Vec<Saved>,
    /// Open addressing with linear probing: a rule's id plus 1, or 0. Its length is a power of two, not below [`MAX_PROBES`].
    slots: Vec<u32>,
}

impl<A: Architecture> RuleStore<A> {
    /// With room for the rules that the first stacks need.
    pub(crate) fn new() -> Self {
        RuleStore { heads: Vec::with_capacity(48), saved: Vec::with_capacity(128), slots: vec![0; 128] }
    }

    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    pub(crate) fn bytes_held(&self) -> usize {
        self.heads.capacity() * size_of::<Head<A>>()
            + self.saved.capacity() * size_of::<Saved>()
            + self.slots.capacity() * size_of::<u32>()
    }

    pub(crate) fn quick(&self, id: RuleId) -> RuleOf<A> {
        self.heads.get(id.0 as usize).map_or(Rule::Missing, |head| head.quick)
    }

    pub(crate) fn view<'a>(&'a self, id: RuleId, section: &'a [u8]) -> Option<RuleView<'a>> {
        let head = self.heads.get(id.0 as usize)?;
        let start = head.saved_start as usize;
        let saved = self.saved.get(start..start + usize::from(head.saved_count))?;
        Some(RuleView { cfa: head.cfa, traits: head.traits, saved, has_all: false, section })
    }

    /// The id of the rule that `row` is, which is added if it is new.
    pub(crate) fn intern(&mut self, row: &Row<A>, traits: Traits, section: &[u8]) -> RuleId {
        if self.heads.len() * 4 >= self.slots.len() * 3 {
            self.grow();
        }
        let mut free = None;
        for slot in self.probes(slot_of(row.cfa, traits, row.hash())) {
            let Some(id) = self.slots[slot].checked_sub(1) else {
                free = Some(slot);
                break;
            };
            let known = self.view(RuleId(id), section);
            if known.is_some_and(|known| {
                known.cfa == row.cfa && known.traits == traits && row.has_just(known.saved)
            }) {
                return RuleId(id);
            }
        }
        let id = RuleId(self.heads.len() as u32);
        let saved_start = self.saved.len();
        self.saved.extend(row.changes());
        let saved = &self.saved[saved_start..];
        let view = RuleView { cfa: row.cfa, traits, saved, has_all: false, section };
        let quick = Rule::of::<A>(id, &view);
        let (saved_count, saved_start) = (saved.len() as u8, saved_start as u32);
        self.heads.push(Head { cfa: row.cfa, traits, saved_count, saved_start, quick });
        if let Some(slot) = free {
            self.slots[slot] = id.0 + 1;
        }
        id
    }

    /// The slots that a rule of this hash may have.
    fn probes(&self, hash: u64) -> impl Iterator<Item = usize> + use<A> {
        let mask = self.slots.len() - 1;
        (0..MAX_PROBES).map(move |step| (hash as usize).wrapping_add(step) & mask)
    }

    fn grow(&mut self) {
        let length = self.slots.len() * 2;
        self.slots.clear();
        self.slots.resize(length, 0);
        for (index, head) in self.heads.iter().enumerate() {
            let start = head.saved_start as usize;
            let saved = &self.saved[start..start + usize::from(head.saved_count)];
            let hash = saved.iter().fold(0, |hash, saved| hash ^ saved.hash());
            let free = self.probes(slot_of(head.cfa, head.traits, hash)).find(|&slot| self.slots[slot] == 0);
            if let Some(slot) = free {
                self.slots[slot] = index as u32 + 1;
            }
        }
    }
}

#[inline]
fn slot_of(cfa: CfaRule, traits: Traits, saved: u64) -> u64 {
    let (kind, register, value) = match cfa {
        CfaRule::Unsupported => (0, 0, 0),
        CfaRule::RegisterOffset { register, offset } => (1, register, offset as u32),
        CfaRule::Expression(span) => (2, 0, span.offset),
    };
    let head = u64::from_le_bytes([
        kind,
        register,
        traits.return_address,
        traits.signal.into(),
        traits.signed.into(),
        0,
        0,
        0,
    ]);
    let mixed = (saved ^ head ^ u64::from(value) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use super::{CfaRule, MAX_PROBES, Row, RuleStore, Traits, slot_of};
    use crate::x86_64::X86_64;

    #[test]
    fn rules_that_collide_are_kept_and_looked_for_no_longer_than_others() {
        let traits = Traits { return_address: 16, signal: false, signed: false };
        let cfa = |offset| CfaRule::RegisterOffset { register: 7, offset };
        let collides = |&offset: &i32| slot_of(cfa(offset), traits, 0).trailing_zeros() >= 12;
        let offsets: Vec<i32> = (0..).filter(collides).take(3 * MAX_PROBES).collect();
        let mut store = RuleStore::<X86_64>::new();
        for _ in 0..2 {
            for &offset in &offsets {
                let mut row = Row::EMPTY;
                row.cfa = cfa(offset);
                let id = store.intern(&row, traits, &[]);
                assert_eq!(store.view(id, &[]).map(|rule| rule.cfa), Some(cfa(offset)));
            }
        }
        // Those that had no slot were not found the second time.
        assert_eq!(store.len(), 5 * MAX_PROBES);
    }
}
