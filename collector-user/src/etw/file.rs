//! An `.etl` file in, a recording out.

use std::io::Cursor;

use collector_common::loss::{Ledger, LossCause};
use collector_common::record::ExportMachine;
use export::import::{Begin, ImportError, ImportFormat, Imported, Input, checked};
use windows_etw::etl::{EtlError, EtlFile, Losses, TraceHeader};

use super::recording::Lost;
use super::taker::Taker;
use super::trace::Trace;

/// The reader of `.etl` files.
#[derive(Clone, Copy, Debug)]
pub struct Etl;

impl ImportFormat for Etl {
    fn name(&self) -> &'static str {
        "etl"
    }

    fn description(&self) -> &'static str {
        "Windows' .etl"
    }

    fn endings(&self) -> &'static str {
        ".etl"
    }

    fn signature(&self) -> &'static [u8] {
        b""
    }

    fn mark(&self) -> &'static str {
        "a buffer with the record EventTrace"
    }

    /// By the record of the trace, with which every file begins.
    fn begins(&self, begin: &Begin<'_>) -> bool {
        EtlFile::open(Cursor::new(begin.bytes)).is_ok()
    }

    fn import_into(
        &self,
        machine: ExportMachine,
        input: &mut dyn Input,
        event_bytes: u64,
    ) -> Result<Imported, ImportError> {
        let mut file = EtlFile::open(input).map_err(unread)?;
        let mut taker = taker(machine, file.header(), event_bytes);
        while let Some(record) = file.next_record().map_err(unread)? {
            taker.take(&record);
        }
        let mut imported = taker.finish();
        account([file.losses()], &mut imported);
        checked(imported)
    }
}

/// For a file, which may be of this machine.
pub(super) fn taker(machine: ExportMachine, header: &TraceHeader, event_bytes: u64) -> Taker {
    let mut taker = Taker::into(machine, Trace::from(header), event_bytes);
    #[cfg(windows)]
    let volumes = super::volumes();
    #[cfg(not(windows))]
    let volumes = Vec::new();
    taker.try_volumes(volumes);
    taker
}

pub(super) fn unread(error: EtlError) -> ImportError {
    let remedy = error.remedy();
    match error {
        EtlError::Io { source, .. } => ImportError::Read(source),
        EtlError::Empty => ImportError::Empty,
        EtlError::Cut { at, missing } => ImportError::Cut(format!(
            "it ends at byte {at}, in its first buffer, at least {missing} bytes too early"
        )),
        EtlError::NotEtl { at, why } => {
            ImportError::Malformed { format: "Windows' .etl", what: format!("at byte {at}, {why}") }
        }
        EtlError::Changed | EtlError::Overlapping { .. } => {
            ImportError::Unsupported { what: error.to_string(), remedy }
        }
    }
}

/// Says of a recording what its files do not have: how many are lost and, by cause, in the first line of the account.
pub(super) fn account<'a>(files: impl IntoIterator<Item = &'a Losses>, imported: &mut Imported) {
    let mut ledger = no_room(imported);
    for file in files {
        lose(&mut ledger, file, &Lost::default());
        tell(file, &Lost::default(), imported);
    }
    let system = imported.machine.system_mut();
    system.lost = Some(ledger.total_lost());
    system.account.insert(0, ledger.to_string());
}

/// A ledger with the events that there was no more room for here.
pub(super) fn no_room(imported: &Imported) -> Ledger {
    let mut ledger = Ledger::default();
    ledger.lose(LossCause::EventsFull, imported.machine.system().lost.unwrap_or_default());
    ledger
}

/// Counts what of a file is not there, by cause; its session may have told so, too, of which the larger number counts. A buffer, and a place that
/// can't be read, count as one, whatever was in them: nobody knows.
pub(super) fn lose(ledger: &mut Ledger, file: &Losses, session: &Lost) {
    let events = session.events.max(file.events.into());
    let buffers = session.buffers.max(file.buffers.into());
    // The header's counts are written when the session ends; without them there was at least one before each buffer that says so.
    let flagged = if events == 0 && buffers == 0 { file.flagged_buffers } else { 0 };
    ledger.lose(LossCause::RingFull, events.saturating_add(flagged));
    ledger.lose(LossCause::BufferLost, buffers.saturating_add(file.missing_buffers));
    ledger.lose(LossCause::Malformed, file.unread_records.saturating_add(file.damages));
}

/// Says what of the trace is not there: what ETW lost, by the file or its session, and what of the file can't be read.
pub(super) fn tell(losses: &Losses, session: &Lost, imported: &mut Imported) {
    let system = imported.machine.system_mut();
    let lines = lines(losses, session);
    let places = &losses.places;
    system.account.extend_from_slice(&lines);
    system.account.extend(places.first().map(|place| format!("the first place that is damaged: {place}")));
    imported.left_out.extend(lines);
    imported.left_out.extend(places.iter().map(ToString::to_string));
}

fn lines(losses: &Losses, session: &Lost) -> Vec<String> {
    let Losses { events, buffers, missing_buffers, flagged_buffers, unread_records, .. } = *losses;
    let Losses { late_records, damaged_bytes, damages, .. } = *losses;
    let counted = [
        (
            session.events.max(events.into()),
            "events were lost while it was recorded: there was no room for them; record fewer kinds of events, or sample less often",
        ),
        (
            session.buffers.max(buffers.into()),
            "buffers of events were lost while it was recorded: they were not written in time; record to a faster disk, or fewer kinds of events",
        ),
        (missing_buffers, "buffers that were written are not in the file: it is cut, or was not closed"),
        (flagged_buffers, "buffers say that events were lost before them"),
        (unread_records, "records have headers that are not known"),
        (late_records, "records came too late for their place"),
        (damages, "places of the file are damaged"),
        (damaged_bytes, "bytes could not be read because of damage"),
    ];
    let lines = counted.into_iter().filter(|(count, _)| *count > 0);
    lines.map(|(count, what)| format!("{count} {what}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_says_that_it_lost_is_counted_and_told_where_its_file_does_not_say_so() {
        let session = Lost { events: 7, buffers: 2 };
        for file in [Losses::default(), Losses { events: 3, buffers: 1, ..Losses::default() }] {
            let mut ledger = Ledger::default();
            lose(&mut ledger, &file, &session);
            assert_eq!((ledger.lost(LossCause::RingFull), ledger.lost(LossCause::BufferLost)), (7, 2));
            let told = lines(&file, &session);
            assert!(told[0].starts_with("7 events were lost while it was recorded"), "{told:?}");
            assert!(told[1].starts_with("2 buffers of events were lost while it was recorded"), "{told:?}");
            assert_eq!(told.len(), 2);
        }
        assert!(lines(&Losses::default(), &Lost::default()).is_empty());
    }
}
