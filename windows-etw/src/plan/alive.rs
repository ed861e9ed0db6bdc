//! Processes that are there in, those among them that may be of a recording out: the ones that it is of, and what these have made.
//!
//! The system tells who made a process by a number, which is nobody's or another one's when its maker has ended. So it is asked when the recording
//! begins, too: whose a process is that was there then is known, also when its maker is gone at the end. One that was made
//! since, by a maker that is gone, may be of any: it counts, as too many do no harm.

use std::collections::{BTreeSet, HashMap, HashSet};

use collector_common::ids::Pid;

/// A process that is there. No other one has both its number and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AliveProcess {
    /// Its number.
    pub pid: Pid,
    /// The number of the one that made it, which may have ended.
    pub parent: Pid,
    /// When it was made, in units of 100 ns since 1601 (`FILETIME`).
    pub made: u64,
}

/// Whose a recording is: those that it is of by number, and those that were theirs when it began.
#[derive(Clone, Debug, Default)]
pub struct Family {
    roots: Vec<Pid>,
    /// In units of [`AliveProcess::made`].
    began: u64,
    /// All that were there when it began.
    there: Vec<AliveProcess>,
    /// By number and time.
    members: HashSet<(Pid, u64)>,
}

impl Family {
    /// Of `roots`, when a recording begins, with all that are there; none of these where nobody tells.
    pub fn new(processes: &[AliveProcess], roots: &[Pid], began: u64) -> Self {
        let mut family =
            Self { roots: roots.to_vec(), began, there: processes.to_vec(), members: HashSet::new() };
        family.members = family.all(processes).map(|process| (process.pid, process.made)).collect();
        family
    }

    /// One more that it is of, as a command's.
    pub fn add(&mut self, root: Pid) {
        self.roots.push(root);
    }

    /// All that were there when it began, of it or not.
    pub fn there(&self) -> &[AliveProcess] {
        &self.there
    }

    /// Whether no process is named, so that all are meant.
    pub const fn is_of_all(&self) -> bool {
        self.roots.is_empty()
    }

    /// Those of it that are there now.
    pub fn of(&self, processes: &[AliveProcess]) -> BTreeSet<Pid> {
        self.all(processes).map(|process| process.pid).collect()
    }

    fn all<'a>(&self, processes: &'a [AliveProcess]) -> impl Iterator<Item = &'a AliveProcess> {
        let by_pid: HashMap<Pid, &AliveProcess> = processes.iter().map(|it| (it.pid, it)).collect();
        processes.iter().filter(move |process| self.has(process, &by_pid))
    }

    fn has(&self, process: &AliveProcess, by_pid: &HashMap<Pid, &AliveProcess>) -> bool {
        let is_own = |at: &AliveProcess| {
            let is_root = self.roots.contains(&at.pid) || self.roots.contains(&at.parent);
            is_root || self.members.contains(&(at.pid, at.made))
        };
        let mut at = process;
        // Each maker is older than what it made, or of one age, so that there is no more of them than processes.
        for _ in 0..by_pid.len() {
            if is_own(at) {
                return true;
            }
            match by_pid.get(&at.parent).filter(|parent| parent.made <= at.made && parent.pid != at.pid) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        at.made >= self.began
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alive(pid: u32, parent: u32, made: u64) -> AliveProcess {
        AliveProcess { pid: Pid(pid), parent: Pid(parent), made }
    }

    fn of(processes: &[AliveProcess], root: u32) -> Vec<u32> {
        of_both([&[], processes], root)
    }

    /// Of those that are there at the end, where there were these when it began.
    fn of_both([before, processes]: [&[AliveProcess]; 2], root: u32) -> Vec<u32> {
        let family = Family::new(before, &[Pid(root)], 100);
        family.of(processes).into_iter().map(|pid| pid.0).collect()
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
    fn those_that_were_of_it_when_it_began_are_whoever_has_ended_since() {
        let before =
            [alive(10, 4, 20), alive(11, 10, 30), alive(14, 11, 99), alive(15, 14, 99), alive(16, 4, 50)];
        let after = [alive(10, 4, 20), alive(14, 11, 99), alive(15, 14, 99), alive(16, 4, 50)];
        assert_eq!(of(&after, 10), [10], "nobody knows whose they are");
        assert_eq!(of_both([&before, &after], 10), [10, 14, 15]);
        // What they make is theirs, also where they are gone; their numbers may be others' by then.
        let later = [alive(15, 4, 120), alive(17, 14, 130), alive(18, 17, 140), alive(4, 0, 1)];
        assert_eq!(of_both([&before, &later], 10), [17, 18]);
        let mut family = Family::new(&before, &[], 100);
        assert!(family.is_of_all());
        family.add(Pid(14));
        assert_eq!(family.of(&after), [14, 15].map(Pid).into());
    }

    #[test]
    fn makers_in_a_circle_end() {
        assert_eq!(of(&[alive(1, 2, 50), alive(2, 1, 50), alive(3, 3, 50)], 9), [0; 0]);
        assert_eq!(of(&[alive(1, 2, 150), alive(2, 1, 150), alive(3, 3, 150)], 9), [1, 2, 3]);
    }
}
