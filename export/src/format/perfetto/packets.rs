//! Packets in, the bytes of a trace out.
//!
//! A trace is a list of packets. Each is of a sequence, which interns names for itself: what a packet refers to stands in it or in
//! one before it. The first packet of a sequence says that nothing came before it (`INCREMENTAL_STATE_CLEARED`), and what holds
//! for those after it; these say that they need it (`protos/perfetto/trace/trace_packet.proto`).

use std::io::{self, Write};

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

use super::interned::Interned;
use super::proto::{
    Data, InternedData, PACKET, PerfSampleDefaults, TracePacket, TracePacketDefaults, clock, sequence_flags,
};

/// Bytes that are collected before they are written.
const PIECE: usize = 64 << 10;

/// A sequence of packets.
#[derive(Debug)]
pub(super) struct Sequence {
    id: u32,
    /// For its first packet, which was not written yet.
    defaults: Option<Box<TracePacketDefaults>>,
    pub(super) interned: Interned,
}

impl Sequence {
    /// Numbers begin at 1.
    pub(super) fn new(id: u32, perf_sample_defaults: Option<PerfSampleDefaults>) -> Self {
        let defaults = TracePacketDefaults { perf_sample_defaults, timestamp_clock_id: clock::MONOTONIC };
        Self { id, defaults: Some(Box::new(defaults)), interned: Interned::default() }
    }
}

/// A trace on its way out.
pub(super) struct Packets<'a> {
    buffer: Vec<u8>,
    out: &'a mut dyn Write,
}

impl<'a> Packets<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self { buffer: Vec::with_capacity(PIECE), out }
    }

    pub(super) fn write(
        &mut self,
        sequence: &mut Sequence,
        timestamp: Option<u64>,
        data: Data,
    ) -> io::Result<()> {
        let is_first = sequence.defaults.is_some();
        let cleared = if is_first { sequence_flags::INCREMENTAL_STATE_CLEARED } else { 0 };
        let interned = sequence.interned.take();
        let packet = TracePacket {
            timestamp,
            trusted_packet_sequence_id: sequence.id,
            interned_data: (interned != InternedData::default()).then(|| Box::new(interned)),
            sequence_flags: cleared | sequence_flags::NEEDS_INCREMENTAL_STATE,
            trace_packet_defaults: sequence.defaults.take(),
            first_packet_on_sequence: is_first,
            data: Some(data),
        };
        encode_key(PACKET, WireType::LengthDelimited, &mut self.buffer);
        encode_varint(packet.encoded_len() as u64, &mut self.buffer);
        packet.encode_raw(&mut self.buffer);
        if self.buffer.len() < PIECE { Ok(()) } else { self.flush() }
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.out.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}
