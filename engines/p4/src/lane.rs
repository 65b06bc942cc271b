// SPDX-License-Identifier: Apache-2.0
//! What is sent to the pipeline, with the numbers of `p4/shared/lane.p4`.

/// The EtherType between CPU and pipeline: the second that IEEE 802 reserves for local
/// experiments.
pub(crate) const ETHER_TYPE: u16 = 0x88b6;
/// Bytes of the Ethernet header before a lane header.
pub(crate) const OUTER_BYTES: usize = 14;
/// Bytes of a lane header.
pub(crate) const LANE_BYTES: usize = 24;
/// Bytes of both headers.
pub(crate) const COMMAND_BYTES: usize = OUTER_BYTES + LANE_BYTES;

/// Maximum bytes of a frame that are sent. A message to the pipeline has at most 65,535 bytes.
pub(crate) const MOST_CAPTURED_BYTES: usize = 60_000;

pub(crate) const FLAG_LATE: u8 = 1;
pub(crate) const FLAG_CUT_AT_ENDS: u8 = 2;
pub(crate) const FLAG_ALL: u8 = 1;
pub(crate) const FLAG_SLOT: u8 = 2;
const FLAG_ODD: u8 = 4;
pub(crate) const FLAG_RESET: u8 = 8;

/// The flag of the list for a cell. It contains the slots that packets of the cell came to first.
pub(crate) const fn list_of(cell: u32) -> u8 {
    if cell.is_multiple_of(2) { 0 } else { FLAG_ODD }
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Replay = 0,
    Sweep = 1,
    Status = 2,
    Settings = 3,
}

/// A lane header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    /// Bytes of the frame that follow.
    pub(crate) captured_bytes: u16,
    /// The place in a list, or the number of places in use.
    pub(crate) argument: u32,
    /// Bytes of the frame on the wire.
    pub(crate) frame_length_bytes: u32,
    /// The number of the current cell of the clock.
    pub(crate) cell: u32,
    /// A time in nanoseconds since 1970, or a number that the answer returns.
    pub(crate) time_ns: u64,
}

impl Lane {
    pub(crate) const fn command(kind: Kind, flags: u8, cell: u32) -> Self {
        Self {
            kind,
            flags,
            captured_bytes: 0,
            argument: 0,
            frame_length_bytes: 0,
            cell,
            time_ns: 0,
        }
    }

    /// The bytes of the lane header, after an Ethernet header.
    pub(crate) fn bytes(&self) -> [u8; COMMAND_BYTES] {
        let mut bytes = [0; COMMAND_BYTES];
        // Neither end checks the address; it must be local and not a group address.
        bytes[0] = 2;
        bytes[6] = 2;
        bytes[12..14].copy_from_slice(&ETHER_TYPE.to_be_bytes());
        let lane = &mut bytes[OUTER_BYTES..];
        lane[0] = self.kind as u8;
        lane[1] = self.flags;
        lane[2..4].copy_from_slice(&self.captured_bytes.to_be_bytes());
        lane[4..8].copy_from_slice(&self.argument.to_be_bytes());
        lane[8..12].copy_from_slice(&self.frame_length_bytes.to_be_bytes());
        lane[12..16].copy_from_slice(&self.cell.to_be_bytes());
        lane[16..24].copy_from_slice(&self.time_ns.to_be_bytes());
        bytes
    }
}

/// What follows a lane of [`Kind::Settings`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) seeds: [u64; 2],
    /// The offset added to the pipeline's clock, in nanoseconds modulo 2^64.
    pub(crate) time_offset_ns: u64,
    /// Slots of each table, a power of two.
    pub(crate) slots: u32,
    /// Whether frames that arrive on ports without a lane are metered.
    pub(crate) meters: bool,
}

impl Settings {
    pub(crate) fn bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.seeds[0].to_be_bytes());
        bytes[8..16].copy_from_slice(&self.seeds[1].to_be_bytes());
        bytes[16..24].copy_from_slice(&self.time_offset_ns.to_be_bytes());
        bytes[24..28].copy_from_slice(&(self.slots - 1).to_be_bytes());
        bytes[31] = self.meters.into();
        bytes
    }
}
