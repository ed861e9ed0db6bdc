//! Short times off are sampled, and each sample stands for several. The kernel knows the exact sum of each thread's: when the
//! thread has ended, its samples are scaled to that. So sums are exact, and the parts of them as good as there are samples.

use collector_common::ids::Tid;
use collector_common::record::{AttributeListId, SampleKindId};
use rustc_hash::FxHashMap;

use crate::recorder::{Recorder, Taken};

/// What a thread was off its CPU for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// It was blocked.
    Blocked,
    /// It waited for a CPU.
    Waited,
}

/// Samples of one thread and kind for one part.
#[derive(Default)]
struct Sampled {
    sum: i64,
    /// Their places in the recording.
    places: Vec<usize>,
    /// Whether a filter left some out: then their sum is not that of all.
    is_filtered: bool,
}

/// Samples of short times off, of threads that have not ended.
#[derive(Default)]
pub(super) struct ShortTimes {
    sampled: FxHashMap<(Tid, SampleKindId, Part), Sampled>,
}

impl ShortTimes {
    /// Notes a sample; it has no place if a hook dropped it.
    pub(super) fn add(
        &mut self,
        (tid, kind, part): (Tid, SampleKindId, Part),
        value: i64,
        place: Option<usize>,
    ) {
        let sampled = self.sampled.entry((tid, kind, part)).or_default();
        sampled.sum = sampled.sum.saturating_add(value);
        sampled.places.extend(place);
    }

    /// Notes that a filter left out a time off.
    pub(super) fn leave_out(&mut self, tid: Tid, kind: SampleKindId) {
        for part in [Part::Blocked, Part::Waited] {
            self.sampled.entry((tid, kind, part)).or_default().is_filtered = true;
        }
    }

    /// Scales a thread's samples to the exact sum in nanoseconds. Where there is none, the sum is one without a stack.
    pub(super) fn settle(
        &mut self,
        recorder: &mut Recorder,
        (tid, kind, part): (Tid, SampleKindId, Part),
        exact: u64,
        without_stack: (Taken, AttributeListId),
    ) {
        let sampled = self.sampled.remove(&(tid, kind, part)).unwrap_or_default();
        let (taken, attributes) = without_stack;
        if sampled.is_filtered {
            return;
        }
        if sampled.sum > 0 {
            let factor = exact as f64 / sampled.sum as f64;
            recorder.machine_mut().samples_mut().scale(&sampled.places, factor);
        } else if exact > 0 {
            recorder.add_sample(kind, taken, exact.cast_signed(), attributes);
        }
    }
}
