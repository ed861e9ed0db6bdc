//! The order of numbers of different types, by their values: nothing is rounded or wrapped.

use std::cmp::Ordering;

/// A number of a field or of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// Of 64 bits, signed or not.
    Integer(i128),
    Float(f64),
}

impl Number {
    /// None if one is NaN.
    #[inline]
    pub(super) fn order(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(own), Self::Integer(other)) => Some(own.cmp(&other)),
            (Self::Float(own), Self::Float(other)) => own.partial_cmp(&other),
            (Self::Integer(own), Self::Float(other)) => integer_to_float(own, other),
            (Self::Float(own), Self::Integer(other)) => integer_to_float(other, own).map(Ordering::reverse),
        }
    }
}

fn integer_to_float(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // Saturates beyond what an `i128` holds, far from any integer of 64 bits; otherwise it is exact.
    let whole = float.trunc();
    let order = integer.cmp(&(whole as i128));
    Some(order.then_with(|| 0.0.partial_cmp(&(float - whole)).unwrap_or(Ordering::Equal)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_floats_have_the_order_of_their_values() {
        let two_to_53 = 9_007_199_254_740_992_i128;
        for (integer, float, order) in [
            (two_to_53 + 1, two_to_53 as f64, Some(Ordering::Greater)),
            (two_to_53, two_to_53 as f64, Some(Ordering::Equal)),
            (u64::MAX.into(), u64::MAX as f64, Some(Ordering::Less)),
            (-1, -0.5, Some(Ordering::Less)),
            (0, -0.5, Some(Ordering::Greater)),
            (0, -0.0, Some(Ordering::Equal)),
            (3, 3.25, Some(Ordering::Less)),
            (i64::MIN.into(), f64::NEG_INFINITY, Some(Ordering::Greater)),
            (u64::MAX.into(), f64::INFINITY, Some(Ordering::Less)),
            (0, f64::NAN, None),
        ] {
            let (integer, float) = (Number::Integer(integer), Number::Float(float));
            assert_eq!(integer.order(float), order, "{integer:?} {float:?}");
            assert_eq!(float.order(integer), order.map(Ordering::reverse), "{float:?} {integer:?}");
        }
    }
}
