// SPDX-License-Identifier: Apache-2.0
//! A minimal capture file reader for tests: classic pcap and pcapng.

use turboflow_packet::{Frame, LinkType};

/// A frame of a file, with the link type number from the file.
pub(crate) struct Record {
    pub(crate) bytes: Vec<u8>,
    pub(crate) wire_length_bytes: u32,
    pub(crate) timestamp_ns: u64,
    pub(crate) interface: u32,
    pub(crate) link_type_number: u32,
}

impl Record {
    /// The frame, if TurboFlow supports its link type.
    pub(crate) fn frame(&self) -> Option<Frame<'_>> {
        Some(Frame {
            bytes: &self.bytes,
            wire_length_bytes: self.wire_length_bytes,
            timestamp_ns: self.timestamp_ns,
            interface: self.interface,
            link_type: LinkType::from_number(self.link_type_number)?,
        })
    }
}

/// All frames up to the first damage; `None` if the file is not a capture.
pub(crate) fn read(file: &[u8]) -> Option<Vec<Record>> {
    let magic = u32::from_le_bytes(*file.first_chunk()?);
    let mut records = Vec::new();
    match magic {
        0x0a0d_0d0a => pcapng(file, &mut records),
        0xa1b2_c3d4 | 0xa1b2_3c4d => pcap(file, false, magic == 0xa1b2_3c4d, &mut records),
        0xd4c3_b2a1 | 0x4d3c_b2a1 => pcap(file, true, magic == 0x4d3c_b2a1, &mut records),
        _ => return None,
    }?;
    Some(records)
}

struct Cursor<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl<'a> Cursor<'a> {
    fn u16(&self, offset: usize) -> Option<u16> {
        let bytes = *self.bytes.get(offset..)?.first_chunk()?;
        Some(if self.big {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        })
    }

    fn u32(&self, offset: usize) -> Option<u32> {
        let bytes = *self.bytes.get(offset..)?.first_chunk()?;
        Some(if self.big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    fn slice(&self, offset: usize, length: usize) -> Option<&'a [u8]> {
        self.bytes.get(offset..offset.checked_add(length)?)
    }
}

fn pcap(file: &[u8], big: bool, nanoseconds: bool, out: &mut Vec<Record>) -> Option<()> {
    let file = Cursor { bytes: file, big };
    let link_type_number = file.u32(20)?;
    let unit_ns = if nanoseconds { 1 } else { 1_000 };
    let mut offset = 24;
    while let Some(wire_length_bytes) = file.u32(offset + 12) {
        let seconds = u64::from(file.u32(offset)?);
        let fraction = u64::from(file.u32(offset + 4)?);
        let captured = file.u32(offset + 8)? as usize;
        let Some(bytes) = file.slice(offset + 16, captured) else {
            break;
        };
        out.push(Record {
            bytes: bytes.to_vec(),
            wire_length_bytes,
            timestamp_ns: seconds * 1_000_000_000 + fraction * unit_ns,
            interface: 0,
            link_type_number,
        });
        offset += 16 + captured;
    }
    Some(())
}

struct Interface {
    link_type_number: u32,
    snap_length: u32,
    ticks_per_second: u64,
    offset_seconds: i64,
}

fn pcapng(file: &[u8], out: &mut Vec<Record>) -> Option<()> {
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut big = false;
    let mut offset = 0;
    while file.len() >= offset + 12 {
        if file[offset..].starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
            big = file[offset + 8..].starts_with(&[0x1a, 0x2b, 0x3c, 0x4d]);
            interfaces.clear();
        }
        let all = Cursor { bytes: file, big };
        let (kind, length) = (all.u32(offset)?, all.u32(offset + 4)? as usize);
        let Some(block) = all.slice(offset, length).filter(|_| length >= 12) else {
            break;
        };
        let block = Cursor { bytes: block, big };
        match kind {
            1 => interfaces.push(interface(&block)?),
            2 | 6 => enhanced(&block, kind, &interfaces, out)?,
            3 => {
                let on = interfaces.first()?;
                let wire = block.u32(8)?;
                let captured = wire.min(on.snap_length) as usize;
                out.push(Record {
                    bytes: block.slice(12, captured)?.to_vec(),
                    wire_length_bytes: wire,
                    timestamp_ns: 0,
                    interface: 0,
                    link_type_number: on.link_type_number,
                });
            }
            _ => {}
        }
        offset += length;
    }
    Some(())
}

fn interface(block: &Cursor<'_>) -> Option<Interface> {
    let snap_length = match block.u32(12)? {
        0 => u32::MAX,
        bytes => bytes,
    };
    let mut found = Interface {
        link_type_number: block.u16(8)?.into(),
        snap_length,
        ticks_per_second: 1_000_000,
        offset_seconds: 0,
    };
    let mut option = 16;
    while let (Some(code), Some(length)) = (block.u16(option), block.u16(option + 2)) {
        match code {
            9 => {
                let value = *block.slice(option + 4, 1)?.first()?;
                let power = u32::from(value & 0x7f);
                found.ticks_per_second = if value & 0x80 != 0 {
                    1 << power
                } else {
                    10_u64.pow(power)
                };
            }
            14 => {
                let value = *block.slice(option + 4, 8)?.first_chunk()?;
                found.offset_seconds = if block.big {
                    i64::from_be_bytes(value)
                } else {
                    i64::from_le_bytes(value)
                };
            }
            _ => {}
        }
        option += 4 + usize::from(length).next_multiple_of(4);
    }
    Some(found)
}

fn enhanced(
    block: &Cursor<'_>,
    kind: u32,
    interfaces: &[Interface],
    out: &mut Vec<Record>,
) -> Option<()> {
    let index = if kind == 2 {
        block.u16(8)?.into()
    } else {
        block.u32(8)?
    };
    let on = interfaces.get(index as usize)?;
    let ticks = u128::from(block.u32(12)?) << 32 | u128::from(block.u32(16)?);
    let since = (ticks * 1_000_000_000 / u128::from(on.ticks_per_second)) as i128;
    out.push(Record {
        bytes: block.slice(28, block.u32(20)? as usize)?.to_vec(),
        wire_length_bytes: block.u32(24)?,
        timestamp_ns: (since + i128::from(on.offset_seconds) * 1_000_000_000) as u64,
        interface: index,
        link_type_number: on.link_type_number,
    });
    Some(())
}
