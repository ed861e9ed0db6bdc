//! Text formats, letter by letter: what is written of a small recording, beside files that were written by hand (`snapshots/`).
//!
//! `shop` (pid 10) has a thread of its own name and `cook` (11). On the clock of 1 ms, `shop` is seen in `main` 1 ms after the start, and
//! `cook` in `stir`, which is inlined into `cook`, which `main` calls, after 2 ms, and after 3 ms for two periods. After 4 ms `shop`
//! reads `/menu` for half a millisecond.

use std::io::{Cursor, Read as _};

use collector_common::ids::{Nanos, Pid, Svma, Tid};
use collector_common::record::{
    AttributeListId, ClockAnchor, ExportMachine, Frame, FrameFlags, Module, ModuleId, ModuleKind, Sample,
    Unit,
};
use export::format::{Profile, by_name};
use export::symbolize::{Function, Symbols};

fn shop() -> (ExportMachine, Symbols) {
    let mut machine = ExportMachine::default();
    let start = Nanos(1_000_000_000);
    let system = machine.system_mut();
    "kitchen".clone_into(&mut system.host);
    "Linux 6.18.0".clone_into(&mut system.kernel);
    "x86_64".clone_into(&mut system.architecture);
    "shop --open".clone_into(&mut system.command);
    (system.cpus, system.start, system.end) = (2, start, Nanos(start.0 + 10_000_000));
    // 2025-06-15 15:06:40.
    system.clocks.start =
        Some(ClockAnchor { monotonic: start, realtime: 1_750_000_000_000_000_000, boottime: None });
    let cpu = machine.add_kind("cpu", Unit::Count, 1_000_000);
    let off_cpu = machine.add_kind("off_cpu", Unit::Nanoseconds, 1);
    let process = machine.add_process(Pid(10), "shop", None, Nanos(0));
    let [shop, cook] = [(10, "shop"), (11, "cook")].map(|(tid, name)| {
        let name = machine.intern_string(name);
        machine.intern_thread(process, Tid(tid), name)
    });
    let path = machine.intern_string("/opt/shop");
    let program = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
    let [main, cooking, read] =
        [(program, 0x1000, 0), (program, 0x2000, 0), (ModuleId::KERNEL, 1 << 63, FrameFlags::KERNEL)].map(
            |(module, address, flags)| {
                machine.intern_frame(Frame { module, address: Svma(address), flags: FrameFlags(flags) })
            },
        );
    let mut symbols = Symbols::unresolved(&machine);
    symbols.set(main, "main", "main");
    let function = |symbols: &mut Symbols, name| {
        let name = symbols.intern(name);
        Function { name, linkage: name, ..Function::default() }
    };
    let stir = Function { is_inlined: true, ..function(&mut symbols, "stir") };
    let own = function(&mut symbols, "cook");
    symbols.set_functions(cooking, &[stir, own]);
    symbols.set(read, "read", "read");
    let menu = ["path", "/menu"].map(|text| machine.intern_string(text));
    let menu = machine.attributes_mut().intern(&[(menu[0], menu[1])]);
    for (after, kind, thread, cpu_number, stack, value, attributes) in [
        (1, cpu, shop, 0, &[main][..], 1, AttributeListId::NONE),
        (2, cpu, cook, 1, &[cooking, main], 1, AttributeListId::NONE),
        (3, cpu, cook, 1, &[cooking, main], 2, AttributeListId::NONE),
        (4, off_cpu, shop, 0, &[read, main], 500_000, menu),
    ] {
        let time = Nanos(start.0 + after * 1_000_000);
        let stack = machine.intern_stack(stack);
        machine.add_sample(&Sample { time, thread, stack, cpu: cpu_number, kind, value, attributes });
    }
    (machine, symbols)
}

fn written(format: &str) -> Vec<u8> {
    let (machine, symbols) = shop();
    let mut bytes = Vec::new();
    let profile = Profile { machine: &machine, symbols: &symbols };
    by_name(format).unwrap().write(profile, &mut bytes).unwrap();
    bytes
}

fn text(format: &str) -> String {
    String::from_utf8(written(format)).unwrap()
}

/// The file that was written by hand, with the version of this crate.
fn expected(file: &str) -> String {
    file.replace("VERSION", env!("CARGO_PKG_VERSION"))
}

#[test]
fn folded_stacks() {
    assert_eq!(text("folded"), expected(include_str!("snapshots/shop.folded")));
}

#[test]
fn json_lines() {
    assert_eq!(text("jsonl"), expected(include_str!("snapshots/shop.jsonl")));
}

/// Written without the breaks of lines that the file has for people.
#[test]
fn speedscope() {
    let expected = expected(include_str!("snapshots/shop.speedscope.json"));
    assert_eq!(text("speedscope"), expected.lines().map(str::trim_start).collect::<String>());
}

#[test]
fn perfview() {
    let mut archive = zip::ZipArchive::new(Cursor::new(written("perfview"))).unwrap();
    let mut xml = String::new();
    archive.by_index(0).unwrap().read_to_string(&mut xml).unwrap();
    assert_eq!(xml, expected(include_str!("snapshots/shop.perfview.xml")));
}

/// Where the boxes are, how large they are, and their titles, from the top down and from left to right. The rest of the file is of the
/// library that draws it.
fn boxes(svg: &str) -> String {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(svg, options).unwrap();
    let mut boxes: Vec<(u32, f64, String)> = document
        .descendants()
        .filter_map(|group| {
            let part = |name| group.children().find(|child| child.tag_name().name() == name);
            let (title, shape) = (part("title")?.text()?, part("rect")?);
            let number = |name| shape.attribute(name).unwrap();
            let share = |name| number(name).strip_suffix('%').unwrap().parse::<f64>().unwrap();
            let (x, width) = (share("x"), share("width"));
            let line = format!("{x}% {} {width}% x {}: {title}\n", number("y"), number("height"));
            Some((number("y").parse().unwrap(), x, line))
        })
        .collect();
    boxes.sort_by(|a, b| (a.0, a.1).partial_cmp(&(b.0, b.1)).unwrap());
    boxes.into_iter().map(|(.., line)| line).collect()
}

#[test]
fn pictures() {
    assert_eq!(boxes(&text("flamegraph")), expected(include_str!("snapshots/shop.svg.frames")));
    assert_eq!(boxes(&text("icicle")), expected(include_str!("snapshots/shop.icicle.svg.frames")));
}
