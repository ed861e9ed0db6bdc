//! Recordings of samply 0.13.1, which leaves names to whoever reads them: what is read is what the JSON says, read here a second time, and the
//! addresses are those of the program's functions.
//!
//! The program, `samply/busy.c`, computes for 0.1 s of a CPU in each of two threads. It was built and recorded so, once as it is and once
//! linked for 0x400000; `nm` told where its functions are:
//!
//! ```sh
//! gcc -g -O1 -fno-omit-frame-pointer -o busy busy.c && gcc -g -O1 -fno-omit-frame-pointer -no-pie -o busy_fixed busy.c
//! samply record --save-only -r 200 -o busy.json.gz ./busy
//! ```

use std::fs;
use std::io::{Cursor, Read as _};
use std::ops::Range;
use std::path::Path;

use collector_common::record::{ExportMachine, Sample};
use export::import::{ImportFormat as _, Imported, firefox};
use flate2::read::GzDecoder;
use serde_json::Value;

/// A frame: the library, its build id, and the address in it.
type Place = (String, String, u64);

/// A sample: the thread's name and number, the process's name, the time, and the frames, innermost first.
type Told = (String, String, String, u64, Vec<Place>);

struct Recorded {
    file: &'static str,
    /// Where its functions are, as linked, and what it is linked for.
    functions: [(&'static str, Range<u64>); 3],
    base: u64,
    /// How many samples its threads have, by their names.
    threads: [(&'static str, usize, &'static str); 2],
}

const ALL: [Recorded; 2] = [
    Recorded {
        file: "busy",
        functions: [
            ("spin_for", 0x1189..0x11ff),
            ("other_work", 0x11ff..0x1244),
            ("main_work", 0x1244..0x1266),
        ],
        base: 0,
        threads: [("busy", 18, "main_work"), ("other", 20, "other_work")],
    },
    Recorded {
        file: "busy_fixed",
        functions: [
            ("spin_for", 0x40_1176..0x40_11ec),
            ("other_work", 0x40_11ec..0x40_1231),
            ("main_work", 0x40_1231..0x40_1253),
        ],
        base: 0x40_0000,
        threads: [("busy_fixed", 19, "main_work"), ("other", 19, "other_work")],
    },
];

fn unpacked(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/samply");
    let packed = fs::read(folder.join(format!("{file}.json.gz"))).unwrap();
    let mut text = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    text
}

/// What the file says.
fn said(file: &Value) -> Vec<Told> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let position = |value: &Value| value.as_u64().map(|position| position as usize);
    let mut told = Vec::new();
    for thread in file["threads"].as_array().unwrap() {
        let mut milliseconds = 0.0;
        let samples = &thread["samples"];
        for (stack, delta) in
            samples["stack"].as_array().unwrap().iter().zip(samples["timeDeltas"].as_array().unwrap())
        {
            milliseconds += delta.as_f64().unwrap();
            let mut places = Vec::new();
            let mut next = position(stack);
            while let Some(at) = next {
                let frame = position(&thread["stackTable"]["frame"][at]).unwrap();
                let function = position(&thread["frameTable"]["func"][frame]).unwrap();
                let resource = position(&thread["funcTable"]["resource"][function]).unwrap();
                let library = &file["libs"][position(&thread["resourceTable"]["lib"][resource]).unwrap()];
                let address = thread["frameTable"]["address"][frame].as_u64().unwrap();
                places.push((text(&library["path"]), text(&library["codeId"]), address));
                next = position(&thread["stackTable"]["prefix"][at]);
            }
            let [name, tid, process] = ["name", "tid", "processName"].map(|key| text(&thread[key]));
            // Of `25.1`, which is another life of a number, the number.
            let tid = tid.split('.').next().unwrap().to_owned();
            told.push((name, tid, process, (milliseconds * 1e6_f64).round() as u64, places));
        }
    }
    told.sort();
    told
}

/// The same of what we read.
fn read(machine: &ExportMachine) -> Vec<Told> {
    let of = |sample: Sample| {
        let thread = machine.thread(sample.thread);
        let [name, process] =
            [thread.name, machine.process(thread.process).name].map(|id| machine.string(id).to_owned());
        let places = machine.stacks().get(sample.stack).iter().map(|frame| {
            let frame = machine.frames().get(*frame);
            let module = machine.module(frame.module);
            assert!(machine.is_relative(frame.module));
            (
                machine.string(module.path).to_owned(),
                module.build_id.unwrap().to_string(),
                frame.lookup_address().0,
            )
        });
        assert_eq!(sample.value, 1);
        (name, thread.tid.to_string(), process, sample.time.0, places.collect())
    };
    let mut told: Vec<Told> = machine.samples().iter().map(of).collect();
    told.sort();
    told
}

#[test]
fn recordings_of_samply_are_what_they_say() {
    for Recorded { file, functions, base, threads } in ALL {
        let text = unpacked(file);
        let json: Value = serde_json::from_str(&text).unwrap();
        let Imported { machine, symbols, left_out } =
            firefox::Firefox.import(&mut Cursor::new(&text)).unwrap();
        assert!(left_out.is_empty(), "{left_out:?}");
        let told = read(&machine);
        assert_eq!(told, said(&json));
        // It has no names, so that they are looked up in files.
        assert!(machine.stacks().iter().flatten().all(|frame| !symbols.is_resolved(*frame)));

        let main_kind = machine.kinds()[usize::from(machine.main_kind().unwrap().0)];
        assert_eq!((machine.string(main_kind.name), main_kind.period), ("cpu", 5_000_000));
        for (thread, count, work) in threads {
            let of_thread: Vec<&Told> = told.iter().filter(|of| of.0 == thread).collect();
            assert_eq!(of_thread.len(), count, "{file}: {thread}");
            for (_, _, process, _, places) in of_thread {
                assert_eq!(process, file);
                let own = places.iter().filter(|(path, ..)| path.ends_with(file));
                let named = own.filter_map(|(.., address)| {
                    functions
                        .iter()
                        .find(|(_, range)| range.contains(&(address + base)))
                        .map(|(name, _)| *name)
                });
                assert_eq!(named.collect::<Vec<_>>(), ["spin_for", work], "{file}: {thread}: {places:x?}");
            }
        }
        // It counts times since the machine was started, and was not recorded for hours.
        let system = machine.system();
        assert!(system.end.0 - system.start.0 < 1_000_000_000, "{system:?}");
    }
}
