// SPDX-License-Identifier: Apache-2.0
//! Mean, variance and rate, computed from exact integer sums. Only the final division rounds.

/// sum / count. Absent if there are no values, or if the sum has saturated at 128 bits.
pub(super) fn mean(sum: u128, count: u64) -> Option<f64> {
    (count > 0 && sum < u128::MAX).then(|| sum as f64 / count as f64)
}

/// Population variance: (n * sum of squares - sum^2) / n^2.
pub(super) fn variance(sum: u128, squares: u128, count: u64) -> Option<f64> {
    if count == 0 || sum == u128::MAX || squares == u128::MAX {
        return None;
    }
    let scaled = U256::product(squares, u128::from(count)).minus(U256::product(sum, sum));
    Some(scaled.to_f64() / (u128::from(count) * u128::from(count)) as f64)
}

/// Amount per second; absent for a duration of 0.
pub(super) fn rate(amount: u64, duration_ns: u64) -> Option<f64> {
    let scaled = u128::from(amount) * 1_000_000_000;
    (duration_ns > 0).then(|| scaled as f64 / duration_ns as f64)
}

/// An unsigned 256-bit number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct U256 {
    high: u128,
    low: u128,
}

impl U256 {
    fn product(a: u128, b: u128) -> Self {
        const HALF: u128 = u64::MAX as u128;
        let (a1, a0, b1, b0) = (a >> 64, a & HALF, b >> 64, b & HALF);
        let low = a0 * b0;
        let (middle, carry) = (a1 * b0).overflowing_add(a0 * b1);
        let (low, carried) = low.overflowing_add(middle << 64);
        let high = a1 * b1 + (middle >> 64) + (u128::from(carry) << 64) + u128::from(carried);
        Self { high, low }
    }

    /// The difference, or 0 if it would be negative, which only invalid sums cause.
    fn minus(self, other: Self) -> Self {
        let (low, borrowed) = self.low.overflowing_sub(other.low);
        let high = self.high.checked_sub(other.high);
        match high.and_then(|high| high.checked_sub(u128::from(borrowed))) {
            Some(high) => Self { high, low },
            None => Self { high: 0, low: 0 },
        }
    }

    /// The nearest `f64`, except for the last one or two bits.
    fn to_f64(self) -> f64 {
        const TWO_TO_128: f64 = 340_282_366_920_938_463_463_374_607_431_768_211_456.0;
        self.high as f64 * TWO_TO_128 + self.low as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplies_to_256_bits() {
        let max = U256::product(u128::MAX, u128::MAX);
        assert_eq!(
            max,
            U256 {
                high: u128::MAX - 1,
                low: 1
            }
        );
        let product = U256::product(0x1234_5678_9abc_def0 << 60, 0xfedc_ba98_7654_3210 << 50);
        let narrow = u128::from(0x1234_5678_9abc_def0u64) * 0xfedc_ba98_7654_3210;
        assert_eq!(
            product,
            U256 {
                high: narrow >> 18,
                low: narrow << 110
            }
        );
    }

    #[test]
    fn variance_loses_nothing_to_cancellation() {
        // The values 10^18 and 10^18 + 2. Their variance is 1, far below the precision of an `f64`.
        let (a, b) = (1_000_000_000_000_000_000u128, 1_000_000_000_000_000_002u128);
        assert_eq!(variance(a + b, a * a + b * b, 2), Some(1.0));
        assert_eq!(variance(7, 49, 1), Some(0.0));
        assert_eq!(variance(0, 0, 0), None);
        assert_eq!(variance(1, u128::MAX, 3), None);
    }

    #[test]
    fn means_and_rates_need_a_divisor() {
        assert_eq!(mean(7, 2), Some(3.5));
        assert_eq!(mean(0, 0), None);
        assert_eq!(rate(3, 1_500_000_000), Some(2.0));
        assert_eq!(rate(3, 0), None);
    }
}
