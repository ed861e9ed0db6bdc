//! Blocks of the heap. Windows' heap provider is no provider like others: it is named when a session of its own is started, and
//! the processes that it is for are said then.

use collector_common::event::Guid;
use collector_common::ids::Pid;

use super::kernel::guid;

/// A session for heap events of some processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapPlan {
    /// The processes; there is at least one when the session is started.
    pub pids: Vec<Pid>,
}

impl HeapPlan {
    /// What the session is started for (`EVENT_TRACE_PROPERTIES.Wnode.Guid`): the class of the events, too.
    pub const PROVIDER: Guid = guid(0x2229_62ab_6180_4b88_a825_346b_75f2_a24a);
    /// Events with stacks, as group and type in the kernel's numbering: `HeapAlloc` and `HeapRealloc`.
    pub const STACKS: [u32; 2] = [0x1021, 0x1022];

    /// The most processes: with the rest the extension has 1024 words.
    pub const MOST: usize = 1019;

    /// What is appended to `EVENT_TRACE_PROPERTIES`, as 32-bit words: the number of words and of items, then an item with the
    /// processes (kind 2) and one with the events that have stacks (kind 3), each headed by its number of words and its kind.
    /// Both headings have the number of words in the low half.
    ///
    /// The source is what `xperf -start NAME -heap -pids PID` passes, as `PerfView`'s `ETWKernelControl` documents it.
    pub fn extension(&self) -> Vec<u32> {
        const PIDS: u32 = 2;
        const STACKWALK_FILTER: u32 = 3;
        let words = |len: usize| u32::try_from(len).unwrap_or(u32::MAX).min(0xffff);
        let pids: Vec<u32> = self.pids.iter().map(|pid| pid.0).collect();
        let mut items = Vec::new();
        for (kind, data) in [(PIDS, pids.as_slice()), (STACKWALK_FILTER, &Self::STACKS)] {
            items.push(words(data.len() + 1) | kind << 16);
            items.extend_from_slice(data);
        }
        items.insert(0, words(items.len() + 1) | 2 << 16);
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_has_processes_and_events_with_stacks() {
        let plan = HeapPlan { pids: vec![Pid(1234)] };
        assert_eq!(plan.extension(), [0x2_0006, 0x2_0002, 1234, 0x3_0003, 0x1021, 0x1022]);
        let plan = HeapPlan { pids: vec![Pid(1), Pid(2)] };
        assert_eq!(plan.extension(), [0x2_0007, 0x2_0003, 1, 2, 0x3_0003, 0x1021, 0x1022]);
        assert_eq!(HeapPlan { pids: vec![Pid(1); HeapPlan::MOST] }.extension().len(), 1024);
    }
}
