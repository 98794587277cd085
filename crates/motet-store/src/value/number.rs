//! Numbers without rounding: integers of 64 bits and floats on one line.

use core::cmp::Ordering;

use serde_json::Number;

/// A number as its sign, the exponent of its highest bit, and its bits from that one down.
///
/// Every `i64`, `u64` and finite `f64` has exactly one such form, so that equal numbers are equal
/// however they were written, and others never are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exact {
    pub(super) sign: Sign,
    /// The highest bit stands for 2 to this power.
    pub(super) exponent: i16,
    /// The highest bit is set, but for zero.
    pub(super) mantissa: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sign {
    Negative,
    Zero,
    Positive,
}

impl Exact {
    pub(super) fn new(number: &Number) -> Self {
        if let Some(integer) = number.as_u64() {
            Self::scaled(Sign::Positive, integer, 0)
        } else if let Some(integer) = number.as_i64() {
            Self::scaled(Sign::Negative, integer.unsigned_abs(), 0)
        } else {
            Self::from_float(float(number))
        }
    }

    fn from_float(float: f64) -> Self {
        let sign = if float.is_sign_negative() { Sign::Negative } else { Sign::Positive };
        let (bits, power) = integer_and_power(float);
        Self::scaled(sign, bits, power)
    }

    /// The number `bits` times 2 to the `power`.
    fn scaled(sign: Sign, bits: u64, power: i16) -> Self {
        if bits == 0 {
            return Self { sign: Sign::Zero, exponent: 0, mantissa: 0 };
        }
        let unused = bits.leading_zeros();
        // At most 63, so that it fits.
        let highest = 63 - unused as i16;
        Self { sign, exponent: highest + power, mantissa: bits << unused }
    }

    fn magnitude(self) -> (i16, u64) {
        (self.exponent, self.mantissa)
    }
}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Exact {
    fn cmp(&self, other: &Self) -> Ordering {
        let magnitudes = || match self.sign {
            Sign::Negative => other.magnitude().cmp(&self.magnitude()),
            Sign::Zero | Sign::Positive => self.magnitude().cmp(&other.magnitude()),
        };
        self.sign.cmp(&other.sign).then_with(magnitudes)
    }
}

/// What is left of a whole number after division, with the sign of the number; none for fractions.
pub(crate) fn remainder(number: &Number, divisor: i64) -> Option<i64> {
    let divisor = i128::from(divisor);
    let (negative, left) = if let Some(integer) = number.as_i64() {
        (integer < 0, i128::from(integer).abs().checked_rem(divisor)?)
    } else if let Some(integer) = number.as_u64() {
        (false, i128::from(integer).checked_rem(divisor)?)
    } else {
        let float = float(number);
        (float < 0.0, whole_remainder(float, divisor)?)
    };
    // Smaller than the divisor, so that it fits.
    i64::try_from(if negative { -left } else { left }).ok()
}

/// What is left of the magnitude of a whole float.
fn whole_remainder(float: f64, divisor: i128) -> Option<i128> {
    if float.fract() != 0.0 {
        return None;
    }
    let (bits, power) = integer_and_power(float);
    if power <= 0 {
        let whole = if power > -64 { bits >> -power } else { 0 };
        return i128::from(whole).checked_rem(divisor);
    }
    let mut left = i128::from(bits).checked_rem(divisor)?;
    for _ in 0..power {
        left = left * 2 % divisor;
    }
    Some(left)
}

/// The integer and the power of two whose product is the float's magnitude.
fn integer_and_power(float: f64) -> (u64, i16) {
    const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    const SMALLEST_POWER: i16 = -1_074;
    let bits = float.to_bits();
    let fraction = bits & ((1 << FRACTION_BITS) - 1);
    let exponent = (bits >> FRACTION_BITS & 0x7ff) as i16;
    match exponent {
        0 => (fraction, SMALLEST_POWER),
        _ => (fraction | 1 << FRACTION_BITS, SMALLEST_POWER - 1 + exponent),
    }
}

fn float(number: &Number) -> f64 {
    number.as_f64().expect("a JSON number is an i64, a u64 or a finite f64")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn number(value: &serde_json::Value) -> Number {
        value.as_number().unwrap().clone()
    }

    fn exact(value: &serde_json::Value) -> Exact {
        Exact::new(&number(value))
    }

    #[test]
    fn a_number_is_the_same_however_it_is_written() {
        assert_eq!(exact(&json!(1)), exact(&json!(1.0)));
        assert_eq!(exact(&json!(0)), exact(&json!(-0.0)));
        assert_eq!(exact(&json!(-3)), exact(&json!(-3.0)));
        assert_eq!(exact(&json!(1_u64 << 63)), exact(&json!(9_223_372_036_854_775_808.0)));
        assert_eq!(exact(&json!(i64::MIN)), exact(&json!(-9_223_372_036_854_775_808.0)));
    }

    #[test]
    fn neighbours_that_a_float_would_merge_are_apart() {
        let power = 1_u64 << 53;
        assert!(exact(&json!(power)) < exact(&json!(power + 1)));
        assert!(exact(&json!(power as f64)) < exact(&json!(power + 1)));
        assert!(exact(&json!(u64::MAX)) < exact(&json!(u64::MAX as f64)));
        assert!(exact(&json!(i64::MIN + 1)) > exact(&json!(i64::MIN as f64)));
    }

    #[test]
    fn the_smallest_and_the_largest_floats_are_in_order() {
        let sorted = [f64::MIN, -1.0, -f64::MIN_POSITIVE, -5e-324, 0.0, 5e-324, 1.0, f64::MAX];
        for pair in sorted.windows(2) {
            assert!(exact(&json!(pair[0])) < exact(&json!(pair[1])), "{pair:?}");
        }
    }

    #[test]
    fn remainders_are_exact_and_fractions_have_none() {
        assert_eq!(remainder(&number(&json!(-5)), 3), Some(-2));
        assert_eq!(remainder(&number(&json!(u64::MAX)), 10), Some(5));
        assert_eq!(remainder(&number(&json!(7.0)), -4), Some(3));
        assert_eq!(remainder(&number(&json!(1e300)), 2), Some(0));
        assert_eq!(remainder(&number(&json!(-0.0)), 2), Some(0));
        assert_eq!(remainder(&number(&json!(7.5)), 2), None);
        assert_eq!(remainder(&number(&json!(5e-324)), 2), None);
        assert_eq!(remainder(&number(&json!(i64::MIN)), -1), Some(0));
        assert_eq!(remainder(&number(&json!(7)), 0), None);
    }

    proptest! {
        #[test]
        fn floats_are_ordered_as_floats(a: f64, b: f64) {
            prop_assume!(a.is_finite() && b.is_finite());
            prop_assert_eq!(Some(exact(&json!(a)).cmp(&exact(&json!(b)))), a.partial_cmp(&b));
        }

        #[test]
        fn integers_are_ordered_as_integers(a: i64, b: u64) {
            let order = i128::from(a).cmp(&i128::from(b));
            prop_assert_eq!(exact(&json!(a)).cmp(&exact(&json!(b))), order);
        }

        #[test]
        fn remainders_of_whole_floats_are_those_of_their_integers(a: i64, divisor: i64) {
            prop_assume!(divisor != 0);
            let float = a as f64;
            let left = (float as i128 % i128::from(divisor)) as i64;
            prop_assert_eq!(remainder(&number(&json!(float)), divisor), Some(left));
        }
    }
}
