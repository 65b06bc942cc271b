// SPDX-License-Identifier: Apache-2.0
//! What tests need of their machine, and how they wait. The product does not depend on this crate.
//!
//! A test names its needs first, and returns if one is missing:
//!
//! ```
//! use turboflow_testing::{Need, is_missing};
//!
//! if is_missing(&[Need::Root, Need::Tool("tshark")]) {
//!     return;
//! }
//! ```
//!
//! The test then counts as skipped, not as passed. [`is_missing`] reports it on standard error,
//! bypassing libtest's capture, and in the file that [`REPORT`] names, which `scripts/run-tests.sh`
//! sums up. In CI ([`CI`]), a missing need is a failure unless [`LEFT_OUT`] lists it.
//!
//! A test never waits for time to pass. It waits for a state of another process ([`until`]): a line
//! it has written ([`Talk`]), a system call it is blocked in (`is_blocked`), or all of its threads
//! asleep (`is_idle`).

#[cfg(target_os = "linux")]
mod blocked;
mod need;
mod port;
mod report;
mod wait;

#[cfg(target_os = "linux")]
pub use blocked::{Blocked, is_blocked, is_idle};
pub use need::{Need, captures_folder, cases_folder, library};
pub use port::free_port;
pub use report::{CI, LEFT_OUT, REPORT, is_missing, is_missing_in_part};
pub use wait::{PATIENCE, Talk, is_done_within, until};
