// SPDX-License-Identifier: Apache-2.0
//! The bytes of a packet from its IP header on, for code that inspects payload.

use crate::link::LinkFields;
use crate::walk::Walk;
use crate::{Frame, Parser, fast};

impl Parser {
    /// The captured bytes of the IP packet whose flow [`Parser::parse`] returns, without link-layer
    /// padding. `None` if the frame is not a packet, or if it is a later fragment, whose transport
    /// header is in another frame.
    ///
    /// The frame is parsed again, and the state of the parser does not change. This is affordable
    /// because few packets are inspected.
    #[must_use]
    pub fn ip_datagram<'a>(&self, frame: &Frame<'a>) -> Option<&'a [u8]> {
        let (start, end) = match fast::parse(frame, self.has_udp_tunnels()) {
            Some(fast) => {
                let end = fast.ip_offset + fast.packet.ip_length_bytes as usize;
                (fast.ip_offset, end.min(frame.bytes.len()))
            }
            None => {
                let mut link = LinkFields::default();
                let walk = Walk::new(frame, self.decapsulated(), &mut link).ok()?;
                if walk.ip.is_later_fragment() {
                    return None;
                }
                (walk.ip.offset, walk.ip.end)
            }
        };
        frame.bytes.get(start..end)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Frame, LinkType, Parser, ParserConfig};

    /// An IPv4 header followed by `length` bytes of UDP, with this fragment field.
    fn datagram(length: u8, fragment: u16) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 20 + length, 0, 0];
        bytes.extend(fragment.to_be_bytes());
        bytes.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.resize(20 + usize::from(length), 7);
        bytes
    }

    fn found(ether_type: &[u8], datagram: &[u8], padding: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 12];
        bytes.extend(ether_type);
        bytes.extend(datagram);
        bytes.resize(bytes.len() + padding, 0);
        let frame = Frame {
            bytes: &bytes,
            wire_length_bytes: bytes.len() as u32,
            timestamp_ns: 0,
            interface: 0,
            link_type: LinkType::Ethernet,
        };
        let parser = Parser::new(ParserConfig::default());
        parser.ip_datagram(&frame).map(<[u8]>::to_vec)
    }

    #[test]
    fn padding_and_link_layer_are_no_part_of_the_datagram() {
        let plain = datagram(40, 0);
        for ether_type in [
            &[8, 0][..],
            &[0x81, 0, 0, 5, 8, 0],
            &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0],
        ] {
            assert_eq!(found(ether_type, &plain, 9).as_ref(), Some(&plain));
        }
    }

    #[test]
    fn later_fragments_and_frames_without_a_packet_have_nothing_to_look_at() {
        let first = datagram(40, 0x2000);
        assert_eq!(found(&[8, 0], &first, 0), Some(first));
        assert_eq!(found(&[8, 0], &datagram(40, 5), 0), None);
        assert_eq!(found(&[8, 6], &datagram(40, 0), 0), None);
    }
}
