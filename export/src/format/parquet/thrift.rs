//! Thrift's compact protocol, as far as Parquet's messages need it (`thrift-compact-protocol.md` of apache/thrift): a field is the
//! distance to the number of the one before and its type in a byte, integers are zigzag of variable length.

use crate::leb128;

/// Types of fields and elements.
mod wire {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I32: u8 = 5;
    pub(super) const I64: u8 = 6;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const STRUCT: u8 = 12;
}

/// A message on its way out. Fields are added in the order of their numbers, of which none is 15 above the one before.
pub(super) struct Message<'a> {
    out: &'a mut Vec<u8>,
    last: u8,
}

impl Message<'_> {
    /// Appends a message.
    pub(super) fn write(out: &mut Vec<u8>, fill: impl FnOnce(&mut Message<'_>)) {
        let mut message = Message { out, last: 0 };
        fill(&mut message);
        message.out.push(0);
    }

    fn field(&mut self, number: u8, wire: u8) {
        self.out.push((number - self.last) << 4 | wire);
        self.last = number;
    }

    pub(super) fn flag(&mut self, number: u8, flag: bool) {
        self.field(number, if flag { wire::TRUE } else { wire::FALSE });
    }

    pub(super) fn byte(&mut self, number: u8, byte: u8) {
        self.field(number, wire::BYTE);
        self.out.push(byte);
    }

    pub(super) fn i32(&mut self, number: u8, integer: i32) {
        self.field(number, wire::I32);
        leb128::write(self.out, leb128::zigzag(integer.into()));
    }

    pub(super) fn i64(&mut self, number: u8, integer: i64) {
        self.field(number, wire::I64);
        leb128::write(self.out, leb128::zigzag(integer));
    }

    pub(super) fn bytes(&mut self, number: u8, bytes: &[u8]) {
        self.field(number, wire::BINARY);
        self.binary(bytes);
    }

    fn binary(&mut self, bytes: &[u8]) {
        leb128::write(self.out, bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn message(&mut self, number: u8, fill: impl FnOnce(&mut Message<'_>)) {
        self.field(number, wire::STRUCT);
        Message::write(self.out, fill);
    }

    fn list(&mut self, number: u8, wire: u8, count: usize) {
        self.field(number, wire::LIST);
        if count < 15 {
            self.out.push((count as u8) << 4 | wire);
        } else {
            self.out.push(0xf0 | wire);
            leb128::write(self.out, count as u64);
        }
    }

    pub(super) fn integers(&mut self, number: u8, integers: &[i32]) {
        self.list(number, wire::I32, integers.len());
        for &integer in integers {
            leb128::write(self.out, leb128::zigzag(integer.into()));
        }
    }

    pub(super) fn texts(&mut self, number: u8, texts: &[&str]) {
        self.list(number, wire::BINARY, texts.len());
        for text in texts {
            self.binary(text.as_bytes());
        }
    }

    pub(super) fn messages<T>(
        &mut self,
        number: u8,
        items: impl ExactSizeIterator<Item = T>,
        mut fill: impl FnMut(&mut Message<'_>, T),
    ) {
        self.list(number, wire::STRUCT, items.len());
        items.for_each(|item| Message::write(self.out, |message| fill(message, item)));
    }

    /// A list of messages that are there already.
    pub(super) fn written(&mut self, number: u8, count: usize, messages: &[u8]) {
        self.list(number, wire::STRUCT, count);
        self.out.extend_from_slice(messages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the text of the protocol: the field's distance and type, then its value; 0 ends a message.
    #[test]
    fn fields_are_told_by_their_distance() {
        let mut out = Vec::new();
        Message::write(&mut out, |message| {
            message.i32(1, -1);
            message.flag(3, true);
            message.bytes(4, b"ab");
            message.integers(5, &[1, 2]);
            message.messages(6, 0..16, |message, at| message.byte(1, at));
            message.message(20, |message| message.i64(1, 64));
        });
        let mut expected = vec![0x15, 1, 0x21, 0x18, 2, b'a', b'b', 0x19, 0x25, 2, 4, 0x19, 0xfc, 16];
        expected.extend((0..16).flat_map(|at| [0x13, at, 0]));
        expected.extend([0xec, 0x16, 0x80, 1, 0, 0]);
        assert_eq!(out, expected);
    }
}
