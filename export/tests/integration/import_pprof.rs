//! pprof files become machines again: those that we write as they were, those of Go with what Go says of them, and damaged ones an error.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _, Write as _};
use std::path::Path;
use std::process::Command;

use collector_common::record::{ExportMachine, Sample, SampleKindId, Unit};
use export::format::folded::Folded;
use export::format::{ExportFormat as _, Profile};
use export::hottest::Hottest;
use export::import::pprof::Pprof;
use export::import::{ImportFormat as _, Imported};
use export::symbolize::Symbols;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use crate::lines;
use crate::made::{Made, PERIOD};
use crate::pprof::{Go, of_all_kinds, top, written};
use crate::random::{imported, of_thread, recording, rows, told, whole_frame};
use crate::tools::{output, tool};

fn plain(compressed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(compressed).read_to_end(&mut plain).unwrap();
    plain
}

#[test]
fn what_is_told_of_the_whole_comes_back() {
    let made = Made::new();
    let compressed = written(&made.machine, &made.symbols);
    for bytes in [&plain(&compressed), &compressed] {
        let Imported { machine, symbols, left_out } = imported(bytes).unwrap();
        assert_eq!(left_out, ["it has no times of samples: each is at the beginning"]);
        let [kind] = machine.kinds() else { panic!("{:?}", machine.kinds()) };
        assert_eq!((machine.string(kind.name), kind.unit, kind.period), ("cpu", Unit::Count, PERIOD));
        let system = machine.system();
        assert_eq!(system.end.0, 2_000_000_000);
        assert_eq!(system.clocks.unix_at(system.start), Some(1_750_000_000_123_456_789));
        assert!(system.account.contains(&"prog --fast".to_owned()), "{:?}", system.account);
        assert_eq!(system.lost, Some(3));
        let before = Hottest::of(Profile { machine: &made.machine, symbols: &made.symbols }, SampleKindId(0));
        let profile = Profile { machine: &machine, symbols: &symbols };
        let after = Hottest::of(profile, SampleKindId(0));
        assert_eq!(after.total, before.total);
        let rows = |hottest: &Hottest| -> Vec<(String, i128, i128)> {
            hottest.rows.iter().map(|row| (row.function.clone(), row.own, row.total)).collect()
        };
        assert_eq!(rows(&after), rows(&before));
        let times = Hottest::of_main(profile);
        assert_eq!(times.total, 85 * i128::from(PERIOD));
        assert!(times.table(1).to_string().contains("60.18 ms"), "{}", times.table(1));
    }
}

/// Go says the same of a file and of what we make of it.
#[test]
fn go_sees_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let made = Made::new();
    let machines = [(made.machine, made.symbols), of_all_kinds()];
    let machines = machines.into_iter().chain(lines::innermost_place(folder.path()));
    for (machine, symbols) in machines {
        let before = written(&machine, &symbols);
        let again = imported(&before).unwrap();
        let after = written(&again.machine, &again.symbols);
        let (Some(before), Some(after)) = (Go::new(&before), Go::new(&after)) else { return };
        for arguments in [&["-raw"][..], &["-top", "-nodefraction=0"], &["-traces"], &["-comments"]] {
            assert_eq!(before.pprof(arguments), after.pprof(arguments));
        }
    }
}

const GO_PROGRAM: &str = r#"
package main

import (
	"context"
	"os"
	"runtime"
	"runtime/pprof"
	"time"
)

var kept [][]byte
var sum int

//go:noinline
func burn(until time.Time) {
	for time.Now().Before(until) {
		for i := 0; i < 100000; i++ {
			sum += i * i
		}
	}
}

//go:noinline
func keep() {
	for i := 0; i < 1000; i++ {
		kept = append(kept, make([]byte, 10000))
	}
}

func main() {
	runtime.MemProfileRate = 1000
	file, _ := os.Create(os.Args[1])
	pprof.StartCPUProfile(file)
	keep()
	pprof.Do(context.Background(), pprof.Labels("request", "slow"), func(context.Context) {
		burn(time.Now().Add(300 * time.Millisecond))
	})
	pprof.StopCPUProfile()
	file.Close()
	file, _ = os.Create(os.Args[2])
	pprof.Lookup("heap").WriteTo(file, 0)
	file.Close()
}
"#;

/// Profiles that Go's runtime writes: of the CPU's time, and of the heap.
fn of_go(folder: &Path) -> Option<[Vec<u8>; 2]> {
    tool("go")?;
    std::fs::write(folder.join("main.go"), GO_PROGRAM).unwrap();
    let mut go = Command::new("go");
    go.args(["run", "main.go", "cpu.out", "heap.out"]).current_dir(folder);
    output(go.env("HOME", folder).env("GOCACHE", folder.join("cache")).env("GOFLAGS", "-mod=mod"));
    Some(["cpu.out", "heap.out"].map(|name| std::fs::read(folder.join(name)).unwrap()))
}

/// What `-raw` says, without what is not kept: which column is the default where the file does not say it, what a mapping's symbols are
/// said to have, and the period's own name.
fn raw(go: &Go) -> Vec<String> {
    let raw = go.pprof(&["-raw"]);
    let lines = raw.lines().filter(|line| !line.starts_with("Period"));
    let squeezed = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    squeezed
        .map(|line| {
            ["[dflt]", " [FN]", "[FL]", "[LN]", "[IN]"]
                .iter()
                .fold(line, |line, mark| line.replace(mark, ""))
                .trim()
                .to_owned()
        })
        .collect()
}

fn folded(machine: &ExportMachine, symbols: &Symbols) -> String {
    let mut out = Vec::new();
    Folded.write(Profile { machine, symbols }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn what_go_writes_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let Some([cpu, heap]) = of_go(folder.path()) else { return };
    for (bytes, function, type_index) in [(&cpu, "main.burn", "samples"), (&heap, "main.keep", "inuse_space")]
    {
        let Imported { machine, symbols, .. } = imported(bytes).unwrap();
        let (Some(before), Some(after)) = (Go::new(bytes), Go::new(&written(&machine, &symbols))) else {
            return;
        };
        assert_eq!(raw(&before), raw(&after));
        let shown =
            before.pprof(&["-top", "-nodefraction=0", "-unit=B", &format!("-sample_index={type_index}")]);
        let expected: BTreeMap<String, i64> = top(&shown)
            .into_iter()
            .map(|(name, (own, _))| {
                (name.replace(" (inline)", ""), own.trim_end_matches('B').parse().unwrap())
            })
            .filter(|(_, own)| *own != 0)
            .collect();
        assert!(expected[function] > 0, "{shown}");
        // By the leaf of each line.
        let mut found: BTreeMap<String, i64> = BTreeMap::new();
        for line in folded(&machine, &symbols).lines() {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            let leaf = stack.rsplit(';').next().unwrap().trim_end_matches("_[i]");
            *found.entry(leaf.to_owned()).or_default() += count.parse::<i64>().unwrap();
        }
        found.retain(|_, own| *own != 0);
        assert_eq!(found, expected, "{shown}");
    }
}

#[test]
fn a_bomb_is_refused() {
    let packed = |plain: &[u8]| {
        let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(plain).unwrap();
        packed.finish().unwrap()
    };
    // A sample type, and field 15, which means nothing, of 8 MiB, without end.
    let piece = [&[0x7a, 0x80, 0x80, 0x80, 0x04][..], &vec![0; 8 << 20]].concat();
    let bomb = [packed(&[0x0a, 0]), packed(&piece).repeat(512)].concat();
    let error = Pprof.import(&mut Cursor::new(bomb)).unwrap_err().to_string();
    assert!(error.contains("more than 4294967296 bytes uncompressed"), "{error}");
    let bomb = [packed(&[0x0a, 0]), packed(&[0x7a, 0x81, 0x80, 0x80, 0x08])].concat();
    let error = Pprof.import(&mut Cursor::new(bomb)).unwrap_err().to_string();
    assert!(error.contains("up to byte 2 it has more than 16777216 bytes in a part"), "{error}");
}

/// Fields by hand, of two bytes more than what they have: at which of them it goes wrong.
#[test]
fn errors_name_their_place() {
    let field = |tag: u8, content: &[u8]| [&[tag << 3 | 2, content.len() as u8][..], content].concat();
    let begin = [field(1, &[0x08, 1]), field(6, b""), field(6, b"samples")].concat();
    assert_eq!(begin.len(), 4 + 2 + 9);
    let error = |rest: &[&[u8]]| {
        let plain = [&[&begin[..]], rest].concat().concat();
        let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&plain).unwrap();
        let [plain, packed] = [plain, packed.finish().unwrap()]
            .map(|bytes| Pprof.import(&mut Cursor::new(bytes)).unwrap_err().to_string());
        assert_eq!(plain, packed);
        plain
    };
    let sample = field(2, &[0x10, 7]);
    let placed = |error: &str, what: &str, position: usize| {
        assert!(error.contains(what) && error.contains(&format!(", at byte {position};")), "{error}");
    };
    let cut = |rest: &[u8], missing: usize| {
        let (error, end) = (error(&[&sample, rest]), 15 + 4 + rest.len());
        let told = format!(
            "it is cut short: it ends at byte {end}, in a field, at least {missing} bytes too early; "
        );
        assert!(error.starts_with(&told), "{error}");
    };
    cut(&[0x12, 9, 1], 8);
    cut(&[0x80], 1);
    placed(&error(&[&sample, &field(2, &[0x10, 0x80])]), "invalid varint", 15 + 4);
    placed(&error(&[&sample, &sample, &field(2, &[])]), "more or fewer values", 15 + 8);
    placed(&error(&[&field(2, &[0x08, 3, 0x10, 7])]), "location 3 is not there", 15);
    placed(&error(&[&[0xff; 10][..]]), "a number is too large", 15);
    // The last sample type has no room among kinds.
    let types = field(1, &[]).repeat(ExportMachine::MOST_KINDS);
    let last = 15 + 2 * (ExportMachine::MOST_KINDS - 1);
    let told = error(&[&types]);
    assert!(told.starts_with(&format!("up to byte {last} it has more than ")), "{told}");
}

#[test]
fn every_beginning_of_a_profile_is_survived() {
    let made = Made::new();
    let compressed = written(&made.machine, &made.symbols);
    let plain = plain(&compressed);
    for length in 0..plain.len() {
        let _ = imported(&plain[..length]);
    }
    for length in 0..compressed.len() {
        assert!(imported(&compressed[..length]).is_err(), "{length}");
    }
}

proptest! {
    #[test]
    fn what_we_write_is_read_as_it_was(rows in rows()) {
        let kinds = [("cpu", Unit::Count, 1_003_009), ("off-cpu", Unit::Nanoseconds, 1), ("alloc", Unit::Bytes, 1)];
        let (machine, symbols) = recording(&rows, &kinds);
        let again = imported(&written(&machine, &symbols)).unwrap();
        let tell = |machine: &ExportMachine, symbols: &Symbols| {
            let kind = |sample: &Sample| {
                let kind = machine.kinds()[usize::from(sample.kind.0)];
                let name = machine.string(kind.name);
                // How many samples a sum is of is a kind of its own.
                let is_known = !name.ends_with("_samples");
                is_known.then(|| (format!("{name} {:?} {} {}", kind.unit, kind.period, of_thread(machine, sample)), sample.value))
            };
            told(machine, kind, |id| whole_frame(machine, symbols, id))
        };
        let after = tell(&again.machine, &again.symbols);
        prop_assert_eq!(tell(&machine, &symbols), after);
        let counted = |kind: &str| -> i64 {
            let of = |machine: &ExportMachine, at: u16| machine.string(machine.kinds()[usize::from(at)].name).to_owned();
            let samples = again.machine.samples().iter();
            samples.filter(|sample| of(&again.machine, sample.kind.0) == kind).map(|sample| sample.value).sum()
        };
        let off = rows.iter().filter(|row| row.kind % 3 == 1).count();
        prop_assert_eq!(counted("off-cpu_samples"), off as i64);
    }

    #[test]
    fn damaged_profiles_are_survived(
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8)
    ) {
        let made = Made::new();
        let mut plain = plain(&written(&made.machine, &made.symbols));
        for (at, byte) in damage {
            let at = at.index(plain.len());
            plain[at] = byte;
        }
        if let Ok(Imported { machine, symbols, .. }) = imported(&plain) {
            let profile = Profile { machine: &machine, symbols: &symbols };
            let _ = Hottest::of_main(profile).table(10).to_string();
        }
    }
}

/// What pprof itself drops and keeps of the profile, it drops and keeps of one that was read and written again: functions of a name that the
/// first expression matches as a whole and the second one does not, and what these called.
#[test]
fn which_frames_are_to_be_dropped_is_carried() {
    let mut made = Made::new();
    let system = made.machine.system_mut();
    let rules = ["work|rec.*|mai", "recurse"].map(str::to_owned);
    [system.drop_frames, system.keep_frames] = rules.clone();
    let first = written(&made.machine, &made.symbols);
    let Imported { machine, symbols, left_out } = imported(&first).unwrap();
    assert_eq!([&machine.system().drop_frames, &machine.system().keep_frames], [&rules[0], &rules[1]]);
    assert!(!left_out.iter().any(|line| line.contains("frames")), "{left_out:?}");
    let all = Hottest::of(Profile { machine: &machine, symbols: &symbols }, SampleKindId(0)).rows;
    assert!(all.iter().any(|row| row.function.starts_with("work")), "nothing is dropped here: {all:?}");
    for profile in [first, written(&machine, &symbols)] {
        let Some(go) = Go::new(&profile) else { return };
        let top = top(&go.pprof(&["-top", "-sample_index=samples"]));
        let of = |name: &str| top.get(name).map(|(flat, cum)| (flat.as_str(), cum.as_str()));
        assert_eq!(of("main"), Some(("68", "78")), "{top:?}");
        assert_eq!(of("recurse"), Some(("10", "10")));
        assert!(top.keys().all(|name| !name.contains("work") && name != "vfs_read"), "{top:?}");
    }
}
