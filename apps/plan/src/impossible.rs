// SPDX-License-Identifier: Apache-2.0
//! Inputs that are invalid, or contradict each other.

use thiserror::Error;

/// An invalid argument.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{argument} is {}: {mend}", self.written())]
pub struct Impossible {
    /// The argument's name in this crate.
    pub argument: &'static str,
    /// Its value.
    pub value: f64,
    /// Why it is invalid, and what is valid.
    pub mend: String,
}

impl Impossible {
    pub(crate) fn new(argument: &'static str, value: f64, mend: impl Into<String>) -> Self {
        Self {
            argument,
            value,
            mend: mend.into(),
        }
    }

    /// The value in readable form: with a power of ten if it has very many digits.
    #[must_use]
    pub fn written(&self) -> String {
        let value = self.value;
        if value == 0.0 || !value.is_finite() || (1e-6..1e18).contains(&value.abs()) {
            value.to_string()
        } else {
            format!("{value:e}")
        }
    }
}

/// Limits of numbers: nothing real is further from 1, and products of larger ones could be
/// infinite.
pub(crate) const LEAST: f64 = 1e-18;
pub(crate) const MOST: f64 = 1e18;

pub(crate) const ABOVE_ZERO: &str = "a number above 0 is needed, from 1e-18 to 1e18";
pub(crate) const ZERO_OR_MORE: &str = "a number from 0 to 1e18 is needed";

/// Checks that a number is above zero.
pub(crate) fn above_zero(argument: &'static str, value: f64) -> Result<f64, Impossible> {
    if (LEAST..=MOST).contains(&value) {
        Ok(value)
    } else {
        Err(Impossible::new(argument, value, ABOVE_ZERO))
    }
}

/// Checks that a number is not negative.
pub(crate) fn zero_or_more(argument: &'static str, value: f64) -> Result<f64, Impossible> {
    if (0.0..=MOST).contains(&value) {
        Ok(value)
    } else {
        Err(Impossible::new(argument, value, ZERO_OR_MORE))
    }
}
