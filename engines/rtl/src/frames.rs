// SPDX-License-Identifier: Apache-2.0
//! Frames for the simulated blocks of a card, and the reasons why the host gets some of them whole.

/// A frame that is given to a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenFrame {
    /// The bytes of the frame, from the Ethernet header on; at least one.
    pub bytes: Vec<u8>,
    /// The time that accompanies the frame in the stream, in nanoseconds since 1970.
    pub time_ns: u64,
    /// A defect of the frame in the stream.
    pub damage: Damage,
}

/// A defect of a frame in the stream, apart from its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damage {
    /// Nothing.
    #[default]
    None,
    /// The MAC marks it, at its last beat.
    Marked,
    /// Its first beat lacks a byte in the middle.
    Gap,
}

/// A frame without its bytes; `Given` in `csrc/frames.h`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Given {
    user: u64,
    length: u32,
    damage: u32,
}

/// The bytes of all frames, one after another, and the frames without their bytes.
pub(crate) fn given(frames: &[GivenFrame]) -> (Vec<u8>, Vec<Given>) {
    let bytes = frames
        .iter()
        .flat_map(|frame| frame.bytes.iter().copied())
        .collect();
    let given = frames.iter().map(|frame| Given {
        user: frame.time_ns,
        length: u32::try_from(frame.bytes.len()).expect("frames are short"),
        damage: frame.damage as u32,
    });
    (bytes, given.collect())
}

/// Why the host gets a frame whole: `reason_e` in `rtl/tf_frame_pkg.sv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Handed {
    /// The MAC marks it, a beat has a gap, or it is longer than 65,536 bytes.
    Damaged = 1,
    /// It ends within the Ethernet header or the tags.
    LinkCut,
    /// A third VLAN tag.
    Tags,
    /// Neither IPv4 nor IPv6.
    EtherType,
    /// The IP header has another version than announced.
    Version,
    /// The IP header is cut, or its lengths contradict each other.
    IpHeader,
    /// A length of 0: segmentation offload, or a jumbogram.
    NoLength,
    /// An authentication header of IPv6.
    Extension,
    /// The headers reach beyond what the parser sees.
    Deep,
}

impl Handed {
    /// All reasons, in the order of the headers.
    pub const ALL: [Self; 9] = [
        Self::Damaged,
        Self::LinkCut,
        Self::Tags,
        Self::EtherType,
        Self::Version,
        Self::IpHeader,
        Self::NoLength,
        Self::Extension,
        Self::Deep,
    ];

    /// The reason with this number; `None` for 0, which is a packet for the meter.
    ///
    /// # Panics
    /// If no reason has this number.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        let at = number.checked_sub(1)?;
        Some(Self::ALL[usize::from(at)])
    }
}
