// SPDX-License-Identifier: Apache-2.0
//! Adds a tag to a frame, and changes its addresses with correct checksums.

/// Bytes that a tag adds to a frame.
pub(super) const TAG_BYTES: u32 = 4;
/// Bytes of both MAC addresses, which a tag follows.
const MAC_BYTES: usize = 12;
/// Maximum number of tags and extension headers that are skipped.
const HEADERS_MAX: usize = 16;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP_V6: u8 = 58;

/// Appends the frame with the tag and new addresses. A frame that is truncated within its headers,
/// or is not IP, gets only the tag.
pub(super) fn copy(frame: &[u8], tag: u16, address_mask: u32, to: &mut Vec<u8>) {
    let (addresses, rest) = frame.split_at(frame.len().min(MAC_BYTES));
    to.extend_from_slice(addresses);
    if addresses.len() == MAC_BYTES {
        to.extend_from_slice(&[0x81, 0x00]);
        to.extend_from_slice(&tag.to_be_bytes());
    }
    let payload = to.len();
    to.extend_from_slice(rest);
    let _ = readdress(&mut to[payload..], address_mask);
}

/// `None` if the bytes end too early.
fn readdress(bytes: &mut [u8], mask: u32) -> Option<()> {
    let mut at = 0;
    for _ in 0..HEADERS_MAX {
        match word(bytes, at)? {
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            0x0800 => return readdress_v4(bytes.get_mut(at + 2..)?, mask),
            0x86dd => return readdress_v6(bytes.get_mut(at + 2..)?, mask),
            _ => return None,
        }
    }
    None
}

fn readdress_v4(packet: &mut [u8], mask: u32) -> Option<()> {
    let header_bytes = usize::from(packet.first()? & 0xf) * 4;
    // Both addresses must have been captured before either is changed.
    packet.get(..20)?;
    let fragment_offset = word(packet, 6)? & 0x1fff;
    let protocol = packet[9];
    for at in [12, 16] {
        change(packet, at, mask, |packet, old, new| {
            correct(packet, 10, old, new);
            if fragment_offset == 0 {
                correct_transport(packet, header_bytes, protocol, old, new);
            }
        });
    }
    Some(())
}

/// The mask changes the second 32 bits, because the first 32 bits give the type of the address.
fn readdress_v6(packet: &mut [u8], mask: u32) -> Option<()> {
    packet.get(..40)?;
    let transport = transport_v6(packet);
    for at in [12, 28] {
        change(packet, at, mask, |packet, old, new| {
            if let Some((start, protocol)) = transport {
                correct_transport(packet, start, protocol, old, new);
            }
        });
    }
    Some(())
}

/// Offset of the transport header and its protocol number; `None` in later fragments.
fn transport_v6(packet: &[u8]) -> Option<(usize, u8)> {
    const FRAGMENT: u8 = 44;
    let (mut next, mut at) = (packet[6], 40);
    for _ in 0..HEADERS_MAX {
        let header_bytes = match next {
            FRAGMENT if word(packet, at + 2)? >> 3 != 0 => return None,
            FRAGMENT => 8,
            // Hop-by-hop options, routing, destination options.
            0 | 43 | 60 => 8 * (usize::from(*packet.get(at + 1)?) + 1),
            _ => return Some((at, next)),
        };
        next = *packet.get(at)?;
        at += header_bytes;
    }
    None
}

/// XORs the mask into the 32 bits at `at`, and passes each changed 16-bit word to `corrected`.
fn change(packet: &mut [u8], at: usize, mask: u32, corrected: impl Fn(&mut [u8], u16, u16)) {
    for (at, mask) in [(at, (mask >> 16) as u16), (at + 2, mask as u16)] {
        let old = u16::from_be_bytes([packet[at], packet[at + 1]]);
        let new = old ^ mask;
        packet[at..at + 2].copy_from_slice(&new.to_be_bytes());
        corrected(packet, old, new);
    }
}

fn correct_transport(packet: &mut [u8], start: usize, protocol: u8, old: u16, new: u16) {
    let at = match protocol {
        TCP => start + 16,
        // A checksum of 0 means that the sender made none (RFC 768).
        UDP if word(packet, start + 6) != Some(0) => start + 6,
        ICMP_V6 => start + 2,
        _ => return,
    };
    correct(packet, at, old, new);
    if protocol == UDP && word(packet, at) == Some(0) {
        packet[at..at + 2].copy_from_slice(&[0xff, 0xff]);
    }
}

/// Updates the checksum at `at`, if it was captured, for a changed word (RFC 1624, equation 3).
fn correct(packet: &mut [u8], at: usize, old: u16, new: u16) {
    let Some(checksum) = word(packet, at) else {
        return;
    };
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}
