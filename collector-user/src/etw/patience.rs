//! What Windows tells when it is asked again and again in, what is to be made of it out.

/// How often in a row it may tell nothing. It is asked once a second: what passes, as want of memory, does not end a recording, and one of which
/// nobody knows whether it goes on does not do so for long.
const MOST: u32 = 3;

/// How often Windows has told nothing in a row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    untold: u32,
}

impl Patience {
    /// What was told. That nothing was is taken for what was told before, which is `usual`, until it is so three times in a row.
    ///
    /// # Errors
    /// The third in a row.
    pub fn with<T, E>(&mut self, told: Result<T, E>, usual: T) -> Result<T, E> {
        self.untold = if told.is_err() { self.untold + 1 } else { 0 };
        if self.untold < MOST { Ok(told.unwrap_or(usual)) } else { told }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_error_in_a_row_is_one() {
        let mut patience = Patience::default();
        let mut told = |told: Result<bool, u32>| patience.with(told, false);
        assert_eq!([told(Err(1)), told(Err(2)), told(Ok(false))], [Ok(false); 3]);
        assert_eq!([told(Err(3)), told(Err(4)), told(Err(5))], [Ok(false), Ok(false), Err(5)]);
        assert_eq!((told(Ok(true)), told(Err(6))), (Ok(true), Ok(false)));
    }
}
