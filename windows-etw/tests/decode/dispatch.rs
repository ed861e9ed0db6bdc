//! Closures on the events of real files: as many calls as there are records, with the values that the decoders read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use collector_common::ids::Nanos;
use windows_etw::decode::EventKey;
use windows_etw::decode::described::Schemas;
use windows_etw::decode::kernel::KernelEvent;
use windows_etw::dispatch::{Dispatch, Which};

use crate::data::{File, open};

/// Takes all records.
fn run(file: &mut File, dispatch: &mut Dispatch) {
    while let Some(record) = file.next_record().unwrap() {
        dispatch.take(&record, Nanos(0));
    }
    let messages: Vec<_> = dispatch.errors().messages().collect();
    assert!(messages.is_empty(), "{messages:?}");
    assert_eq!(dispatch.left_out(), 0);
}

#[test]
fn each_record_comes_to_the_closures_of_its_name() {
    for name in ["Process.etl", "gcevents.etl", "primitive-types.etl"] {
        let Some(mut file) = open(name) else { return };
        let mut schemas = Schemas::default();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        while let Some(record) = file.next_record().unwrap() {
            let _ = schemas.learn(&record);
            if let Ok(Some(described)) = schemas.describe(&record) {
                *counts.entry(format!("{}/{}", described.provider, described.name)).or_default() += 1;
            }
        }
        let mut dispatch = Dispatch::new(Schemas::default());
        let told: Rc<RefCell<BTreeMap<String, u64>>> = Rc::default();
        for name in counts.keys() {
            let (name, told) = (name.clone(), Rc::clone(&told));
            dispatch.on(Which::Name(name.as_str().into()), move |event| {
                let (name, told) = (name.clone(), Rc::clone(&told));
                assert_eq!(event.name(), name);
                event.add_closure(move |_| {
                    *told.borrow_mut().entry(name.clone()).or_default() += 1;
                    Ok(())
                });
                Ok(())
            });
        }
        run(&mut open(name).unwrap(), &mut dispatch);
        assert!(!counts.is_empty(), "{name}");
        assert_eq!(*told.borrow(), counts, "{name}");
    }
}

#[test]
fn closures_read_what_the_decoders_do() {
    let Some(mut file) = open("net.4.5.2.x64.etl") else { return };
    let mut expected = Vec::new();
    while let Some(record) = file.next_record().unwrap() {
        if let Some(KernelEvent::ProcessDcStart(process)) = KernelEvent::decode(&record).unwrap() {
            expected.push((process.pid.0.0, process.image.to_string()));
        }
    }
    let told: Rc<RefCell<Vec<(u32, String)>>> = Rc::default();
    let mut dispatch = Dispatch::new(Schemas::default());
    let (class, list) = ("3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c".parse().unwrap(), Rc::clone(&told));
    dispatch.on(Which::Key(class, EventKey::Opcode(3)), move |event| {
        let [pid, image] = ["ProcessId", "ImageFileName"].map(|name| event.format().field_ref(name));
        let (Some(pid), Some(image)) = (pid, image) else { anyhow::bail!("no such fields") };
        let list = Rc::clone(&list);
        event.add_closure(move |data| {
            list.borrow_mut().push((data.try_get_u32(pid)?, data.try_get_text(image)?.to_string()));
            Ok(())
        });
        Ok(())
    });
    run(&mut open("net.4.5.2.x64.etl").unwrap(), &mut dispatch);
    assert!(expected.len() > 10);
    assert_eq!(*told.borrow(), expected);
}
