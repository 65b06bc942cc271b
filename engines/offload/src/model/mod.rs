// SPDX-License-Identifier: Apache-2.0
//! A model card: a network card with a table of flows that counts. It behaves as vendors describe
//! their cards. The caller provides the clock, and for a given seed every run is alike.
//!
//! Tests make it slow, full or late on purpose: the flow records must be exact nevertheless.

mod card;
mod cuckoo;
mod profile;

pub use card::{CardPacket, Handled, ModelCard};
pub use cuckoo::{Cuckoo, CurvePoint, Insertion, Shape, curve};
pub use profile::CardProfile;
