//! Processes that are there in, those among them that may be of a recording out: the ones that it is of, and what these have made.
//!
//! The system tells who made a process by a number, which is nobody's or another one's when its maker has ended. So one that was made
//! while it was recorded, by a maker that is gone, may be of any: it counts, as too many do no harm.

use std::collections::{BTreeSet, HashMap};

use collector_common::ids::Pid;

/// A process that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AliveProcess {
    /// Its number.
    pub pid: Pid,
    /// The number of the one that made it, which may have ended.
    pub parent: Pid,
    /// When it was made, in units of 100 ns since 1601 (`FILETIME`).
    pub made: u64,
}

/// Those that may be of a recording of `roots` that began at `began`, in units of [`AliveProcess::made`].
pub fn family(processes: &[AliveProcess], roots: &[Pid], began: u64) -> BTreeSet<Pid> {
    let by_pid: HashMap<Pid, &AliveProcess> = processes.iter().map(|it| (it.pid, it)).collect();
    let is_of = |process: &AliveProcess| {
        let mut at = process;
        // Each maker is older than what it made, or of one age, so that there is no more of them than processes.
        for _ in 0..processes.len() {
            if roots.contains(&at.pid) || roots.contains(&at.parent) {
                return true;
            }
            match by_pid.get(&at.parent).filter(|parent| parent.made <= at.made && parent.pid != at.pid) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        at.made >= began
    };
    processes.iter().filter(|process| is_of(process)).map(|process| process.pid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alive(pid: u32, parent: u32, made: u64) -> AliveProcess {
        AliveProcess { pid: Pid(pid), parent: Pid(parent), made }
    }

    fn of(processes: &[AliveProcess], root: u32) -> Vec<u32> {
        family(processes, &[Pid(root)], 100).into_iter().map(|pid| pid.0).collect()
    }

    #[test]
    fn children_and_theirs_from_before_and_since() {
        let processes =
            [alive(4, 0, 1), alive(10, 4, 20), alive(11, 10, 30), alive(12, 11, 200), alive(13, 4, 300)];
        assert_eq!(of(&processes, 10), [10, 11, 12]);
        assert_eq!(of(&processes[2..], 10), [11, 12, 13], "it has ended; whose the last one is nobody knows");
        assert_eq!(of(&processes[..3], 99), [0; 0]);
    }

    #[test]
    fn those_whose_maker_is_gone_may_be_of_it_if_they_were_made_since() {
        let processes = [alive(10, 4, 20), alive(12, 11, 200), alive(13, 12, 210), alive(14, 11, 99)];
        assert_eq!(of(&processes, 10), [10, 12, 13]);
        // The maker's number is another one's by now.
        let again = [alive(10, 4, 20), alive(12, 11, 200), alive(11, 4, 250)];
        assert_eq!(of(&again, 10), [10, 11, 12]);
        let foreign = [alive(4, 0, 1), alive(11, 4, 250), alive(12, 11, 200)];
        assert_eq!(of(&foreign, 10), [12]);
    }

    #[test]
    fn makers_in_a_circle_end() {
        assert_eq!(of(&[alive(1, 2, 50), alive(2, 1, 50), alive(3, 3, 50)], 9), [0; 0]);
        assert_eq!(of(&[alive(1, 2, 150), alive(2, 1, 150), alive(3, 3, 150)], 9), [1, 2, 3]);
    }
}
