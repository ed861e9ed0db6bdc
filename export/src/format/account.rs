//! What is told of a recording as a whole, for people: what was lost, and the embedding program's own numbers.

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
}
