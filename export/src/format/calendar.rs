//! Time since 1970 in, days and hours of UTC out (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin in
//! March, so that the day that is sometimes there is their last).

use std::fmt;

/// Year, month, day of the week from Sunday, day, hour, minute, second and millisecond, of milliseconds since 1970.
pub(super) fn time_of_day(unix: i128) -> [i16; 8] {
    const DAYS_OF_ERA: i128 = 146_097;
    let (days, rest) = (unix.div_euclid(86_400_000), unix.rem_euclid(86_400_000));
    let since = days + 719_468;
    let (era, day) = (since.div_euclid(DAYS_OF_ERA), since.rem_euclid(DAYS_OF_ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + i128::from(month <= 2);
    let weekday = (days + 4).rem_euclid(7);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    [year, month, weekday, day_of_month, hour, minute, rest / 1_000 % 60, rest % 1_000]
        .map(|part| part as i16)
}

/// Nanoseconds since 1970, printed as in ISO 8601 with all digits.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnixTime(pub(super) i128);

impl fmt::Display for UnixTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, month, _, day, hour, minute, second, _] = time_of_day(self.0.div_euclid(1_000_000));
        let nanoseconds = self.0.rem_euclid(1_000_000_000);
        write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanoseconds:09}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `date -u -d @1750000000 '+%Y %m %w %d %T'` and the like.
    #[test]
    fn times_of_day_are_those_of_the_calendar() {
        assert_eq!(time_of_day(0), [1970, 1, 4, 1, 0, 0, 0, 0]);
        assert_eq!(time_of_day(1_750_000_000_123), [2025, 6, 0, 15, 15, 6, 40, 123]);
        assert_eq!(time_of_day(951_782_400_000), [2000, 2, 2, 29, 0, 0, 0, 0]);
        assert_eq!(time_of_day(4_107_542_399_999), [2100, 2, 0, 28, 23, 59, 59, 999]);
        assert_eq!(time_of_day(1_560_642_000_000), [2019, 6, 6, 15, 23, 40, 0, 0]);
        assert_eq!(time_of_day(-1), [1969, 12, 3, 31, 23, 59, 59, 999]);
        assert_eq!(time_of_day(-11_644_473_600_000), [1601, 1, 1, 1, 0, 0, 0, 0]);
    }

    /// By `date -u -d @1750000000.000000789 +%FT%T.%NZ`, the last time that 64 bits hold, and the last before 1970.
    #[test]
    fn times_are_printed_with_all_digits() {
        assert_eq!(UnixTime(1_750_000_000_000_000_789).to_string(), "2025-06-15T15:06:40.000000789Z");
        assert_eq!(UnixTime(u64::MAX.into()).to_string(), "2554-07-21T23:34:33.709551615Z");
        assert_eq!(UnixTime(-1).to_string(), "1969-12-31T23:59:59.999999999Z");
    }
}
