//! Folded stacks of a recording whose truth is known, and the table of its hottest functions.

use collector_common::record::SampleKindId;
use export::format::folded::Folded;
use export::format::{ExportFormat, Profile};
use export::hottest::{Hottest, Row};

use crate::made::Made;

#[test]
fn lines_are_the_recorded_stacks() {
    let made = Made::new();
    let mut out = Vec::new();
    Folded.write(Profile { machine: &made.machine, symbols: &made.symbols }, &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "\
prog;[stack cut];prog+0x8123 4
prog;[unmapped]+0xdead0000 2
prog;main;recurse;recurse;recurse 10
prog;main;work(int: char) 40
prog;main;work(int: char);vfs_read_[k] 8
worker 7 1
worker 7;main;work(int: char) 20
"
    );
}

#[test]
fn a_function_counts_once_a_sample() {
    let made = Made::new();
    let hottest = Hottest::of(Profile { machine: &made.machine, symbols: &made.symbols }, SampleKindId(0));
    let row = |function: &str, module: &str, own, total| Row {
        function: function.to_owned(),
        module: module.to_owned(),
        own,
        total,
    };
    assert_eq!(hottest.total, 85);
    assert_eq!(
        hottest.rows,
        [
            row("work(int; char)", "/opt/prog", 60, 68),
            row("recurse", "/opt/prog", 10, 10),
            row("vfs_read", "[kernel]", 8, 8),
            row("prog+0x8123", "/opt/prog", 4, 4),
            row("[unmapped]+0xdead0000", "[unmapped]", 2, 2),
            row("main", "/opt/prog", 0, 78),
        ]
    );
    assert_eq!(
        hottest.table(3).to_string(),
        "       self               total         function, of 85 samples (cpu)
         60  70.6%           68  80.0%  work(int; char)  (prog)
         10  11.8%           10  11.8%  recurse  (prog)
          8   9.4%            8   9.4%  vfs_read  ([kernel])
"
    );
}
