//! What is told of a recording as a whole: what was lost, and the embedding program's own numbers, for people; and where it was
//! made.

use collector_common::record::ExportMachine;

/// Lines of text.
pub(super) fn account(machine: &ExportMachine) -> Vec<String> {
    let system = machine.system();
    let mut lines = system.account.clone();
    if lines.is_empty() && system.lost > 0 {
        lines.push(format!("{} samples were lost", system.lost));
    }
    lines.extend(machine.metrics().iter().map(ToString::to_string));
    lines
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
        machine.system_mut().lost = 3;
        machine.add_custom_metric("queue", 7.5, "requests");
        assert_eq!(account(&machine), ["3 samples were lost", "queue: 7.5 requests"]);
        machine.system_mut().account = vec!["3 lost (ring_full 3)".to_owned()];
        assert_eq!(account(&machine), ["3 lost (ring_full 3)", "queue: 7.5 requests"]);
    }

    #[test]
    fn a_release_is_no_operating_system() {
        assert_eq!(os_and_release("Linux 6.18.0"), ("Linux", "6.18.0"));
        assert_eq!(os_and_release("6.5.0-1024-aws"), ("", "6.5.0-1024-aws"));
        assert_eq!(os_and_release("Windows"), ("Windows", ""));
        assert_eq!(os_and_release(""), ("", ""));
    }
}
