//! Events with their return addresses. ETW tells these in events of their own, which name the event by its time and thread, or by a number
//! that both have: those in the kernel at once, those of the user when the thread is back there, which may be much later. A
//! third kind of event has addresses that many events share, by a key; it is written when the key is given up, or when the
//! trace ends. Events of providers bring their stack, or a key of one, themselves; where the user's part could not be taken with them, it comes
//! in an event of the same thread with the same number. .NET's runtime has a way of its own: the stack of its event is the next event of
//! the same thread.
//!
//! A thread that comes back to the user tells the user's part once, for the first event since it left: all events of it from then on until that is
//! told were in the same stay in the kernel, so it is theirs, too.
//!
//! So an event is kept until so many others have come behind it, and a key stands for its addresses until the end. A key that is given
//! up may be used for other addresses: a [`StackId`] is one use of it.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher as _;
use std::sync::Arc;

use collector_common::ids::{Pid, Tid};
use collector_common::intern::Seeded;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::stack_of::{OwnStack, StackAt};
use crate::decode::Addresses;
use crate::decode::kernel::{KernelEvent, StackDefinition, StackReference, StackWalk};
use crate::record::PointerSize;

/// Events of one time and thread that wait for their stacks; more of them are no real trace's.
const MOST_ALIKE: u8 = 16;

/// Return addresses that several events have: more than ETW ever walks.
const MOST_SHARED: usize = 1 << 10;

/// One use of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

/// Return addresses, innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Half {
    /// These.
    Frames(Arc<[u64]>),
    /// Those that [`Stacks::frames`] has for it when all events have been taken.
    Shared(StackId),
}

/// Whose return addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The kernel's.
    Kernel,
    /// The user's.
    User,
}

/// An event with its return addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined<T> {
    /// The event.
    pub event: T,
    /// Return addresses in the kernel.
    pub kernel: Option<Half>,
    /// Return addresses of the user.
    pub user: Option<Half>,
    /// The process and the thread that its stack is told to be of, where that came in an event of its own: page faults and system calls name
    /// neither themselves.
    pub of: Option<(Pid, Tid)>,
}

/// What events are looked for by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Name {
    Thread(i64, Tid),
    Time(i64),
    Match(u64, Option<Tid>),
}

impl From<StackAt> for Name {
    fn from(at: StackAt) -> Self {
        match at {
            StackAt::Thread(ticks, tid) => Self::Thread(ticks, tid),
            StackAt::Cpu { ticks, .. } => Self::Time(ticks),
            StackAt::Match(number, tid) => Self::Match(number, tid),
        }
    }
}

/// Which event a stack is told to be of, and where it was told.
#[derive(Clone, Copy, Debug)]
struct Told {
    ticks: i64,
    tid: Tid,
    cpu: u16,
}

impl Told {
    /// Whether it may be of an event that does not tell its thread: that of the thread that ran there; where that is not known, one of this CPU,
    /// or of any CPU where it is the only one of its time.
    fn may_be_of(self, at: Option<StackAt>, is_only: bool) -> bool {
        match at {
            Some(StackAt::Cpu { running: Some(running), .. }) => running == self.tid,
            Some(StackAt::Cpu { running: None, cpu, .. }) => is_only || cpu == self.cpu,
            _ => false,
        }
    }
}

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackLimits {
    /// Events that wait for their stacks.
    pub events: usize,
    /// Addresses of keys.
    pub frames: usize,
    /// Addresses of events that wait.
    pub waiting_frames: usize,
    /// Uses of keys.
    pub keys: usize,
}

impl Default for StackLimits {
    /// 65,536 events with 16 million addresses, and as many of at most a million keys.
    fn default() -> Self {
        Self { events: 1 << 16, frames: 1 << 24, waiting_frames: 1 << 24, keys: 1 << 20 }
    }
}

/// What was not joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackLosses {
    /// Stacks whose event was not there, or no more.
    pub stacks: u64,
    /// Stacks that there was no room for among those of events that wait.
    pub large: u64,
    /// Stacks of an event that had one of the same side.
    pub repeated: u64,
    /// Events that more events of the same time and thread came before than can be told apart.
    pub alike: u64,
    /// Keys that there was no room for.
    pub keys: u64,
}

#[derive(Debug)]
struct Waiting<T> {
    at: Option<StackAt>,
    joined: Joined<T>,
    /// Whether the user's half was told of another event of the same stay in the kernel.
    is_lent: bool,
    /// Addresses that it keeps in memory.
    frames: usize,
    /// The next one of the same name.
    next: Option<u64>,
}

/// Joins events with their stacks.
#[derive(Debug)]
pub struct Stacks<T> {
    limits: StackLimits,
    /// In the order of their coming; the first has the number `first`.
    waiting: VecDeque<Waiting<T>>,
    first: u64,
    /// The number of the first one of each name.
    named: HashTable<u64>,
    hasher: Seeded,
    /// The latest event of .NET's runtime in each thread.
    of_runtime: HashMap<Tid, u64, Seeded>,
    /// Events with the kernel's half alone, in each thread since it was last with the user.
    in_kernel: HashMap<Tid, Vec<u64>, Seeded>,
    /// Keys that are in use.
    used: HashMap<u64, StackId, Seeded>,
    /// Addresses of uses, where they are known.
    shared: Vec<Option<Box<[u64]>>>,
    frames: usize,
    /// Addresses of those that wait.
    waiting_frames: usize,
    losses: StackLosses,
}

impl<T> Stacks<T> {
    /// Nothing yet, and at most so much.
    pub fn new(limits: StackLimits) -> Self {
        // In one piece, of which what is not written to yet takes no memory, but for a byte of the table for each name.
        let room = limits.events.min(StackLimits::default().events) + 1;
        Self {
            limits,
            waiting: VecDeque::with_capacity(room),
            first: 0,
            named: HashTable::with_capacity(room),
            hasher: Seeded::default(),
            of_runtime: HashMap::default(),
            in_kernel: HashMap::default(),
            used: HashMap::default(),
            shared: Vec::new(),
            frames: 0,
            waiting_frames: 0,
            losses: StackLosses::default(),
        }
    }

    /// Takes an event that may have a stack, with the return addresses that it brings. Out: one that has waited long enough.
    pub fn event(&mut self, at: Option<StackAt>, own: Option<OwnStack<'_>>, event: T) -> Option<Joined<T>> {
        let number = self.first + self.waiting.len() as u64;
        let joined = Joined { event, kernel: None, user: None, of: None };
        let mut waiting = Waiting { at, joined, is_lent: false, frames: 0, next: None };
        match own {
            Some(OwnStack::Frames(frames)) if self.has_room(frames) && put(&mut waiting, frames) => {
                self.waiting_frames += waiting.frames;
            }
            Some(OwnStack::Key(key)) => waiting.joined.kernel = self.id_of(key).map(Half::Shared),
            Some(OwnStack::Frames(_)) | None => {}
        }
        self.waiting.push_back(waiting);
        if let Some(at) = at {
            self.name(at.into(), number);
        }
        if self.waiting.len() > self.limits.events { self.oldest() } else { None }
    }

    /// The same of an event of .NET's runtime, which may tell its stack in an event of its own behind it in the same thread.
    pub fn runtime_event(
        &mut self,
        at: Option<StackAt>,
        tid: Tid,
        own: Option<OwnStack<'_>>,
        event: T,
    ) -> Option<Joined<T>> {
        let number = self.first + self.waiting.len() as u64;
        // Of threads whose events have gone nothing is kept.
        if self.of_runtime.len() > 2 * self.limits.events {
            self.of_runtime.retain(|_, number| *number >= self.first);
        }
        self.of_runtime.insert(tid, number);
        self.event(at, own, event)
    }

    /// Takes the return addresses that the runtime tells of the event before them in the thread.
    pub fn runtime_stack(&mut self, tid: Tid, frames: Addresses<'_>) {
        let number = self.of_runtime.remove(&tid).and_then(|number| place(number, self.first));
        if !self.has_room(frames) {
            return;
        }
        let found = match number.and_then(|place| self.waiting.get_mut(place)) {
            Some(waiting) => (true, put(waiting, frames)),
            None => (false, false),
        };
        if found.1 {
            self.waiting_frames += frames.iter().len();
        }
        self.count(found);
    }

    /// Takes an event of a CPU that has stacks of others, or of keys. Out: whether it is one.
    pub fn stack(&mut self, event: &KernelEvent<'_>, cpu: u16) -> bool {
        match event {
            KernelEvent::Stack(walk) => self.walk(walk, cpu),
            KernelEvent::StackKeyKernel(reference) => self.reference(reference, Side::Kernel, cpu),
            KernelEvent::StackKeyUser(reference) => self.reference(reference, Side::User, cpu),
            KernelEvent::StackKeyCreate(definition) | KernelEvent::StackKeyRundown(definition) => {
                self.define(definition);
            }
            KernelEvent::StackKeyDelete(definition) => {
                self.define(definition);
                self.used.remove(&definition.key.0);
            }
            _ => return false,
        }
        true
    }

    /// Takes the rest of a stack, if it is one: an event of the same number and thread waits, and lacks it. Out: whether it is.
    pub fn rest(&mut self, at: StackAt, rest: OwnStack<'_>) -> bool {
        let name = Name::from(at);
        if !matches!(at, StackAt::Match(..)) || self.first_of(name).is_none() {
            return false;
        }
        match rest {
            OwnStack::Frames(frames) => {
                let is_put =
                    self.has_room(frames) && self.find(name, |waiting| put(waiting, frames)).1.is_some();
                self.waiting_frames += if is_put { frames.iter().len() } else { 0 };
                is_put
            }
            OwnStack::Key(key) => {
                let Some(id) = self.id_of(key) else { return false };
                let put = |waiting: &mut Waiting<T>| {
                    let joined = &mut waiting.joined;
                    let is_rest = joined.kernel.is_some() && joined.user.is_none();
                    if is_rest {
                        joined.user = Some(Half::Shared(id));
                    }
                    is_rest
                };
                self.find(name, put).1.is_some()
            }
        }
    }

    /// The events that still wait, the oldest first. When all events have been taken, and no sooner.
    pub fn finish(&mut self) -> impl Iterator<Item = Joined<T>> + '_ {
        // Nothing is looked for any more.
        self.named.clear();
        std::iter::from_fn(|| self.oldest())
    }

    /// The addresses of a key; none where no event has told them.
    pub fn frames(&self, id: StackId) -> Option<&[u64]> {
        self.shared.get(id.0 as usize)?.as_deref()
    }

    /// What was not joined.
    pub const fn losses(&self) -> StackLosses {
        self.losses
    }

    /// The number of the first event of a name.
    fn first_of(&self, name: Name) -> Option<u64> {
        let is_it = |number: &u64| name_of(&self.waiting, self.first, *number) == Some(name);
        self.named.find(self.hasher.hash_one(name), is_it).copied()
    }

    /// Gives the latest event its name.
    fn name(&mut self, name: Name, number: u64) {
        let Self { named, hasher, waiting, first, .. } = self;
        let is_it = |other: &u64| name_of(waiting, *first, *other) == Some(name);
        let hash = |other: &u64| name_of(waiting, *first, *other).map_or(0, |name| hasher.hash_one(name));
        let mut last = match named.entry(hasher.hash_one(name), is_it, hash) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                free.insert(number);
                return;
            }
        };
        for _ in 1..MOST_ALIKE {
            let Some(waiting) = place(last, *first).and_then(|place| waiting.get_mut(place)) else { return };
            let Some(next) = waiting.next else {
                waiting.next = Some(number);
                return;
            };
            last = next;
        }
        self.losses.alike += 1;
    }

    fn oldest(&mut self) -> Option<Joined<T>> {
        let oldest = self.waiting.pop_front()?;
        let number = self.first;
        self.first += 1;
        self.waiting_frames -= oldest.frames;
        if let Some(name) = oldest.at.map(Name::from)
            && let Ok(mut known) = self.named.find_entry(self.hasher.hash_one(name), |first| *first == number)
        {
            match oldest.next {
                Some(next) => *known.get_mut() = next,
                None => drop(known.remove()),
            }
        }
        Some(oldest.joined)
    }

    /// Calls `take` with the events of a name until it has taken one. Out: whether there are any, and the number of that which was taken.
    fn find(&mut self, name: Name, mut take: impl FnMut(&mut Waiting<T>) -> bool) -> (bool, Option<u64>) {
        let mut next = self.first_of(name);
        let is_there = next.is_some();
        while let Some(number) = next
            && let Some(waiting) = place(number, self.first).and_then(|place| self.waiting.get_mut(place))
        {
            if take(waiting) {
                return (true, next);
            }
            next = waiting.next;
        }
        (is_there, None)
    }

    /// The same with those that a stack may be of: events of its thread, or else of its time that do not tell theirs.
    fn find_told(
        &mut self,
        told: Told,
        mut take: impl FnMut(&mut Waiting<T>) -> bool,
    ) -> (bool, Option<u64>) {
        let Told { ticks, tid, .. } = told;
        let of_thread = self.find(Name::Thread(ticks, tid), &mut take);
        if of_thread.0 {
            return of_thread;
        }
        let of_time = Name::Time(ticks);
        let first = self.first_of(of_time).and_then(|first| self.waiting.get(place(first, self.first)?));
        let is_only = first.is_some_and(|first| first.next.is_none());
        let mut is_there = false;
        let (_, number) = self.find(of_time, |waiting| {
            let may_be = told.may_be_of(waiting.at, is_only);
            is_there |= may_be;
            may_be && take(waiting)
        });
        (is_there, number)
    }

    /// Whether there is room for a stack's addresses, which is counted where there is none.
    fn has_room(&mut self, frames: Addresses<'_>) -> bool {
        let has_room = self.waiting_frames + frames.iter().len() <= self.limits.waiting_frames;
        self.losses.large += u64::from(!has_room);
        has_room
    }

    fn count(&mut self, (is_there, is_taken): (bool, bool)) {
        self.losses.stacks += u64::from(!is_there);
        self.losses.repeated += u64::from(is_there && !is_taken);
    }

    fn walk(&mut self, walk: &StackWalk<'_>, cpu: u16) {
        let Ok(ticks) = i64::try_from(walk.event_ticks) else {
            self.losses.stacks += 1;
            return;
        };
        if !self.has_room(walk.frames) {
            return;
        }
        let told = Told { ticks, tid: walk.tid, cpu };
        let (is_there, number) = self.find_told(told, |waiting| {
            let is_put = put(waiting, walk.frames);
            if is_put {
                waiting.joined.of = Some((walk.pid, walk.tid));
            }
            is_put
        });
        self.count((is_there, number.is_some()));
        let (in_kernel, all) = (in_kernel(walk.frames), walk.frames.iter().len());
        self.waiting_frames += if number.is_some() { all } else { 0 };
        if in_kernel > 0 && in_kernel == all {
            self.enter(walk.tid, number);
        } else if in_kernel == 0 && (1..=MOST_SHARED).contains(&all) && self.in_kernel.contains_key(&walk.tid)
        {
            self.leave(walk.tid, ticks, &Half::Frames(walk.frames.iter().collect()), all);
        }
    }

    /// An event's stack ends in the kernel, in which the thread is.
    fn enter(&mut self, tid: Tid, number: Option<u64>) {
        let Some(number) = number else { return };
        // Of threads whose events have gone nothing is kept.
        if self.in_kernel.len() > 2 * self.limits.events {
            self.in_kernel.retain(|_, numbers| numbers.last().is_some_and(|last| *last >= self.first));
        }
        let numbers = self.in_kernel.entry(tid).or_default();
        if numbers.len() == numbers.capacity() {
            numbers.retain(|number| *number >= self.first);
        }
        numbers.push(number);
    }

    /// A thread is back with the user, which it left at that time or before; of the user's half so many addresses are in memory.
    fn leave(&mut self, tid: Tid, ticks: i64, user: &Half, mut frames: usize) {
        for number in self.in_kernel.remove(&tid).unwrap_or_default() {
            let waiting = place(number, self.first).and_then(|place| self.waiting.get_mut(place));
            let Some(waiting) = waiting.filter(|waiting| waiting.joined.user.is_none()) else { continue };
            if let Some(StackAt::Thread(at, _) | StackAt::Cpu { ticks: at, .. }) = waiting.at
                && at >= ticks
            {
                waiting.joined.user = Some(user.clone());
                waiting.is_lent = true;
                // They have it in common.
                let frames = std::mem::take(&mut frames);
                waiting.frames += frames;
                self.waiting_frames += frames;
            }
        }
    }

    fn reference(&mut self, reference: &StackReference, side: Side, cpu: u16) {
        let Ok(ticks) = i64::try_from(reference.event_ticks) else {
            self.losses.stacks += 1;
            return;
        };
        let Some(id) = self.id_of(reference.key.0) else { return };
        let told = Told { ticks, tid: reference.tid, cpu };
        let (is_there, number) = self.find_told(told, |waiting| {
            let joined = &mut waiting.joined;
            let half = match side {
                Side::Kernel => &mut joined.kernel,
                Side::User => &mut joined.user,
            };
            let is_free = half.is_none() || side == Side::User && waiting.is_lent;
            if is_free {
                *half = Some(Half::Shared(id));
                waiting.is_lent &= side == Side::Kernel;
                joined.of = Some((reference.pid, reference.tid));
            }
            is_free
        });
        self.count((is_there, number.is_some()));
        match side {
            Side::Kernel => self.enter(reference.tid, number),
            Side::User => self.leave(reference.tid, ticks, &Half::Shared(id), 0),
        }
    }

    fn id_of(&mut self, key: u64) -> Option<StackId> {
        if let Some(id) = self.used.get(&key) {
            return Some(*id);
        }
        let id = u32::try_from(self.shared.len()).ok().filter(|_| self.shared.len() < self.limits.keys);
        let Some(id) = id.map(StackId) else {
            self.losses.keys += 1;
            return None;
        };
        self.shared.push(None);
        self.used.insert(key, id);
        Some(id)
    }

    fn define(&mut self, definition: &StackDefinition<'_>) {
        let frames = definition.frames.iter();
        let Some(id) = self.id_of(definition.key.0) else { return };
        if self.frames + frames.len() > self.limits.frames {
            self.losses.keys += 1;
            return;
        }
        if let Some(shared) = self.shared.get_mut(id.0 as usize).filter(|shared| shared.is_none()) {
            self.frames += frames.len();
            *shared = Some(frames.collect());
        }
    }
}

/// Where among those that wait the one of a number is.
fn place(number: u64, first: u64) -> Option<usize> {
    usize::try_from(number.checked_sub(first)?).ok()
}

/// The name of one that waits.
fn name_of<T>(waiting: &VecDeque<Waiting<T>>, first: u64, number: u64) -> Option<Name> {
    waiting.get(place(number, first)?)?.at.map(Name::from)
}

/// How many of the first return addresses are in the kernel.
fn in_kernel(frames: Addresses<'_>) -> usize {
    let is_kernel = |address: u64| match frames.width {
        PointerSize::Bits32 => address >> 31 != 0,
        PointerSize::Bits64 => address >> 63 != 0,
    };
    frames.iter().take_while(|address| is_kernel(*address)).count()
}

/// Adds return addresses, those in the kernel first. Out: whether there was room for them.
fn put<T>(waiting: &mut Waiting<T>, frames: Addresses<'_>) -> bool {
    let in_kernel = in_kernel(frames);
    let has_user = in_kernel < frames.iter().len();
    let joined = &mut waiting.joined;
    if in_kernel > 0 && joined.kernel.is_some() || has_user && joined.user.is_some() && !waiting.is_lent {
        return false;
    }
    waiting.is_lent &= !has_user;
    waiting.frames += frames.iter().len();
    if in_kernel > 0 {
        joined.kernel = Some(Half::Frames(frames.iter().take(in_kernel).collect()));
    }
    if has_user {
        joined.user = Some(Half::Frames(frames.iter().skip(in_kernel).collect()));
    }
    true
}
