//! Kernel addresses in, names out, by one pass over the text of `/proc/kallsyms`.
//!
//! A line is `ADDRESS TYPE NAME`, followed for a kernel module's symbol by a tab and `[module]`
//! (`kernel/kallsyms.c`, `s_show`). Code has the types `t`, `T`, `w` and `W`. The kernel's own symbols come in the
//! order of their addresses, those of its modules and of BPF programs after them in no order. There are no
//! sizes: the nearest symbol below an address names it. Where the kernel hides its addresses they are all 0.
//!
//! The text has some hundred thousand lines, of which a recording needs a few hundred: only the best candidate
//! for each wanted address is kept.

use std::io::{self, BufRead};

use super::answer::Answer;
use super::choice::{Binding, reads_better};

/// No function is longer. An address further from the nearest symbol is not of it.
const MAX_FUNCTION: u64 = 1 << 20;

/// The longest line that is looked at. The kernel's names have at most 512 bytes (`KSYM_NAME_LEN`).
const MAX_LINE: usize = 4 << 10;

/// Names the addresses of `answer`. What was found before an error stays.
pub(super) fn kernel_names(text: &mut dyn BufRead, answer: &mut Answer<'_>) -> io::Result<()> {
    let wanted = answer.wanted();
    let mut search = Search { wanted, slot: 0, best: vec![None; wanted.len()] };
    let read = each_line(text, |line| {
        if let Some(symbol) = Symbol::parse(line) {
            search.offer(&symbol);
        }
    });
    search.finish(answer);
    read
}

struct Symbol<'a> {
    address: u64,
    binding: Binding,
    name: &'a [u8],
}

impl<'a> Symbol<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut address = 0_u64;
        let mut digits = 0;
        while let Some(digit) = line.get(digits).and_then(|&byte| char::from(byte).to_digit(16)) {
            address = address << 4 | u64::from(digit);
            digits += 1;
        }
        let (b' ', kind, b' ', name @ [_, ..]) = (match line.get(digits..)? {
            [space, kind, other, name @ ..] => (*space, *kind, *other, name),
            _ => return None,
        }) else {
            return None;
        };
        let binding = match kind {
            b'T' => Binding::Global,
            b't' => Binding::Local,
            b'W' | b'w' => Binding::Weak,
            _ => return None,
        };
        (address != 0 && (1..=16).contains(&digits)).then_some(Self { address, binding, name })
    }
}

#[derive(Clone)]
struct Best {
    address: u64,
    binding: Binding,
    name: Vec<u8>,
}

struct Search<'a> {
    wanted: &'a [u64],
    /// Where the last symbol belonged: the next one is most often near.
    slot: usize,
    /// By wanted address: the best symbol above the wanted address before it.
    best: Vec<Option<Best>>,
}

impl Search<'_> {
    fn offer(&mut self, symbol: &Symbol<'_>) {
        self.slot = self.slot_of(symbol.address);
        let Some(best) = self.best.get_mut(self.slot) else { return };
        match best {
            None => {
                let &Symbol { address, binding, name } = symbol;
                *best = Some(Best { address, binding, name: name.to_vec() });
            }
            Some(best) if best.is_beaten_by(symbol) => {
                best.address = symbol.address;
                best.binding = symbol.binding;
                best.name.clear();
                best.name.extend_from_slice(symbol.name);
            }
            Some(_) => {}
        }
    }

    /// The position of the first wanted address that is not below `address`.
    fn slot_of(&self, address: u64) -> usize {
        let below = self.slot.checked_sub(1).and_then(|slot| self.wanted.get(slot));
        let at = self.wanted.get(self.slot);
        let same = below.is_none_or(|&below| below < address) && at.is_none_or(|&at| address <= at);
        if same { self.slot } else { self.wanted.partition_point(|&wanted| wanted < address) }
    }

    fn finish(self, answer: &mut Answer<'_>) {
        let mut nearest: Option<(u64, Option<u32>)> = None;
        for (position, (&wanted, best)) in self.wanted.iter().zip(self.best).enumerate() {
            if let Some(best) = best {
                nearest = Some((best.address, answer.add_name(readable(&best.name))));
            }
            if let Some((_, name)) = nearest.filter(|&(address, _)| wanted - address < MAX_FUNCTION) {
                answer.set(position, name);
            }
        }
    }
}

impl Best {
    fn is_beaten_by(&self, symbol: &Symbol<'_>) -> bool {
        let (this, other) = ((self.address, self.binding), (symbol.address, symbol.binding));
        other > this || (other == this && reads_better(symbol.name, &self.name))
    }
}

/// `name<tab>[module]` as `name [module]`.
fn readable(name: &[u8]) -> String {
    String::from_utf8_lossy(name).replace('\t', " ")
}

/// Calls `f` for each line without its end. Lines longer than [`MAX_LINE`] are left out.
fn each_line(text: &mut dyn BufRead, mut f: impl FnMut(&[u8])) -> io::Result<()> {
    let mut begun = Vec::new();
    let mut too_long = false;
    loop {
        let chunk = match text.fill_buf() {
            Ok([]) => break,
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let (line, after) = rest.split_at(end);
            too_long |= begun.len() + line.len() > MAX_LINE;
            if begun.is_empty() && !too_long {
                f(line);
            } else if !too_long {
                begun.extend_from_slice(line);
                f(&begun);
            }
            begun.clear();
            too_long = false;
            rest = &after[1..];
        }
        if begun.len() + rest.len() > MAX_LINE {
            begun.clear();
            too_long = true;
        } else if !too_long {
            begun.extend_from_slice(rest);
        }
        let used = chunk.len();
        text.consume(used);
    }
    if !too_long && !begun.is_empty() {
        f(&begun);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000040 t local_alias
ffffffff81000040 W weak_alias
ffffffff81000040 T __global_alias
ffffffff81000040 T _global_alias
ffffffff81000080 t __pfx_next
ffffffff81000090 t next.cold
ffffffff81001000 D not_code
ffffffff81002000 T last
ffffffffc0301000 t later\t[zram]
ffffffffc0300000 t first\t[zram]
ffffffffc0302000 t bpf_prog_0123456789abcdef_on_sample\t[bpf]
";

    fn names(text: &[u8], capacity: usize, wanted: &[u64]) -> Vec<Option<String>> {
        let mut answer = Answer::new(wanted);
        kernel_names(&mut BufReader::with_capacity(capacity, Cursor::new(text)), &mut answer).unwrap();
        wanted.iter().map(|&wanted| answer.name_at(wanted).map(str::to_owned)).collect()
    }

    #[test]
    fn the_nearest_symbol_below_names_an_address_however_the_text_is_cut() {
        let truth = [
            (0xffff_ffff_80ff_ffff, None),
            (0xffff_ffff_8100_0000, Some("_stext")),
            (0xffff_ffff_8100_003f, Some("_stext")),
            (0xffff_ffff_8100_0040, Some("_global_alias")),
            (0xffff_ffff_8100_0081, Some("__pfx_next")),
            (0xffff_ffff_8100_0091, Some("next.cold")),
            (0xffff_ffff_8100_1800, Some("next.cold")),
            (0xffff_ffff_8100_2000, Some("last")),
            (0xffff_ffff_9100_2000, None),
            (0xffff_ffff_c030_0010, Some("first [zram]")),
            (0xffff_ffff_c030_1010, Some("later [zram]")),
            (0xffff_ffff_c030_2010, Some("bpf_prog_0123456789abcdef_on_sample [bpf]")),
        ];
        let (wanted, expected): (Vec<u64>, Vec<Option<&str>>) = truth.into_iter().unzip();
        for capacity in [1, 2, 3, 7, 64, 4096] {
            let found = names(TEXT.as_bytes(), capacity, &wanted);
            assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), expected, "{capacity}");
        }
    }

    #[test]
    fn hidden_addresses_name_nothing() {
        let text = "0000000000000000 T _stext\n0000000000000000 t other\n";
        assert_eq!(names(text.as_bytes(), 64, &[1, 0xffff_ffff_8100_0000]), [None, None]);
    }

    #[test]
    fn an_endless_line_costs_only_itself() {
        let mut text = b"1000 T ".to_vec();
        text.extend(std::iter::repeat_n(b'x', 3 * MAX_LINE));
        text.extend(b"\n1010 T good\n");
        for capacity in [5, 1000, 1 << 20] {
            let found = names(&text, capacity, &[0x1018]);
            assert_eq!(found, [Some("good".to_owned())], "{capacity}");
        }
    }

    #[test]
    fn how_long_a_line_may_be_is_the_same_however_the_text_is_cut() {
        for (more, found) in [(0, true), (1, false)] {
            let name = "x".repeat(MAX_LINE - "1000 T ".len() + more);
            let text = format!("f00 T before\n1000 T {name}\n");
            let expected = if found { name } else { "before".to_owned() };
            for text in [text.as_str(), text.trim_end()] {
                for capacity in [1, 1000, MAX_LINE, MAX_LINE + 13, 1 << 20] {
                    let names = names(text.as_bytes(), capacity, &[0x1000]);
                    assert_eq!(names, [Some(expected.clone())], "{more} {capacity}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in proptest::collection::vec(any::<u8>(), 0..400), at in 1_u64..9) {
            names(&text, 5, &[at, at * 1000, u64::MAX]);
        }

        #[test]
        fn agrees_with_looking_at_every_symbol(
            symbols in proptest::collection::vec((1_u64..200, "[a-c_]{1,3}"), 0..40),
            wanted in proptest::collection::btree_set(0_u64..220, 0..20)
        ) {
            use std::fmt::Write as _;
            let mut text = String::new();
            for (address, name) in &symbols {
                writeln!(text, "{address:016x} T {name}").unwrap();
            }
            let wanted: Vec<u64> = wanted.into_iter().collect();
            let found = names(text.as_bytes(), 16, &wanted);
            for (&wanted, found) in wanted.iter().zip(&found) {
                let near = symbols.iter().map(|(address, _)| *address).filter(|&a| a <= wanted).max();
                let at: Vec<&String> =
                    symbols.iter().filter(|(a, _)| Some(*a) == near).map(|(_, name)| name).collect();
                prop_assert_eq!(found.is_some(), near.is_some());
                if let Some(found) = found {
                    prop_assert!(at.contains(&found));
                    prop_assert!(at.iter().all(|name| !reads_better(name.as_bytes(), found.as_bytes())));
                }
            }
        }
    }
}
