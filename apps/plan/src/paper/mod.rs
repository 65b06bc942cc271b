// SPDX-License-Identifier: Apache-2.0
//! The paper's own tables, computed from the paper's inputs beside what it printed (TurboFlow, Tables 5
//! and 10 to 13).
//!
//! Each [`Cell`] says what was printed, what the model gives, and how far these agree
//! ([`Agreement`]). Those that deviate are listed with what we know of them in [`DEVIATIONS`]; tests
//! hold the list to be complete and without excess. Where inputs are not as the text states them,
//! [`inputs`] says so.

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
