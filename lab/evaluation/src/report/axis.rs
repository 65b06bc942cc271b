// SPDX-License-Identifier: Apache-2.0
//! An axis: maps numbers to positions and chooses ticks.

/// Approximate maximum number of steps on a linear axis.
const STEPS: f64 = 6.0;

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spacing {
    Linear,
    /// Equal distances for powers of ten.
    Logarithmic,
}

/// An axis that covers all its numbers.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    spacing: Spacing,
    low: f64,
    high: f64,
}

impl Axis {
    /// An axis from the smallest to the largest number. A linear axis starts at 0.
    pub(crate) fn over(spacing: Spacing, numbers: impl Iterator<Item = f64>) -> Self {
        let usable =
            |number: &f64| number.is_finite() && (spacing == Spacing::Linear || *number > 0.0);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for number in numbers.filter(usable) {
            low = low.min(number);
            high = high.max(number);
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        match spacing {
            Spacing::Linear => {
                let step = round_step(high.max(f64::MIN_POSITIVE) / STEPS);
                Self {
                    spacing,
                    low: 0.0,
                    high: (high / step - 1e-9).ceil().max(1.0) * step,
                }
            }
            Spacing::Logarithmic => {
                let low = 1.0 / round_step(1.0 / low);
                let high = round_step(high).max(low * 10.0);
                Self { spacing, low, high }
            }
        }
    }

    /// The position of a number on the axis, from 0 to 1.
    pub(crate) fn share(&self, number: f64) -> f64 {
        let share = match self.spacing {
            Spacing::Linear => (number - self.low) / (self.high - self.low),
            Spacing::Logarithmic => {
                (number.max(f64::MIN_POSITIVE) / self.low).log10() / (self.high / self.low).log10()
            }
        };
        share.clamp(0.0, 1.0)
    }

    /// The numbers at the ticks.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        match self.spacing {
            Spacing::Linear => {
                let step = round_step(self.high / STEPS);
                let count = (self.high / step).round() as usize;
                (0..=count).map(|index| index as f64 * step).collect()
            }
            Spacing::Logarithmic => {
                let (first, last) = (self.low.log10().floor(), self.high.log10().ceil());
                // Across several decades, powers of ten are enough.
                let digits: &[f64] = if (self.high / self.low).log10() > 2.5 {
                    &[1.0]
                } else {
                    &[1.0, 2.0, 5.0]
                };
                (first as i32..=last as i32)
                    .flat_map(|decade| digits.iter().map(move |digit| digit * 10_f64.powi(decade)))
                    .filter(|tick| *tick > self.low * 0.999 && *tick < self.high * 1.001)
                    .collect()
            }
        }
    }

    /// Ticks of a short axis: ends and middle of a linear axis, powers of ten of a logarithmic one.
    pub(crate) fn few_ticks(&self) -> Vec<f64> {
        match self.spacing {
            Spacing::Linear => vec![0.0, self.high / 2.0, self.high],
            Spacing::Logarithmic => {
                let power = |tick: &f64| (tick.log10() - tick.log10().round()).abs() < 1e-9;
                self.ticks().into_iter().filter(power).collect()
            }
        }
    }
}

/// The smallest number of the form 1, 2 or 5 times a power of ten that is not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0].map(|digit| digit * power);
    step.into_iter()
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// The shortest form of a number: 950, 1.5K, 20M, 0.04.
pub(crate) fn short(number: f64) -> String {
    let magnitude = number.abs();
    let (value, unit) = match magnitude {
        m if m >= 1e9 => (number / 1e9, "G"),
        m if m >= 1e6 => (number / 1e6, "M"),
        m if m >= 1e3 => (number / 1e3, "K"),
        _ => (number, ""),
    };
    let digits = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        v => (-v.log10().floor()) as usize + 1,
    };
    let text = format!("{value:.digits$}");
    let trimmed = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{trimmed}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_short() {
        let numbers = [
            0.0, 950.0, 1_500.0, 20e6, 0.04, 0.000_125, 13.73, 1e9, 100.0,
        ];
        let texts = [
            "0", "950", "1.5K", "20M", "0.04", "0.00013", "13.7", "1G", "100",
        ];
        assert_eq!(numbers.map(short), texts);
    }

    #[test]
    fn a_linear_axis_begins_at_0_and_holds_everything() {
        let axis = Axis::over(Spacing::Linear, [3.0, 47.0].into_iter());
        assert_eq!(axis.ticks(), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(axis.few_ticks(), [0.0, 25.0, 50.0]);
        assert_eq!(axis.share(25.0), 0.5);
        // There is no empty step above the largest number.
        let axis = Axis::over(Spacing::Linear, [119.5].into_iter());
        assert_eq!(axis.ticks().last(), Some(&120.0));
    }

    #[test]
    fn a_logarithmic_axis_ends_close_to_its_numbers() {
        let axis = Axis::over(Spacing::Logarithmic, [0.0, 35.0, 447.0].into_iter());
        assert_eq!(axis.ticks(), [20.0, 50.0, 100.0, 200.0, 500.0]);
        assert_eq!(axis.few_ticks(), [100.0]);
        assert!((axis.share(100.0) - 0.5).abs() < 1e-9);
        // Over many decades, the ticks are powers of ten.
        let axis = Axis::over(Spacing::Logarithmic, [24.0, 25e6].into_iter());
        assert_eq!(axis.ticks(), [100.0, 1e3, 1e4, 1e5, 1e6, 1e7]);
    }

    #[test]
    fn an_axis_without_numbers_is_valid() {
        for spacing in [Spacing::Linear, Spacing::Logarithmic] {
            let axis = Axis::over(spacing, std::iter::empty());
            assert!(axis.ticks().len() > 1);
        }
    }
}
