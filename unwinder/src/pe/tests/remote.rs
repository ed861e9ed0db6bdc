//! A debugger's end of the GDB remote protocol ("Debugging with GDB", appendix E), as far as a test needs it.

use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;

/// More is not read at a time, for stubs bound a packet's length.
const LONGEST_READ: usize = 1024;

pub(super) struct Remote {
    /// Buffered on the way in.
    stream: BufReader<UnixStream>,
}

impl Remote {
    pub(super) fn new(stream: UnixStream) -> Self {
        Remote { stream: BufReader::new(stream) }
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).unwrap();
        byte[0]
    }

    /// Sends a packet, and returns the one that answers it.
    fn ask(&mut self, packet: &str) -> String {
        let sum = packet.bytes().fold(0_u8, u8::wrapping_add);
        self.stream.get_mut().write_all(format!("${packet}#{sum:02x}").as_bytes()).unwrap();
        while self.byte() != b'$' {}
        let mut answer = String::new();
        loop {
            match self.byte() {
                b'#' => break,
                byte => answer.push(char::from(byte)),
            }
        }
        let _sum = [self.byte(), self.byte()];
        self.stream.get_mut().write_all(b"+").unwrap();
        answer
    }

    fn bytes(&mut self, packet: &str) -> Vec<u8> {
        let answer = self.ask(packet);
        let digits = answer.as_bytes().chunks_exact(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        digits.map(|pair| byte(pair).unwrap_or_else(|_| panic!("{packet}: {answer}"))).collect()
    }

    /// Runs on until the instruction at `address` is to be executed.
    pub(super) fn run_to(&mut self, address: u64) {
        assert_eq!(self.ask(&format!("Z0,{address:x},4")), "OK");
        assert!(self.ask("c").starts_with('T'), "{address:#x} was not reached");
        assert_eq!(self.ask(&format!("z0,{address:x},4")), "OK");
    }

    /// Executes an instruction.
    pub(super) fn step(&mut self) {
        let answer = self.ask("s");
        assert!(answer.starts_with("T05"), "{answer}");
    }

    /// All registers of 64 bits.
    pub(super) fn registers(&mut self) -> Vec<u64> {
        let bytes = self.bytes("g");
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(*word.first_chunk().unwrap())).collect()
    }

    pub(super) fn memory(&mut self, address: u64, length: usize) -> Vec<u8> {
        let pieces = (0..length).step_by(LONGEST_READ);
        let pieces = pieces.flat_map(|at| {
            let length = LONGEST_READ.min(length - at);
            self.bytes(&format!("m{:x},{length:x}", address + at as u64))
        });
        pieces.collect()
    }
}
