// SPDX-License-Identifier: Apache-2.0
//! The numbers of `p4/shared/lane.p4`, written a second time, so that these tests do not depend on
//! the engine's own numbers.

pub(crate) const KIND_REPLAY: u8 = 0;
pub(crate) const KIND_SWEEP: u8 = 1;
pub(crate) const KIND_STATUS: u8 = 2;
pub(crate) const KIND_SETTINGS: u8 = 3;
pub(crate) const FLAG_CUT_AT_ENDS: u8 = 2;
pub(crate) const FLAG_ALL: u8 = 1;
pub(crate) const FLAG_SLOT: u8 = 2;
pub(crate) const FLAG_ODD: u8 = 4;
pub(crate) const FLAG_RESET: u8 = 8;

pub(crate) const CAUSE_COLLISION: u8 = 1;
pub(crate) const CAUSE_CUT: u8 = 2;
pub(crate) const CAUSE_AGED: u8 = 3;
pub(crate) const CAUSE_STATUS: u8 = 4;
pub(crate) const CAUSE_PUNTED: u8 = 5;

pub(crate) const FLAG_HAS_LANE: u8 = 2;
pub(crate) const FLAG_COUNTS_COPIES: u8 = 4;

pub(crate) const OUTER_BYTES: usize = 14;
pub(crate) const LANE_BYTES: usize = 24;
pub(crate) const REPORT_BYTES: usize = 16;
