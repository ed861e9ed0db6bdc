//! The code of an inlined function, as steps in code and lines (`BinaryAnnotation` of Microsoft's `cvinfo.h`).

use super::object::Line;

/// More steps than any real function has.
const MAX_ROWS: usize = 1 << 16;

/// A piece of code with its line: from where to where, counted from where the function begins that all this is inlined into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) start: u32,
    end: Option<u32>,
    pub(super) line: Line,
}

impl Row {
    /// Where it ends; where it begins, if that is not told.
    pub(super) fn end(&self) -> u32 {
        self.end.unwrap_or(self.start)
    }
}

/// The pieces of a function that begins at a line.
pub(super) fn rows(mut bytes: &[u8], first: Line) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let (mut code, mut line) = (0_u32, first);
    while let Some(operation) = number(&mut bytes).filter(|operation| *operation != 0) {
        let Some(operand) = number(&mut bytes) else { break };
        match operation {
            operation::CODE_OFFSET | operation::CHANGE_CODE_OFFSET => {
                code = code.wrapping_add(operand);
                begin(&mut rows, code, line);
            }
            operation::CHANGE_CODE_LENGTH => {
                code = code.wrapping_add(operand);
                end(&mut rows, code);
            }
            operation::CHANGE_FILE => line.file = Some(operand),
            operation::CHANGE_LINE_OFFSET => {
                line.number = line.number.wrapping_add_signed(signed(operand));
            }
            operation::CHANGE_CODE_AND_LINE_OFFSET => {
                line.number = line.number.wrapping_add_signed(signed(operand >> 4));
                code = code.wrapping_add(operand & 0xf);
                begin(&mut rows, code, line);
            }
            operation::CHANGE_CODE_LENGTH_AND_OFFSET => {
                let Some(offset) = number(&mut bytes) else { break };
                code = code.wrapping_add(offset);
                begin(&mut rows, code, line);
                code = code.wrapping_add(operand);
                end(&mut rows, code);
            }
            operation::CHANGE_COLUMN_START => line.column = operand,
            _ => {}
        }
        if rows.len() >= MAX_ROWS {
            break;
        }
    }
    rows
}

fn begin(rows: &mut Vec<Row>, code: u32, line: Line) {
    end(rows, code);
    rows.push(Row { start: code, end: None, line });
}

fn end(rows: &mut [Row], code: u32) {
    if let Some(row) = rows.last_mut() {
        row.end.get_or_insert(code);
    }
}

/// Kinds of steps. The others have one operand, and say nothing of code or lines.
mod operation {
    pub(super) const CODE_OFFSET: u32 = 1;
    pub(super) const CHANGE_CODE_OFFSET: u32 = 3;
    pub(super) const CHANGE_CODE_LENGTH: u32 = 4;
    pub(super) const CHANGE_FILE: u32 = 5;
    pub(super) const CHANGE_LINE_OFFSET: u32 = 6;
    pub(super) const CHANGE_COLUMN_START: u32 = 9;
    pub(super) const CHANGE_CODE_AND_LINE_OFFSET: u32 = 11;
    pub(super) const CHANGE_CODE_LENGTH_AND_OFFSET: u32 = 12;
}

/// A number of 1, 2 or 4 bytes, which its first bits say.
fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (&first, rest) = bytes.split_first()?;
    let first = u32::from(first);
    let (value, rest) = match first >> 5 {
        0..=3 => (first, rest),
        4 | 5 => {
            let (&second, rest) = rest.split_first()?;
            ((first & 0x3f) << 8 | u32::from(second), rest)
        }
        6 => {
            let (&[a, b, c], rest) = rest.split_first_chunk()?;
            (u32::from_be_bytes([first as u8 & 0x1f, a, b, c]), rest)
        }
        _ => return None,
    };
    *bytes = rest;
    Some(value)
}

/// The lowest bit is the sign.
fn signed(value: u32) -> i32 {
    let size = (value >> 1).cast_signed();
    if value & 1 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `llvm-pdbutil` prints the first: `code 0x5 (+0x5) line 0`, `code end 0x19 (+0x14)`.
    #[test]
    fn steps_are_pieces_of_code_with_lines() {
        let first = Line { file: Some(8), number: 15, column: 0 };
        let found = |bytes: &[u8], code| {
            let rows = rows(bytes, first);
            rows.into_iter().find(|row| (row.start..row.end()).contains(&code)).map(|row| row.line)
        };
        let one = |code| found(&[0x0b, 0x05, 0x04, 0x14, 0, 0], code);
        assert_eq!([4, 5, 0x18, 0x19].map(one), [None, Some(first), Some(first), None]);
        // Two lines on at 3 bytes, one back in another file at 10, a gap from 12 to 20.
        let steps = [0x0b, 0x43, 0x05, 0x18, 0x06, 0x03, 0x03, 0x07, 0x04, 0x02, 0x0c, 0x05, 0x08];
        let at = |code| found(&steps, code).map(|it| (it.file, it.number));
        assert_eq!([2, 3, 9].map(at), [None, Some((Some(8), 17)), Some((Some(8), 17))]);
        assert_eq!([10, 11, 12, 19].map(at), [Some((Some(24), 16)), Some((Some(24), 16)), None, None]);
        assert_eq!([20, 24, 25].map(at), [Some((Some(24), 16)), Some((Some(24), 16)), None]);
    }

    #[test]
    fn numbers_have_as_many_bytes_as_they_need() {
        for (mut bytes, value) in [
            (&[0x7f][..], 0x7f),
            (&[0x80, 0x80], 0x80),
            (&[0xbf, 0xff], 0x3fff),
            (&[0xc0, 0x00, 0x40, 0x00], 0x4000),
        ] {
            assert_eq!(number(&mut bytes), Some(value));
            assert!(bytes.is_empty());
        }
        for mut bytes in [&[][..], &[0x80], &[0xc0, 0, 0], &[0xe0, 0, 0, 0]] {
            assert_eq!(number(&mut bytes), None);
        }
        assert_eq!([2, 3, 0].map(signed), [1, -1, 0]);
    }
}
