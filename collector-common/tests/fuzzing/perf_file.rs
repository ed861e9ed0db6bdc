//! Input: a `perf.data`. All of it is read, in the order of the times.

use std::io::Cursor;

use collector_common::perf::file::{FileReader, Ordered};

pub(crate) fn run(data: &[u8]) {
    let Ok(file) = FileReader::open(Cursor::new(data)) else { return };
    let mut file = Ordered::new(file);
    while let Ok(Some(record)) = file.next_record() {
        let _ = record.parse();
    }
    let features = file.file().features();
    let _ = (
        features.command_line(),
        features.events(),
        features.build_ids(),
        features.pmus(),
        features.groups(),
    );
    let _ = (features.cpu_topology(), features.numa_nodes(), features.caches(), features.memory_topology());
    let _ = (features.pmu_caps(), features.hybrid_topology(), features.clock_data(), features.compression());
}
