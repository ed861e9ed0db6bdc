//! What events of one chunk refer to: each is written down where it is met for the first time in the chunk, with what it refers to
//! itself, and goes out as one event when the chunk ends.

use collector_common::intern::{StackId, StringId};
use collector_common::record::{AttributeListId, FrameFlags, ProcessId, ThreadId};

use super::code::{Code, FrameType, StackFrame};
use super::kinds::{State, attributes};
use super::types::id;
use super::wire::{NULL, int, long, symbol, text};
use crate::format::Profile;

/// Constants of one type.
#[derive(Debug)]
struct Pool {
    type_id: u64,
    /// By number: in which chunk it was met last, counted from 1.
    met: Vec<u32>,
    chunk: u32,
    count: u32,
    bytes: Vec<u8>,
}

impl Pool {
    const fn new(type_id: u64) -> Self {
        Self { type_id, met: Vec::new(), chunk: 1, count: 0, bytes: Vec::new() }
    }

    /// Whether the constant is to be written behind its number, which then has been written. Numbers begin with 1, as 0 is none.
    fn begin(&mut self, position: u32) -> bool {
        let at = position as usize;
        if at >= self.met.len() {
            self.met.resize(at + 1, 0);
        }
        let is_new = self.met[at] != self.chunk;
        if is_new {
            self.met[at] = self.chunk;
            self.count += 1;
            long(&mut self.bytes, number(position));
        }
        is_new
    }

    fn clear(&mut self) {
        self.chunk += 1;
        self.count = 0;
        self.bytes.clear();
    }
}

/// The number of a constant by its position, as 0 is none.
const fn number(position: u32) -> u64 {
    position as u64 + 1
}

/// The modifier of methods that are not Java's (`ACC_NATIVE`).
const NATIVE: i32 = 0x100;

/// What is called an allocation's class.
const NATIVE_MEMORY: &str = "native memory";

/// The constants of a chunk.
pub(super) struct Constants<'a> {
    profile: Profile<'a>,
    code: Code,
    native_memory: u32,
    threads: Pool,
    groups: Pool,
    stacks: Pool,
    methods: Pool,
    classes: Pool,
    packages: Pool,
    symbols: Pool,
    texts: Pool,
}

impl<'a> Constants<'a> {
    pub(super) fn of(profile: Profile<'a>) -> Self {
        let mut code = Code::of(profile);
        Self {
            profile,
            native_memory: code.class(NATIVE_MEMORY, ""),
            code,
            threads: Pool::new(id::THREAD),
            groups: Pool::new(id::THREAD_GROUP),
            stacks: Pool::new(id::STACK_TRACE),
            methods: Pool::new(id::METHOD),
            classes: Pool::new(id::CLASS),
            packages: Pool::new(id::PACKAGE),
            symbols: Pool::new(id::SYMBOL),
            texts: Pool::new(id::STRING),
        }
    }

    /// A thread: its process is its group.
    pub(super) fn thread(&mut self, id: ThreadId) -> u64 {
        if self.threads.begin(id.0) {
            let machine = self.profile.machine;
            let thread = *machine.thread(id);
            let group = self.group(thread.process);
            let out = &mut self.threads.bytes;
            text(out, machine.string(thread.name));
            long(out, thread.tid.0.into());
            out.push(NULL);
            long(out, 0);
            long(out, group);
            long(out, machine.process(thread.process).pid.0.into());
        }
        number(id.0)
    }

    fn group(&mut self, id: ProcessId) -> u64 {
        if self.groups.begin(id.0) {
            let machine = self.profile.machine;
            let process = machine.process(id);
            let out = &mut self.groups.bytes;
            out.push(NULL);
            text(out, &format!("{} (pid {})", machine.string(process.name), process.pid));
        }
        number(id.0)
    }

    /// A stack; 0 for an empty one.
    pub(super) fn stack(&mut self, id: StackId) -> u64 {
        if id == StackId::EMPTY {
            return 0;
        }
        if self.stacks.begin(id.0) {
            let machine = self.profile.machine;
            let stack = machine.stacks().get(id);
            let is_cut = stack.iter().any(|&frame| machine.frames().get(frame).flags.has(FrameFlags::CUT));
            let frames = stack.iter().map(|&frame| self.code.frames(frame).len()).sum::<usize>();
            self.stacks.bytes.push(u8::from(is_cut));
            int(&mut self.stacks.bytes, frames as i32);
            for &frame in stack {
                for at in 0..self.code.frames(frame).len() {
                    let StackFrame { method, line, frame_type } = self.code.frames(frame)[at];
                    let method = self.method(method);
                    let out = &mut self.stacks.bytes;
                    long(out, method);
                    int(out, line as i32);
                    int(out, 0);
                    out.push(frame_type as u8);
                }
            }
        }
        number(id.0)
    }

    fn method(&mut self, position: u32) -> u64 {
        if self.methods.begin(position) {
            let method = self.code.methods[position as usize];
            let class = self.class(method.class);
            let [name, descriptor] = [method.name, method.descriptor].map(|text| self.symbol(text));
            let out = &mut self.methods.bytes;
            for number in [class, name, descriptor] {
                long(out, number);
            }
            int(out, NATIVE);
            out.push(u8::from(false));
        }
        number(position)
    }

    fn class(&mut self, position: u32) -> u64 {
        if self.classes.begin(position) {
            let class = self.code.classes[position as usize];
            let name = self.symbol(class.name);
            let package = if class.package == StringId::EMPTY { 0 } else { self.package(class.package) };
            let out = &mut self.classes.bytes;
            out.push(NULL);
            long(out, name);
            long(out, package);
            int(out, 0);
        }
        number(position)
    }

    /// What is allocated.
    pub(super) fn native_memory(&mut self) -> u64 {
        self.class(self.native_memory)
    }

    fn package(&mut self, name: StringId) -> u64 {
        if self.packages.begin(name.0) {
            let name = self.symbol(name);
            long(&mut self.packages.bytes, name);
        }
        number(name.0)
    }

    fn symbol(&mut self, name: StringId) -> u64 {
        if self.symbols.begin(name.0) {
            symbol(&mut self.symbols.bytes, self.code.strings.get(name));
        }
        number(name.0)
    }

    /// Attributes as text; 0 where there are none.
    pub(super) fn attributes(&mut self, list: AttributeListId) -> u64 {
        if list == AttributeListId::NONE {
            return 0;
        }
        if self.texts.begin(list.0) {
            let machine = self.profile.machine;
            let told = attributes(machine.attributes(), list, |id| machine.string(id).to_owned());
            text(&mut self.texts.bytes, &told);
        }
        number(list.0)
    }

    fn pools(&self) -> [&Pool; 8] {
        let Self { threads, groups, stacks, methods, classes, packages, symbols, texts, .. } = self;
        [threads, groups, stacks, methods, classes, packages, symbols, texts]
    }

    /// Number of bytes there are so far.
    pub(super) fn len(&self) -> usize {
        self.pools().iter().map(|pool| pool.bytes.len()).sum()
    }

    /// What the event of all constants is made of, but its size: pieces, so that they need not be copied.
    pub(super) fn event(&self, start: u64) -> Vec<Piece<'_>> {
        const NO_DURATION: u64 = 0;
        const NO_EVENT_BEFORE: u64 = 0;
        const IS_WHOLE: u8 = 1;
        let frame_types = FrameType::ALL.map(|(frame_type, name)| (frame_type as u64, name));
        let states = State::ALL.map(|(state, name)| (state as u64, name));
        let pools = self.pools().into_iter().filter(|pool| pool.count > 0);
        // Readers take an empty pool for an error.
        let count = pools.clone().count() as i32 + 2;
        let mut head = Vec::new();
        for number in [id::CHECKPOINT, start, NO_DURATION, NO_EVENT_BEFORE] {
            long(&mut head, number);
        }
        head.push(IS_WHOLE);
        int(&mut head, count);
        names(&mut head, id::FRAME_TYPE, &frame_types);
        names(&mut head, id::THREAD_STATE, &states);
        let mut pieces = vec![Piece::Made(head)];
        for pool in pools {
            let mut head = Vec::new();
            long(&mut head, pool.type_id);
            int(&mut head, pool.count as i32);
            pieces.extend([Piece::Made(head), Piece::Kept(&pool.bytes)]);
        }
        pieces
    }

    /// Begins the next chunk.
    pub(super) fn clear(&mut self) {
        let Self { threads, groups, stacks, methods, classes, packages, symbols, texts, .. } = self;
        for pool in [threads, groups, stacks, methods, classes, packages, symbols, texts] {
            pool.clear();
        }
    }
}

/// A part of an event.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    Made(Vec<u8>),
    Kept(&'a [u8]),
}

impl AsRef<[u8]> for Piece<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Made(bytes) => bytes,
            Self::Kept(bytes) => bytes,
        }
    }
}

/// A whole pool of names.
fn names(out: &mut Vec<u8>, type_id: u64, names: &[(u64, &str)]) {
    long(out, type_id);
    int(out, names.len() as i32);
    for (number, name) in names {
        long(out, *number);
        text(out, name);
    }
}
