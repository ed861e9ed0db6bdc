//! Events by hand: what begins and ends without the other, numbers that are used again, stacks that come late.

use collector_common::event::Guid;
use collector_common::ids::{Pid, Tid};

use super::{Half, LifeLimits, Lives, NtPaths, OwnStack, StackAt, StackId, StackLimits, StackLosses, Stacks};
use crate::decode::Addresses;
use crate::decode::kernel::{IMAGE, IMAGE_ID, KernelEvent, PROCESS, STACK_WALK, SYS_CONFIG};
use crate::record::{Descriptor, EtwRecord, Extended, PointerSize, Schema};

fn record(class: Guid, opcode: u8, version: u8, ticks: i64, payload: &[u8]) -> EtwRecord<'_> {
    EtwRecord {
        provider: class,
        descriptor: Descriptor { version, opcode, ..Descriptor::default() },
        schema: Schema::Classic,
        pointer_size: PointerSize::Bits64,
        pid: None,
        tid: None,
        cpu: 0,
        ticks,
        activity: Guid([0; 16]),
        extended: Extended::default(),
        payload,
    }
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// `Process_V2_TypeGroup1`.
fn process(pid: u32, image: &str, exit_status: i32) -> Vec<u8> {
    let mut payload = 0xffff_fa83_0000_0000_u64.to_le_bytes().to_vec();
    for number in [pid, 1, 0, exit_status as u32, 0] {
        payload.extend(number.to_le_bytes());
    }
    payload.extend(image.as_bytes());
    payload.push(0);
    payload.extend(wide(&format!("{image} --run")));
    payload
}

/// `Image_Load`.
fn image(pid: u32, base: u64, path: &str) -> Vec<u8> {
    image_of(pid, base, path, [7, 8])
}

/// The same with its checksum and its date.
fn image_of(pid: u32, base: u64, path: &str, [checksum, date]: [u32; 2]) -> Vec<u8> {
    let mut payload = [base.to_le_bytes(), 0x1000_u64.to_le_bytes()].concat();
    for number in [pid, checksum, date, 0] {
        payload.extend(number.to_le_bytes());
    }
    payload.extend([0; 24]);
    payload.extend(wide(path));
    payload
}

struct Trace {
    paths: NtPaths,
    lives: Lives,
}

impl Trace {
    fn new(limits: LifeLimits) -> Self {
        Self { paths: NtPaths::default(), lives: Lives::new(limits) }
    }

    fn take(&mut self, record: &EtwRecord<'_>) -> &mut Self {
        let event = KernelEvent::decode(record).unwrap().unwrap();
        self.paths.learn(&event);
        self.lives.take(record, &event, &self.paths);
        self
    }

    fn process(&mut self, opcode: u8, ticks: i64, payload: &[u8]) -> &mut Self {
        self.take(&record(PROCESS, opcode, 2, ticks, payload))
    }

    fn image(&mut self, opcode: u8, ticks: i64, payload: &[u8]) -> &mut Self {
        self.take(&record(IMAGE, opcode, 2, ticks, payload))
    }
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    let mut trace = Trace::new(LifeLimits::default());
    trace.process(3, 0, &process(8, "old.exe", 259));
    trace.process(2, 10, &process(8, "old.exe", -1));
    trace.process(1, 20, &process(8, "new.exe", 259));
    // Its end is lost: it begins anew.
    trace.process(1, 30, &process(8, "third.exe", 259));
    trace.process(4, 40, &process(8, "third.exe", 259));
    // It was not met before.
    trace.process(4, 40, &process(9, "late.exe", 259));
    trace.process(2, 50, &process(10, "later.exe", 3));
    let lives: Vec<_> = trace
        .lives
        .processes()
        .iter()
        .map(|life| (&*life.image, life.start, life.end, life.exit_status))
        .collect();
    assert_eq!(
        lives,
        [
            ("old.exe", None, Some(10), Some(-1)),
            ("new.exe", Some(20), Some(30), None),
            ("third.exe", Some(30), None, None),
            ("late.exe", None, None, None),
            ("later.exe", None, Some(50), Some(3)),
        ]
    );
    let at = |ticks| trace.lives.process_at(Pid(8), ticks).map(|life| &*life.image);
    assert_eq!(
        [at(5), at(15), at(25), at(30), at(99)].map(Option::unwrap),
        ["old.exe", "old.exe", "new.exe", "third.exe", "third.exe"]
    );
    assert_eq!(trace.lives.process_at(Pid(77), 5), None);
    assert_eq!(&*trace.lives.processes()[0].command_line, "old.exe --run");
    assert_eq!(trace.lives.processes()[0].parent, Pid(1));
}

#[test]
fn a_process_without_a_name_has_the_one_that_is_told_later() {
    let mut trace = Trace::new(LifeLimits::default());
    for pid in [10, 11, 12] {
        trace.process(3, 0, &process(pid, "", 259));
    }
    trace.process(4, 40, &process(10, "make.exe", 259));
    trace.process(2, 40, &process(11, "cc.exe", 0));
    // A name that is there stays, and one that comes behind the end is another's.
    trace.process(4, 50, &process(10, "other.exe", 259));
    trace.process(2, 50, &process(12, "", 0));
    trace.process(4, 60, &process(12, "late.exe", 259));
    let lives: Vec<_> = trace.lives.processes().iter().map(|life| (life.pid.0, &*life.image)).collect();
    assert_eq!(lives, [(10, "make.exe"), (11, "cc.exe"), (12, ""), (12, "late.exe")]);
}

#[test]
fn images_are_where_they_are_when_they_are() {
    let mut trace = Trace::new(LifeLimits::default());
    trace.process(1, 5, &process(8, "a.exe", 259));
    trace.image(10, 10, &image(8, 0x1000, r"\Device\HarddiskVolume1\a.dll"));
    trace.image(2, 20, &image(8, 0x1000, r"\Device\HarddiskVolume1\a.dll"));
    trace.image(10, 30, &image(8, 0x1800, r"\Device\HarddiskVolume1\b.dll"));
    // Its end is lost.
    trace.image(10, 40, &image(8, 0x1800, r"\Device\HarddiskVolume1\c.dll"));
    // Unmapped without having been mapped: it was there before.
    trace.image(2, 50, &image(8, 0x9000, r"\Device\HarddiskVolume1\d.dll"));
    trace.process(2, 60, &process(8, "a.exe", 0));
    // Told behind the end of its process.
    trace.image(2, 70, &image(8, 0x1800, r"\Device\HarddiskVolume1\c.dll"));
    let at = |address, ticks| {
        trace
            .lives
            .image_at(Pid(8), address, ticks)
            .map(|life| life.path.rsplit('\\').next().unwrap().to_owned())
    };
    assert_eq!(at(0x1fff, 15).as_deref(), Some("a.dll"));
    assert_eq!(at(0x1fff, 20), None);
    assert_eq!(at(0x1800, 39).as_deref(), Some("b.dll"));
    assert_eq!(at(0x1fff, 40).as_deref(), Some("c.dll"));
    assert_eq!(at(0x17ff, 40), None);
    assert_eq!(at(0x9000, 6).as_deref(), Some("d.dll"));
    assert_eq!(at(0x1fff, 60), None);
    let ends: Vec<_> = trace.lives.images().iter().map(|life| (life.start, life.end)).collect();
    assert_eq!(ends, [(Some(10), Some(20)), (Some(30), Some(40)), (Some(40), Some(60)), (None, Some(50))]);
}

/// `DbgID_RSDS`.
fn pdb(pid: u32, base: u64, path: &str) -> Vec<u8> {
    let mut payload = base.to_le_bytes().to_vec();
    payload.extend(pid.to_le_bytes());
    payload.extend([3; 16]);
    payload.extend(2_u32.to_le_bytes());
    payload.extend(path.as_bytes());
    payload.push(0);
    payload
}

#[test]
fn an_image_has_the_pdb_that_is_told_before_or_behind_it() {
    let mut trace = Trace::new(LifeLimits::default());
    trace.take(&record(IMAGE_ID, 36, 2, 10, &pdb(8, 0x1000, "a.pdb")));
    trace.image(10, 10, &image(8, 0x1000, "a"));
    trace.image(10, 10, &image(8, 0x5000, "b"));
    trace.take(&record(IMAGE_ID, 36, 2, 10, &pdb(8, 0x5000, "b.pdb")));
    trace.image(2, 20, &image(8, 0x1000, "a"));
    trace.image(10, 30, &image(8, 0x1000, "c"));
    let pdbs: Vec<_> = trace
        .lives
        .images()
        .iter()
        .map(|life| life.ids.pdb.as_ref().map(|pdb| (&*pdb.path, pdb.age)))
        .collect();
    assert_eq!(pdbs, [Some(("a.pdb", 2)), Some(("b.pdb", 2)), None]);
}

/// `ImageID`: base, size, process, date and name.
fn image_id(pid: u32, base: u64, date: u32) -> Vec<u8> {
    let mut payload = [base.to_le_bytes(), 0x1000_u64.to_le_bytes()].concat();
    payload.extend([pid, date].into_iter().flat_map(u32::to_le_bytes));
    payload.extend(wide("a.dll"));
    payload
}

/// What was there when the trace began is told with a date of 0, which is none.
#[test]
fn a_date_is_that_of_any_event_of_the_image() {
    let dates = |tell: &dyn Fn(&mut Trace)| {
        let mut trace = Trace::new(LifeLimits::default());
        trace.process(3, 0, &process(8, "a.exe", 259));
        trace.image(3, 0, &image_of(8, 0x1000, r"C:\a.dll", [7, 0]));
        tell(&mut trace);
        trace.lives.fill_dates();
        trace.lives.images().iter().map(|life| life.timestamp).collect::<Vec<_>>()
    };
    assert_eq!(dates(&|_| {}), [None]);
    let id = image_id(8, 0x1000, 5);
    assert_eq!(dates(&|trace| _ = trace.take(&record(IMAGE_ID, 0, 2, 1, &id))), [Some(5)]);
    let other = image_id(8, 0x9000, 0);
    assert_eq!(dates(&|trace| _ = trace.take(&record(IMAGE_ID, 0, 2, 1, &other))), [None]);
    let before = |trace: &mut Trace| {
        trace.take(&record(IMAGE_ID, 0, 2, 1, &image_id(8, 0x9000, 5)));
        trace.image(3, 0, &image_of(8, 0x9000, r"C:\b.dll", [7, 0]));
    };
    assert_eq!(dates(&before), [None, Some(5)]);

    // When it is unmapped, also behind the end of its process, and when the trace ends.
    let told = |opcode, path, sum: [u32; 2]| {
        dates(&|trace| _ = trace.image(opcode, 9, &image_of(8, 0x1000, path, sum)))
    };
    assert_eq!(told(2, r"C:\A.DLL", [7, 5]), [Some(5)]);
    assert_eq!(told(4, r"C:\a.dll", [7, 5]), [Some(5)]);
    assert_eq!(told(2, r"C:\other.dll", [7, 5]), [None]);
    let late = |trace: &mut Trace| {
        trace.process(2, 5, &process(8, "a.exe", 0));
        trace.image(2, 9, &image_of(8, 0x1000, r"C:\a.dll", [7, 5]));
    };
    assert_eq!(dates(&late), [Some(5)]);
}

#[test]
fn a_date_is_that_of_others_of_the_same_path_size_and_checksum() {
    let dates = |undated: u32, dated: &[[u32; 2]]| {
        let mut trace = Trace::new(LifeLimits::default());
        trace.image(3, 0, &image_of(8, 0x1000, r"C:\a.dll", [undated, 0]));
        for (sum, pid) in dated.iter().zip(9..) {
            trace.image(10, 1, &image_of(pid, 0x1000, r"C:\A.dll", *sum));
        }
        trace.lives.fill_dates();
        trace.lives.images()[0].timestamp
    };
    assert_eq!(dates(7, &[[7, 5], [6, 4], [7, 5]]), Some(5));
    assert_eq!(dates(7, &[[6, 5]]), None);
    assert_eq!(dates(7, &[[7, 5], [7, 4], [7, 5]]), None, "one of the two is a lie");
    assert_eq!(dates(0, &[[0, 5]]), None, "programs without a checksum may be any");
}

#[test]
fn lives_are_bounded() {
    let mut trace = Trace::new(LifeLimits { processes: 2, images: 3 });
    for number in 0..10 {
        trace.process(1, 0, &process(number, "x", 0));
        trace.image(10, 0, &image(number, 0x1000, "x"));
        trace.take(&record(IMAGE_ID, 36, 2, 10, &pdb(number, 0x7000, "x")));
    }
    assert_eq!((trace.lives.processes().len(), trace.lives.images().len()), (2, 3));
    assert_eq!(trace.lives.left_out(), 8 + 7 + 7);
}

#[test]
fn paths_have_drives() {
    let mut paths = NtPaths::default();
    let mapping = [wide(r"\Device\HarddiskVolume2\"), wide(r"C:\")].concat();
    let directories = [wide(r"C:\Windows\system32"), wide(r"C:\Windows\")].concat();
    for (opcode, payload) in [(35, &mapping), (33, &directories)] {
        let record = record(SYS_CONFIG, opcode, 2, 0, payload);
        paths.learn(&KernelEvent::decode(&record).unwrap().unwrap());
    }
    // A volume whose name begins with that of another.
    paths.add(r"\Device\HarddiskVolume22\", r"D:\");
    for (nt, dos) in [
        (r"\Device\HarddiskVolume2\Users\a", r"C:\Users\a"),
        (r"\device\harddiskvolume2\x", r"C:\x"),
        (r"\Device\HarddiskVolume22\x", r"D:\x"),
        (r"\Device\HarddiskVolume3\x", r"\Device\HarddiskVolume3\x"),
        (r"\SystemRoot\System32\ntdll.dll", r"C:\Windows\System32\ntdll.dll"),
        (r"\Windows\System32\a.dll", r"C:\Windows\System32\a.dll"),
        (r"\??\C:\a", r"C:\a"),
        (r"\??\UNC\server\share", r"\\server\share"),
        (r"\Device\Mup\server\share", r"\\server\share"),
        (r"\\server\share", r"\\server\share"),
        (r"C:\a", r"C:\a"),
        ("", ""),
        (r"\Device\Härddisk", r"\Device\Härddisk"),
    ] {
        assert_eq!(paths.to_dos(nt), dos);
    }
}

fn addresses(addresses: &[u64]) -> Vec<u8> {
    addresses.iter().flat_map(|address| address.to_le_bytes()).collect()
}

/// `STACK_WALK_EVENT_DATA`: frames or a key.
fn stack(ticks: u64, tid: u32, rest: &[u64]) -> Vec<u8> {
    let mut payload = ticks.to_le_bytes().to_vec();
    payload.extend(4_u32.to_le_bytes());
    payload.extend(tid.to_le_bytes());
    payload.extend(addresses(rest));
    payload
}

fn feed(stacks: &mut Stacks<u32>, opcode: u8, payload: &[u8]) {
    feed_of(0, stacks, opcode, payload);
}

fn feed_of(cpu: u16, stacks: &mut Stacks<u32>, opcode: u8, payload: &[u8]) {
    let record = record(STACK_WALK, opcode, 2, 0, payload);
    assert!(stacks.stack(&KernelEvent::decode(&record).unwrap().unwrap(), cpu));
}

/// Of an event that does not tell its thread.
fn on(cpu: u16, ticks: i64, running: Option<u32>) -> StackAt {
    StackAt::Cpu { ticks, cpu, running: running.map(Tid) }
}

const KERNEL: u64 = 0xffff_f800_0000_1000;

#[allow(clippy::unnecessary_wraps, reason = "it is compared with what may not be there")]
fn frames(frames: &[u64]) -> Option<Half> {
    Some(Half::Frames(frames.into()))
}

#[test]
fn halves_come_apart_and_late() {
    let mut stacks = Stacks::new(StackLimits::default());
    let at = |ticks, tid| Some(StackAt::Thread(ticks, Tid(tid)));
    assert_eq!(stacks.event(at(100, 7), None, 1), None);
    assert_eq!(stacks.event(at(100, 8), None, 2), None);
    feed(&mut stacks, 32, &stack(100, 7, &[KERNEL, KERNEL + 8]));
    assert_eq!(stacks.event(at(200, 7), None, 3), None);
    feed(&mut stacks, 32, &stack(100, 7, &[0x1000]));
    feed(&mut stacks, 32, &stack(200, 7, &[KERNEL, 0x2000]));
    // A second one of the user, and one of no event.
    feed(&mut stacks, 32, &stack(200, 7, &[0x3000]));
    feed(&mut stacks, 32, &stack(300, 7, &[0x4000]));
    // The time alone is known of this event.
    assert_eq!(stacks.event(Some(on(1, 400, None)), None, 4), None);
    feed(&mut stacks, 32, &stack(400, 99, &[0x5000]));
    // This one has its own.
    let own = addresses(&[0x6000]);
    stacks.event(None, Some(OwnStack::Frames(Addresses { bytes: &own, width: PointerSize::Bits64 })), 5);
    let joined: Vec<_> = stacks.finish().map(|joined| (joined.event, joined.kernel, joined.user)).collect();
    assert_eq!(
        joined,
        [
            (1, frames(&[KERNEL, KERNEL + 8]), frames(&[0x1000])),
            (2, None, None),
            (3, frames(&[KERNEL]), frames(&[0x2000])),
            (4, None, frames(&[0x5000])),
            (5, None, frames(&[0x6000])),
        ]
    );
    assert_eq!(stacks.losses(), StackLosses { stacks: 1, repeated: 1, ..StackLosses::default() });
}

/// Two CPUs have an event each at one time, neither of which tells its thread; their stacks come the other way round.
#[test]
fn events_of_two_cpus_at_one_time_have_their_own_stacks() {
    let users = |first, second, cpus: [u16; 2]| {
        let mut stacks = Stacks::new(StackLimits::default());
        stacks.event(Some(on(0, 100, first)), None, 1);
        stacks.event(Some(on(1, 100, second)), None, 2);
        feed_of(cpus[1], &mut stacks, 32, &stack(100, 8, &[0x8000]));
        feed_of(cpus[0], &mut stacks, 32, &stack(100, 7, &[0x7000]));
        let losses = stacks.losses().stacks;
        let users: Vec<_> = stacks.finish().map(|joined| joined.user).collect();
        (users, losses)
    };
    let own = (vec![frames(&[0x7000]), frames(&[0x8000])], 0);
    // By the threads that ran, wherever these are by now.
    assert_eq!(users(Some(7), Some(8), [1, 0]), own);
    // Without these by the CPU; a stack that another CPU tells may be of either.
    assert_eq!(users(None, None, [0, 1]), own);
    assert_eq!(users(None, None, [2, 2]), (vec![None, None], 2));
    // Another thread than that of the stack ran there: it has none.
    assert_eq!(users(Some(7), Some(9), [0, 1]), (vec![frames(&[0x7000]), None], 1));
}

#[test]
fn two_events_of_one_time_have_a_stack_each() {
    let mut stacks = Stacks::new(StackLimits::default());
    for event in 1..=40 {
        stacks.event(Some(StackAt::Thread(1, Tid(1))), None, event);
    }
    for stack_of in 1..=16 {
        feed(&mut stacks, 32, &stack(1, 1, &[0x1000 * stack_of]));
    }
    let joined: Vec<_> = stacks.finish().map(|joined| joined.user).collect();
    assert_eq!(joined[0], frames(&[0x1000]));
    assert_eq!(joined[15], frames(&[0x10000]));
    assert_eq!(joined[16], None);
    assert_eq!(stacks.losses().alike, 24);
}

#[test]
fn a_key_stands_for_what_it_is_given_up_with() {
    let mut stacks = Stacks::new(StackLimits::default());
    let key = 0xabc;
    let definition = |frames: &[u64]| addresses(&[&[key], frames].concat());
    stacks.event(Some(StackAt::Thread(1, Tid(1))), None, 1);
    feed(&mut stacks, 37, &stack(1, 1, &[key]));
    feed(&mut stacks, 38, &stack(1, 1, &[0xdef]));
    feed(&mut stacks, 35, &definition(&[KERNEL]));
    // The same key, of other addresses.
    stacks.event(Some(StackAt::Thread(2, Tid(1))), None, 2);
    feed(&mut stacks, 38, &stack(2, 1, &[key]));
    feed(&mut stacks, 36, &definition(&[0x2000, 0x3000]));
    let joined: Vec<_> = stacks.finish().map(|joined| (joined.kernel, joined.user)).collect();
    let shared = |id| Some(Half::Shared(StackId(id)));
    assert_eq!(joined, [(shared(0), shared(1)), (None, shared(2))]);
    assert_eq!(stacks.frames(StackId(0)), Some(&[KERNEL][..]));
    assert_eq!(stacks.frames(StackId(1)), None, "no event tells it");
    assert_eq!(stacks.frames(StackId(2)), Some(&[0x2000, 0x3000][..]));
}

#[test]
fn stacks_are_bounded() {
    let mut stacks = Stacks::new(StackLimits { events: 2, frames: 3, waiting_frames: 2, keys: 2 });
    let mut out = Vec::new();
    for event in 0..5 {
        let at = Some(StackAt::Thread(event.into(), Tid(1)));
        out.extend(stacks.event(at, None, event).map(|joined| joined.event));
    }
    assert_eq!(out, [0, 1, 2]);
    feed(&mut stacks, 32, &stack(0, 1, &[0x1000]));
    assert_eq!(stacks.losses().stacks, 1, "its event has gone");
    for key in 1..4 {
        feed(&mut stacks, 36, &addresses(&[key, 1, 2]));
    }
    assert_eq!(stacks.losses().keys, 2, "one has no room for its addresses, one none for itself");
    // Events that wait have two addresses at most, together; those that are gone leave room.
    feed(&mut stacks, 32, &stack(3, 1, &[KERNEL, 0x1000]));
    feed(&mut stacks, 32, &stack(4, 1, &[0x1000]));
    assert_eq!(stacks.losses().large, 1);
    out.extend((5..7).filter_map(|event| stacks.event(None, None, event)).map(|joined| joined.event));
    assert_eq!(out, [0, 1, 2, 3, 4]);
    stacks.event(Some(StackAt::Thread(7, Tid(1))), None, 7);
    feed(&mut stacks, 32, &stack(7, 1, &[KERNEL, 0x1000]));
    assert_eq!((stacks.losses().large, stacks.losses().stacks), (1, 1));
    assert_eq!(stacks.finish().count(), 2);
}

#[test]
fn the_runtime_tells_a_stack_behind_its_event() {
    let mut stacks = Stacks::new(StackLimits::default());
    let width = PointerSize::Bits64;
    let (first, second) = (addresses(&[0x1000]), addresses(&[0x2000]));
    stacks.runtime_event(None, Tid(1), None, 1);
    stacks.runtime_event(None, Tid(2), None, 2);
    stacks.event(Some(StackAt::Thread(5, Tid(1))), None, 3);
    stacks.runtime_stack(Tid(1), Addresses { bytes: &first, width });
    stacks.runtime_stack(Tid(2), Addresses { bytes: &second, width });
    // There is no event for this one.
    stacks.runtime_stack(Tid(2), Addresses { bytes: &second, width });
    let joined: Vec<_> = stacks.finish().map(|joined| joined.user).collect();
    assert_eq!(joined, [frames(&[0x1000]), frames(&[0x2000]), None]);
    assert_eq!(stacks.losses().stacks, 1);
}

#[test]
fn the_rest_of_a_stack_is_joined_by_its_number_and_thread() {
    let mut stacks = Stacks::new(StackLimits::default());
    let (first, second) = (addresses(&[KERNEL]), addresses(&[0x1000]));
    let width = PointerSize::Bits64;
    let of = |bytes| OwnStack::Frames(Addresses { bytes, width });
    let at = |tid| StackAt::Match(9, Some(Tid(tid)));
    stacks.event(Some(at(7)), Some(of(&first)), 1);
    stacks.event(Some(StackAt::Match(8, Some(Tid(7)))), Some(OwnStack::Key(0xabc)), 2);
    assert!(!stacks.rest(at(6), of(&second)), "another thread's");
    assert!(!stacks.rest(StackAt::Thread(9, Tid(7)), of(&second)), "no number");
    assert!(stacks.rest(at(7), of(&second)));
    assert!(!stacks.rest(at(7), of(&second)), "it has all of it");
    assert!(stacks.rest(StackAt::Match(8, Some(Tid(7))), OwnStack::Key(0xdef)));
    feed(&mut stacks, 36, &addresses(&[0xabc, KERNEL]));
    feed(&mut stacks, 36, &addresses(&[0xdef, 0x2000]));
    let joined: Vec<_> = stacks.finish().map(|joined| (joined.kernel, joined.user)).collect();
    let shared = |id| Some(Half::Shared(StackId(id)));
    assert_eq!(joined, [(frames(&[KERNEL]), frames(&[0x1000])), (shared(0), shared(1))]);
    let known = [0, 1].map(|id| stacks.frames(StackId(id)).map(<[u64]>::to_vec));
    assert_eq!(known, [Some(vec![KERNEL]), Some(vec![0x2000])]);
    assert_eq!(stacks.losses(), StackLosses::default());
}

#[test]
fn events_of_one_stay_in_the_kernel_have_one_user_half() {
    let mut stacks = Stacks::new(StackLimits::default());
    for (event, ticks, tid) in [(1, 90, 7), (2, 100, 7), (3, 150, 7), (4, 160, 8), (5, 170, 7), (6, 180, 7)] {
        stacks.event(Some(StackAt::Thread(ticks, Tid(tid))), None, event);
        feed(&mut stacks, 32, &stack(ticks as u64, tid, &[KERNEL]));
    }
    // 7 left the user at 100 and is back now.
    feed(&mut stacks, 32, &stack(100, 7, &[0x1000]));
    // One has its own all the same, and what comes later is of another stay.
    feed(&mut stacks, 32, &stack(170, 7, &[0x2000]));
    stacks.event(Some(StackAt::Thread(300, Tid(7))), None, 7);
    feed(&mut stacks, 37, &stack(300, 7, &[0xabc]));
    stacks.event(Some(on(0, 310, None)), None, 8);
    feed(&mut stacks, 37, &stack(310, 7, &[0xabc]));
    feed(&mut stacks, 38, &stack(300, 7, &[0xdef]));
    let joined: Vec<_> = stacks.finish().map(|joined| (joined.event, joined.user)).collect();
    let shared = Some(Half::Shared(StackId(1)));
    let expected = [
        (1, None),
        (2, frames(&[0x1000])),
        (3, frames(&[0x1000])),
        (4, None),
        (5, frames(&[0x2000])),
        (6, frames(&[0x1000])),
        (7, shared.clone()),
        (8, shared),
    ];
    assert_eq!(joined, expected);
    assert_eq!(stacks.losses(), StackLosses::default());
}
