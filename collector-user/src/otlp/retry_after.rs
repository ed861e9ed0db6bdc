//! `Retry-After` of HTTP (RFC 9110, 10.2.3) in, how long to wait out.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;

/// Seconds, or a date, which is nothing where it is over; `None` where it is neither.
pub(super) fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = rfc2822::parse(text.trim()).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates() {
        // 2026-01-31T23:59:59Z.
        let now = Timestamp::from_second(1_769_903_999).unwrap();
        let after = |text| retry_after(text, now).map(|it| it.as_secs());
        assert_eq!(after("120"), Some(120));
        assert_eq!(after(" 0 "), Some(0));
        assert_eq!(after("Sun, 01 Feb 2026 00:00:29 GMT"), Some(30));
        assert_eq!(after("Sat, 31 Jan 2026 23:59:00 GMT"), Some(0));
        for wrong in ["", "soon", "-1", "1.5", "99999999999999999999999"] {
            assert_eq!(after(wrong), None, "{wrong}");
        }
    }
}
