// SPDX-License-Identifier: Apache-2.0
//! Benchmarks behind `turboflow bench`: every design runs in the same harness, on the same
//! records, in one run.

pub mod aggregate;
mod flows;
mod report;

pub use flows::Skew;
pub use report::{Row, Timer};
