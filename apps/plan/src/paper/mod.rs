// SPDX-License-Identifier: Apache-2.0
//! Computes the paper's tables from its inputs, for comparison with the printed ones (TurboFlow,
//! Tables 5 and 10 to 13).
//!
//! Each [`Cell`] holds the printed number, the model's number, and how closely they agree
//! ([`Agreement`]). [`DEVIATIONS`] lists and explains the cells that deviate; tests check that the
//! list is exact. [`inputs`] says where inputs differ from the text.

mod cell;
mod deviations;
pub mod inputs;
mod table_10;
mod table_11;
mod table_12;
mod table_13;
mod table_5;

pub use cell::{Agreement, Cell, EITHER_WAY, Printed, Rounding, WITHIN_INPUTS};
pub use deviations::{DEVIATIONS, Deviation};
pub use table_5::table_5;
pub use table_10::{internet_curve, switch_curve, table_10};
pub use table_11::table_11;
pub use table_12::table_12;
pub use table_13::table_13;

/// All cells of all tables.
#[must_use]
pub fn all() -> Vec<Cell> {
    [table_5(), table_10(), table_11(), table_12(), table_13()].concat()
}

#[cfg(test)]
mod tests;
