//! Records that are made by hand, and who gets them.

use std::cell::RefCell;
use std::rc::Rc;

use collector_common::event::filter;
use collector_common::ids::{Pid, Tid};

use super::*;
use crate::record::{Descriptor, Extended, PointerSize};

const PERF_INFO: Guid = Guid(0xce1d_bfb4_137e_4da6_87b0_3f59_aa10_2cbc_u128.to_be_bytes());
const CONTOSO: Guid = Guid([7; 16]);
const SAMPLE: EventKey = EventKey::Opcode(46);

fn record(schema: Schema, provider: Guid, payload: &[u8]) -> EtwRecord<'_> {
    EtwRecord {
        provider,
        descriptor: Descriptor::default(),
        schema,
        pointer_size: PointerSize::Bits64,
        pid: Some(Pid(4)),
        tid: Some(Tid(8)),
        cpu: 3,
        ticks: 0,
        activity: Guid([0; 16]),
        extended: Extended::default(),
        payload,
    }
}

/// `PerfInfo/Sample` of version 2.
fn sample(pointer_size: PointerSize, payload: &[u8]) -> EtwRecord<'_> {
    let descriptor = Descriptor { opcode: 46, version: 2, ..Descriptor::default() };
    EtwRecord { descriptor, pointer_size, ..record(Schema::Classic, PERF_INFO, payload) }
}

fn payload64(address: u64, tid: u32) -> Vec<u8> {
    [&address.to_le_bytes()[..], &tid.to_le_bytes(), &[1, 0, 0, 0]].concat()
}

fn payload32(address: u32, tid: u32) -> Vec<u8> {
    [&address.to_le_bytes()[..], &tid.to_le_bytes(), &[1, 0, 0, 0]].concat()
}

/// What closures have told.
type Told = Rc<RefCell<Vec<String>>>;

/// A closure that tells all fields, with `word` before them.
fn telling(word: &'static str, told: &Told) -> impl FnMut(&mut Event) -> anyhow::Result<()> + 'static {
    let told = Rc::clone(told);
    move |event| {
        let told = Rc::clone(&told);
        let name = event.name().to_owned();
        event.add_closure(move |data| {
            told.borrow_mut().push(format!("{word} {name} {}", data.as_text()));
            Ok(())
        });
        Ok(())
    }
}

#[test]
fn an_event_goes_to_all_who_named_it_by_its_number_or_name_in_their_order() {
    let told = Told::default();
    let mut dispatch = Dispatch::new(Schemas::default());
    dispatch.on(Which::Name("Windows Kernel/PerfInfo/Sample".into()), telling("one", &told));
    dispatch.on(Which::Key(PERF_INFO, EventKey::Opcode(47)), telling("another", &told));
    dispatch.on(Which::Key(PERF_INFO, SAMPLE), telling("two", &told));
    assert!(dispatch.take(&sample(PointerSize::Bits64, &payload64(0x7ff8_0000_1000, 9)), Nanos(1)));
    // Its opcode is another provider's, and no number.
    let other = EtwRecord { provider: CONTOSO, ..sample(PointerSize::Bits64, &[]) };
    assert!(!dispatch.take(&other, Nanos(2)));
    let numbered = EtwRecord { schema: Schema::Manifest, ..sample(PointerSize::Bits64, &[]) };
    assert!(!dispatch.take(&numbered, Nanos(3)));
    let fields = "InstructionPointer=0x7ff800001000 ThreadId=9 Count=1 Flags=0 Rank=0";
    assert_eq!(
        *told.borrow(),
        ["one", "two"].map(|word| format!("{word} Windows Kernel/PerfInfo/Sample {fields}"))
    );
    assert!(dispatch.errors().is_empty());
}

/// References are of one format each: those of 32 bits and of 64.
#[test]
fn closures_are_made_once_for_each_description() {
    let (made, told) = (Rc::new(RefCell::new(0)), Rc::new(RefCell::new(Vec::new())));
    let mut dispatch = Dispatch::new(Schemas::default());
    let (count, list) = (Rc::clone(&made), Rc::clone(&told));
    dispatch.on(Which::Key(PERF_INFO, SAMPLE), move |event| {
        *count.borrow_mut() += 1;
        let tid = event.format().field_ref("ThreadId").ok_or_else(|| anyhow::anyhow!("no thread"))?;
        event.set_filter(Some(&filter::parse("ThreadId != 5")?))?;
        let list = Rc::clone(&list);
        event.add_closure(move |data| {
            let context = data.context().copied();
            let text = data.as_text().to_string();
            let address = text.split(' ').next().unwrap_or_default().to_owned();
            list.borrow_mut().push((address, data.try_get_u32(tid)?, context));
            Ok(())
        });
        Ok(())
    });
    let [wide, narrow, left_out] = [payload64(0x1_0000_0000, 9), payload32(0x2000, 7), payload64(1, 5)];
    for time in 0..3 {
        assert!(dispatch.take(&sample(PointerSize::Bits64, &wide), Nanos(time)));
        assert!(dispatch.take(&sample(PointerSize::Bits32, &narrow), Nanos(time)));
        assert!(!dispatch.take(&sample(PointerSize::Bits64, &left_out), Nanos(time)));
    }
    // The kernel does not say whose this is.
    assert!(dispatch.take(&EtwRecord { tid: None, ..sample(PointerSize::Bits64, &wide) }, Nanos(9)));
    assert_eq!(*made.borrow(), 2);
    let of = |time| Some(Context { time: Nanos(time), pid: Pid(4), tid: Tid(8), cpu: 3 });
    let told = told.borrow();
    let [wide, narrow] = ["0x100000000", "0x2000"].map(|it| format!("InstructionPointer={it}"));
    assert_eq!(told[..2], [(wide.clone(), 9, of(0)), (narrow, 7, of(0))]);
    assert_eq!((told.len(), &told[6]), (7, &(wide, 9, None)));
    assert!(dispatch.errors().is_empty());
}

#[test]
fn what_goes_wrong_is_told_by_event_and_counted() {
    let told = Told::default();
    let mut dispatch = Dispatch::new(Schemas::default());
    dispatch.on(Which::Key(PERF_INFO, SAMPLE), |event| {
        let thread = event.format().field_ref("ThreadId").ok_or_else(|| anyhow::anyhow!("no thread"))?;
        event.add_closure(move |data| {
            data.try_get_u32(thread)?;
            anyhow::bail!("on purpose")
        });
        Ok(())
    });
    dispatch.on(Which::Key(PERF_INFO, SAMPLE), |event| {
        event.format().field_ref("Nothing").ok_or_else(|| anyhow::anyhow!("no field Nothing"))?;
        Ok(())
    });
    dispatch.on(Which::Name("Windows Kernel/PerfInfo/Sample".into()), telling("still", &told));
    let whole = payload64(1, 2);
    for payload in [&whole[..], &whole, &whole[..9]] {
        dispatch.take(&sample(PointerSize::Bits64, payload), Nanos(0));
    }
    // A description that says that it has more bytes than there are.
    let extended = Extended { self_description: Some(&[9, 0, 0]), ..Extended::default() };
    let broken = EtwRecord { extended, ..record(Schema::SelfDescribing, CONTOSO, &[]) };
    assert!(!dispatch.take(&broken, Nanos(0)));
    let errors = dispatch.errors();
    assert_eq!((errors.total(), told.borrow().len()), (5, 3));
    let mut messages: Vec<String> =
        errors.messages().map(|(id, name, text, count)| format!("{id} {name}: {text} ({count})")).collect();
    messages.sort();
    assert!(messages[0].starts_with("0 07070707-0707-0707-0707-070707070707: "), "{messages:?}");
    assert!(messages[1].contains("field ThreadId: the event data end before it does (1)"), "{messages:?}");
    assert_eq!(
        messages[2..],
        ["no field Nothing (1)", "on purpose (2)"]
            .map(|it| format!("46 Windows Kernel/PerfInfo/Sample: {it}"))
    );
}

/// Described by the event itself, by somebody who is asked, and by nobody.
#[test]
fn what_is_described_when_it_comes() {
    let told = Told::default();
    let mut dispatch = Dispatch::new(Schemas::default());
    dispatch.on(Which::Name(format!("{CONTOSO}/Ev").into()), telling("own", &told));
    dispatch.on(Which::Key(CONTOSO, EventKey::Id(5)), telling("unknown", &told));
    // `Ev` with an i8 `x` (in type 3).
    let rest = b"\0Ev\0x\0\x03";
    let description = [&(rest.len() as u16 + 2).to_le_bytes(), &rest[..]].concat();
    let extended = Extended { self_description: Some(&description), ..Extended::default() };
    let own = EtwRecord { extended, ..record(Schema::SelfDescribing, CONTOSO, &[0xfe]) };
    assert!(dispatch.take(&own, Nanos(0)));
    let descriptor = Descriptor { id: 5, ..Descriptor::default() };
    let unknown = EtwRecord { descriptor, ..record(Schema::Manifest, CONTOSO, &[1, 2]) };
    assert!(dispatch.take(&unknown, Nanos(0)));
    assert_eq!(*told.borrow(), [format!("own {CONTOSO}/Ev x=-2"), format!("unknown {CONTOSO}/5 ")]);
    assert!(dispatch.errors().is_empty() && dispatch.left_out() == 0);
}
