// SPDX-License-Identifier: Apache-2.0
//! Inputs that cannot be, or that contradict each other.

use thiserror::Error;

/// One argument that cannot be as it was given.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{argument} is {value}: {mend}")]
pub struct Impossible {
    /// The argument, by its name in this crate.
    pub argument: &'static str,
    /// What it was.
    pub value: f64,
    /// Why that cannot be, and what can.
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
}

/// A number that is one, and more than zero.
pub(crate) fn above_zero(argument: &'static str, value: f64) -> Result<f64, Impossible> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        let mend = "a number above 0 is needed";
        Err(Impossible::new(argument, value, mend))
    }
}

/// A number that is one, and not below zero.
pub(crate) fn zero_or_more(argument: &'static str, value: f64) -> Result<f64, Impossible> {
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        let mend = "a number from 0 on is needed";
        Err(Impossible::new(argument, value, mend))
    }
}
