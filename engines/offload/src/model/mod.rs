// SPDX-License-Identifier: Apache-2.0
//! A model card: a network card with a table of flows that counts, as far as its vendors say how it
//! behaves, and in a time that the caller gives. With a seed it does the same each time.
//!
//! Tests break it on purpose: what user space makes of a slow, full or late card must be exact.

mod card;
mod cuckoo;
mod profile;

pub use card::{CardPacket, Handled, ModelCard};
pub use cuckoo::{Cuckoo, CurvePoint, Insertion, Shape, curve};
pub use profile::CardProfile;
