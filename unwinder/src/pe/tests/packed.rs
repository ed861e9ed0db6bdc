//! A function for each way to pack unwind data: the canonical prologue that Microsoft's "ARM64 exception handling" gives
//! for the fields, and the epilogue that undoes it, as assembly with clang's directives.

use std::fmt::Write as _;

/// The fields of packed unwind data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    /// `RegI`
    generals: u32,
    /// `RegF`
    vectors: u32,
    /// `H`
    homes: bool,
    /// `CR`
    chain: u32,
    /// In bytes: what the frame has below the saved registers.
    locals: u32,
}

/// An instruction, the one that undoes it, and the directive that tells it.
struct Line {
    text: String,
    undo: Option<String>,
    directive: String,
}

impl Fields {
    pub(super) fn all() -> Vec<Self> {
        let locals = [16, 496, 528, 4080, 4096].into_iter().cycle();
        let fields = (0..=10).flat_map(|generals| {
            [0, 1, 2, 7].into_iter().flat_map(move |vectors| {
                (0..4).flat_map(move |chain| [false, true].map(|homes| (generals, vectors, chain, homes)))
            })
        });
        fields
            // Without a register saved, nothing says where the arguments are.
            .filter(|&(generals, vectors, chain, homes)| !homes || generals + vectors > 0 || chain == 1)
            .zip(locals)
            .map(|((generals, vectors, chain, homes), locals)| Fields {
                generals,
                vectors,
                homes,
                chain,
                locals,
            })
            .collect()
    }

    fn saved(self) -> u32 {
        let vectors = if self.vectors == 0 { 0 } else { self.vectors + 1 };
        let registers = self.generals + vectors + u32::from(self.chain == 1);
        (registers * 8 + if self.homes { 64 } else { 0 }).next_multiple_of(16)
    }

    fn has_record(self) -> bool {
        self.chain >= 2
    }

    /// The packed data of a function with these fields and this many instructions.
    pub(super) fn data(self, instructions: u32) -> u32 {
        let frame = (self.saved() + self.locals) / 16;
        1 | instructions << 2
            | self.vectors << 13
            | self.generals << 16
            | u32::from(self.homes) << 20
            | self.chain << 21
            | frame << 23
    }

    fn prologue(self) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut line = |text: String, undo: Option<String>, directive: String| {
            lines.push(Line { text, undo, directive });
        };
        if self.chain == 2 {
            line("pacibsp".into(), Some("autibsp".into()), "pac_sign_lr".into());
        }
        let saved = self.saved();
        let mut at = 0;
        let mut save = |registers: &[String], directive: &str| {
            let pair = if registers.len() == 2 { "p" } else { "r" };
            let names = registers.join(", ");
            let first = &registers[0];
            let (place, back, directive) = match at {
                0 if !directive.ends_with("lrpair") => (
                    format!("[sp, #-{saved}]!"),
                    format!("[sp], #{saved}"),
                    format!("{directive}_x {first}, {saved}"),
                ),
                _ => (format!("[sp, #{at}]"), format!("[sp, #{at}]"), format!("{directive} {first}, {at}")),
            };
            line(format!("st{pair} {names}, {place}"), Some(format!("ld{pair} {names}, {back}")), directive);
            at += 8 * registers.len() as u32;
        };
        let name = |letter: char, number: u32| format!("{letter}{number}");
        let lr = || "x30".to_owned();
        let last = name('x', 18 + self.generals);
        for pair in 0..self.generals / 2 {
            save(&[name('x', 19 + 2 * pair), name('x', 20 + 2 * pair)], "save_regp");
        }
        match (self.generals % 2, self.chain) {
            (1, 1) => save(&[last, lr()], "save_lrpair"),
            (1, _) => save(&[last], "save_reg"),
            (_, 1) => save(&[lr()], "save_reg"),
            _ => {}
        }
        let vectors = if self.vectors == 0 { 0 } else { self.vectors + 1 };
        for pair in 0..vectors / 2 {
            save(&[name('d', 8 + 2 * pair), name('d', 9 + 2 * pair)], "save_fregp");
        }
        if vectors % 2 == 1 {
            save(&[name('d', 7 + vectors)], "save_freg");
        }
        if self.generals == 1 && self.chain == 1 {
            // There is no such pair with write-back.
            let text = format!("sub sp, sp, #{saved}");
            lines.insert(
                0,
                Line {
                    text,
                    undo: Some(format!("add sp, sp, #{saved}")),
                    directive: format!("stackalloc {saved}"),
                },
            );
        }
        if self.homes {
            for pair in 0..4 {
                let text = format!("stp x{}, x{}, [sp, #{}]", 2 * pair, 2 * pair + 1, saved - 64 + 16 * pair);
                lines.push(Line { text, undo: None, directive: "nop".into() });
            }
        }
        lines.extend(self.allocation());
        lines
    }

    fn allocation(self) -> Vec<Line> {
        let allocate = |size: u32| Line {
            text: format!("sub sp, sp, #{size}"),
            undo: Some(format!("add sp, sp, #{size}")),
            directive: format!("stackalloc {size}"),
        };
        let record = |place: String, back: String, directive: String| Line {
            text: format!("stp x29, x30, {place}"),
            undo: Some(format!("ldp x29, x30, {back}")),
            directive,
        };
        let locals = self.locals;
        let mut lines = Vec::new();
        if self.has_record() && locals <= 512 {
            let place = format!("[sp, #-{locals}]!");
            lines.push(record(place, format!("[sp], #{locals}"), format!("save_fplr_x {locals}")));
        } else {
            let first = locals.min(4080);
            lines.push(allocate(first));
            lines.extend((locals > first).then(|| allocate(locals - first)));
            if self.has_record() {
                lines.push(record("[sp]".into(), "[sp]".into(), "save_fplr 0".into()));
            }
        }
        if self.has_record() {
            lines.push(Line { text: "mov x29, sp".into(), undo: None, directive: "set_fp".into() });
        }
        lines
    }

    /// Writes the function called `name`, and returns how many instructions it has.
    fn write(self, name: &str, out: &mut String) -> u32 {
        let prologue = self.prologue();
        let mut instructions = 0;
        let mut put = |text: &str, directive: &str| {
            writeln!(out, "    {text}\n    {directive}").unwrap();
            instructions += 1;
        };
        put(
            &format!(".seh_proc {name}\n{name}:\n    {}", prologue[0].text),
            &format!(".seh_{}", prologue[0].directive),
        );
        for line in &prologue[1..] {
            put(&line.text, &format!(".seh_{}", line.directive));
        }
        put(".seh_endprologue\n    mov x0, #1", "");
        for number in 19..19 + self.generals {
            put(&format!("mov x{number}, #{number}"), "");
        }
        if self.chain != 0 {
            put("bl plain", "");
        }
        let mut begin = ".seh_startepilogue\n    ";
        for line in prologue.iter().rev() {
            if let Some(undo) = &line.undo {
                put(&format!("{begin}{undo}"), &format!(".seh_{}", line.directive));
                begin = "";
            }
        }
        put(".seh_endepilogue\n    ret", ".seh_endproc");
        instructions
    }
}

/// Assembly of a function for each of `all`, in this order, and of an entry point that calls them; and how many
/// instructions each has.
pub(super) fn assembly(all: &[Fields]) -> (String, Vec<u32>) {
    let mut text = "    .text\n".to_owned();
    let lengths =
        all.iter().enumerate().map(|(index, fields)| fields.write(&format!("packed{index}"), &mut text));
    let lengths = lengths.collect();
    text.push_str("plain:\n    ret\n    .globl entry\n    .seh_proc entry\nentry:\n");
    text.push_str("    stp x29, x30, [sp, #-16]!\n    .seh_save_fplr_x 16\n    .seh_endprologue\n");
    for index in 0..all.len() {
        writeln!(text, "    bl packed{index}").unwrap();
    }
    text.push_str("    .seh_startepilogue\n    ldp x29, x30, [sp], #16\n    .seh_save_fplr_x 16\n");
    text.push_str("    .seh_endepilogue\n    ret\n    .seh_endproc\n");
    (text, lengths)
}
