//! Tracepoints: every format of the running kernel, and events with their fields.

use collector_user::tracefs::{Tracefs, TracefsError};

use crate::prerequisites::live;

#[test]
fn every_format_of_this_kernel_is_read() {
    let Some(_live) = live("every_format_of_this_kernel_is_read") else { return };
    let tracefs = Tracefs::open().unwrap();
    let names = tracefs.events().unwrap();
    assert!(names.len() > 1000, "{}", names.len());
    for name in &names {
        let text = tracefs.format(name).unwrap();
        let event = tracefs.event(name).unwrap_or_else(|error| panic!("{error}"));
        let lines: Vec<&str> = text.lines().filter(|line| line.trim().starts_with("field:")).collect();
        let fields = event.format().fields();
        assert_eq!(fields.len(), lines.len(), "{name}");
        // Each takes the place that its line says, but for arguments that are narrower than their registers.
        for (field, line) in fields.iter().zip(lines) {
            let number = |key: &str| -> u32 {
                let rest = line.split_once(key).unwrap().1;
                rest.split(';').next().unwrap().parse().unwrap()
            };
            let (size, taken) = (number("size:"), field.fixed_size().unwrap_or(0));
            let is_narrow = name.starts_with("syscalls:") && size == 8 && [2, 4].contains(&taken);
            assert!(taken == size || is_narrow, "{name}: {line}: {field:?}");
            let declared = line.trim().strip_prefix("field:").unwrap();
            assert!(declared.contains(field.name()), "{name}: {line}: {field:?}");
        }
        let id: u64 = text.lines().find_map(|line| line.strip_prefix("ID: ")).unwrap().parse().unwrap();
        assert_eq!(event.id().0, id, "{name}");
    }
}

#[test]
fn a_name_that_is_nearly_right() {
    let Some(_live) = live("a_name_that_is_nearly_right") else { return };
    let tracefs = Tracefs::open().unwrap();
    let error = tracefs.event("sched:sched_swich").unwrap_err();
    assert!(error.to_string().contains("did you mean sched:sched_switch"), "{error}");
    for name in ["sched_switch", "sched:", ":x", "../x:y", "sched:../../trace_pipe", ""] {
        assert!(matches!(tracefs.event(name), Err(TracefsError::NoName { .. })), "{name}");
    }
}
