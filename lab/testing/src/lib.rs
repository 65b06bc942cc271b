// SPDX-License-Identifier: Apache-2.0
//! What tests need of the machine they run on, and how they wait. Nothing of the product depends
//! on it.
//!
//! A test names its needs first and ends where one of them is missing:
//!
//! ```
//! use turboflow_testing::{Need, is_missing};
//!
//! if is_missing(&[Need::Root, Need::Tool("tshark")]) {
//!     return;
//! }
//! ```
//!
//! It then counts as skipped, not as passed: [`is_missing`] says so on standard error, past the
//! capture of libtest, and in the file that [`REPORT`] names, which `scripts/run-tests.sh` adds up.
//! In CI ([`CI`]) a missing need is a failure, except for those that [`LEFT_OUT`] lists.
//!
//! A test never waits for time to pass. It waits [`until`] another process is where the test wants
//! it: until it has said something ([`Talk`]), or until it is blocked in a system call
//! (`is_blocked`).

#[cfg(target_os = "linux")]
mod blocked;
mod need;
mod report;
mod wait;

#[cfg(target_os = "linux")]
pub use blocked::{Blocked, is_blocked};
pub use need::{Need, captures_folder, library};
pub use report::{CI, LEFT_OUT, REPORT, is_missing, is_missing_in_part};
pub use wait::{PATIENCE, Talk, until};
