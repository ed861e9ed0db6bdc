//! What is told of a recording as a whole: what was lost, and the embedding program's own numbers, for people; and where it was
//! made.

use collector_common::loss::Ledger;
use collector_common::record::ExportMachine;

/// Lines of text.
pub(super) fn account(machine: &ExportMachine) -> Vec<String> {
    let system = machine.system();
    let mut lines = system.account.clone();
    if let Some(lost) = system.lost.filter(|lost| *lost > 0)
        && lines.is_empty()
    {
        lines.push(format!("{lost} samples were lost"));
    }
    lines.extend(machine.metrics().iter().map(ToString::to_string));
    lines
}

/// How many samples were lost, as far as lines of the account of a recording of ours tell it: the one of its ledger, or that of
/// [`account`].
pub(crate) fn lost_in(account: &[String]) -> Option<u64> {
    account.iter().find_map(|line| match line.strip_suffix(" samples were lost") {
        Some(number) => number.parse().ok(),
        None => Ledger::lost_in(line),
    })
}

/// The operating system and its release, as in `Linux 6.18.0`. Some recordings tell the release alone.
pub(super) fn os_and_release(kernel: &str) -> (&str, &str) {
    if kernel.starts_with(|letter: char| letter.is_ascii_digit()) {
        return ("", kernel);
    }
    kernel.split_once(' ').unwrap_or((kernel, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_told_once() {
        let mut machine = ExportMachine::default();
        assert!(account(&machine).is_empty());
        machine.system_mut().lost = Some(3);
        machine.add_custom_metric("queue", 7.5, "requests");
        assert_eq!(account(&machine), ["3 samples were lost", "queue: 7.5 requests"]);
        machine.system_mut().account = vec!["3 lost (ring_full 3)".to_owned()];
        assert_eq!(account(&machine), ["3 lost (ring_full 3)", "queue: 7.5 requests"]);
    }

    #[test]
    fn lines_of_ours_tell_how_many_were_lost() {
        let lost = |lines: &[&str]| lost_in(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        assert_eq!(lost(&["build-07", "4 lost (not_run 3, ring_full 1)", "98.00 % are complete"]), Some(4));
        assert_eq!(lost(&["3 samples were lost"]), Some(3));
        assert_eq!(lost(&["none lost"]), Some(0));
        assert_eq!(lost(&["100.00 % are complete", "many samples were lost", "7 lost"]), None);
    }

    #[test]
    fn a_release_is_no_operating_system() {
        assert_eq!(os_and_release("Linux 6.18.0"), ("Linux", "6.18.0"));
        assert_eq!(os_and_release("6.5.0-1024-aws"), ("", "6.5.0-1024-aws"));
        assert_eq!(os_and_release("Windows"), ("Windows", ""));
        assert_eq!(os_and_release(""), ("", ""));
    }
}
