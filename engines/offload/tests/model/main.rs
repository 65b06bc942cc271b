// SPDX-License-Identifier: Apache-2.0
//! The learner with a model card: whatever the card does, every packet is counted once, by the card
//! or by the host, and every row ends once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conservation;
mod late;
mod world;
