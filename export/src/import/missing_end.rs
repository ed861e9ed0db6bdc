//! A file that is cut: what is told of what was read before that.

use super::Imported;
use crate::format::lost_in;

/// Says that a file's end is missing. What was lost with it nobody knows, so that nothing says any more that nothing was.
pub(super) fn tell_missing_end(imported: &mut Imported, place: &str) {
    let line = format!("the end is missing: {place}");
    let system = imported.machine.system_mut();
    system.lost = system.lost.filter(|lost| *lost > 0);
    system.account.retain(|line| lost_in(std::slice::from_ref(line)) != Some(0));
    system.account.push(line.clone());
    imported.left_out.insert(0, line);
}
