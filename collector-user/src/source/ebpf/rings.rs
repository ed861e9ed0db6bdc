//! The rings that programs write samples to, one for each CPU.

use aya::Ebpf;
use aya::maps::{ArrayOfMaps, Map, MapData, RingBuf};
use collector_common::ids::Nanos;

use super::error::LoadError;
use super::part::Part;
use crate::source::{EventIndex, Settings, SourceRecord};

/// Makes a CPU's ring and enters it into the array of rings.
pub(super) fn add_ring(ebpf: &mut Ebpf, cpu: u32, bytes: u32) -> Result<RingBuf<MapData>, LoadError> {
    let step = |error| LoadError::step(format!("the ring of CPU {cpu} could not be made"), error);
    let kind = aya_obj::generated::bpf_map_type::BPF_MAP_TYPE_RINGBUF as u32;
    let object = aya_obj::Map::new_from_params(kind, 0, 0, bytes, 0);
    let data = MapData::create(object, "samples", None).map_err(step)?;
    let rings = ebpf.map_mut("RINGS").ok_or_else(|| LoadError::missing("map RINGS"))?;
    let mut rings: ArrayOfMaps<_, MapData> = ArrayOfMaps::try_from(rings).map_err(step)?;
    rings.set(cpu, &data, 0).map_err(step)?;
    RingBuf::try_from(Map::RingBuf(data)).map_err(step)
}

/// 4 MiB a CPU, and twice as much where tracepoints come in bursts; less on machines with more than 16 CPUs, so that rings take 64 MiB
/// at most; never less than holds a few of the largest records.
pub(super) fn ring_bytes(settings: &Settings, cpus: usize, has_bursts: bool) -> u32 {
    const ALL_RINGS: usize = 64 << 20;
    let most = if has_bursts { 8 << 20 } else { 4 << 20 };
    let chosen = (ALL_RINGS / cpus.max(1)).clamp(256 << 10, most);
    let bytes = settings.ring_bytes.map_or(chosen, |bytes| bytes as usize);
    // Rounded down where it was chosen, up where it was given; both are powers of two then.
    let bytes = if settings.ring_bytes.is_some() { bytes } else { (bytes + 1).next_power_of_two() / 2 };
    bytes.clamp(rustix::param::page_size(), 1 << 30).next_power_of_two() as u32
}

/// Records that were taken out of the rings.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Of the sampling clock, handed over.
    pub(super) delivered: u64,
    /// Not of this version's form.
    pub(super) malformed: u64,
}

/// When the oldest record of a ring was made. One that can't be read is taken at once.
pub(super) fn oldest(ring: &mut RingBuf<MapData>) -> Option<u64> {
    let item = ring.next()?;
    let time = SourceRecord::of_ring(&item).map_or(0, |record| record.header.time);
    // Not consumed.
    std::mem::forget(item);
    Some(time)
}

/// Hands over the oldest record of a ring, if it was made by `until`. Says whether it did, or the record can't be read.
pub(super) fn take(
    ring: &mut RingBuf<MapData>,
    parts: &mut [Box<dyn Part>],
    tally: &mut Tally,
    until: Nanos,
    visit: &mut dyn FnMut(&SourceRecord<'_>),
) -> bool {
    let Some(item) = ring.next() else { return false };
    match SourceRecord::of_ring(&item) {
        Some(record) if record.header.time > until.0 => {
            // Not consumed: the next round begins with it.
            std::mem::forget(item);
            return false;
        }
        Some(record) => {
            let of_part = parts.iter_mut().find_map(|part| part.event_of(record.header));
            let event = of_part.unwrap_or(record.event);
            tally.delivered += u64::from(event == EventIndex::CLOCK);
            visit(&SourceRecord { event, ..record });
        }
        None => tally.malformed += 1,
    }
    true
}
